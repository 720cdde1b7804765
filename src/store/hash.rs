use std::io::{self, Read};

use camino::Utf8Path;
use provenir_api::Digest;

use super::regular;

/// Two buffers of this size: one is hashed while the other is read.
const BUFFER: usize = 4 << 20;

/// The BLAKE3 digest of a regular file's bytes, and their number. Uses all cores for a large file and about 8 MiB for any.
pub(crate) fn hash_file(path: &Utf8Path) -> io::Result<(Digest, u64)> {
    let mut file = regular::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let expected = usize::try_from(file.metadata()?.len()).unwrap_or(BUFFER);
    let mut current = vec![0; expected.saturating_add(1).min(BUFFER)];
    let mut filled = fill(&mut file, &mut current)?;
    if filled < current.len() {
        hasher.update(&current[..filled]);
        return Ok((hasher.finalize().into(), filled as u64));
    }
    let mut next = vec![0; BUFFER];
    let mut size = 0_u64;
    while filled > 0 {
        size += filled as u64;
        let ((), read) = rayon::join(
            || {
                hasher.update_rayon(&current[..filled]);
            },
            || fill(&mut file, &mut next),
        );
        filled = read?;
        std::mem::swap(&mut current, &mut next);
    }
    Ok((hasher.finalize().into(), size))
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_every_size_digest_as_their_bytes_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("file");
        for size in [0, 1, 1000, BUFFER - 1, BUFFER, BUFFER + 1, 3 * BUFFER + 7] {
            let bytes: Vec<u8> = (0..size).map(|index| (index * 31 % 251) as u8).collect();
            fs_err::write(&path, &bytes).unwrap();
            assert_eq!(hash_file(&path).unwrap(), (Digest::of(&bytes), size as u64));
        }
    }
}

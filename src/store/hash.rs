use std::io::{self, ErrorKind, Read};

use blake3::Hasher;
use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root,
};
use camino::Utf8Path;
use fs_err::File;
use fs_err::os::unix::fs::FileExt;
use provenir_api::Digest;
use rayon::prelude::*;

use super::regular;

/// Bytes that one core reads and hashes at a time, a subtree of BLAKE3's tree: as many as stay in a core's own cache, since
/// what leaves it costs as much again.
const PART: u64 = 1 << 18;

/// The BLAKE3 digest of a regular file's bytes, and their number. Uses all cores for a large file and a part's memory on each.
pub(crate) fn hash_file(path: &Utf8Path) -> io::Result<(Digest, u64)> {
    let mut file = regular::open(path)?;
    let length = file.metadata()?.len();
    if length > 2 * PART
        && let Some(digest) = hash_parts(&file, length)?
    {
        return Ok((digest, length));
    }
    // A short file, or one that changes meanwhile, of which what comes is what counts.
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; length.saturating_add(1).min(PART) as usize];
    let mut size = 0;
    loop {
        match fill(&mut file, &mut buffer)? {
            0 => return Ok((hasher.finalize().into(), size)),
            filled => {
                hasher.update(&buffer[..filled]);
                size += filled as u64;
            }
        }
    }
}

/// Whether the bytes of a regular file are an object's, of which `expected` is the length that is known, where it is. A file that
/// is far longer is not read to its end: it may be of any length.
pub(super) fn is_object(path: &Utf8Path, object: &Digest, expected: Option<u64>) -> io::Result<bool> {
    /// What is not longer is read in any case: the length that is known may be what is wrong.
    const READ: u64 = 1 << 30;
    let length = fs_err::metadata(path)?.len();
    if expected.is_some_and(|expected| length > expected.saturating_mul(4).max(READ)) {
        return Ok(false);
    }
    Ok(hash_file(path)?.0 == *object)
}

/// Hashes the parts of a file side by side; `None` where it does not have this length any more.
fn hash_parts(file: &File, length: u64) -> io::Result<Option<Digest>> {
    let parts: Vec<Option<ChainingValue>> = (0..length.div_ceil(PART))
        .into_par_iter()
        .map_init(
            || vec![0; PART as usize],
            |buffer, part| {
                let start = part * PART;
                let part = &mut buffer[..PART.min(length - start) as usize];
                match file.read_exact_at(part, start) {
                    Ok(()) => Ok(Some(
                        Hasher::new()
                            .set_input_offset(start)
                            .update(part)
                            .finalize_non_root(),
                    )),
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
                    Err(error) => Err(error),
                }
            },
        )
        .collect::<io::Result<_>>()?;
    let parts: Option<Vec<ChainingValue>> = parts.into_iter().collect();
    let unchanged = file.metadata()?.len() == length;
    Ok(parts.filter(|_| unchanged).map(|parts| {
        let (left, right) = halves(&parts, length);
        merge_subtrees_root(&left, &right, Mode::Hash).into()
    }))
}

/// The values of the two subtrees below the top of a tree over so many bytes, of the values of its parts, of which there are
/// several.
fn halves(parts: &[ChainingValue], length: u64) -> (ChainingValue, ChainingValue) {
    let left = left_subtree_len(length);
    let (below, beside) = parts.split_at((left / PART) as usize);
    (merged(below, left), merged(beside, length - left))
}

fn merged(parts: &[ChainingValue], length: u64) -> ChainingValue {
    if let [part] = parts {
        return *part;
    }
    let (left, right) = halves(parts, length);
    merge_subtrees_non_root(&left, &right, Mode::Hash)
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
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
        let part = PART as usize;
        let around = |size: usize| [size - 1, size, size + 1];
        let several = [1, 2, 3, 4, 5, 7, 8].map(|count| around(count * part)).concat();
        for size in [0, 1, 1000, 5 * part + 1024, 6 * part - 1023]
            .into_iter()
            .chain(several)
        {
            let bytes: Vec<u8> = (0..size).map(|index| (index * 31 % 251) as u8).collect();
            fs_err::write(&path, &bytes).unwrap();
            assert_eq!(hash_file(&path).unwrap(), (Digest::of(&bytes), size as u64));
        }
    }
}

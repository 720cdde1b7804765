//! The chunks by which a PNG (ISO/IEC 15948) leads back to its cell and tells that it is unaltered.

use std::ops::Range;

use super::{FigureIdentity, LIMIT};

pub(super) const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
const SEAL: &[u8] = b"provenir-seal\0";

pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let chunk = chunks(bytes).find(is_identity)?;
    let rest = &chunk.data[FigureIdentity::PNG_KEYWORD.len()..];
    let [0, 0, _, after @ ..] = rest else { return None };
    if chunk.data.len() > LIMIT {
        return None;
    }
    // Language tag and translated keyword, each closed by a zero.
    let text = after.splitn(3, |byte| *byte == 0).nth(2)?;
    String::from_utf8(text.to_vec()).ok()
}

/// Where the identity's chunk ends, and the seal of that digest to put there.
pub(super) fn seal(bytes: &[u8], hex: &str) -> Option<(usize, Vec<u8>)> {
    let identity = chunks(bytes).find(is_identity)?;
    let seal = chunk(*b"tEXt", &[SEAL, hex.as_bytes()].concat());
    Some((identity.range.end, seal))
}

/// Where the seal is, and its digest.
pub(super) fn sealed(bytes: &[u8]) -> Option<(Range<usize>, Vec<u8>)> {
    chunks(bytes).find_map(|chunk| {
        let hex = chunk.data.strip_prefix(SEAL).filter(|_| chunk.name == b"tEXt")?;
        Some((chunk.range, hex.to_vec()))
    })
}

/// A chunk of a PNG: length, name, data, checksum.
struct Chunk<'a> {
    range: Range<usize>,
    name: &'a [u8],
    data: &'a [u8],
}

/// The chunks of a PNG, up to the first that is not whole.
fn chunks(bytes: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    const AROUND: usize = 12;
    let mut start = SIGNATURE.len();
    std::iter::from_fn(move || {
        let length = bytes.get(start..)?.first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let range = start..start.checked_add(length)?.checked_add(AROUND)?;
        let chunk = bytes.get(range.clone())?;
        start = range.end;
        Some(Chunk {
            range,
            name: &chunk[4..8],
            data: &chunk[8..8 + length],
        })
    })
}

fn is_identity(chunk: &Chunk<'_>) -> bool {
    let keyword = chunk.data.strip_prefix(FigureIdentity::PNG_KEYWORD.as_bytes());
    chunk.name == b"iTXt" && keyword.is_some_and(|rest| rest.starts_with(&[0]))
}

/// A chunk with its checksum.
fn chunk(name: [u8; 4], data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes();
    let checksum = crc32([&name[..], data].concat()).to_be_bytes();
    [&length[..], &name, data, &checksum].concat()
}

/// The cyclic redundancy check of PNG (ISO/IEC 15948, annex D).
fn crc32(bytes: Vec<u8>) -> u32 {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    !bytes.into_iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::tests::identity;

    fn file() -> Vec<u8> {
        let text = [b"provenir\0\0\0\0\0", identity().text().as_bytes()].concat();
        let other = b"comment\0\0\0\0\0provenir";
        [
            SIGNATURE,
            &chunk(*b"IHDR", &[0; 13]),
            &chunk(*b"iTXt", other),
            &chunk(*b"iTXt", &text),
        ]
        .concat()
    }

    #[test]
    fn the_identity_comes_back_from_a_whole_chunk_alone() {
        let png = file();
        assert_eq!(FigureIdentity::read(&png), Some(identity()));
        for end in 0..png.len() {
            assert_eq!(FigureIdentity::read(&png[..end]), None, "{end}");
        }
        let huge = [SIGNATURE, &u32::MAX.to_be_bytes(), b"iTXt", b"provenir"].concat();
        assert_eq!(FigureIdentity::read(&huge), None);
        assert!(!FigureIdentity::is_unaltered(&png), "nothing seals it");
    }

    #[test]
    fn a_sealed_file_tells_any_alteration() {
        let whole = [file(), chunk(*b"IDAT", b"pixels"), chunk(*b"IEND", b"")].concat();
        let sealed = FigureIdentity::seal(whole);
        let seal = chunks(&sealed)
            .find(|chunk| chunk.data.starts_with(SEAL))
            .unwrap()
            .range;
        // The checksum of the seal's own chunk is the only thing that the seal does not cover.
        crate::figure::tests::tells_any_alteration(&sealed, seal.end - 4..seal.end);
    }

    #[test]
    fn the_checksum_is_the_one_of_the_standard() {
        assert_eq!(crc32(b"123456789".to_vec()), 0xcbf4_3926);
        assert_eq!(crc32(b"IEND".to_vec()), 0xae42_6082);
    }
}

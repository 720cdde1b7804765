//! The comments by which a GIF (version 89a) leads back to its cell and tells that it is unaltered. They come before the
//! first picture.

use std::ops::Range;

use super::{FigureIdentity, LIMIT};

pub(super) const SIGNATURE: &[u8] = b"GIF89a";
/// What the comments begin with.
const IDENTITY: &[u8] = b"provenir ";
const SEAL: &[u8] = b"provenir-seal ";
/// Signature, size of the screen, flags, background, aspect ratio.
const HEADER: usize = 13;
const EXTENSION: u8 = 0x21;
const COMMENT: u8 = 0xfe;

pub(super) fn comment(identity: &FigureIdentity) -> Vec<u8> {
    [IDENTITY, identity.text().as_bytes()].concat()
}

pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let comment = comments(bytes).find(|comment| comment.text.starts_with(IDENTITY))?;
    if comment.text.len() > LIMIT {
        return None;
    }
    String::from_utf8(comment.text[IDENTITY.len()..].to_vec()).ok()
}

/// Where the identity's comment ends, and the seal of that digest to put there.
pub(super) fn seal(bytes: &[u8], hex: &str) -> Option<(usize, Vec<u8>)> {
    let identity = comments(bytes).find(|comment| comment.text.starts_with(IDENTITY))?;
    let text = [SEAL, hex.as_bytes()].concat();
    let mut block = vec![EXTENSION, COMMENT, text.len() as u8];
    block.extend(text);
    block.push(0);
    Some((identity.range.end, block))
}

/// Where the seal is, and its digest.
pub(super) fn sealed(bytes: &[u8]) -> Option<(Range<usize>, Vec<u8>)> {
    comments(bytes).find_map(|comment| {
        let hex = comment.text.strip_prefix(SEAL)?.to_vec();
        Some((comment.range, hex))
    })
}

/// A comment of a GIF.
struct Comment {
    range: Range<usize>,
    /// Of a longer one only the beginning.
    text: Vec<u8>,
}

/// The comments before the first picture, up to the first extension that is not whole.
fn comments(bytes: &[u8]) -> impl Iterator<Item = Comment> + '_ {
    let flags = bytes.get(10).copied().unwrap_or(0);
    // The uppermost bit says that a table of colours follows, the lowest three how long it is.
    let colours = if flags & 0x80 == 0 {
        0
    } else {
        3 << ((flags & 7) + 1)
    };
    let mut start = HEADER + colours;
    std::iter::from_fn(move || {
        loop {
            let [EXTENSION, label, ..] = *bytes.get(start..)? else {
                return None;
            };
            let mut text = Vec::new();
            let mut at = start + 2;
            loop {
                let length = usize::from(*bytes.get(at)?);
                let block = bytes.get(at + 1..at + 1 + length)?;
                at += 1 + length;
                if block.is_empty() {
                    break;
                }
                if text.len() <= LIMIT {
                    text.extend(block);
                }
            }
            let range = start..at;
            start = at;
            if label == COMMENT {
                return Some(Comment { range, text });
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    fn identity() -> FigureIdentity {
        FigureIdentity {
            action_key: "k".repeat(400),
            data: Digest::of(b"data"),
        }
    }

    fn file(comment: &[u8]) -> Vec<u8> {
        let blocks = comment.chunks(255).flat_map(|block| {
            let length = u8::try_from(block.len()).unwrap();
            std::iter::once(length).chain(block.iter().copied())
        });
        let mut file = SIGNATURE.to_vec();
        // A screen of 1 × 1 with a table of two colours; another extension; the comment; a picture.
        file.extend([1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255]);
        file.extend(b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0");
        file.extend([EXTENSION, COMMENT]);
        file.extend(blocks);
        file.extend(b"\0,");
        file
    }

    #[test]
    fn the_identity_comes_back() {
        let whole = file(&comment(&identity()));
        assert_eq!(FigureIdentity::read(&whole), Some(identity()));
        for end in 0..whole.len() - 1 {
            assert_eq!(FigureIdentity::read(&whole[..end]), None, "{end}");
        }
        assert_eq!(FigureIdentity::read(&file(b"made by hand")), None);
        assert_eq!(
            FigureIdentity::read(&file(&[IDENTITY, &vec![b' '; 2 * LIMIT]].concat())),
            None
        );
    }

    #[test]
    fn a_sealed_file_tells_any_alteration() {
        let sealed = FigureIdentity::seal(file(&comment(&identity())));
        assert!(FigureIdentity::is_unaltered(&sealed));
        assert_eq!(FigureIdentity::read(&sealed), Some(identity()));
        for position in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[position] ^= 1;
            assert!(!FigureIdentity::is_unaltered(&altered), "{position}");
            assert!(!FigureIdentity::is_unaltered(&sealed[..position]), "{position}");
        }
        let foreign = file(b"made by hand");
        assert_eq!(FigureIdentity::seal(foreign.clone()), foreign);
        assert!(!FigureIdentity::is_unaltered(&foreign));
    }
}

//! The comment by which a GIF (version 89a) leads back to its cell. It comes before the first picture.

use super::{FigureIdentity, LIMIT};

pub(super) const SIGNATURE: &[u8] = b"GIF89a";
/// What the comment begins with.
const OPEN: &[u8] = b"provenir ";
/// Signature, size of the screen, flags, background, aspect ratio.
const HEADER: usize = 13;
const EXTENSION: u8 = 0x21;
const COMMENT: u8 = 0xfe;

pub(super) fn comment(identity: &FigureIdentity) -> Vec<u8> {
    [OPEN, identity.text().as_bytes()].concat()
}

pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let flags = *bytes.get(10)?;
    // The uppermost bit says that a table of colours follows, the lowest three how long it is.
    let colours = if flags & 0x80 == 0 {
        0
    } else {
        3 << ((flags & 7) + 1)
    };
    let mut rest = bytes.get(HEADER + colours..)?;
    while let [EXTENSION, label, after @ ..] = rest {
        let mut data = Vec::new();
        rest = after;
        loop {
            let (length, after) = rest.split_first()?;
            let block = after.get(..usize::from(*length))?;
            rest = &after[block.len()..];
            if block.is_empty() {
                break;
            }
            if data.len() <= LIMIT {
                data.extend(block);
            }
        }
        if let (COMMENT, Some(text)) = (*label, data.strip_prefix(OPEN)) {
            return (data.len() <= LIMIT).then(|| String::from_utf8(text.to_vec()).ok())?;
        }
    }
    None
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
            FigureIdentity::read(&file(&[OPEN, &[b' '; 2 * LIMIT]].concat())),
            None
        );
    }
}

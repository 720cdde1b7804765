//! What a figure says of itself: the text by which a file, found alone, leads back to the cell that drew it.
//!
//! The text is a JSON object, `{"format":1,"action_key":"…","data":"…"}`. An SVG carries it, escaped, as the content of
//! its element `<metadata id="provenir">`; a PNG in an uncompressed `iTXt` chunk with the keyword `provenir`.
//!
//! Behind it stands a seal: the BLAKE3 digest of the file without the seal, in hexadecimal, as the element
//! `<metadata id="provenir-seal">` or a `tEXt` chunk with the keyword `provenir-seal`. So a figure that was altered can
//! be told from one that is as it was drawn, wherever it is found.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Digest;

/// Raised when the text changes its shape.
const FORMAT: u32 = 1;

/// A figure's text is at most so long; the reader looks at no longer one.
const LIMIT: usize = 16 * 1024;

const SVG_OPEN: &str = "<metadata id=\"provenir\">";
const SVG_CLOSE: &str = "</metadata>";
const SVG_SEAL: &str = "\n<metadata id=\"provenir-seal\">";
const PNG_SEAL: &[u8] = b"provenir-seal\0";
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Which cell drew a figure, and from what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureIdentity {
    /// Action key of the cell; opaque text.
    pub action_key: String,
    /// Content digest of the data drawn.
    pub data: Digest,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    format: u32,
    action_key: String,
    data: Digest,
}

impl FigureIdentity {
    /// Keyword of the PNG chunk.
    pub const PNG_KEYWORD: &'static str = "provenir";

    /// The text.
    pub fn text(&self) -> String {
        let text = Text {
            format: FORMAT,
            action_key: self.action_key.clone(),
            data: self.data,
        };
        // Texts and numbers under text keys always serialize.
        serde_json::to_string(&text).unwrap_or_default()
    }

    /// The element that carries the text in an SVG.
    pub fn svg_metadata(&self) -> String {
        let escaped = self
            .text()
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        format!("{SVG_OPEN}{escaped}{SVG_CLOSE}")
    }

    /// Seals the bytes of an SVG or a PNG that carry an identity; others are left as they are.
    pub fn seal(mut file: Vec<u8>) -> Vec<u8> {
        let hex = Digest::of(&file).hex();
        let (position, seal) = if file.starts_with(PNG_SIGNATURE) {
            let Some(end) = png_chunks(&file)
                .find(|chunk| is_identity(chunk))
                .map(|chunk| chunk.range.end)
            else {
                return file;
            };
            (end, png_chunk(*b"tEXt", &[PNG_SEAL, hex.as_bytes()].concat()))
        } else {
            let Some(end) = svg_end(&file) else { return file };
            (end, format!("{SVG_SEAL}{hex}{SVG_CLOSE}").into_bytes())
        };
        file.splice(position..position, seal);
        file
    }

    /// Whether the bytes are those of an SVG or a PNG that was sealed, and not altered since.
    pub fn is_unaltered(file: &[u8]) -> bool {
        let found = if file.starts_with(PNG_SIGNATURE) {
            png_chunks(file).find_map(|chunk| {
                let hex = chunk
                    .data
                    .strip_prefix(PNG_SEAL)
                    .filter(|_| chunk.name == b"tEXt")?;
                Some((chunk.range, hex))
            })
        } else {
            svg_end(file).and_then(|start| {
                let rest = file[start..].strip_prefix(SVG_SEAL.as_bytes())?;
                let hex = rest.get(..2 * size_of::<Digest>())?;
                let seal = SVG_SEAL.len() + hex.len() + SVG_CLOSE.len();
                let closes = rest[hex.len()..].starts_with(SVG_CLOSE.as_bytes());
                closes.then_some((start..start + seal, hex))
            })
        };
        let Some((seal, hex)) = found else { return false };
        let rest = [&file[..seal.start], &file[seal.end..]].concat();
        Self::read(&rest).is_some() && hex == Digest::of(&rest).hex().as_bytes()
    }

    /// Reads it from the bytes of an SVG or a PNG; `None` where they do not carry it.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let text = if bytes.starts_with(PNG_SIGNATURE) {
            png_text(bytes)?
        } else {
            svg_text(bytes)?
        };
        let text: Text = serde_json::from_str(&text).ok()?;
        (text.format == FORMAT).then_some(Self {
            action_key: text.action_key,
            data: text.data,
        })
    }
}

fn svg_text(bytes: &[u8]) -> Option<String> {
    let start = find(bytes, SVG_OPEN)? + SVG_OPEN.len();
    let rest = &bytes[start..bytes.len().min(start + LIMIT)];
    let text = std::str::from_utf8(&rest[..find(rest, SVG_CLOSE)?]).ok()?;
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"");
    Some(text.replace("&amp;", "&"))
}

/// Where the element that carries the identity ends.
fn svg_end(bytes: &[u8]) -> Option<usize> {
    let start = find(bytes, SVG_OPEN)? + SVG_OPEN.len();
    Some(start + find(&bytes[start..], SVG_CLOSE)? + SVG_CLOSE.len())
}

fn find(bytes: &[u8], text: &str) -> Option<usize> {
    bytes
        .windows(text.len())
        .position(|window| window == text.as_bytes())
}

/// A chunk of a PNG: length, name, data, checksum.
struct Chunk<'a> {
    range: Range<usize>,
    name: &'a [u8],
    data: &'a [u8],
}

/// The chunks of a PNG, up to the first that is not whole.
fn png_chunks(bytes: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    const AROUND: usize = 12;
    let mut start = PNG_SIGNATURE.len();
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

fn png_text(bytes: &[u8]) -> Option<String> {
    let chunk = png_chunks(bytes).find(is_identity)?;
    let rest = &chunk.data[FigureIdentity::PNG_KEYWORD.len()..];
    let [0, 0, _, after @ ..] = rest else { return None };
    if chunk.data.len() > LIMIT {
        return None;
    }
    // Language tag and translated keyword, each closed by a zero.
    let text = after.splitn(3, |byte| *byte == 0).nth(2)?;
    String::from_utf8(text.to_vec()).ok()
}

/// A chunk with its checksum.
fn png_chunk(name: [u8; 4], data: &[u8]) -> Vec<u8> {
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

    fn identity() -> FigureIdentity {
        FigureIdentity {
            action_key: "a \"key\" with <&amp;> and ü".to_owned(),
            data: Digest::of(b"data"),
        }
    }

    fn chunk(name: [u8; 4], data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        [&length[..], &name, data, &[0; 4]].concat()
    }

    fn png() -> Vec<u8> {
        let text = [b"provenir\0\0\0\0\0", identity().text().as_bytes()].concat();
        let other = b"comment\0\0\0\0\0provenir";
        [
            PNG_SIGNATURE,
            &chunk(*b"IHDR", &[0; 13]),
            &chunk(*b"iTXt", other),
            &chunk(*b"iTXt", &text),
        ]
        .concat()
    }

    #[test]
    fn the_identity_comes_back_from_either_file() {
        let svg = format!("<svg><title>t</title>{}<path/></svg>", identity().svg_metadata());
        assert_eq!(FigureIdentity::read(svg.as_bytes()), Some(identity()));
        assert_eq!(FigureIdentity::read(&png()), Some(identity()));
    }

    #[test]
    fn files_without_it_and_damaged_ones_are_refused_without_a_panic() {
        for bytes in [
            &b""[..],
            b"<svg></svg>",
            b"\x89PNG\r\n\x1a\n",
            SVG_OPEN.as_bytes(),
        ] {
            assert_eq!(FigureIdentity::read(bytes), None);
        }
        let png = png();
        for end in 0..png.len() {
            assert_eq!(FigureIdentity::read(&png[..end]), None, "{end}");
        }
        let huge = [PNG_SIGNATURE, &u32::MAX.to_be_bytes(), b"iTXt", b"provenir"].concat();
        assert_eq!(FigureIdentity::read(&huge), None);
        let newer = r#"<metadata id="provenir">{"format":2,"action_key":"","data":""}</metadata>"#;
        assert_eq!(FigureIdentity::read(newer.as_bytes()), None);
    }

    fn sealed() -> [Vec<u8>; 2] {
        let svg = format!("<svg>\n{}\n<path d=\"M0\"/></svg>\n", identity().svg_metadata());
        let png = [png(), chunk(*b"IDAT", b"pixels"), chunk(*b"IEND", b"")].concat();
        [FigureIdentity::seal(svg.into_bytes()), FigureIdentity::seal(png)]
    }

    #[test]
    fn a_sealed_figure_tells_any_alteration() {
        for file in sealed() {
            assert!(FigureIdentity::is_unaltered(&file));
            assert_eq!(FigureIdentity::read(&file), Some(identity()));
            for position in 0..file.len() {
                let mut altered = file.clone();
                altered[position] ^= 1;
                // The checksum of the seal's own chunk is the only thing that the seal does not cover.
                let harmless = FigureIdentity::is_unaltered(&altered);
                assert!(!harmless || is_checksum(&file, position), "{position}");
                assert!(!FigureIdentity::is_unaltered(&file[..position]), "{position}");
            }
            assert!(!FigureIdentity::is_unaltered(&[&file[..], b"\n"].concat()));
        }
    }

    fn is_checksum(file: &[u8], position: usize) -> bool {
        png_chunks(file)
            .filter(|chunk| chunk.data.starts_with(PNG_SEAL))
            .any(|chunk| (chunk.range.end - 4..chunk.range.end).contains(&position))
    }

    #[test]
    fn a_figure_without_identity_or_seal_is_nobodys() {
        let svg = format!("<svg>{}</svg>", identity().svg_metadata());
        assert!(!FigureIdentity::is_unaltered(svg.as_bytes()));
        assert!(!FigureIdentity::is_unaltered(&png()));
        for foreign in [&b"<svg></svg>"[..], b"", PNG_SIGNATURE] {
            assert_eq!(FigureIdentity::seal(foreign.to_vec()), foreign);
            assert!(!FigureIdentity::is_unaltered(foreign));
        }
    }

    #[test]
    fn the_checksum_is_the_one_of_the_standard() {
        assert_eq!(crc32(b"123456789".to_vec()), 0xcbf4_3926);
        assert_eq!(crc32(b"IEND".to_vec()), 0xae42_6082);
    }
}

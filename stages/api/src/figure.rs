//! What a figure says of itself: the text by which a file, found alone, leads back to the cell that drew it.
//!
//! The text is a JSON object, `{"format":1,"action_key":"…","data":"…"}`. An SVG carries it, escaped, as the content of
//! its element `<metadata id="provenir">`; a PNG in an uncompressed `iTXt` chunk with the keyword `provenir`; a GIF in a
//! comment, behind the word `provenir` and a space.

mod gif;

use serde::{Deserialize, Serialize};

use crate::Digest;

/// Raised when the text changes its shape.
const FORMAT: u32 = 1;

/// A figure's text is at most so long; the reader looks at no longer one.
const LIMIT: usize = 16 * 1024;

const SVG_OPEN: &str = "<metadata id=\"provenir\">";
const SVG_CLOSE: &str = "</metadata>";
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

    /// The comment that carries the text in a GIF, before its first picture.
    pub fn gif_comment(&self) -> Vec<u8> {
        gif::comment(self)
    }

    /// Reads it from the bytes of an SVG, a PNG or a GIF; `None` where they do not carry it.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let text = if bytes.starts_with(PNG_SIGNATURE) {
            png_text(bytes)?
        } else if bytes.starts_with(gif::SIGNATURE) {
            gif::text(bytes)?
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

fn find(bytes: &[u8], text: &str) -> Option<usize> {
    bytes
        .windows(text.len())
        .position(|window| window == text.as_bytes())
}

fn png_text(bytes: &[u8]) -> Option<String> {
    let mut rest = &bytes[PNG_SIGNATURE.len()..];
    loop {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (name, after) = after.split_first_chunk::<4>()?;
        let data = after.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        let keyword = data.strip_prefix(FigureIdentity::PNG_KEYWORD.as_bytes());
        if let (b"iTXt", Some([0, compressed, _, after @ ..])) = (name, keyword) {
            if *compressed != 0 || data.len() > LIMIT {
                return None;
            }
            // Language tag and translated keyword, each closed by a zero.
            let text = after.splitn(3, |byte| *byte == 0).nth(2)?;
            return String::from_utf8(text.to_vec()).ok();
        }
        // Past the data comes a checksum of four bytes.
        rest = after.get(data.len() + 4..)?;
    }
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
        // The last four bytes are a checksum, which is not looked at.
        let png = png();
        for end in 0..png.len() - 4 {
            assert_eq!(FigureIdentity::read(&png[..end]), None, "{end}");
        }
        let huge = [PNG_SIGNATURE, &u32::MAX.to_be_bytes(), b"iTXt", b"provenir"].concat();
        assert_eq!(FigureIdentity::read(&huge), None);
        let newer = r#"<metadata id="provenir">{"format":2,"action_key":"","data":""}</metadata>"#;
        assert_eq!(FigureIdentity::read(newer.as_bytes()), None);
    }
}

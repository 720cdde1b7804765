//! What a figure says of itself: the text by which a file, found alone, leads back to the cell that drew it.
//!
//! The text is a JSON object, `{"format":1,"action_key":"…","data":"…"}`. An SVG carries it, escaped, as the content of
//! its element `<metadata id="provenir">`; a PNG in an uncompressed `iTXt` chunk with the keyword `provenir`; a PDF, escaped, as
//! the property `provenir:identity` of its XMP packet; a GIF in a comment, behind the word `provenir` and a space.
//!
//! Beside it stands a seal: the BLAKE3 digest of the file without the seal, in hexadecimal, as the element
//! `<metadata id="provenir-seal">`, a `tEXt` chunk with the keyword `provenir-seal`, or a comment behind that word. So a figure
//! that was altered can be told from one that is as it was drawn, wherever it is found.

mod gif;
mod markup;
mod pdf;
mod png;
mod svg;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Digest;

/// Raised when the text changes its shape.
const FORMAT: u32 = 1;

/// A figure's text is at most so long; the reader looks at no longer one.
const LIMIT: usize = 16 * 1024;

/// Hexadecimal digits of a seal.
const HEX: usize = 2 * size_of::<Digest>();

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

/// What a file is, by how it begins.
#[derive(Clone, Copy)]
enum Format {
    Png,
    Gif,
    Pdf,
    Svg,
}

impl Format {
    fn of(file: &[u8]) -> Self {
        if file.starts_with(png::SIGNATURE) {
            Self::Png
        } else if file.starts_with(gif::SIGNATURE) {
            Self::Gif
        } else if file.starts_with(pdf::SIGNATURE) {
            Self::Pdf
        } else {
            Self::Svg
        }
    }

    /// Where a seal belongs, and the seal of that digest; `None` where the file carries no identity.
    fn seal(self, file: &[u8], hex: &str) -> Option<(usize, Vec<u8>)> {
        match self {
            Self::Png => png::seal(file, hex),
            Self::Gif => gif::seal(file, hex),
            Self::Pdf => pdf::seal(file, hex),
            Self::Svg => svg::seal(file, hex),
        }
    }

    /// Where the seal is, and its digest.
    fn sealed(self, file: &[u8]) -> Option<(Range<usize>, Vec<u8>)> {
        match self {
            Self::Png => png::sealed(file),
            Self::Gif => gif::sealed(file),
            Self::Pdf => pdf::sealed(file),
            Self::Svg => svg::sealed(file),
        }
    }

    fn text(self, file: &[u8]) -> Option<String> {
        match self {
            Self::Png => png::text(file),
            Self::Gif => gif::text(file),
            Self::Pdf => pdf::text(file),
            Self::Svg => svg::text(file),
        }
    }
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
        svg::element(&self.text())
    }

    /// The comment that carries the text in a GIF, before its first picture.
    pub fn gif_comment(&self) -> Vec<u8> {
        gif::comment(self)
    }

    /// The description that carries the text in the XMP packet of a PDF: an `rdf:Description`. The packet is neither compressed
    /// nor encrypted, and precedes whatever else in the file could hold the same words.
    pub fn xmp_description(&self) -> String {
        pdf::description(&self.text())
    }

    /// Seals the bytes of an SVG, a PNG, a PDF or a GIF that carry an identity; others are left as they are.
    pub fn seal(mut file: Vec<u8>) -> Vec<u8> {
        let hex = Digest::of(&file).hex();
        if let Some((position, seal)) = Format::of(&file).seal(&file, &hex) {
            file.splice(position..position, seal);
        }
        file
    }

    /// Whether the bytes are those of an SVG, a PNG, a PDF or a GIF that was sealed, and not altered since.
    pub fn is_unaltered(file: &[u8]) -> bool {
        let Some((seal, hex)) = Format::of(file).sealed(file) else {
            return false;
        };
        let rest = [&file[..seal.start], &file[seal.end..]].concat();
        Self::read(&rest).is_some() && hex == Digest::of(&rest).hex().as_bytes()
    }

    /// Reads it from the bytes of an SVG, a PNG, a PDF or a GIF; `None` where they do not carry it.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let text = Format::of(bytes).text(bytes)?;
        let text: Text = serde_json::from_str(&text).ok()?;
        (text.format == FORMAT).then_some(Self {
            action_key: text.action_key,
            data: text.data,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn identity() -> FigureIdentity {
        FigureIdentity {
            action_key: "a \"key\" with <&amp;> and ü".to_owned(),
            data: Digest::of(b"data"),
        }
    }

    /// Checks that a seal covers every byte but those of a range, and the length.
    pub(super) fn tells_any_alteration(sealed: &[u8], uncovered: Range<usize>) {
        assert!(FigureIdentity::is_unaltered(sealed));
        assert_eq!(FigureIdentity::read(sealed), Some(identity()));
        for position in 0..sealed.len() {
            let mut altered = sealed.to_vec();
            altered[position] ^= 1;
            let harmless = FigureIdentity::is_unaltered(&altered);
            assert!(!harmless || uncovered.contains(&position), "{position}");
            assert!(!FigureIdentity::is_unaltered(&sealed[..position]), "{position}");
        }
        assert!(!FigureIdentity::is_unaltered(&[sealed, b"\n"].concat()));
    }

    #[test]
    fn the_identity_comes_back_from_an_svg() {
        let svg = format!("<svg><title>t</title>{}<path/></svg>", identity().svg_metadata());
        assert_eq!(FigureIdentity::read(svg.as_bytes()), Some(identity()));
        assert!(!FigureIdentity::is_unaltered(svg.as_bytes()), "nothing seals it");
    }

    #[test]
    fn a_sealed_svg_tells_any_alteration() {
        let svg = format!("<svg>\n{}\n<path d=\"M0\"/></svg>\n", identity().svg_metadata());
        tells_any_alteration(&FigureIdentity::seal(svg.into_bytes()), 0..0);
    }

    #[test]
    fn files_without_it_are_nobodys() {
        let newer = r#"<metadata id="provenir">{"format":2,"action_key":"","data":""}</metadata>"#;
        let foreign = [
            &b""[..],
            b"<svg></svg>",
            svg::OPEN.as_bytes(),
            newer.as_bytes(),
            png::SIGNATURE,
            gif::SIGNATURE,
            pdf::SIGNATURE,
        ];
        for bytes in foreign {
            assert_eq!(FigureIdentity::read(bytes), None);
            assert!(!FigureIdentity::is_unaltered(bytes));
            let sealed = FigureIdentity::seal(bytes.to_vec());
            assert!(sealed == bytes || bytes == newer.as_bytes());
            assert!(!FigureIdentity::is_unaltered(&sealed));
        }
    }
}

//! Where a PDF (ISO 32000-1) leads back to its cell and tells that it is unaltered.
//!
//! The identity is a property in its XMP packet (ISO 16684-1), which programs find without reading the objects of a PDF, and
//! which many keep that write a PDF anew. The seal is a comment before the last `startxref`: behind everything that is found by
//! an offset, so that no offset changes when the seal is put there or taken out.

use std::ops::Range;

use super::{HEX, markup};

pub(super) const SIGNATURE: &[u8] = b"%PDF-";
const NAMESPACE: &str = "https://github.com/provenir/provenir/ns/figure/1.0/";
const OPEN: &str = "<provenir:identity>";
const CLOSE: &str = "</provenir:identity>";
const SEAL: &[u8] = b"%provenir-seal ";
/// What the last lines of a PDF begin with.
const ENDING: &[u8] = b"startxref";
/// The ending is looked for in so many last bytes, as PDF's readers do.
const TAIL: usize = 1024;

/// A description in RDF that holds the text.
pub(super) fn description(text: &str) -> String {
    let property = markup::element(OPEN, text, CLOSE);
    format!("<rdf:Description rdf:about=\"\" xmlns:provenir=\"{NAMESPACE}\">{property}</rdf:Description>")
}

pub(super) fn text(bytes: &[u8]) -> Option<String> {
    markup::text(bytes, OPEN, CLOSE)
}

/// Where the ending begins, and the seal of that digest to put there.
pub(super) fn seal(bytes: &[u8], hex: &str) -> Option<(usize, Vec<u8>)> {
    markup::range(bytes, OPEN, CLOSE)?;
    Some((ending(bytes)?, [SEAL, hex.as_bytes(), b"\n"].concat()))
}

/// Where the seal is, and its digest.
pub(super) fn sealed(bytes: &[u8]) -> Option<(Range<usize>, Vec<u8>)> {
    let end = ending(bytes)?;
    let start = end.checked_sub(SEAL.len() + HEX + 1)?;
    let hex = bytes[start..end].strip_prefix(SEAL)?.strip_suffix(b"\n")?;
    Some((start..end, hex.to_vec()))
}

/// Where the last `startxref` is.
fn ending(bytes: &[u8]) -> Option<usize> {
    let tail = bytes.len().saturating_sub(TAIL);
    let within = bytes[tail..]
        .windows(ENDING.len())
        .rposition(|window| window == ENDING)?;
    Some(tail + within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FigureIdentity;
    use crate::figure::tests::{identity, tells_any_alteration};

    /// The skeleton of a PDF; whether offsets are right is nothing that is looked at here.
    fn file(packet: &str) -> Vec<u8> {
        let objects =
            format!("%PDF-1.7\n%\u{fffd}\n1 0 obj\n<</Length 0>>\nstream\n{packet}\nendstream\nendobj\n");
        let ending = "xref\n0 1\n0000000000 65535 f\r\ntrailer\n<</Size 1>>\nstartxref\n9\n%%EOF";
        (objects + ending).into_bytes()
    }

    #[test]
    fn the_identity_comes_back() {
        let whole = file(&description(&identity().text()));
        assert_eq!(FigureIdentity::read(&whole), Some(identity()));
        let closed = markup::range(&whole, OPEN, CLOSE).unwrap().end;
        for end in 0..closed {
            assert_eq!(FigureIdentity::read(&whole[..end]), None, "{end}");
        }
        assert_eq!(FigureIdentity::read(&file("made by hand")), None);
        // What an SVG carries is nothing in a PDF.
        assert_eq!(FigureIdentity::read(&file(&identity().svg_metadata())), None);
    }

    #[test]
    fn a_sealed_file_tells_any_alteration() {
        let sealed = FigureIdentity::seal(file(&description(&identity().text())));
        tells_any_alteration(&sealed, 0..0);
        let continued = [&sealed[..], b"\nxref\n0 0\ntrailer\n<<>>\nstartxref\n9\n%%EOF"].concat();
        assert!(
            !FigureIdentity::is_unaltered(&continued),
            "a viewer appends its notes so"
        );
        assert_eq!(FigureIdentity::read(&continued), Some(identity()));
    }

    #[test]
    fn a_foreign_or_damaged_file_is_nobodys() {
        let long = format!("{OPEN}{}{CLOSE}", " ".repeat(1 << 20));
        let packets = ["", OPEN, CLOSE, &long, &format!("{CLOSE}{OPEN}")];
        for foreign in packets.map(file).into_iter().chain([SIGNATURE.to_vec()]) {
            assert_eq!(FigureIdentity::read(&foreign), None);
            assert!(!FigureIdentity::is_unaltered(&FigureIdentity::seal(foreign)));
        }
        // Without an ending there is no place for a seal.
        let text = [SIGNATURE, description(&identity().text()).as_bytes()].concat();
        assert_eq!(FigureIdentity::seal(text.clone()), text);
        // A seal at the very beginning, shorter than one.
        assert!(!FigureIdentity::is_unaltered(b"%PDF-startxref"));
    }
}

//! The elements by which an SVG leads back to its cell and tells that it is unaltered.

use std::ops::Range;

use super::{HEX, markup};

pub(super) const OPEN: &str = "<metadata id=\"provenir\">";
const CLOSE: &str = "</metadata>";
const SEAL: &str = "\n<metadata id=\"provenir-seal\">";

pub(super) fn element(text: &str) -> String {
    markup::element(OPEN, text, CLOSE)
}

pub(super) fn text(bytes: &[u8]) -> Option<String> {
    markup::text(bytes, OPEN, CLOSE)
}

/// Where the identity's element ends, and the seal of that digest to put there.
pub(super) fn seal(bytes: &[u8], hex: &str) -> Option<(usize, Vec<u8>)> {
    let identity = markup::range(bytes, OPEN, CLOSE)?;
    Some((identity.end, format!("{SEAL}{hex}{CLOSE}").into_bytes()))
}

/// Where the seal is, and its digest.
pub(super) fn sealed(bytes: &[u8]) -> Option<(Range<usize>, Vec<u8>)> {
    let start = markup::range(bytes, OPEN, CLOSE)?.end;
    let rest = bytes[start..].strip_prefix(SEAL.as_bytes())?;
    let hex = rest.get(..HEX)?;
    rest[HEX..].strip_prefix(CLOSE.as_bytes())?;
    Some((start..start + SEAL.len() + HEX + CLOSE.len(), hex.to_vec()))
}

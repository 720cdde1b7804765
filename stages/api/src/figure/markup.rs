//! A text inside an element, as SVG and the XMP packet of a PDF carry it.

use std::ops::Range;

use super::LIMIT;

/// An element around a text.
pub(super) fn element(open: &str, text: &str, close: &str) -> String {
    let escaped = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    format!("{open}{escaped}{close}")
}

/// The text in the first such element.
pub(super) fn text(bytes: &[u8], open: &str, close: &str) -> Option<String> {
    let start = find(bytes, open)? + open.len();
    let rest = &bytes[start..bytes.len().min(start + LIMIT)];
    let text = std::str::from_utf8(&rest[..find(rest, close)?]).ok()?;
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"");
    Some(text.replace("&amp;", "&"))
}

/// Where the first such element is.
pub(super) fn range(bytes: &[u8], open: &str, close: &str) -> Option<Range<usize>> {
    let start = find(bytes, open)?;
    let inside = start + open.len();
    Some(start..inside + find(&bytes[inside..], close)? + close.len())
}

fn find(bytes: &[u8], text: &str) -> Option<usize> {
    bytes
        .windows(text.len())
        .position(|window| window == text.as_bytes())
}

//! Whether a figure that nothing is remembered of is one that Provenir made and nobody changed since.

use std::io::{self, Read};

use camino::Utf8Path;
use provenir_api::FigureIdentity;

/// Longest file that is looked into; a longer one is taken for somebody else's, and kept.
const LONGEST: u64 = 256 << 20;

/// Whether a file is a figure as it was made, by its seal.
pub(super) fn is_unaltered_figure(path: &Utf8Path) -> io::Result<bool> {
    let mut bytes = Vec::new();
    fs_err::File::open(path)?
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes.len() as u64 <= LONGEST && FigureIdentity::is_unaltered(&bytes))
}

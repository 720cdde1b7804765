//! Whether a file that nothing is remembered of is a copy that Provenir made and nobody changed since.

use std::io::{self, Read};

use camino::Utf8Path;
use provenir_api::{Digest, FigureIdentity};

/// Longest file that is looked into; a longer one is taken for somebody else's, and kept.
const LONGEST: u64 = 256 << 20;

/// Whether a file is ours as it was made. A figure says so itself, by its seal. A table's bytes follow from its values:
/// one that gives the same bytes when it is written again was written by Provenir. `unnamed` is a file that does not
/// exist, for that.
pub(super) fn is_unaltered(path: &Utf8Path, unnamed: &Utf8Path) -> io::Result<bool> {
    let mut bytes = Vec::new();
    fs_err::File::open(path)?
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Ok(false);
    }
    if FigureIdentity::is_unaltered(&bytes) {
        return Ok(true);
    }
    let digest = Digest::of(&bytes);
    let Ok(table) = provenir_table::parse(path, bytes) else {
        return Ok(false);
    };
    let written = provenir_table::write(unnamed, &table);
    // Where it cannot be written again, the file is not known to be ours, and is kept.
    fs_err::remove_file(unnamed).ok();
    Ok(written.is_ok_and(|written| written.object == digest))
}

use std::io::{self, Write};

use camino::Utf8Path;
use serde::Serialize;

use crate::store::append;

/// A file of JSON lines that this process alone writes. A line that could be written only in part is taken back before the
/// next one, which would otherwise be spoilt with it.
pub(super) struct Lines {
    file: fs_err::File,
    /// Of what is whole.
    length: u64,
    is_torn: bool,
}

impl Lines {
    pub(super) fn create(path: &Utf8Path) -> io::Result<Self> {
        let file = append(path)?;
        Ok(Self {
            length: file.metadata()?.len(),
            file,
            is_torn: false,
        })
    }

    /// Adds a line, in one write.
    pub(super) fn add(&mut self, value: &impl Serialize) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.is_torn = false;
        }
        let bytes = line(value)?;
        // Until it is known that all of it is there.
        self.is_torn = true;
        self.file.write_all(&bytes)?;
        self.is_torn = false;
        self.length += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// A value as a line.
pub(in crate::record) fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

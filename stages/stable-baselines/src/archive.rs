//! Zip archives with bounded directories and entries.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

const ENTRIES: u64 = 4096;
/// Decompressed bytes read from one archive, all entries together.
const TOTAL: u64 = 128 << 20;

/// A zip archive in memory.
pub(crate) struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    /// What may still be decompressed.
    budget: u64,
}

/// Why a zip archive, or an entry of one, was refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It does not end as a zip archive does.
    #[error("it is cut short or damaged, or no zip archive: the directory is missing that ends one")]
    CutShort,
    /// It is a broken zip archive.
    #[error("it is not a readable zip archive: {0}")]
    Zip(#[source] ZipError),
    /// Its directory is larger than any agent's.
    #[error("its directory claims more than {ENTRIES} entries")]
    Entries,
    /// Two entries share a name: readers would disagree which one counts.
    #[error("several of its entries have the same name")]
    Duplicates,
    /// An entry is absent.
    #[error("it has no entry `{0}`")]
    Missing(String),
    /// An entry cannot be decompressed.
    #[error("its entry `{name}` is not readable: {error}")]
    Entry {
        /// Which.
        name: String,
        /// Why.
        error: String,
    },
    /// An entry is larger than what is read.
    #[error("its entry `{name}` holds more than {limit} bytes")]
    TooLarge {
        /// Which.
        name: String,
        /// How many bytes are read.
        limit: u64,
    },
}

impl<'a> Archive<'a> {
    /// Opens an archive; reads its directory only.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, ArchiveError> {
        if claims_too_many_entries(bytes) {
            return Err(ArchiveError::Entries);
        }
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(|error| {
            if has_end(bytes) {
                ArchiveError::Zip(error)
            } else {
                ArchiveError::CutShort
            }
        })?;
        // Without its own directory, an archive's last one is that of an archive within it, which begins later.
        if zip.offset() > 0 && !ends_with_directory(bytes) {
            return Err(ArchiveError::CutShort);
        }
        if zip.len() as u64 > ENTRIES {
            return Err(ArchiveError::Entries);
        }
        if zip.has_duplicate_names() {
            return Err(ArchiveError::Duplicates);
        }
        Ok(Self { zip, budget: TOTAL })
    }

    /// The names of the entries that have a readable name.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.zip
            .file_names()
            .filter_map(|name| Some(name.ok()?.into_owned()))
    }

    /// The content of an entry of at most `limit` bytes, checked against its CRC.
    pub(crate) fn read(&mut self, name: &str, limit: u64) -> Result<Vec<u8>, ArchiveError> {
        let limit = limit.min(self.budget);
        let broken = |error: &dyn std::fmt::Display| ArchiveError::Entry {
            name: name.to_owned(),
            error: error.to_string(),
        };
        let entry = match self.zip.by_name(name) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Err(ArchiveError::Missing(name.to_owned())),
            Err(error) => return Err(broken(&error)),
        };
        // The sizes in the directory are claims; only what comes out of the decompressor counts.
        let mut content = Vec::new();
        entry
            .take(limit + 1)
            .read_to_end(&mut content)
            .map_err(|error| broken(&error))?;
        let read = content.len() as u64;
        if read > limit {
            return Err(ArchiveError::TooLarge {
                name: name.to_owned(),
                limit,
            });
        }
        self.budget -= read;
        Ok(content)
    }
}

/// What begins the record that ends a directory (APPNOTE.TXT 6.3.10, section 4.3.16).
const END: &[u8] = b"PK\x05\x06";

fn has_end(bytes: &[u8]) -> bool {
    bytes.windows(END.len()).any(|window| window == END)
}

/// Whether such a record, with its comment, is the end of the file.
fn ends_with_directory(bytes: &[u8]) -> bool {
    const RECORD: usize = 22;
    let first = bytes.len().saturating_sub(RECORD + usize::from(u16::MAX));
    bytes[first..].windows(RECORD).enumerate().any(|(at, record)| {
        let comment = usize::from(u16::from_le_bytes([record[20], record[21]]));
        record.starts_with(END) && first + at + RECORD + comment == bytes.len()
    })
}

/// Whether a ZIP64 directory claims more entries than are read. The `zip` crate reserves memory for what such a record
/// claims; without one, a directory has at most 65,535 entries.
///
/// Layout: APPNOTE.TXT 6.3.10, sections 4.3.14 (record) and 4.3.15 (its locator, which follows it at once).
fn claims_too_many_entries(bytes: &[u8]) -> bool {
    const RECORD: &[u8] = b"PK\x06\x06";
    const LOCATOR: &[u8] = b"PK\x06\x07";
    let claims = |at: usize| -> Option<u64> {
        let record = &bytes[at..];
        let rest = usize::try_from(u64::from_le_bytes(*record.get(4..)?.first_chunk()?)).ok()?;
        let end = rest.checked_add(12)?;
        let count = u64::from_le_bytes(*record.get(32..)?.first_chunk()?);
        record.get(end..)?.starts_with(LOCATOR).then_some(count)
    };
    let starts = bytes
        .windows(RECORD.len())
        .enumerate()
        .filter(|(_, window)| *window == RECORD);
    starts
        .filter_map(|(at, _)| claims(at))
        .any(|count| count > ENTRIES)
}

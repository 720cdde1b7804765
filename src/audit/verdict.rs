use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read};

use camino::Utf8PathBuf;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::place::Place;
use crate::store::{ActionKey, Layout, Store, StoreError, append_lines, open_regular};

/// The file beside the records of runs to which verdicts are appended, a line each.
const NAME: &str = "audits.jsonl";
/// Longest line of it that is read.
const LONGEST: u64 = 1 << 20;

/// What an audit says of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// The same came out again.
    Reproduced,
    /// Something else came out, and should not have.
    Differs {
        /// The first output port at which it differs.
        port: String,
        /// The first place there.
        place: Place,
    },
    /// Something else came out on another numeric platform, where the kind promises no bits.
    OtherPlatform {
        /// The first output port at which it differs.
        port: String,
        /// The first place there.
        place: Place,
        /// The platform of the result in the store.
        platform: BTreeMap<String, String>,
    },
    /// Something else came out on another numeric platform, no further off than the tolerance that was given.
    WithinTolerance {
        /// The largest difference found, relative to the greatest magnitude of its column or list.
        largest: f64,
        /// The largest that was to be found.
        tolerance: f64,
        /// The platform of the result in the store.
        platform: BTreeMap<String, String>,
    },
    /// It failed.
    Failed {
        /// Why.
        message: String,
    },
    /// It could not be compared, because something that it takes came out differently or failed.
    Blocked,
    /// All that it gives is true but not repeatable.
    Volatile,
}

impl Verdict {
    /// Whether outputs were compared.
    pub(super) fn is_of_outputs(&self) -> bool {
        match self {
            Self::Reproduced
            | Self::Differs { .. }
            | Self::OtherPlatform { .. }
            | Self::WithinTolerance { .. } => true,
            Self::Failed { .. } | Self::Blocked | Self::Volatile => false,
        }
    }
}

/// A line of the file of verdicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When: one time for all verdicts of an audit.
    pub time: Timestamp,
    /// The cell, as the manifest named it.
    pub cell: String,
    /// Its action.
    pub key: ActionKey,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Version of the program.
    pub version: String,
    /// Identity of its sources.
    pub build: String,
    /// Name of the host.
    pub host: String,
    /// The manifest, absolute.
    pub manifest: Utf8PathBuf,
}

impl Record {
    /// Writes verdicts down in a store.
    pub(super) fn append(records: &[Self], store: &Store) -> Result<(), StoreError> {
        let failed = || StoreError::io("cannot record the audit");
        let folder = store.layout().runs();
        fs_err::create_dir_all(&folder).map_err(failed())?;
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, record).map_err(|error| failed()(error.into()))?;
            lines.push(b'\n');
        }
        let file = append_lines(&folder.join(NAME), &lines).map_err(failed())?;
        file.sync_data().map_err(failed())
    }
}

/// Every verdict recorded in a store, the earliest first. A line that cannot be understood is passed over: it decides
/// nothing.
pub fn verdicts(layout: &Layout) -> Result<Vec<Record>, StoreError> {
    let failed = || StoreError::io("cannot read the audits");
    let file = match open_regular(&layout.runs().join(NAME)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed()(error)),
    };
    let mut reader = BufReader::new(file);
    let mut found = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = Read::take(&mut reader, LONGEST)
            .read_until(b'\n', &mut line)
            .map_err(failed())?;
        if read == 0 {
            return Ok(found);
        }
        found.extend(serde_json::from_slice::<Record>(&line).ok());
    }
}

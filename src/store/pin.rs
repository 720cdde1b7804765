use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::catalogue::entries;
use super::durable::replace;
use super::regular::{self, Content};
use super::{ActionKey, Store, StoreError};
use crate::clock;

/// Format of a pin's file. 1 - the first.
const FORMAT: u32 = 1;
/// Longest pin's file that is read.
const LONGEST: u64 = 64 << 10;

/// A result that a person wants kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    format: u32,
    /// The action.
    pub key: ActionKey,
    /// The cell that it was when it was pinned.
    pub cell: String,
    /// The manifest that named the cell, absolute; absent where it was pinned by its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Utf8PathBuf>,
    /// When it was pinned.
    pub time: Timestamp,
}

impl Store {
    /// Keeps the result of an action, and everything upstream of it, from being collected. Says whether it was not kept
    /// so before.
    pub fn pin(&self, key: ActionKey, cell: &str, manifest: Option<Utf8PathBuf>) -> Result<bool, StoreError> {
        let failed = || StoreError::io("cannot pin a result");
        let path = self.pin_file(&key);
        if path.exists() {
            return Ok(false);
        }
        let pin = Pin {
            format: FORMAT,
            key,
            cell: cell.to_owned(),
            manifest,
            time: clock::now(),
        };
        let bytes = serde_json::to_vec_pretty(&pin).map_err(|error| failed()(error.into()))?;
        fs_err::create_dir_all(self.layout().pins()).map_err(failed())?;
        replace(&self.workspace()?.file(), &path, &bytes).map_err(failed())?;
        Ok(true)
    }

    /// Takes a pin away. Says whether there was one.
    pub fn unpin(&self, key: &ActionKey) -> Result<bool, StoreError> {
        match fs_err::remove_file(self.pin_file(key)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::io("cannot remove a pin")(error)),
        }
    }

    /// All pins, by action.
    pub fn pins(&self) -> Result<Vec<Pin>, StoreError> {
        let mut pins = Vec::new();
        for path in entries(&self.layout().pins())? {
            // Whatever cannot be understood may keep something that must not be lost: it is told, never passed over.
            pins.extend(read(&path)?);
        }
        pins.sort_by_key(|pin| pin.key);
        Ok(pins)
    }

    fn pin_file(&self, key: &ActionKey) -> Utf8PathBuf {
        self.layout().pins().join(format!("{}.json", key.hex()))
    }
}

/// Reads a pin; `None` where there is none.
pub(super) fn read(path: &Utf8Path) -> Result<Option<Pin>, StoreError> {
    let failed = || StoreError::io("cannot read the pins");
    let malformed = |reason: &dyn ToString| StoreError::malformed(path, "pin", reason);
    let bytes = match regular::read(path, LONGEST).map_err(failed())? {
        Content::Absent => return Ok(None),
        Content::Unfit(why) => return Err(malformed(&format!("it {why}"))),
        Content::Bytes(bytes) => bytes,
    };
    let pin: Pin = serde_json::from_slice(&bytes).map_err(|error| malformed(&error))?;
    if pin.format > FORMAT {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found: pin.format,
            known: FORMAT,
        });
    }
    Ok(Some(pin))
}

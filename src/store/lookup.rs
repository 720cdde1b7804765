use std::io::ErrorKind;
use std::sync::Arc;

use camino::Utf8Path;
use provenir_api::Digest;
use serde::{Deserialize, Serialize};

use super::hash::{hash_file, is_object};
use super::result::ActionResult;
use super::row::Row;
use super::stamp::Stamp;
use super::{ActionKey, Artifact, Store, StoreError};

/// A result whose artifacts are in the store. Only a commit and a lookup that found all of them make one.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    pub(super) key: ActionKey,
    pub(super) outputs: Arc<[Artifact]>,
}

impl Committed {
    /// The action's key.
    pub fn key(&self) -> ActionKey {
        self.key
    }

    /// One artifact for each output port of the kind, in its order.
    pub fn outputs(&self) -> &[Artifact] {
        &self.outputs
    }

    /// The artifact of an output port.
    pub fn output(&self, port: &str) -> Option<&Artifact> {
        self.outputs.iter().find(|artifact| artifact.port == port)
    }
}

/// What the store has of an action.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// Its result and all artifacts of it.
    Hit(Committed),
    /// Not that.
    Miss(MissReason),
}

/// Why an action has to be executed although it may have been before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissReason {
    /// The store has no result of it.
    NoResult,
    /// The store has a result of it that cannot be understood.
    Unreadable,
    /// An artifact of its result is not in the store any more.
    Missing(Digest),
    /// An artifact of its result is not what it was when it was stored.
    Damaged(Digest),
}

impl Store {
    /// Looks for the result of an action. Reads no object whose stamp is the one that was seen last.
    pub fn lookup(&self, key: &ActionKey) -> Result<Lookup, StoreError> {
        let path = self.layout().result(key);
        let remembered = self.index().result(key);
        let remembered = match remembered {
            Some(row) if stat(&path)? == Some(row.result) => Some(row),
            _ => None,
        };
        if let Some(row) = remembered {
            return self.check(key, row);
        }
        self.read_result(key)
    }

    /// Looks for the result of an action in the files, whatever the index says.
    pub fn read_result(&self, key: &ActionKey) -> Result<Lookup, StoreError> {
        let path = self.layout().result(key);
        // The stamp is taken first: where the file is replaced in between, the index is found out of date later.
        let Some(stamp) = stat(&path)? else {
            return Ok(Lookup::Miss(MissReason::NoResult));
        };
        let result = match ActionResult::read(&path, key) {
            Ok(Some(result)) => result,
            Ok(None) => return Ok(Lookup::Miss(MissReason::NoResult)),
            // A commit replaces it.
            Err(StoreError::Malformed { .. }) => return Ok(Lookup::Miss(MissReason::Unreadable)),
            Err(error) => return Err(error),
        };
        let mut objects = Vec::with_capacity(result.outputs.len());
        for artifact in &result.outputs {
            match stat(&self.layout().object(&artifact.object))? {
                None => return Ok(Lookup::Miss(MissReason::Missing(artifact.object))),
                Some(found) if found.size != artifact.size => {
                    return Ok(Lookup::Miss(MissReason::Damaged(artifact.object)));
                }
                Some(found) => objects.push(found),
            }
        }
        let row = Row {
            result: stamp,
            objects,
            outputs: result.outputs.into(),
        };
        self.index().remember_result(*key, &row);
        Ok(Lookup::Hit(Committed {
            key: *key,
            outputs: row.outputs,
        }))
    }

    /// The whole result of an action, with its fields; `None` where the store has none.
    pub fn result(&self, key: &ActionKey) -> Result<Option<ActionResult>, StoreError> {
        ActionResult::read(&self.layout().result(key), key)
    }

    fn check(&self, key: &ActionKey, mut row: Row) -> Result<Lookup, StoreError> {
        let mut moved = false;
        for (artifact, stamp) in row.outputs.iter().zip(&mut row.objects) {
            let path = self.layout().object(&artifact.object);
            match stat(&path)? {
                None => return Ok(Lookup::Miss(MissReason::Missing(artifact.object))),
                Some(found) if found == *stamp => {}
                Some(found) => {
                    if !is_intact(&path, artifact)? {
                        return Ok(Lookup::Miss(MissReason::Damaged(artifact.object)));
                    }
                    *stamp = found;
                    moved = true;
                }
            }
        }
        if moved {
            self.index().remember_result(*key, &row);
        }
        Ok(Lookup::Hit(Committed {
            key: *key,
            outputs: row.outputs,
        }))
    }

    /// Takes an object out of the store if its bytes are not what its name says; says whether it did. Where its length is known,
    /// a file that is far longer is not read.
    pub fn discard_if_damaged(&self, object: &Digest, length: Option<u64>) -> Result<bool, StoreError> {
        let path = self.layout().object(object);
        let damaged = match is_object(&path, object, length) {
            Ok(is_object) => !is_object,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(StoreError::io("cannot read an object")(error)),
        };
        if damaged {
            fs_err::remove_file(&path).map_err(StoreError::io("cannot remove a damaged object"))?;
        }
        Ok(damaged)
    }
}

/// The stamp of a file; `None` where there is none.
pub(super) fn stat(path: &Utf8Path) -> Result<Option<Stamp>, StoreError> {
    match fs_err::symlink_metadata(path) {
        // What is no file stands for none, a link out of the store among it: a commit replaces it.
        Ok(metadata) => Ok(metadata.is_file().then(|| Stamp::of(&metadata))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("cannot read the store")(error)),
    }
}

/// Whether a file has an artifact's bytes.
pub(super) fn is_intact(path: &Utf8Path, artifact: &Artifact) -> Result<bool, StoreError> {
    // Another length is told without reading.
    if stat(path)?.is_none_or(|found| found.size != artifact.size) {
        return Ok(false);
    }
    match hash_file(path) {
        Ok(found) => Ok(found == (artifact.object, artifact.size)),
        // Another process took it away.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::io("cannot read an object")(error)),
    }
}

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::model::FORMAT;
use super::read::{StoredRun, read};
use crate::store::{Store, StoreError, replace};

const NAME: &str = "annotation.json";

/// `annotation.json`: what a person adds to a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// The format of the file.
    format: u32,
    /// Names given to it, by which it can be referred to.
    #[serde(default)]
    pub tags: BTreeSet<String>,
    /// What is to be remembered of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether everything that it has results of is to be kept.
    #[serde(default)]
    pub pinned: bool,
}

impl StoredRun {
    /// What a person added to it.
    pub fn annotation(&self) -> Result<Annotation, StoreError> {
        let path = self.folder().join(NAME);
        Ok(read(&path, "record of a run's tags and notes")?.unwrap_or_default())
    }

    /// Changes what a person adds to it. Says whether anything is different now.
    pub fn annotate(&self, store: &Store, change: impl FnOnce(&mut Annotation)) -> Result<bool, StoreError> {
        let failed = || StoreError::io("cannot write the note on a run");
        let before = self.annotation()?;
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return Ok(false);
        }
        after.format = FORMAT;
        let mut bytes = serde_json::to_vec_pretty(&after).map_err(|error| failed()(error.into()))?;
        bytes.push(b'\n');
        let path = self.folder().join(NAME);
        replace(&store.workspace()?.file(), &path, &bytes).map_err(failed())?;
        Ok(true)
    }
}

use std::collections::BTreeMap;
use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use serde::Serialize;

use crate::store::{Store, StoreError};

/// A file outside the store that an action took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceFile {
    /// Digest of its bytes when it was taken.
    pub content: Digest,
    /// Where it was, absolute; absent where no record says so.
    pub path: Option<Utf8PathBuf>,
    /// What has become of it; absent where that was not looked for.
    pub now: Option<Now>,
}

/// What has become of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Now {
    /// It has the bytes that were taken.
    Unchanged,
    /// It has others.
    Changed,
    /// It is not there.
    Missing,
    /// It cannot be read.
    Unreadable,
}

impl SourceFile {
    /// Looks what has become of source files. Each file is read once at most.
    pub(super) fn look<'a>(sources: impl Iterator<Item = &'a mut Self>, store: &Store) {
        let mut seen: BTreeMap<Utf8PathBuf, Result<Digest, Now>> = BTreeMap::new();
        for source in sources {
            let Some(path) = &source.path else { continue };
            let found = seen.entry(path.clone()).or_insert_with(|| read(store, path));
            source.now = Some(match found {
                Ok(found) if *found == source.content => Now::Unchanged,
                Ok(_) => Now::Changed,
                Err(now) => *now,
            });
        }
    }
}

fn read(store: &Store, path: &Utf8Path) -> Result<Digest, Now> {
    store.source(path).map_err(|error| match error {
        StoreError::Io { source, .. }
            if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            Now::Missing
        }
        _ => Now::Unreadable,
    })
}

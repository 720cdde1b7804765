//! Everything that a store holds, read from its files: for the commands that look at the whole of it.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use rayon::prelude::*;

use super::result::ActionResult;
use super::stamp::Stamp;
use super::{ActionKey, Layout, Store, StoreError};

/// End of the name of a result file.
const RESULT: &str = ".json";
/// End of the name of a second, different result of an action.
const DIVERGENCE: &str = ".divergence.json";

/// An object's file.
#[derive(Clone, Debug)]
pub struct StoredObject {
    /// Its name: what its bytes should digest to.
    pub object: Digest,
    /// Where it is.
    pub path: Utf8PathBuf,
    pub(super) stamp: Stamp,
}

impl StoredObject {
    /// Length in bytes.
    pub fn size(&self) -> u64 {
        self.stamp.size
    }

    /// When it was stored, or last found to be wanted, in nanoseconds since the epoch.
    pub fn modified(&self) -> u64 {
        self.stamp.modified
    }
}

/// A result file.
#[derive(Clone, Debug)]
pub struct StoredResult {
    /// What it says.
    pub result: ActionResult,
    /// Where it is.
    pub path: Utf8PathBuf,
    /// Length of the file in bytes.
    pub size: u64,
    /// When it was written, in nanoseconds since the epoch.
    pub modified: u64,
}

/// A file of a store that cannot be read or understood.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// Where it is.
    pub path: Utf8PathBuf,
    /// The action whose result it should hold; absent where it is no result by its name.
    pub key: Option<ActionKey>,
    /// What is wrong with it.
    pub reason: String,
}

/// Every result of a store.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// What counts, by action.
    pub results: BTreeMap<ActionKey, StoredResult>,
    /// Second, different results that are kept beside those.
    pub divergences: Vec<StoredResult>,
    /// Files among the results that cannot be understood.
    pub unreadable: Vec<Unreadable>,
}

impl Catalogue {
    /// Reads every result. What another process removes meanwhile is not there; a file of a newer version is an error,
    /// because what it names is not known here.
    pub fn read(layout: &Layout) -> Result<Self, StoreError> {
        let files: Vec<Utf8PathBuf> = files(layout.results())?;
        let read: Vec<(Utf8PathBuf, Result<Option<StoredResult>, StoreError>)> = files
            .into_par_iter()
            .map(|path| {
                let read = read(&path);
                (path, read)
            })
            .collect();
        let mut catalogue = Self::default();
        for (path, read) in read {
            match read {
                Ok(None) => {}
                Ok(Some(found)) if path.as_str().ends_with(DIVERGENCE) => catalogue.divergences.push(found),
                Ok(Some(found)) => {
                    catalogue.results.insert(found.result.key, found);
                }
                Err(StoreError::Malformed { reason, .. }) => catalogue.unreadable.push(Unreadable {
                    key: key(&path),
                    path,
                    reason,
                }),
                Err(error) => return Err(error),
            }
        }
        Ok(catalogue)
    }

    /// Every result, those that diverge included.
    pub fn all(&self) -> impl Iterator<Item = &StoredResult> {
        self.results.values().chain(&self.divergences)
    }

    /// The lengths of objects, as results tell them.
    pub fn lengths(&self) -> BTreeMap<Digest, u64> {
        let mut lengths: BTreeMap<Digest, u64> = BTreeMap::new();
        for artifact in self.all().flat_map(|stored| &stored.result.outputs) {
            let length = lengths.entry(artifact.object).or_default();
            *length = artifact.size.max(*length);
        }
        lengths
    }

    /// Which actions give an artifact of these values, by content.
    pub fn producers(&self) -> BTreeMap<Digest, Vec<ActionKey>> {
        let mut producers: BTreeMap<Digest, Vec<ActionKey>> = BTreeMap::new();
        for (key, stored) in &self.results {
            for artifact in &stored.result.outputs {
                let makers = producers.entry(artifact.content).or_default();
                if makers.last() != Some(key) {
                    makers.push(*key);
                }
            }
        }
        producers
    }
}

impl Store {
    /// Second, different results of an action that are kept beside the first.
    pub fn divergences(&self, key: &ActionKey) -> Result<Vec<ActionResult>, StoreError> {
        let first = self.layout().result(key);
        let hex = key.hex();
        let mut found = Vec::new();
        for path in entries(first.parent().unwrap_or(&first))? {
            let name = path.file_name().unwrap_or_default();
            if name.starts_with(&hex) && name.ends_with(DIVERGENCE) {
                match ActionResult::read(&path, key) {
                    Ok(result) => found.extend(result),
                    // `verify` tells of it.
                    Err(StoreError::Malformed { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        found.sort_by_key(|result| result.outputs.first().map(|output| output.content));
        Ok(found)
    }
}

/// The action whose result a file should hold by its name.
fn key(path: &Utf8Path) -> Option<ActionKey> {
    let (stem, rest) = path.file_name()?.split_at_checked(2 * size_of::<Digest>())?;
    (rest == RESULT || rest.ends_with(DIVERGENCE))
        .then(|| stem.parse().ok())
        .flatten()
}

fn read(path: &Utf8Path) -> Result<Option<StoredResult>, StoreError> {
    let Some(key) = key(path) else {
        return Err(StoreError::malformed(
            path,
            "result",
            &"its name is not the key of an action",
        ));
    };
    // Of a link itself: whether it leads to a result is found when that is read.
    let metadata = match fs_err::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io("cannot read a result")(error)),
    };
    let stamp = Stamp::of(&metadata);
    Ok(ActionResult::read(path, &key)?.map(|result| StoredResult {
        result,
        path: path.to_owned(),
        size: stamp.size,
        modified: stamp.modified,
    }))
}

/// Every object, by name; files among them whose names are no digests come second.
pub(super) fn objects(layout: &Layout) -> Result<(Vec<StoredObject>, Vec<Unreadable>), StoreError> {
    let mut strays = Vec::new();
    let mut objects = Vec::new();
    for path in files(layout.objects())? {
        let name = path.file_name().unwrap_or_default();
        let named = (name.len() == 2 * size_of::<Digest>())
            .then(|| name.parse::<Digest>().ok())
            .flatten();
        let is_file =
            fs_err::symlink_metadata(&path).map(|metadata| (metadata.is_file(), Stamp::of(&metadata)));
        match (named, is_file) {
            (Some(object), Ok((true, stamp))) if layout.object(&object) == path => {
                objects.push(StoredObject { object, path, stamp });
            }
            (_, Err(error)) if error.kind() == ErrorKind::NotFound => {}
            (_, Err(error)) => return Err(StoreError::io("cannot read the store")(error)),
            (named, _) => {
                let has_a_place = named.is_some_and(|object| layout.object(&object) == path);
                strays.push(Unreadable {
                    path,
                    key: None,
                    reason: if has_a_place {
                        "a link, a folder or the like, where the file of an object belongs"
                    } else {
                        "its name is not the digest of an object"
                    }
                    .to_owned(),
                });
            }
        }
    }
    objects.sort_by_key(|found| found.object);
    Ok((objects, strays))
}

/// Files in a sharded folder, sorted.
fn files(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, StoreError> {
    let mut found = Vec::new();
    for shard in entries(folder)? {
        let is_folder = fs_err::symlink_metadata(&shard).is_ok_and(|metadata| metadata.is_dir());
        if is_folder {
            found.extend(entries(&shard)?);
        } else {
            found.push(shard);
        }
    }
    found.sort();
    Ok(found)
}

/// Paths of what is in a folder; nothing where there is none.
pub(super) fn entries(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, StoreError> {
    let failed = || StoreError::io("cannot read the store");
    let entries = match fs_err::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed()(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        // A name that is not UTF-8 is none of ours.
        if let Ok(path) = Utf8PathBuf::from_path_buf(entry.map_err(failed())?.path()) {
            found.push(path);
        }
    }
    Ok(found)
}

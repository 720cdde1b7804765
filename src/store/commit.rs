use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use provenir_api::port::OutputPort;
use provenir_api::protocol::OutputArtifact;
use serde::{Deserialize, Serialize};

use super::durable::{displace_folder, make_folder, rename_new, replace, sync, touch};
use super::lookup::{is_intact, stat};
use super::result::ActionResult;
use super::row::Row;
use super::{Action, ActionKey, Artifact, Committed, Store, StoreError};

/// Outputs of a cell in its scratch folder, ready to be committed.
#[derive(Debug)]
pub struct Staged {
    result: ActionResult,
    /// Where each output's bytes are.
    files: Vec<Utf8PathBuf>,
}

/// A cell's result, committed.
#[derive(Debug)]
pub struct Commit {
    /// What counts from now on: this execution's outputs, or those of the one that was first.
    pub committed: Committed,
    /// The action.
    pub action: Action,
    /// How it relates to what the store had.
    pub outcome: Outcome,
}

/// How a result relates to what the store had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The store had no result of the action.
    New,
    /// The store had the same.
    Same,
    /// The store had what agrees with it as far as that is repeatable, which stays; it was executed all the same, because a person
    /// wanted that or an artifact was lost, and what it measured is kept beside the other.
    Measured {
        /// What this one gave.
        gave: Vec<Artifact>,
    },
    /// The store had another, which stays; this one is kept beside it.
    Diverged {
        /// The first output port at which they differ.
        port: String,
        /// What this one gave. Empty in records of earlier versions.
        #[serde(default)]
        gave: Vec<Artifact>,
    },
    /// The store had another, whose artifacts are gone; this one takes its place and the other is kept beside it.
    Replaced {
        /// The first output port at which they differ.
        port: String,
        /// Whether they differ in nothing but what is not repeatable, as a measured time.
        #[serde(default)]
        measured: bool,
    },
}

impl Outcome {
    /// Whether the same action gave something else, where that should not be.
    pub fn is_divergence(&self) -> bool {
        matches!(
            self,
            Self::Diverged { .. } | Self::Replaced { measured: false, .. }
        )
    }
}

impl Staged {
    /// Checks that a scratch folder holds what a worker announced and a kind declares. With `volatile`, what the cell
    /// took was not repeatable, and so is nothing that it gives.
    pub fn check(
        action: Action,
        ports: &[OutputPort],
        outputs: &[OutputArtifact],
        volatile: bool,
        scratch: &Utf8Path,
        platform: BTreeMap<String, String>,
    ) -> Result<Self, StoreError> {
        let wrong = |reason: String| Err(StoreError::Outputs(reason));
        if outputs.len() != ports.len() {
            return wrong(format!(
                "{} outputs where {} are declared",
                outputs.len(),
                ports.len()
            ));
        }
        let mut artifacts = Vec::with_capacity(ports.len());
        let mut files = Vec::with_capacity(ports.len());
        for port in ports {
            let Some(output) = outputs.iter().find(|output| output.port == port.name) else {
                return wrong(format!("the output `{}` is missing", port.name));
            };
            if !port.content.admits(&output.extension) {
                return wrong(format!(
                    "the output `{}` is a .{} file",
                    port.name, output.extension
                ));
            }
            if output.path.parent() != Some(scratch) || output.path.file_name().is_none() {
                return wrong(format!("`{}` is not in the cell's scratch folder", output.path));
            }
            let metadata =
                fs_err::symlink_metadata(&output.path).map_err(StoreError::io("cannot read an output"))?;
            if !metadata.is_file() || metadata.len() != output.size {
                return wrong(format!(
                    "`{}` is not a file of {} bytes",
                    output.path, output.size
                ));
            }
            artifacts.push(Artifact {
                port: output.port.clone(),
                content: output.content,
                object: output.object,
                size: output.size,
                rows: output.rows,
                extension: output.extension.clone(),
                volatile: volatile || port.volatile,
            });
            files.push(output.path.clone());
        }
        let key = action.key();
        Ok(Self {
            result: ActionResult::new(key, action, platform, artifacts),
            files,
        })
    }

    /// Whether nothing of it is worth keeping beside a result.
    fn adds_nothing_to(&self, existing: &ActionResult) -> bool {
        existing.agrees_with(&self.result) && existing.first_measured_otherwise(&self.result).is_none()
    }

    /// The action's key.
    pub fn key(&self) -> ActionKey {
        self.result.key
    }
}

/// A cell on its way through a commit.
struct Item {
    staged: Staged,
    /// The result that the store had before.
    existing: Option<ActionResult>,
    /// Whether the artifacts of that result are all there.
    existing_is_whole: bool,
    /// The result file that waits for its name.
    unnamed: Utf8PathBuf,
    outcome: Result<Option<Outcome>, StoreError>,
}

impl Item {
    fn is_open(&self) -> bool {
        matches!(self.outcome, Ok(None))
    }

    /// Goes on with an item that has neither failed nor is done.
    fn step(&mut self, step: impl FnOnce(&mut Self) -> Result<Option<Outcome>, StoreError>) {
        if self.is_open() {
            self.outcome = step(self);
        }
    }
}

impl Store {
    /// Commits the outputs of any number of cells, with as few waits for the disk as for one: whoever finds a result
    /// afterwards finds its artifacts, even after a power cut. Fails for each cell on its own, and leaves of a cell
    /// that failed nothing under a final name but possibly objects that no result names.
    pub fn commit(&self, batch: Vec<Staged>) -> Vec<Result<Commit, StoreError>> {
        let mut items: Vec<Item> = batch.into_iter().map(|staged| self.begin(staged)).collect();
        let mut folders = BTreeSet::new();
        self.sync_outputs(&mut items);
        for item in &mut items {
            item.step(|item| self.name_objects(item, &mut folders).map(|()| None));
        }
        for item in &mut items {
            item.step(|item| {
                let bytes = item.staged.result.encode()?;
                fs_err::write(&item.unnamed, bytes).map_err(StoreError::io("cannot write a result"))?;
                Ok(None)
            });
        }
        self.sync_results(&mut items, &folders);
        folders.clear();
        for item in &mut items {
            item.step(|item| self.name_result(item, &mut folders).map(Some));
        }
        if let Err(error) = sync(self.layout().root(), &[], &folders) {
            for item in &mut items {
                item.outcome = Err(StoreError::io("cannot make results durable")(again(&error)));
            }
        }
        for item in &mut items {
            if item.outcome.is_ok()
                && let Err(error) = self.name_lost_objects(item)
            {
                item.outcome = Err(error);
            }
        }
        items.into_iter().map(|item| self.finish(item)).collect()
    }

    fn begin(&self, staged: Staged) -> Item {
        let key = staged.key();
        let mut item = Item {
            unnamed: Utf8PathBuf::new(),
            staged,
            existing: None,
            existing_is_whole: false,
            outcome: Ok(None),
        };
        item.step(|item| {
            item.unnamed = self.workspace()?.file();
            item.existing = match ActionResult::read(&self.layout().result(&key), &key) {
                // What cannot be understood is worth nothing, and is replaced.
                Err(StoreError::Malformed { .. }) => None,
                other => other?,
            };
            let Some(existing) = &item.existing else {
                return Ok(None);
            };
            item.existing_is_whole = self.is_whole(existing)?;
            let same = item.existing_is_whole && item.staged.adds_nothing_to(existing);
            Ok(same.then_some(Outcome::Same))
        });
        item
    }

    /// Whether the artifacts of a result are all there, with the bytes that they were stored with. They are read: it is
    /// asked only where an action was executed although it has a result.
    fn is_whole(&self, result: &ActionResult) -> Result<bool, StoreError> {
        for artifact in &result.outputs {
            let path = self.layout().object(&artifact.object);
            if stat(&path)?.is_none() || !is_intact(&path, artifact)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes outputs read-only and durable.
    fn sync_outputs(&self, items: &mut [Item]) {
        for item in &mut *items {
            item.step(|item| {
                for file in &item.staged.files {
                    fs_err::set_permissions(file, std::fs::Permissions::from_mode(0o444))
                        .map_err(StoreError::io("cannot make an output read-only"))?;
                }
                Ok(None)
            });
        }
        let open = items.iter().filter(|item| item.is_open());
        let files: Vec<&Utf8Path> = open
            .flat_map(|item| item.staged.files.iter())
            .map(Utf8PathBuf::as_path)
            .collect();
        let synced = sync(self.layout().root(), &files, &BTreeSet::new());
        fail_all(items, synced, "cannot make outputs durable");
    }

    fn name_objects(&self, item: &Item, folders: &mut BTreeSet<Utf8PathBuf>) -> Result<(), StoreError> {
        let failed = || StoreError::io("cannot store an object");
        for (artifact, file) in item.staged.result.outputs.iter().zip(&item.staged.files) {
            let path = self.layout().object(&artifact.object);
            let folder = folder_of(&path);
            make_folder(folder, folders).map_err(failed())?;
            folders.insert(folder.to_owned());
            while !rename_new(file, &path).map_err(failed())? {
                // An object of that name has these bytes, unless somebody changed it, put something else there, or a
                // collection took it away: then this one takes its place.
                if !is_intact(&path, artifact)? {
                    displace_folder(&path).map_err(failed())?;
                    fs_err::rename(file, &path).map_err(failed())?;
                    break;
                }
                // A collection that takes it for unwanted finds it touched. Where it belongs to another user, who
                // alone may touch it, a collection by that user may cost a second run of the cell, no more.
                match touch(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// A collection that had found an object unwanted may have taken it away at the very moment in which it was found there:
    /// the same bytes, which are still at hand then, take its place. Now a result names it, and no collection takes it.
    fn name_lost_objects(&self, item: &Item) -> Result<(), StoreError> {
        let failed = || StoreError::io("cannot store an object");
        let mut folders = BTreeSet::new();
        for (artifact, file) in item.staged.result.outputs.iter().zip(&item.staged.files) {
            let path = self.layout().object(&artifact.object);
            if stat(&path)?.is_some() || stat(file)?.is_none() {
                continue;
            }
            let folder = folder_of(&path);
            make_folder(folder, &mut folders).map_err(failed())?;
            folders.insert(folder.to_owned());
            rename_new(file, &path).map_err(failed())?;
        }
        if folders.is_empty() {
            return Ok(());
        }
        sync(self.layout().root(), &[], &folders).map_err(failed())
    }

    fn sync_results(&self, items: &mut [Item], folders: &BTreeSet<Utf8PathBuf>) {
        let open = items.iter().filter(|item| item.is_open());
        let files: Vec<&Utf8Path> = open.map(|item| item.unnamed.as_path()).collect();
        let synced = sync(self.layout().root(), &files, folders);
        fail_all(items, synced, "cannot make results durable");
    }

    fn name_result(&self, item: &Item, folders: &mut BTreeSet<Utf8PathBuf>) -> Result<Outcome, StoreError> {
        let failed = || StoreError::io("cannot store a result");
        let key = item.staged.key();
        let path = self.layout().result(&key);
        let folder = folder_of(&path);
        make_folder(folder, folders).map_err(failed())?;
        folders.insert(folder.to_owned());
        if item.existing.is_none() && rename_new(&item.unnamed, &path).map_err(failed())? {
            return Ok(Outcome::New);
        }
        // There is one: from before, or from another process in the meantime.
        let existing = match ActionResult::read(&path, &key) {
            Err(StoreError::Malformed { .. }) => None,
            other => other?,
        };
        let Some(existing) = existing else {
            displace_folder(&path).map_err(failed())?;
            fs_err::rename(&item.unnamed, &path).map_err(failed())?;
            return Ok(Outcome::New);
        };
        let difference = existing.first_difference(&item.staged.result).map(str::to_owned);
        let whole = self.is_whole(&existing)?;
        match (difference, whole) {
            (None, true) if item.staged.adds_nothing_to(&existing) => Ok(Outcome::Same),
            (None, true) => {
                let second = self.layout().divergence(&key, &digest_of(&item.staged.result)?);
                fs_err::rename(&item.unnamed, second).map_err(failed())?;
                Ok(Outcome::Measured {
                    gave: item.staged.result.outputs.clone(),
                })
            }
            (None, false) => {
                let measured = existing.first_measured_otherwise(&item.staged.result);
                let Some(port) = measured.map(str::to_owned) else {
                    fs_err::rename(&item.unnamed, &path).map_err(failed())?;
                    return Ok(Outcome::Same);
                };
                self.replace_result(item, &existing)?;
                Ok(Outcome::Replaced { port, measured: true })
            }
            (Some(port), true) => {
                let second = self.layout().divergence(&key, &digest_of(&item.staged.result)?);
                fs_err::rename(&item.unnamed, second).map_err(failed())?;
                Ok(Outcome::Diverged {
                    port,
                    gave: item.staged.result.outputs.clone(),
                })
            }
            (Some(port), false) => {
                self.replace_result(item, &existing)?;
                Ok(Outcome::Replaced {
                    port,
                    measured: false,
                })
            }
        }
    }

    /// Gives a result the place of one whose artifacts are gone, which is kept beside it.
    fn replace_result(&self, item: &Item, existing: &ActionResult) -> Result<(), StoreError> {
        let failed = || StoreError::io("cannot store a result");
        let key = item.staged.key();
        let first = self.layout().divergence(&key, &digest_of(existing)?);
        replace(&self.workspace()?.file(), &first, &existing.encode()?).map_err(failed())?;
        fs_err::rename(&item.unnamed, self.layout().result(&key)).map_err(failed())
    }

    fn finish(&self, item: Item) -> Result<Commit, StoreError> {
        // Whatever was not given a name is not needed any more.
        fs_err::remove_file(&item.unnamed).ok();
        let key = item.staged.key();
        let Some(outcome) = item.outcome? else {
            return Err(StoreError::Outputs(
                "a commit ended without an outcome".to_owned(),
            ));
        };
        let path = self.layout().result(&key);
        let stamp = stat(&path)?;
        let ActionResult {
            action,
            outputs: given,
            ..
        } = item.staged.result;
        let outputs = match (&outcome, item.existing) {
            (Outcome::New | Outcome::Replaced { .. }, _) => given,
            (Outcome::Same | Outcome::Measured { .. } | Outcome::Diverged { .. }, Some(existing))
                if item.existing_is_whole =>
            {
                existing.outputs
            }
            // The result came, or came back to life, while this one was on its way.
            _ => ActionResult::read(&path, &key)?.map_or(given, |result| result.outputs),
        };
        let outputs: Arc<[Artifact]> = outputs.into();
        let mut objects = Vec::with_capacity(outputs.len());
        for artifact in outputs.iter() {
            let path = self.layout().object(&artifact.object);
            objects.push(stat(&path)?.ok_or(StoreError::Missing {
                object: artifact.object,
                path,
            })?);
        }
        if let Some(result) = stamp {
            let row = Row {
                result,
                objects,
                outputs: Arc::clone(&outputs),
            };
            self.index().remember_result(key, &row);
        }
        let partial = self.layout().partial(&key);
        match fs_err::remove_dir_all(partial) {
            Ok(()) => {}
            // The worker of a command that was killed may still write there: that is for `gc`.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
                ) => {}
            Err(error) => {
                return Err(StoreError::io("cannot remove the checkpoints of a finished cell")(error));
            }
        }
        Ok(Commit {
            committed: Committed { key, outputs },
            action,
            outcome,
        })
    }
}

fn fail_all(items: &mut [Item], synced: io::Result<()>, action: &'static str) {
    if let Err(error) = synced {
        for item in items {
            item.step(|_| Err(StoreError::io(action)(again(&error))));
        }
    }
}

/// The same error once more; the operating system's own cannot be cloned.
fn again(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

fn folder_of(path: &Utf8Path) -> &Utf8Path {
    path.parent().unwrap_or(path)
}

fn digest_of(result: &ActionResult) -> Result<Digest, StoreError> {
    Ok(Digest::of(&result.encode()?))
}

#[cfg(test)]
mod tests;

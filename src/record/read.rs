use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read};

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::RunId;
use super::model::{OutcomeFile, Record, RunFile};
use crate::store::{ActionKey, Artifact, Layout, Liveness, StoreError};

/// Longest file of a run that is read whole, and longest line of one that is read by lines.
const LONGEST: u64 = 256 << 20;

/// The runs of a store.
pub struct RunStore {
    folder: Utf8PathBuf,
}

/// A cell that a run executed, or executes.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The cell, as the manifest named it.
    pub cell: String,
    /// Its action.
    pub key: ActionKey,
    /// What it gave, once it is known.
    pub objects: Vec<Digest>,
    /// Where its log is, if it said anything.
    log: Option<Utf8PathBuf>,
}

impl Execution {
    /// Its log; `None` where it said nothing.
    pub fn log(&self) -> Option<&Utf8Path> {
        self.log.as_deref().filter(|log| log.is_file())
    }
}

/// A run that was recorded.
pub struct StoredRun {
    /// Its name.
    pub id: RunId,
    folder: Utf8PathBuf,
}

impl RunStore {
    /// The runs of a store.
    pub fn new(layout: &Layout) -> Self {
        Self {
            folder: layout.runs(),
        }
    }

    /// All runs, the latest first.
    pub fn runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        let failed = || StoreError::io("cannot read the records of runs");
        let entries = match fs_err::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed()(error)),
        };
        let mut runs = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed())?.file_name();
            if let Some(id) = name.to_str().and_then(RunId::parse) {
                runs.push(StoredRun {
                    folder: self.folder.join(id.as_str()),
                    id,
                });
            }
        }
        runs.sort_by(|left, right| right.id.cmp(&left.id));
        Ok(runs)
    }
}

impl StoredRun {
    /// The run's folder.
    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// What was asked for; `None` where the run was killed before that was written.
    pub fn head(&self) -> Result<Option<RunFile>, StoreError> {
        read(&self.folder.join("run.json"), "record of a run")
    }

    /// How it ended; `None` while it runs, and where it was killed.
    pub fn outcome(&self) -> Result<Option<OutcomeFile>, StoreError> {
        read(&self.folder.join("outcome.json"), "record of a run's end")
    }

    /// Whether its process lives.
    pub fn is_running(&self) -> Result<bool, StoreError> {
        let alive = self
            .head()?
            .is_some_and(|head| head.owner.liveness() == Liveness::Alive);
        Ok(alive && self.outcome()?.is_none())
    }

    /// The cells that this run executed, or executes, in the order in which they were begun.
    pub fn executions(&self) -> Result<Vec<Execution>, StoreError> {
        /// The fields that matter here, of the events that matter here.
        #[derive(Deserialize)]
        struct Line {
            event: String,
            #[serde(default)]
            cell: String,
            key: Option<ActionKey>,
            #[serde(default)]
            log: Utf8PathBuf,
            #[serde(default)]
            outputs: Vec<Artifact>,
        }
        let mut executions: Vec<Execution> = Vec::new();
        let mut by_cell: BTreeMap<String, usize> = BTreeMap::new();
        each_line(&self.folder.join("events.jsonl"), |line| {
            let Ok(Line {
                event,
                cell,
                key: Some(key),
                log,
                outputs,
            }) = serde_json::from_slice(line)
            else {
                return Ok(());
            };
            match event.as_str() {
                "cell-started" | "worker-lost" => {
                    by_cell.insert(cell.clone(), executions.len());
                    executions.push(Execution {
                        cell,
                        key,
                        // The place as it is now: the store may have been moved since.
                        log: log.file_name().map(|name| self.folder.join("logs").join(name)),
                        objects: Vec::new(),
                    });
                }
                "cell-finished" => {
                    if let Some(execution) = by_cell.get(&cell).and_then(|index| executions.get_mut(*index)) {
                        execution.objects = outputs.iter().map(|artifact| artifact.object).collect();
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(executions)
    }

    /// What became of its cells so far. A line that is not complete, because the run was killed or is writing it, ends
    /// the list.
    pub fn records(&self) -> Result<Vec<Record>, StoreError> {
        let path = self.folder.join("records.jsonl");
        let mut records = Vec::new();
        each_line(&path, |line| {
            let record = serde_json::from_slice(line)
                .map_err(|error| StoreError::malformed(&path, "list of records", &error))?;
            records.push(record);
            Ok(())
        })?;
        Ok(records)
    }
}

/// Gives every complete line of a file to `take`; a file that is not there has none.
fn each_line(
    path: &Utf8Path,
    mut take: impl FnMut(&[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let failed = || StoreError::io("cannot read the records of a run");
    let file = match fs_err::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed()(error)),
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        Read::take(&mut reader, LONGEST)
            .read_until(b'\n', &mut line)
            .map_err(failed())?;
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
        take(&line)?;
    }
}

pub(super) fn read<T: DeserializeOwned>(
    path: &Utf8Path,
    what: &'static str,
) -> Result<Option<T>, StoreError> {
    let failed = || StoreError::io("cannot read the record of a run");
    match fs_err::metadata(path) {
        Ok(metadata) if metadata.len() > LONGEST => {
            return Err(StoreError::malformed(
                path,
                what,
                &format!("it holds {} bytes", metadata.len()),
            ));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed()(error)),
    }
    let bytes = fs_err::read(path).map_err(failed())?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| StoreError::malformed(path, what, &error))
}

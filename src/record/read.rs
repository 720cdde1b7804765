use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use provenir_api::Digest;
use rayon::prelude::*;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::RunId;
use super::model::{FORMAT, OutcomeFile, Record, RunFile};
use crate::store::{ActionKey, Artifact, Content, Layout, Liveness, StoreError, open_regular, read_regular};

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
    /// When it began.
    pub started: Timestamp,
    /// What it gave, once it is known.
    pub objects: Vec<Digest>,
    /// Whether it was finished, or failed.
    pub is_over: bool,
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
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// Its name.
    pub id: RunId,
    folder: Utf8PathBuf,
}

/// A run whose records cannot be understood: what reads all runs goes on without it.
#[derive(Debug)]
pub struct FlawedRun {
    /// The run.
    pub run: StoredRun,
    /// Why not.
    pub error: StoreError,
}

impl FlawedRun {
    /// What is wrong, in a phrase.
    pub fn reason(&self) -> String {
        match &self.error {
            StoreError::Newer { path, found, known } => format!(
                "`{}` was written by a newer version of Provenir (format {found}; this one reads up to {known})",
                path.file_name().unwrap_or_default()
            ),
            StoreError::Malformed { path, what, reason } => {
                format!(
                    "`{}` is not a {what}: {reason}",
                    path.file_name().unwrap_or_default()
                )
            }
            other => other.to_string(),
        }
    }

    /// Whether nothing but the list of its events is damaged.
    pub fn is_of_events(&self) -> bool {
        matches!(&self.error, StoreError::Malformed { path, .. } if path.file_name() == Some("events.jsonl"))
    }

    /// Whether a newer version of Provenir wrote it, so that nothing need be wrong with it.
    pub fn is_newer(&self) -> bool {
        matches!(self.error, StoreError::Newer { .. })
    }
}

impl RunStore {
    /// The runs of a store.
    pub fn new(layout: &Layout) -> Self {
        Self {
            folder: layout.runs(),
        }
    }

    /// Where runs leave a line that executed nothing and found what was found before.
    pub(super) fn noops(&self) -> Utf8PathBuf {
        self.folder.join("noop.jsonl")
    }

    /// The file of what collections removed, and verifications.
    pub(super) fn collections(&self) -> Utf8PathBuf {
        self.folder.join("gc.jsonl")
    }

    /// The names of all runs, in no order.
    fn ids(&self) -> Result<Vec<RunId>, StoreError> {
        let failed = || StoreError::io("cannot read the records of runs");
        let entries = match fs_err::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed()(error)),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed())?.file_name();
            ids.extend(name.to_str().and_then(RunId::parse));
        }
        Ok(ids)
    }

    /// The name of the latest run.
    pub fn newest(&self) -> Result<Option<RunId>, StoreError> {
        Ok(self.ids()?.into_iter().max())
    }

    /// All runs, the latest first.
    pub fn runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        let mut ids = self.ids()?;
        ids.sort_by(|left, right| right.cmp(left));
        let runs = ids.into_iter().map(|id| StoredRun {
            folder: self.folder.join(id.as_str()),
            id,
        });
        Ok(runs.collect())
    }

    /// Reads something of every run, the latest first, on all processor cores. Runs of which it cannot be understood come
    /// apart.
    pub fn read<T: Send>(
        &self,
        read: impl Fn(StoredRun) -> Result<T, StoreError> + Sync,
    ) -> Result<(Vec<T>, Vec<FlawedRun>), StoreError> {
        let read: Vec<Result<T, FlawedRun>> = self
            .runs()?
            .into_par_iter()
            .map(|run| read(run.clone()).map_err(|error| FlawedRun { run, error }))
            .collect();
        let (mut runs, mut flawed) = (Vec::new(), Vec::new());
        for found in read {
            match found {
                Ok(run) => runs.push(run),
                Err(run) => flawed.push(run),
            }
        }
        Ok((runs, flawed))
    }
}

impl StoredRun {
    /// The run's folder.
    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// What was asked for; `None` where the run was killed before that was written. Where the project was moved together with
    /// its store since, the manifest is where it is now.
    pub fn head(&self) -> Result<Option<RunFile>, StoreError> {
        let head: Option<RunFile> = read(&self.folder.join("run.json"), "record of a run")?;
        let layout = self
            .folder
            .ancestors()
            .nth(2)
            .map(|root| Layout::new(root.to_owned()));
        Ok(head.zip(layout).map(|(head, layout)| RunFile {
            manifest: layout.moved(head.manifest, head.surroundings.as_deref()),
            ..head
        }))
    }

    /// How it ended; `None` while it runs, and where it was killed.
    pub fn outcome(&self) -> Result<Option<OutcomeFile>, StoreError> {
        read(&self.folder.join("outcome.json"), "record of a run's end")
    }

    /// Whether all of it can be understood.
    pub fn check(&self) -> Result<(), StoreError> {
        self.head()?;
        self.annotation()?;
        let records = self.records()?;
        self.check_complete(self.outcome()?.as_ref(), &records)
    }

    /// A run that came to its end counted what it did: records that hold less were cut off or overwritten since.
    pub(super) fn check_complete(
        &self,
        outcome: Option<&OutcomeFile>,
        records: &[Record],
    ) -> Result<(), StoreError> {
        let Some(recorded) = outcome.and_then(|outcome| outcome.recorded) else {
            return Ok(());
        };
        let (mut executed, mut reused) = (0, 0);
        for record in records {
            match record {
                Record::Executed(_) => executed += 1,
                Record::Reused { cells, .. } => reused += cells.len(),
                Record::Failed { .. } => {}
            }
        }
        if executed >= recorded.executed && reused >= recorded.reused {
            return Ok(());
        }
        let reason = format!(
            "it tells of {executed} cells executed and {reused} reused, and the run wrote down {} and {}",
            recorded.executed, recorded.reused
        );
        Err(StoreError::malformed(
            &self.folder.join("records.jsonl"),
            "whole list of a run's records",
            &reason,
        ))
    }

    /// Whether its process lives.
    pub fn is_running(&self) -> Result<bool, StoreError> {
        Ok(self.liveness()? == Liveness::Alive && self.outcome()?.is_none())
    }

    /// Whether the process lives of a run of which no end is recorded.
    pub fn liveness(&self) -> Result<Liveness, StoreError> {
        let head = self.head()?;
        Ok(head.map_or(Liveness::Dead, |head| head.owner.liveness()))
    }

    /// The cells that this run executed, or executes, in the order in which they were begun.
    pub fn executions(&self) -> Result<Vec<Execution>, StoreError> {
        /// The fields that matter here, of the events that matter here.
        #[derive(Deserialize)]
        struct Line {
            time: Timestamp,
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
        let path = self.folder.join("events.jsonl");
        let mut number = 0;
        each_line(&path, |line| {
            number += 1;
            let Ok(Line {
                time,
                event,
                cell,
                key: Some(key),
                log,
                outputs,
            }) = serde_json::from_slice(line)
            else {
                // Another event has other fields; what is none at all may have been one of these.
                return serde_json::from_slice::<IgnoredAny>(line)
                    .map(drop)
                    .map_err(|error| {
                        let reason = format!("line {number}: {error}");
                        StoreError::malformed(&path, "list of a run's events", &reason)
                    });
            };
            match event.as_str() {
                "cell-started" | "worker-lost" => {
                    by_cell.insert(cell.clone(), executions.len());
                    executions.push(Execution {
                        cell,
                        key,
                        started: time,
                        // The place as it is now: the store may have been moved since.
                        log: log.file_name().map(|name| self.folder.join("logs").join(name)),
                        objects: Vec::new(),
                        is_over: false,
                    });
                }
                "cell-finished" | "cell-failed" | "cell-retried" => {
                    if let Some(execution) = by_cell.get(&cell).and_then(|index| executions.get_mut(*index)) {
                        execution.objects = outputs.iter().map(|artifact| artifact.object).collect();
                        execution.is_over = true;
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(executions)
    }

    /// Cells that it did not execute although it was to: those that needed a cell which failed, with its name, and those that
    /// were stopped or not begun.
    pub fn unreached(&self) -> Result<BTreeMap<String, Option<String>>, StoreError> {
        #[derive(Deserialize)]
        struct Line {
            event: String,
            #[serde(default)]
            cell: String,
            by: Option<String>,
        }
        let mut unreached = BTreeMap::new();
        each_line(&self.folder.join("events.jsonl"), |line| {
            // Another event has other fields; one that cannot be understood tells nothing of these.
            if let Ok(Line { event, cell, by }) = serde_json::from_slice(line)
                && ["cell-blocked", "cell-cancelled"].contains(&event.as_str())
            {
                unreached.insert(cell, by);
            }
            Ok(())
        })?;
        Ok(unreached)
    }

    /// When cells failed, by name; of several attempts, the last.
    pub fn failed_at(&self) -> Result<BTreeMap<String, Timestamp>, StoreError> {
        #[derive(Deserialize)]
        struct Line {
            time: Timestamp,
            event: String,
            #[serde(default)]
            cell: String,
        }
        let mut times = BTreeMap::new();
        each_line(&self.folder.join("events.jsonl"), |line| {
            if let Ok(Line { time, event, cell }) = serde_json::from_slice(line)
                && event == "cell-failed"
            {
                times.insert(cell, time);
            }
            Ok(())
        })?;
        Ok(times)
    }

    /// What became of its cells so far. A line that is not complete, because the run was killed or is writing it, ends
    /// the list.
    pub fn records(&self) -> Result<Vec<Record>, StoreError> {
        let path = self.folder.join("records.jsonl");
        let mut records = Vec::new();
        each_line(&path, |line| {
            let record = serde_json::from_slice(line)
                .map_err(|error| StoreError::malformed(&path, "list of a run's records", &error))?;
            records.push(record);
            Ok(())
        })?;
        Ok(records)
    }
}

/// Gives every complete line of a file to `take`; a file that is not there has none.
pub(super) fn each_line(
    path: &Utf8Path,
    mut take: impl FnMut(&[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let failed = || StoreError::io("cannot read the records of a run");
    let file = match open_regular(path) {
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

/// Reads a file that says its format; `None` where there is none.
pub(super) fn read<T: DeserializeOwned>(
    path: &Utf8Path,
    what: &'static str,
) -> Result<Option<T>, StoreError> {
    /// The part of every format that says which it is.
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let failed = || StoreError::io("cannot read the record of a run");
    let bytes = match read_regular(path, LONGEST).map_err(failed())? {
        Content::Absent => return Ok(None),
        Content::Unfit(why) => return Err(StoreError::malformed(path, what, &format!("it {why}"))),
        Content::Bytes(bytes) => bytes,
    };
    let malformed = |error| StoreError::malformed(path, what, &error);
    let version: Version = serde_json::from_slice(&bytes).map_err(malformed)?;
    if version.format > FORMAT {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found: version.format,
            known: FORMAT,
        });
    }
    serde_json::from_slice(&bytes).map(Some).map_err(malformed)
}

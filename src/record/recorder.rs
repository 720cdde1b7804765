//! Writes a run down while it happens.
//!
//! * `lines`: files of lines, of which none is spoilt by another that could not be written.
//! * `log`: what a cell says.
//! * `noop`: what is written of a run that executed nothing.

mod lines;
mod log;
mod noop;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use provenir_api::protocol::Level;
use serde::Serialize;

use self::lines::Lines;
pub(super) use self::lines::line;
pub(crate) use self::log::CellLog;
use super::model::{
    Executed, FORMAT, Host, OutcomeFile, Program, PublishedCopy, Record, Recorded, RunFile, Wire,
};
use super::{Git, RunId};
use crate::clock;
use crate::exec::{CellRef, Event, Subscriber, Summary};
use crate::plan::{CellIndex, Plan};
use crate::store::{ActionKey, Layout, Outcome, Owner, Store, StoreError, Workspace, replace};

/// A running cell's progress is recorded this often at most.
const PROGRESS: Duration = Duration::from_secs(10);

/// What a run is recorded with.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its name.
    pub id: RunId,
    /// The command line.
    pub command: Vec<String>,
    /// What runs it.
    pub program: Program,
}

/// Records a run. Nothing is written before it is known whether anything has to be executed.
pub struct Recorder<'a> {
    store: &'a Store,
    plan: &'a Plan,
    request: Request,
    started: Timestamp,
    files: Option<Files>,
    running: BTreeMap<CellIndex, Running>,
    /// What the log of a cell that is executed once more says first.
    again: BTreeMap<CellIndex, String>,
    platforms: BTreeMap<u32, BTreeMap<String, String>>,
    /// Cells found in the store and not written down yet.
    reused: BTreeMap<CellIndex, ActionKey>,
    /// The action of every cell that has a result.
    keys: BTreeMap<CellIndex, ActionKey>,
    /// How many cells the survey found; they are written down together.
    cached: usize,
    /// Whether that is still to come.
    awaits_reused: bool,
    restored: Vec<Utf8PathBuf>,
    /// Why a run that executed nothing could not be noted.
    unnoted: Option<StoreError>,
}

/// The files of a run that executes something.
struct Files {
    folder: Utf8PathBuf,
    records: Lines,
    events: Lines,
    /// What the records hold so far.
    recorded: Recorded,
    /// Writes `run.json`, beside the run because git may take its time.
    head: Option<JoinHandle<io::Result<()>>>,
}

struct Running {
    started: Timestamp,
    log: CellLog,
    progress: Option<Instant>,
}

impl Running {
    fn new(log: &Utf8Path) -> Self {
        Self {
            started: clock::now(),
            log: CellLog::new(log),
            progress: None,
        }
    }
}

#[derive(Serialize)]
struct Timed<'a> {
    time: Timestamp,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

impl<'a> Recorder<'a> {
    /// A recorder for one run of a plan.
    pub fn new(store: &'a Store, plan: &'a Plan, request: Request) -> Self {
        Self {
            store,
            plan,
            request,
            started: clock::now(),
            files: None,
            running: BTreeMap::new(),
            again: BTreeMap::new(),
            platforms: BTreeMap::new(),
            reused: BTreeMap::new(),
            keys: BTreeMap::new(),
            cached: 0,
            awaits_reused: true,
            restored: Vec::new(),
            unnoted: None,
        }
    }

    /// Where the logs of a run's cells go.
    pub fn logs(layout: &Layout, id: &RunId) -> Utf8PathBuf {
        layout.runs().join(id.as_str()).join("logs")
    }

    /// Why a run that executed nothing could not be noted: a warning, because all that was asked for is there.
    pub fn unnoted(&self) -> Option<&StoreError> {
        self.unnoted.as_ref()
    }

    /// A new file that waits for its name.
    fn unnamed(&self) -> io::Result<Utf8PathBuf> {
        self.store
            .workspace()
            .map(Workspace::file)
            .map_err(io::Error::other)
    }

    fn begin(&mut self) -> io::Result<()> {
        let folder = self.store.layout().runs().join(self.request.id.as_str());
        fs_err::create_dir_all(self.store.layout().runs())?;
        fs_err::create_dir(&folder)?;
        let file = RunFile {
            format: FORMAT,
            id: self.request.id.clone(),
            started: self.started,
            pipeline: self.plan.pipeline.clone(),
            manifest: self.plan.manifest.clone(),
            resolved: self.plan.resolved.clone(),
            command: self.request.command.clone(),
            program: self.request.program.clone(),
            host: Host::current(),
            surroundings: self.store.layout().surroundings(),
            owner: Owner::current().clone(),
            git: None,
        };
        let (unnamed, path, repository) =
            (self.unnamed()?, folder.join("run.json"), self.plan.folder.clone());
        let files = self.files_from_outside();
        let head = thread::spawn(move || {
            let file = RunFile {
                git: Git::of(&repository, &files),
                ..file
            };
            replace(&unnamed, &path, &pretty(&file)?)
        });
        self.files = Some(Files {
            records: Lines::create(&folder.join("records.jsonl"))?,
            events: Lines::create(&folder.join("events.jsonl"))?,
            folder,
            recorded: Recorded::default(),
            head: Some(head),
        });
        Ok(())
    }

    /// The manifest, what it extends, and the source files of the plan, each once, as people name them: relative to the plan's
    /// folder where they lie below it.
    fn files_from_outside(&self) -> Vec<Utf8PathBuf> {
        let manifests = std::iter::once(&self.plan.manifest).chain(&self.plan.bases);
        let manifests =
            manifests.map(|manifest| manifest.strip_prefix(&self.plan.folder).unwrap_or(manifest));
        let cells = self.plan.cells.iter();
        let sources: BTreeSet<&Utf8PathBuf> = cells
            .flat_map(|cell| &cell.parameters.sources)
            .map(|source| &source.path)
            .collect();
        let sources = sources.into_iter().cloned();
        manifests.map(ToOwned::to_owned).chain(sources).collect()
    }

    fn record(&mut self, record: &Record) -> io::Result<()> {
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        files.records.add(record)?;
        match record {
            Record::Executed(_) => files.recorded.executed += 1,
            Record::Reused { cells, .. } => files.recorded.reused += cells.len(),
            Record::Failed { .. } => {}
        }
        Ok(())
    }

    fn log(&mut self, cell: CellRef<'_>, level: Level, message: &str) -> io::Result<()> {
        match self.running.get_mut(&cell.index) {
            Some(running) => running.log.say(level, message),
            None => Ok(()),
        }
    }

    /// The worker that was starting for a cell ended.
    fn lost(&mut self, cell: CellRef<'_>, reason: &str, tail: &[String], log: &Utf8Path) -> io::Result<()> {
        self.running.insert(cell.index, Running::new(log));
        let told = format!("the worker that was starting for it {reason}");
        self.log(cell, Level::Warning, &told)?;
        self.log(cell, Level::Info, &tail.join("\n"))
    }

    /// Takes a cell off the list of running ones; says when it began and where its log is, if it has one.
    fn over(&mut self, cell: CellIndex) -> io::Result<(Timestamp, Option<Utf8PathBuf>)> {
        let Some(running) = self.running.remove(&cell) else {
            return Ok((self.started, None));
        };
        let folder = self.files.as_ref().map(|files| files.folder.as_path());
        let log =
            running.log.finish()?.map(
                |log| match folder.and_then(|folder| log.strip_prefix(folder).ok()) {
                    Some(relative) => relative.to_owned(),
                    None => log,
                },
            );
        Ok((running.started, log))
    }

    /// The source files of a cell as the manifest names them, by the parameter.
    fn sources(&self, cell: CellIndex) -> BTreeMap<String, Utf8PathBuf> {
        let sources = self.plan.cells[cell].parameters.sources.iter();
        sources
            .map(|source| (source.pointer.clone(), source.path.clone()))
            .collect()
    }

    /// Where what a cell takes comes from.
    fn wires(&self, cell: CellIndex) -> Vec<Wire> {
        let inputs = self.plan.cells[cell].inputs.iter();
        inputs
            .map(|input| Wire(input.producer, input.output.to_owned()))
            .collect()
    }

    /// Writes down the cells found in the store since this was last done.
    fn record_reused(&mut self) -> io::Result<()> {
        let reused = std::mem::take(&mut self.reused);
        let mut sources: Vec<_> = reused.keys().map(|cell| self.sources(*cell)).collect();
        if sources.iter().all(BTreeMap::is_empty) {
            sources.clear();
        }
        self.record(&Record::Reused {
            sources,
            positions: reused.keys().copied().collect(),
            wires: reused.keys().map(|cell| self.wires(*cell)).collect(),
            cells: reused
                .into_iter()
                .map(|(cell, key)| (self.plan.name(cell), key))
                .collect(),
        })
    }

    /// The copies of the plan that are among these absolute paths.
    fn copies(&self, in_place: &[Utf8PathBuf]) -> Vec<PublishedCopy> {
        let in_place: BTreeSet<&Utf8PathBuf> = in_place.iter().collect();
        let cells = self.plan.cells.iter().enumerate();
        let copies = cells.flat_map(|(index, cell)| cell.publish.iter().map(move |publish| (index, publish)));
        copies
            .filter(|(_, publish)| in_place.contains(&self.plan.folder.join(&publish.path)))
            .map(|(index, publish)| PublishedCopy {
                cell: self.plan.name(index),
                port: publish.port.to_owned(),
                path: publish.path.clone(),
            })
            .collect()
    }

    fn finish(&mut self, summary: &Summary, published: &[Utf8PathBuf]) -> io::Result<()> {
        if self.awaits_reused || !self.reused.is_empty() {
            self.record_reused()?;
        }
        let Some(mut files) = self.files.take() else {
            return Ok(());
        };
        files.records.sync()?;
        files.events.sync()?;
        if let Some(head) = files.head.take() {
            head.join()
                .map_err(|_| io::Error::other("the thread that describes the run panicked"))??;
        }
        let outcome = OutcomeFile {
            format: FORMAT,
            ended: clock::now(),
            summary: summary.clone(),
            recorded: Some(files.recorded),
            published: Some(self.copies(published)),
            state: self.state()?,
        };
        replace(
            &self.unnamed()?,
            &files.folder.join("outcome.json"),
            &pretty(&outcome)?,
        )
    }

    /// Writes down that nothing more happens.
    fn end(&mut self, summary: &Summary, published: &[Utf8PathBuf]) -> io::Result<()> {
        if self.files.is_some() {
            return self.finish(summary, published);
        }
        if summary.is_noop()
            && let Err(error) = self.note(summary, published)
        {
            self.files = None;
            self.unnoted = Some(StoreError::io("cannot note the run")(error));
        }
        Ok(())
    }

    /// Writes down an attempt that failed.
    fn failed(&mut self, event: &Event<'_>) -> io::Result<()> {
        let (Event::CellFailed {
            cell,
            key,
            failure,
            seconds,
            ..
        }
        | Event::CellRetried {
            cell,
            key,
            failure,
            seconds,
            ..
        }) = event
        else {
            return Ok(());
        };
        let (_, log) = self.over(cell.index)?;
        let action = match event {
            Event::CellFailed { action, .. } => *action,
            _ => None,
        };
        let is_told = action.is_some();
        self.record(&Record::Failed {
            action: action.cloned().map(Box::new),
            sources: if is_told {
                self.sources(cell.index)
            } else {
                BTreeMap::new()
            },
            wires: is_told.then(|| self.wires(cell.index)),
            cell: cell.to_string(),
            key: *key,
            seconds: *seconds,
            failure: (*failure).clone(),
            log,
        })
    }

    fn write(&mut self, event: &Event<'_>) -> io::Result<()> {
        let due = match event {
            // What a cell only says stands in its log, and may be much.
            Event::CellReused { .. }
            | Event::CellLog {
                level: Level::Info, ..
            } => false,
            Event::CellProgress { cell, .. } => self.running.get_mut(&cell.index).is_some_and(|running| {
                let due = running.progress.is_none_or(|last| last.elapsed() > PROGRESS);
                if due {
                    running.progress = Some(clock::instant());
                }
                due
            }),
            _ => true,
        };
        match &mut self.files {
            Some(files) if due => files.events.add(&Timed {
                time: clock::now(),
                event,
            }),
            _ => Ok(()),
        }
    }

    fn take(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::RunStarted { cells, cached, .. } if cached < cells => {
                self.cached = *cached;
                self.begin()?;
            }
            // A run that had found everything executes something after all.
            Event::CellLost { .. } if self.files.is_none() => self.begin()?,
            _ => {}
        }
        self.write(event)?;
        match event {
            Event::WorkerStarted { worker, platform, .. } => {
                self.platforms.insert(*worker, (*platform).clone());
            }
            Event::CellReused { cell, key, .. } => {
                self.reused.insert(cell.index, *key);
                self.keys.insert(cell.index, *key);
                if self.files.is_some() && self.awaits_reused && self.reused.len() == self.cached {
                    self.awaits_reused = false;
                    self.record_reused()?;
                }
            }
            // It was reused, and runs after all.
            Event::CellRepairing { cell, .. } | Event::CellLost { cell, .. } => {
                self.reused.remove(&cell.index);
                self.keys.remove(&cell.index);
            }
            Event::CellStarted { cell, log, .. } => {
                self.running.insert(cell.index, Running::new(log));
                if let Some(told) = self.again.remove(&cell.index) {
                    self.log(*cell, Level::Info, &told)?;
                }
            }
            Event::WorkerLost {
                cell,
                reason,
                tail,
                log: Some(log),
                ..
            } => self.lost(*cell, reason, tail, log)?,
            Event::CellLog { cell, level, message } => self.log(*cell, *level, message)?,
            Event::CellFinished {
                cell,
                key,
                worker,
                seconds,
                outputs,
                reason,
                outcome,
                action,
            } => {
                let (started, log) = self.over(cell.index)?;
                self.keys.insert(cell.index, *key);
                self.record(&Record::Executed(Box::new(Executed {
                    cell: cell.to_string(),
                    key: *key,
                    started,
                    seconds: *seconds,
                    platform: self.platforms.get(worker).cloned().unwrap_or_default(),
                    outputs: match outcome {
                        Outcome::Measured { gave } | Outcome::Diverged { gave, .. } => gave.clone(),
                        _ => outputs.to_vec(),
                    },
                    outcome: (*outcome).clone(),
                    reason: reason.cloned(),
                    sources: self.sources(cell.index),
                    action: Some((*action).clone()),
                    position: Some(cell.index),
                    wires: Some(self.wires(cell.index)),
                    log,
                })))?;
            }
            Event::CellFailed { .. } => self.failed(event)?,
            Event::CellRetried {
                cell,
                failure,
                attempt,
                attempts,
                ..
            } => {
                let reason = failure.message.lines().next().unwrap_or_default();
                let told = format!(
                    "── attempt {} of {attempts}; attempt {attempt} failed: {reason} ──",
                    attempt + 1
                );
                self.again.insert(cell.index, told);
                self.failed(event)?;
            }
            Event::CellCancelled { cell, .. } => {
                self.over(cell.index)?;
            }
            Event::Published { path, .. } => self.restored.push((*path).to_owned()),
            Event::RunFinished { summary, published } => self.end(summary, published)?,
            _ => {}
        }
        Ok(())
    }
}

impl Subscriber for Recorder<'_> {
    fn on(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        self.take(event).map_err(StoreError::io("cannot record the run"))
    }
}

fn pretty(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

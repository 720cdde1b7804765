//! What happens in a run, as it happens. The engine emits events and never prints; display and records subscribe.

use std::collections::BTreeMap;
use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::protocol::{Blame, Level, Progress};
use serde::{Deserialize, Serialize, Serializer};

use super::survey::Due;
use crate::plan::{CellIndex, Plan};
use crate::store::{Action, ActionKey, Artifact, Copied, Outcome, Owner, StoreError};

/// A cell as events name it; the name is put together only where somebody asks for it.
#[derive(Clone, Copy)]
pub struct CellRef<'a> {
    /// The plan that it belongs to.
    pub plan: &'a Plan,
    /// Its position there.
    pub index: CellIndex,
}

impl CellRef<'_> {
    /// The name of its stage.
    pub fn stage(&self) -> &str {
        &self.plan.stage_of(self.index).name
    }

    /// File and line where its stage is declared.
    pub fn place(&self) -> Option<&str> {
        self.plan.stage_of(self.index).place.as_deref()
    }
}

impl fmt::Display for CellRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.plan.name(self.index))
    }
}

impl fmt::Debug for CellRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for CellRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Something that happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event<'a> {
    /// All cells whose keys can be known were looked up.
    RunStarted {
        /// The pipeline's name.
        pipeline: &'a str,
        /// Number of cells.
        cells: usize,
        /// How many of them the store has.
        cached: usize,
    },
    /// As `RunStarted`, where results that a store has are computed again: told in its place.
    AuditStarted {
        /// Number of cells.
        cells: usize,
    },
    /// A worker process is ready.
    WorkerStarted {
        /// Number of the worker in this run.
        worker: u32,
        /// Its process id.
        pid: u32,
        /// Its numeric platform.
        platform: &'a BTreeMap<String, String>,
    },
    /// A worker ended before it was ready to execute the cell that waited for it.
    WorkerLost {
        /// Number of the worker in this run.
        worker: u32,
        /// Its process id.
        pid: u32,
        /// The cell.
        cell: CellRef<'a>,
        /// The cell's action.
        key: ActionKey,
        /// How it ended, in words that go on after "the worker".
        reason: &'a str,
        /// The last lines that it wrote.
        tail: &'a [String],
        /// The cell's log, where this is noted, unless no logs are kept.
        #[serde(skip_serializing_if = "Option::is_none")]
        log: Option<&'a Utf8Path>,
        /// Whether another worker is started for the cell.
        again: bool,
    },
    /// A cell's result was in the store.
    CellReused {
        /// The cell.
        cell: CellRef<'a>,
        /// Its action.
        key: ActionKey,
        /// Whether it was waited for until another process had executed it.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        awaited: bool,
    },
    /// A cell that another process executes is waited for.
    CellAwaited {
        /// The cell.
        cell: CellRef<'a>,
        /// Its action.
        key: ActionKey,
        /// The other process.
        owner: &'a Owner,
    },
    /// A worker begins to execute a cell.
    CellStarted {
        /// The cell.
        cell: CellRef<'a>,
        /// Its action.
        key: ActionKey,
        /// Number of the worker.
        worker: u32,
        /// How many cores it may keep busy; they are shared, where cells are executed together.
        cores: u32,
        /// How many cells the worker executes together, this one included.
        together: usize,
        /// Where its log lines go, if there are any.
        log: &'a Utf8Path,
    },
    /// A running cell says how far it is.
    CellProgress {
        /// The cell.
        cell: CellRef<'a>,
        /// How far.
        #[serde(flatten)]
        progress: &'a Progress,
    },
    /// A running cell says something.
    CellLog {
        /// The cell.
        cell: CellRef<'a>,
        /// How much it matters.
        level: Level,
        /// One line or several.
        message: &'a str,
    },
    /// A cell's result was committed.
    CellFinished {
        /// The cell.
        cell: CellRef<'a>,
        /// Its action.
        key: ActionKey,
        /// Number of the worker.
        worker: u32,
        /// How long it ran.
        seconds: f64,
        /// What counts from now on.
        outputs: &'a [Artifact],
        /// Why it had to run.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a Due>,
        /// How the result relates to what the store had.
        outcome: &'a Outcome,
        /// The fields of its key: for records, which keep them.
        #[serde(skip)]
        action: &'a Action,
    },
    /// A cell failed.
    CellFailed {
        /// The cell.
        cell: CellRef<'a>,
        /// Its action.
        key: ActionKey,
        /// The fields of its key, where they can still be told: for records, which keep them.
        #[serde(skip)]
        action: Option<&'a Action>,
        /// Why.
        failure: &'a Failure,
        /// How long it ran.
        seconds: f64,
        /// Its log, where it said anything.
        #[serde(skip_serializing_if = "Option::is_none")]
        log: Option<&'a Utf8Path>,
    },
    /// A cell failed and is executed once more.
    CellRetried {
        /// The cell.
        cell: CellRef<'a>,
        /// Its action.
        key: ActionKey,
        /// Why it failed.
        failure: &'a Failure,
        /// Which attempt failed, counted from 1.
        attempt: u32,
        /// How many there may be.
        attempts: u32,
        /// How long it ran.
        seconds: f64,
        /// Its log, where it said anything.
        #[serde(skip_serializing_if = "Option::is_none")]
        log: Option<&'a Utf8Path>,
    },
    /// A cell cannot run, because one that it needs failed.
    CellBlocked {
        /// The cell.
        cell: CellRef<'a>,
        /// The cell that failed.
        by: CellRef<'a>,
    },
    /// A cell was stopped, or is not begun because the run stops.
    CellCancelled {
        /// The cell.
        cell: CellRef<'a>,
        /// Whether it ran.
        begun: bool,
    },
    /// Nothing more is begun: something that concerns every cell failed.
    RunHalted {
        /// What, and why.
        failure: &'a Failure,
    },
    /// An artifact is not what was stored: it was taken out of the store, and what made it runs again.
    CellDamaged {
        /// The cell that made it.
        cell: CellRef<'a>,
        /// The damaged object.
        object: provenir_api::Digest,
    },
    /// The store has a result of a cell that cannot be understood: the cell runs again, and its result takes the place of
    /// that one.
    ResultDamaged {
        /// The cell.
        cell: CellRef<'a>,
        /// Its action.
        key: ActionKey,
        /// The file of the result, absolute.
        path: &'a Utf8Path,
    },
    /// An artifact that a cell was to read turned out to be damaged; what made it runs again.
    CellRepairing {
        /// The cell that runs again.
        cell: CellRef<'a>,
        /// The cell that was to read it, and waits.
        reader: CellRef<'a>,
        /// The damaged object.
        object: provenir_api::Digest,
    },
    /// What a cell gave was removed beside this run before it was published: the cell runs again.
    CellLost {
        /// The cell.
        cell: CellRef<'a>,
        /// The object that is gone.
        object: provenir_api::Digest,
    },
    /// A published copy was made, updated or restored.
    Published {
        /// The cell that it shows.
        cell: CellRef<'a>,
        /// Its output port.
        port: &'a str,
        /// The copy, absolute.
        path: &'a Utf8Path,
        /// What was done.
        copied: Copied,
        /// Where a file that had the name before is kept.
        #[serde(skip_serializing_if = "Option::is_none")]
        kept: Option<&'a Utf8Path>,
        /// Another manifest, absolute, whose copy was in this place until now.
        #[serde(skip_serializing_if = "Option::is_none")]
        taken_from: Option<&'a Utf8Path>,
    },
    /// A copy could not be published.
    NotPublished {
        /// The cell that it should show.
        cell: CellRef<'a>,
        /// The copy, absolute.
        path: &'a Utf8Path,
        /// Why not.
        failure: &'a Failure,
    },
    /// The person asked to stop.
    Interrupted,
    /// Nothing more happens.
    RunFinished {
        /// What happened in all.
        summary: &'a Summary,
        /// Every published copy that is in its place, absolute, in the order of the plan: those that were there already, too.
        #[serde(skip)]
        published: &'a [Utf8PathBuf],
    },
}

/// Why a cell failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Whose fault.
    pub blame: Blame,
    /// What happened.
    pub message: String,
    /// What to do next, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The last lines of its log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<String>,
    /// Which attempt was the last, where there may have been several. Absent in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<NthAttempt>,
}

/// One of the attempts that a cell may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NthAttempt {
    /// Which, counted from 1.
    pub number: u32,
    /// How many there may be.
    pub of: u32,
}

impl fmt::Display for NthAttempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "attempt {} of {}", self.number, self.of)
    }
}

impl Failure {
    /// A failure without log.
    pub fn new(blame: Blame, message: impl Into<String>, help: Option<String>) -> Self {
        Self {
            blame,
            message: message.into(),
            help,
            tail: Vec::new(),
            attempt: None,
        }
    }
}

impl From<&StoreError> for Failure {
    fn from(error: &StoreError) -> Self {
        let blame = match error {
            StoreError::Outputs(_) => Blame::Us,
            _ => Blame::Environment,
        };
        Self::new(blame, error.to_string(), error.help().map(str::to_owned))
    }
}

/// What happened in a run, in all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Cells that were executed.
    pub ran: usize,
    /// Cells whose results were in the store.
    pub reused: usize,
    /// Cells that failed.
    pub failed: usize,
    /// Cells that could not run because others failed.
    pub blocked: usize,
    /// Cells that were stopped, or not begun because the run stopped.
    pub cancelled: usize,
    /// Results that differ from those that the store had.
    pub diverged: usize,
    /// Published copies that were made, updated or restored.
    pub published: usize,
    /// Copies that could not be published.
    pub unpublished: usize,
    /// How long it took.
    pub seconds: f64,
    /// Whether the person asked to stop.
    pub interrupted: bool,
    /// The worst of the failures.
    pub blame: Option<Blame>,
    /// Why the run stopped before everything that could run had run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halted: Option<Failure>,
}

impl Summary {
    /// Whether something that should be there after the run is not.
    pub fn is_incomplete(&self) -> bool {
        [self.failed, self.blocked, self.cancelled] != [0; 3] || self.halted.is_some() || self.blame.is_some()
    }

    /// Whether nothing was executed, and nothing is missing.
    pub fn is_noop(&self) -> bool {
        [self.ran, self.failed, self.blocked, self.cancelled] == [0; 4] && self.halted.is_none()
    }
}

/// Takes part in a run by listening.
pub trait Subscriber {
    /// Takes an event. A subscriber that cannot do its part stops the run with the reason.
    fn on(&mut self, event: &Event<'_>) -> Result<(), StoreError>;
}

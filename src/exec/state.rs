//! What the scheduler keeps of cells, and how it is spoken to.

use std::time::Instant;

use camino::Utf8PathBuf;
use provenir_api::protocol::Execute;

use super::event::{Event, Subscriber};
use super::worker::{FromThread, WorkerId};
use crate::plan::CellIndex;
use crate::store::{Action, ActionKey, Claim, Commit, Committed, StoreError};

/// What the scheduler hears.
#[derive(Debug)]
pub(super) enum Signal {
    Worker(WorkerId, FromThread),
    Committed(CellIndex, Result<Commit, StoreError>),
    Interrupt,
}

/// Where a cell is on its way.
#[derive(Debug)]
pub(super) enum State {
    /// So many producers have no known result yet.
    Waiting(usize),
    /// Everything is known; resources or the claim are not free, or another process has the claim.
    Ready(ActionKey),
    /// Another cell of this run is the same action.
    Follows,
    /// A worker has it, or its outputs are being committed.
    Running,
    Done(Committed),
    /// Failed, blocked or cancelled: it was counted and is not looked at again.
    Over,
}

/// What became of a cell: each is counted once, as what it was last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Ran,
    Reused,
    Failed,
    Blocked,
    Cancelled,
}

/// A cell that a worker has.
pub(super) struct Job {
    pub(super) key: ActionKey,
    pub(super) action: Action,
    pub(super) scratch: Utf8PathBuf,
    pub(super) worker: WorkerId,
    pub(super) started: Instant,
    /// What the worker is told once it has greeted.
    pub(super) message: Option<Box<Execute>>,
    /// How many cells are executed together with it, itself included.
    pub(super) together: usize,
    /// Where its log goes.
    pub(super) log: Utf8PathBuf,
    /// Whether anything went there.
    pub(super) has_log: bool,
    /// Whether its worker was killed because it ran too long.
    pub(super) is_overdue: bool,
    pub(super) claim: Claim,
}

/// A cell whose outputs are being committed.
pub(super) struct Committing {
    pub(super) key: ActionKey,
    pub(super) worker: WorkerId,
    pub(super) end: End,
    /// Kept until the result is there for others to find.
    pub(super) claim: Claim,
}

/// What is known of an execution that is over.
#[derive(Clone, Debug)]
pub(super) struct End {
    /// How long it took; of cells that were executed together, each one's share.
    pub(super) seconds: f64,
    /// Its log, where it said anything.
    pub(super) log: Option<Utf8PathBuf>,
}

impl Job {
    pub(super) fn end(&self) -> End {
        End {
            seconds: self.started.elapsed().as_secs_f64() / self.together as f64,
            log: self.has_log.then(|| self.log.clone()),
        }
    }
}

/// The subscriber, and why it could not do its part.
pub(super) struct Voice<'s> {
    pub(super) subscriber: &'s mut dyn Subscriber,
    pub(super) failed: Option<StoreError>,
}

impl Voice<'_> {
    pub(super) fn say(&mut self, event: &Event<'_>) {
        if let Err(error) = self.subscriber.on(event) {
            self.failed.get_or_insert(error);
        }
    }
}

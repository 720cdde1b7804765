//! The loop that gets a plan done.
//!
//! One thread decides; workers compute in processes of their own, a thread commits. A cell waits until the results of
//! its producers are known, which makes its key known; then it is found in the store, or is ready until resources and
//! its claim are free, runs, is committed, and makes its consumers' keys known in turn. Because keys are made of
//! content, a producer that ran again and gave the same leaves its consumers as they are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::port::OutputPort;
use provenir_api::protocol::{Blame, Done, Execute, Failed, FromWorker, Level, ToWorker};
use provenir_api::{Digest, Resources};

use super::budget::Budget;
use super::committer::{Finished, commit_all};
use super::event::{CellRef, Event, Failure, Subscriber, Summary};
use super::interrupt::Interrupts;
use super::resolve::{Resolver, Results};
use super::survey::{Standing, Survey};
use super::worker::{FromThread, Worker, WorkerError, WorkerId, WorkerProgram};
use crate::clock;
use crate::plan::{CellIndex, Plan};
use crate::store::{
    Action, ActionKey, Claim, Claimed, Claims, Commit, Committed, Lookup, Outcome, RENEWAL, Store, StoreError,
    Workspace, sweep,
};

/// How often a result that another process computes is looked for.
const POLL: Duration = Duration::from_millis(200);
/// How long a cell may take to notice that it was cancelled.
const CANCEL: Duration = Duration::from_secs(10);
/// While more cells than this wait to be committed, no further ones are started: the disk is slower than the workers.
const BACKLOG: usize = 1024;

/// How a plan is executed.
#[derive(Clone, Debug)]
pub struct Options {
    /// What running cells may occupy together.
    pub resources: Resources,
    /// Cells that are executed although the store has their results.
    pub force: BTreeSet<CellIndex>,
    /// Where workers come from.
    pub worker: WorkerProgram,
    /// The run's folder, for the places of logs.
    pub folder: Utf8PathBuf,
}

/// What the scheduler hears.
#[derive(Debug)]
pub(super) enum Signal {
    Worker(WorkerId, FromThread),
    Committed(CellIndex, Result<Commit, StoreError>),
    Interrupt,
}

/// Where a cell is on its way.
#[derive(Debug)]
enum State {
    /// So many inputs have no known result yet.
    Waiting(usize),
    /// Everything is known; resources or the claim are not free.
    Ready(ActionKey),
    /// Another process executes the action.
    Elsewhere(ActionKey),
    /// Another cell of this run is the same action.
    Follows,
    Running,
    Committing,
    Done(Committed),
    /// Failed, blocked or cancelled: it was counted and will not be looked at again.
    Over,
}

struct Job {
    key: ActionKey,
    action: Action,
    needs: Resources,
    scratch: Utf8PathBuf,
    worker: WorkerId,
    started: Instant,
    /// What to say once the worker has greeted.
    message: Option<ToWorker>,
    claim: Claim,
    seconds: f64,
}

pub(super) struct Scheduler<'a, 's> {
    plan: &'a Plan,
    store: &'a Store,
    options: &'a Options,
    subscribers: &'s mut [&'s mut dyn Subscriber],
    resolver: Resolver<'a>,
    states: Vec<State>,
    consumers: Vec<Vec<CellIndex>>,
    ready: BTreeSet<CellIndex>,
    /// The cell that is, or will be, executed for an action of this run; those that wait for it.
    leaders: BTreeMap<ActionKey, CellIndex>,
    followers: BTreeMap<CellIndex, Vec<CellIndex>>,
    elsewhere: BTreeSet<CellIndex>,
    jobs: BTreeMap<CellIndex, Job>,
    /// Cells that may not be taken from the store.
    forced: BTreeSet<CellIndex>,
    /// Cells that were executed again because an object of theirs was damaged; once is enough.
    repaired: BTreeSet<CellIndex>,
    budget: Budget,
    claims: Claims,
    workspace: Option<Workspace>,
    workers: BTreeMap<WorkerId, Worker>,
    busy: BTreeMap<WorkerId, CellIndex>,
    next_worker: WorkerId,
    ports: BTreeMap<&'static str, Arc<[OutputPort]>>,
    sender: Sender<Signal>,
    committer: Sender<Finished>,
    committing: usize,
    summary: Summary,
    began: Instant,
    renewed: Instant,
    polled: Instant,
    cancel_deadline: Option<Instant>,
}

impl Results for Vec<State> {
    fn result(&self, cell: CellIndex) -> Option<&Committed> {
        match self.get(cell) {
            Some(State::Done(result)) => Some(result),
            _ => None,
        }
    }
}

/// What a run left behind: what happened, and the result of every cell that has one.
#[derive(Debug)]
pub struct RunOutcome {
    /// What happened.
    pub summary: Summary,
    /// By cell.
    pub results: Vec<Option<Committed>>,
}

/// Gets a plan done. Whatever goes wrong with a cell is told in events and counted; an error that concerns the whole
/// run stops it and is told in the summary.
pub fn run(
    survey: Survey<'_>,
    plan: &Plan,
    store: &Store,
    options: &Options,
    subscribers: &mut [&mut dyn Subscriber],
) -> RunOutcome {
    let (sender, signals) = mpsc::channel();
    let (committer, finished) = mpsc::channel();
    thread::scope(|scope| {
        let mut scheduler =
            Scheduler::new(survey, plan, store, options, subscribers, sender.clone(), committer);
        scheduler.begin();
        if scheduler.is_unfinished() {
            scope.spawn(move || commit_all(store, &finished, &sender));
            let interrupts = scheduler.prepare();
            scheduler.work(&signals);
            drop(interrupts);
        }
        scheduler.end()
    })
}

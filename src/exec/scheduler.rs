//! The loop that gets a plan done.
//!
//! One thread decides; workers compute in processes of their own, a thread commits. A cell waits until the results of
//! its producers are known, which makes its key known; then it is found in the store, or is ready until resources and
//! its claim are free, runs, is committed, and makes its consumers' keys known in turn. Because keys are made of
//! content, a producer that ran again and gave the same leaves its consumers as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Resources;
use provenir_api::protocol::Blame;

use super::budget::Budget;
use super::committer::{Finished, commit_all};
use super::event::{CellRef, Event, Failure, Subscriber, Summary};
use super::groups::{Assignment, GroupId, groups};
use super::interrupt::Interrupts;
use super::resolve::{Resolver, Results};
use super::state::{Committing, Fate, Job, Signal, State, Voice};
use super::survey::{Due, Standing, Survey};
use super::worker::{Worker, WorkerId, WorkerProgram};
use crate::clock;
use crate::plan::{CellIndex, Plan};
use crate::store::{ActionKey, Claims, Committed, Store, StoreError, sweep};

/// How a plan is executed.
#[derive(Clone, Debug)]
pub struct Options {
    /// What running cells may occupy together.
    pub resources: Resources,
    /// Cells that are executed although the store has their results.
    pub force: BTreeSet<CellIndex>,
    /// Where workers come from.
    pub worker: WorkerProgram,
    /// Where the logs of cells go.
    pub logs: Utf8PathBuf,
    /// The command line, which is noted beside what is published.
    pub command: Vec<String>,
    /// When the command began, so that the time told includes what it took to find out that nothing has to run.
    pub began: Instant,
}

/// What a run left behind: what happened, and the result of every cell that has one.
#[derive(Debug)]
pub struct RunOutcome {
    /// What happened.
    pub summary: Summary,
    /// By cell.
    pub results: Vec<Option<Committed>>,
    /// Why the store could not note what was published, which is there all the same.
    pub unnoted: Option<StoreError>,
    /// Why the end of the run could not be recorded, where nothing had gone wrong until then.
    pub unrecorded: Option<Failure>,
}

/// So many signals may wait to be heard: whoever has more to say waits, so that a program which floods its log is slowed down, and
/// fills no memory.
const WAITING: usize = 1024;

/// Gets a plan done. Whatever goes wrong with a cell is told in events and counted; what concerns the whole run stops
/// it and is told in the summary.
pub fn run(
    survey: Survey<'_>,
    plan: &Plan,
    store: &Store,
    options: &Options,
    subscriber: &mut dyn Subscriber,
) -> RunOutcome {
    let (sender, signals) = mpsc::sync_channel(WAITING);
    let (committer, finished) = mpsc::channel();
    thread::scope(|scope| {
        let mut scheduler = Scheduler::new(plan, store, options, subscriber, sender.clone(), committer);
        scheduler.begin(survey);
        let mut commits = Some((finished, sender));
        loop {
            if !scheduler.is_idle() {
                if let Some((finished, sender)) = commits.take() {
                    scope.spawn(move || commit_all(store, &finished, &sender));
                }
                let interrupts = scheduler.prepare();
                scheduler.work(&signals);
                drop(interrupts);
            }
            if !scheduler.publish() {
                return scheduler.end();
            }
        }
    })
}

pub(super) struct Scheduler<'a, 's> {
    pub(super) plan: &'a Plan,
    pub(super) store: &'a Store,
    pub(super) options: &'a Options,
    pub(super) voice: Voice<'s>,
    pub(super) resolver: Resolver<'a>,
    pub(super) states: Vec<State>,
    /// By cell; empty where nothing has to be executed.
    pub(super) consumers: Vec<Vec<CellIndex>>,
    /// Cells that wait for resources.
    pub(super) ready: BTreeSet<CellIndex>,
    /// Cells whose action another process executes.
    pub(super) elsewhere: BTreeSet<CellIndex>,
    /// Cells of which it was said that another process executes them.
    pub(super) awaited: BTreeSet<CellIndex>,
    /// For each action that is to be executed in this run, the cell that stands for it; those that wait for that cell.
    pub(super) leaders: BTreeMap<ActionKey, CellIndex>,
    pub(super) followers: BTreeMap<CellIndex, Vec<CellIndex>>,
    pub(super) jobs: BTreeMap<CellIndex, Job>,
    pub(super) committing: BTreeMap<CellIndex, Committing>,
    /// Cells that may not be taken from the store.
    pub(super) forced: BTreeSet<CellIndex>,
    /// Cells that ran again because an object of theirs was damaged or gone: once is enough.
    pub(super) repaired: BTreeSet<CellIndex>,
    /// How often cells were begun once more because an object that they had not found was back.
    pub(super) reread: BTreeMap<CellIndex, u32>,
    /// Copies that are in their places, by cell and number of the copy.
    pub(super) published: BTreeMap<(CellIndex, usize), Utf8PathBuf>,
    /// Cells whose copies are still to be published; all, where none were yet.
    pub(super) unpublished: Option<BTreeSet<CellIndex>>,
    /// Why cells have to be executed, as far as that is known.
    pub(super) causes: BTreeMap<CellIndex, Due>,
    /// Cells whose worker ended while it was starting: each gets another, once.
    pub(super) lost_starts: BTreeSet<CellIndex>,
    /// How many cells have failed so since a worker was last ready.
    pub(super) failed_starts: u32,
    /// How often cells that failed were put in line once more.
    pub(super) tries: BTreeMap<CellIndex, u32>,
    pub(super) budget: Budget,
    pub(super) claims: Claims<'a>,
    pub(super) workers: BTreeMap<WorkerId, Worker>,
    pub(super) busy: BTreeMap<WorkerId, Assignment>,
    /// By cell; empty where nothing has to be executed.
    pub(super) groups: Vec<Option<GroupId>>,
    /// Cells that are to be executed without company, because a worker that had them in company ended.
    pub(super) alone: BTreeSet<CellIndex>,
    /// Whether workers compute on an accelerator, once one has said so.
    pub(super) accelerated: Option<bool>,
    pub(super) next_worker: WorkerId,
    pub(super) sender: SyncSender<Signal>,
    pub(super) committer: Sender<Finished>,
    pub(super) summary: Summary,
    /// By cell, as far as it is known.
    pub(super) fates: Vec<Option<Fate>>,
    pub(super) unnoted: Option<StoreError>,
    pub(super) manifest: Arc<str>,
    pub(super) began: Instant,
    /// When claims were last renewed, and when others' results were last looked for.
    pub(super) renewed: Instant,
    pub(super) polled: Instant,
    /// When cells that were cancelled and still run are killed.
    pub(super) cancel_deadline: Option<Instant>,
}

impl Results for Vec<State> {
    fn result(&self, cell: CellIndex) -> Option<&Committed> {
        match self.get(cell) {
            Some(State::Done(result)) => Some(result),
            _ => None,
        }
    }
}

impl<'a, 's> Scheduler<'a, 's> {
    fn new(
        plan: &'a Plan,
        store: &'a Store,
        options: &'a Options,
        subscriber: &'s mut dyn Subscriber,
        sender: SyncSender<Signal>,
        committer: Sender<Finished>,
    ) -> Self {
        let now = clock::instant();
        Self {
            plan,
            store,
            options,
            voice: Voice {
                subscriber,
                failed: None,
            },
            resolver: Resolver::new(plan, store),
            states: Vec::new(),
            consumers: Vec::new(),
            ready: BTreeSet::new(),
            elsewhere: BTreeSet::new(),
            awaited: BTreeSet::new(),
            leaders: BTreeMap::new(),
            followers: BTreeMap::new(),
            jobs: BTreeMap::new(),
            committing: BTreeMap::new(),
            forced: options.force.clone(),
            repaired: BTreeSet::new(),
            reread: BTreeMap::new(),
            published: BTreeMap::new(),
            unpublished: None,
            causes: BTreeMap::new(),
            lost_starts: BTreeSet::new(),
            failed_starts: 0,
            tries: BTreeMap::new(),
            budget: Budget::new(options.resources),
            claims: Claims::new(store),
            workers: BTreeMap::new(),
            busy: BTreeMap::new(),
            groups: Vec::new(),
            alone: BTreeSet::new(),
            accelerated: None,
            next_worker: 0,
            sender,
            committer,
            summary: Summary::default(),
            fates: vec![None; plan.cells.len()],
            unnoted: None,
            manifest: plan.manifest.as_str().into(),
            began: options.began,
            renewed: now,
            polled: now,
            cancel_deadline: None,
        }
    }

    pub(super) fn cell(&self, index: CellIndex) -> CellRef<'a> {
        CellRef {
            plan: self.plan,
            index,
        }
    }

    /// Takes over what the survey found.
    fn begin(&mut self, survey: Survey<'_>) {
        self.voice.say(&Event::RunStarted {
            pipeline: &self.plan.pipeline,
            cells: self.plan.cells.len(),
            cached: survey.cached(),
        });
        let is_noop = survey.cached() == survey.standings.len();
        let mut due = Vec::new();
        self.states.reserve(survey.standings.len());
        for (index, standing) in survey.standings.into_iter().enumerate() {
            let state = match standing {
                Standing::Cached(result) => {
                    self.fates[index] = Some(Fate::Reused);
                    self.voice.say(&Event::CellReused {
                        cell: CellRef {
                            plan: self.plan,
                            index,
                        },
                        key: result.key(),
                        awaited: false,
                    });
                    State::Done(result)
                }
                Standing::Due { key, reason } => {
                    if let Due::Miss(reason) = &reason {
                        self.discard(index, key, reason);
                    }
                    self.causes.insert(index, reason);
                    due.push((index, key));
                    State::Ready(key)
                }
                Standing::Unknown { .. } => State::Waiting(0),
            };
            self.states.push(state);
        }
        if !is_noop {
            self.link();
        }
        for (index, key) in due {
            self.enqueue(index, key);
        }
    }

    /// Finds every cell's consumers, and how many producers each waiting cell waits for.
    pub(super) fn link(&mut self) {
        self.consumers = vec![Vec::new(); self.states.len()];
        self.groups = groups(self.plan);
        for (index, cell) in self.plan.cells.iter().enumerate() {
            let producers: BTreeSet<CellIndex> = cell.inputs.iter().map(|input| input.producer).collect();
            let open = producers
                .iter()
                .filter(|producer| !matches!(self.states[**producer], State::Done(_)));
            if let State::Waiting(_) = self.states[index] {
                self.states[index] = State::Waiting(open.count());
            }
            for producer in producers {
                self.consumers[producer].push(index);
            }
        }
    }

    /// Whether nothing is under way and nothing more can be begun.
    fn is_idle(&self) -> bool {
        let nothing_begins = self.is_stopping() || (self.ready.is_empty() && self.elsewhere.is_empty());
        nothing_begins && self.jobs.is_empty() && self.committing.is_empty()
    }

    /// Whether no further cell is begun.
    pub(super) fn is_stopping(&self) -> bool {
        self.summary.interrupted || self.summary.halted.is_some()
    }

    /// What a failure of the store is to a run.
    pub(super) fn failure(&self, error: &StoreError) -> Failure {
        let mut failure = Failure::from(error);
        failure.message = self.without_scratch(&failure.message);
        failure
    }

    /// A message without the names of scratch files: they differ from time to time, are long, and are gone when somebody
    /// reads of them.
    pub(super) fn without_scratch(&self, message: &str) -> String {
        scratch_left_out(message, &self.store.layout().tmp())
    }

    /// Stops the run: what runs is finished, nothing more is begun.
    pub(super) fn halt(&mut self, failure: Failure) {
        self.blame(failure.blame);
        if self.summary.halted.is_none() {
            self.voice.say(&Event::RunHalted { failure: &failure });
            self.summary.halted = Some(failure);
        }
    }

    /// Remembers the worst blame: a bug of ours before the environment before a stage.
    pub(super) fn blame(&mut self, blame: Blame) {
        let rank = |blame: Blame| match blame {
            Blame::Cancelled => 0,
            Blame::Stage => 1,
            Blame::Environment => 2,
            Blame::Us => 3,
        };
        if self.summary.blame.is_none_or(|worst| rank(worst) < rank(blame)) {
            self.summary.blame = Some(blame);
        }
    }

    /// Makes what a run needs that executes something.
    fn prepare(&mut self) -> Option<Interrupts> {
        if let Err(error) = sweep(self.store.layout()).and_then(|()| self.claims.sweep()) {
            self.halt(self.failure(&error));
        }
        match Interrupts::listen(self.sender.clone()) {
            Ok(interrupts) => Some(interrupts),
            Err(error) => {
                let message = format!("cannot listen for requests to stop: {error}");
                self.halt(Failure::new(Blame::Environment, message, None));
                None
            }
        }
    }

    fn work(&mut self, signals: &Receiver<Signal>) {
        loop {
            self.check_voice();
            self.dispatch();
            self.check_voice();
            if self.is_idle() {
                return;
            }
            match signals.recv_timeout(self.patience()) {
                Ok(signal) => {
                    self.hear(signal);
                    // Whatever else has arrived is heard before anything is begun; what arrives meanwhile has its turn.
                    for signal in signals.try_iter().take(WAITING) {
                        self.hear(signal);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.keep_time();
        }
    }

    /// Stops the run where a subscriber could not do its part.
    pub(super) fn check_voice(&mut self) {
        if let Some(error) = self.voice.failed.take() {
            self.halt(self.failure(&error));
        }
    }

    fn hear(&mut self, signal: Signal) {
        match signal {
            Signal::Worker(worker, message) => self.hear_worker(worker, message),
            Signal::Committed(cell, result) => self.committed(cell, result),
            Signal::Interrupt => self.interrupt(),
        }
    }
}

/// A message in which every path below a folder is that folder and an ellipsis.
fn scratch_left_out(message: &str, folder: &Utf8Path) -> String {
    let below = format!("{folder}/");
    let mut parts = message.split(below.as_str());
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|letter: char| letter.is_whitespace() || "`'\"".contains(letter))
            .unwrap_or(part.len());
        told.push_str(&below);
        told.push('…');
        told.push_str(&part[end..]);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_scratch_files_are_left_out() {
        let told = |message| scratch_left_out(message, Utf8Path::new("/a b/cache/tmp"));
        assert_eq!(
            told("failed to rename `/a b/cache/tmp/1-2/out.parquet` to `/a b/cache/objects-v1/ab`: full"),
            "failed to rename `/a b/cache/tmp/…` to `/a b/cache/objects-v1/ab`: full"
        );
        assert_eq!(told("no room in /a b/cache/tmp/x"), "no room in /a b/cache/tmp/…");
        assert_eq!(told("/a b/cache/tmpfile is full"), "/a b/cache/tmpfile is full");
    }
}

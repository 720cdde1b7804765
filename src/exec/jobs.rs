//! Workers and what they are given to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use provenir_api::protocol::{Blame, Done, Execute, FromWorker, Level, ToWorker};

use super::committer::Finished;
use super::event::{CellRef, Event, Failure};
use super::groups::{Assignment, Held};
use super::losses::useless;
use super::scheduler::Scheduler;
use super::state::{Committing, Job, State};
use super::worker::{FromThread, Worker, WorkerId};
use crate::clock;
use crate::plan::CellIndex;
use crate::store::{ActionKey, Claim, Claimed, Lookup, StoreError};

/// While more cells than this wait to be committed no further ones are begun: the disk is slower than the workers.
const BACKLOG: usize = 1024;

impl Scheduler<'_, '_> {
    /// Begins every ready cell for which there is room, and tells workers that have greeted what to do.
    pub(super) fn dispatch(&mut self) {
        loop {
            self.begin_ready();
            self.share_cores();
            let untold = self.busy.iter().filter(|(_, assignment)| !assignment.is_told);
            let untold: Vec<WorkerId> = untold.map(|(worker, _)| *worker).collect();
            let mut told = 0;
            for worker in untold {
                told += usize::from(self.tell(worker));
            }
            self.check_voice();
            if self.is_stopping() {
                self.recall();
                return;
            }
            // Cells that did not join those have no reason to wait any more.
            if told == 0 || self.ready.is_empty() {
                return;
            }
        }
    }

    /// Takes from workers the cells of which they have not been told: they do not begin any more.
    fn recall(&mut self) {
        let untold = self.busy.iter().filter(|(_, assignment)| !assignment.is_told);
        let untold: Vec<WorkerId> = untold.map(|(worker, _)| *worker).collect();
        for worker in untold {
            for (cell, job) in self.release_all(worker) {
                self.states[cell] = State::Ready(job.key);
            }
        }
    }

    fn begin_ready(&mut self) {
        let is_held = self.begin_those(true);
        if is_held && self.jobs.is_empty() && self.committing.is_empty() {
            // Nothing is under way that could make others ready.
            self.begin_those(false);
        }
    }

    /// Begins ready cells; says whether any was held back because others of its group are not ready.
    fn begin_those(&mut self, may_wait: bool) -> bool {
        let mut after = None;
        let mut incomplete = BTreeMap::new();
        let mut is_held = false;
        while !self.is_stopping() && self.committing.len() < BACKLOG && !self.budget.is_exhausted() {
            let next = match after {
                None => self.ready.first().copied(),
                Some(after) => self.ready.range(after + 1..).next().copied(),
            };
            let Some(cell) = next else { break };
            after = Some(cell);
            let State::Ready(key) = self.states[cell] else {
                self.ready.remove(&cell);
                continue;
            };
            match self.is_held(cell, &mut incomplete) {
                Held::ByOthers if may_wait => {
                    is_held = true;
                    continue;
                }
                Held::ByWorker => continue,
                Held::ByOthers | Held::No => {}
            }
            let parameters = &self.plan.cells[cell].parameters;
            let needs = if parameters.exclusive {
                // What is being committed occupies no resources, and yet the machine.
                if !self.committing.is_empty() {
                    continue;
                }
                self.budget.all()
            } else {
                self.budget.clamped(parameters.resources)
            };
            if !self.budget.take(needs) {
                continue;
            }
            self.ready.remove(&cell);
            match self.begin_cell(cell, key, None) {
                Ok(Some(worker)) => {
                    let assignment = Assignment {
                        cells: vec![cell],
                        needs,
                        spare_cores: parameters.spare_cores,
                        is_told: false,
                    };
                    self.busy.insert(worker, assignment);
                }
                Ok(None) => self.budget.give_back(needs),
                Err(failure) => {
                    self.budget.give_back(needs);
                    self.halt(failure);
                }
            }
        }
        is_held
    }

    /// Gives the cores that no ready cell waits for to cells that are about to start and can use them: one each, in turn.
    /// A cell never waits for them, and keeps them until it is over. Cells that run alone wait for all others, and for no
    /// core.
    fn share_cores(&mut self) {
        let cells = &self.plan.cells;
        if self.ready.iter().any(|cell| !cells[*cell].parameters.exclusive) {
            return;
        }
        let Self { busy, budget, .. } = self;
        loop {
            let mut takers = busy
                .values_mut()
                .filter(|assignment| !assignment.is_told && assignment.spare_cores > 0)
                .peekable();
            if takers.peek().is_none() {
                return;
            }
            for assignment in takers {
                if !budget.take_core() {
                    return;
                }
                assignment.needs.cores += 1;
                assignment.spare_cores -= 1;
            }
        }
    }

    /// Makes a cell, for which resources were taken, that worker's, or a free one's; gives the worker that has it now, if
    /// one has.
    pub(super) fn begin_cell(
        &mut self,
        cell: CellIndex,
        key: ActionKey,
        worker: Option<WorkerId>,
    ) -> Result<Option<WorkerId>, Failure> {
        let claim = match self.claims.request(&key).map_err(|error| self.failure(&error))? {
            Claimed::Ours(claim) => claim,
            Claimed::Theirs(owner) => {
                if self.awaited.insert(cell) {
                    self.voice.say(&Event::CellAwaited {
                        cell: self.cell(cell),
                        key,
                        owner: &owner,
                    });
                }
                self.elsewhere.insert(cell);
                return Ok(None);
            }
        };
        // Between the lookup and the claim another process may have finished it.
        if !self.forced.contains(&cell) {
            match self.store.read_result(&key) {
                Ok(Lookup::Hit(result)) => {
                    drop(claim);
                    self.reuse(cell, key);
                    self.settle(cell, result);
                    return Ok(None);
                }
                Ok(Lookup::Miss(_)) => {}
                Err(error) => return Err(self.failure(&error)),
            }
        }
        let worker = match worker {
            Some(worker) => worker,
            None => self.free_worker()?,
        };
        let job = self
            .job(cell, key, claim, worker)
            .map_err(|error| self.failure(&error))?;
        self.states[cell] = State::Running;
        self.jobs.insert(cell, job);
        Ok(Some(worker))
    }

    fn job(
        &mut self,
        cell: CellIndex,
        key: ActionKey,
        claim: Claim,
        worker: WorkerId,
    ) -> Result<Job, StoreError> {
        let scratch = self.store.workspace()?.folder()?;
        let action = self.resolver.action(cell, &self.states)?;
        let name = self.plan.name(cell);
        let log = self.options.logs.join(log_name(cell, &name));
        let execute = Execute {
            cell: name,
            kind: action.kind.clone(),
            parameters: self.resolver.parameters(cell),
            inputs: self.resolver.inputs(cell, &self.states)?,
            sources: action.sources.clone(),
            action_key: key.hex(),
            scratch: scratch.clone(),
            partial: self.store.layout().partial(&key),
            cores: 1,
        };
        Ok(Job {
            key,
            action,
            scratch,
            worker,
            started: clock::instant(),
            message: Some(Box::new(execute)),
            together: 1,
            log,
            has_log: false,
            is_overdue: false,
            claim,
        })
    }

    /// A worker that has nothing to do; a new one where all are busy.
    fn free_worker(&mut self) -> Result<WorkerId, Failure> {
        if let Some(worker) = self.workers.keys().find(|worker| !self.busy.contains_key(worker)) {
            return Ok(*worker);
        }
        let id = self.next_worker;
        self.next_worker += 1;
        let worker =
            Worker::start(id, &self.options.worker, &self.sender).map_err(|error| useless(&error))?;
        self.workers.insert(id, worker);
        Ok(id)
    }

    /// Tells a worker that has greeted what to do; says whether it did.
    fn tell(&mut self, id: WorkerId) -> bool {
        if self.workers.get(&id).is_none_or(|worker| worker.hello.is_none()) {
            return false;
        }
        self.check_voice();
        if !self.is_stopping() {
            self.gather(id);
        }
        // Gathering may have stopped the run.
        if self.is_stopping() {
            return false;
        }
        let (Some(worker), Some(assignment)) = (self.workers.get_mut(&id), self.busy.get_mut(&id)) else {
            return false;
        };
        assignment.is_told = true;
        // What it said while it was idle is nobody's last words.
        worker.take_tail();
        let mut cells = Vec::with_capacity(assignment.cells.len());
        for cell in &assignment.cells {
            let Some(job) = self.jobs.get_mut(cell) else {
                continue;
            };
            let Some(mut message) = job.message.take() else {
                continue;
            };
            message.cores = assignment.needs.cores;
            job.together = assignment.cells.len();
            job.started = clock::instant();
            self.voice.say(&Event::CellStarted {
                cell: CellRef {
                    plan: self.plan,
                    index: *cell,
                },
                key: job.key,
                worker: id,
                cores: assignment.needs.cores,
                together: assignment.cells.len(),
                log: &job.log,
            });
            cells.push(*message);
        }
        // Where it does not listen, its closed output is what is heard next.
        worker.send(&ToWorker::Execute(cells));
        true
    }

    pub(super) fn hear_worker(&mut self, id: WorkerId, message: FromThread) {
        let Some(worker) = self.workers.get_mut(&id) else {
            // The last words of one that was given up.
            return;
        };
        match message {
            FromThread::Message(FromWorker::Hello(hello)) => {
                match worker.greet(hello, &self.options.worker) {
                    Ok(()) => {
                        self.failed_starts = 0;
                        self.accelerated = worker.hello.as_ref().map(|hello| hello.accelerated);
                        let (pid, platform) =
                            (worker.pid(), worker.hello.as_ref().map(|hello| &hello.platform));
                        if let Some(platform) = platform {
                            self.voice.say(&Event::WorkerStarted {
                                worker: id,
                                pid,
                                platform,
                            });
                        }
                    }
                    Err(error) => self.give_up(id, &error),
                }
            }
            FromThread::Message(FromWorker::Progress(place, progress)) => {
                if let Some(cell) = self.assigned(id, place) {
                    self.voice.say(&Event::CellProgress {
                        cell: self.cell(cell),
                        progress: &progress,
                    });
                }
            }
            FromThread::Message(FromWorker::Log(place, log)) => {
                self.log(self.assigned(id, place), log.level, &log.message);
            }
            FromThread::Message(FromWorker::Done(place, done)) => self.done(id, place, done),
            FromThread::Message(FromWorker::Failed(place, failed)) => {
                let tail = worker.take_tail();
                if let Some((cell, job)) = self.release(id, place) {
                    let (key, end) = (job.key, job.end());
                    drop(job);
                    self.failed(cell, key, failed, tail, &end);
                }
            }
            FromThread::Stderr(line) => {
                worker.note(&line);
                // Logs have no empty lines.
                if !line.is_empty() {
                    self.log(self.first_assigned(id), Level::Info, &line);
                }
            }
            FromThread::Garbage(reason) => {
                worker.note(&format!("(a message that cannot be understood: {reason})"));
                worker.kill();
            }
            FromThread::Closed => self.lose_worker(id),
        }
    }

    /// A worker says something for the log of the cell that it has, once it has begun it.
    fn log(&mut self, cell: Option<CellIndex>, level: Level, message: &str) {
        if let Some(cell) = cell
            && let Some(job) = self.jobs.get_mut(&cell)
            && job.message.is_none()
        {
            job.has_log = true;
            self.voice.say(&Event::CellLog {
                cell: CellRef {
                    plan: self.plan,
                    index: cell,
                },
                level,
                message,
            });
        }
    }

    /// A worker has put a cell's outputs into its scratch folder.
    fn done(&mut self, id: WorkerId, place: usize, done: Done) {
        let platform = match self.workers.get_mut(&id) {
            Some(worker) => {
                worker.take_tail();
                worker
                    .hello
                    .as_ref()
                    .map(|hello| hello.platform.clone())
                    .unwrap_or_default()
            }
            None => return,
        };
        let Some((cell, job)) = self.release(id, place) else {
            return;
        };
        let stage = self.plan.stage_of(cell);
        let end = job.end();
        let finished = Finished {
            cell,
            action: job.action,
            ports: Arc::clone(&stage.outputs),
            outputs: done.outputs,
            volatile: stage.volatile,
            scratch: job.scratch,
            platform,
        };
        let committing = Committing {
            key: job.key,
            worker: id,
            end,
            claim: job.claim,
        };
        self.committing.insert(cell, committing);
        if self.committer.send(finished).is_err() {
            let message = "the thread that commits results has ended";
            self.halt(Failure::new(Blame::Us, message, None));
            self.committing.remove(&cell);
        }
    }
}

/// The name of a cell's log file: its position, which makes it unique, and as much of its name as a file can carry.
pub(super) fn log_name(cell: CellIndex, name: &str) -> Utf8PathBuf {
    const LONGEST: usize = 80;
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || "-_.=[],".contains(letter) {
            letter
        } else {
            '_'
        }
    };
    let name: String = name.replace(", ", ",").chars().take(LONGEST).map(plain).collect();
    format!("{cell:05}-{name}.log").into()
}

//! Workers and what they are given to do.

use std::sync::Arc;

use camino::Utf8PathBuf;
use provenir_api::Resources;
use provenir_api::protocol::{Blame, Done, Execute, FromWorker, Level, ToWorker};

use super::committer::Finished;
use super::event::{CellRef, Event, Failure};
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
        self.begin_ready();
        self.share_cores();
        let busy: Vec<WorkerId> = self.busy.keys().copied().collect();
        for worker in busy {
            self.tell(worker);
        }
    }

    fn begin_ready(&mut self) {
        let mut after = None;
        while !self.is_stopping() && self.committing.len() < BACKLOG && !self.budget.is_exhausted() {
            let next = match after {
                None => self.ready.first().copied(),
                Some(after) => self.ready.range(after + 1..).next().copied(),
            };
            let Some(cell) = next else { return };
            after = Some(cell);
            let State::Ready(key) = self.states[cell] else {
                self.ready.remove(&cell);
                continue;
            };
            let needs = self.budget.clamped(self.plan.cells[cell].parameters.resources);
            if !self.budget.take(needs) {
                continue;
            }
            self.ready.remove(&cell);
            match self.begin_cell(cell, key, needs) {
                Ok(true) => {}
                Ok(false) => self.budget.give_back(needs),
                Err(failure) => {
                    self.budget.give_back(needs);
                    self.halt(failure);
                }
            }
        }
    }

    /// Gives the cores that no ready cell waits for to cells that are about to start and can use them: one each, in turn.
    /// A cell never waits for them, and keeps them until it is over.
    fn share_cores(&mut self) {
        if !self.ready.is_empty() {
            return;
        }
        let Self { jobs, budget, .. } = self;
        loop {
            let mut takers = jobs
                .values_mut()
                .filter(|job| job.message.is_some() && job.spare_cores > 0)
                .peekable();
            if takers.peek().is_none() {
                return;
            }
            for job in takers {
                if !budget.take_core() {
                    return;
                }
                job.needs.cores += 1;
                job.spare_cores -= 1;
            }
        }
    }

    /// Begins a cell, for which `needs` was taken; says whether a worker has it now.
    fn begin_cell(&mut self, cell: CellIndex, key: ActionKey, needs: Resources) -> Result<bool, Failure> {
        let claim = match self.claims.request(&key).map_err(|error| Failure::from(&error))? {
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
                return Ok(false);
            }
        };
        // Between the lookup and the claim another process may have finished it.
        if !self.forced.contains(&cell) {
            match self.store.read_result(&key) {
                Ok(Lookup::Hit(result)) => {
                    drop(claim);
                    self.reuse(cell, key);
                    self.settle(cell, result);
                    return Ok(false);
                }
                Ok(Lookup::Miss(_)) => {}
                Err(error) => return Err(Failure::from(&error)),
            }
        }
        let worker = self.free_worker()?;
        let job = self
            .job(cell, key, claim, worker, needs)
            .map_err(|error| Failure::from(&error))?;
        self.states[cell] = State::Running;
        self.busy.insert(worker, cell);
        self.jobs.insert(cell, job);
        Ok(true)
    }

    fn job(
        &mut self,
        cell: CellIndex,
        key: ActionKey,
        claim: Claim,
        worker: WorkerId,
        needs: Resources,
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
            cores: needs.cores,
        };
        Ok(Job {
            key,
            action,
            needs,
            spare_cores: self.plan.cells[cell].parameters.spare_cores,
            scratch,
            worker,
            started: clock::instant(),
            message: Some(Box::new(execute)),
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

    /// Tells a worker that has greeted what to do.
    fn tell(&mut self, worker: WorkerId) {
        let Some(cell) = self.busy.get(&worker).copied() else {
            return;
        };
        let (Some(worker), Some(job)) = (self.workers.get_mut(&worker), self.jobs.get_mut(&cell)) else {
            return;
        };
        if worker.hello.is_none() {
            return;
        }
        if let Some(mut message) = job.message.take() {
            message.cores = job.needs.cores;
            job.started = clock::instant();
            // What it said while it was idle is nobody's last words.
            worker.take_tail();
            self.voice.say(&Event::CellStarted {
                cell: CellRef {
                    plan: self.plan,
                    index: cell,
                },
                key: job.key,
                worker: job.worker,
                cores: job.needs.cores,
                log: &job.log,
            });
            // Where it does not listen, its closed output is what is heard next.
            worker.send(&ToWorker::Execute(message));
        }
    }

    pub(super) fn hear_worker(&mut self, id: WorkerId, message: FromThread) {
        let Some(worker) = self.workers.get_mut(&id) else {
            // The last words of one that was given up.
            return;
        };
        let cell = self.busy.get(&id).copied();
        match message {
            FromThread::Message(FromWorker::Hello(hello)) => {
                match worker.greet(hello, &self.options.worker) {
                    Ok(()) => {
                        self.failed_starts = 0;
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
            FromThread::Message(FromWorker::Progress(progress)) => {
                if let Some(cell) = cell {
                    self.voice.say(&Event::CellProgress {
                        cell: self.cell(cell),
                        progress: &progress,
                    });
                }
            }
            FromThread::Message(FromWorker::Log(log)) => self.log(cell, log.level, &log.message),
            FromThread::Message(FromWorker::Done(done)) => self.done(id, done),
            FromThread::Message(FromWorker::Failed(failed)) => {
                let tail = worker.take_tail();
                if let Some((cell, job)) = self.release(id) {
                    let (key, end) = (job.key, job.end());
                    drop(job);
                    self.failed(cell, key, failed, tail, &end);
                }
            }
            FromThread::Stderr(line) => {
                worker.note(&line);
                self.log(cell, Level::Info, &line);
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
    fn done(&mut self, id: WorkerId, done: Done) {
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
        let Some((cell, job)) = self.release(id) else {
            return;
        };
        let kind = &self.plan.stage_of(cell).kind;
        let ports = self
            .ports
            .entry(kind.name())
            .or_insert_with(|| kind.outputs().into());
        let volatile = self.plan.stage_of(cell).volatile;
        let end = job.end();
        let finished = Finished {
            cell,
            action: job.action,
            ports: Arc::clone(ports),
            outputs: done.outputs,
            volatile,
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

    /// Takes a cell from a worker.
    pub(super) fn release(&mut self, id: WorkerId) -> Option<(CellIndex, Job)> {
        let cell = self.busy.remove(&id)?;
        let job = self.jobs.remove(&cell)?;
        self.budget.give_back(job.needs);
        Some((cell, job))
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

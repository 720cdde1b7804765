//! Workers that end although nobody asked them to.

use provenir_api::protocol::{Blame, Failed};

use super::event::{Event, Failure};
use super::scheduler::Scheduler;
use super::state::{Job, State};
use super::worker::{Ending, Worker, WorkerError, WorkerId};
use crate::plan::CellIndex;

/// After so many cells that no worker could be started for, with none becoming ready in between, the run stops: the
/// others would fare no better.
const HOPELESS: u32 = 3;

impl Scheduler<'_, '_> {
    /// A worker has ended, or says nothing.
    pub(super) fn lose_worker(&mut self, id: WorkerId) {
        let Some(mut worker) = self.workers.remove(&id) else {
            return;
        };
        let is_ready = worker.hello.is_some();
        let ending = if worker.is_overdue() {
            worker.kill();
            Ending::overdue()
        } else {
            worker.ending()
        };
        let mut lost = self.release_all(id);
        if self.summary.interrupted {
            for (cell, job) in lost {
                drop(job);
                self.cancel(cell, is_ready);
            }
        } else if is_ready && lost.len() > 1 {
            self.divide(lost, &ending);
        } else if let Some((cell, job)) = lost.pop() {
            // Where it was idle, the next cell gets a new one; and one that has not greeted has one cell at most.
            if is_ready {
                self.lose_busy(cell, job, &ending, worker.take_tail());
            } else {
                self.lose_starting(cell, job, &ending, &mut worker);
            }
        }
    }

    /// The worker that executed a cell has ended: the cell has failed.
    fn lose_busy(&mut self, cell: CellIndex, job: Job, ending: &Ending, tail: Vec<String>) {
        let (key, end, is_overdue) = (job.key, job.end(), job.is_overdue);
        drop(job);
        let (message, help) = if is_overdue {
            self.overdue(cell)
        } else {
            (format!("its worker {}", ending.phrase), None)
        };
        let failed = Failed {
            blame: Blame::Stage,
            message,
            help,
            damaged: None,
        };
        self.failed(cell, key, failed, tail, &end);
    }

    /// A worker has ended before it was ready for its cell. Whether that is the cell's fault cannot be known: the cell gets
    /// another worker, once. A worker that left by itself says that something is lacking, which the next one would lack, too.
    fn lose_starting(&mut self, cell: CellIndex, job: Job, ending: &Ending, worker: &mut Worker) {
        let (key, tail) = (job.key, worker.take_tail());
        if self.is_stopping() {
            self.states[cell] = State::Ready(key);
            return;
        }
        let again = self.lost_starts.insert(cell);
        self.failed_starts += u32::from(!again);
        if ending.is_own || self.failed_starts == HOPELESS {
            self.states[cell] = State::Ready(key);
            drop(job);
            self.halt(useless(&WorkerError::Greeting {
                path: self.options.worker.path.clone(),
                reason: ending.phrase.clone(),
                tail,
            }));
            return;
        }
        self.voice.say(&Event::WorkerLost {
            worker: worker.id,
            pid: worker.pid(),
            cell: self.cell(cell),
            key,
            reason: &ending.phrase,
            tail: &tail,
            log: Some(&job.log),
            again,
        });
        if again {
            self.states[cell] = State::Ready(key);
            self.ready.insert(cell);
            return;
        }
        let mut end = job.end();
        end.log = Some(job.log.clone());
        drop(job);
        let failed = Failed {
            blame: Blame::Environment,
            message: format!(
                "two workers that were starting for it ended, one after the other; the second {}",
                ending.phrase
            ),
            help: Some(
                "where memory is short, `--jobs` with a smaller number starts fewer at a time; `provenir doctor` tries to start one"
                    .to_owned(),
            ),
            damaged: None,
        };
        self.failed(cell, key, failed, tail, &end);
    }

    /// Workers are of no use: stops the run. The cell that waited for this one goes back in line, where it stays.
    pub(super) fn give_up(&mut self, id: WorkerId, error: &WorkerError) {
        self.workers.remove(&id);
        for (cell, job) in self.release_all(id) {
            self.states[cell] = State::Ready(job.key);
        }
        self.halt(useless(error));
    }
}

pub(super) fn useless(error: &WorkerError) -> Failure {
    Failure::new(
        Blame::Environment,
        error.to_string(),
        Some(error.help().to_owned()),
    )
}

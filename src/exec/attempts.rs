//! How long a cell may take, and how often it may try.

use provenir_api::protocol::Blame;

use super::event::{Event, Failure, NthAttempt};
use super::scheduler::Scheduler;
use super::state::{End, State};
use crate::plan::CellIndex;
use crate::store::ActionKey;

impl Scheduler<'_, '_> {
    /// Whether any running cell has a time limit.
    pub(super) fn has_time_limit(&self) -> bool {
        self.jobs
            .keys()
            .any(|cell| self.plan.stage_of(*cell).attempts.timeout.is_some())
    }

    /// Kills the workers of cells that run longer than their stage allows; what is heard of them next is their end.
    pub(super) fn stop_overdue(&mut self) {
        for (cell, job) in &mut self.jobs {
            let limit = self.plan.stage_of(*cell).attempts.timeout;
            let has_begun = job.message.is_none();
            if limit.is_some_and(|limit| job.started.elapsed() > limit) && has_begun && !job.is_overdue {
                job.is_overdue = true;
                if let Some(worker) = self.workers.get_mut(&job.worker) {
                    worker.kill();
                }
            }
        }
    }

    /// What is said of a cell that ran too long.
    pub(super) fn overdue(&self, cell: CellIndex) -> (String, Option<String>) {
        let stage = self.plan.stage_of(cell);
        let limit = stage.attempts.timeout.unwrap_or_default();
        (
            format!("it ran longer than its time limit of {} s", limit.as_secs()),
            Some(format!(
                "raise `timeout` of stage `{}` if it needs longer",
                stage.name
            )),
        )
    }

    /// Which attempt a cell makes, where its stage allows several.
    pub(super) fn attempt(&self, cell: CellIndex) -> Option<NthAttempt> {
        let retries = self.plan.stage_of(cell).attempts.retries;
        let tried = self.tries.get(&cell).copied().unwrap_or_default();
        (retries > 0).then_some(NthAttempt {
            number: tried + 1,
            of: retries + 1,
        })
    }

    /// Puts a cell that failed in line once more, where its stage allows that; says whether it did. A bug of ours and a
    /// request to stop are no reasons to try again.
    pub(super) fn retry(&mut self, cell: CellIndex, key: ActionKey, failure: &Failure, end: &End) -> bool {
        let retries = self.plan.stage_of(cell).attempts.retries;
        let tried = self.tries.get(&cell).copied().unwrap_or_default();
        let may_help = matches!(failure.blame, Blame::Stage | Blame::Environment);
        if tried >= retries || !may_help || self.is_stopping() {
            return false;
        }
        self.tries.insert(cell, tried + 1);
        self.voice.say(&Event::CellRetried {
            cell: self.cell(cell),
            key,
            failure,
            attempt: tried + 1,
            attempts: retries + 1,
            seconds: end.seconds,
            log: end.log.as_deref(),
        });
        self.states[cell] = State::Ready(key);
        self.ready.insert(cell);
        true
    }
}

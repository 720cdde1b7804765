//! What the scheduler does when time has passed, and when it is asked to stop.

use std::time::Duration;

use provenir_api::protocol::ToWorker;

use super::event::Event;
use super::scheduler::Scheduler;
use crate::clock;
use crate::store::RENEWAL;

/// How often a result that another process computes is looked for.
const POLL: Duration = Duration::from_millis(200);
/// How long a cell may take to notice that it was cancelled.
const CANCEL: Duration = Duration::from_secs(10);

impl Scheduler<'_, '_> {
    /// How long it may wait for something to happen before it looks at the time.
    pub(super) fn patience(&self) -> Duration {
        if self.elsewhere.is_empty() && self.cancel_deadline.is_none() && !self.has_time_limit() {
            Duration::from_secs(1)
        } else {
            POLL
        }
    }

    /// Has running cells stopped; nothing more is begun.
    pub(super) fn interrupt(&mut self) {
        self.summary.interrupted = true;
        self.cancel_deadline = Some(clock::instant() + CANCEL);
        self.voice.say(&Event::Interrupted);
        // Those that are still loading know nothing of their cells, which are taken from them before anything is begun.
        for (worker, assignment) in &self.busy {
            if assignment.is_told
                && let Some(worker) = self.workers.get_mut(worker)
            {
                worker.send(&ToWorker::Cancel);
            }
        }
    }

    /// Does what is due: renews claims, looks for what others computed, stops what takes too long.
    pub(super) fn keep_time(&mut self) {
        if self.renewed.elapsed() > RENEWAL {
            self.renewed = clock::instant();
            let committing = self.committing.values().map(|committing| &committing.claim);
            for claim in self.jobs.values().map(|job| &job.claim).chain(committing) {
                // Where that fails, another process may begin the same cell: a double run, no more.
                claim.renew().ok();
            }
            if let Ok(workspace) = self.store.workspace() {
                workspace.renew().ok();
            }
        }
        if self.polled.elapsed() > POLL && !self.elsewhere.is_empty() {
            self.polled = clock::instant();
            self.ready.append(&mut self.elsewhere);
        }
        if self
            .cancel_deadline
            .is_some_and(|deadline| clock::instant() > deadline)
        {
            self.cancel_deadline = None;
            for worker in self.busy.keys() {
                if let Some(worker) = self.workers.get_mut(worker) {
                    worker.kill();
                }
            }
        }
        self.stop_overdue();
        let overdue = self
            .workers
            .values()
            .find(|worker| worker.is_overdue())
            .map(|worker| worker.id);
        if let Some(overdue) = overdue {
            self.lose_worker(overdue);
        }
    }
}

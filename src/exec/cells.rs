//! What becomes of a cell when something is known about it.

use std::collections::{BTreeMap, VecDeque};

use provenir_api::Digest;
use provenir_api::protocol::{Blame, Failed};

use super::event::{Event, Failure};
use super::resolve::Results;
use super::scheduler::Scheduler;
use super::state::{End, Fate, State};
use super::survey::Due;
use crate::plan::CellIndex;
use crate::store::{ActionKey, Artifact, Commit, Committed, Lookup, MissReason, StoreError};

impl Scheduler<'_, '_> {
    /// Puts a cell whose action is to be executed in line, or behind a cell of this run that is the same action.
    pub(super) fn enqueue(&mut self, cell: CellIndex, key: ActionKey) {
        let leader = *self.leaders.entry(key).or_insert(cell);
        if leader == cell {
            self.states[cell] = State::Ready(key);
            self.ready.insert(cell);
        } else {
            self.states[cell] = State::Follows;
            self.followers.entry(leader).or_default().push(cell);
        }
    }

    /// A result is known: so may be those of cells that wait for it.
    pub(super) fn settle(&mut self, cell: CellIndex, result: Committed) {
        let mut known = VecDeque::from([(cell, result)]);
        while let Some((cell, result)) = known.pop_front() {
            if self.leaders.get(&result.key()) == Some(&cell) {
                self.leaders.remove(&result.key());
            }
            for follower in self.followers.remove(&cell).unwrap_or_default() {
                self.reuse(follower, result.key());
                known.push_back((follower, result.clone()));
            }
            self.states[cell] = State::Done(result);
            for consumer in self.consumers[cell].clone() {
                let State::Waiting(waiting) = &mut self.states[consumer] else {
                    continue;
                };
                *waiting -= 1;
                if *waiting == 0 {
                    match self.resolve(consumer) {
                        Ok(Some(result)) => known.push_back((consumer, result)),
                        Ok(None) => {}
                        Err(error) => self.halt(self.failure(&error)),
                    }
                }
            }
        }
    }

    /// A cell's producers are all known: finds its result, or puts it in line.
    fn resolve(&mut self, cell: CellIndex) -> Result<Option<Committed>, StoreError> {
        let key = self.resolver.key(cell, &self.states)?;
        let cause = if self.forced.contains(&cell) {
            Due::Forced
        } else {
            match self.store.lookup(&key)? {
                Lookup::Hit(result) => {
                    self.reuse(cell, key);
                    return Ok(Some(result));
                }
                Lookup::Miss(reason) => {
                    self.discard(cell, key, &reason);
                    Due::Miss(reason)
                }
            }
        };
        self.causes.insert(cell, cause);
        self.enqueue(cell, key);
        Ok(None)
    }

    /// Takes a damaged artifact out of the store, so that nothing takes it for a good one from now on, and tells of a result
    /// that cannot be understood, which a commit replaces.
    pub(super) fn discard(&mut self, cell: CellIndex, key: ActionKey, reason: &MissReason) {
        let object = match reason {
            MissReason::Damaged(object) => object,
            MissReason::Unreadable => {
                self.voice.say(&Event::ResultDamaged {
                    cell: self.cell(cell),
                    key,
                    path: &self.store.layout().result(&key),
                });
                return;
            }
            MissReason::NoResult | MissReason::Missing(_) => return,
        };
        let result = self.store.result(&key).ok().flatten();
        let outputs = result.as_ref().map(|result| result.outputs.as_slice());
        match self
            .store
            .discard_if_damaged(object, length_in(outputs.unwrap_or_default(), object))
        {
            Ok(true) => self.voice.say(&Event::CellDamaged {
                cell: self.cell(cell),
                object: *object,
            }),
            Ok(false) => {}
            Err(error) => self.halt(self.failure(&error)),
        }
    }

    /// Counts a cell whose result was there.
    pub(super) fn reuse(&mut self, cell: CellIndex, key: ActionKey) {
        self.fates[cell] = Some(Fate::Reused);
        self.voice.say(&Event::CellReused {
            cell: self.cell(cell),
            key,
            awaited: self.awaited.remove(&cell),
        });
    }

    /// A cell's outputs are in the store, or could not be brought there.
    pub(super) fn committed(&mut self, cell: CellIndex, result: Result<Commit, StoreError>) {
        let Some(committing) = self.committing.remove(&cell) else {
            return;
        };
        match result {
            Ok(Commit {
                committed,
                action,
                outcome,
            }) => {
                self.fates[cell] = Some(Fate::Ran);
                if outcome.is_divergence() {
                    self.summary.diverged += 1;
                }
                self.remember(cell, committed.key());
                let reason = self.causes.remove(&cell);
                self.voice.say(&Event::CellFinished {
                    cell: self.cell(cell),
                    key: committed.key(),
                    worker: committing.worker,
                    seconds: committing.end.seconds,
                    outputs: committed.outputs(),
                    reason: reason.as_ref(),
                    outcome: &outcome,
                    action: &action,
                });
                self.settle(cell, committed);
            }
            Err(error) => {
                let failure = self.failure(&error);
                // What the store refused once it will refuse again; cells that cannot be kept are not worth running.
                if matches!(error, StoreError::Io { .. }) {
                    self.halt(failure.clone());
                }
                self.fail(cell, committing.key, failure, &committing.end);
            }
        }
    }

    /// A worker says that a cell failed.
    pub(super) fn failed(
        &mut self,
        cell: CellIndex,
        key: ActionKey,
        failed: Failed,
        tail: Vec<String>,
        end: &End,
    ) {
        if failed.blame == Blame::Cancelled {
            self.cancel(cell, true);
            return;
        }
        if let Some(object) = failed.damaged.or_else(|| self.lost_input(cell)) {
            match self.repair(cell, key, object) {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => self.halt(self.failure(&error)),
            }
        }
        let failure = Failure {
            blame: failed.blame,
            message: self.without_scratch(&failed.message),
            help: failed.help,
            tail,
            attempt: None,
        };
        if !self.retry(cell, key, &failure, end) {
            self.fail(cell, key, failure, end);
        }
    }

    /// Counts a cell as stopped, after it was begun or before.
    pub(super) fn cancel(&mut self, cell: CellIndex, begun: bool) {
        self.fates[cell] = Some(Fate::Cancelled);
        self.states[cell] = State::Over;
        self.voice.say(&Event::CellCancelled {
            cell: self.cell(cell),
            begun,
        });
    }

    /// A cell failed, and so did those that are the same action; what needs them cannot run.
    pub(super) fn fail(&mut self, cell: CellIndex, key: ActionKey, failure: Failure, end: &End) {
        self.blame(failure.blame);
        let failure = Failure {
            attempt: self.attempt(cell),
            ..failure
        };
        self.leaders.remove(&key);
        let action = self.resolver.action(cell, &self.states).ok();
        let mut failed = vec![cell];
        failed.extend(self.followers.remove(&cell).unwrap_or_default());
        for cell in failed {
            self.fates[cell] = Some(Fate::Failed);
            self.states[cell] = State::Over;
            self.voice.say(&Event::CellFailed {
                cell: self.cell(cell),
                key,
                action: action.as_ref(),
                failure: &failure,
                seconds: end.seconds,
                log: end.log.as_deref(),
            });
            self.block(cell);
        }
    }

    /// An object that a cell was to read and that is not there any more: somebody removed it beside this run.
    fn lost_input(&self, cell: CellIndex) -> Option<Digest> {
        let objects = self.plan.cells[cell].inputs.iter().filter_map(|input| {
            let artifact = self.states.artifact(input).ok()?;
            Some(artifact.object)
        });
        let mut lost = objects.filter(|object| !self.store.layout().object(object).exists());
        lost.next()
    }

    fn block(&mut self, failed: CellIndex) {
        let mut blocked = self.consumers[failed].clone();
        while let Some(cell) = blocked.pop() {
            if matches!(self.states[cell], State::Waiting(_)) {
                self.states[cell] = State::Over;
                self.fates[cell] = Some(Fate::Blocked);
                self.voice.say(&Event::CellBlocked {
                    cell: self.cell(cell),
                    by: self.cell(failed),
                });
                blocked.extend_from_slice(&self.consumers[cell]);
            }
        }
    }

    /// Has cells run again an object of which somebody removed beside this run.
    pub(super) fn recover(&mut self, lost: BTreeMap<CellIndex, Digest>) {
        if !lost.is_empty() && self.consumers.is_empty() {
            self.link();
        }
        for (cell, object) in lost {
            let State::Done(result) = &self.states[cell] else {
                continue;
            };
            let key = result.key();
            self.voice.say(&Event::CellLost {
                cell: self.cell(cell),
                object,
            });
            self.fates[cell] = None;
            self.forced.insert(cell);
            self.causes.insert(cell, Due::Miss(MissReason::Missing(object)));
            self.enqueue(cell, key);
        }
    }

    /// An object that a cell could not read is as it was stored: a collection beside this run had taken it aside, and has put it
    /// back because it was wanted. Has the cell begin once more, and says whether that may help.
    fn read_again(&mut self, reader: CellIndex, key: ActionKey) -> bool {
        /// More often is no accident.
        const MOST: u32 = 5;
        let times = self.reread.entry(reader).or_default();
        *times += 1;
        if *times > MOST || self.is_stopping() {
            return false;
        }
        self.states[reader] = State::Ready(key);
        self.ready.insert(reader);
        true
    }

    /// An object that a cell was to read is damaged: takes it out of the store and has the cell that makes it run
    /// again, with the reader waiting for it. Says whether it could.
    fn repair(&mut self, reader: CellIndex, key: ActionKey, object: Digest) -> Result<bool, StoreError> {
        let flaw = if self.store.layout().object(&object).exists() {
            MissReason::Damaged(object)
        } else {
            MissReason::Missing(object)
        };
        let inputs = self.plan.cells[reader].inputs.iter();
        let lengths = inputs.filter_map(|input| {
            let artifact = self.states.artifact(input).ok()?;
            (artifact.object == object).then_some(artifact.size)
        });
        if !self.store.discard_if_damaged(&object, lengths.max())? {
            return Ok(self.read_again(reader, key));
        }
        let makes = |producer: CellIndex| {
            matches!(&self.states[producer], State::Done(result)
                if result.outputs().iter().any(|artifact| artifact.object == object))
        };
        let inputs = &self.plan.cells[reader].inputs;
        let Some(producer) = inputs
            .iter()
            .map(|input| input.producer)
            .find(|producer| makes(*producer))
        else {
            return Ok(false);
        };
        let State::Done(result) = &self.states[producer] else {
            return Ok(false);
        };
        let producer_key = result.key();
        if self.is_stopping() || !self.repaired.insert(producer) {
            return Ok(false);
        }
        self.voice.say(&Event::CellRepairing {
            cell: self.cell(producer),
            reader: self.cell(reader),
            object,
        });
        self.leaders.remove(&key);
        self.fates[producer] = None;
        // The reader's followers, if it has any, go on following it: it stands for the same action afterwards.
        self.states[reader] = State::Waiting(0);
        for consumer in &self.consumers[producer] {
            if let State::Waiting(waiting) = &mut self.states[*consumer] {
                *waiting += 1;
            }
        }
        self.forced.insert(producer);
        self.causes.insert(producer, Due::Miss(flaw));
        self.enqueue(producer, producer_key);
        Ok(true)
    }
}

/// The length of an object that is among outputs.
fn length_in(outputs: &[Artifact], object: &Digest) -> Option<u64> {
    let named = outputs.iter().filter(|artifact| artifact.object == *object);
    named.map(|artifact| artifact.size).max()
}

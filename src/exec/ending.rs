//! What a run leaves behind: counts, copies, and what is remembered of its cells.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use super::event::Event;
use super::scheduler::{RunOutcome, Scheduler};
use super::state::{Fate, State};
use crate::plan::CellIndex;
use crate::store::{ActionKey, Committed, Copied, Published, Publisher, Store, StoreError};

impl Scheduler<'_, '_> {
    /// Remembers which action each cell is, executed or reused, so that it can be said later what changed since.
    fn remember_all(&self, results: &[Option<Committed>]) {
        let Some(known) = self.store.last_actions(&self.manifest) else {
            return;
        };
        for (cell, result) in results.iter().enumerate() {
            if let Some(result) = result
                && known.get(&self.plan.name(cell)) != Some(&result.key())
            {
                self.remember(cell, result.key());
            }
        }
    }

    /// Remembers which action each executed cell was, so that it can be said later what changed.
    pub(super) fn remember(&self, cell: CellIndex, key: ActionKey) {
        self.store
            .remember_cell(Arc::clone(&self.manifest), self.plan.name(cell), key);
    }

    /// Counts, and says that nothing more happens.
    pub(super) fn end(mut self) -> RunOutcome {
        for worker in self.workers.values_mut() {
            worker.dismiss();
        }
        self.workers.clear();
        let mut results = Vec::with_capacity(self.states.len());
        for (index, state) in std::mem::take(&mut self.states).into_iter().enumerate() {
            results.push(match state {
                State::Done(result) => Some(result),
                State::Over => None,
                State::Waiting(_) | State::Ready(_) | State::Follows | State::Running => {
                    self.fates[index] = Some(Fate::Cancelled);
                    self.voice.say(&Event::CellCancelled {
                        cell: self.cell(index),
                        begun: false,
                    });
                    None
                }
            });
        }
        self.count();
        self.remember_all(&results);
        let published: Vec<Utf8PathBuf> = std::mem::take(&mut self.published).into_values().collect();
        self.check_voice();
        self.store.flush();
        self.summary.seconds = self.began.elapsed().as_secs_f64();
        self.voice.say(&Event::RunFinished {
            summary: &self.summary,
            published: &published,
        });
        // Nothing is left to be stopped. Where the run was stopped before, that was told with its reason.
        let unrecorded = self.voice.failed.take().map(|error| self.failure(&error));
        let unrecorded = unrecorded.filter(|_| self.summary.halted.is_none());
        if let Some(failure) = &unrecorded {
            self.blame(failure.blame);
        }
        RunOutcome {
            summary: self.summary,
            results,
            unnoted: self.unnoted,
            unrecorded,
        }
    }

    /// Counts what became of the cells.
    fn count(&mut self) {
        for fate in self.fates.iter().flatten() {
            *match fate {
                Fate::Ran => &mut self.summary.ran,
                Fate::Reused => &mut self.summary.reused,
                Fate::Failed => &mut self.summary.failed,
                Fate::Blocked => &mut self.summary.blocked,
                Fate::Cancelled => &mut self.summary.cancelled,
            } += 1;
        }
    }

    /// Publishes copies of what is known. Says whether cells have to run again for it: those whose artifacts somebody has removed
    /// beside this run.
    pub(super) fn publish(&mut self) -> bool {
        let mut lost = BTreeMap::new();
        let mut folders = BTreeSet::new();
        let cells = match self.unpublished.take() {
            Some(cells) => cells.into_iter().collect(),
            None => (0..self.plan.cells.len()).collect::<Vec<_>>(),
        };
        for index in cells {
            let State::Done(result) = &self.states[index] else {
                continue;
            };
            let result = result.clone();
            for (number, publish) in self.plan.cells[index].publish.iter().enumerate() {
                let path = self.plan.folder.join(&publish.path);
                let Some(artifact) = result.output(publish.port) else {
                    continue;
                };
                let cell = self.cell(index);
                let publisher = Publisher {
                    key: result.key(),
                    cell: &self.plan.name(index),
                    manifest: &self.plan.manifest,
                    command: &self.options.command,
                };
                match self.store.publish(&path, artifact, publisher) {
                    Ok(Published {
                        copied,
                        kept,
                        taken_from,
                        unnoted,
                    }) => {
                        if let Some(error) = unnoted {
                            self.unnoted.get_or_insert(error);
                        }
                        if copied == Copied::Unchanged {
                            self.published.insert((index, number), path);
                            continue;
                        }
                        self.summary.published += 1;
                        folders.extend(path.parent().map(Utf8Path::to_owned));
                        self.voice.say(&Event::Published {
                            cell,
                            port: publish.port,
                            path: &path,
                            copied,
                            kept: kept.as_deref(),
                            taken_from: taken_from.as_deref(),
                        });
                        self.published.insert((index, number), path);
                    }
                    Err(StoreError::Missing { object, .. })
                        if !self.is_stopping()
                            && (lost.contains_key(&index) || self.repaired.insert(index)) =>
                    {
                        lost.insert(index, object);
                    }
                    Err(error) => {
                        if let StoreError::Damaged { object, .. } = error {
                            // So that the next run computes it again.
                            self.store.discard_if_damaged(&object, Some(artifact.size)).ok();
                        }
                        let failure = self.failure(&error);
                        self.blame(failure.blame);
                        self.summary.unpublished += 1;
                        self.voice.say(&Event::NotPublished {
                            cell,
                            path: &path,
                            failure: &failure,
                        });
                    }
                }
            }
        }
        for folder in folders {
            Store::remove_unfinished_copies(&folder);
        }
        let again = !lost.is_empty();
        self.unpublished = Some(lost.keys().copied().collect());
        self.recover(lost);
        again
    }
}

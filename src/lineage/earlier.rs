use std::collections::BTreeMap;

use camino::Utf8Path;
use provenir_api::Digest;

use super::place::Place;
use crate::exec::differences;
use crate::record::{Executed, History, PastRun};
use crate::store::{Action, ActionKey, Store, StoreError};

/// An action that a run had the result of.
#[derive(Clone, Copy)]
pub(super) struct Use<'h> {
    pub(super) run: &'h PastRun,
    pub(super) cell: &'h str,
    pub(super) key: ActionKey,
}

impl<'h> Use<'h> {
    /// Where the cell stands, where its record tells.
    pub(super) fn place(self) -> Option<Place<'h>> {
        let cells = &self.run.cells;
        let position = cells.find(self.cell, &self.key)?;
        Some(Place { cells, position })
    }
}

/// The records of a store, with what is looked up in them.
pub(super) struct Past {
    pub(super) history: History,
    /// Executions that gave an artifact of these values: positions of run and execution.
    by_content: BTreeMap<Digest, Vec<(usize, usize)>>,
}

/// An execution, in its run.
pub(super) type Made<'h> = (&'h PastRun, &'h Executed);

impl Past {
    pub(super) fn new(history: History) -> Self {
        /// So many makers of the same values are known.
        const MOST: usize = 8;
        let mut by_content: BTreeMap<Digest, Vec<(usize, usize)>> = BTreeMap::new();
        // Those that only passed the values on (a corruption of nothing, say) come after those that made them.
        for passed_on in [false, true] {
            for (position, run) in history.runs.iter().enumerate() {
                for (index, executed) in run.executed.iter().enumerate().rev() {
                    for artifact in &executed.outputs {
                        let makers = by_content.entry(artifact.content).or_default();
                        if makers.len() < MOST && takes(executed, &artifact.content) == passed_on {
                            makers.push((position, index));
                        }
                    }
                }
            }
        }
        Self { history, by_content }
    }

    /// The executions that gave artifacts of these values, as far as they are known: such as are most alike, and among these
    /// the latest.
    pub(super) fn makers(&self, old: &Digest, new: &Digest) -> (Option<Made<'_>>, Option<Made<'_>>) {
        let (before, now) = (self.all_makers(old), self.all_makers(new));
        let likeness = |before: &Executed, now: &Executed| {
            let kind = |executed: &Executed| executed.action.as_ref().map(|action| action.kind.clone());
            (kind(before) == kind(now), stage(&before.cell) == stage(&now.cell))
        };
        let pairs = before
            .iter()
            .flat_map(|before| now.iter().map(move |now| (*before, *now)));
        // Of equals, `max_by_key` takes the last.
        let alike = pairs
            .rev()
            .max_by_key(|((_, before), (_, now))| likeness(before, now));
        match alike {
            Some((before, now)) => (Some(before), Some(now)),
            None => (before.first().copied(), now.first().copied()),
        }
    }

    fn all_makers(&self, content: &Digest) -> Vec<Made<'_>> {
        let places = self.by_content.get(content).into_iter().flatten();
        places
            .map(|(run, index)| {
                let run = &self.history.runs[*run];
                (run, &run.executed[*index])
            })
            .collect()
    }

    /// What a cell of a manifest was in its runs, executed or reused, the latest first; only in runs before `before`, where
    /// one is given.
    pub(super) fn uses<'h>(
        &'h self,
        manifest: &Utf8Path,
        cell: &str,
        before: Option<&PastRun>,
    ) -> Vec<Use<'h>> {
        let runs = self.before(before).filter(|run| run.manifest() == Some(manifest));
        runs.filter_map(|run| {
            let (cell, key) = run.results().filter(|(name, _)| *name == cell).last()?;
            Some(Use { run, cell, key })
        })
        .collect()
    }

    /// The latest run that had the result of an action, by whatever name and of whatever manifest; only of runs before `before`,
    /// where one is given.
    pub(super) fn use_of<'h>(&'h self, key: &ActionKey, before: Option<&PastRun>) -> Option<Use<'h>> {
        self.before(before).find_map(|run| {
            let (cell, key) = run.results().find(|(_, found)| found == key)?;
            Some(Use { run, cell, key })
        })
    }

    /// What a cell of a manifest was when it failed last, with the fields of its key; only in runs before `before`, where one is
    /// given.
    pub(super) fn last_failure<'h>(
        &'h self,
        manifest: &Utf8Path,
        cell: &str,
        before: Option<&PastRun>,
    ) -> Option<(Use<'h>, &'h Action)> {
        let runs = self.before(before).filter(|run| run.manifest() == Some(manifest));
        runs.flat_map(|run| run.failed.iter().rev().map(move |failed| (run, failed)))
            .filter(|(_, failed)| failed.cell == cell)
            .find_map(|(run, failed)| {
                let found = Use {
                    run,
                    cell: &failed.cell,
                    key: failed.key,
                };
                Some((found, failed.action.as_ref()?))
            })
    }

    /// Where a cell of a manifest stood in the latest of its runs in which it was this action.
    pub(super) fn place(&self, manifest: &Utf8Path, cell: &str, key: &ActionKey) -> Option<Place<'_>> {
        let mut runs = self.before(None).filter(|run| run.manifest() == Some(manifest));
        runs.find_map(|run| Place::of(&run.cells, key, [Some(cell)]))
    }

    /// The fields of an action's key: from its record, or else from its result.
    pub(super) fn action(&self, store: &Store, key: &ActionKey) -> Result<Option<Action>, StoreError> {
        let recorded = self
            .history
            .executions(key)
            .find_map(|(_, executed)| executed.action.clone());
        match recorded {
            Some(action) => Ok(Some(action)),
            None => action_of_result(store, key),
        }
    }

    /// What a new cell of a manifest is compared with: the cell of its stage that differs in the fewest fields, in the manifest's
    /// latest run that has such, or else the nearest action of its kind; only in runs before `before`, where one is given.
    pub(super) fn nearest<'h>(
        &'h self,
        store: &Store,
        manifest: &Utf8Path,
        cell: &str,
        action: &Action,
        before: Option<&PastRun>,
    ) -> Result<Option<(Use<'h>, Action)>, StoreError> {
        /// So many cells of a stage are looked at.
        const MOST: usize = 1000;
        let mut nearest: Option<((usize, bool), Use<'h>, Action)> = None;
        for run in self.before(before) {
            if run.manifest() != Some(manifest) || nearest.is_some() {
                continue;
            }
            // Of equals the one of the same name, or else the first in the plan: the order in which cells finish is none.
            let names = run.order().into_iter();
            let results: BTreeMap<&str, ActionKey> = run.results().collect();
            let beside = names.filter(|name| stage(name) == stage(cell));
            let beside = beside.filter_map(|name| Some((name, *results.get(name)?)));
            for (name, key) in beside.take(MOST) {
                let found = self.action(store, &key)?;
                let Some(found) = found.filter(|found| found.kind == action.kind) else {
                    continue;
                };
                let distance = (differences(&found, action).len(), name != cell);
                if nearest.as_ref().is_none_or(|(least, ..)| distance < *least) {
                    let found_use = Use { run, cell: name, key };
                    nearest = Some((distance, found_use, found));
                }
            }
        }
        let beside = nearest.map(|(_, found_use, found)| (found_use, found));
        Ok(beside.or_else(|| self.nearest_of_kind(cell, action, before)))
    }

    /// The runs before one, or all, the latest first.
    fn before<'h>(&'h self, before: Option<&PastRun>) -> impl Iterator<Item = &'h PastRun> {
        let before = before.map(|before| before.stored.id.clone());
        let runs = self.history.runs.iter();
        runs.filter(move |run| before.as_ref().is_none_or(|before| run.stored.id < *before))
    }

    /// Of the actions of the same kind, the one that differs in the fewest fields; of equals that of the cell of the same name, or
    /// else of the same stage.
    fn nearest_of_kind<'h>(
        &'h self,
        cell: &str,
        action: &Action,
        before: Option<&PastRun>,
    ) -> Option<(Use<'h>, Action)> {
        /// So many are looked at, the latest first.
        const MOST: usize = 5000;
        /// What another stage did is no earlier state of this one, unless it differs in no more than this.
        const ALIKE: usize = 3;
        let executed = self
            .before(before)
            .flat_map(|run| run.executed.iter().map(move |executed| (run, executed)));
        executed
            .filter_map(|(run, executed)| {
                let found = executed
                    .action
                    .as_ref()
                    .filter(|found| found.kind == action.kind)?;
                let found_use = Use {
                    run,
                    cell: &executed.cell,
                    key: executed.key,
                };
                Some((found_use, found))
            })
            .take(MOST)
            .min_by_key(|(found_use, found)| {
                (
                    differences(found, action).len(),
                    found_use.cell != cell,
                    stage(found_use.cell) != stage(cell),
                )
            })
            .filter(|(found_use, found)| {
                stage(found_use.cell) == stage(cell) || differences(found, action).len() <= ALIKE
            })
            .map(|(found_use, found)| (found_use, found.clone()))
    }
}

/// Whether an execution took values like these, too.
fn takes(executed: &Executed, content: &Digest) -> bool {
    let inputs = executed.action.iter().flat_map(|action| &action.inputs);
    inputs.into_iter().any(|input| input.content == *content)
}

/// The stage of a cell.
pub(super) fn stage(cell: &str) -> &str {
    cell.split('[').next().unwrap_or(cell)
}

/// The fields of an action's key as its result has them; `None` where that is gone or cannot be understood.
pub(super) fn action_of_result(store: &Store, key: &ActionKey) -> Result<Option<Action>, StoreError> {
    match store.result(key) {
        Ok(result) => Ok(result.map(|result| result.action)),
        Err(StoreError::Malformed { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

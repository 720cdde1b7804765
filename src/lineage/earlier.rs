use std::collections::BTreeMap;

use camino::Utf8Path;
use provenir_api::Digest;

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

/// The records of a store, with what is looked up in them.
pub(super) struct Past {
    pub(super) history: History,
    /// The latest execution that gave an artifact of these values: positions of run and execution.
    by_content: BTreeMap<Digest, (usize, usize)>,
}

impl Past {
    pub(super) fn new(history: History) -> Self {
        let mut by_content = BTreeMap::new();
        for (position, run) in history.runs.iter().enumerate() {
            for (index, executed) in run.executed.iter().enumerate().rev() {
                for artifact in &executed.outputs {
                    by_content.entry(artifact.content).or_insert((position, index));
                }
            }
        }
        Self { history, by_content }
    }

    /// The latest execution that gave an artifact of these values.
    pub(super) fn maker(&self, content: &Digest) -> Option<(&PastRun, &Executed)> {
        let (run, index) = self.by_content.get(content)?;
        let run = &self.history.runs[*run];
        Some((run, &run.executed[*index]))
    }

    /// What a cell of a manifest was in its runs, executed or reused, the latest first; only in runs before `before`, where
    /// one is given.
    pub(super) fn uses<'h>(
        &'h self,
        manifest: &Utf8Path,
        cell: &str,
        before: Option<&PastRun>,
    ) -> Vec<Use<'h>> {
        let runs = self.history.runs.iter().filter(|run| {
            run.manifest() == Some(manifest) && before.is_none_or(|before| run.stored.id < before.stored.id)
        });
        runs.filter_map(|run| {
            let (cell, key) = run.cells().filter(|(name, _)| *name == cell).last()?;
            Some(Use { run, cell, key })
        })
        .collect()
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

    /// Of the actions of the same kind, the one that differs in the fewest fields.
    pub(super) fn nearest<'h>(&'h self, action: &Action) -> Option<(Use<'h>, Action)> {
        /// So many are looked at, the latest first.
        const MOST: usize = 5000;
        let executed = self
            .history
            .runs
            .iter()
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
            .min_by_key(|(_, found)| differences(found, action).len())
            .map(|(found_use, found)| (found_use, found.clone()))
    }
}

/// The fields of an action's key as its result has them; `None` where that is gone or cannot be understood.
pub(super) fn action_of_result(store: &Store, key: &ActionKey) -> Result<Option<Action>, StoreError> {
    match store.result(key) {
        Ok(result) => Ok(result.map(|result| result.action)),
        Err(StoreError::Malformed { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

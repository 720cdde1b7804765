//! What the records of a store's runs say of actions, all together.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use jiff::Timestamp;

use super::cells::{Cells, PlacedCell};
use super::model::{Executed, OutcomeFile, Record, RunFile};
use super::read::{Execution, FlawedRun, RunStore, StoredRun};
use super::{Annotation, RunId};
use crate::exec::NthAttempt;
use crate::store::{Action, ActionKey, ActionResult, Layout, Liveness, Outcome, StoreError};

/// The runs of a store with their records, the latest first.
#[derive(Default)]
pub struct History {
    /// The runs.
    pub runs: Vec<PastRun>,
    /// Runs that cannot be understood, and are not among those.
    pub flawed: Vec<FlawedRun>,
    /// Where each action was executed: positions in `runs` and in their `executed`, the latest first.
    executed: BTreeMap<ActionKey, Vec<(usize, usize)>>,
    /// The latest run that had each action, executed or reused, and the cell that it was there.
    used: BTreeMap<ActionKey, (usize, String)>,
    /// Where each action failed last: positions in `runs` and in their `failed`.
    failed: BTreeMap<ActionKey, (usize, usize)>,
}

/// A run that was recorded, or is being recorded.
pub struct PastRun {
    /// The run.
    pub stored: StoredRun,
    /// What was asked for; `None` where it was killed before that was written, or has only just begun.
    pub head: Option<RunFile>,
    /// How it ended; `None` while it runs, and where it was killed.
    pub outcome: Option<OutcomeFile>,
    /// Cells that it executed, in the order in which they were finished.
    pub executed: Vec<Executed>,
    /// Cells that it found in the store.
    pub reused: Vec<(String, ActionKey)>,
    /// Attempts that failed.
    pub failed: Vec<Failed>,
    /// Those that have results, where they stand in its plan; earlier records do not tell.
    pub cells: Cells,
    /// What a person added to it.
    pub annotation: Annotation,
    /// What it began to execute, where it was interrupted, halted or killed: not all of that is in its records.
    begun: Vec<Execution>,
}

/// An attempt that failed.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The cell, as the manifest named it.
    pub cell: String,
    /// Its action.
    pub key: ActionKey,
    /// Why.
    pub message: String,
    /// Which attempt it was, where it was the last of several that there could be.
    pub attempt: Option<NthAttempt>,
    /// The key's fields, where the record has them.
    pub action: Option<Action>,
}

impl PastRun {
    fn read(stored: StoredRun) -> Result<Self, StoreError> {
        let mut run = Self {
            head: stored.head()?,
            outcome: stored.outcome()?,
            annotation: stored.annotation()?,
            executed: Vec::new(),
            reused: Vec::new(),
            failed: Vec::new(),
            cells: Cells::default(),
            begun: Vec::new(),
            stored,
        };
        if run.was_stopped() {
            run.begun = run.stored.executions()?;
        }
        let mut placed = BTreeMap::new();
        let records = run.stored.records()?;
        run.stored.check_complete(run.outcome.as_ref(), &records)?;
        for record in records {
            match record {
                Record::Executed(mut executed) => {
                    if let Some(position) = executed.position {
                        let cell = PlacedCell {
                            name: executed.cell.clone(),
                            key: Some(executed.key),
                            wires: executed.wires.take(),
                            sources: Some(executed.sources.clone()),
                        };
                        placed.insert(position, cell);
                    }
                    run.executed.push(*executed);
                }
                Record::Failed {
                    cell,
                    key,
                    failure,
                    action,
                    ..
                } => run.failed.push(Failed {
                    cell,
                    key,
                    message: failure.message,
                    attempt: failure.attempt,
                    action: action.map(|action| *action),
                }),
                Record::Reused {
                    cells,
                    positions,
                    wires,
                    sources,
                } => {
                    let (mut wires, mut sources) = (wires.into_iter(), sources.into_iter());
                    for ((name, key), position) in cells.iter().zip(positions) {
                        let cell = PlacedCell {
                            name: name.clone(),
                            key: Some(*key),
                            wires: wires.next(),
                            sources: sources.next(),
                        };
                        placed.insert(position, cell);
                    }
                    run.reused.extend(cells);
                }
            }
        }
        let folder = run.manifest().and_then(Utf8Path::parent);
        run.cells = Cells::new(placed, folder.map(ToOwned::to_owned));
        Ok(run)
    }

    /// Whether it ended before all was done that it had begun.
    fn was_stopped(&self) -> bool {
        match (&self.outcome, &self.head) {
            (Some(outcome), _) => outcome.summary.interrupted || outcome.summary.halted.is_some(),
            (None, Some(head)) => head.owner.liveness() != Liveness::Alive,
            (None, None) => true,
        }
    }

    /// The actions that it began, and that may go on from a checkpoint: those that failed, or were stopped.
    pub fn unfinished(&self) -> impl Iterator<Item = ActionKey> {
        let failed = self.failed.iter().map(|failed| failed.key);
        failed.chain(self.begun.iter().map(|begun| begun.key))
    }

    /// The names of the cells that it has results of, each once, in the order of its plan; by name where its record does
    /// not tell that order.
    pub fn order(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.results().map(|(cell, _)| cell).collect();
        names.sort_by_key(|name| (self.cells.position(name), *name));
        names.dedup();
        names
    }

    /// Every cell that it has a result of, with its action: what it executed comes last.
    pub fn results(&self) -> impl Iterator<Item = (&str, ActionKey)> {
        let reused = self.reused.iter().map(|(cell, key)| (cell.as_str(), *key));
        let executed = self.executed.iter().map(|done| (done.cell.as_str(), done.key));
        reused.chain(executed)
    }

    /// The last failure of each cell that it has no result of.
    pub fn failures(&self) -> BTreeMap<&str, &Failed> {
        let mut failures: BTreeMap<&str, &Failed> = self
            .failed
            .iter()
            .map(|failed| (failed.cell.as_str(), failed))
            .collect();
        for (cell, _) in self.results() {
            failures.remove(cell);
        }
        failures
    }

    /// Its last execution of each cell that it had begun and that neither was finished nor failed, because it was interrupted,
    /// halted or killed.
    pub fn cut_short(&self) -> BTreeMap<&str, &Execution> {
        let begun = self.begun.iter();
        let mut last: BTreeMap<&str, &Execution> = begun.map(|begun| (begun.cell.as_str(), begun)).collect();
        let executed: BTreeSet<&ActionKey> = self.executed.iter().map(|executed| &executed.key).collect();
        last.retain(|_, begun| !begun.is_over && !executed.contains(&begun.key));
        last
    }

    /// The manifest that it was asked to run, absolute.
    pub fn manifest(&self) -> Option<&Utf8Path> {
        self.head.as_ref().map(|head| head.manifest.as_path())
    }

    /// When it began, where that is known.
    pub fn started(&self) -> Option<Timestamp> {
        self.head.as_ref().map(|head| head.started)
    }
}

/// Adds to runs that were killed what they executed and could not record any more: a result is there before it is recorded.
/// What they began, and what has a result since that no run recorded, is that.
fn add_unrecorded(runs: &mut [PastRun], layout: &Layout) -> Result<(), StoreError> {
    let was_killed = |run: &PastRun| run.outcome.is_none() && !run.begun.is_empty();
    if !runs.iter().any(was_killed) {
        return Ok(());
    }
    let recorded: BTreeSet<ActionKey> = runs
        .iter()
        .flat_map(|run| run.executed.iter().map(|executed| executed.key))
        .collect();
    let mut taken = BTreeSet::new();
    for run in runs.iter_mut().filter(|run| was_killed(run)) {
        for begun in run.begun.iter().rev() {
            if recorded.contains(&begun.key) || taken.contains(&begun.key) {
                continue;
            }
            let Some((result, written)) = ActionResult::with_time(layout, &begun.key)? else {
                continue;
            };
            let seconds = written.duration_since(begun.started).as_secs_f64();
            if seconds < 0.0 {
                continue;
            }
            taken.insert(begun.key);
            run.executed.push(Executed {
                cell: begun.cell.clone(),
                key: begun.key,
                started: begun.started,
                seconds,
                platform: result.platform,
                outputs: result.outputs,
                outcome: Outcome::New,
                reason: None,
                sources: BTreeMap::new(),
                action: Some(result.action),
                position: None,
                wires: None,
                log: None,
            });
        }
    }
    Ok(())
}

impl History {
    /// Reads every run. One that cannot be understood is left out, and told apart.
    pub fn read(layout: &Layout) -> Result<Self, StoreError> {
        let (mut runs, flawed) = RunStore::new(layout).read(PastRun::read)?;
        add_unrecorded(&mut runs, layout)?;
        let mut executed: BTreeMap<ActionKey, Vec<(usize, usize)>> = BTreeMap::new();
        let mut used = BTreeMap::new();
        let mut failed = BTreeMap::new();
        for (position, run) in runs.iter().enumerate() {
            for (index, done) in run.executed.iter().enumerate().rev() {
                executed.entry(done.key).or_default().push((position, index));
            }
            for (cell, key) in run.results() {
                used.entry(key).or_insert_with(|| (position, cell.to_owned()));
            }
            for (index, attempt) in run.failed.iter().enumerate().rev() {
                failed.entry(attempt.key).or_insert((position, index));
            }
        }
        Ok(Self {
            runs,
            flawed,
            executed,
            used,
            failed,
        })
    }

    /// All of it, or why it is not: for what must not overlook anything.
    pub fn complete(mut self) -> Result<Self, StoreError> {
        match self.flawed.pop() {
            Some(flawed) => Err(flawed.error),
            None => Ok(self),
        }
    }

    /// Every execution of an action, the latest first.
    pub fn executions(&self, key: &ActionKey) -> impl Iterator<Item = (&PastRun, &Executed)> {
        let found = self.executed.get(key).into_iter().flatten();
        found.map(|(run, index)| (&self.runs[*run], &self.runs[*run].executed[*index]))
    }

    /// The executions of an action whose results were put where results are found, the latest first.
    pub fn kept(&self, key: &ActionKey) -> impl Iterator<Item = (&PastRun, &Executed)> {
        self.executions(key).filter(|(_, executed)| executed.is_kept())
    }

    /// The execution whose result of an action counted when a run had it: the latest of those in runs up to that one.
    pub fn counted(&self, key: &ActionKey, until: &RunId) -> Option<(&PastRun, &Executed)> {
        self.kept(key).find(|(run, _)| run.stored.id <= *until)
    }

    /// The source file that an action took at a parameter, as the manifest of its latest execution named it.
    pub fn source(&self, key: &ActionKey, pointer: &str) -> Option<&Utf8Path> {
        self.executions(key)
            .find_map(|(_, done)| done.sources.get(pointer).map(AsRef::as_ref))
    }

    /// The last attempt at an action that failed.
    pub fn last_failure(&self, key: &ActionKey) -> Option<(&PastRun, &Failed)> {
        let (run, index) = self.failed.get(key)?;
        let run = &self.runs[*run];
        Some((run, &run.failed[*index]))
    }

    /// The latest run that began to execute each action and was interrupted, or killed, before that ended.
    pub fn cut_short(&self) -> BTreeMap<ActionKey, RunId> {
        let mut found = BTreeMap::new();
        for run in self.runs.iter().filter(|run| !run.begun.is_empty()) {
            for begun in run.cut_short().values() {
                found.entry(begun.key).or_insert_with(|| run.stored.id.clone());
            }
        }
        found
    }

    /// The latest run that had an action's result, executed or reused.
    pub fn last_use(&self, key: &ActionKey) -> Option<&PastRun> {
        self.used.get(key).map(|(run, _)| &self.runs[*run])
    }

    /// The runs that had an action's result, executed or reused, the latest first.
    pub fn uses(&self, key: &ActionKey) -> impl Iterator<Item = &PastRun> {
        let has_it = |run: &&PastRun| run.results().any(|(_, found)| found == *key);
        self.runs.iter().filter(has_it)
    }

    /// The cell that an action was in the latest run that had it.
    pub fn cell(&self, key: &ActionKey) -> Option<&str> {
        self.used.get(key).map(|(_, cell)| cell.as_str())
    }

    /// How long an action took when it was last executed.
    pub fn seconds(&self, key: &ActionKey) -> Option<f64> {
        self.kept(key).next().map(|(_, done)| done.seconds)
    }

    /// A name for an action: the cell that it was last, or else its key.
    pub fn name(&self, key: &ActionKey) -> String {
        match self.cell(key) {
            Some(cell) => cell.to_owned(),
            None => format!("action {}", key.short()),
        }
    }
}

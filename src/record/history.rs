//! What the records of a store's runs say of actions, all together.

use std::collections::BTreeMap;

use camino::Utf8Path;
use jiff::Timestamp;

use super::Annotation;
use super::model::{Executed, OutcomeFile, Record, RunFile, Wire};
use super::read::{FlawedRun, RunStore, StoredRun};
use crate::plan::CellIndex;
use crate::store::{ActionKey, Layout, StoreError};

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
    /// Positions in the plan of the cells that it has results of, by name; of those of earlier records nothing is known.
    positions: BTreeMap<String, CellIndex>,
    /// Those cells by position.
    placed: BTreeMap<CellIndex, Placed>,
    /// What a person added to it.
    pub annotation: Annotation,
}

/// A cell of a run that has a result.
struct Placed {
    key: ActionKey,
    /// Where what it took came from, input by input; `None` in records that do not tell.
    wires: Option<Vec<Wire>>,
}

/// What gave an artifact that an action took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maker {
    /// The action.
    pub action: ActionKey,
    /// Its output port.
    pub output: String,
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
            positions: BTreeMap::new(),
            placed: BTreeMap::new(),
            stored,
        };
        for record in run.stored.records()? {
            match record {
                Record::Executed(mut executed) => {
                    if let Some(position) = executed.position {
                        let placed = Placed {
                            key: executed.key,
                            wires: executed.wires.take(),
                        };
                        run.positions.insert(executed.cell.clone(), position);
                        run.placed.insert(position, placed);
                    }
                    run.executed.push(*executed);
                }
                Record::Failed {
                    cell, key, failure, ..
                } => run.failed.push(Failed {
                    cell,
                    key,
                    message: failure.message,
                }),
                Record::Reused {
                    cells,
                    positions,
                    wires,
                } => {
                    let mut wires = wires.into_iter();
                    for ((cell, key), position) in cells.iter().zip(positions) {
                        let placed = Placed {
                            key: *key,
                            wires: wires.next(),
                        };
                        run.positions.insert(cell.clone(), position);
                        run.placed.insert(position, placed);
                    }
                    run.reused.extend(cells);
                }
            }
        }
        Ok(run)
    }

    /// The names of the cells that it has results of, each once, in the order of its plan; by name where its record does
    /// not tell that order.
    pub fn order(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.cells().map(|(cell, _)| cell).collect();
        names.sort_by_key(|name| (self.positions.get(*name), *name));
        names.dedup();
        names
    }

    /// Every cell that it has a result of, with its action: what it executed comes last.
    pub fn cells(&self) -> impl Iterator<Item = (&str, ActionKey)> {
        let reused = self.reused.iter().map(|(cell, key)| (cell.as_str(), *key));
        let executed = self.executed.iter().map(|done| (done.cell.as_str(), done.key));
        reused.chain(executed)
    }

    /// What each of its cells that has a result took from where, input by input, as far as its record tells, with the cell's
    /// action; in the order of the plan, so that of cells that are one action the first never takes what the others gave.
    pub fn wiring(&self) -> impl Iterator<Item = (ActionKey, Vec<Maker>)> {
        let placed = self.placed.values();
        placed.filter_map(|placed| Some((placed.key, self.makers(placed)?)))
    }

    /// The same of one cell.
    pub fn wiring_of(&self, cell: &str) -> Option<(ActionKey, Vec<Maker>)> {
        let placed = self.placed.get(self.positions.get(cell)?)?;
        Some((placed.key, self.makers(placed)?))
    }

    fn makers(&self, placed: &Placed) -> Option<Vec<Maker>> {
        let wires = placed.wires.as_ref()?.iter();
        wires
            .map(|Wire(position, output)| {
                Some(Maker {
                    action: self.placed.get(position)?.key,
                    output: output.clone(),
                })
            })
            .collect()
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

impl History {
    /// Reads every run. One that cannot be understood is left out, and told apart.
    pub fn read(layout: &Layout) -> Result<Self, StoreError> {
        let (runs, flawed) = RunStore::new(layout).read(PastRun::read)?;
        let mut executed: BTreeMap<ActionKey, Vec<(usize, usize)>> = BTreeMap::new();
        let mut used = BTreeMap::new();
        let mut failed = BTreeMap::new();
        for (position, run) in runs.iter().enumerate() {
            for (index, done) in run.executed.iter().enumerate().rev() {
                executed.entry(done.key).or_default().push((position, index));
            }
            for (cell, key) in run.cells() {
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

    /// The latest run that had an action's result, executed or reused.
    pub fn last_use(&self, key: &ActionKey) -> Option<&PastRun> {
        self.used.get(key).map(|(run, _)| &self.runs[*run])
    }

    /// The runs that had an action's result, executed or reused, the latest first.
    pub fn uses(&self, key: &ActionKey) -> impl Iterator<Item = &PastRun> {
        let has_it = |run: &&PastRun| run.cells().any(|(_, found)| found == *key);
        self.runs.iter().filter(has_it)
    }

    /// The cell that an action was in the latest run that had it.
    pub fn cell(&self, key: &ActionKey) -> Option<&str> {
        self.used.get(key).map(|(_, cell)| cell.as_str())
    }

    /// How long an action took when it was last executed.
    pub fn seconds(&self, key: &ActionKey) -> Option<f64> {
        self.executions(key).next().map(|(_, done)| done.seconds)
    }

    /// A name for an action: the cell that it was last, or else its key.
    pub fn name(&self, key: &ActionKey) -> String {
        match self.cell(key) {
            Some(cell) => cell.to_owned(),
            None => format!("action {}", key.short()),
        }
    }
}

//! Which cells a worker executes together, and what it has been given.
//!
//! A kind says which of its cells can be one group. The first of them that begins takes along those that are ready when its
//! worker is, which is when it is known what that worker computes on. A cell waits for others of its group as long as
//! something is under way that may make them ready.

use std::collections::BTreeMap;

use provenir_api::protocol::Level;
use provenir_api::{Resources, schema};

use super::event::Event;
use super::scheduler::Scheduler;
use super::state::{Job, State};
use super::worker::{Ending, WorkerId};
use crate::plan::{CellIndex, Plan};

/// Cells that can be executed together, by number.
pub(super) type GroupId = usize;

/// What a worker has been given.
#[derive(Debug)]
pub(super) struct Assignment {
    /// The cells, in the order by which the worker calls them.
    pub(super) cells: Vec<CellIndex>,
    /// What they occupy together.
    pub(super) needs: Resources,
    /// How many cores beyond those they could still put to use.
    pub(super) spare_cores: u32,
    /// Whether the worker knows of them.
    pub(super) is_told: bool,
}

/// The group of each cell that has one.
pub(super) fn groups(plan: &Plan) -> Vec<Option<GroupId>> {
    let mut known = BTreeMap::new();
    let group = |(index, cell): (CellIndex, &crate::plan::Cell)| {
        let group = cell.parameters.group.as_ref()?;
        if cell.parameters.exclusive {
            return None;
        }
        // Where a cell has a time limit, the end of its worker must not be that of others.
        if plan.stage_of(index).attempts.timeout.is_some() {
            return None;
        }
        let next = known.len();
        let mut common = cell.parameters.full.clone();
        for own in group.own {
            schema::remove(&mut common, own);
        }
        let name = (plan.stage_of(index).kind.name(), common.to_string());
        Some(*known.entry(name).or_insert(next))
    };
    plan.cells.iter().enumerate().map(group).collect()
}

impl Scheduler<'_, '_> {
    /// The group of a cell that gains by company.
    fn group_of(&self, cell: CellIndex) -> Option<GroupId> {
        (self.most_together(cell) > 1)
            .then(|| self.groups.get(cell).copied().flatten())
            .flatten()
    }

    /// How many cells, this one included, gain by being executed together; as far as is known.
    fn most_together(&self, cell: CellIndex) -> usize {
        let group = self.plan.cells[cell].parameters.group.as_ref();
        let Some(group) = group.filter(|_| !self.alone.contains(&cell)) else {
            return 1;
        };
        let most = match self.accelerated {
            Some(true) => group.most_accelerated,
            Some(false) => group.most,
            None => group.most.max(group.most_accelerated),
        };
        most as usize
    }

    /// Whether a worker does not know yet of cells of a group that it has: who is ready joins them instead of beginning.
    fn is_forming(&self, group: GroupId) -> bool {
        let mut untold = self.busy.values().filter(|assignment| !assignment.is_told);
        untold.any(|assignment| {
            assignment
                .cells
                .first()
                .is_some_and(|cell| self.group_of(*cell) == Some(group))
        })
    }

    /// Whether a ready cell should not begin yet: it can join others that are about to, or may be joined by cells that are not
    /// ready. `incomplete` holds what is known of groups already.
    pub(super) fn is_held(&self, cell: CellIndex, incomplete: &mut BTreeMap<GroupId, bool>) -> Held {
        let Some(group) = self.group_of(cell) else {
            return Held::No;
        };
        if self.is_forming(group) {
            return Held::ByWorker;
        }
        let is_incomplete = *incomplete.entry(group).or_insert_with(|| {
            let of_group = |cell: &CellIndex| self.groups[*cell] == Some(group);
            let ready = self.ready.iter().filter(|cell| of_group(cell)).count();
            ready < self.most_together(cell)
                && (0..self.states.len())
                    .any(|cell| of_group(&cell) && matches!(self.states[cell], State::Waiting(_)))
        });
        if is_incomplete { Held::ByOthers } else { Held::No }
    }

    /// Has the ready cells of its group join the cells of a worker that is about to be told.
    pub(super) fn gather(&mut self, worker: WorkerId) {
        let Some(first) = self
            .busy
            .get(&worker)
            .and_then(|assignment| assignment.cells.first().copied())
        else {
            return;
        };
        let (Some(group), Some(declared)) = (self.group_of(first), &self.plan.cells[first].parameters.group)
        else {
            return;
        };
        let ready: Vec<CellIndex> = self
            .ready
            .iter()
            .copied()
            .filter(|cell| self.group_of(*cell) == Some(group))
            .collect();
        let most = self.most_together(first);
        // Where cores compute, each of those that are free gets its part.
        let parts = match self.accelerated {
            Some(true) => 1,
            _ => 1 + self.budget.free_cores() as usize,
        };
        let size = most.min((1 + ready.len()).div_ceil(parts));
        let memory = declared.memory;
        for cell in ready {
            let Some(assignment) = self.busy.get(&worker) else {
                return;
            };
            if assignment.cells.len() >= size || self.is_stopping() {
                return;
            }
            let State::Ready(key) = self.states[cell] else {
                continue;
            };
            if !self.budget.take_memory(memory) {
                return;
            }
            self.ready.remove(&cell);
            match self.begin_cell(cell, key, Some(worker)) {
                Ok(Some(_)) => {
                    if let Some(assignment) = self.busy.get_mut(&worker) {
                        assignment.cells.push(cell);
                        assignment.needs.memory += memory;
                    }
                }
                Ok(None) => self.budget.give_back(Resources { cores: 0, memory }),
                Err(failure) => {
                    self.budget.give_back(Resources { cores: 0, memory });
                    self.halt(failure);
                }
            }
        }
    }

    /// The cell that a worker calls by this number, while it has it.
    pub(super) fn assigned(&self, worker: WorkerId, place: usize) -> Option<CellIndex> {
        let cell = *self.busy.get(&worker)?.cells.get(place)?;
        self.is_with(cell, worker).then_some(cell)
    }

    /// The first of the cells that a worker still has.
    pub(super) fn first_assigned(&self, worker: WorkerId) -> Option<CellIndex> {
        let cells = &self.busy.get(&worker)?.cells;
        cells.iter().copied().find(|cell| self.is_with(*cell, worker))
    }

    fn is_with(&self, cell: CellIndex, worker: WorkerId) -> bool {
        self.jobs.get(&cell).is_some_and(|job| job.worker == worker)
    }

    /// Takes one of its cells from a worker, which is free when it has none left.
    pub(super) fn release(&mut self, worker: WorkerId, place: usize) -> Option<(CellIndex, Job)> {
        let cell = self.assigned(worker, place)?;
        let job = self.jobs.remove(&cell)?;
        if self.first_assigned(worker).is_none()
            && let Some(assignment) = self.busy.remove(&worker)
        {
            self.budget.give_back(assignment.needs);
        }
        Some((cell, job))
    }

    /// Takes all its cells from a worker.
    pub(super) fn release_all(&mut self, worker: WorkerId) -> Vec<(CellIndex, Job)> {
        let places = self
            .busy
            .get(&worker)
            .map_or(0, |assignment| assignment.cells.len());
        (0..places)
            .filter_map(|place| self.release(worker, place))
            .collect()
    }

    /// The worker that executed several cells has ended: which of them is the reason shows when each is executed alone.
    pub(super) fn divide(&mut self, lost: Vec<(CellIndex, Job)>, ending: &Ending) {
        let together = lost.len();
        for (cell, job) in lost {
            self.alone.insert(cell);
            if !self.is_stopping() {
                self.voice.say(&Event::CellLog {
                    cell: self.cell(cell),
                    level: Level::Warning,
                    message: &format!(
                        "the worker that executed {together} cells together {}: each of them is executed again, alone",
                        ending.phrase
                    ),
                });
            }
            self.states[cell] = State::Ready(job.key);
            self.ready.insert(cell);
        }
    }
}

/// Why a ready cell does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    No,
    /// It is going to join others whose worker is loading.
    ByWorker,
    /// Others may become ready that can join it.
    ByOthers,
}

use std::collections::{BTreeMap, BTreeSet};

use provenir_api::protocol::{Blame, Level};

use crate::exec::Event;
use crate::number::grouped;
use crate::plan::{CellIndex, Plan};

/// So many failed cells are named where they block others.
const NAMED: usize = 3;

/// Keeps from a person what says nothing new: what another cell said in the same words, a cell that another one's
/// failure blocks, and what follows from the failure that stopped the run. All of it is counted.
#[derive(Default)]
pub(super) struct Repeats {
    /// By stage, the cells that are blocked, and the failed cells that block them.
    blocked: BTreeMap<usize, (BTreeSet<CellIndex>, BTreeSet<CellIndex>)>,
    /// The cells that gave a notice or a warning, by its words.
    told: BTreeMap<(Level, String), BTreeSet<CellIndex>>,
    halted: bool,
}

impl Repeats {
    /// Whether an event says nothing new.
    pub(super) fn hides(&mut self, event: &Event<'_>) -> bool {
        match event {
            Event::CellLog {
                cell,
                level: level @ (Level::Notice | Level::Warning),
                message,
            } => {
                let cells = self.told.entry((*level, (*message).to_owned())).or_default();
                cells.insert(cell.index);
                cells.len() > 1
            }
            Event::RunHalted { failure } => {
                self.halted = failure.blame == Blame::Environment;
                false
            }
            Event::CellFailed { failure, .. } => self.halted && failure.blame == Blame::Environment,
            Event::CellBlocked { cell, by } => {
                if !self.halted {
                    let stage = cell.plan.cells[cell.index].stage;
                    let (blocked, failed) = self.blocked.entry(stage).or_default();
                    blocked.insert(cell.index);
                    failed.insert(by.index);
                }
                true
            }
            _ => false,
        }
    }

    /// What is left to say at the end: which cells are blocked, stage by stage, and how many more cells said what one was heard with.
    pub(super) fn rest(&self, plan: &Plan, quiet: bool) -> Vec<String> {
        let blocked = self.blocked.iter().map(|(stage, (cells, failed))| {
            let who = match cells.first() {
                Some(cell) if cells.len() == 1 => format!("{} needs", plan.name(*cell)),
                _ => format!(
                    "{} cells of {} need",
                    grouped(cells.len()),
                    plan.stages[*stage].name
                ),
            };
            let mut names: Vec<String> = failed.iter().take(NAMED).map(|cell| plan.name(*cell)).collect();
            if failed.len() > NAMED {
                names.push(format!("{} more", grouped(failed.len() - NAMED)));
            }
            let last = names.pop().unwrap_or_default();
            let names = if names.is_empty() {
                last
            } else {
                format!("{} or {last}", names.join(", "))
            };
            format!("blocked: {who} {names}, which failed")
        });
        let told = self
            .told
            .iter()
            .filter(|((level, _), _)| !quiet || *level == Level::Warning);
        let repeated = told.filter_map(|((level, message), cells)| {
            let more = cells.len() - 1;
            let plural = if more == 1 { "" } else { "s" };
            let warning = if *level == Level::Warning { "warning: " } else { "" };
            (more > 0).then(|| format!("{warning}{} more cell{plural}: {message}", grouped(more)))
        });
        blocked.chain(repeated).collect()
    }
}

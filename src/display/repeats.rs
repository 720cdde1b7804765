use std::collections::{BTreeMap, BTreeSet};

use provenir_api::protocol::{Blame, Level};

use super::sentence::grouped;
use crate::exec::Event;
use crate::plan::CellIndex;

/// Keeps from a person what says nothing new: a warning that another cell gave in the same words, and what follows from
/// the failure that stopped the run. All of it is counted.
#[derive(Default)]
pub(super) struct Repeats {
    /// The cells that gave a warning, by its words.
    warnings: BTreeMap<String, BTreeSet<CellIndex>>,
    halted: bool,
}

impl Repeats {
    /// Whether an event says nothing new.
    pub(super) fn hides(&mut self, event: &Event<'_>) -> bool {
        match event {
            Event::CellLog {
                cell,
                level: Level::Warning,
                message,
            } => {
                let cells = self.warnings.entry((*message).to_owned()).or_default();
                cells.insert(cell.index);
                cells.len() > 1
            }
            Event::RunHalted { failure } => {
                self.halted = failure.blame == Blame::Environment;
                false
            }
            Event::CellFailed { failure, .. } => self.halted && failure.blame == Blame::Environment,
            Event::CellBlocked { .. } => self.halted,
            _ => false,
        }
    }

    /// What is left to say at the end: how many more cells gave each warning.
    pub(super) fn rest(&self) -> Vec<String> {
        self.warnings
            .iter()
            .filter_map(|(message, cells)| {
                let more = cells.len() - 1;
                let plural = if more == 1 { "" } else { "s" };
                (more > 0).then(|| format!("warning: {} more cell{plural}: {message}", grouped(more)))
            })
            .collect()
    }
}

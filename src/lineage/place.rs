use serde::Serialize;

use crate::plan::CellIndex;
use crate::record::{Cells, Wire};
use crate::store::ActionKey;

/// A cell that is an action. Cells that are one action share a result, and differ in where what they took came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NodeId {
    /// What it is called; absent where no record names it.
    #[serde(rename = "from_cell")]
    pub cell: Option<String>,
    /// The action.
    #[serde(rename = "from")]
    pub action: ActionKey,
}

/// A cell among others.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Those of its run, or of its plan.
    pub cells: &'a Cells,
    /// Where it is.
    pub position: CellIndex,
}

impl<'a> Place<'a> {
    /// The first of these names under which a cell is that action, where it is known what that takes from where.
    pub fn of<const N: usize>(cells: &'a Cells, key: &ActionKey, names: [Option<&str>; N]) -> Option<Self> {
        let position = names
            .into_iter()
            .flatten()
            .find_map(|name| cells.find(name, key))?;
        Some(Self { cells, position }).filter(|place| place.wires().is_some())
    }

    /// The actions that gave what it takes, input by input, where all are known.
    pub fn makers(self) -> Option<Vec<ActionKey>> {
        let wires = self.wires()?.iter();
        wires.map(|wire| self.cells.get(wire.0)?.key).collect()
    }

    /// Its name.
    pub fn name(self) -> &'a str {
        self.cells.get(self.position).map_or("", |cell| &cell.name)
    }

    /// Where what it takes comes from, input by input, where that is known.
    pub fn wires(self) -> Option<&'a [Wire]> {
        self.cells.get(self.position)?.wires.as_deref()
    }

    /// What a wire comes from.
    #[must_use]
    pub fn origin(self, wire: &Wire) -> Self {
        Self {
            position: wire.0,
            ..self
        }
    }

    /// The cell that a wire comes from.
    pub(super) fn maker(self, wire: &Wire) -> Option<NodeId> {
        let cell = self.cells.get(wire.0)?;
        Some(NodeId {
            cell: Some(cell.name.clone()),
            action: cell.key?,
        })
    }

    /// The other cells that are the same action.
    pub(super) fn beside(self, key: &ActionKey) -> impl Iterator<Item = &'a str> {
        let others = self
            .cells
            .of(key)
            .iter()
            .filter(move |other| **other != self.position);
        others.filter_map(move |other| Some(self.cells.get(*other)?.name.as_str()))
    }
}

//! Which cells have which results, and what each took from where: equal results are one action, but not one cell.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use super::model::Wire;
use crate::plan::{CellIndex, normal};
use crate::store::ActionKey;

/// The cells of a run that have results, as far as its record tells where they stand in its plan; or those of a plan.
#[derive(Default)]
pub struct Cells {
    by_position: BTreeMap<CellIndex, PlacedCell>,
    by_name: BTreeMap<String, CellIndex>,
    /// The first cells of each action come first: of cells that are one action the first never takes what the others gave.
    by_action: BTreeMap<ActionKey, Vec<CellIndex>>,
    /// What the paths of source files are relative to.
    folder: Option<Utf8PathBuf>,
}

/// A cell in its plan.
#[derive(Clone, Debug)]
pub struct PlacedCell {
    /// Its name.
    pub name: String,
    /// Its action; absent while that depends on what has to run first.
    pub key: Option<ActionKey>,
    /// Where what it takes comes from, in the order of its action's inputs; `None` in records that do not tell.
    pub wires: Option<Vec<Wire>>,
    /// Source files that it takes, as the manifest names them, by the JSON pointer of the parameter; `None` in records that
    /// do not tell.
    pub sources: Option<BTreeMap<String, Utf8PathBuf>>,
}

impl Cells {
    /// Cells by position, of a plan whose paths are relative to `folder`.
    pub fn new(by_position: BTreeMap<CellIndex, PlacedCell>, folder: Option<Utf8PathBuf>) -> Self {
        let mut by_name = BTreeMap::new();
        let mut by_action: BTreeMap<ActionKey, Vec<CellIndex>> = BTreeMap::new();
        for (position, cell) in &by_position {
            by_name.insert(cell.name.clone(), *position);
            if let Some(key) = cell.key {
                by_action.entry(key).or_default().push(*position);
            }
        }
        Self {
            by_position,
            by_name,
            by_action,
            folder,
        }
    }

    /// The cells by position.
    pub fn iter(&self) -> impl Iterator<Item = (CellIndex, &PlacedCell)> {
        let cells = self.by_position.iter();
        cells.map(|(position, cell)| (*position, cell))
    }

    /// The cell at a position.
    pub fn get(&self, position: CellIndex) -> Option<&PlacedCell> {
        self.by_position.get(&position)
    }

    /// Where the cell of this name is.
    pub fn position(&self, name: &str) -> Option<CellIndex> {
        self.by_name.get(name).copied()
    }

    /// Whether a cell is of this stage.
    pub fn has_stage(&self, stage: &str) -> bool {
        let varied = format!("{stage}[");
        self.by_name.contains_key(stage)
            || self
                .by_name
                .range(varied.clone()..)
                .next()
                .is_some_and(|(name, _)| name.starts_with(&varied))
    }

    /// Where the cell of this name is that is this action.
    pub fn find(&self, name: &str, key: &ActionKey) -> Option<CellIndex> {
        let position = self.position(name)?;
        (self.get(position)?.key == Some(*key)).then_some(position)
    }

    /// Where the cells are that are this action, in the order of the plan.
    pub fn of(&self, key: &ActionKey) -> &[CellIndex] {
        self.by_action.get(key).map_or(&[], Vec::as_slice)
    }

    /// The actions of its cells.
    pub fn actions(&self) -> impl Iterator<Item = &ActionKey> {
        self.by_action.keys()
    }

    /// The absolute path of a source file that a cell takes.
    pub fn source(&self, position: CellIndex, pointer: &str) -> Option<Utf8PathBuf> {
        let path = self.source_as_named(position, pointer)?;
        Some(normal(&self.folder.as_ref()?.join(path)))
    }

    /// The same as the manifest names it.
    pub fn source_as_named(&self, position: CellIndex, pointer: &str) -> Option<&Utf8Path> {
        let sources = self.get(position)?.sources.as_ref()?;
        sources.get(pointer).map(AsRef::as_ref)
    }
}

use std::sync::Arc;

use camino::Utf8PathBuf;
use provenir_api::{AnyKind, Label, Resolved};

/// Position of a cell in [`Plan::cells`].
pub type CellIndex = usize;

/// A manifest expanded over its axes.
///
/// Invariant: stages and cells stand in topological order (every producer before its consumers), in an order that
/// depends on the manifest's content alone; the cells of a stage are contiguous.
pub struct Plan {
    /// The manifest's `pipeline.name`.
    pub pipeline: String,
    /// The manifest, absolute.
    pub manifest: Utf8PathBuf,
    /// The folder that source and publish paths are relative to: the manifest's.
    pub folder: Utf8PathBuf,
    /// In topological order.
    pub stages: Vec<Stage>,
    /// In topological order, stage by stage.
    pub cells: Vec<Cell>,
}

/// A node of the manifest's graph.
pub struct Stage {
    /// Name in the manifest.
    pub name: String,
    /// What it does.
    pub kind: Arc<dyn AnyKind>,
    /// Axes that it varies over, in the manifest's order.
    pub axes: Vec<Arc<str>>,
    /// Its cells in [`Plan::cells`].
    pub cells: std::ops::Range<CellIndex>,
}

/// One stage at one point of its axes: the unit that is keyed, cached and recorded.
pub struct Cell {
    /// Position of its stage in [`Plan::stages`].
    pub stage: usize,
    /// Its value of each of the stage's axes.
    pub labels: Vec<Label>,
    /// Parameters with axes substituted and overrides applied; shared by cells that differ only in axes that their
    /// own parameters do not name.
    pub parameters: Arc<Resolved>,
    /// Artifacts it takes: by port in the kind's order, then by gathered labels (sorted by axis name, then value),
    /// then by source.
    pub inputs: Vec<Input>,
    /// Named copies of its outputs.
    pub publish: Vec<Publish>,
}

/// One artifact that a cell takes.
pub struct Input {
    /// The consumer's port.
    pub port: &'static str,
    /// The cell that produces it.
    pub producer: CellIndex,
    /// The producer's output port.
    pub output: &'static str,
    /// Values of the axes gathered at a `many` port, sorted by axis name.
    pub gathered: Vec<(Arc<str>, Label)>,
    /// How the manifest names the producer: `stage` or `stage.port`.
    pub source: Arc<str>,
}

/// A named copy of an output, relative to the manifest's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    /// The output port.
    pub port: &'static str,
    /// Relative path that stays below the manifest's folder.
    pub path: Utf8PathBuf,
}

impl Plan {
    /// The cell's name for people: `policy[epsilon=0.1, method=rbc]`.
    pub fn name(&self, cell: CellIndex) -> String {
        let cell = &self.cells[cell];
        let stage = &self.stages[cell.stage];
        if stage.axes.is_empty() {
            return stage.name.clone();
        }
        let labels: Vec<String> = stage
            .axes
            .iter()
            .zip(&cell.labels)
            .map(|(axis, label)| format!("{axis}={label}"))
            .collect();
        format!("{}[{}]", stage.name, labels.join(", "))
    }

    /// The stage of a cell.
    pub fn stage_of(&self, cell: CellIndex) -> &Stage {
        &self.stages[self.cells[cell].stage]
    }
}

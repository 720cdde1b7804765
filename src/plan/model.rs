use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use provenir_api::port::OutputPort;
use provenir_api::{AnyKind, Label, Resolved, Source};
use serde_json::Value;

use super::sources::RememberedSources;
use crate::manifest::Diagnostics;

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
    /// The manifests that it extends, absolute: the nearest first.
    pub bases: Vec<Utf8PathBuf>,
    /// The folder that source and publish paths are relative to: the manifest's.
    pub folder: Utf8PathBuf,
    /// The numeric platform, where the person asks for it to count: it is in every key.
    pub platform: Option<String>,
    /// In topological order.
    pub stages: Vec<Stage>,
    /// In topological order, stage by stage.
    pub cells: Vec<Cell>,
    /// Source files that are not there, with what they held: of a plan by which nothing is executed.
    pub gone: RememberedSources,
    /// The manifest after `extends`, the profile and the command line, in the language of manifests.
    pub resolved: Value,
    /// What is odd, but keeps nothing from running.
    pub warnings: Diagnostics,
}

/// A node of the manifest's graph.
pub struct Stage {
    /// Name in the manifest.
    pub name: String,
    /// File and line where it is declared; absent where no manifest declares it.
    pub place: Option<String>,
    /// What it does.
    pub kind: Arc<dyn AnyKind>,
    /// What its cells give.
    pub outputs: Arc<[OutputPort]>,
    /// Axes that it varies over, in the manifest's order.
    pub axes: Vec<Arc<str>>,
    /// What is wired to its ports, in the kind's order of ports.
    pub inputs: Vec<StageInput>,
    /// How its cells are executed; not in any key.
    pub attempts: Attempts,
    /// Whether some input of it is true but not repeatable (a volatile port, or whatever lies downstream of one).
    pub volatile: bool,
    /// Its cells in [`Plan::cells`].
    pub cells: std::ops::Range<CellIndex>,
}

/// How long a cell may take, and how often it may try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// After this time a cell that still runs is stopped, and has failed.
    pub timeout: Option<Duration>,
    /// How often a cell that failed is executed once more.
    pub retries: u32,
}

/// One producer at a port of a stage.
#[derive(Clone, Debug)]
pub struct StageInput {
    /// The consumer's port.
    pub port: &'static str,
    /// Position of the producer in [`Plan::stages`].
    pub producer: usize,
    /// The producer's output port.
    pub output: &'static str,
    /// Axes that only the producer has, gathered here; sorted by name.
    pub gathered: Vec<Arc<str>>,
    /// The slice of the producer that is taken.
    pub at: Vec<(Arc<str>, Label)>,
    /// As in [`Input::source`].
    pub source: Arc<str>,
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
    pub gathered: Arc<[(Arc<str>, Label)]>,
    /// In a union, what the manifest calls this member: its `as`, or else `stage` or `stage.port` as written. A port
    /// that takes one producer names it after itself, so that renaming a stage changes nothing.
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
        format!("{}[{}]", stage.name, point(stage.axes.iter().zip(&cell.labels)))
    }

    /// The absolute path of a source file.
    pub fn source_path(&self, source: &Source) -> Utf8PathBuf {
        self.folder.join(&source.path)
    }

    /// The stage of a cell.
    pub fn stage_of(&self, cell: CellIndex) -> &Stage {
        &self.stages[self.cells[cell].stage]
    }
}

/// A point of axes for people: `epsilon=0.1, method=rbc`.
pub(crate) fn point<'a, A: fmt::Display + 'a>(labels: impl Iterator<Item = (A, &'a Label)>) -> String {
    labels
        .map(|(axis, label)| format!("{axis}={}", shown(label)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A value as names of cells have it: in quotes where it holds what separates values.
fn shown(label: &Label) -> String {
    let text = label.to_string();
    let is_plain = !text.is_empty() && text.trim() == text && !text.contains([',', '[', ']', '=', '"']);
    if is_plain {
        text
    } else {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

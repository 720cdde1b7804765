//! What the command and a worker process say to each other: one JSON value a line, commands on the worker's standard
//! input, messages on its standard output.
//!
//! A worker greets with [`FromWorker::Hello`]; the command refuses one of another build. A worker whose input closes
//! exits at once: it cannot outlive the process that would commit its results.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Digest, Label};

/// Raised when a message changes its shape.
pub const PROTOCOL: u32 = 3;

/// From the command to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToWorker {
    /// Execute a cell, or several of one group together; each is answered by [`FromWorker::Done`] or [`FromWorker::Failed`].
    Execute(Vec<Execute>),
    /// Stop what runs at its next check; every cell answers `Failed` with `cancelled`.
    Cancel,
}

/// A cell to execute.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Execute {
    /// The cell's name for people: `policy[epsilon=0.1, method=rbc]`.
    pub cell: String,
    /// The kind that executes it.
    pub kind: String,
    /// All parameters, defaults filled in, source files as absolute paths.
    pub parameters: Value,
    /// Artifacts at the input ports, in the order in which they enter the action key.
    pub inputs: Vec<InputArtifact>,
    /// What the source files among the parameters must hold, by JSON pointer.
    pub sources: BTreeMap<String, Digest>,
    /// The action key, for kinds that write it into their output; opaque to them.
    pub action_key: String,
    /// Where to write outputs: exists, is empty, on the store's file system.
    pub scratch: Utf8PathBuf,
    /// Where the cell keeps checkpoints between attempts; made when first used.
    pub partial: Utf8PathBuf,
    /// How many cores the cell may keep busy, at least 1. Nothing that it gives may depend on them.
    pub cores: u32,
}

/// An artifact at an input port.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InputArtifact {
    /// The consumer's port.
    pub port: String,
    /// Values of the gathered axes; empty at a port that takes one.
    pub labels: BTreeMap<String, Label>,
    /// Which member of a union it comes from (`reward`, `demos.episodes`); set for every input, used where several are united.
    pub source: String,
    /// Where its bytes are.
    pub path: Utf8PathBuf,
    /// What its bytes must digest to.
    pub object: Digest,
    /// Digest of its values.
    pub content: Digest,
    /// `parquet`, or the extension of a file.
    pub extension: String,
}

/// From a worker to the command. A number says which of the cells that it was told to execute together, from 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromWorker {
    /// The first message.
    Hello(Hello),
    /// How far a running cell is.
    Progress(usize, Progress),
    /// A line for a cell's log, and for the person where it warns.
    Log(usize, Log),
    /// A cell's outputs are complete in its scratch folder.
    Done(usize, Done),
    /// A cell failed; nothing of it counts.
    Failed(usize, Failed),
}

/// Who a worker is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] it speaks.
    pub protocol: u32,
    /// Identity of the sources it was built from.
    pub build: String,
    /// Kinds it executes.
    pub kinds: Vec<String>,
    /// Whether it computes on an accelerator where a cell leaves that open. Absent from the greeting of other builds, which
    /// must be understood for them to be refused as what they are.
    #[serde(default)]
    pub accelerated: bool,
    /// The numeric platform: processor, device, library versions; recorded with every result.
    pub platform: BTreeMap<String, String>,
}

/// How far a cell is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Units done.
    pub done: u64,
    /// Units in all, where known.
    pub total: Option<u64>,
    /// What is counted (`epochs`, `episodes`, `samples`).
    pub unit: String,
    /// Numbers worth showing, by name (`loss`, `return`).
    pub metrics: BTreeMap<String, f64>,
}

/// Importance of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// For the log file only.
    Info,
    /// Shown to the person, too: good to know while one waits.
    Notice,
    /// Shown to the person, also to one who wants to hear of trouble only.
    Warning,
}

/// A line of a cell's log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Log {
    /// Importance.
    pub level: Level,
    /// The line.
    pub message: String,
}

/// A finished cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Done {
    /// One for each output port of the kind.
    pub outputs: Vec<OutputArtifact>,
}

/// An output in the scratch folder, hashed while it was written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutputArtifact {
    /// The producer's port.
    pub port: String,
    /// Where its bytes are, below the scratch folder.
    pub path: Utf8PathBuf,
    /// Digest of its values.
    pub content: Digest,
    /// Digest of its bytes.
    pub object: Digest,
    /// Length in bytes.
    pub size: u64,
    /// Number of rows, for a table.
    pub rows: Option<u64>,
    /// `parquet`, or the extension of a file.
    pub extension: String,
}

/// Whose fault a failure is; decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blame {
    /// The computation could not succeed with what it was given.
    Stage,
    /// Store, disk or device.
    Environment,
    /// A bug of ours.
    Us,
    /// Nobody's: it was asked to stop.
    Cancelled,
}

/// A failed cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failed {
    /// Whose fault.
    pub blame: Blame,
    /// What happened.
    pub message: String,
    /// What to do next, where that is known.
    pub help: Option<String>,
    /// The object that was damaged, or was not there, where that is the reason.
    pub damaged: Option<Digest>,
}

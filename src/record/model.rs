use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use provenir_api::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Git, RunId};
use crate::exec::{Due, Failure, Summary};
use crate::plan::CellIndex;
use crate::store::{Action, ActionKey, Artifact, Outcome, Owner};

/// Format of the files of a run. 1 - the first.
pub const FORMAT: u32 = 1;

/// `run.json`: what was asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunFile {
    /// [`FORMAT`].
    pub format: u32,
    /// The run.
    pub id: RunId,
    /// When it began.
    pub started: Timestamp,
    /// The pipeline's name.
    pub pipeline: String,
    /// The manifest, absolute.
    pub manifest: Utf8PathBuf,
    /// The manifest after `extends`, the profile and the command line.
    pub resolved: Value,
    /// The command line.
    pub command: Vec<String>,
    /// What ran it.
    pub program: Program,
    /// Where.
    pub host: Host,
    /// The folder that the store lay in, absolute. Absent in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Utf8PathBuf>,
    /// The process, so that it can be told whether it still runs.
    pub owner: Owner,
    /// The repository that the manifest lies in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<Git>,
}

/// What ran a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    /// Version of Provenir.
    pub version: String,
    /// Identity of its sources.
    pub build: String,
}

/// Where a run ran.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Host {
    /// Name.
    pub name: String,
    /// Operating system and its version.
    pub system: String,
    /// Processor architecture.
    pub architecture: String,
    /// Processor cores that could be used.
    pub cores: u32,
    /// Memory in MiB.
    pub memory: u64,
}

impl Host {
    /// This one.
    pub fn current() -> Self {
        let uname = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        Self {
            name: text(uname.nodename()),
            system: format!("{} {}", text(uname.sysname()), text(uname.release())),
            architecture: text(uname.machine()),
            cores: crate::exec::cores(),
            memory: crate::exec::memory(),
        }
    }
}

/// Where an artifact that a cell took came from: the position in the plan of the cell that gave it, and its output there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wire(pub CellIndex, pub String);

/// A cell that was executed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Executed {
    /// The cell, as the manifest named it.
    pub cell: String,
    /// Its action.
    pub key: ActionKey,
    /// When it began.
    pub started: Timestamp,
    /// How long it took.
    pub seconds: f64,
    /// The numeric platform.
    pub platform: BTreeMap<String, String>,
    /// What it gave; of an earlier version's execution whose outcome is that it differs, what the store had.
    pub outputs: Vec<Artifact>,
    /// How that relates to what the store had.
    pub outcome: Outcome,
    /// Why it had to run. Absent in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Due>,
    /// Source files that it took, as the manifest names them: by the JSON pointer of the parameter. Their content is in
    /// `action`. Absent in earlier records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, Utf8PathBuf>,
    /// The key's fields, so that it can be said what differs from it even when the result is not kept any more. Absent
    /// in records of the first days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// Its position in the plan. Absent in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// Where what it took came from, in the order of its action's inputs: equal content does not tell. Absent in earlier
    /// records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wires: Option<Vec<Wire>>,
    /// Its log below the run's folder, where it said anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Utf8PathBuf>,
}

impl Executed {
    /// Whether its result was put where results are found: not, where the store had another.
    pub fn is_kept(&self) -> bool {
        !matches!(self.outcome, Outcome::Measured { .. } | Outcome::Diverged { .. })
    }
}

/// A line of `records.jsonl`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// A cell that was executed.
    Executed(Box<Executed>),
    /// A cell that failed; a line for each attempt.
    Failed {
        /// The cell, as the manifest named it.
        cell: String,
        /// Its action.
        key: ActionKey,
        /// How long it took.
        seconds: f64,
        /// Why.
        failure: Failure,
        /// The key's fields; of the last attempt only. Absent in earlier records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<Box<Action>>,
        /// Source files that it took, as in [`Executed::sources`]; of the last attempt only. Absent in earlier records.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        sources: BTreeMap<String, Utf8PathBuf>,
        /// Where what it took came from, as in [`Executed::wires`]; of the last attempt only. Absent in earlier records.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wires: Option<Vec<Wire>>,
        /// Its log below the run's folder, where it said anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log: Option<Utf8PathBuf>,
    },
    /// Cells whose results were there: the name and the action of each. The first such line is written before anything is
    /// executed, so that a collection beside the run knows what it relies on.
    Reused {
        /// Cells by name.
        cells: Vec<(String, ActionKey)>,
        /// The position of each in the plan. Absent in earlier records.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        positions: Vec<usize>,
        /// Where what each took came from. Absent in earlier records.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        wires: Vec<Vec<Wire>>,
        /// Source files that each took, as in [`Executed::sources`]. Absent where none took any, and in earlier records.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sources: Vec<BTreeMap<String, Utf8PathBuf>>,
    },
}

/// `outcome.json`: how a run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutcomeFile {
    /// [`FORMAT`].
    pub format: u32,
    /// When it ended.
    pub ended: Timestamp,
    /// What happened in all.
    pub summary: Summary,
    /// How much its records hold: cells executed and reused. Less is what was cut off since. Absent in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// The named copies that were in their places then, those that had been there before included. Absent in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Vec<PublishedCopy>>,
    /// Digest of what was asked for and of the action of every cell, where all have results: runs that agree in it had the
    /// same. Absent in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Digest>,
}

/// A named copy of what a cell gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedCopy {
    /// The cell, as the manifest named it.
    pub cell: String,
    /// Its output port.
    pub port: String,
    /// Where, as the manifest named it: relative to its folder.
    pub path: Utf8PathBuf,
}

/// How much the records of a run hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Executions.
    pub executed: usize,
    /// Cells found in the store.
    pub reused: usize,
}

/// Whether a command line is that of a render: a run of one cell, which no manifest has.
pub fn is_render(command: &[String]) -> bool {
    command.get(1).is_some_and(|word| word == "render")
}

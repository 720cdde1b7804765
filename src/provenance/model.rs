use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use provenir_api::{Digest, Label};
use serde_json::Value;

use super::identity::hex;
use crate::record::{Git, Host, Program, RunId};
use crate::store::ActionKey;

/// All that an export tells. Positions (`usize`) are into the lists of this struct.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// What it is of, for people.
    pub title: String,
    /// The runs in which its cells were executed, the earliest first.
    pub runs: Vec<Run>,
    /// The run that the export is of.
    pub main: usize,
    /// Activities, producers before consumers; those that failed come last.
    pub cells: Vec<Cell>,
    /// Files that cells gave, each once: those of the cells that are exported first, in the order in which cells gave them.
    pub artifacts: Vec<Artifact>,
    /// Files from outside that cells took, each once.
    pub sources: Vec<Source>,
    /// What the export is about: a cell, and one of its outputs.
    pub subjects: Vec<(usize, usize)>,
    /// Cells of the run of which neither result nor record says what they were.
    pub unknown: Vec<String>,
}

/// One invocation over one manifest.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its name.
    pub id: RunId,
    /// The pipeline's name.
    pub pipeline: String,
    /// The manifest, absolute.
    pub manifest: Utf8PathBuf,
    /// The manifest after `extends`, the profile and the command line.
    pub resolved: Value,
    /// That as TOML. The file of the manifest holds another text: digests of this one are not told as of that file.
    pub text: String,
    /// The file that `text` makes.
    pub file: File,
    /// The command line.
    pub command: Vec<String>,
    /// What ran it.
    pub program: Program,
    /// Where.
    pub host: Host,
    /// The repository that the manifest lay in.
    pub git: Option<Git>,
    /// When it began.
    pub started: Timestamp,
    /// When it ended: the last that is known of it where it was killed.
    pub ended: Timestamp,
    /// How it ended.
    pub ending: Ending,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It did all that it should.
    Done,
    /// Something failed.
    Failed,
    /// It was stopped.
    Interrupted,
    /// It was killed, and could not say how.
    Killed,
}

/// A cell: a stage at one point of its axes, and what it did.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What it is referred to by: the digits of its key, followed by its run where another cell of the export has that key.
    pub id: String,
    /// Its action.
    pub key: ActionKey,
    /// Its name in the run that the export is of, or else where it was last.
    pub name: String,
    /// Other names that the same action had in that run.
    pub also: Vec<String>,
    /// Its stage.
    pub stage: String,
    /// What it does.
    pub kind: String,
    /// Revisions of that; not known of a cell that failed.
    pub revisions: BTreeMap<String, u32>,
    /// Its canonical parameters: what is not there has its default; `null` where it failed.
    pub parameters: Value,
    /// Files from outside, by the JSON pointer of the parameter that names them.
    pub sources: Vec<(String, usize)>,
    /// What it took.
    pub inputs: Vec<Input>,
    /// What it gave.
    pub outputs: Vec<Output>,
    /// The execution that gave it; absent where no record tells of one, as for a result from another store.
    pub execution: Option<Execution>,
    /// Why it gave nothing, where it failed or was cut short.
    pub failure: Option<String>,
    /// Whether it was neither finished nor failed when its run was stopped.
    pub cut_short: bool,
    /// What came of it, where the run that is exported computed it although a result of it counted already.
    pub repetition: Option<Repetition>,
    /// Whether it is a cell of the run that the export is of.
    pub in_main: bool,
}

/// What came of computing something again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// The same.
    Same,
    /// The same but for what is volatile, as a measured time, which is kept beside the result that counts.
    Measured,
    /// Something else, which is kept beside the result that counts.
    Diverged {
        /// The first output at which it differs.
        port: String,
    },
}

/// An execution of a cell.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The run; absent where that was killed before it had said what it was.
    pub run: Option<usize>,
    /// When it began.
    pub started: Timestamp,
    /// When it ended; not known of one that was cut short.
    pub ended: Option<Timestamp>,
    /// How long it took; of a group of cells, its share. Not known of one that was cut short.
    pub seconds: Option<f64>,
    /// The numeric platform: device, processor, versions of libraries.
    pub platform: BTreeMap<String, String>,
}

/// An artifact on its way into a cell.
#[derive(Clone, Debug)]
pub struct Input {
    /// The port.
    pub port: String,
    /// Values of gathered axes.
    pub gathered: BTreeMap<String, Label>,
    /// What the cell knows it by.
    pub source: String,
    /// Digest of its values.
    pub content: Digest,
    /// The cell that gave it and the position among its outputs; absent where nothing is known of it but its content.
    pub from: Option<(usize, usize)>,
}

/// What a cell gave.
#[derive(Clone, Debug)]
pub struct Output {
    /// The port.
    pub port: String,
    /// Digest of its values.
    pub content: Digest,
    /// Number of rows, for a table.
    pub rows: Option<u64>,
    /// True but not repeatable.
    pub volatile: bool,
    /// The artifact.
    pub artifact: usize,
    /// Named copies of it, absolute.
    pub published: Vec<Utf8PathBuf>,
}

/// A file that a cell gave.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// The file.
    pub file: File,
    /// A name for people: that of the first copy, or else of the cell and port.
    pub name: String,
    /// That copy, absolute.
    pub path: Option<Utf8PathBuf>,
    /// Further copies that the run which is exported made: files of their own, of the same bytes.
    pub copies: Vec<NamedCopy>,
    /// Files that had these bytes, absolute: they may be read where the store does not have them any more.
    pub elsewhere: Vec<Utf8PathBuf>,
}

/// A named copy of an artifact.
#[derive(Clone, Debug)]
pub struct NamedCopy {
    /// The file.
    pub file: File,
    /// Its name: where it is, seen from the manifest.
    pub name: String,
    /// Where it is, absolute.
    pub path: Utf8PathBuf,
}

/// A file from outside.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file.
    pub file: File,
    /// Where it was, absolute; absent where no record says so.
    pub path: Option<Utf8PathBuf>,
}

/// A file, known by its digests.
#[derive(Clone, Debug)]
pub struct File {
    /// BLAKE3 of its bytes.
    pub blake3: Digest,
    /// SHA-256 of its bytes; absent where they are not there to be read.
    pub sha256: Option<[u8; 32]>,
    /// Its length; not known of a source that is not there any more.
    pub size: Option<u64>,
    /// `parquet`, or the extension of a file.
    pub extension: String,
    /// Its place in a crate, relative.
    pub place: Utf8PathBuf,
}

impl Provenance {
    /// The run that the export is of.
    pub fn run(&self) -> &Run {
        &self.runs[self.main]
    }

    /// The output that an input came from.
    pub(super) fn origin(&self, input: &Input) -> Option<(&Cell, &Output)> {
        let (cell, output) = input.from?;
        let cell = &self.cells[cell];
        Some((cell, &cell.outputs[output]))
    }

    /// Artifacts whose bytes are gone.
    pub fn missing(&self) -> impl Iterator<Item = &Artifact> {
        self.artifacts
            .iter()
            .filter(|artifact| artifact.file.sha256.is_none())
    }

    /// Sources whose bytes are not there as they were taken.
    pub fn changed(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().filter(|source| source.file.sha256.is_none())
    }
}

impl Cell {
    /// The first output at which it gave something else than the result that counts.
    pub(super) fn diverged_at(&self) -> Option<&str> {
        match &self.repetition {
            Some(Repetition::Diverged { port }) => Some(port),
            Some(Repetition::Same | Repetition::Measured) | None => None,
        }
    }
}

impl Artifact {
    /// Its names, each with its file.
    pub(super) fn named(&self) -> impl Iterator<Item = (&str, &File)> {
        let copies = self.copies.iter();
        std::iter::once((self.name.as_str(), &self.file))
            .chain(copies.map(|copy| (copy.name.as_str(), &copy.file)))
    }

    /// The files that an output is: its own named copies, or else the artifact's file.
    pub(super) fn files(&self, output: &Output) -> Vec<&File> {
        let own = |path: &Utf8PathBuf| output.published.contains(path);
        let mut files: Vec<&File> = Vec::new();
        if self.path.as_ref().is_some_and(own) {
            files.push(&self.file);
        }
        files.extend(
            self.copies
                .iter()
                .filter(|copy| own(&copy.path))
                .map(|copy| &copy.file),
        );
        if files.is_empty() {
            files.push(&self.file);
        }
        files
    }
}

impl File {
    /// The 64 hexadecimal digits of the SHA-256.
    pub fn sha256_hex(&self) -> Option<String> {
        self.sha256.as_ref().map(|bytes| hex(bytes))
    }

    /// What it is, as a media type (IANA, where there is one).
    pub(super) fn media_type(&self) -> &'static str {
        match self.extension.as_str() {
            "parquet" => "application/vnd.apache.parquet",
            "svg" => "image/svg+xml",
            "png" | "apng" => "image/png",
            "gif" => "image/gif",
            "pdf" => "application/pdf",
            "json" => "application/json",
            "toml" => "application/toml",
            "csv" => "text/csv",
            "txt" => "text/plain",
            "zip" => "application/zip",
            _ => "application/octet-stream",
        }
    }
}

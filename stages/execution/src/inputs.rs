use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::{Digest, Label};
use provenir_table::{Table, copy_verified, read};

use crate::Failure;

/// The artifacts at a cell's input ports.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    ports: BTreeMap<String, Vec<Input>>,
    stored: BTreeMap<String, Vec<StoredInput>>,
}

/// One artifact at an input port as it is stored; its bytes are nobody's to change.
#[derive(Clone, Debug)]
pub struct StoredInput {
    /// As in [`Input`].
    pub labels: BTreeMap<String, Label>,
    /// As in [`Input`].
    pub source: String,
    /// Where its bytes are.
    pub path: Utf8PathBuf,
    /// What they must digest to.
    pub object: Digest,
    /// `parquet`, or the extension of a file.
    pub extension: String,
}

impl StoredInput {
    /// Copies the artifact to a file that is not there yet; verified while it is copied.
    pub fn copy(&self, to: &Utf8Path) -> Result<(), Failure> {
        copy_verified(&self.path, self.object, to).map_err(|error| Failure::of_input(error, self.object))
    }

    /// The artifact as a table, verified.
    pub fn table(&self) -> Result<Table, Failure> {
        read(&self.path, Some(self.object)).map_err(|error| Failure::of_input(error, self.object))
    }
}

/// One artifact at an input port.
#[derive(Clone, Debug)]
pub struct Input {
    /// Values of the gathered axes; empty at a port that takes one.
    pub labels: BTreeMap<String, Label>,
    /// How the manifest names where it comes from.
    pub source: String,
    /// The artifact.
    pub table: Table,
}

impl Inputs {
    /// No artifacts yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with one more artifact at a port.
    #[must_use]
    pub fn with(mut self, port: &str, input: Input) -> Self {
        self.ports.entry(port.to_owned()).or_default().push(input);
        self
    }

    /// The same, with an artifact without labels at a port: what a port that takes one sees.
    #[must_use]
    pub fn with_table(self, port: &str, table: Table) -> Self {
        self.with(
            port,
            Input {
                labels: BTreeMap::new(),
                source: port.to_owned(),
                table,
            },
        )
    }

    /// The same, with one more artifact at a port, as it is stored.
    #[must_use]
    pub fn with_stored(mut self, port: &str, input: StoredInput) -> Self {
        self.stored.entry(port.to_owned()).or_default().push(input);
        self
    }

    /// The artifacts of an execution that [takes files](crate::Execution::TAKES_FILES), by port, in the order of their labels.
    pub fn stored(&self) -> &BTreeMap<String, Vec<StoredInput>> {
        &self.stored
    }

    /// The artifact at a required port that takes one.
    pub fn one(&self, port: &str) -> Result<&Table, Failure> {
        self.optional(port)
            .ok_or_else(|| Failure::bug(format!("nothing arrived at the port `{port}`")))
    }

    /// The artifact at an optional port that takes one.
    pub fn optional(&self, port: &str) -> Option<&Table> {
        self.many(port).first().map(|input| &input.table)
    }

    /// The artifacts at a port that takes many, in the order of their labels.
    pub fn many(&self, port: &str) -> &[Input] {
        self.ports.get(port).map_or(&[], Vec::as_slice)
    }
}

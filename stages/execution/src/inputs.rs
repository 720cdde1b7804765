use std::collections::BTreeMap;

use provenir_api::Label;
use provenir_table::Table;

use crate::Failure;

/// The artifacts at a cell's input ports.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    ports: BTreeMap<String, Vec<Input>>,
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

use std::collections::BTreeMap;

use camino::Utf8Path;
use fs_err::File;
use provenir_api::port::{Content, OutputPort};
use provenir_api::protocol::OutputArtifact;
use provenir_table::{Table, Written, write, write_file, write_from};

use crate::Failure;

/// What an execution gives back: one artifact for each output port of its kind.
#[derive(Debug, Default)]
pub struct Outputs {
    artifacts: BTreeMap<&'static str, Artifact>,
}

#[derive(Debug)]
enum Artifact {
    Table(Table),
    /// Its bytes and, where the port leaves that open, its extension.
    File(Vec<u8>, Option<&'static str>),
    /// What is in an open file, from where it stands.
    Open(File),
}

impl Outputs {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with a table at a port.
    #[must_use]
    pub fn table(mut self, port: &'static str, table: Table) -> Self {
        self.artifacts.insert(port, Artifact::Table(table));
        self
    }

    /// The same, with a file at a port.
    #[must_use]
    pub fn file(mut self, port: &'static str, bytes: Vec<u8>) -> Self {
        self.artifacts.insert(port, Artifact::File(bytes, None));
        self
    }

    /// The same, with a file at a port that leaves its extension open.
    #[must_use]
    pub fn file_of(mut self, port: &'static str, extension: &'static str, bytes: Vec<u8>) -> Self {
        self.artifacts
            .insert(port, Artifact::File(bytes, Some(extension)));
        self
    }

    /// The same, with what is in an open file at a port: it is copied when outputs are written.
    #[must_use]
    pub fn open_file(mut self, port: &'static str, file: File) -> Self {
        self.artifacts.insert(port, Artifact::Open(file));
        self
    }

    /// The table at a port.
    pub fn get_table(&self, port: &str) -> Option<&Table> {
        match self.artifacts.get(port)? {
            Artifact::Table(table) => Some(table),
            Artifact::File(..) | Artifact::Open(_) => None,
        }
    }

    /// The file at a port.
    pub fn get_file(&self, port: &str) -> Option<&[u8]> {
        match self.artifacts.get(port)? {
            Artifact::File(bytes, _) => Some(bytes),
            Artifact::Table(_) | Artifact::Open(_) => None,
        }
    }

    /// Writes every artifact into a folder, hashed while it is written; what does not match the declaration is a bug
    /// of the execution.
    pub(crate) fn write(
        mut self,
        ports: &[OutputPort],
        folder: &Utf8Path,
    ) -> Result<Vec<OutputArtifact>, Failure> {
        let mut written = Vec::with_capacity(ports.len());
        for port in ports {
            let Some(artifact) = self.artifacts.remove(port.name) else {
                return Err(Failure::bug(format!(
                    "nothing was given at the output port `{}`",
                    port.name
                )));
            };
            let extension = match (&artifact, &port.content) {
                (Artifact::Table(table), Content::Table(schema)) => {
                    let mismatches = table.schema().mismatches(schema);
                    if !mismatches.is_empty() {
                        return Err(Failure::bug(format!(
                            "the table given at the output port `{}` is not what is declared: {}",
                            port.name,
                            mismatches.join("; ")
                        )));
                    }
                    "parquet"
                }
                (Artifact::File(_, None) | Artifact::Open(_), Content::File(extension)) => extension,
                (Artifact::File(_, Some(extension)), open @ Content::FileOf(_)) if open.admits(extension) => {
                    extension
                }
                _ => {
                    return Err(Failure::bug(format!(
                        "the output port `{}` declares something else than was given",
                        port.name
                    )));
                }
            };
            let extension = extension.to_owned();
            let path = folder.join(format!("{}.{extension}", port.name));
            let Written {
                object,
                content,
                size,
                rows,
            } = match &artifact {
                Artifact::Table(table) => write(&path, table)?,
                Artifact::File(bytes, _) => write_file(&path, bytes)?,
                Artifact::Open(file) => write_from(&path, file)?,
            };
            written.push(OutputArtifact {
                port: port.name.to_owned(),
                path,
                content,
                object,
                size,
                rows,
                extension,
            });
        }
        match self.artifacts.keys().next() {
            Some(port) => Err(Failure::bug(format!("the kind declares no output port `{port}`"))),
            None => Ok(written),
        }
    }
}

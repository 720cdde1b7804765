use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use provenir_api::protocol::InputArtifact;
use serde_json::Value;

use crate::plan::{CellIndex, Input, Plan};
use crate::store::{
    Action, ActionInput, ActionKey, Artifact, Committed, KeyEncoder, Store, StoreError, united,
};

/// Says what cells are once the results of their producers are known.
pub(super) struct Resolver<'a> {
    plan: &'a Plan,
    store: &'a Store,
    /// Digests of source files, by absolute path: each is looked up once a run.
    sources: BTreeMap<Utf8PathBuf, Digest>,
}

/// Results of cells, by cell.
pub(super) trait Results {
    /// The result of a cell, if it is known.
    fn result(&self, cell: CellIndex) -> Option<&Committed>;

    /// The artifact at an input of a cell whose producers' results are all known.
    fn artifact(&self, input: &Input) -> Result<&Artifact, StoreError> {
        self.result(input.producer)
            .and_then(|result| result.output(input.output))
            .ok_or_else(|| StoreError::Outputs(format!("a result has no output `{}`", input.output)))
    }
}

impl<'a> Resolver<'a> {
    pub(super) fn new(plan: &'a Plan, store: &'a Store) -> Self {
        Self {
            plan,
            store,
            sources: BTreeMap::new(),
        }
    }

    /// The key of a cell whose producers' results are all known.
    pub(super) fn key(&mut self, cell: CellIndex, results: &impl Results) -> Result<ActionKey, StoreError> {
        let sources = self.sources(cell)?;
        let plan = self.plan;
        let kind = &plan.stage_of(cell).kind;
        let cell = &plan.cells[cell];
        let mut revisions: Vec<(&str, u32)> = kind
            .revisions()
            .iter()
            .map(|revision| (revision.part, revision.number))
            .collect();
        revisions.sort_unstable();
        let mut encoder = KeyEncoder::new(
            kind.name(),
            revisions.into_iter(),
            &cell.parameters.canonical,
            sources.iter().map(|(pointer, digest)| (pointer.as_str(), digest)),
            cell.inputs.len(),
        );
        let united = united(
            cell.inputs
                .iter()
                .map(|input| (input.port, input.source.as_ref())),
        );
        for input in &cell.inputs {
            encoder.input(
                input.port,
                input.gathered.iter().map(|(axis, label)| (axis.as_ref(), label)),
                united.contains(input.port).then_some(input.source.as_ref()),
                &results.artifact(input)?.content,
            );
        }
        Ok(encoder.finish())
    }

    /// The action of a cell whose producers' results are all known.
    pub(super) fn action(&mut self, cell: CellIndex, results: &impl Results) -> Result<Action, StoreError> {
        let sources = self.sources(cell)?;
        let kind = &self.plan.stage_of(cell).kind;
        let cell = &self.plan.cells[cell];
        let united = united(
            cell.inputs
                .iter()
                .map(|input| (input.port, input.source.as_ref())),
        );
        let inputs = cell.inputs.iter().map(|input| {
            Ok(ActionInput {
                port: input.port.to_owned(),
                gathered: input
                    .gathered
                    .iter()
                    .map(|(axis, label)| (axis.to_string(), label.clone()))
                    .collect(),
                source: united.contains(input.port).then(|| input.source.to_string()),
                content: results.artifact(input)?.content,
            })
        });
        Ok(Action {
            kind: kind.name().to_owned(),
            revisions: kind
                .revisions()
                .iter()
                .map(|revision| (revision.part.to_owned(), revision.number))
                .collect(),
            parameters: cell.parameters.canonical.clone(),
            sources,
            inputs: inputs.collect::<Result<_, StoreError>>()?,
        })
    }

    /// The artifacts that a worker is to read, in the order of the key.
    pub(super) fn inputs(
        &self,
        cell: CellIndex,
        results: &impl Results,
    ) -> Result<Vec<InputArtifact>, StoreError> {
        let inputs = self.plan.cells[cell].inputs.iter().map(|input| {
            let artifact = results.artifact(input)?;
            Ok(InputArtifact {
                port: input.port.to_owned(),
                labels: input
                    .gathered
                    .iter()
                    .map(|(axis, label)| (axis.to_string(), label.clone()))
                    .collect(),
                source: input.source.to_string(),
                path: self.store.layout().object(&artifact.object),
                object: artifact.object,
                content: artifact.content,
                extension: artifact.extension.clone(),
            })
        });
        inputs.collect()
    }

    /// All parameters, with source files as absolute paths.
    pub(super) fn parameters(&self, cell: CellIndex) -> Value {
        let resolved = &self.plan.cells[cell].parameters;
        let mut parameters = resolved.full.clone();
        for source in &resolved.sources {
            if let Some(value) = parameters.pointer_mut(&source.pointer) {
                *value = Value::from(self.absolute(&source.path).into_string());
            }
        }
        parameters
    }

    /// Digests of a cell's source files, by pointer.
    fn sources(&mut self, cell: CellIndex) -> Result<BTreeMap<String, Digest>, StoreError> {
        let plan = self.plan;
        let sources = plan.cells[cell].parameters.sources.iter().map(|source| {
            let path = self.absolute(&source.path);
            let digest = match self.sources.get(&path) {
                Some(digest) => *digest,
                None => {
                    let digest = self.store.source(&path)?;
                    self.sources.insert(path, digest);
                    digest
                }
            };
            Ok((source.pointer.clone(), digest))
        });
        sources.collect()
    }

    fn absolute(&self, path: &Utf8Path) -> Utf8PathBuf {
        self.plan.folder.join(path)
    }
}

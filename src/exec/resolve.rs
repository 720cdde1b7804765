use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use provenir_api::protocol::InputArtifact;
use provenir_api::{Digest, Label};
use serde_json::Value;

use crate::plan::{self, CellIndex, Input, Plan};
use crate::store::{Action, ActionInput, ActionKey, Artifact, Committed, Store, StoreError};

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
        let kind = &self.plan.stage_of(cell).kind;
        let cell = &self.plan.cells[cell];
        let inputs = cell.inputs.iter().map(|input| {
            Ok(plan::ActionInput {
                port: input.port,
                gathered: &input.gathered,
                source: &input.source,
                content: results.artifact(input)?.content,
            })
        });
        Ok(ActionKey::of(&plan::Action {
            kind: kind.name(),
            revisions: kind
                .revisions()
                .iter()
                .map(|revision| (revision.part, revision.number))
                .collect(),
            parameters: &cell.parameters.canonical,
            inputs: inputs.collect::<Result<_, StoreError>>()?,
            sources: sources
                .iter()
                .map(|(pointer, digest)| (pointer.as_str(), *digest))
                .collect(),
            platform: self.plan.platform.as_deref(),
        }))
    }

    /// The action of a cell whose producers' results are all known: what the store keeps beside the result.
    pub(super) fn action(&mut self, cell: CellIndex, results: &impl Results) -> Result<Action, StoreError> {
        for input in &self.plan.cells[cell].inputs {
            results.artifact(input)?;
        }
        self.known(cell, results)
    }

    /// The action of a cell, without the artifacts whose producers' results are not known.
    pub(super) fn known(&mut self, cell: CellIndex, results: &impl Results) -> Result<Action, StoreError> {
        let sources = self.sources(cell)?;
        let kind = &self.plan.stage_of(cell).kind;
        let cell = &self.plan.cells[cell];
        let inputs = cell.inputs.iter().filter_map(|input| {
            let artifact = results.artifact(input).ok()?;
            Some(ActionInput {
                port: input.port.to_owned(),
                gathered: labels(input),
                source: input.source.to_string(),
                content: artifact.content,
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
            inputs: inputs.collect(),
            platform: self.plan.platform.clone(),
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
                labels: labels(input),
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
                *value = Value::from(self.plan.source_path(source).into_string());
            }
        }
        parameters
    }

    /// Digests of a cell's source files, by pointer.
    fn sources(&mut self, cell: CellIndex) -> Result<BTreeMap<String, Digest>, StoreError> {
        let plan = self.plan;
        let sources = plan.cells[cell].parameters.sources.iter().map(|source| {
            let path = self.plan.source_path(source);
            let digest = if let Some(digest) = self.sources.get(&path) {
                *digest
            } else if let Some(digest) = plan.gone.get(&path) {
                *digest
            } else {
                let digest = self.store.source(&path)?;
                self.sources.insert(path, digest);
                digest
            };
            Ok((source.pointer.clone(), digest))
        });
        sources.collect()
    }
}

/// Values of the gathered axes, by axis.
fn labels(input: &Input) -> BTreeMap<String, Label> {
    input
        .gathered
        .iter()
        .map(|(axis, label)| (axis.to_string(), label.clone()))
        .collect()
}

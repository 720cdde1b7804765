//! OpenLineage 2-0-2 (<https://openlineage.io/spec/2-0-2/OpenLineage.json>): events, a line each.
//!
//! A pipeline run is a run of a job, and so is each execution of a cell, whose parent it is. Artifacts are datasets in the
//! namespace `provenir`, named by pipeline, cell and port, with the digest of their bytes as version; files are datasets in the
//! namespace `file`, named by their path (<https://openlineage.io/docs/spec/naming>). A result of which no record tells when it was
//! computed is a job event: lineage without a run.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::identity::{HOME, PRODUCER, time, uuid};
use super::model::{Cell, Ending, File, Provenance, Run};

const SPECIFICATION: &str = "https://openlineage.io/spec/2-0-2/OpenLineage.json";
const NAMESPACE: &str = "provenir";
const FACETS: &str = concat!(
    env!("CARGO_PKG_REPOSITORY"),
    "/blob/v",
    env!("CARGO_PKG_VERSION"),
    "/src/provenance/openlineage-facets.json"
);

/// Where an event goes among those of the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    RunStarts,
    CellEnds,
    CellStarts,
    CellIs,
    RunEnds,
}

/// The events, ordered by time, as JSON Lines.
pub fn openlineage(provenance: &Provenance) -> String {
    let writer = Writer {
        provenance,
        names: names(provenance),
    };
    let mut events = Vec::new();
    for (index, run) in provenance.runs.iter().enumerate() {
        writer.run(&mut events, index, run);
    }
    for (index, cell) in provenance.cells.iter().enumerate() {
        writer.cell(&mut events, index, cell);
    }
    // Stable: of one time and rank, as the cells are ordered.
    events.sort_by_key(|(time, rank, _)| (*time, *rank));
    let lines = events.into_iter().map(|(_, _, event)| format!("{event}\n"));
    lines.collect()
}

type Events = Vec<(Timestamp, Rank, Value)>;

struct Writer<'a> {
    provenance: &'a Provenance,
    /// Names of artifacts' datasets: by cell and output.
    names: BTreeMap<(usize, usize), String>,
}

/// Names by pipeline, cell and port; where two of different runs have one name and are not the same, the digest is added.
fn names(provenance: &Provenance) -> BTreeMap<(usize, usize), String> {
    let mut names = BTreeMap::new();
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for (index, cell) in provenance.cells.iter().enumerate() {
        for (position, output) in cell.outputs.iter().enumerate() {
            let mut name = format!("{}.{}", job_name(provenance, cell), output.port);
            if *taken.entry(name.clone()).or_insert(output.artifact) != output.artifact {
                name.push_str(&format!(
                    "@{}",
                    provenance.artifacts[output.artifact].file.blake3.short()
                ));
            }
            names.insert((index, position), name);
        }
    }
    names
}

/// A cell is a job of the pipeline that executed it.
fn job_name(provenance: &Provenance, cell: &Cell) -> String {
    let run = cell.execution.as_ref().and_then(|execution| execution.run);
    let run = &provenance.runs[run.unwrap_or(provenance.main)];
    format!("{}.{}", run.pipeline, cell.name)
}

fn run_uuid(run: &Run) -> String {
    uuid(&["run", run.id.as_str()])
}

impl Writer<'_> {
    fn cell_uuid(&self, cell: &Cell) -> String {
        let run = cell.execution.as_ref().and_then(|execution| execution.run);
        let run = run.map_or("", |run| self.provenance.runs[run].id.as_str());
        uuid(&["cell", run, &cell.id])
    }

    fn run(&self, events: &mut Events, index: usize, run: &Run) {
        let mut facets = json!({
            "processing_engine": facet(
                "https://openlineage.io/spec/facets/1-1-1/ProcessingEngineRunFacet.json#/$defs/ProcessingEngineRunFacet",
                json!({ "name": "Provenir", "version": run.program.version, "openlineageAdapterVersion": env!("CARGO_PKG_VERSION") }),
            ),
            "provenir_run": ours("ProvenirRunFacet", json!({
                "run": run.id.as_str(),
                "build": run.program.build,
                "command": run.command,
                "host": run.host,
                "git": run.git,
                "ending": format!("{:?}", run.ending).to_lowercase(),
                "manifest": { "path": run.manifest },
                "resolvedManifest": { "text": run.text, "value": run.resolved, "digests": digests(&run.file) },
            })),
        });
        if index == self.provenance.main {
            facets["provenir_reused"] = ours("ProvenirReusedRunFacet", json!({ "cells": self.reused() }));
        }
        let mut job_facets = json!({ "jobType": job_type("PIPELINE") });
        if let Some(about) = run.resolved["pipeline"]["description"].as_str() {
            job_facets["documentation"] = facet(
                "https://openlineage.io/spec/facets/1-1-0/DocumentationJobFacet.json#/$defs/DocumentationJobFacet",
                json!({ "description": about }),
            );
        }
        let event = |kind: &str, at: Timestamp, facets: &Value| {
            let mut event = base(at, "RunEvent");
            event["eventType"] = kind.into();
            event["run"] = json!({ "runId": run_uuid(run), "facets": facets });
            event["job"] = json!({ "namespace": NAMESPACE, "name": run.pipeline, "facets": job_facets });
            event["inputs"] = json!([]);
            event["outputs"] = json!([]);
            event
        };
        let end = match run.ending {
            Ending::Done => "COMPLETE",
            Ending::Failed => "FAIL",
            Ending::Interrupted | Ending::Killed => "ABORT",
        };
        let start = event("START", run.started, &facets);
        events.push((run.started, Rank::RunStarts, start));
        if run.ending == Ending::Failed {
            facets["errorMessage"] = error_message("the run failed in part");
        }
        events.push((run.ended, Rank::RunEnds, event(end, run.ended, &facets)));
    }

    /// Cells of the run that it did not execute: which run of which job did.
    fn reused(&self) -> Vec<Value> {
        let main = self.provenance.main;
        let cells = self.provenance.cells.iter().filter(|cell| {
            let execution = cell.execution.as_ref();
            cell.in_main && execution.is_none_or(|execution| execution.run != Some(main))
        });
        cells
            .map(|cell| {
                let has_run = cell.execution.is_some();
                json!({
                    "cell": cell.name,
                    "action": cell.key,
                    "runId": has_run.then(|| self.cell_uuid(cell)),
                    "job": { "namespace": NAMESPACE, "name": job_name(self.provenance, cell) },
                })
            })
            .collect()
    }

    fn cell(&self, events: &mut Events, index: usize, cell: &Cell) {
        let job = json!({
            "namespace": NAMESPACE,
            "name": job_name(self.provenance, cell),
            "facets": {
                "jobType": job_type("CELL"),
                "provenir_action": ours("ProvenirActionJobFacet", json!({
                    "action": cell.key,
                    "cell": cell.name,
                    "also": cell.also,
                    "stage": cell.stage,
                    "kind": cell.kind,
                    "revisions": cell.revisions,
                    "parameters": cell.parameters,
                })),
            },
        });
        let (inputs, outputs) = (self.inputs(cell), self.outputs(index, cell));
        let Some(execution) = &cell.execution else {
            let mut event = base(self.provenance.run().started, "JobEvent");
            event["job"] = job;
            event["inputs"] = inputs.into();
            event["outputs"] = outputs.into();
            events.push((self.provenance.run().started, Rank::CellIs, event));
            return;
        };
        let mut about = json!({ "platform": execution.platform });
        if let Some(seconds) = execution.seconds {
            about["seconds"] = seconds.into();
        }
        if cell.repetition.is_some() {
            about["repeated"] = true.into();
        }
        if let Some(port) = cell.diverged_at() {
            about["divergedAt"] = port.into();
        }
        let mut facets = json!({ "provenir_execution": ours("ProvenirExecutionRunFacet", about) });
        if let Some(run) = execution.run {
            let run = &self.provenance.runs[run];
            facets["parent"] = facet(
                "https://openlineage.io/spec/facets/1-2-0/ParentRunFacet.json#/$defs/ParentRunFacet",
                json!({
                    "run": { "runId": run_uuid(run) },
                    "job": { "namespace": NAMESPACE, "name": run.pipeline },
                }),
            );
        }
        let event = |kind: &str, at: Timestamp, outputs: Vec<Value>, facets: Value| {
            let mut event = base(at, "RunEvent");
            event["eventType"] = kind.into();
            event["run"] = json!({ "runId": self.cell_uuid(cell), "facets": facets });
            event["job"] = job.clone();
            event["inputs"] = inputs.clone().into();
            event["outputs"] = outputs.into();
            event
        };
        let start = event("START", execution.started, Vec::new(), facets.clone());
        events.push((execution.started, Rank::CellStarts, start));
        // What was cut short is over when its run is.
        let run = &self.provenance.runs[execution.run.unwrap_or(self.provenance.main)];
        let ended = execution.ended.unwrap_or(run.ended);
        let end = match &cell.failure {
            None => event("COMPLETE", ended, outputs, facets),
            Some(_) if cell.cut_short => event("ABORT", ended, outputs, facets),
            Some(message) => {
                facets["errorMessage"] = error_message(message);
                event("FAIL", ended, outputs, facets)
            }
        };
        // What takes no time at all ends after it starts.
        let rank = if ended > execution.started {
            Rank::CellEnds
        } else {
            Rank::CellIs
        };
        events.push((ended, rank, end));
    }

    /// The datasets that a cell takes, each once, with every way in which it takes it.
    fn inputs(&self, cell: &Cell) -> Vec<Value> {
        let inputs = cell.inputs.iter().map(|input| {
            let about = json!({ "port": input.port, "source": input.source, "gathered": input.gathered });
            let dataset = match (input.from, self.provenance.origin(input)) {
                (Some(place), Some((_, output))) => {
                    let file = &self.provenance.artifacts[output.artifact].file;
                    let content = Some(output.content.hex());
                    dataset(NAMESPACE, &self.names[&place], file, content)
                }
                // Nothing is known of it but what it holds.
                _ => json!({
                    "namespace": NAMESPACE,
                    "name": format!("content/{}", input.content),
                    "facets": {
                        "version": version(&format!("content-blake3:{}", input.content)),
                        "provenir_artifact": ours("ProvenirArtifactDatasetFacet", json!({ "content": input.content })),
                    },
                }),
            };
            (dataset, about)
        });
        let sources = cell.sources.iter().map(|(pointer, source)| {
            let source = &self.provenance.sources[*source];
            let dataset = match &source.path {
                Some(path) => dataset("file", path.as_str(), &source.file, None),
                None => dataset(
                    NAMESPACE,
                    &format!("source/{}", source.file.blake3),
                    &source.file,
                    None,
                ),
            };
            (
                dataset,
                json!({ "port": pointer, "source": pointer, "gathered": {} }),
            )
        });
        let mut taken: IndexMap<String, (Value, Vec<Value>)> = IndexMap::new();
        for (dataset, about) in inputs.chain(sources) {
            let (_, ways) = taken.entry(dataset.to_string()).or_insert((dataset, Vec::new()));
            ways.push(about);
        }
        let taken = taken.into_values().map(|(mut dataset, mut ways)| {
            let mut about = ways.remove(0);
            if !ways.is_empty() {
                about["also"] = ways.into();
            }
            dataset["inputFacets"] = json!({ "provenir_input": ours("ProvenirInputDatasetFacet", about) });
            dataset
        });
        taken.collect()
    }

    fn outputs(&self, index: usize, cell: &Cell) -> Vec<Value> {
        let mut outputs = Vec::new();
        for (position, output) in cell.outputs.iter().enumerate() {
            let file = &self.provenance.artifacts[output.artifact].file;
            let names = std::iter::once((NAMESPACE, self.names[&(index, position)].as_str()));
            let copies = output.published.iter().map(|path| ("file", path.as_str()));
            for (namespace, name) in names.chain(copies) {
                let mut dataset = dataset(namespace, name, file, Some(output.content.hex()));
                let mut statistics = json!({ "size": file.size, "fileCount": 1 });
                if let Some(rows) = output.rows {
                    statistics["rowCount"] = rows.into();
                }
                dataset["outputFacets"] = json!({
                    "outputStatistics": facet(
                        "https://openlineage.io/spec/facets/1-0-2/OutputStatisticsOutputDatasetFacet.json#/$defs/OutputStatisticsOutputDatasetFacet",
                        statistics,
                    ),
                });
                outputs.push(dataset);
            }
        }
        outputs
    }
}

fn base(at: Timestamp, definition: &str) -> Value {
    json!({
        "eventTime": time(at),
        "producer": PRODUCER,
        "schemaURL": format!("{SPECIFICATION}#/$defs/{definition}"),
    })
}

fn dataset(namespace: &str, name: &str, file: &File, content: Option<String>) -> Value {
    let mut about = json!({ "digests": digests(file), "size": file.size });
    if let Some(content) = content {
        about["content"] = content.into();
    }
    json!({
        "namespace": namespace,
        "name": name,
        "facets": {
            "version": version(&format!("blake3:{}", file.blake3)),
            "provenir_artifact": ours("ProvenirArtifactDatasetFacet", about),
        },
    })
}

fn digests(file: &File) -> Value {
    let mut digests = Map::new();
    digests.insert("blake3".to_owned(), file.blake3.hex().into());
    if let Some(sha256) = file.sha256_hex() {
        digests.insert("sha256".to_owned(), sha256.into());
    }
    digests.into()
}

fn version(version: &str) -> Value {
    facet(
        "https://openlineage.io/spec/facets/1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet",
        json!({ "datasetVersion": version }),
    )
}

fn job_type(kind: &str) -> Value {
    facet(
        "https://openlineage.io/spec/facets/2-0-4/JobTypeJobFacet.json#/$defs/JobTypeJobFacet",
        json!({ "processingType": "BATCH", "integration": "PROVENIR", "jobType": kind }),
    )
}

fn error_message(message: &str) -> Value {
    facet(
        "https://openlineage.io/spec/facets/1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet",
        json!({ "message": message, "programmingLanguage": "Rust" }),
    )
}

/// A facet of the standard (2-0-2, `BaseFacet`).
fn facet(schema: &str, mut fields: Value) -> Value {
    fields["_producer"] = HOME.into();
    fields["_schemaURL"] = schema.into();
    fields
}

/// A facet of our own, whose schema lies beside this file.
fn ours(definition: &str, fields: Value) -> Value {
    facet(&format!("{FACETS}#/$defs/{definition}"), fields)
}

//! in-toto Statement v1 (<https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md>) with SLSA Provenance v1
//! (<https://slsa.dev/spec/v1.0/provenance>) as its predicate.
//!
//! The statement is not signed: who vouches for it wraps it in an envelope of their own (DSSE). Subjects are what the export is
//! about; by-products are all other artifacts; resolved dependencies are what came from outside: files, the manifest, the repository,
//! the program. What each cell did is an internal parameter, because nobody outside chose it; there, too, is what failed or was cut
//! short, of which SLSA, whose builds have come to their end, has no word.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::identity::{HOME, TERMS, time, uri};
use super::model::{Cell, File, Input, Provenance, Run};

/// The statement.
pub fn in_toto(provenance: &Provenance) -> Value {
    let run = provenance.run();
    // What cells of one name gave at one port, in other runs or once more, is told apart by its bytes.
    let mut names = BTreeSet::new();
    let mut named = |name: &str, file: &File| {
        if names.insert(name.to_owned()) {
            descriptor(name, file)
        } else {
            descriptor(&format!("{name}@{}", file.blake3.short()), file)
        }
    };
    let mut subjects = Vec::new();
    let mut seen = BTreeSet::new();
    for (cell, output) in &provenance.subjects {
        let output = &provenance.cells[*cell].outputs[*output];
        if seen.insert(output.artifact) {
            let files = provenance.artifacts[output.artifact].named();
            subjects.extend(files.map(|(name, file)| named(name, file)));
        }
    }
    let others = provenance.artifacts.iter().enumerate();
    let others = others.filter(|(index, _)| !seen.contains(index));
    let byproducts: Vec<Value> = others
        .map(|(_, artifact)| named(&artifact.name, &artifact.file))
        .collect();
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": uri("build", "v1"),
                "externalParameters": {
                    "manifest": run.resolved,
                    "command": run.command,
                    "exported": provenance.title,
                },
                "internalParameters": {
                    "cells": provenance.cells.iter().map(|cell| describe(provenance, cell)).collect::<Vec<_>>(),
                    "runs": provenance.runs.iter().map(describe_run).collect::<Vec<_>>(),
                },
                "resolvedDependencies": dependencies(provenance),
            },
            "runDetails": {
                "builder": {
                    "id": uri("builder", "local"),
                    "version": { "provenir": run.program.version, "build": run.program.build },
                },
                "metadata": {
                    "invocationId": uri("run", run.id.as_str()),
                    "startedOn": time(run.started),
                    "finishedOn": time(run.ended),
                },
                "byproducts": byproducts,
            },
        },
    })
}

/// What came from outside.
fn dependencies(provenance: &Provenance) -> Vec<Value> {
    let mut dependencies = Vec::new();
    for source in &provenance.sources {
        let mut found = descriptor(
            source.path.as_ref().map_or("source", |path| path.as_str()),
            &source.file,
        );
        found["annotations"]["role"] = "source".into();
        dependencies.push(found);
    }
    for run in &provenance.runs {
        let mut manifest = descriptor(&format!("resolved manifest of {}", run.pipeline), &run.file);
        manifest["annotations"]["role"] = "resolved manifest".into();
        manifest["annotations"]["takenFrom"] = run.manifest.as_str().into();
        manifest["annotations"]["text"] = run.text.as_str().into();
        manifest["annotations"]["run"] = run.id.as_str().into();
        dependencies.push(manifest);
        if let Some(git) = &run.git {
            let mut annotations = json!({ "role": "repository", "run": run.id.as_str(), "dirty": git.dirty });
            if let Some(diff) = &git.diff {
                annotations["diffBlake3"] = diff.hex().into();
            }
            if !git.untracked.is_empty() {
                annotations["untracked"] = json!(git.untracked);
            }
            dependencies.push(json!({
                "name": "repository of the manifest",
                "digest": { "gitCommit": git.commit },
                "annotations": annotations,
            }));
        }
        dependencies.push(json!({
            "name": format!("Provenir {}", run.program.version),
            "uri": HOME,
            "digest": { "provenirBuild": run.program.build },
            "annotations": { "role": "program", "run": run.id.as_str() },
        }));
    }
    dependencies
}

fn describe_run(run: &Run) -> Value {
    json!({
        "run": run.id.as_str(),
        "pipeline": run.pipeline,
        "command": run.command,
        "host": run.host,
        "startedOn": time(run.started),
        "finishedOn": time(run.ended),
        "ending": run.ending.word(),
    })
}

fn describe(provenance: &Provenance, cell: &Cell) -> Value {
    let inputs = cell.inputs.iter().map(|input| take(provenance, input));
    let sources = cell.sources.iter().map(|(pointer, source)| {
        let file = &provenance.sources[*source].file;
        json!({ "port": pointer, "digest": digests(file) })
    });
    let outputs = cell.outputs.iter().map(|output| {
        let file = &provenance.artifacts[output.artifact].file;
        let mut told = json!({
            "port": output.port,
            "digest": digests(file),
            "contentBlake3": output.content.hex(),
            "size": file.size,
        });
        if let Some(rows) = output.rows {
            told["rows"] = rows.into();
        }
        if output.volatile {
            told["volatile"] = true.into();
        }
        if !output.published.is_empty() {
            told["published"] = json!(output.published);
        }
        told
    });
    let mut told = json!({
        "name": cell.name,
        "actionKey": cell.key,
        "stage": cell.stage,
        "kind": cell.kind,
        "revisions": cell.revisions,
        "parameters": cell.parameters,
        "inputs": inputs.collect::<Vec<_>>(),
        "sources": sources.collect::<Vec<_>>(),
        "outputs": outputs.collect::<Vec<_>>(),
    });
    if !cell.also.is_empty() {
        told["also"] = json!(cell.also);
    }
    if let Some(message) = &cell.failure {
        told["failure"] = message.as_str().into();
    }
    if cell.cut_short {
        told["cutShort"] = true.into();
    }
    if cell.repetition.is_some() {
        told["repeated"] = true.into();
    }
    if let Some(port) = cell.diverged_at() {
        told["divergedAt"] = port.into();
    }
    if let Some(execution) = &cell.execution {
        told["execution"] = json!({
            "run": execution.run.map(|run| provenance.runs[run].id.as_str()),
            "startedOn": time(execution.started),
            "platform": execution.platform,
        });
        if let Some(ended) = execution.ended {
            told["execution"]["finishedOn"] = time(ended).into();
        }
        if let Some(seconds) = execution.seconds {
            told["execution"]["seconds"] = seconds.into();
        }
    }
    told
}

fn take(provenance: &Provenance, input: &Input) -> Value {
    let mut told = json!({
        "port": input.port,
        "source": input.source,
        "gathered": input.gathered,
        "contentBlake3": input.content.hex(),
    });
    if let Some((cell, output)) = provenance.origin(input) {
        told["from"] = json!({ "actionKey": cell.key, "port": output.port });
        told["digest"] = digests(&provenance.artifacts[output.artifact].file);
    }
    told
}

/// A resource descriptor (in-toto, `resource_descriptor.md`).
fn descriptor(name: &str, file: &File) -> Value {
    let mut annotations = Map::new();
    if let Some(size) = file.size {
        annotations.insert("size".into(), size.into());
    }
    if file.sha256.is_none() {
        annotations.insert("absent".into(), format!("{TERMS}absent").into());
    }
    json!({
        "name": name,
        "digest": digests(file),
        "mediaType": file.media_type(),
        "annotations": annotations,
    })
}

/// A digest set (in-toto, `digest_set.md`): SHA-256 first, BLAKE3 under a name of its own.
fn digests(file: &File) -> Value {
    let mut digests = Map::new();
    if let Some(sha256) = file.sha256_hex() {
        digests.insert("sha256".into(), sha256.into());
    }
    digests.insert("blake3".into(), file.blake3.hex().into());
    digests.into()
}

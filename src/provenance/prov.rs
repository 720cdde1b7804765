//! W3C PROV-JSON (<https://www.w3.org/submissions/prov-json/>, section 3), of the PROV data model
//! (<https://www.w3.org/TR/prov-dm/>, section 5).
//!
//! An execution of a cell is an activity, and so is a run. A file that a cell gave is an entity by the action and port that gave
//! it, not by its digest: two cells may give the same bytes, and an entity is generated once (PROV constraints, constraint 24,
//! unique-generation). A named copy is an entity that is derived from it. The manifest is the plan, the program the agent.

use serde_json::{Map, Value, json};

use super::identity::{HOME, encoded, time};
use super::model::{Cell, File, Output, Provenance, Run, Source};
use crate::record::Git;

/// The document.
pub fn prov(provenance: &Provenance) -> Value {
    let mut document = Document::default();
    for (index, run) in provenance.runs.iter().enumerate() {
        document.run(index == provenance.main, run);
    }
    for source in &provenance.sources {
        let mut attributes = file(&source.file);
        attributes.insert("prov:label".into(), source.file.place.file_name().into());
        attributes.insert("prov:type".into(), qualified("provenir:Source"));
        if let Some(path) = &source.path {
            attributes.insert("prov:atLocation".into(), path.as_str().into());
        }
        document.add("entity", source_id(source), attributes.into());
    }
    for cell in &provenance.cells {
        document.cell(provenance, cell);
    }
    for (cell, output) in &provenance.subjects {
        let cell = &provenance.cells[*cell];
        let id = artifact_id(cell, &cell.outputs[*output].port);
        document.relate(
            "wasInfluencedBy",
            &[
                ("prov:influencee", &id),
                ("prov:influencer", &run_id(provenance.run())),
            ],
        );
    }
    document.finish()
}

#[derive(Default)]
struct Document {
    sections: Map<String, Value>,
    relations: usize,
}

impl Document {
    /// Adds a record; one that is there already stays as it is.
    fn add(&mut self, section: &str, id: String, attributes: Value) {
        let records = self.sections.entry(section).or_insert_with(|| json!({}));
        if let Value::Object(records) = records {
            records.entry(id).or_insert(attributes);
        }
    }

    /// Adds a relation between records.
    fn relate(&mut self, section: &str, ends: &[(&str, &str)]) {
        self.relate_with(section, ends, Map::new());
    }

    fn relate_with(&mut self, section: &str, ends: &[(&str, &str)], mut attributes: Map<String, Value>) {
        for (end, id) in ends {
            attributes.insert((*end).to_owned(), (*id).into());
        }
        self.relations += 1;
        self.add(section, format!("_:r{}", self.relations), attributes.into());
    }

    fn run(&mut self, is_main: bool, run: &Run) {
        let (id, plan, agent) = (run_id(run), manifest_id(run), engine_id(run));
        let mut attributes = Map::new();
        let mut say = |name: &str, value: Value| {
            if !value.is_null() {
                attributes.insert(name.to_owned(), value);
            }
        };
        say("prov:startTime", time(run.started).into());
        say("prov:endTime", time(run.ended).into());
        say("prov:label", format!("{}, run {}", run.pipeline, run.id).into());
        say("prov:type", qualified("provenir:Run"));
        say("provenir:exported", is_main.into());
        say("provenir:ending", run.ending.word().into());
        say("provenir:command", run.command.join(" ").into());
        say("provenir:host", run.host.name.as_str().into());
        say("provenir:system", run.host.system.as_str().into());
        say("provenir:architecture", run.host.architecture.as_str().into());
        say("provenir:cores", run.host.cores.into());
        say("provenir:memoryMiB", run.host.memory.into());
        let git = run.git.as_ref();
        say("provenir:gitCommit", git.map(|git| git.commit.as_str()).into());
        say("provenir:gitDirty", git.map(|git| git.dirty).into());
        say(
            "provenir:gitDiffBlake3",
            git.and_then(|git| git.diff).map(|diff| diff.hex()).into(),
        );
        say("provenir:gitUntracked", git.and_then(Git::lacking).into());
        self.add("activity", id.clone(), attributes.into());
        let mut attributes = file(&run.file);
        attributes.insert(
            "prov:label".into(),
            format!("resolved manifest of {}", run.pipeline).into(),
        );
        attributes.insert("prov:type".into(), qualified("prov:Plan"));
        attributes.insert("provenir:takenFrom".into(), run.manifest.as_str().into());
        attributes.insert("prov:value".into(), run.text.as_str().into());
        self.add("entity", plan.clone(), attributes.into());
        self.add(
            "agent",
            agent.clone(),
            json!({
                "prov:type": qualified("prov:SoftwareAgent"),
                "prov:label": "Provenir",
                "provenir:version": run.program.version,
                "provenir:build": run.program.build,
            }),
        );
        self.relate(
            "wasAssociatedWith",
            &[
                ("prov:activity", &id),
                ("prov:agent", &agent),
                ("prov:plan", &plan),
            ],
        );
    }

    fn cell(&mut self, provenance: &Provenance, cell: &Cell) {
        let id = cell_id(cell);
        self.add("activity", id.clone(), attributes(cell).into());
        let run = cell.execution.as_ref().and_then(|execution| execution.run);
        if let Some(run) = run {
            let run = &provenance.runs[run];
            self.relate(
                "wasInformedBy",
                &[("prov:informed", &id), ("prov:informant", &run_id(run))],
            );
            self.relate(
                "wasAssociatedWith",
                &[
                    ("prov:activity", &id),
                    ("prov:agent", &engine_id(run)),
                    ("prov:plan", &manifest_id(run)),
                ],
            );
        }
        let used = self.used(provenance, cell, &id);
        for output in &cell.outputs {
            let entity = artifact_id(cell, &output.port);
            let artifact = &provenance.artifacts[output.artifact];
            let mut attributes = file(&artifact.file);
            attributes.insert(
                "prov:label".into(),
                format!("{}.{}", cell.name, output.port).into(),
            );
            attributes.insert("prov:type".into(), qualified("provenir:Artifact"));
            attributes.insert("provenir:contentBlake3".into(), output.content.hex().into());
            if let Some(rows) = output.rows {
                attributes.insert("provenir:rows".into(), rows.into());
            }
            if output.volatile {
                attributes.insert("provenir:volatile".into(), true.into());
            }
            self.add("entity", entity.clone(), attributes.into());
            let role = Map::from_iter([("prov:role".to_owned(), Value::from(output.port.as_str()))]);
            self.relate_with(
                "wasGeneratedBy",
                &[("prov:entity", &entity), ("prov:activity", &id)],
                role,
            );
            for used in &used {
                self.relate(
                    "wasDerivedFrom",
                    &[
                        ("prov:generatedEntity", &entity),
                        ("prov:usedEntity", used),
                        ("prov:activity", &id),
                    ],
                );
            }
            self.copies(&entity, &artifact.file, output);
        }
    }

    /// Adds the named copies of an output.
    fn copies(&mut self, entity: &str, artifact: &File, output: &Output) {
        for path in &output.published {
            let copy = format!("published:{}", encoded(path.as_str()));
            let mut attributes = file(artifact);
            attributes.insert("prov:label".into(), path.file_name().into());
            attributes.insert("prov:type".into(), qualified("provenir:Published"));
            attributes.insert("prov:atLocation".into(), path.as_str().into());
            self.add("entity", copy.clone(), attributes.into());
            self.relate(
                "wasDerivedFrom",
                &[("prov:generatedEntity", &copy), ("prov:usedEntity", entity)],
            );
        }
    }

    /// Adds what a cell used; says which entities that are.
    fn used(&mut self, provenance: &Provenance, cell: &Cell, id: &str) -> Vec<String> {
        let mut used = Vec::new();
        for input in &cell.inputs {
            let entity = if let Some((producer, output)) = provenance.origin(input) {
                artifact_id(producer, &output.port)
            } else {
                let entity = format!("content:{}", input.content);
                let attributes = json!({
                    "prov:label": "an artifact of unknown origin",
                    "provenir:contentBlake3": input.content.hex(),
                });
                self.add("entity", entity.clone(), attributes);
                entity
            };
            let mut attributes = Map::new();
            attributes.insert("prov:role".into(), input.port.as_str().into());
            if input.source != input.port {
                attributes.insert("provenir:source".into(), input.source.as_str().into());
            }
            for (axis, label) in &input.gathered {
                attributes.insert(
                    format!("provenir:axis.{}", encoded(axis)),
                    label.to_string().into(),
                );
            }
            self.relate_with(
                "used",
                &[("prov:activity", id), ("prov:entity", &entity)],
                attributes,
            );
            used.push(entity);
        }
        for (pointer, source) in &cell.sources {
            let entity = source_id(&provenance.sources[*source]);
            let role = Map::from_iter([("prov:role".to_owned(), Value::from(pointer.as_str()))]);
            self.relate_with("used", &[("prov:activity", id), ("prov:entity", &entity)], role);
            used.push(entity);
        }
        used.sort();
        used.dedup();
        used
    }

    fn finish(self) -> Value {
        let space = |class: &str| format!("{HOME}/ns/{class}/");
        let mut document = json!({
            "prefix": {
                "provenir": format!("{HOME}/ns#"),
                "run": space("run"),
                "action": space("action"),
                "artifact": space("artifact"),
                "source": space("source"),
                "published": space("published"),
                "content": space("content"),
                "manifest": space("manifest"),
                "engine": space("engine"),
            },
        });
        for (section, records) in self.sections {
            document[section] = records;
        }
        document
    }
}

/// What is said of a cell itself.
fn attributes(cell: &Cell) -> Map<String, Value> {
    let mut attributes = Map::new();
    let mut say = |name: &str, value: Value| {
        attributes.insert(name.to_owned(), value);
    };
    say("prov:label", cell.name.as_str().into());
    say("prov:type", qualified("provenir:Cell"));
    say("provenir:actionKey", cell.key.hex().into());
    if !cell.also.is_empty() {
        say("provenir:alsoCells", cell.also.join("\n").into());
    }
    say("provenir:stage", cell.stage.as_str().into());
    say("provenir:kind", cell.kind.as_str().into());
    for (part, number) in &cell.revisions {
        say(&format!("provenir:revision.{}", encoded(part)), (*number).into());
    }
    for (name, value) in cell.parameters.as_object().into_iter().flatten() {
        let value = match value {
            Value::Array(_) | Value::Object(_) | Value::Null => value.to_string().into(),
            plain => plain.clone(),
        };
        say(&format!("provenir:parameter.{}", encoded(name)), value);
    }
    if let Some(message) = &cell.failure {
        say("provenir:failure", message.as_str().into());
    }
    if cell.cut_short {
        say("provenir:cutShort", true.into());
    }
    if cell.repetition.is_some() {
        say("provenir:repeated", true.into());
    }
    if let Some(port) = cell.diverged_at() {
        say("provenir:divergedAt", port.into());
    }
    if let Some(execution) = &cell.execution {
        say("prov:startTime", time(execution.started).into());
        if let Some(ended) = execution.ended {
            say("prov:endTime", time(ended).into());
        }
        if let Some(seconds) = execution.seconds {
            say("provenir:seconds", seconds.into());
        }
        for (name, value) in &execution.platform {
            say(
                &format!("provenir:platform.{}", encoded(name)),
                value.as_str().into(),
            );
        }
    }
    attributes
}

/// A value that is a qualified name (PROV-JSON, section 2.3).
fn qualified(name: &str) -> Value {
    json!({ "$": name, "type": "prov:QUALIFIED_NAME" })
}

fn file(file: &File) -> Map<String, Value> {
    let mut attributes = Map::new();
    attributes.insert("provenir:blake3".into(), file.blake3.hex().into());
    match file.sha256_hex() {
        Some(sha256) => attributes.insert("provenir:sha256".into(), sha256.into()),
        None => attributes.insert("provenir:absent".into(), true.into()),
    };
    if let Some(size) = file.size {
        attributes.insert("provenir:size".into(), size.into());
    }
    attributes.insert("provenir:mediaType".into(), file.media_type().into());
    attributes
}

fn run_id(run: &Run) -> String {
    format!("run:{}", run.id)
}

fn manifest_id(run: &Run) -> String {
    format!("manifest:{}", run.id)
}

fn engine_id(run: &Run) -> String {
    format!(
        "engine:{}-{}",
        encoded(&run.program.version),
        encoded(&run.program.build)
    )
}

fn cell_id(cell: &Cell) -> String {
    format!("action:{}", cell.id)
}

fn artifact_id(cell: &Cell, port: &str) -> String {
    format!("artifact:{}.{}", cell.id, encoded(port))
}

/// By its bytes and, where that is known, its path: a file of the same bytes elsewhere is another.
fn source_id(source: &Source) -> String {
    let path = source.path.as_ref();
    let path = path.map_or_else(String::new, |path| {
        format!("-{}", provenir_api::Digest::of(path.as_str().as_bytes()).short())
    });
    format!("source:{}{path}", source.file.blake3)
}

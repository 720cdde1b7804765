use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::graph::{Graph, reference, several, without_nulls};
use super::{Crate, MANIFEST};
use crate::provenance::identity::{HOME, encoded, uri};
use crate::provenance::model::Cell;

/// The language that manifests are written in.
const LANGUAGE: &str = "#manifest-language";

/// What the manifest and its parameters conform to, beside the crate's profiles.
const WORKFLOW_PROFILE: &str = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE";
const PARAMETER_PROFILE: &str = "https://bioschemas.org/profiles/FormalParameter/1.0-RELEASE";

/// What a formal parameter is a place for (Workflow Run Crate 0.5: `input`, `output`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Input,
    Parameter,
    Source,
    Output,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Parameter => "parameter",
            Self::Source => "file",
            Self::Output => "output",
        }
    }
}

/// A kind in its revisions, as a part of identifiers.
fn kind_of(cell: &Cell) -> String {
    let revisions = cell.revisions.iter();
    let revisions: Vec<String> = revisions
        .map(|(part, number)| format!("{}-{number}", encoded(part)))
        .collect();
    format!("{}/{}", encoded(&cell.kind), revisions.join("."))
}

/// The tool of a cell: its kind.
pub(super) fn tool(cell: &Cell) -> String {
    uri("kind", kind_of(cell).trim_end_matches('/'))
}

/// The step of a cell: its stage. Stages of one name and different kinds, of different manifests, are different steps.
pub(super) fn step(cell: &Cell) -> String {
    format!("#stage/{}/{}", encoded(&cell.stage), kind_of(cell))
}

/// A formal parameter of the tool of a cell.
pub(super) fn parameter(cell: &Cell, role: Role, name: &str) -> String {
    format!("#kind/{}/{}/{}", kind_of(cell), role.word(), encoded(name))
}

/// The schema.org type of a parameter's value.
fn additional_type(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "Boolean",
        Value::Number(number) if number.is_f64() => "Float",
        Value::Number(_) => "Integer",
        Value::String(_) => "Text",
        Value::Null | Value::Array(_) | Value::Object(_) => "PropertyValue",
    }
}

/// A tool, with what is known of its parameters from the cells that used it.
struct Tool<'a> {
    cell: &'a Cell,
    /// Formal parameters: role and name, with the type of value.
    parameters: BTreeMap<(Role, String), &'static str>,
}

impl Crate<'_> {
    /// Adds the manifest with its steps, tools and connections.
    pub(super) fn add_workflow(&self, graph: &mut Graph) {
        let run = self.provenance.run();
        let version = match &run.git {
            Some(git) => format!(
                "git {}{}{}",
                git.commit,
                if git.dirty { ", dirty" } else { "" },
                if git.untracked.is_empty() {
                    ""
                } else {
                    ", without all files of the run"
                }
            ),
            None => format!("blake3 {}", run.file.blake3),
        };
        let tools = self.tools();
        let mut steps: Vec<(String, &Cell)> = Vec::new();
        let mut seen = BTreeSet::new();
        for cell in &self.provenance.cells {
            let id = step(cell);
            if seen.insert(id.clone()) {
                steps.push((id, cell));
            }
        }
        graph.add(without_nulls(json!({
            "@id": MANIFEST,
            "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
            "name": format!("resolved manifest of {}", run.pipeline),
            "description": run.resolved["pipeline"]["description"],
            "conformsTo": reference(WORKFLOW_PROFILE),
            "programmingLanguage": reference(LANGUAGE),
            "encodingFormat": run.file.media_type(),
            "contentSize": run.file.size.map(|size| size.to_string()),
            "sha256": run.file.sha256_hex(),
            "blake3": run.file.blake3.hex(),
            "version": version,
            "takenFrom": run.manifest,
            "hasPart": several(tools.keys().cloned()),
            "step": several(steps.iter().map(|(id, _)| id.clone())),
        })));
        graph.add(profile(WORKFLOW_PROFILE, "Bioschemas ComputationalWorkflow"));
        graph.add(json!({
            "@id": LANGUAGE,
            "@type": "ComputerLanguage",
            "name": "Provenir manifest (TOML)",
            "url": HOME,
            "version": run.resolved["format"].as_u64().unwrap_or(1).to_string(),
        }));
        for (position, (id, cell)) in steps.iter().enumerate() {
            graph.add(json!({
                "@id": id,
                "@type": "HowToStep",
                "name": cell.stage,
                "position": position.to_string(),
                "workExample": reference(&tool(cell)),
            }));
        }
        for (id, tool) in &tools {
            add_tool(graph, id, tool);
        }
        self.add_connections(graph);
        self.add_workflow_parameters(graph);
    }

    fn tools(&self) -> BTreeMap<String, Tool<'_>> {
        let mut tools: BTreeMap<String, Tool<'_>> = BTreeMap::new();
        for cell in &self.provenance.cells {
            let tool = tools.entry(tool(cell)).or_insert_with(|| Tool {
                cell,
                parameters: BTreeMap::new(),
            });
            let mut add = |role, name: &str, kind| {
                tool.parameters
                    .entry((role, name.to_owned()))
                    .and_modify(|known| {
                        if *known != kind {
                            *known = "PropertyValue";
                        }
                    })
                    .or_insert(kind);
            };
            for input in &cell.inputs {
                add(Role::Input, &input.port, "File");
            }
            for (pointer, _) in &cell.sources {
                add(Role::Source, pointer, "File");
            }
            for output in &cell.outputs {
                add(Role::Output, &output.port, "File");
            }
            for (name, value) in cell.parameters.as_object().into_iter().flatten() {
                add(Role::Parameter, name, additional_type(value));
            }
        }
        tools
    }

    /// How outputs reach inputs (Provenance Run Crate 0.5: `ParameterConnection`), told of the stage that takes.
    fn add_connections(&self, graph: &mut Graph) {
        for cell in &self.provenance.cells {
            for input in &cell.inputs {
                let Some((producer, output)) = self.provenance.origin(input) else {
                    continue;
                };
                let from = parameter(producer, Role::Output, &output.port);
                let to = parameter(cell, Role::Input, &input.port);
                let id = format!(
                    "#connection{}{}",
                    &from[1..].replace("kind/", "/"),
                    &to[1..].replace("kind/", "/")
                );
                graph.add(json!({
                    "@id": id,
                    "@type": "ParameterConnection",
                    "sourceParameter": reference(&from),
                    "targetParameter": reference(&to),
                }));
                graph.refer(&step(cell), "connection", &id);
            }
        }
    }

    /// What goes into the workflow as a whole, and what comes out of it: files from outside, and what the export is about.
    fn add_workflow_parameters(&self, graph: &mut Graph) {
        for cell in &self.provenance.cells {
            for (pointer, source) in &cell.sources {
                let id = format!("#workflow/file/{}{}", encoded(&cell.stage), encoded(pointer));
                let file = self.id(&self.provenance.sources[*source].file);
                add_formal(graph, &id, &format!("{}{pointer}", cell.stage), "File");
                exemplify(graph, &id, &file);
                graph.refer(MANIFEST, "input", &id);
            }
        }
        for (cell, output) in &self.provenance.subjects {
            let cell = &self.provenance.cells[*cell];
            let output = &cell.outputs[*output];
            let id = format!(
                "#workflow/output/{}/{}",
                encoded(&cell.stage),
                encoded(&output.port)
            );
            add_formal(graph, &id, &format!("{}.{}", cell.stage, output.port), "File");
            for file in self.provenance.artifacts[output.artifact].files(output) {
                exemplify(graph, &id, &self.id(file));
            }
            graph.refer(MANIFEST, "output", &id);
        }
    }
}

fn add_formal(graph: &mut Graph, id: &str, name: &str, kind: &str) {
    graph.add(json!({
        "@id": id,
        "@type": "FormalParameter",
        "name": name,
        "additionalType": kind,
        "conformsTo": reference(PARAMETER_PROFILE),
    }));
    graph.add(profile(PARAMETER_PROFILE, "Bioschemas FormalParameter"));
}

fn profile(id: &str, name: &str) -> Value {
    json!({ "@id": id, "@type": "CreativeWork", "name": name, "version": "1.0-RELEASE" })
}

/// Says of both that one is an example of the other. A file that does not lie in the crate is no data entity, and cannot be one.
pub(super) fn exemplify(graph: &mut Graph, parameter: &str, example: &str) {
    if !example.starts_with("#blake3-") {
        graph.refer(parameter, "workExample", example);
        graph.refer(example, "exampleOfWork", parameter);
    }
}

fn add_tool(graph: &mut Graph, id: &str, tool: &Tool<'_>) {
    let cell = tool.cell;
    let ids = |roles: &[Role]| {
        let wanted = tool.parameters.keys().filter(|(role, _)| roles.contains(role));
        several(wanted.map(|(role, name)| parameter(cell, *role, name)))
    };
    let revisions: Vec<String> = cell
        .revisions
        .iter()
        .map(|(part, number)| format!("{part} {number}"))
        .collect();
    let version = if revisions.is_empty() {
        "revisions not recorded".to_owned()
    } else {
        format!("revisions {}", revisions.join(", "))
    };
    graph.add(without_nulls(json!({
        "@id": id,
        "@type": "SoftwareApplication",
        "name": cell.kind,
        "url": HOME,
        "softwareVersion": version,
        "input": ids(&[Role::Input, Role::Parameter, Role::Source]),
        "output": ids(&[Role::Output]),
    })));
    for ((role, name), kind) in &tool.parameters {
        add_formal(graph, &parameter(cell, *role, name), name, kind);
    }
}

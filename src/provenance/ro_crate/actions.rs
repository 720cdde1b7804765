use serde_json::{Value, json};

use super::graph::{Graph, reference, several, without_nulls};
use super::workflow::{Role, exemplify, parameter, step, tool};
use super::{Crate, MANIFEST};
use crate::provenance::identity::{HOME, encoded, offset_time, uri};
use crate::provenance::model::{Cell, Ending, Repetition, Run};
use crate::record::Git;

const COMPLETED: &str = "http://schema.org/CompletedActionStatus";
const FAILED: &str = "http://schema.org/FailedActionStatus";

fn run_id(run: &Run) -> String {
    format!("#run-{}", run.id)
}

fn cell_id(cell: &Cell) -> String {
    format!("#action-{}", cell.id)
}

fn engine_id(run: &Run) -> String {
    uri(
        "engine",
        &format!(
            "{}/{}",
            encoded(&run.program.version),
            encoded(&run.program.build)
        ),
    )
}

impl Crate<'_> {
    /// Adds what was run; says which actions there are.
    pub(super) fn add_actions(&self, graph: &mut Graph) -> Vec<String> {
        let mut actions = Vec::new();
        let mut controls = Vec::new();
        for cell in &self.provenance.cells {
            self.add_cell(graph, cell);
            actions.push(cell_id(cell));
            let control = format!("#control-{}", cell.id);
            graph.add(json!({
                "@id": control,
                "@type": "ControlAction",
                "name": format!("orchestrate {}", cell.name),
                "instrument": reference(&step(cell)),
                "object": reference(&cell_id(cell)),
            }));
            controls.push(control);
        }
        for (index, run) in self.provenance.runs.iter().enumerate() {
            add_engine(graph, run);
            self.add_run(graph, index, run);
            actions.push(run_id(run));
        }
        let run = self.provenance.run();
        graph.add(json!({
            "@id": format!("#organize-{}", run.id),
            "@type": "OrganizeAction",
            "name": format!("Provenir {}, run {}", run.program.version, run.id),
            "instrument": reference(&engine_id(run)),
            "object": several(controls),
            "result": reference(&run_id(run)),
            "startTime": offset_time(run.started),
            "endTime": offset_time(run.ended),
        }));
        actions
    }

    /// A cell as an action (Process Run Crate 0.5: `instrument`, `object`, `result`, `startTime`, `endTime`, `actionStatus`).
    fn add_cell(&self, graph: &mut Graph, cell: &Cell) {
        let id = cell_id(cell);
        let mut objects = Vec::new();
        for input in &cell.inputs {
            let object = if let Some((_, output)) = self.provenance.origin(input) {
                let object = self.id(&self.provenance.artifacts[output.artifact].file);
                exemplify(graph, &parameter(cell, Role::Input, &input.port), &object);
                object
            } else {
                let object = format!("#content-{}", input.content);
                graph.add(json!({
                    "@id": object,
                    "@type": "CreativeWork",
                    "name": "an artifact of unknown origin",
                    "description": "Neither a result nor a record tells what gave it; known by the digest of its values.",
                    "contentBlake3": input.content.hex(),
                }));
                object
            };
            objects.push(object);
        }
        for (pointer, source) in &cell.sources {
            let object = self.id(&self.provenance.sources[*source].file);
            exemplify(graph, &parameter(cell, Role::Source, pointer), &object);
            objects.push(object);
        }
        for (name, value) in cell.parameters.as_object().into_iter().flatten() {
            let plain = match value {
                Value::Array(_) | Value::Object(_) | Value::Null => Value::from(value.to_string()),
                plain => plain.clone(),
            };
            let object = graph.value(format!("#parameter-{}/{}", cell.id, encoded(name)), name, &plain);
            exemplify(graph, &parameter(cell, Role::Parameter, name), &object);
            objects.push(object);
        }
        let mut results = Vec::new();
        for output in &cell.outputs {
            for file in self.provenance.artifacts[output.artifact].files(output) {
                let result = self.id(file);
                exemplify(graph, &parameter(cell, Role::Output, &output.port), &result);
                results.push(result);
            }
        }
        let execution = cell.execution.as_ref();
        let platform = execution.map(|execution| {
            let entries = execution.platform.iter();
            entries
                .map(|(name, value)| {
                    let digest = provenir_api::Digest::of(value.as_bytes()).short();
                    let id = format!("#platform/{}/{digest}", encoded(name));
                    graph.value(id, name, &value.as_str().into())
                })
                .collect::<Vec<String>>()
        });
        let seconds = execution.and_then(|execution| execution.seconds);
        let usage = seconds.map(|seconds| {
            let id = format!("#seconds-{}", cell.id);
            graph.add(json!({
                "@id": id,
                "@type": "PropertyValue",
                "name": "seconds",
                "propertyID": format!("{}seconds", crate::provenance::identity::TERMS),
                "unitCode": "https://qudt.org/vocab/unit/SEC",
                "value": seconds,
            }));
            reference(&id)
        });
        graph.add(without_nulls(json!({
            "@id": id,
            "@type": "CreateAction",
            "name": cell.name,
            "description": self.describe(cell),
            "instrument": reference(&tool(cell)),
            "object": several(objects),
            "result": several(results),
            "startTime": execution.map(|execution| offset_time(execution.started)),
            "endTime": execution.and_then(|execution| execution.ended).map(offset_time),
            "actionStatus": if cell.failure.is_some() { FAILED } else { COMPLETED },
            "error": cell.failure,
            "resourceUsage": usage,
            "additionalProperty": several(platform.unwrap_or_default()),
            "actionKey": cell.key.hex(),
        })));
    }

    fn describe(&self, cell: &Cell) -> String {
        let mut told = format!("stage {}, kind {}", cell.stage, cell.kind);
        let run = cell.execution.as_ref().and_then(|execution| execution.run);
        match run {
            _ if cell.cut_short => told.push_str("; cut short"),
            _ if cell.failure.is_some() => told.push_str("; failed"),
            Some(run) if run == self.provenance.main => told.push_str("; executed in this run"),
            Some(run) => told.push_str(&format!("; executed in run {}", self.provenance.runs[run].id)),
            None => told.push_str("; no record tells when it was executed"),
        }
        match &cell.repetition {
            Some(Repetition::Same) => told.push_str("; it gave the same as the result that counted already"),
            Some(Repetition::Measured) => {
                told.push_str("; what it measured is kept beside the result that counted already");
            }
            Some(Repetition::Diverged { port }) => told.push_str(&format!(
                "; its output {port} is another than that of the result that counts, beside which what it gave is kept"
            )),
            None => {}
        }
        if !cell.also.is_empty() {
            told.push_str(&format!("; also {}", cell.also.join(", ")));
        }
        told
    }

    /// A run as an action. Of the run that is exported, the manifest is the instrument; of one whose results it took, whose
    /// manifest is not the workflow of the crate, the engine is.
    fn add_run(&self, graph: &mut Graph, index: usize, run: &Run) {
        let is_main = index == self.provenance.main;
        let id = run_id(run);
        let executed_here = |cell: &&Cell| {
            let execution = cell.execution.as_ref();
            execution.is_some_and(|execution| execution.run == Some(index))
        };
        let outputs = self.provenance.cells.iter().filter(executed_here);
        let outputs = outputs.flat_map(|cell| &cell.outputs);
        let files = outputs.flat_map(|output| self.provenance.artifacts[output.artifact].files(output));
        let files = files.map(|file| self.id(file));
        let sources = self.provenance.sources.iter().map(|source| self.id(&source.file));
        let mut objects: Vec<String> = if is_main { sources.collect() } else { Vec::new() };
        if !is_main {
            objects.push(self.id(&run.file));
        }
        graph.add(without_nulls(json!({
            "@id": id,
            "@type": "CreateAction",
            "name": format!("{}, run {}", run.pipeline, run.id),
            "description": format!("`{}` on {}; {}", run.command.join(" "), run.host.name, run.ending.word()),
            "instrument": reference(&if is_main { MANIFEST.to_owned() } else { engine_id(run) }),
            "object": several(objects),
            "result": if is_main { self.subjects() } else { several(files) },
            "startTime": offset_time(run.started),
            "endTime": offset_time(run.ended),
            "actionStatus": if run.ending == Ending::Done { COMPLETED } else { FAILED },
            "error": (run.ending != Ending::Done).then(|| format!("the run {}", run.ending.word())),
        })));
        let git = run.git.as_ref();
        let facts = [
            ("command", Value::from(run.command.join(" "))),
            ("manifest", run.manifest.as_str().into()),
            ("program version", run.program.version.as_str().into()),
            ("program build", run.program.build.as_str().into()),
            ("host", run.host.name.as_str().into()),
            ("system", run.host.system.as_str().into()),
            ("architecture", run.host.architecture.as_str().into()),
            ("cores", run.host.cores.into()),
            ("memory in MiB", run.host.memory.into()),
            ("git commit", git.map(|git| git.commit.as_str()).into()),
            ("git dirty", git.map(|git| git.dirty).into()),
            (
                "git diff, BLAKE3",
                git.and_then(|git| git.diff).map(|diff| diff.hex()).into(),
            ),
            ("files that git does not track", git.and_then(Git::lacking).into()),
        ];
        for (name, value) in facts {
            if !value.is_null() {
                let fact = graph.value(format!("{id}/{}", encoded(name)), name, &value);
                graph.refer(&id, "additionalProperty", &fact);
            }
        }
    }
}

/// The program that ran a run.
fn add_engine(graph: &mut Graph, run: &Run) {
    graph.add(json!({
        "@id": engine_id(run),
        "@type": "SoftwareApplication",
        "name": "Provenir",
        "url": HOME,
        "softwareVersion": run.program.version,
        "description": format!("build {}", run.program.build),
    }));
}

impl Ending {
    /// How it ended, in words.
    pub(in crate::provenance) fn word(self) -> &'static str {
        match self {
            Self::Done => "did all that it should",
            Self::Failed => "failed in part",
            Self::Interrupted => "was interrupted",
            Self::Killed => "was killed before it ended",
        }
    }
}

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::{SignedDuration, Timestamp};
use provenir_api::Digest;
use serde_json::Value;

use super::MANIFEST;
use super::gather::{GatherError, Gathering};
use super::model::{Cell, Ending, Execution, File, Input, Repetition, Run};
use crate::lineage::Place;
use crate::plan::normal;
use crate::record::{PastRun, Record, Wire};
use crate::store::{Action, ActionKey, Outcome, StoreError};

impl Gathering<'_> {
    /// What the run computed although a result of it counted: each a cell of its own, since what took anything of that action took
    /// the result that counts, which was there before.
    pub(super) fn add_repetitions(&mut self) {
        let main = self.main;
        let mut seen = BTreeSet::new();
        for executed in main.executed.iter().rev() {
            let key = &executed.key;
            let told = self.execution(key);
            let is_told = told.is_some_and(|(run, told)| {
                run.stored.id == main.stored.id && told.started == executed.started
            });
            if is_told || !self.placed.contains_key(key) || !seen.insert(*key) {
                continue;
            }
            let place = Place::of(&main.cells, key, [Some(&executed.cell)]);
            let Some(mut node) = self.graph.node(key, place) else {
                continue;
            };
            let (gave, repetition) = match &executed.outcome {
                Outcome::Diverged { port, gave } => (gave, Repetition::Diverged { port: port.clone() }),
                Outcome::Measured { gave } => (gave, Repetition::Measured),
                _ => (&executed.outputs, Repetition::Same),
            };
            for artifact in gave {
                self.add_artifact(artifact, &executed.cell, Vec::new());
            }
            node.outputs.clone_from(gave);
            let mut cell = self.cell(&node);
            for output in &mut cell.outputs {
                output.published.clear();
            }
            self.cells.push(Cell {
                id: format!("{key}-{}", main.stored.id),
                name: executed.cell.clone(),
                also: Vec::new(),
                execution: Some(Execution {
                    run: self.position_of_main(),
                    started: executed.started,
                    ended: Some(after(executed.started, executed.seconds)),
                    seconds: Some(executed.seconds),
                    platform: executed.platform.clone(),
                }),
                repetition: Some(repetition),
                ..cell
            });
        }
    }

    /// Cells of the run that failed, or were cut short, and were not executed by a later attempt.
    pub(super) fn add_unfinished(&mut self) -> Result<(), GatherError> {
        let mut unfinished = self.failures()?;
        unfinished.extend(self.cut_short());
        // Cells that are one action fail as one, and a result of the same action may be among the cells.
        let mut told: BTreeSet<ActionKey> = BTreeSet::new();
        for cell in unfinished.into_values() {
            if !told.insert(cell.key) {
                continue;
            }
            let id = if self.placed.contains_key(&cell.key) {
                format!("{}-{}", cell.key, self.main.stored.id)
            } else {
                cell.id
            };
            self.cells.push(Cell { id, ..cell });
        }
        Ok(())
    }

    /// Cells that failed in the run, by name.
    fn failures(&mut self) -> Result<BTreeMap<String, Cell>, GatherError> {
        let times = self.main.stored.failed_at()?;
        let done: BTreeSet<&String> = self.in_main.values().flatten().collect();
        let mut failed: BTreeMap<String, Cell> = BTreeMap::new();
        for record in self.main.stored.records()? {
            let Record::Failed {
                cell,
                key,
                seconds,
                failure,
                action,
                sources,
                wires,
                ..
            } = record
            else {
                continue;
            };
            if done.contains(&cell) {
                continue;
            }
            let took = action.map(|action| self.took(*action, &sources, wires.as_deref()));
            let told = Cell {
                execution: times.get(&cell).map(|ended| Execution {
                    run: self.position_of_main(),
                    started: after(*ended, -seconds),
                    ended: Some(*ended),
                    seconds: Some(seconds),
                    platform: BTreeMap::new(),
                }),
                failure: Some(failure.message),
                ..self.without_result(&cell, key, took)
            };
            failed.insert(cell, told);
        }
        Ok(failed)
    }

    /// Cells that the run had begun and that were neither finished nor failed when it was stopped, by name. What such a cell is and
    /// takes is known where the same action was executed before.
    fn cut_short(&mut self) -> BTreeMap<String, Cell> {
        let main = self.main;
        let Some(run) = self.position_of_main() else {
            return BTreeMap::new();
        };
        let failure = format!("it was not finished: the run {}", self.runs[run].ending.word());
        let mut cut_short = BTreeMap::new();
        for (name, begun) in main.cut_short() {
            let mut before = self.graph.history().executions(&begun.key);
            let known = before.find_map(|(run, executed)| {
                let is_before = run.stored.id <= main.stored.id;
                executed.action.clone().filter(|_| is_before)
            });
            let took = known.map(|action| self.took(action, &BTreeMap::new(), None));
            let told = Cell {
                execution: Some(Execution {
                    run: Some(run),
                    started: begun.started,
                    ended: None,
                    seconds: None,
                    platform: BTreeMap::new(),
                }),
                failure: Some(failure.clone()),
                cut_short: true,
                ..self.without_result(name, begun.key, took)
            };
            cut_short.insert(name.to_owned(), told);
        }
        cut_short
    }

    /// A cell of the run that gave nothing; where its record does not tell what the cell is and took, with what its stage tells.
    fn without_result(&self, name: &str, key: ActionKey, took: Option<Took>) -> Cell {
        let stage = stage(name);
        let took = took.unwrap_or_else(|| {
            let run = self.position_of_main();
            let kind = run.and_then(|run| self.runs[run].resolved["stages"][stage]["kind"].as_str());
            // What one program makes of one stage is of the same revisions.
            let other = self.cells.iter().find(|cell| cell.in_main && cell.stage == stage);
            Took {
                kind: kind.unwrap_or("unknown").to_owned(),
                revisions: other.map(|cell| cell.revisions.clone()).unwrap_or_default(),
                ..Took::default()
            }
        });
        Cell {
            id: key.hex(),
            key,
            name: name.to_owned(),
            also: Vec::new(),
            stage: stage.to_owned(),
            kind: took.kind,
            revisions: took.revisions,
            parameters: took.parameters,
            sources: took.sources,
            inputs: took.inputs,
            outputs: Vec::new(),
            execution: None,
            failure: None,
            cut_short: false,
            repetition: None,
            in_main: true,
        }
    }

    fn position_of_main(&self) -> Option<usize> {
        self.runs.iter().position(|run| run.id == self.main.stored.id)
    }

    /// What an action without a result is and took.
    fn took(
        &mut self,
        action: Action,
        paths: &BTreeMap<String, Utf8PathBuf>,
        wires: Option<&[Wire]>,
    ) -> Took {
        let wires = wires.filter(|wires| wires.len() == action.inputs.len());
        let inputs = action
            .inputs
            .into_iter()
            .enumerate()
            .map(|(number, input)| Input {
                from: self.origin(wires.map(|wires| &wires[number]), &input.content),
                port: input.port,
                gathered: input.gathered,
                source: input.source,
                content: input.content,
            });
        let inputs = inputs.collect();
        let folder = self.main.manifest().and_then(Utf8Path::parent);
        let sources = action.sources.into_iter().map(|(pointer, content)| {
            let path = folder.zip(paths.get(&pointer));
            let path = path.map(|(folder, path)| normal(&folder.join(path)));
            let source = self.source(content, path);
            (pointer, source)
        });
        Took {
            sources: sources.collect(),
            inputs,
            kind: action.kind,
            revisions: action.revisions,
            parameters: action.parameters,
        }
    }

    /// The output that a cell of the run took, as it was wired, or, where no record tells that, any that is equal.
    fn origin(&self, wire: Option<&Wire>, content: &Digest) -> Option<(usize, usize)> {
        match wire {
            Some(wire) => {
                let key = self.main.cells.get(wire.0)?.key?;
                self.given(*self.placed.get(&key)?, Some(&wire.1), content)
            }
            None => (0..self.cells.len()).find_map(|cell| self.given(cell, None, content)),
        }
    }
}

/// What an action is and takes.
#[derive(Default)]
struct Took {
    kind: String,
    revisions: BTreeMap<String, u32>,
    parameters: Value,
    sources: Vec<(String, usize)>,
    inputs: Vec<Input>,
}

/// A run as its record has it; `None` where that does not say what was run.
pub(super) fn described(run: &PastRun, is_main: bool) -> Result<Option<Run>, GatherError> {
    let Some(head) = run.head.clone() else {
        return Ok(None);
    };
    let text = toml::to_string(&head.resolved).map_err(|error| GatherError::Manifest {
        run: head.id.clone(),
        reason: error.to_string(),
    })?;
    // Nothing of the run: equal manifests are equal files.
    let text = format!(
        "# The manifest as it was resolved: after `extends`, the profile and the command line.\n{text}"
    );
    let (ended, ending) = match &run.outcome {
        None => (last_of(run)?.unwrap_or(head.started), Ending::Killed),
        Some(outcome) if outcome.summary.interrupted => (outcome.ended, Ending::Interrupted),
        Some(outcome) if outcome.summary.is_incomplete() => (outcome.ended, Ending::Failed),
        Some(outcome) => (outcome.ended, Ending::Done),
    };
    let place = if is_main {
        MANIFEST.to_owned()
    } else {
        format!("runs/{}/manifest.toml", head.id)
    };
    Ok(Some(Run {
        file: File::of(text.as_bytes(), "toml", place),
        text,
        id: head.id,
        pipeline: head.pipeline,
        manifest: head.manifest,
        resolved: head.resolved,
        command: head.command,
        program: head.program,
        host: head.host,
        git: head.git,
        started: head.started,
        ended,
        ending,
    }))
}

/// The last that is known of a run which could not say when it ended.
fn last_of(run: &PastRun) -> Result<Option<Timestamp>, StoreError> {
    let executed = run.executed.iter();
    let executed = executed.map(|executed| after(executed.started, executed.seconds));
    let failed = run.stored.failed_at()?.into_values();
    let cut_short = run.cut_short().into_values().map(|begun| begun.started);
    Ok(executed.chain(failed).chain(cut_short).max())
}

/// The stage of a cell's name.
pub(super) fn stage(cell: &str) -> &str {
    cell.split('[').next().unwrap_or(cell)
}

/// A time so many seconds later; the same where that cannot be said.
pub(super) fn after(time: Timestamp, seconds: f64) -> Timestamp {
    let Ok(duration) = SignedDuration::try_from_secs_f64(seconds) else {
        return time;
    };
    time.checked_add(duration).unwrap_or(time)
}

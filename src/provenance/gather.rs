use std::collections::{BTreeMap, BTreeSet, VecDeque};

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;

use super::copies::{self, Copies, Copy};
use super::identity::plain;
use super::model::{Artifact, Cell, Execution, File, Input, NamedCopy, Output, Provenance, Run, Source};
use super::order::ordered;
use super::recorded::{after, described, stage};
use crate::exec::Due;
use crate::lineage::{Graph, Node, Place};
use crate::record::{Executed, PastRun, RunId};
use crate::store::{ActionKey, Outcome, StoreError};

/// What is exported.
#[derive(Clone, Debug)]
pub enum Selection {
    /// All that a run has results of, and what failed in it or was cut short.
    Run(RunId),
    /// Results, with all that they were made from.
    Results {
        /// What they are of: at least one.
        of: Vec<Wanted>,
        /// The one output that is meant.
        output: Option<WantedOutput>,
        /// What that is, for people.
        title: String,
    },
}

/// A result that is exported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// The action.
    pub key: ActionKey,
    /// The cell that is meant; absent where any that is this action is.
    pub cell: Option<String>,
}

/// An output that is exported.
#[derive(Clone, Debug)]
pub struct WantedOutput {
    /// Its bytes.
    pub object: Digest,
    /// The file that has them, absolute, where one was named.
    pub path: Option<Utf8PathBuf>,
}

/// Why there is nothing to export.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// Nobody wrote down how it came to be.
    #[error("no recorded run had a result of {0}")]
    Unrecorded(String),
    /// A run that was killed before it had written down what it was, or that was removed.
    #[error("the record of run {0} does not say what was run")]
    Headless(RunId),
    /// A run of which nothing came.
    #[error("run {0} has no results, and no cell of it failed or was cut short")]
    Empty(RunId),
    /// A manifest that cannot be written as TOML.
    #[error("the manifest in the record of run {run} cannot be written as TOML: {reason}")]
    Manifest {
        /// The run.
        run: RunId,
        /// Why.
        reason: String,
    },
}

impl Provenance {
    /// Gathers what is known. Files are not read yet: [`Provenance::read_files`] does that.
    pub fn gather(graph: &Graph, selection: &Selection) -> Result<Self, GatherError> {
        let history = graph.history();
        let main = match selection {
            Selection::Run(id) => history
                .runs
                .iter()
                .find(|run| run.stored.id == *id)
                .ok_or_else(|| GatherError::Headless(id.clone()))?,
            Selection::Results { of, title, .. } => of
                .iter()
                .filter_map(|wanted| run_of(graph, &wanted.key))
                .max_by(|left, right| left.stored.id.cmp(&right.stored.id))
                .ok_or_else(|| GatherError::Unrecorded(title.clone()))?,
        };
        let mut in_main: BTreeMap<ActionKey, BTreeSet<String>> = BTreeMap::new();
        for (cell, key) in main.results() {
            in_main.entry(key).or_default().insert(cell.to_owned());
        }
        let wanted = match selection {
            Selection::Run(_) => all_of(main),
            Selection::Results { of, .. } => of.clone(),
        };
        let roots: BTreeSet<ActionKey> = wanted.iter().map(|wanted| wanted.key).collect();
        let nodes = closure(graph, main, wanted);
        let names: BTreeMap<ActionKey, String> = nodes
            .iter()
            .map(|(key, node)| {
                let own = in_main.get(key);
                let as_told = node
                    .cell
                    .as_ref()
                    .filter(|cell| own.is_none_or(|own| own.contains(*cell)));
                let name = as_told.or_else(|| own?.first()).cloned();
                (*key, name.unwrap_or_else(|| node.name()))
            })
            .collect();
        let unknown = roots.iter().filter(|key| !nodes.contains_key(key));
        let unknown = unknown.flat_map(|key| in_main.get(key).into_iter().flatten());
        let mut gathered = Gathering {
            graph,
            main,
            nodes: &nodes,
            names: &names,
            in_main: &in_main,
            copies: match selection {
                Selection::Run(_) => copies::of_run(graph, main),
                Selection::Results { .. } => copies::there(graph, nodes.keys()),
            },
            of_run: matches!(selection, Selection::Run(_)),
            runs: Vec::new(),
            cells: Vec::new(),
            placed: BTreeMap::new(),
            artifacts: Vec::new(),
            sources: Vec::new(),
            wanted: match selection {
                Selection::Run(_) => None,
                Selection::Results { output, .. } => output.clone(),
            },
            by_object: BTreeMap::new(),
            by_source: BTreeMap::new(),
            places: BTreeSet::new(),
        };
        gathered.add_runs()?;
        gathered.add_cells(&roots);
        if matches!(selection, Selection::Run(_)) {
            gathered.add_repetitions();
            gathered.add_unfinished()?;
        }
        let Gathering {
            runs,
            cells,
            artifacts,
            sources,
            ..
        } = gathered;
        let position = runs.iter().position(|run| run.id == main.stored.id);
        let mut provenance = Self {
            title: match selection {
                Selection::Run(id) => format!("run {id}"),
                Selection::Results { title, .. } => title.clone(),
            },
            main: position.ok_or_else(|| GatherError::Headless(main.stored.id.clone()))?,
            subjects: Vec::new(),
            unknown: unknown.cloned().collect(),
            runs,
            cells,
            artifacts,
            sources,
        };
        provenance.subjects = provenance.find_subjects(selection, &roots);
        match selection {
            Selection::Run(id) if provenance.cells.is_empty() => Err(GatherError::Empty(id.clone())),
            _ => Ok(provenance),
        }
    }

    /// What the export is about: of a run, what it published, or else all that it gave; the file that was named; the
    /// outputs of the cells that were.
    fn find_subjects(&self, selection: &Selection, roots: &BTreeSet<ActionKey>) -> Vec<(usize, usize)> {
        let outputs = |is_meant: &dyn Fn(&Output) -> bool| -> Vec<(usize, usize)> {
            let cells = self.cells.iter().enumerate();
            let cells = cells.filter(|(_, cell)| roots.contains(&cell.key));
            cells
                .flat_map(|(index, cell)| {
                    let outputs = cell.outputs.iter().enumerate();
                    outputs
                        .filter(|(_, output)| is_meant(output))
                        .map(move |(position, _)| (index, position))
                })
                .collect()
        };
        let wanted = match selection {
            Selection::Run(_) => outputs(&|output| !output.published.is_empty()),
            Selection::Results { output: wanted, .. } => outputs(&|output| {
                let wanted = wanted.as_ref();
                wanted.is_some_and(|wanted| self.artifacts[output.artifact].file.blake3 == wanted.object)
            }),
        };
        if wanted.is_empty() {
            outputs(&|_| true)
        } else {
            wanted
        }
    }
}

/// All that a run has results of: of several cells that are one action, the one that was executed.
fn all_of(run: &PastRun) -> Vec<Wanted> {
    let executed = run.executed.iter();
    let mut names: BTreeMap<ActionKey, &str> = executed
        .map(|executed| (executed.key, executed.cell.as_str()))
        .collect();
    for (cell, key) in run.results() {
        names.entry(key).or_insert(cell);
    }
    let wanted = names.into_iter().map(|(key, cell)| Wanted {
        key,
        cell: Some(cell.to_owned()),
    });
    wanted.collect()
}

/// The run that an action's result is exported with: the one that gave it, or else the latest that had it.
fn run_of<'a>(graph: &'a Graph, key: &ActionKey) -> Option<&'a PastRun> {
    let gave = execution(graph, key, None).map(|(run, _)| run);
    gave.filter(|run| run.head.is_some())
        .or_else(|| graph.history().uses(key).find(|run| run.head.is_some()))
}

/// The execution that gave a result of an action that counted: that of the preferred run, or else, of those that gave what that run
/// had, or else the store has, the earliest. One that was forced and found the same in the store, or gave something else, gave no
/// result that others took.
fn execution<'a>(
    graph: &'a Graph,
    key: &ActionKey,
    preferred: Option<&RunId>,
) -> Option<(&'a PastRun, &'a Executed)> {
    let kept = || graph.history().kept(key);
    let then = preferred.and_then(|run| graph.history().counted(key, run));
    let outputs = match then {
        Some((run, executed)) => {
            let is_repeated =
                executed.outcome == Outcome::Same && matches!(executed.reason, None | Some(Due::Forced));
            if Some(&run.stored.id) == preferred && !is_repeated {
                return then;
            }
            executed.outputs.as_slice()
        }
        None => graph.outputs(key),
    };
    kept().filter(|(_, executed)| executed.outputs == outputs).last()
}

/// Results with all that they were made from: as the executions were wired that are told of them, so that nothing is told to
/// have been used before it was there; where no record tells that, as the main run has it. Of several cells that are one
/// action, the one that is wanted, or that the first cell which needs it took from.
fn closure(graph: &Graph, main: &PastRun, wanted: Vec<Wanted>) -> BTreeMap<ActionKey, Node> {
    let mut nodes = BTreeMap::new();
    let mut open: VecDeque<Wanted> = wanted.into();
    while let Some(Wanted { key, cell }) = open.pop_front() {
        if nodes.contains_key(&key) {
            continue;
        }
        let told = execution(graph, &key, Some(&main.stored.id));
        let as_executed = told
            .and_then(|(run, executed)| Place::of(&run.cells, &key, [cell.as_deref(), Some(&executed.cell)]));
        let place = as_executed.or_else(|| {
            let named = cell.as_ref();
            named.map_or_else(
                || graph.place(&key),
                |cell| graph.find(cell, &key, Some(&main.cells)),
            )
        });
        let place = place.map(|place| first_of_action(place, &key));
        if let Some(mut node) = graph.node(&key, place) {
            // The store may have another result by now.
            if let Some((_, executed)) = told {
                node.outputs.clone_from(&executed.outputs);
            }
            let from = node.inputs.iter().filter_map(|link| link.from.clone());
            open.extend(from.map(|from| Wanted {
                key: from.action,
                cell: from.cell,
            }));
            nodes.insert(key, node);
        }
    }
    nodes
}

/// Of cells that are one action and take from each other, one that takes from none of them: it tells what the action was given.
fn first_of_action<'a>(place: Place<'a>, key: &ActionKey) -> Place<'a> {
    let mut first = place;
    let mut seen = BTreeSet::new();
    while seen.insert(first.position) {
        let wires = first.wires().unwrap_or_default().iter();
        let mut origins = wires.map(|wire| first.origin(wire));
        let Some(same) = origins.find(|origin| {
            let cell = origin.cells.get(origin.position);
            cell.is_some_and(|cell| cell.key == Some(*key))
        }) else {
            break;
        };
        first = same;
    }
    first
}

/// What has been gathered so far.
pub(super) struct Gathering<'a> {
    pub(super) graph: &'a Graph,
    pub(super) main: &'a PastRun,
    nodes: &'a BTreeMap<ActionKey, Node>,
    names: &'a BTreeMap<ActionKey, String>,
    pub(super) in_main: &'a BTreeMap<ActionKey, BTreeSet<String>>,
    copies: Copies,
    /// Whether a run is exported: with every named copy, and every file that was taken, of all cells that are one action;
    /// otherwise with those of the cell that is meant.
    of_run: bool,
    pub(super) runs: Vec<Run>,
    pub(super) cells: Vec<Cell>,
    /// Where the cell is among those that gave the result of an action that counts.
    pub(super) placed: BTreeMap<ActionKey, usize>,
    artifacts: Vec<Artifact>,
    sources: Vec<Source>,
    /// The one output that is meant.
    wanted: Option<WantedOutput>,
    by_object: BTreeMap<Digest, usize>,
    by_source: BTreeMap<(Digest, Option<Utf8PathBuf>), usize>,
    /// Places in a crate that are taken.
    places: BTreeSet<String>,
}

impl<'a> Gathering<'a> {
    /// The execution that is told of an action.
    pub(super) fn execution(&self, key: &ActionKey) -> Option<(&'a PastRun, &'a Executed)> {
        execution(self.graph, key, Some(&self.main.stored.id))
    }

    fn add_runs(&mut self) -> Result<(), GatherError> {
        let mut runs: BTreeMap<&RunId, &PastRun> = BTreeMap::from([(&self.main.stored.id, self.main)]);
        for node in self.nodes.values() {
            if let Some((run, _)) = self.execution(&node.action) {
                runs.insert(&run.stored.id, run);
            }
        }
        for run in runs.into_values() {
            let is_main = run.stored.id == self.main.stored.id;
            if let Some(run) = described(run, is_main)? {
                self.places.insert(run.file.place.to_string());
                self.runs.push(run);
            } else if is_main {
                return Err(GatherError::Headless(run.stored.id.clone()));
            }
        }
        Ok(())
    }

    fn add_cells(&mut self, roots: &BTreeSet<ActionKey>) {
        let takes = self.nodes.iter().map(|(key, node)| {
            let from = node
                .inputs
                .iter()
                .filter_map(|link| Some(link.from.as_ref()?.action));
            // Of cells that are one action only one is told of, which may take from itself.
            (
                *key,
                from.filter(|from| from != key).collect::<BTreeSet<ActionKey>>(),
            )
        });
        let order = ordered(self.names, &takes.collect());
        // Files of equal bytes are one artifact: it is named after what is exported, or else after what gives it first.
        let (first, rest): (Vec<ActionKey>, Vec<ActionKey>) =
            order.iter().partition(|key| roots.contains(key));
        for key in first.iter().chain(&rest) {
            self.add_artifacts(&self.nodes[key]);
        }
        for key in order {
            let cell = self.cell(&self.nodes[&key]);
            self.placed.insert(key, self.cells.len());
            self.cells.push(cell);
        }
    }

    pub(super) fn cell(&mut self, node: &Node) -> Cell {
        let name = self.names[&node.action].clone();
        let own = self.in_main.get(&node.action);
        let stage = stage(&name).to_owned();
        let inputs = node.inputs.iter().map(|link| {
            let from = link.from.as_ref().and_then(|from| {
                let cell = *self.placed.get(&from.action)?;
                self.given(cell, link.output.as_deref(), &link.content)
            });
            Input {
                port: link.port.clone(),
                gathered: link.gathered.clone(),
                source: link.source.clone(),
                content: link.content,
                from,
            }
        });
        let inputs = inputs.collect();
        let sources = node.sources.iter().map(|(pointer, source)| {
            let position = self.source(source.content, source.path.clone());
            (pointer.clone(), position)
        });
        let mut sources: Vec<(String, usize)> = sources.collect();
        let others = if self.of_run {
            self.sources_of_others(node, &name)
        } else {
            Vec::new()
        };
        for (pointer, content, path) in others {
            let found = (pointer, self.source(content, Some(path)));
            if !sources.contains(&found) {
                sources.push(found);
            }
        }
        let execution = self.execution(&node.action).map(|(run, executed)| Execution {
            run: self.runs.iter().position(|known| known.id == run.stored.id),
            started: executed.started,
            ended: Some(after(executed.started, executed.seconds)),
            seconds: Some(executed.seconds),
            platform: executed.platform.clone(),
        });
        let copies = self.copies.get(&node.action).map_or(&[][..], Vec::as_slice);
        let outputs = node.outputs.iter().map(|artifact| {
            let copies = copies.iter().filter(|copy| copy.port == artifact.port);
            let mut published: Vec<Utf8PathBuf> = copies.map(|copy| copy.path.clone()).collect();
            published.sort();
            Output {
                port: artifact.port.clone(),
                content: artifact.content,
                rows: artifact.rows,
                volatile: artifact.volatile,
                artifact: self.by_object[&artifact.object],
                published,
            }
        });
        let outputs = outputs.collect();
        Cell {
            id: node.action.hex(),
            key: node.action,
            also: own.map_or_else(Vec::new, |names| {
                names.iter().filter(|other| **other != name).cloned().collect()
            }),
            in_main: own.is_some(),
            stage,
            name,
            kind: node.kind.clone(),
            revisions: node.revisions.clone(),
            parameters: node.parameters.clone(),
            sources,
            inputs,
            outputs,
            execution,
            failure: None,
            cut_short: false,
            repetition: None,
        }
    }

    /// The files that other cells of the main run took which are the same action: of the same bytes, and perhaps elsewhere.
    fn sources_of_others(&self, node: &Node, name: &str) -> Vec<(String, Digest, Utf8PathBuf)> {
        let others = self.in_main.get(&node.action).into_iter().flatten();
        let others = others.filter(|other| *other != name);
        let cells = &self.main.cells;
        let places = others.filter_map(|other| cells.find(other, &node.action));
        places
            .flat_map(|position| {
                node.sources.iter().filter_map(move |(pointer, source)| {
                    Some((pointer.clone(), source.content, cells.source(position, pointer)?))
                })
            })
            .collect()
    }

    /// What a cell gave at a port, or at any, as a place among the outputs.
    pub(super) fn given(&self, cell: usize, port: Option<&str>, content: &Digest) -> Option<(usize, usize)> {
        let gave =
            |output: &Output| port.is_none_or(|port| port == output.port) && output.content == *content;
        let output = self.cells[cell].outputs.iter().position(gave)?;
        Some((cell, output))
    }

    /// Adds the files that a cell gave, as far as they are not there yet.
    fn add_artifacts(&mut self, node: &Node) {
        let name = &self.names[&node.action];
        for artifact in &node.outputs {
            let wanted = self.wanted.as_ref();
            let wanted = wanted.filter(|wanted| wanted.object == artifact.object);
            let wanted = wanted.and_then(|wanted| wanted.path.clone());
            let copies = self.copies.get(&node.action).into_iter().flatten();
            let copies = copies.filter(|copy| copy.port == artifact.port);
            // Those of the cell itself before those of others that are the same action.
            let mut copies: Vec<(bool, &Utf8PathBuf)> = copies
                .map(|Copy { cell, path, .. }| (cell != name, path))
                .collect();
            copies.sort();
            let copies = copies.into_iter().map(|(_, path)| path.clone());
            let copies: Vec<Utf8PathBuf> = wanted.into_iter().chain(copies).collect();
            self.add_artifact(artifact, name, copies);
        }
    }

    /// Adds what a cell gave, or, where the same is there already, its copies.
    pub(super) fn add_artifact(
        &mut self,
        artifact: &crate::store::Artifact,
        cell: &str,
        copies: Vec<Utf8PathBuf>,
    ) {
        let manifest = self.main.manifest().and_then(Utf8Path::parent);
        // Published copies lie below the manifest's folder; those of other manifests may lie anywhere.
        let named = copies.iter().filter_map(|path| {
            let name = path.strip_prefix(manifest?).ok()?;
            Some((name.to_owned(), path.clone()))
        });
        let mut named: VecDeque<(Utf8PathBuf, Utf8PathBuf)> = named.collect();
        let position = if let Some(position) = self.by_object.get(&artifact.object) {
            *position
        } else {
            let first = named.pop_front();
            let place = match &first {
                Some((name, _)) => published(name),
                None => format!(
                    "artifacts/{}.{}-{}.{}",
                    plain(stage(cell)),
                    plain(&artifact.port),
                    artifact.object.short(),
                    plain(&artifact.extension)
                ),
            };
            let file = self.file(artifact, place);
            let (name, path) = match first {
                Some((name, path)) => (name.into_string(), Some(path)),
                None => (format!("{cell}.{}", artifact.port), None),
            };
            self.artifacts.push(Artifact {
                file,
                name,
                path,
                copies: Vec::new(),
                elsewhere: Vec::new(),
            });
            self.by_object.insert(artifact.object, self.artifacts.len() - 1);
            self.artifacts.len() - 1
        };
        self.artifacts[position].elsewhere.extend(copies);
        if !self.of_run {
            return;
        }
        for (name, path) in named {
            let copy = NamedCopy {
                file: self.file(artifact, published(&name)),
                name: name.into_string(),
                path,
            };
            self.artifacts[position].copies.push(copy);
        }
    }

    fn file(&mut self, artifact: &crate::store::Artifact, place: String) -> File {
        File {
            blake3: artifact.object,
            sha256: None,
            size: Some(artifact.size),
            place: self.place(place, &artifact.object.hex()),
            extension: artifact.extension.clone(),
        }
    }

    pub(super) fn source(&mut self, content: Digest, path: Option<Utf8PathBuf>) -> usize {
        if let Some(known) = self.by_source.get(&(content, path.clone())) {
            return *known;
        }
        let name = path.as_deref().and_then(Utf8Path::file_name).map(plain);
        let stem = name
            .as_deref()
            .map_or("source", |name| Utf8Path::new(name).file_stem().unwrap_or(name));
        let extension = name.as_deref().and_then(|name| Utf8Path::new(name).extension());
        let ending = extension.map_or_else(String::new, |extension| format!(".{extension}"));
        let place = format!("sources/{stem}-{}{ending}", content.short());
        let file = File {
            blake3: content,
            sha256: None,
            size: None,
            place: self.place(place, &content.hex()),
            extension: extension.unwrap_or_default().to_owned(),
        };
        self.sources.push(Source {
            file,
            path: path.clone(),
        });
        self.by_source.insert((content, path), self.sources.len() - 1);
        self.sources.len() - 1
    }

    /// A place in a crate that nothing else has: the one wished for, or one below the whole digest.
    fn place(&mut self, wished: String, hex: &str) -> Utf8PathBuf {
        let mut place = wished;
        let mut number = 1;
        while !self.places.insert(place.to_lowercase()) {
            let name = place.rsplit('/').next().unwrap_or_default().to_owned();
            place = format!("more/{hex}-{number}/{name}");
            number += 1;
        }
        place.into()
    }
}

/// The place in a crate of a copy that is called so.
fn published(name: &Utf8Path) -> String {
    name.components().fold("published".to_owned(), |place, part| {
        format!("{place}/{}", plain(part.as_str()))
    })
}

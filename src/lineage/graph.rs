use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use jiff::Timestamp;
use provenir_api::{Digest, Label};
use serde::Serialize;
use serde_json::Value;

use super::place::{NodeId, Place};
use super::reason::Second;
use super::source::SourceFile;
use crate::audit;
use crate::plan::normal;
use crate::record::{Cells, Executed, Git, History, PastRun, RunId};
use crate::store::{Action, ActionKey, Artifact, Catalogue, Publication, Store, StoreError};

/// Every action that a store knows of, by its results and by its records, and what each was made from.
pub struct Graph {
    catalogue: Catalogue,
    history: History,
    publications: BTreeMap<ActionKey, Vec<Publication>>,
    seconds: BTreeMap<ActionKey, Vec<Second>>,
    audits: BTreeMap<ActionKey, Vec<audit::Record>>,
    /// Actions whose results are gone and that records tell of.
    recorded: BTreeMap<ActionKey, (Action, Vec<Artifact>)>,
    /// Actions that gave an artifact of these values.
    producers: BTreeMap<Digest, Vec<ActionKey>>,
    /// Actions that took it.
    consumers: BTreeMap<Digest, BTreeSet<ActionKey>>,
    /// The latest run, by position in the history, whose record tells what each action was wired to.
    telling: BTreeMap<ActionKey, usize>,
}

/// A cell with where it stands in the lineage of another.
#[derive(Clone, Debug, Serialize)]
pub struct Node {
    /// The action.
    pub action: ActionKey,
    /// The cell; absent where no record names one.
    pub cell: Option<String>,
    /// Other cells beside it that are the same action.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// What it does.
    pub kind: String,
    /// Revisions of that.
    pub revisions: BTreeMap<String, u32>,
    /// Its canonical parameters.
    pub parameters: Value,
    /// Its source files, by the JSON pointer of the parameter that names them.
    pub sources: BTreeMap<String, SourceFile>,
    /// What it took.
    pub inputs: Vec<Link>,
    /// What it gave.
    pub outputs: Vec<Artifact>,
    /// Whether its result is in the store.
    pub stored: bool,
    /// How it was last computed, where that was recorded.
    pub computed: Option<Computed>,
    /// Copies of its outputs: path, output, and whether the copy is there.
    pub published: Vec<Copy>,
    /// Second, different results of it that are kept beside the one that counts.
    pub seconds: Vec<Second>,
    /// What audits said of it, the earliest first.
    pub audits: Vec<audit::Record>,
}

/// An artifact on its way from one action to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Link {
    /// The port that it arrives at.
    pub port: String,
    /// Values of gathered axes.
    pub gathered: BTreeMap<String, Label>,
    /// What the consumer knows it by.
    pub source: String,
    /// Digest of its values.
    pub content: Digest,
    /// The cell that gave it; absent where nothing is known of it.
    #[serde(flatten)]
    pub from: Option<NodeId>,
    /// Its output port there, where a record tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// A published copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Copy {
    /// The copy, absolute.
    pub path: Utf8PathBuf,
    /// The output port.
    pub port: String,
    /// The cell that published it.
    pub cell: String,
    /// Whether it is there.
    pub present: bool,
}

/// When, where and by what something was computed.
#[derive(Clone, Debug, Serialize)]
pub struct Computed {
    /// The run.
    pub run: RunId,
    /// When it began.
    pub time: Timestamp,
    /// How long it took.
    pub seconds: f64,
    /// The numeric platform.
    pub platform: BTreeMap<String, String>,
    /// The manifest, absolute.
    pub manifest: Option<Utf8PathBuf>,
    /// The command line.
    pub command: Vec<String>,
    /// Version and build of the program.
    pub build: Option<String>,
    /// The host.
    pub host: Option<String>,
    /// The state of the repository that the manifest lay in.
    pub git: Option<Git>,
}

impl Graph {
    /// Reads a store.
    pub fn read(store: &Store) -> Result<Self, StoreError> {
        let catalogue = Catalogue::read(store.layout())?;
        let history = History::read(store.layout())?;
        let mut seconds = BTreeMap::new();
        for diverged in &catalogue.divergences {
            let key = diverged.result.key;
            seconds.insert(key, Second::of(store, &history, &key)?);
        }
        let mut audits: BTreeMap<ActionKey, Vec<audit::Record>> = BTreeMap::new();
        for record in audit::verdicts(store.layout())? {
            let known = audits.entry(record.key).or_default();
            // An audit computes cells that are one action once.
            let is_same =
                |other: &audit::Record| other.time == record.time && other.verdict == record.verdict;
            if !known.iter().any(is_same) {
                known.push(record);
            }
        }
        let mut publications: BTreeMap<ActionKey, Vec<Publication>> = BTreeMap::new();
        for publication in store.publications()? {
            publications.entry(publication.key).or_default().push(publication);
        }
        let mut telling = BTreeMap::new();
        for (position, run) in history.runs.iter().enumerate() {
            for key in run.cells.actions() {
                let cells = run.cells.of(key).iter();
                let tells = |place: &usize| run.cells.get(*place).is_some_and(|cell| cell.wires.is_some());
                if cells.copied().all(|place| tells(&place)) {
                    telling.entry(*key).or_insert(position);
                }
            }
        }
        let mut graph = Self {
            seconds,
            audits,
            publications,
            producers: catalogue.producers(),
            consumers: BTreeMap::new(),
            recorded: BTreeMap::new(),
            telling,
            catalogue,
            history,
        };
        let executed = || graph.history.runs.iter().flat_map(|run| &run.executed);
        let kept = executed().filter(|executed| executed.is_kept());
        // What gave something else than what counted tells at least what the action was.
        for executed in kept.chain(executed()) {
            if let Some(action) = &executed.action
                && !graph.catalogue.results.contains_key(&executed.key)
            {
                graph
                    .recorded
                    .entry(executed.key)
                    .or_insert_with(|| (action.clone(), executed.outputs.clone()));
            }
        }
        for (key, (_, outputs)) in &graph.recorded {
            for artifact in outputs {
                graph.producers.entry(artifact.content).or_default().push(*key);
            }
        }
        let stored = graph.catalogue.results.values();
        let stored = stored.map(|stored| (stored.result.key, &stored.result.action));
        let recorded = graph.recorded.iter().map(|(key, (action, _))| (*key, action));
        for (key, action) in stored.chain(recorded) {
            for input in &action.inputs {
                graph.consumers.entry(input.content).or_default().insert(key);
            }
        }
        Ok(graph)
    }

    /// The records that it was made of.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Whether anything is known of an action.
    pub fn knows(&self, key: &ActionKey) -> bool {
        self.facts(key).is_some()
    }

    /// The fields of an action's key, where they are known.
    pub fn action(&self, key: &ActionKey) -> Option<&Action> {
        self.facts(key).map(|(action, _)| action)
    }

    fn facts(&self, key: &ActionKey) -> Option<(&Action, &[Artifact])> {
        match self.catalogue.results.get(key) {
            Some(stored) => Some((&stored.result.action, &stored.result.outputs)),
            None => self
                .recorded
                .get(key)
                .map(|(action, outputs)| (action, outputs.as_slice())),
        }
    }

    /// Every action of which something is known.
    pub fn actions(&self) -> impl Iterator<Item = ActionKey> {
        self.catalogue.results.keys().chain(self.recorded.keys()).copied()
    }

    /// The actions that gave an object.
    pub fn makers(&self, object: &Digest) -> Vec<ActionKey> {
        let gave = |key: &ActionKey| {
            self.facts(key)
                .is_some_and(|(_, outputs)| outputs.iter().any(|artifact| artifact.object == *object))
        };
        self.actions().filter(gave).collect()
    }

    /// Where a cell stands of which nothing but its action is known: in the latest run whose record tells what that was wired
    /// to, its first cell.
    pub fn place(&self, key: &ActionKey) -> Option<Place<'_>> {
        let cells = &self.history.runs[*self.telling.get(key)?].cells;
        let position = *cells.of(key).first()?;
        Some(Place { cells, position })
    }

    /// Where the cells of an action stand, in that run; one nowhere, where no record tells.
    pub(super) fn places(&self, key: &ActionKey) -> impl Iterator<Item = Option<Place<'_>>> {
        let first = self.place(key);
        let all = first.map_or(&[][..], |place| place.cells.of(key)).iter();
        let placed = all.filter_map(move |position| {
            Some(Place {
                position: *position,
                ..first?
            })
        });
        let nowhere = first.is_none().then_some(None);
        placed.map(Some).chain(nowhere)
    }

    /// The latest execution that gave what is known of an action, where a record tells of one.
    pub fn execution(&self, key: &ActionKey) -> Option<(&PastRun, &Executed)> {
        let gave = |executed: &Executed| executed.outputs == self.outputs(key);
        let mut kept = self.history.kept(key);
        kept.find(|(_, executed)| gave(executed))
    }

    /// Where a cell stood in the run that gave what is known of its action: by that name, or, where it was called otherwise, as
    /// what was executed.
    pub fn place_as_computed(&self, key: &ActionKey, cell: Option<&str>) -> Option<Place<'_>> {
        let (run, executed) = self.execution(key)?;
        Place::of(&run.cells, key, [cell, Some(&executed.cell)])
    }

    /// What it gave, as far as anything is known of an action.
    pub fn outputs(&self, key: &ActionKey) -> &[Artifact] {
        self.facts(key).map(|(_, outputs)| outputs).unwrap_or_default()
    }

    /// The digests of source files that anything took.
    pub fn sources_taken(&self) -> BTreeSet<Digest> {
        let actions = self.actions().filter_map(|key| self.action(&key));
        actions
            .flat_map(|action| action.sources.values().copied())
            .collect()
    }

    /// What is known of an action, as the cell that stands there, or else the one that it was last.
    pub fn node(&self, key: &ActionKey, place: Option<Place<'_>>) -> Option<Node> {
        let (action, outputs) = self.facts(key)?;
        let execution = self.execution(key);
        let run = execution.map(|(run, _)| run);
        let wires = place.and_then(Place::wires);
        let wires = wires.filter(|wires| wires.len() == action.inputs.len());
        let inputs = action.inputs.iter().enumerate().map(|(number, input)| {
            let wire = wires.and_then(|wires| Some((place?.maker(&wires[number])?, &wires[number].1)));
            let (from, output) = match wire {
                Some((maker, output)) => (Some(maker), Some(output.clone())),
                None => (
                    self.producer(&input.content, key, run).map(|key| self.last(key)),
                    None,
                ),
            };
            Link {
                port: input.port.clone(),
                gathered: input.gathered.clone(),
                source: input.source.clone(),
                content: input.content,
                from,
                output,
            }
        });
        let name = place.map(|place| place.name().to_owned());
        let cell = name.or_else(|| self.history.cell(key).map(str::to_owned));
        let beside: BTreeSet<&str> = place.map(|place| place.beside(key).collect()).unwrap_or_default();
        Some(Node {
            action: *key,
            published: self.copies(key, cell.as_deref(), &beside),
            also: beside.into_iter().map(str::to_owned).collect(),
            cell,
            kind: action.kind.clone(),
            revisions: action.revisions.clone(),
            parameters: action.parameters.clone(),
            sources: self.sources(key, action, place),
            inputs: inputs.collect(),
            outputs: outputs.to_vec(),
            stored: self.catalogue.results.contains_key(key),
            computed: execution.map(|(run, executed)| Computed::of(run, executed)),
            seconds: self.seconds(key).to_vec(),
            audits: self.audits.get(key).cloned().unwrap_or_default(),
        })
    }

    /// An action as the cell that it was last.
    fn last(&self, action: ActionKey) -> NodeId {
        let placed = self.place(&action).map(Place::name);
        let cell = placed.or_else(|| self.history.cell(&action));
        NodeId {
            cell: cell.map(str::to_owned),
            action,
        }
    }

    /// Published copies of what a cell gave: its own, and those that none of the others beside it that are the same action
    /// published.
    fn copies(&self, key: &ActionKey, cell: Option<&str>, beside: &BTreeSet<&str>) -> Vec<Copy> {
        let is_own = |copy: &&Publication| {
            let by = copy.cell.as_str();
            Some(by) == cell || !beside.contains(by)
        };
        let copies = self.publications.get(key).into_iter().flatten();
        let own = copies.filter(is_own);
        own.map(|copy| Copy {
            path: copy.path.clone(),
            port: copy.port.clone(),
            cell: copy.cell.clone(),
            present: fs_err::symlink_metadata(&copy.path).is_ok(),
        })
        .collect()
    }

    /// Second, different results of an action that are kept beside the one that counts.
    pub fn seconds(&self, key: &ActionKey) -> &[Second] {
        self.seconds.get(key).map_or(&[], Vec::as_slice)
    }

    /// The second result that has an object, and its action.
    pub fn second(&self, object: &Digest) -> Option<(ActionKey, &Second)> {
        self.seconds.iter().find_map(|(key, seconds)| {
            let has_it = |second: &&Second| second.outputs.iter().any(|output| output.object == *object);
            Some((*key, seconds.iter().find(has_it)?))
        })
    }

    /// The notes of all published copies of what an action gave.
    pub fn publications(&self, key: &ActionKey) -> &[Publication] {
        self.publications.get(key).map_or(&[], Vec::as_slice)
    }

    /// The source files of a cell, with the paths that its record names, or else the latest record of its action.
    pub(super) fn sources(
        &self,
        key: &ActionKey,
        action: &Action,
        place: Option<Place<'_>>,
    ) -> BTreeMap<String, SourceFile> {
        let latest = |pointer: &String| {
            self.history.executions(key).find_map(|(run, executed)| {
                let folder = run.manifest()?.parent()?;
                Some(normal(&folder.join(executed.sources.get(pointer)?)))
            })
        };
        let sources = action.sources.iter();
        sources
            .map(|(pointer, content)| {
                let own = place.and_then(|place| place.cells.source(place.position, pointer));
                let source = SourceFile {
                    content: *content,
                    path: own.or_else(|| latest(pointer)),
                    now: None,
                };
                (pointer.clone(), source)
            })
            .collect()
    }

    /// Which action an artifact that `consumer` took comes from, where no record tells what was wired to it: of several that
    /// gave the same, one of the consumer's run.
    ///
    /// One that gives on what it took (a corruption of no sample, a split that leaves nothing out) is not where it comes from.
    fn producer(&self, content: &Digest, consumer: &ActionKey, run: Option<&PastRun>) -> Option<ActionKey> {
        let takes = |key: &ActionKey| {
            self.consumers
                .get(content)
                .is_some_and(|consumers| consumers.contains(key))
        };
        let makers = || self.producers.get(content).into_iter().flatten().copied();
        let mut origins: Vec<ActionKey> = makers().filter(|key| !takes(key)).collect();
        if origins.is_empty() {
            origins = makers().filter(|key| key != consumer).collect();
        }
        if origins.len() > 1
            && let Some(run) = run
        {
            let used: BTreeSet<ActionKey> = run.results().map(|(_, key)| key).collect();
            if let Some(key) = origins.iter().find(|key| used.contains(key)) {
                return Some(*key);
            }
        }
        origins.first().copied()
    }

    /// The actions that took something of an action's, as far as no record tells what those were wired to.
    pub(super) fn consumers_by_content(&self, key: &ActionKey) -> BTreeSet<ActionKey> {
        let contents = self.outputs(key).iter().map(|artifact| &artifact.content);
        let takers = contents.flat_map(|content| {
            let takers = self.consumers.get(content).into_iter().flatten();
            takers.filter(|taker| {
                let run = self.history.executions(taker).next().map(|(run, _)| run);
                !self.telling.contains_key(*taker) && self.producer(content, taker, run).as_ref() == Some(key)
            })
        });
        takers.copied().collect()
    }

    /// The latest run whose record tells what each action was wired to, for all of which that is known.
    pub(super) fn telling(&self) -> impl Iterator<Item = (&ActionKey, &Cells)> {
        let telling = self.telling.iter();
        telling.map(|(key, run)| (key, &self.history.runs[*run].cells))
    }
}

impl Computed {
    fn of(run: &PastRun, executed: &Executed) -> Self {
        let head = run.head.as_ref();
        Self {
            run: run.stored.id.clone(),
            time: executed.started,
            seconds: executed.seconds,
            platform: executed.platform.clone(),
            manifest: head.map(|head| head.manifest.clone()),
            command: head.map(|head| head.command.clone()).unwrap_or_default(),
            build: head.map(|head| format!("{}, build {}", head.program.version, head.program.build)),
            host: head.map(|head| head.host.name.clone()),
            git: head.and_then(|head| head.git.clone()),
        }
    }
}

impl Node {
    /// Which it is.
    pub fn id(&self) -> NodeId {
        NodeId {
            cell: self.cell.clone(),
            action: self.action,
        }
    }

    /// A name for people.
    pub fn name(&self) -> String {
        self.cell
            .clone()
            .unwrap_or_else(|| format!("action {}", self.action.short()))
    }
}

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use jiff::Timestamp;
use provenir_api::{Digest, Label};
use serde::Serialize;
use serde_json::Value;

use super::reason::Second;
use super::source::SourceFile;
use crate::audit;
use crate::plan::normal;
use crate::record::{Executed, Git, History, Maker, PastRun, RunId};
use crate::store::{Action, ActionKey, Artifact, Catalogue, Publication, Store, StoreError};

/// Every action that a store knows of, by its results and by its records, and what each was made from.
pub struct Graph {
    catalogue: Catalogue,
    history: History,
    publications: Vec<Publication>,
    seconds: BTreeMap<ActionKey, Vec<Second>>,
    audits: BTreeMap<ActionKey, Vec<audit::Record>>,
    /// Actions whose results are gone and that records tell of.
    recorded: BTreeMap<ActionKey, (Action, Vec<Artifact>)>,
    /// Actions that gave an artifact of these values.
    producers: BTreeMap<Digest, Vec<ActionKey>>,
    /// Actions that took it.
    consumers: BTreeMap<Digest, BTreeSet<ActionKey>>,
    /// What each action was wired to, input by input, in the latest run that tells.
    wiring: Wiring,
    /// Actions that were wired to take something of an action, in that run.
    wired: BTreeMap<ActionKey, BTreeSet<ActionKey>>,
}

/// What gave each artifact that an action took, by action, in the order of its inputs.
pub type Wiring = BTreeMap<ActionKey, Vec<Maker>>;

/// An action with where it stands in the lineage of another.
#[derive(Clone, Debug, Serialize)]
pub struct Node {
    /// The action.
    pub action: ActionKey,
    /// The cell that it was last; absent where no record names one.
    pub cell: Option<String>,
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
    /// The action that gave it; absent where nothing is known of it.
    pub from: Option<ActionKey>,
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
            seconds.insert(key, Second::of(store, &key)?);
        }
        let mut audits: BTreeMap<ActionKey, Vec<audit::Record>> = BTreeMap::new();
        for record in audit::verdicts(store.layout())? {
            audits.entry(record.key).or_default().push(record);
        }
        let mut graph = Self {
            seconds,
            audits,
            publications: store.publications()?,
            producers: catalogue.producers(),
            consumers: BTreeMap::new(),
            recorded: BTreeMap::new(),
            wiring: Wiring::new(),
            wired: BTreeMap::new(),
            catalogue,
            history,
        };
        graph.wire();
        for run in &graph.history.runs {
            for executed in &run.executed {
                if let Some(action) = &executed.action
                    && !graph.catalogue.results.contains_key(&executed.key)
                {
                    graph
                        .recorded
                        .entry(executed.key)
                        .or_insert_with(|| (action.clone(), executed.outputs.clone()));
                }
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

    /// Takes from the records what was wired to what.
    fn wire(&mut self) {
        for run in &self.history.runs {
            let mut told = Wiring::new();
            for (key, makers) in run.wiring() {
                if self.wiring.contains_key(&key) {
                    continue;
                }
                // Twice the same that changes nothing takes what it gave, and is not made from itself.
                for maker in makers.iter().filter(|maker| maker.action != key) {
                    self.wired.entry(maker.action).or_default().insert(key);
                }
                told.entry(key).or_insert(makers);
            }
            self.wiring.append(&mut told);
        }
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

    /// What is known of an action.
    pub fn node(&self, key: &ActionKey) -> Option<Node> {
        self.node_wired(key, &self.wiring)
    }

    /// The same, with what it took from where as `wiring` has it, as far as that tells.
    pub fn node_wired(&self, key: &ActionKey, wiring: &Wiring) -> Option<Node> {
        let (action, outputs) = self.facts(key)?;
        let execution = self.history.executions(key).next();
        let run = execution.map(|(run, _)| run);
        let makers = wiring.get(key).or_else(|| self.wiring.get(key));
        let makers = makers.filter(|makers| makers.len() == action.inputs.len());
        let inputs = action.inputs.iter().enumerate().map(|(position, input)| {
            let maker = makers.map(|makers| &makers[position]);
            Link {
                port: input.port.clone(),
                gathered: input.gathered.clone(),
                source: input.source.clone(),
                content: input.content,
                from: match maker {
                    Some(maker) => Some(maker.action),
                    None => self.producer(&input.content, key, run),
                },
                output: maker.map(|maker| maker.output.clone()),
            }
        });
        let copies = self.publications.iter().filter(|copy| copy.key == *key);
        Some(Node {
            action: *key,
            cell: self.history.cell(key).map(str::to_owned),
            kind: action.kind.clone(),
            revisions: action.revisions.clone(),
            parameters: action.parameters.clone(),
            sources: self.sources(key, action),
            inputs: inputs.collect(),
            outputs: outputs.to_vec(),
            stored: self.catalogue.results.contains_key(key),
            computed: execution.map(|(run, executed)| Computed::of(run, executed)),
            published: copies
                .map(|copy| Copy {
                    path: copy.path.clone(),
                    port: copy.port.clone(),
                    present: fs_err::symlink_metadata(&copy.path).is_ok(),
                })
                .collect(),
            seconds: self.seconds.get(key).cloned().unwrap_or_default(),
            audits: self.audits.get(key).cloned().unwrap_or_default(),
        })
    }

    /// The source files of an action, with the paths that its latest record names.
    fn sources(&self, key: &ActionKey, action: &Action) -> BTreeMap<String, SourceFile> {
        let path = |pointer: &String| {
            self.history.executions(key).find_map(|(run, executed)| {
                let folder = run.manifest()?.parent()?;
                Some(normal(&folder.join(executed.sources.get(pointer)?)))
            })
        };
        let sources = action.sources.iter();
        sources
            .map(|(pointer, content)| {
                let source = SourceFile {
                    content: *content,
                    path: path(pointer),
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
            let used: BTreeSet<ActionKey> = run.cells().map(|(_, key)| key).collect();
            if let Some(key) = origins.iter().find(|key| used.contains(key)) {
                return Some(*key);
            }
        }
        origins.first().copied()
    }

    /// The actions that took something of an action's.
    pub fn consumers(&self, key: &ActionKey) -> BTreeSet<ActionKey> {
        let outputs = self.facts(key).map(|(_, outputs)| outputs).unwrap_or_default();
        let contents = outputs.iter().map(|artifact| &artifact.content);
        let by_content = contents.flat_map(|content| {
            let takers = self.consumers.get(content).into_iter().flatten();
            takers.filter(|taker| {
                let run = self.history.executions(taker).next().map(|(run, _)| run);
                !self.wiring.contains_key(*taker) && self.producer(content, taker, run).as_ref() == Some(key)
            })
        });
        let wired = self.wired.get(key).into_iter().flatten();
        let wired = wired.filter(|taker| self.knows(taker));
        by_content.chain(wired).copied().collect()
    }

    /// The wiring of a cell that is this action, in the latest run that tells: where cells are one action, each is wired in
    /// its own way.
    fn wiring_as(&self, cell: &str, key: &ActionKey) -> Wiring {
        let mut runs = self.history.runs.iter();
        let own = runs.find_map(|run| run.wiring_of(cell).filter(|(found, _)| found == key));
        let wiring: Wiring = own.into_iter().collect();
        // What comes to an action by way of itself (twice the same corruption of nothing) tells nothing of its origin.
        let mut seen = BTreeSet::new();
        let mut open: Vec<ActionKey> = wiring.values().flatten().map(|maker| maker.action).collect();
        while let Some(maker) = open.pop() {
            if maker == *key {
                return Wiring::new();
            }
            if seen.insert(maker)
                && let Some(node) = self.node(&maker)
            {
                open.extend(node.inputs.iter().filter_map(|link| link.from));
            }
        }
        wiring
    }

    /// An action with all that it was made from, directly or not, and all that was made from it: by key. Source files are
    /// looked at: whether they are as they were taken. Where a cell is meant, its name is given.
    pub fn lineage(&self, store: &Store, focus: &ActionKey, cell: Option<&str>) -> BTreeMap<ActionKey, Node> {
        let own = cell.map_or_else(Wiring::new, |cell| self.wiring_as(cell, focus));
        let mut nodes = BTreeMap::new();
        let mut open = vec![*focus];
        while let Some(key) = open.pop() {
            if !nodes.contains_key(&key)
                && let Some(mut node) = self.node_wired(&key, &own)
            {
                if own.contains_key(&key) {
                    node.cell = cell.map(str::to_owned);
                }
                open.extend(node.inputs.iter().filter_map(|link| link.from));
                nodes.insert(key, node);
            }
        }
        let mut seen = BTreeSet::new();
        open.extend(self.consumers(focus));
        while let Some(key) = open.pop() {
            if seen.insert(key) {
                open.extend(self.consumers(&key));
                if let Some(node) = self.node(&key) {
                    nodes.entry(key).or_insert(node);
                }
            }
        }
        let sources = nodes.values_mut().flat_map(|node| node.sources.values_mut());
        SourceFile::look(sources, store);
        nodes
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
    /// A name for people.
    pub fn name(&self) -> String {
        self.cell
            .clone()
            .unwrap_or_else(|| format!("action {}", self.action.short()))
    }
}

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use provenir_api::Digest;

use super::roots::{Keep, Root, Roots, live_since};
use crate::clock;
use crate::lineage::Place;
use crate::record::{History, PastRun, RunId};
use crate::store::{
    Abandoned, ActionKey, Catalogue, Partial, Store, StoreError, StoredObject, StoredResult, abandoned,
    partials, standing,
};

/// What a store holds, divided into what is kept and what may go.
pub struct Survey {
    /// Results that may go, those of the largest objects first.
    pub results: Vec<Unwanted>,
    /// Objects that only those results name, or none.
    pub(super) objects: Vec<StoredObject>,
    /// How many of the objects no result names, and their bytes.
    pub orphans: (usize, u64),
    /// Checkpoints that may go.
    pub partials: Vec<Partial>,
    /// Checkpoints that are kept.
    pub kept_partials: Vec<Partial>,
    /// What dead processes left behind.
    pub abandoned: Abandoned,
    /// How many results are kept for each kind of reason; a result with several reasons counts for the first.
    pub kept: BTreeMap<&'static str, usize>,
    /// Objects that are kept.
    pub kept_objects: usize,
    /// Bytes of those, and of the files of results that are kept.
    pub kept_bytes: u64,
}

/// A result that nothing reaches.
#[derive(Clone, Debug)]
pub struct Unwanted {
    /// Its action.
    pub key: ActionKey,
    /// The cell that it was last, where a record names one.
    pub cell: Option<String>,
    /// What the action does.
    pub kind: String,
    /// Bytes that go with it: those of its own files, and of its objects that no kept result shares. Where several of these
    /// results share an object, the first counts it.
    pub bytes: u64,
    /// How long it took to compute, where that was recorded.
    pub seconds: Option<f64>,
    /// Whether computing it again gives something else, because it is volatile, as a measured time.
    pub volatile: bool,
    /// The latest run that had it.
    pub last_use: Option<(RunId, Option<Utf8PathBuf>)>,
    /// Published copies of it that are not there any more.
    pub gone: Vec<Utf8PathBuf>,
    /// Its files, and when each was written.
    pub(super) files: Vec<(Utf8PathBuf, u64)>,
    /// Bytes of those files.
    pub(super) own_bytes: u64,
}

impl Unwanted {
    /// The result of an action in its files. `sizes` has the objects that may go and that no result has counted yet.
    fn of(
        key: ActionKey,
        files: &[&StoredResult],
        gone: Vec<Utf8PathBuf>,
        sizes: &mut BTreeMap<Digest, u64>,
        history: &History,
    ) -> Self {
        let outputs = || files.iter().flat_map(|stored| &stored.result.outputs);
        let objects: u64 = outputs()
            .filter_map(|artifact| sizes.remove(&artifact.object))
            .sum();
        let own_bytes: u64 = files.iter().map(|stored| stored.size).sum();
        let last_use = history.last_use(&key).map(|run| {
            let manifest = run.manifest().map(ToOwned::to_owned);
            (run.stored.id.clone(), manifest)
        });
        let kind = files.first().map(|stored| stored.result.action.kind.clone());
        let files = files.iter().map(|stored| (stored.path.clone(), stored.modified));
        Self {
            key,
            cell: history.cell(&key).map(str::to_owned),
            kind: kind.unwrap_or_default(),
            bytes: own_bytes + objects,
            seconds: history.seconds(&key),
            volatile: outputs().any(|artifact| artifact.volatile),
            last_use,
            gone,
            own_bytes,
            files: files.collect(),
        }
    }
}

impl Survey {
    /// How many objects may go, and their bytes.
    pub fn objects(&self) -> (usize, u64) {
        (
            self.objects.len(),
            self.objects.iter().map(StoredObject::size).sum(),
        )
    }

    /// All bytes that may go.
    pub fn bytes(&self) -> u64 {
        let results: u64 = self.results.iter().map(|unwanted| unwanted.own_bytes).sum();
        let partials: u64 = self.partials.iter().map(|partial| partial.size).sum();
        self.objects().1 + results + partials + self.abandoned.bytes
    }

    /// Whether nothing may go.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
            && self.objects.is_empty()
            && self.partials.is_empty()
            && self.abandoned == Abandoned::default()
    }
}

/// Finds what may go. Changes nothing.
pub fn survey(store: &Store, keep: Keep) -> Result<Survey, StoreError> {
    let objects = store.objects()?;
    let catalogue = Catalogue::read(store.layout())?;
    let history = History::read(store.layout())?.complete()?;
    let mut roots = Roots::find(store, &history, keep)?;
    // What was written since a run that is under way began may be that run's, which has named it nowhere yet.
    let live_since = live_since(&history);
    let is_live = |modified: u64| live_since.is_some_and(|since| i128::from(modified) >= since);
    let is_in_grace = |modified: u64| clock::age(i128::from(modified)) < keep.grace;
    let is_young = |modified: u64| is_in_grace(modified) || is_live(modified);
    for stored in catalogue.all() {
        if is_in_grace(stored.modified) {
            roots.add(stored.result.key, Root::Young);
        } else if is_live(stored.modified) {
            roots.add(stored.result.key, Root::Meanwhile);
        }
    }
    let claimed: BTreeSet<ActionKey> = standing(store.layout())?
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    let reached = reach(&catalogue, &history, &roots);
    let mut kept: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut wanted: BTreeSet<Digest> = roots.objects.clone();
    let mut named: BTreeSet<Digest> = BTreeSet::new();
    let mut unwanted: BTreeMap<ActionKey, Vec<&StoredResult>> = BTreeMap::new();
    let mut kept_bytes = 0;
    for stored in catalogue.all() {
        let key = stored.result.key;
        let outputs = stored.result.outputs.iter().map(|artifact| artifact.object);
        named.extend(outputs.clone());
        if reached.contains(&key) || claimed.contains(&key) {
            wanted.extend(outputs);
            kept_bytes += stored.size;
        } else {
            unwanted.entry(key).or_default().push(stored);
        }
    }
    for key in catalogue
        .results
        .keys()
        .filter(|key| !unwanted.contains_key(*key))
    {
        *kept.entry(reason(&roots, key)).or_default() += 1;
    }
    let mut survey = Survey {
        results: Vec::new(),
        objects: Vec::new(),
        orphans: (0, 0),
        partials: Vec::new(),
        kept_partials: Vec::new(),
        abandoned: abandoned(store.layout())?,
        kept,
        kept_objects: 0,
        kept_bytes,
    };
    let mut sizes: BTreeMap<Digest, u64> = BTreeMap::new();
    for stored in objects {
        let is_orphan = !named.contains(&stored.object);
        let is_in_use = is_live(stored.modified()) || is_orphan && is_young(stored.modified());
        if wanted.contains(&stored.object) || is_in_use {
            survey.kept_objects += 1;
            survey.kept_bytes += stored.size();
            continue;
        }
        if is_orphan {
            survey.orphans.0 += 1;
            survey.orphans.1 += stored.size();
        }
        sizes.insert(stored.object, stored.size());
        survey.objects.push(stored);
    }
    for (key, files) in unwanted {
        let gone = roots.gone.remove(&key).unwrap_or_default();
        survey
            .results
            .push(Unwanted::of(key, &files, gone, &mut sizes, &history));
    }
    survey.results.sort_by(|left, right| {
        (right.bytes, &left.cell, left.key).cmp(&(left.bytes, &right.cell, right.key))
    });
    (survey.kept_partials, survey.partials) = partials(store.layout())?.into_iter().partition(|partial| {
        is_young(partial.modified) || claimed.contains(&partial.key) || roots.begun.contains(&partial.key)
    });
    Ok(survey)
}

/// Every action that is a root or gave something that a reached action took. Where actions gave the same, those count that it was
/// computed from, and that it was wired to last; all of them where no record tells.
fn reach(catalogue: &Catalogue, history: &History, roots: &Roots) -> BTreeSet<ActionKey> {
    let producers = catalogue.producers();
    let mut reached = BTreeSet::new();
    let mut open: Vec<ActionKey> = roots.actions.keys().copied().collect();
    while let Some(key) = open.pop() {
        if !reached.insert(key) {
            continue;
        }
        let Some(stored) = catalogue.results.get(&key) else {
            continue;
        };
        let makers = makers(history, &key);
        for (number, input) in stored.result.action.inputs.iter().enumerate() {
            let told = makers.iter().filter_map(|makers| makers.get(number));
            open.extend(told.clone());
            if told.count() == 0 {
                open.extend(producers.get(&input.content).into_iter().flatten());
            }
        }
    }
    reached
}

/// The actions that gave what an action took, input by input: when it was computed, and in the latest run that tells.
fn makers(history: &History, key: &ActionKey) -> Vec<Vec<ActionKey>> {
    let told = |run: &PastRun| {
        let cells = &run.cells;
        let positions = cells.of(key).iter();
        let places = positions.map(|position| Place {
            cells,
            position: *position,
        });
        let makers: Vec<_> = places.filter_map(Place::makers).collect();
        (!makers.is_empty()).then_some(makers)
    };
    let computed = history.kept(key).find_map(|(run, _)| told(run));
    let latest = history.runs.iter().find_map(told);
    computed.into_iter().chain(latest).flatten().collect()
}

/// The first reason for which a result is kept, in words that follow "kept:".
fn reason(roots: &Roots, key: &ActionKey) -> &'static str {
    match roots.actions.get(key).and_then(|reasons| reasons.first()) {
        Some(Root::Pin | Root::PinnedRun(_)) => "pinned",
        Some(Root::Figure(_)) => "published",
        Some(Root::Altered(_)) => "published and altered since",
        Some(Root::Run(_)) => "of recent runs",
        Some(Root::Live(_)) => "of runs under way",
        Some(Root::Young) => "written recently",
        Some(Root::Meanwhile) => "written while a run is under way",
        None => "needed by others of them",
    }
}

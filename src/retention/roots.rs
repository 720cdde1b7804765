use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;

use crate::clock;
use crate::record::{History, OutcomeFile, PastRun, RunId};
use crate::store::{ActionKey, Liveness, Remains, Store, StoreError};

/// A run without a description, which is written a moment after it begins, is taken to have just begun for so long.
const BEGINNING: Duration = Duration::from_hours(24);

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// What the latest so many runs of every manifest had results of, and the latest so many that finished all that it has.
    pub runs: usize,
    /// What was written in this time.
    pub grace: Duration,
}

/// Why something is kept for its own sake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    /// A person pinned the result.
    Pin,
    /// A person pinned the run.
    PinnedRun(RunId),
    /// A copy of it is published, and there.
    Figure(Utf8PathBuf),
    /// A copy of it was published, and altered since: the next run restores it.
    Altered(Utf8PathBuf),
    /// It belongs to one of the latest runs of its manifest.
    Run(RunId),
    /// A run that is under way relies on it.
    Live(RunId),
    /// It was written within the time of grace.
    Young,
    /// It was written while a run is under way, which may have named it nowhere yet.
    Meanwhile,
}

/// Actions and objects that are kept for their own sake.
#[derive(Debug, Default)]
pub(super) struct Roots {
    pub(super) actions: BTreeMap<ActionKey, BTreeSet<Root>>,
    pub(super) objects: BTreeSet<Digest>,
    /// Actions that kept runs began, whose checkpoints are of use.
    pub(super) begun: BTreeSet<ActionKey>,
    /// Published copies that are not there any more, by action.
    pub(super) gone: BTreeMap<ActionKey, Vec<Utf8PathBuf>>,
}

impl Roots {
    pub(super) fn find(store: &Store, history: &History, keep: Keep) -> Result<Self, StoreError> {
        let mut roots = Self::default();
        for pin in store.pins()? {
            roots.add(pin.key, Root::Pin);
        }
        for publication in store.publications_complete()? {
            let root = match publication.remains() {
                Remains::Unaltered => Root::Figure(publication.path),
                Remains::Altered => Root::Altered(publication.path),
                Remains::Gone => {
                    let gone = roots.gone.entry(publication.key).or_default();
                    gone.push(publication.path);
                    continue;
                }
            };
            roots.objects.insert(publication.object);
            roots.add(publication.key, root);
        }
        let mut counts: BTreeMap<Option<&Utf8Path>, (usize, usize)> = BTreeMap::new();
        for run in &history.runs {
            let (all, whole) = counts.entry(run.manifest()).or_default();
            let is_whole = is_whole(run);
            let is_recent = *all < keep.runs || is_whole && *whole < keep.runs;
            *all += 1;
            *whole += usize::from(is_whole);
            let root = if is_live(run) {
                Root::Live(run.stored.id.clone())
            } else if run.annotation.pinned {
                Root::PinnedRun(run.stored.id.clone())
            } else if is_recent {
                Root::Run(run.stored.id.clone())
            } else {
                continue;
            };
            for (_, key) in run.results() {
                roots.add(key, root.clone());
            }
            if is_live(run) {
                let begun = run.stored.executions()?.into_iter();
                roots.begun.extend(begun.map(|execution| execution.key));
            }
            roots.begun.extend(run.unfinished());
        }
        Ok(roots)
    }

    pub(super) fn add(&mut self, key: ActionKey, root: Root) {
        self.actions.entry(key).or_default().insert(root);
    }
}

/// Whether a run finished all cells of its manifest, and was not asked for some of them alone.
fn is_whole(run: &PastRun) -> bool {
    let mut words = run.head.iter().flat_map(|head| &head.command);
    let is_part = words.any(|word| {
        let option = word.split('=').next().unwrap_or_default();
        ["--only", "--axis"].contains(&option)
    });
    let is_complete = |outcome: &OutcomeFile| !outcome.summary.is_incomplete();
    !is_part && run.outcome.as_ref().is_some_and(is_complete)
}

/// When the earliest of the runs began that are under way, in nanoseconds since the epoch, by whichever clock tells the earlier
/// time: that of the file system may be another.
pub(super) fn live_since(history: &History) -> Option<i128> {
    /// Clocks may differ by so much.
    const SLACK: i128 = 60_000_000_000;
    let live = history.runs.iter().filter(|run| is_live(run));
    let times = live.flat_map(|run| {
        let told = run.head.as_ref().map(|head| head.started.as_nanosecond());
        [told, written(&run.stored.folder().join("run.json"))]
    });
    times.flatten().min().map(|since| since - SLACK)
}

/// When a file was written, in nanoseconds since the epoch.
fn written(path: &Utf8Path) -> Option<i128> {
    let modified = fs_err::metadata(path).ok()?.modified().ok()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    i128::try_from(since.as_nanos()).ok()
}

/// Whether a run may still be under way.
fn is_live(run: &PastRun) -> bool {
    match (&run.outcome, &run.head) {
        (Some(_), _) => false,
        (None, Some(head)) => head.owner.liveness() != Liveness::Dead,
        (None, None) => written(run.stored.folder()).is_some_and(|since| clock::age(since) < BEGINNING),
    }
}

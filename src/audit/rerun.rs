use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::{Determinism, Digest};
use serde::Serialize;

use super::compare::first_difference;
use super::listen::Listener;
use super::verdict::{Record, Verdict};
use crate::clock;
use crate::exec::{self, Options, RunOutcome, Standing, Subscriber, Survey};
use crate::plan::{CellIndex, Plan};
use crate::record::Program;
use crate::store::{ActionKey, ActionResult, Committed, Layout, Owner, Store, StoreError, copy_verified};

/// Which cells an audit computes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen<'a> {
    /// All.
    All,
    /// These, and all that they were computed from.
    Chains(&'a BTreeSet<CellIndex>),
    /// So many, which depend on the seed and the cells' actions alone.
    Sample {
        /// How many.
        count: usize,
        /// The seed.
        seed: u64,
    },
}

/// What an audit is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The cells to compute again.
    pub cells: &'a BTreeSet<CellIndex>,
    /// The scratch store's folder, which is made; others, for what is below volatile outputs, are made beside it.
    pub scratch: &'a Utf8Path,
    /// Whether that stays, so that logs are worth writing and naming.
    pub stays: bool,
    /// What numbers may differ by on another platform, relative to the greatest magnitude of their column or list, where a kind
    /// promises bits on one platform alone; without it, such differences are not judged.
    pub tolerance: Option<f64>,
}

/// What came of an audit.
#[derive(Debug)]
pub struct Audit {
    /// What it found, cell by cell.
    pub audited: Vec<Audited>,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// Why that could not be recorded in the store, where it could not.
    pub unrecorded: Option<StoreError>,
}

/// What an audit found of a cell.
#[derive(Clone, Debug)]
pub struct Audited {
    /// The cell, as the manifest names it.
    pub cell: String,
    /// Its action.
    pub key: ActionKey,
    /// The verdict.
    pub verdict: Verdict,
    /// Outputs that were not compared beside others that were: they are true but not repeatable.
    pub uncompared: Vec<String>,
    /// Why a tolerance that was given does not apply to what differs.
    pub untolerated: Option<Untolerated>,
}

/// Why no tolerance applies to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Untolerated {
    /// Its kind gives the same on every platform.
    ExactKind,
    /// The result is of this platform.
    SamePlatform,
}

/// The cells of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Those to compute again: of those that are chosen, those whose results the store has.
    pub cells: BTreeSet<CellIndex>,
    /// Those whose results it has not.
    pub lacking: Vec<CellIndex>,
    /// Those that a sample leaves out, although the store has their results. Cells that are one action with one of the sample
    /// are not among them.
    pub left_out: Vec<CellIndex>,
    /// Those that a sample is not taken from, because nothing of what they give could be compared: it is volatile.
    pub incomparable: Vec<CellIndex>,
}

/// Chooses the cells of an audit.
pub fn choose(plan: &Plan, survey: &Survey<'_>, chosen: Chosen<'_>) -> Choice {
    let wanted: BTreeSet<CellIndex> = match chosen {
        Chosen::All | Chosen::Sample { .. } => (0..plan.cells.len()).collect(),
        Chosen::Chains(cells) => plan.with_ancestors(cells),
    };
    let mut found: Vec<(CellIndex, ActionKey)> = Vec::new();
    let mut choice = Choice::default();
    for cell in wanted {
        match &survey.standings[cell] {
            Standing::Cached(result) => found.push((cell, result.key())),
            Standing::Due { .. } | Standing::Unknown { .. } => choice.lacking.push(cell),
        }
    }
    if let Chosen::Sample { count, seed } = chosen {
        // Cells that are one action would count as several.
        let mut seen = BTreeSet::new();
        found.retain(|(_, key)| seen.insert(*key));
        let is_comparable = |cell: CellIndex| match &survey.standings[cell] {
            Standing::Cached(result) => {
                let mut outputs = result.outputs().iter();
                outputs.any(|artifact| !is_volatile(plan, cell, &artifact.port))
            }
            Standing::Due { .. } | Standing::Unknown { .. } => false,
        };
        found.retain(|(cell, _)| {
            let is_comparable = is_comparable(*cell);
            if !is_comparable {
                choice.incomparable.push(*cell);
            }
            is_comparable
        });
        found.sort_by_key(|(_, key)| Digest::of(format!("audit {seed} {key}").as_bytes()));
        let left_out = found.split_off(count.min(found.len()));
        choice.left_out = left_out.into_iter().map(|(cell, _)| cell).collect();
        choice.left_out.sort_unstable();
    }
    choice.cells = found.into_iter().map(|(cell, _)| cell).collect();
    choice
}

/// Computes cells again in a scratch store and compares what comes out with what the store has. What they take that is not to be
/// computed again comes from the store. Verdicts are recorded in the store.
pub fn audit(
    plan: &Plan,
    store: &Store,
    request: Request<'_>,
    program: &Program,
    options: &Options,
    subscriber: &mut dyn Subscriber,
) -> Result<Audit, StoreError> {
    let Request {
        cells,
        scratch,
        stays,
        tolerance,
    } = request;
    let survey = Survey::take(plan, store, &BTreeSet::new())?;
    let mut listener = Listener::new(subscriber, cells.len(), stays);
    let mut audited = Vec::new();
    let mut interrupted = false;
    for (depth, cells) in by_depth(plan, cells) {
        let again = Store::create(scratch_store(scratch, depth))?;
        let repeated = Repeated::compute(plan, store, (&survey, &cells), &again, options, &mut listener)?;
        repeated.judge(plan, store, (&survey, &cells), tolerance, &mut audited)?;
        interrupted = repeated.outcome.summary.interrupted;
        if interrupted {
            break;
        }
    }
    audited.sort_by_key(|(cell, _)| *cell);
    let audited: Vec<Audited> = audited.into_iter().map(|(_, found)| found).collect();
    let time = clock::now();
    let records: Vec<Record> = audited
        .iter()
        .map(|found| Record {
            time,
            cell: found.cell.clone(),
            key: found.key,
            verdict: found.verdict.clone(),
            version: program.version.clone(),
            build: program.build.clone(),
            host: Owner::current().host.clone(),
            manifest: plan.manifest.clone(),
        })
        .collect();
    Ok(Audit {
        audited,
        interrupted,
        unrecorded: Record::append(&records, store).err(),
    })
}

/// Cells by the number of volatile outputs one after the other that they were computed from: what such an output gave, a measured
/// time, say, comes from the store, so that what is below it can be compared.
fn by_depth(plan: &Plan, cells: &BTreeSet<CellIndex>) -> BTreeMap<usize, BTreeSet<CellIndex>> {
    let mut depths = vec![0; plan.cells.len()];
    // In topological order.
    for (index, cell) in plan.cells.iter().enumerate() {
        let inputs = cell.inputs.iter();
        let depth = inputs.map(|input| {
            depths[input.producer] + usize::from(is_volatile(plan, input.producer, input.output))
        });
        depths[index] = depth.max().unwrap_or_default();
    }
    let mut found: BTreeMap<usize, BTreeSet<CellIndex>> = BTreeMap::new();
    for cell in cells {
        found.entry(depths[*cell]).or_default().insert(*cell);
    }
    found
}

fn scratch_store(scratch: &Utf8Path, depth: usize) -> Utf8PathBuf {
    match depth {
        0 => scratch.to_owned(),
        depth => Utf8PathBuf::from(format!("{scratch}-{}", depth + 1)),
    }
}

/// Whether an output of a cell is volatile by itself, and not for what it was made from.
fn is_volatile(plan: &Plan, cell: CellIndex, output: &str) -> bool {
    let mut ports = plan.stage_of(cell).outputs.iter();
    ports.any(|port| port.name == output && port.volatile)
}

/// Cells and their ancestors, of which the cells alone were computed again.
struct Repeated<'a> {
    again: &'a Store,
    /// The cells of the plan that the results are of.
    positions: Vec<CellIndex>,
    outcome: RunOutcome,
    failed: BTreeMap<String, String>,
}

type Wanted<'a> = (&'a Survey<'a>, &'a BTreeSet<CellIndex>);

impl<'a> Repeated<'a> {
    fn compute(
        plan: &Plan,
        store: &Store,
        (survey, cells): Wanted<'_>,
        again: &'a Store,
        options: &Options,
        listener: &mut Listener<'_>,
    ) -> Result<Self, StoreError> {
        let (part, positions) = plan.part(cells);
        for cell in &positions {
            if let Standing::Cached(result) = &survey.standings[*cell]
                && !cells.contains(cell)
            {
                lend(result, store, again.layout())?;
            }
        }
        let started = Survey::take(&part, again, &BTreeSet::new())?;
        let outcome = exec::run(started, &part, again, options, listener);
        if let Some(failure) = &outcome.summary.halted {
            return Err(StoreError::Audit(failure.message.clone()));
        }
        Ok(Self {
            again,
            positions,
            outcome,
            failed: listener.take_failures(),
        })
    }

    /// Compares what came out with what the store has.
    fn judge(
        &self,
        plan: &Plan,
        store: &Store,
        (survey, cells): Wanted<'_>,
        tolerance: Option<f64>,
        audited: &mut Vec<(CellIndex, Audited)>,
    ) -> Result<(), StoreError> {
        let is_complete = !self.outcome.summary.interrupted;
        for (position, cell) in self.positions.iter().enumerate() {
            let Standing::Cached(result) = &survey.standings[*cell] else {
                continue;
            };
            if !cells.contains(cell) {
                continue;
            }
            let name = plan.name(*cell);
            let (verdict, untolerated) = match (&self.outcome.results[position], self.failed.get(&name)) {
                (Some(found), _) => judge(plan, *cell, result, found, tolerance, store, self.again)?,
                (None, Some(message)) => {
                    let message = message.clone();
                    (Verdict::Failed { message }, None)
                }
                (None, None) if is_complete => (Verdict::Blocked, None),
                // It was not reached, and is not judged.
                (None, None) => continue,
            };
            let uncompared = if verdict.is_of_outputs() {
                let outputs = result.outputs().iter();
                let volatile = outputs.filter(|artifact| is_volatile(plan, *cell, &artifact.port));
                volatile.map(|artifact| artifact.port.clone()).collect()
            } else {
                Vec::new()
            };
            let found = Audited {
                cell: name,
                key: result.key(),
                verdict,
                uncompared,
                untolerated,
            };
            audited.push((*cell, found));
        }
        Ok(())
    }
}

/// Lets the scratch store have a result without computing it: with copies of its objects, which share their blocks where the file
/// system can. No link would do: one in the place of an object counts as none.
fn lend(result: &Committed, store: &Store, again: &Layout) -> Result<(), StoreError> {
    let failed = || StoreError::io("cannot prepare the scratch store");
    for artifact in result.outputs() {
        let (from, to) = (
            store.layout().object(&artifact.object),
            again.object(&artifact.object),
        );
        fs_err::create_dir_all(to.parent().unwrap_or(&to)).map_err(failed())?;
        if to.exists() {
            continue;
        }
        if copy_verified(&from, &to).map_err(failed())? != artifact.object {
            return Err(StoreError::Damaged {
                object: artifact.object,
                path: from,
            });
        }
    }
    let to = again.result(&result.key());
    fs_err::create_dir_all(to.parent().unwrap_or(&to)).map_err(failed())?;
    fs_err::copy(store.layout().result(&result.key()), to).map_err(failed())?;
    Ok(())
}

fn judge(
    plan: &Plan,
    cell: CellIndex,
    before: &Committed,
    after: &Committed,
    tolerance: Option<f64>,
    store: &Store,
    again: &Store,
) -> Result<(Verdict, Option<Untolerated>), StoreError> {
    let alone = |verdict| Ok((verdict, None));
    let mut repeatable = before
        .outputs()
        .iter()
        .filter(|artifact| !is_volatile(plan, cell, &artifact.port))
        .peekable();
    if repeatable.peek().is_none() {
        return alone(Verdict::Volatile);
    }
    if before.key() != after.key() {
        return alone(Verdict::Blocked);
    }
    let differing: Vec<_> = repeatable
        .filter_map(|old| Some((old, after.output(&old.port)?)))
        .filter(|(old, new)| old.content != new.content)
        .map(|(old, new)| {
            let place = first_difference(
                &store.layout().object(&old.object),
                &again.layout().object(&new.object),
                &old.extension,
            )?;
            Ok((old, place))
        })
        .collect::<Result<_, StoreError>>()?;
    let Some((first, place)) = differing.first() else {
        return alone(Verdict::Reproduced);
    };
    let (port, place) = (first.port.clone(), place.clone());
    let platform = |found: Option<ActionResult>| {
        let mut platform = found.map(|result| result.platform).unwrap_or_default();
        // Why a device was chosen is said for people.
        platform.remove("device_reason");
        platform
    };
    let platforms = (
        platform(store.result(&before.key())?),
        platform(again.result(&after.key())?),
    );
    let is_elsewhere = platforms.0 != platforms.1;
    let is_exact = plan.cells[cell].parameters.determinism == Determinism::Exact;
    if is_exact || !is_elsewhere {
        let untolerated = if is_exact {
            Untolerated::ExactKind
        } else {
            Untolerated::SamePlatform
        };
        return Ok((Verdict::Differs { port, place }, tolerance.map(|_| untolerated)));
    }
    let platform = platforms.0;
    let Some(tolerance) = tolerance else {
        return alone(Verdict::OtherPlatform {
            port,
            place,
            platform,
        });
    };
    // A picture is drawn from the numbers of a table beside it, which are what can be compared.
    let mut largest = None;
    for (old, place) in differing.iter().filter(|(old, _)| old.extension == "parquet") {
        match place.largest() {
            Some(found) if found <= tolerance => largest = Some(found.max(largest.unwrap_or(0.0))),
            _ => {
                return alone(Verdict::Differs {
                    port: old.port.clone(),
                    place: place.clone(),
                });
            }
        }
    }
    alone(match largest {
        Some(largest) => Verdict::WithinTolerance {
            largest,
            tolerance,
            platform,
        },
        None => Verdict::Differs { port, place },
    })
}

mod report;

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Resources;

use self::report::{Divergence, Found, NotAudited};
use super::arguments::AuditArguments;
use super::error::{CommandError, Exit};
use super::measure::count;
use super::{Edition, environment, run, session};
use crate::audit::{Audit, Audited, Choice, Chosen, Request, audit as compute, choose};
use crate::clock;
use crate::display::{Display, Mode, duration};
use crate::exec::{self, Due, Options, Standing, Survey};
use crate::lineage::Graph;
use crate::plan::{CellIndex, Plan};
use crate::record::History;
use crate::store::{ActionKey, Catalogue, MissReason, Store, Workspace};

/// Why nothing is audited, where no result could be compared, or there is none.
fn nothing_to_audit(incomparable: usize) -> CommandError {
    let which = match incomparable {
        0 => {
            return CommandError::request("the store has no result to compute again")
                .help("`provenir run` computes what the manifest describes; an audit computes that once more and compares");
        }
        1 => "its one result is",
        _ => "its results are",
    };
    CommandError::request(format!(
        "nothing of what the store has could be compared: {which} volatile"
    ))
}

/// Where results are computed again: a new folder, or the one that is named, which must be empty.
fn scratch(store: &Store, named: Option<&Utf8Path>) -> Result<Utf8PathBuf, CommandError> {
    let Some(folder) = named else {
        let made = store.workspace().and_then(Workspace::folder);
        return made.map_err(|error| CommandError::Environment {
            message: error.to_string(),
            help: Some(
                "name a folder elsewhere in which results are computed again (--scratch FOLDER): what comes of it is told, also where the store cannot record it"
                    .to_owned(),
            ),
        });
    };
    let path = environment::working_folder()?.join(folder);
    let is_free = fs_err::read_dir(&path).map_or(true, |mut entries| entries.next().is_none());
    if !is_free {
        return Err(
            CommandError::request(format!("the folder `{folder}` is not empty"))
                .help("name a new one: --scratch FOLDER"),
        );
    }
    Ok(path)
}

/// `audit`.
pub(super) fn audit(edition: &Edition, arguments: &AuditArguments) -> Result<Exit, CommandError> {
    let began = clock::instant();
    let plan = session::plan(edition, &arguments.manifest)?;
    let store = session::of_manifest(&arguments.manifest)?;
    let survey = Survey::take(&plan, &store, &BTreeSet::new())?;
    let chains = session::select(&plan, &arguments.cell)?;
    let chosen = match (arguments.sample, arguments.all) {
        (Some(count), _) => Chosen::Sample {
            count,
            seed: arguments.seed,
        },
        (None, true) => Chosen::All,
        (None, false) if !chains.is_empty() => Chosen::Chains(&chains),
        (None, false) => return Err(nothing_chosen(&plan, &store, &survey)?),
    };
    let Choice {
        cells,
        lacking,
        left_out,
        incomparable,
    } = choose(&plan, &survey, chosen);
    let Lacking {
        lost,
        without,
        refused,
    } = Lacking::of(&plan, &survey, &lacking, &chains);
    let names = |cells: &[CellIndex]| cells.iter().map(|cell| plan.name(*cell)).collect();
    let found = Found {
        audited: Vec::new(),
        recorded: false,
        unreached: Vec::new(),
        divergences: Vec::new(),
        other_divergences: 0,
        lost,
        without,
        refused,
        left_out: names(&left_out),
        incomparable: names(&incomparable),
    };
    if cells.is_empty() {
        if found.lost.is_empty() {
            return Err(nothing_to_audit(incomparable.len()));
        }
        found.tell(arguments.json)?;
        return Ok(found.exit());
    }
    let folder = scratch(&store, arguments.scratch.as_deref())?;
    let options = Options {
        resources: Resources {
            cores: arguments.jobs.unwrap_or_else(exec::cores),
            memory: exec::memory(),
        },
        force: BTreeSet::new(),
        worker: session::worker(edition)?,
        logs: folder.join("logs"),
        command: Vec::new(),
        began,
    };
    let (part, _) = plan.part(&cells);
    let mode = if arguments.json || arguments.quiet {
        Mode::Quiet
    } else {
        Mode::Auto
    };
    let mut display = Display::new(&part, mode);
    let Audit {
        audited,
        interrupted,
        unrecorded,
    } = compute(
        &plan,
        &store,
        Request {
            cells: &cells,
            scratch: &folder.join("store"),
            stays: arguments.scratch.is_some(),
            tolerance: arguments.tolerance,
        },
        &run::program(),
        &options,
        &mut display,
    )?;
    let done: BTreeSet<&str> = audited.iter().map(|found| found.cell.as_str()).collect();
    let asked = cells.iter().map(|cell| plan.name(*cell));
    let unreached = asked.filter(|cell| !done.contains(cell.as_str())).collect();
    let (divergences, other_divergences) = divergences(&store, &survey, &audited)?;
    let found = Found {
        recorded: unrecorded.is_none(),
        unreached,
        divergences,
        other_divergences,
        audited,
        ..found
    };
    found.tell(arguments.json)?;
    match unrecorded {
        Some(error) => Err(error.into()),
        None if interrupted => Ok(Exit::Interrupted),
        None => Ok(found.exit()),
    }
}

/// Without a word on what is to be audited nothing is: all of it may take days.
fn nothing_chosen(plan: &Plan, store: &Store, survey: &Survey<'_>) -> Result<CommandError, CommandError> {
    let history = History::read(store.layout())?;
    session::warn_of_flawed(&history.flawed);
    let keys: BTreeSet<_> = survey
        .standings
        .iter()
        .filter_map(|standing| match standing {
            Standing::Cached(result) => Some(result.key()),
            _ => None,
        })
        .collect();
    let seconds: f64 = keys.iter().filter_map(|key| history.seconds(key)).sum();
    let error = CommandError::request("what is to be computed again?");
    Ok(error.help(format!(
        "name a cell (--cell, with all that it was computed from), a number of cells (--sample N), or --all: {} that took {} of work",
        count(plan.cells.len(), "cell"),
        duration(seconds)
    )))
}

/// Cells that were chosen, and that the store has no result of to compute again.
#[derive(Default)]
struct Lacking {
    lost: Vec<NotAudited>,
    without: Vec<String>,
    refused: Vec<NotAudited>,
}

impl Lacking {
    /// Of these cells, why; `named` are those that were asked for by name.
    fn of(plan: &Plan, survey: &Survey<'_>, cells: &[CellIndex], named: &BTreeSet<CellIndex>) -> Self {
        let mut lacking = Self::default();
        for cell in cells {
            let name = plan.name(*cell);
            let loss = loss(plan, survey, *cell);
            if named.contains(cell) {
                let reason = loss.clone().unwrap_or_else(|| {
                    format!(
                        "the store has no result of {} as the manifest now describes it",
                        plan.name(cause(survey, *cell))
                    )
                });
                lacking.refused.push(NotAudited {
                    cell: name.clone(),
                    reason,
                });
            }
            match loss {
                Some(reason) => lacking.lost.push(NotAudited { cell: name, reason }),
                None => lacking.without.push(name),
            }
        }
        lacking
    }
}

/// Of what a cell has no result to compute again: of itself, or of a cell that it was made from.
fn cause(survey: &Survey<'_>, cell: CellIndex) -> CellIndex {
    let mut cause = cell;
    while let Standing::Unknown { producer } = &survey.standings[cause] {
        cause = *producer;
    }
    cause
}

/// What the store lost of a cell, or of what it was made from, so that it cannot be computed again, in a phrase; `None` where it
/// does not have a result.
fn loss(plan: &Plan, survey: &Survey<'_>, cell: CellIndex) -> Option<String> {
    let cause = cause(survey, cell);
    let Standing::Due { reason, .. } = &survey.standings[cause] else {
        return None;
    };
    let name = plan.name(cause);
    match reason {
        Due::Miss(MissReason::Missing(_)) => Some(format!("the artifact of {name} is missing")),
        Due::Miss(MissReason::Damaged(_)) => Some(format!("the artifact of {name} is damaged")),
        Due::Miss(MissReason::Unreadable) => Some(format!("the result of {name} cannot be read")),
        Due::Miss(MissReason::NoResult) | Due::Forced => None,
    }
}

/// Second, different results that the store keeps of what was audited, and how many of the plan's other actions.
fn divergences(
    store: &Store,
    survey: &Survey<'_>,
    audited: &[Audited],
) -> Result<(Vec<Divergence>, usize), CommandError> {
    if Catalogue::read(store.layout())?.divergences.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let graph = Graph::read(store)?;
    session::warn_of_flawed(&graph.history().flawed);
    let mut open: BTreeSet<ActionKey> = survey
        .standings
        .iter()
        .filter_map(|standing| match standing {
            Standing::Cached(result) => Some(result.key()),
            _ => None,
        })
        .collect();
    let mut found = Vec::new();
    // Of cells that are one action, the first.
    for Audited { cell, key, .. } in audited.iter().filter(|found| open.remove(&found.key)) {
        for second in graph.seconds(key).iter().filter(|second| !second.measured) {
            let run = second.run.as_ref();
            let runs = &graph.history().runs;
            let record = run.and_then(|(id, _)| runs.iter().find(|run| run.stored.id == *id));
            let head = record.and_then(|record| record.head.as_ref());
            found.push(Divergence {
                cell: cell.clone(),
                output: second
                    .outputs
                    .first()
                    .map(|output| output.port.clone())
                    .unwrap_or_default(),
                run: run.map(|(id, _)| id.clone()),
                time: run.map(|(_, time)| *time),
                host: head.map(|head| head.host.name.clone()),
                platform: second.platform.clone(),
            });
        }
    }
    let diverged = |key: &ActionKey| {
        graph
            .seconds(key)
            .iter()
            .filter(|second| !second.measured)
            .count()
    };
    let others = open.iter().map(diverged).sum();
    Ok((found, others))
}

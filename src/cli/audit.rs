use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use provenir_api::Resources;
use serde::Serialize;
use serde_json::{Value, json};

use super::arguments::AuditArguments;
use super::error::{CommandError, Exit};
use super::measure::count;
use super::{Edition, environment, run, session, terminal};
use crate::audit::{Audit, Audited, Choice, Chosen, Request, Untolerated, Verdict, audit as compute, choose};
use crate::clock;
use crate::display::{Display, Mode, duration, grouped};
use crate::exec::{self, Due, Options, Standing, Survey};
use crate::lineage::{Graph, moment, platform as on};
use crate::plan::{CellIndex, Plan};
use crate::record::{History, RunId};
use crate::store::{ActionKey, Catalogue, MissReason, Store};

/// So many cells of a kind are listed.
const SHOWN: usize = 50;

/// Why nothing is audited, where so many results cannot be compared and there are no others.
fn nothing_comparable(incomparable: usize) -> CommandError {
    let which = match incomparable {
        0 => {
            return CommandError::request("the store has no result to compute again")
                .help("`provenir run` computes what the manifest describes; an audit computes that once more and compares");
        }
        1 => "its one result is",
        _ => "its results are",
    };
    CommandError::request(format!(
        "nothing of what the store has could be compared: {which} volatile, or made from what is"
    ))
}

/// Where results are computed again: a new folder, or the one that is named, which must be empty.
fn scratch(store: &Store, named: Option<&Utf8Path>) -> Result<Utf8PathBuf, CommandError> {
    let Some(folder) = named else {
        return Ok(store.workspace()?.folder()?);
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
    if cells.is_empty() {
        return Err(nothing_comparable(incomparable.len()));
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
    let names = |cells: &[CellIndex]| cells.iter().map(|cell| plan.name(*cell)).collect();
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
        refused: lacking
            .iter()
            .filter(|cell| chains.contains(cell))
            .map(|cell| Refused {
                cell: plan.name(*cell),
                reason: absence(&plan, &survey, *cell),
            })
            .collect(),
        lacking: names(&lacking),
        left_out: names(&left_out),
        incomparable: names(&incomparable),
    };
    tell(&found, arguments.json)?;
    match unrecorded {
        Some(error) => Err(error.into()),
        None if interrupted => Ok(Exit::Interrupted),
        None => Ok(found.exit()),
    }
}

fn tell(found: &Found, json: bool) -> Result<(), CommandError> {
    if json {
        let text = serde_json::to_string_pretty(&as_json(found)).map_err(std::io::Error::from)?;
        terminal::print(&format!("{text}\n"))
    } else {
        terminal::print(&in_words(found))
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

/// Why a cell has no result to compute again, in a phrase: what is wrong with it, or with what it was made from.
fn absence(plan: &Plan, survey: &Survey<'_>, cell: CellIndex) -> String {
    let mut cause = cell;
    while let Standing::Unknown { producer } = &survey.standings[cause] {
        cause = *producer;
    }
    let name = plan.name(cause);
    match &survey.standings[cause] {
        Standing::Due {
            reason: Due::Miss(MissReason::Missing(_)),
            ..
        } => format!("the artifact of {name} is missing"),
        Standing::Due {
            reason: Due::Miss(MissReason::Damaged(_)),
            ..
        } => format!("the artifact of {name} is damaged"),
        Standing::Due {
            reason: Due::Miss(MissReason::Unreadable),
            ..
        } => format!("the result of {name} cannot be read"),
        _ => format!("the store has no result of {name} as the manifest now describes it"),
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
                output: second.port.clone(),
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

/// All that an audit has to tell.
struct Found {
    audited: Vec<Audited>,
    /// Whether the store knows it, too.
    recorded: bool,
    /// Cells that an interrupted audit did not come to.
    unreached: Vec<String>,
    /// Cells that were chosen, and that the store has no result of.
    lacking: Vec<String>,
    /// Of those, the ones that were named.
    refused: Vec<Refused>,
    /// Cells that the sample left out.
    left_out: Vec<String>,
    /// Cells that the sample was not taken from, because nothing of them could be compared.
    incomparable: Vec<String>,
    /// Of what was audited.
    divergences: Vec<Divergence>,
    /// How many there are of other cells of the manifest.
    other_divergences: usize,
}

impl Found {
    /// What was asked for by name and not done is no success.
    fn exit(&self) -> Exit {
        let is_bad = self
            .audited
            .iter()
            .any(|found| matches!(found.verdict, Verdict::Differs { .. } | Verdict::Failed { .. }));
        if is_bad || !self.refused.is_empty() {
            Exit::StageFailed
        } else {
            Exit::Done
        }
    }
}

/// A cell that was named and could not be computed again.
#[derive(Serialize)]
struct Refused {
    cell: String,
    reason: String,
}

/// A second, different result that the store keeps.
#[derive(Serialize)]
struct Divergence {
    cell: String,
    /// The first output that differs.
    output: String,
    /// The run that gave it, where a record tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    /// When that began to compute it.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Timestamp>,
    /// Its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// The numeric platform.
    platform: BTreeMap<String, String>,
}

/// Names of cells, the first few of many.
fn named(cells: &[String]) -> String {
    /// So many are named.
    const NAMED: usize = 3;
    let mut named: Vec<String> = cells.iter().take(NAMED).cloned().collect();
    if cells.len() > NAMED {
        named.push(format!("and {} more", grouped(cells.len() - NAMED)));
    }
    named.join(", ")
}

fn in_words(found: &Found) -> String {
    let Found {
        audited,
        recorded,
        unreached,
        lacking,
        refused,
        left_out,
        incomparable,
        ..
    } = found;
    let with = |wanted: fn(&Verdict) -> bool| {
        let found = audited.iter().filter(move |found| wanted(&found.verdict));
        found.map(|found| found.cell.clone()).collect::<Vec<String>>()
    };
    let number = |wanted: fn(&Verdict) -> bool| with(wanted).len();
    let blocked = with(|verdict| matches!(verdict, Verdict::Blocked));
    let mut volatile = with(|verdict| matches!(verdict, Verdict::Volatile));
    volatile.extend_from_slice(incomparable);
    let uncompared: Vec<String> = audited
        .iter()
        .flat_map(|found| {
            found
                .uncompared
                .iter()
                .map(|port| format!("{}.{port}", found.cell))
        })
        .collect();
    let reproduced = number(|verdict| matches!(verdict, Verdict::Reproduced));
    let mut text = format!(
        "{} of {} reproduced",
        grouped(reproduced),
        count(audited.len() + unreached.len(), "cell")
    );
    for (count, what) in [
        (
            number(|verdict| matches!(verdict, Verdict::Differs { .. })),
            "not reproduced",
        ),
        (
            number(|verdict| matches!(verdict, Verdict::WithinTolerance { .. })),
            "within the tolerance of what another platform gave",
        ),
        (
            number(|verdict| matches!(verdict, Verdict::OtherPlatform { .. })),
            "differ as they may on another platform",
        ),
        (
            number(|verdict| matches!(verdict, Verdict::Failed { .. })),
            "failed",
        ),
        (blocked.len(), "not comparable"),
        (volatile.len(), "not compared"),
        (unreached.len(), "not reached"),
        (lacking.len(), "without a result"),
        (left_out.len(), "not in the sample"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {} {what}", grouped(count));
        }
    }
    let program = run::program();
    let _ = writeln!(
        text,
        " (provenir {}, build {}, host {}); {}",
        program.version,
        program.build,
        crate::store::Owner::current().host,
        if *recorded {
            "recorded in the store"
        } else {
            "not recorded"
        }
    );
    text.push_str(&of_verdicts(audited));
    for Refused { cell, reason } in refused {
        let _ = writeln!(text, "  {cell} could not be computed again: {reason}");
    }
    for (why, cells) in [
        (
            "not comparable, because what they take came out differently or failed",
            &blocked,
        ),
        (
            "not compared, because they are volatile, or made from what is",
            &volatile,
        ),
        (
            "outputs that were not compared, because they are volatile",
            &uncompared,
        ),
        ("not reached, because the audit was interrupted", unreached),
        ("without a result in the store", lacking),
        ("not in the sample", left_out),
    ] {
        if !cells.is_empty() {
            let _ = writeln!(text, "  {why}: {}", named(cells));
        }
    }
    text.push_str(&of_divergences(found));
    text
}

/// The verdicts that a person has to look at, a line each.
fn of_verdicts(audited: &[Audited]) -> String {
    let mut text = String::new();
    let mut listed = audited
        .iter()
        .filter_map(|found| Some((&found.cell, told(found)?)))
        .collect::<Vec<_>>();
    let more = listed.len().saturating_sub(SHOWN);
    listed.truncate(SHOWN);
    for (cell, told) in listed {
        let _ = writeln!(text, "  {cell}: {told}");
    }
    if more > 0 {
        let _ = writeln!(text, "  and {} more", grouped(more));
    }
    text
}

/// What is said of second, different results.
fn of_divergences(found: &Found) -> String {
    let mut text = String::new();
    if !found.divergences.is_empty() {
        text.push_str("\nthe store keeps second, different results of what was audited\n");
        for second in found.divergences.iter().take(SHOWN) {
            let by = match (&second.run, second.time) {
                (Some(run), Some(time)) => format!("run {run} ({})", moment(time)),
                _ => "an execution that no record here tells of".to_owned(),
            };
            let host = second.host.as_ref();
            let host = host.map_or_else(String::new, |host| format!("host {host}, "));
            let _ = writeln!(
                text,
                "  {}: output {}, given by {by} on {host}{}",
                second.cell,
                second.output,
                on(&second.platform)
            );
        }
        if found.divergences.len() > SHOWN {
            let _ = writeln!(text, "  and {} more", grouped(found.divergences.len() - SHOWN));
        }
    }
    if found.other_divergences > 0 {
        let _ = writeln!(
            text,
            "\nof cells that were not audited, the store keeps {}; `provenir why CELL` tells of those of a cell",
            count(found.other_divergences, "second, different result")
        );
    }
    text
}

/// What is said of a cell that a person has to look at.
fn told(found: &Audited) -> Option<String> {
    match &found.verdict {
        Verdict::Reproduced | Verdict::Blocked | Verdict::Volatile => None,
        Verdict::Differs { port, place } => {
            let untolerated = match found.untolerated {
                Some(Untolerated::SamePlatform) => {
                    "; the tolerance does not apply: it is for results of another platform, and this one is of the same"
                }
                Some(Untolerated::ExactKind) => {
                    "; the tolerance does not apply: this kind gives the same on every platform"
                }
                None => "",
            };
            Some(format!("output {port} differs: {place}{untolerated}"))
        }
        Verdict::OtherPlatform {
            port,
            place,
            platform,
        } => Some(format!(
            "output {port} differs from that of another platform ({}): {place}",
            on(platform)
        )),
        Verdict::WithinTolerance {
            largest,
            tolerance,
            platform,
        } => Some(format!(
            "differs by at most {largest:.1e} (tolerance {tolerance:.1e}) from what another platform gave ({})",
            on(platform)
        )),
        Verdict::Failed { message } => Some(format!("failed: {message}")),
    }
}

fn as_json(found: &Found) -> Value {
    let program = run::program();
    let cells = found.audited.iter().map(|found| {
        let mut value = json!(found.verdict);
        value["cell"] = json!(found.cell);
        value["action"] = json!(found.key);
        if !found.uncompared.is_empty() {
            value["not_compared"] = json!(found.uncompared);
        }
        if let Some(untolerated) = found.untolerated {
            value["tolerance_does_not_apply"] = json!(untolerated);
        }
        value
    });
    json!({
        "program": program,
        "host": crate::store::Owner::current().host,
        "cells": cells.collect::<Vec<_>>(),
        "not_reached": found.unreached,
        "without_result": found.lacking,
        "not_audited": found.refused,
        "not_sampled": found.left_out,
        "not_comparable": found.incomparable,
        "divergences": found.divergences,
        "other_divergences": found.other_divergences,
    })
}

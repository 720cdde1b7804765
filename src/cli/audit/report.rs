use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::audit::{Audited, Untolerated, Verdict};
use crate::cli::error::{CommandError, Exit};
use crate::cli::measure::count;
use crate::cli::{run, terminal};
use crate::display::grouped;
use crate::lineage::{moment, platform as on};
use crate::record::RunId;

/// So many cells of a kind are listed.
const SHOWN: usize = 50;

/// All that an audit has to tell.
pub(super) struct Found {
    pub(super) audited: Vec<Audited>,
    /// Whether the store knows it, too.
    pub(super) recorded: bool,
    /// Cells that an interrupted audit did not come to.
    pub(super) unreached: Vec<String>,
    /// Cells that were chosen, and that cannot be computed again, because the store lost something of theirs.
    pub(super) lost: Vec<NotAudited>,
    /// Cells that were chosen, and that the store has no result of.
    pub(super) without: Vec<String>,
    /// Of both, the ones that were named.
    pub(super) refused: Vec<NotAudited>,
    /// Cells that the sample left out.
    pub(super) left_out: Vec<String>,
    /// Cells that the sample was not taken from, because nothing of them could be compared.
    pub(super) incomparable: Vec<String>,
    /// Of what was audited.
    pub(super) divergences: Vec<Divergence>,
    /// How many there are of other cells of the manifest.
    pub(super) other_divergences: usize,
}

impl Found {
    /// Tells it, in words or as JSON.
    pub(super) fn tell(&self, json: bool) -> Result<(), CommandError> {
        if json {
            let text = serde_json::to_string_pretty(&as_json(self)).map_err(std::io::Error::from)?;
            terminal::print(&format!("{text}\n"))
        } else {
            terminal::print(&in_words(self))
        }
    }

    /// What was asked for by name and not done is no success.
    pub(super) fn exit(&self) -> Exit {
        let is_bad = self
            .audited
            .iter()
            .any(|found| matches!(found.verdict, Verdict::Differs { .. } | Verdict::Failed { .. }));
        if is_bad || !self.refused.is_empty() || !self.lost.is_empty() {
            Exit::StageFailed
        } else {
            Exit::Done
        }
    }
}

/// A cell that could not be computed again.
#[derive(Serialize)]
pub(super) struct NotAudited {
    pub(super) cell: String,
    pub(super) reason: String,
}

/// A second, different result that the store keeps.
#[derive(Serialize)]
pub(super) struct Divergence {
    pub(super) cell: String,
    /// The first output that differs.
    pub(super) output: String,
    /// The run that gave it, where a record tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<RunId>,
    /// When that began to compute it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time: Option<Timestamp>,
    /// Its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) host: Option<String>,
    /// The numeric platform.
    pub(super) platform: BTreeMap<String, String>,
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

/// Cells that could not be computed again: those that were named, a line each, and the others by reason.
fn of_lacking(lost: &[NotAudited], refused: &[NotAudited]) -> String {
    let mut text = String::new();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for NotAudited { cell, reason } in refused {
        told.insert(cell);
        let _ = writeln!(text, "  {cell} could not be computed again: {reason}");
    }
    let mut by_reason: IndexMap<&str, Vec<String>> = IndexMap::new();
    for NotAudited { cell, reason } in lost.iter().filter(|lost| !told.contains(lost.cell.as_str())) {
        by_reason.entry(reason).or_default().push(cell.clone());
    }
    for (reason, cells) in by_reason {
        let _ = writeln!(text, "  not computed again, because {reason}: {}", named(&cells));
    }
    text
}

fn in_words(found: &Found) -> String {
    let Found {
        audited,
        recorded,
        unreached,
        lost,
        without,
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
        (lost.len(), "not computed again"),
        (without.len(), "without a result"),
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
    text.push_str(&of_lacking(lost, refused));
    for (why, cells) in [
        (
            "not comparable, because what they take came out differently or failed",
            &blocked,
        ),
        ("not compared, because they are volatile", &volatile),
        (
            "outputs that were not compared, because they are volatile",
            &uncompared,
        ),
        ("not reached, because the audit was interrupted", unreached),
        ("without a result in the store", without),
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
        "without_result": found.without,
        "lost": found.lost,
        "not_audited": found.refused,
        "not_sampled": found.left_out,
        "not_comparable": found.incomparable,
        "divergences": found.divergences,
        "other_divergences": found.other_divergences,
    })
}

use std::fmt::Write;

use serde_json::json;

use super::wanted;
use crate::cli::arguments::DiffArguments;
use crate::cli::describe::{means, number};
use crate::cli::error::{CommandError, Exit};
use crate::cli::measure::count;
use crate::cli::{Edition, session, terminal};
use crate::display::grouped;
use crate::exec::{Difference, cut_apart};
use crate::lineage::{CellDifference, RunDifference, Shortfall, Which, shown};
use crate::record::{History, PastRun};
use crate::store::{Artifact, Store};

/// Longest table of which metrics are compared.
const LONGEST: u64 = 64 << 20;
/// So many cells are listed; the rest is counted.
const SHOWN: usize = 50;
/// Characters of a value that are shown.
const WIDTH: usize = 60;

/// A column's mean before and after.
struct Metric {
    cell: String,
    port: String,
    column: String,
    means: [Option<f64>; 2],
}

/// An output that differs and of which no metrics can be compared.
struct Unmeasured {
    cell: String,
    port: String,
    /// Why, in words that follow "because".
    reason: &'static str,
}

/// `diff`.
pub(in crate::cli) fn diff(edition: &Edition, arguments: &DiffArguments) -> Result<Exit, CommandError> {
    let store = session::existing(&arguments.store)?;
    let history = History::read(store.layout())?;
    session::warn_of_flawed(&history.flawed);
    let (old, new) = (
        wanted(store.layout(), &arguments.old)?.id,
        wanted(store.layout(), &arguments.new)?.id,
    );
    let run = |id| {
        let mut runs = history.runs.iter();
        runs.find(|run| run.stored.id == id)
            .ok_or_else(|| CommandError::request(format!("the record of run {id} is gone")))
    };
    let (old, new) = (run(old)?, run(new)?);
    let found = RunDifference::of(&store, &history, &edition.registry(), old, new)?;
    let (metrics, unmeasured) = metrics(&store, &found);
    if arguments.json {
        let value = json!({
            "old": old.stored.id,
            "new": new.stored.id,
            "manifest": found.manifest,
            "environment": found.environment.iter()
                .map(|(name, old, new)| json!({ "name": name, "old": old, "new": new })).collect::<Vec<_>>(),
            "same": found.same,
            "cells": found.cells,
            "metrics": metrics.iter().map(|metric| json!({
                "cell": metric.cell, "output": metric.port, "column": metric.column,
                "old": metric.means[0], "new": metric.means[1],
            })).collect::<Vec<_>>(),
            "not_compared": unmeasured.iter().map(|unmeasured| json!({
                "cell": unmeasured.cell, "output": unmeasured.port, "reason": unmeasured.reason,
            })).collect::<Vec<_>>(),
        });
        let text = serde_json::to_string_pretty(&value).map_err(std::io::Error::from)?;
        terminal::print(&format!("{text}\n"))?;
    } else {
        let shown = if arguments.all { usize::MAX } else { SHOWN };
        terminal::print(&in_words(old, new, &found, (&metrics, &unmeasured), shown))?;
    }
    Ok(Exit::Done)
}

/// In words, with so many cells and metrics at most.
fn in_words(
    old: &PastRun,
    new: &PastRun,
    found: &RunDifference,
    (metrics, unmeasured): (&[Metric], &[Unmeasured]),
    shown: usize,
) -> String {
    let more = |total: usize| format!("  and {} more; `--all` shows them\n", grouped(total - shown));
    let mut text = format!("from run {} to run {}\n", old.stored.id, new.stored.id);
    if !found.manifest.is_empty() {
        text.push_str("\nmanifest\n");
        for difference in &found.manifest {
            let _ = writeln!(text, "  {}", value(difference));
        }
    }
    if !found.environment.is_empty() {
        text.push_str("\nenvironment\n");
        for (name, old, new) in &found.environment {
            let told = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
            let (old, new) = (told(old), told(new));
            let _ = if old.chars().count() + new.chars().count() > WIDTH {
                // Whole, each on a line of its own: arguments are there to be copied.
                writeln!(text, "  {name}\n    {old}\n    → {new}")
            } else {
                writeln!(text, "  {name} {old} → {new}")
            };
        }
    }
    let renamed = found.cells.values();
    let renamed = renamed.filter(|difference| matches!(difference, CellDifference::Renamed { .. }));
    let renamed = match renamed.count() {
        0 => String::new(),
        number => format!(", {} of them under another name", grouped(number)),
    };
    let _ = writeln!(
        text,
        "\nartifacts: {} the same in both{renamed}",
        count(found.same, "cell")
    );
    for (cell, difference) in found.cells.iter().take(shown) {
        let _ = writeln!(text, "  {cell}: {}", of_cell(difference));
    }
    if found.cells.len() > shown {
        text.push_str(&more(found.cells.len()));
    }
    if !metrics.is_empty() {
        text.push_str("\nmetrics (means of columns)\n");
        let mut grid = vec![
            ["cell", "column", "before", "after", "change"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for metric in metrics.iter().take(shown) {
            let [old, new] = metric.means;
            let told = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), number);
            let change = match (old, new) {
                (Some(old), Some(new)) => {
                    let change = new - old;
                    let sign = if change > 0.0 { "+" } else { "" };
                    format!("{sign}{}", number(change))
                }
                _ => String::new(),
            };
            grid.push(vec![
                format!("{}.{}", metric.cell, metric.port),
                metric.column.clone(),
                told(old),
                told(new),
                change,
            ]);
        }
        text.push_str(&session::aligned(&grid));
        if metrics.len() > shown {
            text.push_str(&more(metrics.len()));
        }
    }
    if !unmeasured.is_empty() {
        text.push_str("\nmetrics that are not compared\n");
        for Unmeasured { cell, port, reason } in unmeasured.iter().take(shown) {
            let _ = writeln!(text, "  {cell}.{port}, because {reason}");
        }
        if unmeasured.len() > shown {
            text.push_str(&more(unmeasured.len()));
        }
    }
    text
}

/// A value of a resolved manifest: `stages.second.params.value 0.5 → 0.75`.
fn value(difference: &Difference) -> String {
    match difference {
        Difference::Parameter {
            pointer, old, new, ..
        } => {
            let name = pointer.trim_start_matches('/').replace('/', ".");
            let (old, new) = cut_apart(&shown(old.as_ref()), &shown(new.as_ref()), WIDTH);
            format!("{name} {old} → {new}")
        }
        other => other.to_string(),
    }
}

fn of_cell(difference: &CellDifference) -> String {
    match difference {
        CellDifference::Removed { failed } => alone("first", failed.as_deref()),
        CellDifference::Added { failed } => alone("second", failed.as_deref()),
        CellDifference::Unfinished { run, shortfall, old } => {
            let told = without_result(*run, shortfall);
            match old {
                Some(old) => format!("the same action as `{old}`, which it was named before, {told}"),
                None => told,
            }
        }
        CellDifference::Renamed { old } => format!("the same as `{old}`, which it was named before"),
        CellDifference::Action { differences, .. } if differences.is_empty() => {
            "another action gave the same".to_owned()
        }
        CellDifference::Action { differences, .. } => {
            let told: Vec<String> = differences.iter().map(ToString::to_string).collect();
            format!("another action gave the same ({})", told.join("; "))
        }
        CellDifference::Unknown { old, new } => format!(
            "another action ({} → {}); what it gave is not known any more",
            old.short(),
            new.short()
        ),
        CellDifference::Artifacts {
            old,
            new,
            differences,
            outputs,
        } => {
            let ports: Vec<&str> = outputs.iter().map(|(before, _)| before.port.as_str()).collect();
            let because = if old != new {
                let told: Vec<String> = differences.iter().map(ToString::to_string).collect();
                told.join("; ")
            } else if outputs.iter().all(|(before, _)| before.volatile) {
                "the same action; it is volatile, as a measured time, and was measured again".to_owned()
            } else {
                "the same action gave another result: it is not repeatable".to_owned()
            };
            format!("{} differs ({because})", ports.join(", "))
        }
    }
}

/// What is said of a cell that only one run had.
fn alone(run: &str, failed: Option<&str>) -> String {
    match failed {
        Some(message) => format!("only in the {run}, where it failed: {}", first_line(message)),
        None => format!("only in the {run}"),
    }
}

/// Why a run has no result of a cell.
fn without_result(run: Which, shortfall: &Shortfall) -> String {
    let run = match run {
        Which::First => "the first",
        Which::Second => "the second",
        Which::Both => "both",
    };
    match shortfall {
        Shortfall::Failed { message } => format!("failed in {run}: {}", first_line(message)),
        Shortfall::Blocked { by } => {
            format!("did not run in {run}, because {by}, which it needs, failed there")
        }
        Shortfall::Cancelled => format!("was not finished in {run}, which stopped before"),
        Shortfall::EndNotRecorded => format!("has no result in {run}, whose end is not recorded"),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Means of the number columns of tables that differ, and the tables of which they cannot be told.
fn metrics(store: &Store, found: &RunDifference) -> (Vec<Metric>, Vec<Unmeasured>) {
    let (mut metrics, mut unmeasured) = (Vec::new(), Vec::new());
    for (cell, difference) in &found.cells {
        let CellDifference::Artifacts { outputs, .. } = difference else {
            continue;
        };
        for (before, after) in outputs {
            let (old, new) = match (of_table(store, before), of_table(store, after)) {
                (Ok(Some(old)), Ok(Some(new))) => (old, new),
                (Err(reason), _) | (_, Err(reason)) => {
                    unmeasured.push(Unmeasured {
                        cell: cell.clone(),
                        port: before.port.clone(),
                        reason,
                    });
                    continue;
                }
                _ => continue,
            };
            for (column, mean) in &old {
                let other = new
                    .iter()
                    .find(|(name, _)| name == column)
                    .and_then(|(_, mean)| *mean);
                if !is_same(*mean, other) {
                    metrics.push(Metric {
                        cell: cell.clone(),
                        port: before.port.clone(),
                        column: column.clone(),
                        means: [*mean, other],
                    });
                }
            }
        }
    }
    (metrics, unmeasured)
}

/// Whether two means are the same: also where neither is a number.
fn is_same(old: Option<f64>, new: Option<f64>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => match old.partial_cmp(&new) {
            Some(order) => order.is_eq(),
            None => old.is_nan() && new.is_nan(),
        },
        (old, new) => old.is_none() && new.is_none(),
    }
}

/// Names and means of a table's number columns.
type Means = Vec<(String, Option<f64>)>;

/// Those of an artifact; `None` where it is no table, and why not where they cannot be told.
fn of_table(store: &Store, artifact: &Artifact) -> Result<Option<Means>, &'static str> {
    if artifact.extension != "parquet" {
        return Ok(None);
    }
    if artifact.size > LONGEST {
        return Err("it is longer than 64 MiB");
    }
    let path = store.layout().object(&artifact.object);
    if !path.exists() {
        return Err("it is not in the store any more");
    }
    let table = provenir_table::read(&path, Some(artifact.object)).ok();
    let means = table.and_then(|table| means(&table).ok());
    means.map(Some).ok_or("it cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_twice_is_the_same() {
        assert!(is_same(Some(f64::NAN), Some(f64::NAN)));
        assert!(is_same(None, None) && is_same(Some(1.5), Some(1.5)));
        assert!(
            !is_same(Some(f64::NAN), Some(1.0))
                && !is_same(Some(1.0), None)
                && !is_same(Some(1.0), Some(2.0))
        );
    }
}

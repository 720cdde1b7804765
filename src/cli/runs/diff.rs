use std::fmt::Write;

use serde_json::json;

use super::wanted;
use crate::cli::arguments::DiffArguments;
use crate::cli::describe::{means, number};
use crate::cli::error::{CommandError, Exit};
use crate::cli::{Edition, session, terminal};
use crate::display::grouped;
use crate::exec::{Difference, cut_apart};
use crate::lineage::{CellDifference, RunDifference, shown};
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
    let metrics = metrics(&store, &found);
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
        });
        let text = serde_json::to_string_pretty(&value).map_err(std::io::Error::from)?;
        terminal::print(&format!("{text}\n"))?;
    } else {
        let shown = if arguments.all { usize::MAX } else { SHOWN };
        terminal::print(&in_words(old, new, &found, &metrics, shown))?;
    }
    Ok(Exit::Done)
}

/// In words, with so many cells and metrics at most.
fn in_words(old: &PastRun, new: &PastRun, found: &RunDifference, metrics: &[Metric], shown: usize) -> String {
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
    let _ = writeln!(
        text,
        "\nartifacts: {} the same in both",
        crate::cli::measure::count(found.same, "cell")
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
        CellDifference::Removed => "only in the first".to_owned(),
        CellDifference::Added => "only in the second".to_owned(),
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
            let because = if old == new {
                "the same action gave another result: it is not repeatable".to_owned()
            } else {
                let told: Vec<String> = differences.iter().map(ToString::to_string).collect();
                told.join("; ")
            };
            format!("{} differs ({because})", ports.join(", "))
        }
    }
}

/// Means of the number columns of tables that differ, where both are still in the store.
fn metrics(store: &Store, found: &RunDifference) -> Vec<Metric> {
    let mut metrics = Vec::new();
    for (cell, difference) in &found.cells {
        let CellDifference::Artifacts { outputs, .. } = difference else {
            continue;
        };
        for (before, after) in outputs {
            let (Some(old), Some(new)) = (of_table(store, before), of_table(store, after)) else {
                continue;
            };
            for (column, mean) in &old {
                let other = new
                    .iter()
                    .find(|(name, _)| name == column)
                    .and_then(|(_, mean)| *mean);
                if other != *mean {
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
    metrics
}

/// Names and means of a table's number columns; `None` where it is no table, long, gone or damaged.
fn of_table(store: &Store, artifact: &Artifact) -> Option<Vec<(String, Option<f64>)>> {
    if artifact.extension != "parquet" || artifact.size > LONGEST {
        return None;
    }
    let path = store.layout().object(&artifact.object);
    let table = provenir_table::read(&path, Some(artifact.object)).ok()?;
    means(&table).ok()
}

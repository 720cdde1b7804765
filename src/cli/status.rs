use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use camino::Utf8Path;
use jiff::Timestamp;

use super::arguments::ManifestArguments;
use super::error::{CommandError, Exit};
use super::measure::bytes;
use super::{Edition, plan, runs, session, terminal};
use crate::display::{counts, grouped};
use crate::exec::{Standing, Survey};
use crate::record::{Latest, Record, RunStore};
use crate::store::{ActionKey, partials, standing};

/// `status`.
pub(super) fn status(edition: &Edition, arguments: &ManifestArguments) -> Result<Exit, CommandError> {
    let plan = session::plan(edition, arguments)?;
    let store = session::open(arguments)?;
    let survey = Survey::take(&plan, &store, &BTreeSet::new())?;
    store.flush();
    let runs = RunStore::new(store.layout());
    let failed = failed(&runs, &plan.manifest)?;
    let mut rows = vec![
        ["stage", "cells", "up to date", "failed"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut names: BTreeMap<ActionKey, String> = BTreeMap::new();
    for stage in &plan.stages {
        let (mut cached, mut broken) = (0, 0);
        for cell in stage.cells.clone() {
            match &survey.standings[cell] {
                Standing::Cached(_) => cached += 1,
                Standing::Due { key, .. } => {
                    broken += usize::from(failed.contains(key));
                    names.insert(*key, plan.name(cell));
                }
                Standing::Unknown { .. } => {}
            }
        }
        rows.push(vec![
            stage.name.clone(),
            stage.cells.len().to_string(),
            cached.to_string(),
            if broken == 0 {
                String::new()
            } else {
                broken.to_string()
            },
        ]);
    }
    if rows.iter().skip(1).all(|row| row[3].is_empty()) {
        for row in &mut rows {
            row.truncate(3);
        }
    }
    let options = arguments.overrides.suffix(&[]);
    let mut text = format!(
        "{} ({}{options}): {} of {} cells up to date\nstore {}\n\n{}",
        plan.pipeline,
        session::short(&plan.manifest),
        survey.cached(),
        plan.cells.len(),
        session::short(store.layout().root()),
        session::aligned(&rows)
    );
    match plan::Copies::assess(&plan, &store, &survey).spoilt() {
        0 => {}
        1 => text.push_str("\n1 published file is missing or altered: `provenir plan` tells which\n"),
        count => {
            let _ = writeln!(
                text,
                "\n{} published files are missing or altered: `provenir plan` lists them",
                grouped(count)
            );
        }
    }
    let name = |key: &ActionKey| match names.get(key) {
        Some(name) => name.clone(),
        None => format!("action {} of another pipeline", key.short()),
    };
    let claims = standing(store.layout())?;
    section(
        &mut text,
        "running",
        claims
            .iter()
            .map(|(key, owner)| format!("{}: process {} on {}", name(key), owner.pid, owner.host)),
    );
    let partials = partials(store.layout())?;
    let idle = partials
        .iter()
        .filter(|partial| partial.size > 0)
        .filter(|partial| claims.iter().all(|(claimed, _)| *claimed != partial.key));
    section(
        &mut text,
        "interrupted, with checkpoints to go on from",
        idle.map(|partial| format!("{}: {}", name(&partial.key), bytes(partial.size))),
    );
    text.push_str(&last(&runs, &plan.manifest)?);
    terminal::print(&text)?;
    Ok(Exit::Done)
}

/// The actions that failed in the manifest's last run.
fn failed(runs: &RunStore, manifest: &Utf8Path) -> Result<BTreeSet<ActionKey>, CommandError> {
    let (Some(latest), _) = runs.latest(Some(manifest))? else {
        return Ok(BTreeSet::new());
    };
    let records = latest.run.records()?.into_iter();
    let failed = records.filter_map(|record| match record {
        Record::Failed { key, .. } => Some(key),
        _ => None,
    });
    Ok(failed.collect())
}

/// The last run: of the manifest, or, where it has none, of any other.
fn last(runs: &RunStore, manifest: &Utf8Path) -> Result<String, CommandError> {
    let (own, flawed) = runs.latest(Some(manifest))?;
    session::warn_of_flawed(&flawed);
    let latest = match own {
        Some(own) => Some(own),
        None => runs.latest(None)?.0,
    };
    let Some(Latest { run, repeated }) = latest else {
        return Ok(String::new());
    };
    let mut text = format!("\nlast run {}", run.id);
    if let Some(head) = run.head()? {
        let _ = write!(text, " of {}", runs::asked(&head));
    }
    let outcome = run.outcome()?;
    let how = runs::state(outcome.as_ref().map(|outcome| &outcome.summary), run.liveness()?);
    let _ = write!(text, ": {how}");
    if let Some(outcome) = outcome {
        let _ = write!(text, ", {}: {}", time(outcome.ended), counts(&outcome.summary));
        if let Some(failure) = &outcome.summary.halted {
            let _ = write!(text, "\n  {}", failure.message);
        }
    }
    if let Some(repeated) = repeated {
        let _ = write!(text, "\n  run again with nothing to do, {}", time(repeated));
    }
    text.push('\n');
    Ok(text)
}

fn time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn section(text: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_some() {
        let _ = writeln!(text, "\n{title}");
    }
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
}

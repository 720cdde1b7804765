use std::collections::BTreeMap;
use std::fmt::Write;

use super::arguments::ManifestArguments;
use super::error::{CommandError, Exit};
use super::measure::bytes;
use super::{Edition, runs, session, terminal};
use crate::display::counts;
use crate::exec::{Standing, Survey};
use crate::record::RunStore;
use crate::store::{ActionKey, partials, standing};

/// `status`.
pub(super) fn status(edition: &Edition, arguments: &ManifestArguments) -> Result<Exit, CommandError> {
    let plan = session::plan(edition, arguments)?;
    let store = session::open(arguments, &plan)?;
    let survey = Survey::take(&plan, &store, &std::collections::BTreeSet::new())?;
    store.flush();
    let mut grid = vec![["stage", "cells", "up to date"].map(str::to_owned).to_vec()];
    let mut names: BTreeMap<ActionKey, String> = BTreeMap::new();
    for stage in &plan.stages {
        let mut cached = 0;
        for cell in stage.cells.clone() {
            match &survey.standings[cell] {
                Standing::Cached(_) => cached += 1,
                Standing::Due { key, .. } => {
                    names.insert(*key, plan.name(cell));
                }
                Standing::Unknown { .. } => {}
            }
        }
        grid.push(vec![
            stage.name.clone(),
            stage.cells.len().to_string(),
            cached.to_string(),
        ]);
    }
    let mut text = format!(
        "{} ({}): {} of {} cells up to date\nstore {}\n\n{}",
        plan.pipeline,
        session::short(&plan.manifest),
        survey.cached(),
        plan.cells.len(),
        session::short(store.layout().root()),
        session::aligned(&grid)
    );
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
        .filter(|partial| claims.iter().all(|(claimed, _)| *claimed != partial.key));
    section(
        &mut text,
        "interrupted, with checkpoints to go on from",
        idle.map(|partial| format!("{}: {}", name(&partial.key), bytes(partial.size))),
    );
    if let Some(last) = RunStore::new(store.layout()).runs()?.first() {
        let outcome = last.outcome()?;
        let is_running = outcome.is_none() && last.is_running()?;
        let how = runs::state(outcome.as_ref().map(|outcome| &outcome.summary), is_running);
        let ended = match outcome {
            Some(outcome) => {
                let when = outcome.ended.strftime("%Y-%m-%d %H:%M:%S UTC");
                let mut told = format!("{how}, {when}: {}", counts(&outcome.summary));
                if let Some(failure) = &outcome.summary.halted {
                    let _ = write!(told, "\n  {}", failure.message);
                }
                told
            }
            None => how.to_owned(),
        };
        let _ = writeln!(text, "\nlast run {}: {ended}", last.id);
    }
    terminal::print(&text)?;
    Ok(Exit::Done)
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

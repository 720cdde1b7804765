use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::ErrorKind;

use camino::Utf8Path;

use super::arguments::ManifestArguments;
use super::error::{CommandError, Exit};
use super::{Edition, session, terminal};
use crate::display::counts;
use crate::exec::{Standing, Survey};
use crate::record::RunStore;
use crate::store::{ActionKey, StoreError, standing};

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
    let partials = partials(&store.layout().partials())?;
    let idle = partials
        .iter()
        .filter(|(key, _)| claims.iter().all(|(claimed, _)| claimed != key));
    section(
        &mut text,
        "interrupted, with checkpoints to go on from",
        idle.map(|(key, size)| format!("{}: {size} bytes", name(key))),
    );
    let runs = RunStore::new(store.layout()).runs()?;
    if let Some(last) = runs.first() {
        let ended = match last.outcome()? {
            Some(outcome) => {
                let when = outcome.ended.strftime("%Y-%m-%d %H:%M:%S UTC");
                let how = match (outcome.summary.interrupted, &outcome.summary.halted) {
                    (true, _) => "interrupted",
                    (false, Some(_)) => "stopped by a failure",
                    (false, None) if outcome.summary.is_incomplete() => "failed in part",
                    (false, None) => "done",
                };
                let mut told = format!("{how}, {when}: {}", counts(&outcome.summary));
                if let Some(failure) = &outcome.summary.halted {
                    let _ = write!(told, "\n  {}", failure.message);
                }
                told
            }
            None if last.is_running()? => "running".to_owned(),
            None => "killed before it ended".to_owned(),
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

/// Actions with checkpoints, and their size.
fn partials(folder: &Utf8Path) -> Result<Vec<(ActionKey, u64)>, StoreError> {
    let failed = || StoreError::io("cannot read the checkpoints");
    let entries = match fs_err::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed()(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed())?;
        let Some(key) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let mut size = 0;
        for file in fs_err::read_dir(entry.path()).map_err(failed())? {
            size += file
                .and_then(|file| file.metadata())
                .map_or(0, |metadata| metadata.len());
        }
        found.push((key, size));
    }
    found.sort();
    Ok(found)
}

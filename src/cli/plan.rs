use std::collections::BTreeMap;
use std::fmt::Write;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Label;
use serde::Serialize;

use super::arguments::{PlanArguments, quoted};
use super::error::{CommandError, Exit};
use super::{Edition, measure, session, terminal};
use crate::display::grouped;
use crate::exec::{Standing, Survey};
use crate::lineage::Explainer;
use crate::plan::{CellIndex, Plan, Publish};
use crate::store::{ActionKey, Copied, Store, StoreError};

/// `plan`.
pub(super) fn plan(edition: &Edition, arguments: &PlanArguments) -> Result<Exit, CommandError> {
    let plan = session::plan(edition, &arguments.manifest)?;
    let force = session::select(&plan, &arguments.force)?;
    let store = session::open(&arguments.manifest)?;
    session::refuse_publishing_into(store.layout().root(), &plan)?;
    let survey = Survey::take(&plan, &store, &force)?;
    store.flush();
    let copies = Copies::assess(&plan, &store, &survey);
    let explainer = Explainer::new(&plan, &store, &survey);
    let text = if arguments.json {
        let cells = as_json(&plan, &explainer, &survey, copies)?;
        let text = serde_json::to_string_pretty(&cells).map_err(std::io::Error::from)?;
        format!("{text}\n")
    } else {
        let mut text = heading(&plan, &survey, &copies, &options(arguments));
        text.push_str(&table(&plan, &survey));
        text.push_str(&if arguments.verbose {
            cells(&plan, &explainer, &survey)?
        } else {
            reasons(&plan, &explainer, &survey)?
        });
        text.push_str(&copies.in_words(&plan));
        text
    };
    session::warn_of_flawed(explainer.flawed());
    terminal::print(&text)?;
    Ok(Exit::Done)
}

#[derive(Clone, Copy, Default)]
struct Counts {
    cached: usize,
    due: usize,
    unknown: usize,
}

impl Counts {
    fn of<'a>(standings: impl Iterator<Item = &'a Standing>) -> Self {
        let mut counts = Self::default();
        for standing in standings {
            match standing {
                Standing::Cached(_) => counts.cached += 1,
                Standing::Due { .. } => counts.due += 1,
                Standing::Unknown { .. } => counts.unknown += 1,
            }
        }
        counts
    }
}

/// What is changed in the manifest, and what is forced, as given.
fn options(arguments: &PlanArguments) -> String {
    let force: Vec<String> = arguments
        .force
        .iter()
        .flat_map(|cell| ["--force".to_owned(), quoted(cell)])
        .collect();
    arguments.manifest.overrides.suffix(&force)
}

/// A published copy, absolute, with what a run would do for it.
type AssessedCopy = (Utf8PathBuf, Result<Copied, StoreError>);

/// Published copies of cells that are up to date, by cell.
pub(super) struct Copies(BTreeMap<CellIndex, Vec<AssessedCopy>>);

impl Copies {
    /// Looks at what a run would look at.
    pub(super) fn assess(plan: &Plan, store: &Store, survey: &Survey<'_>) -> Self {
        let mut copies = BTreeMap::new();
        for (index, standing) in survey.standings.iter().enumerate() {
            let Standing::Cached(result) = standing else {
                continue;
            };
            let assess = |publish: &Publish| {
                let path = plan.folder.join(&publish.path);
                let assessed = store.assess_copy(&path, result.output(publish.port)?);
                Some((path, assessed))
            };
            let publish = &plan.cells[index].publish;
            if !publish.is_empty() {
                copies.insert(index, publish.iter().filter_map(assess).collect());
            }
        }
        Self(copies)
    }

    /// Those for which a run would do something, or could not.
    fn pending(&self) -> impl Iterator<Item = (CellIndex, &Utf8Path, &Result<Copied, StoreError>)> {
        let all = self.0.iter().flat_map(|(cell, copies)| {
            let copies = copies.iter();
            copies.map(|(path, assessed)| (*cell, path.as_path(), assessed))
        });
        all.filter(|(_, _, assessed)| !matches!(assessed, Ok(Copied::Unchanged)))
    }

    /// How many were published and are not as they were left: missing, or altered.
    pub(super) fn spoilt(&self) -> usize {
        let is_spoilt = |assessed: &Result<Copied, StoreError>| {
            matches!(assessed, Ok(Copied::RestoredMissing | Copied::RestoredAltered))
        };
        self.pending()
            .filter(|(_, _, assessed)| is_spoilt(assessed))
            .count()
    }

    fn in_words(&self, plan: &Plan) -> String {
        /// So many are listed.
        const SHOWN: usize = 20;
        let mut text = String::new();
        for (cell, path, assessed) in self.pending().take(SHOWN) {
            let told = match assessed {
                Ok(Copied::Unchanged) => continue,
                Ok(Copied::New) => "is not there yet; `run` publishes it".to_owned(),
                Ok(Copied::Updated) => "shows another result; `run` updates it".to_owned(),
                Ok(Copied::RestoredMissing) => "is missing; `run` restores it".to_owned(),
                Ok(Copied::RestoredAltered) => {
                    "was altered; `run` restores it, and keeps the altered file beside it".to_owned()
                }
                Ok(Copied::Displaced) => {
                    "is another file; `run` publishes there, and keeps that file beside it".to_owned()
                }
                Err(error) => error.to_string(),
            };
            let _ = writeln!(text, "  {} ({}): {told}", session::short(path), plan.name(cell));
        }
        let more = self.pending().count().saturating_sub(SHOWN);
        if more > 0 {
            let _ = writeln!(text, "  and {} more", grouped(more));
        }
        if text.is_empty() {
            text
        } else {
            format!("\npublished\n{text}")
        }
    }
}

fn heading(plan: &Plan, survey: &Survey<'_>, copies: &Copies, options: &str) -> String {
    let Counts { cached, due, unknown } = Counts::of(survey.standings.iter());
    let cells = plan.cells.len();
    let mut text = format!(
        "{} ({}{options}): {}",
        plan.pipeline,
        session::short(&plan.manifest),
        measure::count(cells, "cell")
    );
    for (count, what) in [
        (cached, "up to date"),
        (due, "to run"),
        (unknown, "known only when those have run"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {} {what}", grouped(count));
        }
    }
    let pending = copies.pending().count();
    if pending > 0 {
        let _ = write!(text, "; {} to publish", measure::count(pending, "file"));
    }
    text.push_str("\n\n");
    text
}

fn table(plan: &Plan, survey: &Survey<'_>) -> String {
    let header = [
        "stage",
        "kind",
        "varies over",
        "cells",
        "up to date",
        "to run",
        "unknown",
    ];
    let mut grid = vec![header.map(str::to_owned).to_vec()];
    for stage in &plan.stages {
        let counts = Counts::of(survey.standings[stage.cells.clone()].iter());
        let number = |count: usize| {
            if count == 0 {
                String::new()
            } else {
                count.to_string()
            }
        };
        grid.push(vec![
            stage.name.clone(),
            stage.kind.name().to_owned(),
            stage.axes.join(", "),
            stage.cells.len().to_string(),
            number(counts.cached),
            number(counts.due),
            number(counts.unknown),
        ]);
    }
    session::aligned(&grid)
}

/// Why cells run, cells of one stage with one reason together.
fn reasons(plan: &Plan, explainer: &Explainer<'_>, survey: &Survey<'_>) -> Result<String, CommandError> {
    let mut text = String::new();
    for stage in &plan.stages {
        let mut found: BTreeMap<String, Vec<CellIndex>> = BTreeMap::new();
        for cell in stage.cells.clone() {
            match &survey.standings[cell] {
                Standing::Cached(_) => {}
                Standing::Due { .. } => {
                    let reason = explainer.brief(cell)?.unwrap_or_default();
                    found.entry(reason).or_default().push(cell);
                }
                Standing::Unknown { producer } => {
                    let stage = &plan.stage_of(*producer).name;
                    found
                        .entry(waiting(stage, explainer.own_change(cell)?))
                        .or_default()
                        .push(cell);
                }
            }
        }
        for (reason, cells) in found {
            let who = match cells[..] {
                [cell] => plan.name(cell),
                [_, _] if stage.cells.len() == 2 => format!("{}, both cells", stage.name),
                _ if cells.len() == stage.cells.len() => {
                    format!("{}, all {} cells", stage.name, grouped(cells.len()))
                }
                _ => format!("{}, {} cells", stage.name, grouped(cells.len())),
            };
            let _ = writeln!(text, "  {who}: {reason}");
        }
    }
    Ok(if text.is_empty() {
        text
    } else {
        format!("\nwhy\n{text}")
    })
}

/// That a cell depends on what another, or a stage, gives, and what of it changed already.
fn waiting(producer: &str, own_change: Option<String>) -> String {
    match own_change {
        Some(change) => format!("depends on what `{producer}` gives; of its own, this changed: {change}"),
        None => format!("depends on what `{producer}` gives"),
    }
}

fn cells(plan: &Plan, explainer: &Explainer<'_>, survey: &Survey<'_>) -> Result<String, CommandError> {
    let mut grid = vec![["cell", "key", "", ""].map(str::to_owned).to_vec()];
    for (cell, standing) in survey.standings.iter().enumerate() {
        let (key, standing, reason) = match standing {
            Standing::Cached(result) => (result.key().short(), "up to date", String::new()),
            Standing::Due { key, .. } => (key.short(), "to run", explainer.brief(cell)?.unwrap_or_default()),
            Standing::Unknown { producer } => (
                String::new(),
                "unknown",
                waiting(&plan.name(*producer), explainer.own_change(cell)?),
            ),
        };
        grid.push(vec![plan.name(cell), key, standing.to_owned(), reason]);
    }
    Ok(format!("\n{}", session::aligned(&grid)))
}

/// A cell for programs.
#[derive(Serialize)]
struct PlannedCell<'a> {
    cell: String,
    stage: &'a str,
    /// Its value of each of the stage's axes.
    point: BTreeMap<&'a str, &'a Label>,
    state: State,
    /// Its action; `null` where it is known only when others have run.
    key: Option<ActionKey>,
    /// Why it has to run; `null` where it has not, or where that is not known yet.
    reason: Option<String>,
    /// The nearest cell that has to run before it is known; `null` where it is known.
    waits_for: Option<String>,
    /// What of a cell that waits for another changed since a run last had it; `null` where nothing did, and where it is known.
    own_change: Option<String>,
    /// Its published copies.
    publish: Vec<PlannedCopy>,
}

/// A published copy for programs.
#[derive(Serialize)]
struct PlannedCopy {
    /// The output port.
    port: &'static str,
    /// The copy, absolute.
    path: Utf8PathBuf,
    /// What a run does for it; `null` where that is known only when the cell has run, or where there is a problem.
    state: Option<Copied>,
    /// Why it cannot be published; `null` where it can.
    problem: Option<String>,
}

impl PlannedCopy {
    fn of(plan: &Plan, publish: &Publish, assessed: Option<Result<Copied, StoreError>>) -> Self {
        let (state, problem) = match assessed {
            Some(Ok(copied)) => (Some(copied), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        Self {
            port: publish.port,
            path: plan.folder.join(&publish.path),
            state,
            problem,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    UpToDate,
    ToRun,
    Unknown,
}

/// Every cell, in the order of the plan.
fn as_json<'a>(
    plan: &'a Plan,
    explainer: &Explainer<'_>,
    survey: &Survey<'_>,
    mut copies: Copies,
) -> Result<Vec<PlannedCell<'a>>, CommandError> {
    let mut planned = Vec::with_capacity(plan.cells.len());
    for (index, standing) in survey.standings.iter().enumerate() {
        let stage = plan.stage_of(index);
        let (state, key, waits_for) = match standing {
            Standing::Cached(result) => (State::UpToDate, Some(result.key()), None),
            Standing::Due { key, .. } => (State::ToRun, Some(*key), None),
            Standing::Unknown { producer } => (State::Unknown, None, Some(plan.name(*producer))),
        };
        let axes = stage.axes.iter().map(AsRef::as_ref);
        let mut assessed = copies.0.remove(&index).unwrap_or_default().into_iter();
        let publish = plan.cells[index].publish.iter().map(|publish| {
            let assessed = assessed.next().map(|(_, assessed)| assessed);
            PlannedCopy::of(plan, publish, assessed)
        });
        let publish = publish.collect();
        planned.push(PlannedCell {
            cell: plan.name(index),
            stage: &stage.name,
            point: axes.zip(&plan.cells[index].labels).collect(),
            state,
            key,
            reason: explainer.brief(index)?,
            waits_for,
            own_change: explainer.own_change(index)?,
            publish,
        });
    }
    Ok(planned)
}

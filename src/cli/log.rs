use std::collections::BTreeSet;

use super::arguments::{LogArguments, quoted};
use super::digest::{self, Beginning};
use super::error::{CommandError, Exit};
use super::selector::Selector;
use super::{Edition, session, terminal};
use crate::display;
use crate::exec::{Failure, Standing, Survey};
use crate::record::{Execution, FlawedRun, Record, RunFile, RunStore, StoredRun};
use crate::store::StoreError;

/// `log`: of the latest run that executed, or executes, what is meant.
pub(super) fn log(edition: &Edition, arguments: &LogArguments) -> Result<Exit, CommandError> {
    if let Some(beginning) = Beginning::parse(&arguments.cell) {
        let layout = digest::store(&arguments.manifest)?;
        if let Some((run, execution)) = by_digest(&beginning, &RunStore::new(&layout))? {
            return tell(&run, &execution);
        }
        if !session::names_stage(edition, &arguments.manifest, &arguments.cell) {
            return Err(match beginning.find(&layout)? {
                Some(_) => CommandError::request(format!(
                    "no recorded run in the store `{}` executed `{}`",
                    session::short(layout.root()),
                    arguments.cell
                ))
                .help("its result may come from another store, or its run's record was removed"),
                None => beginning.unknown(&layout),
            });
        }
    }
    by_cell(edition, arguments)
}

/// The latest execution of an action, or of the one that gave an object.
fn by_digest(
    beginning: &Beginning<'_>,
    runs: &RunStore,
) -> Result<Option<(StoredRun, Execution)>, CommandError> {
    let mut flawed = Vec::new();
    for run in runs.runs()? {
        let mut executions = match of_run(&run) {
            Ok((_, executions)) => executions,
            Err(error) => {
                flawed.push(FlawedRun { run, error });
                continue;
            }
        };
        executions.retain(|execution| {
            let objects = execution.objects.iter().map(provenir_api::Digest::hex);
            objects
                .chain([execution.key.hex()])
                .any(|hex| beginning.begins(&hex))
        });
        let keys: BTreeSet<String> = executions.iter().map(|execution| execution.key.hex()).collect();
        if keys.len() > 1 {
            return Err(beginning.ambiguous(keys.iter().map(String::as_str)));
        }
        if let Some(execution) = executions.pop() {
            session::warn_of_flawed(&flawed);
            return Ok(Some((run, execution)));
        }
    }
    session::warn_of_flawed(&flawed);
    Ok(None)
}

/// What a run was asked for, and what it executed.
fn of_run(run: &StoredRun) -> Result<(Option<RunFile>, Vec<Execution>), StoreError> {
    Ok((run.head()?, run.executions()?))
}

fn by_cell(edition: &Edition, arguments: &LogArguments) -> Result<Exit, CommandError> {
    let selector = Selector::of_cell(&arguments.cell, "a cell is wanted")?;
    let plan = session::plan_with(edition, &arguments.manifest, &arguments.cell)?;
    let store = session::open(&arguments.manifest)?;
    let cell = selector.cell(&plan)?;
    let name = plan.name(cell);
    let survey = Survey::take(&plan, &store, &BTreeSet::new())?;
    let key = match &survey.standings[cell] {
        Standing::Cached(result) => Some(result.key()),
        Standing::Due { key, .. } => Some(*key),
        Standing::Unknown { .. } => None,
    };
    let runs = RunStore::new(store.layout());
    let mut of_name = None;
    let mut flawed = Vec::new();
    for run in runs.runs()? {
        let (head, executions) = match of_run(&run) {
            Ok(found) => found,
            Err(error) => {
                flawed.push(FlawedRun { run, error });
                continue;
            }
        };
        if let Some(execution) = executions
            .iter()
            .rev()
            .find(|execution| Some(execution.key) == key)
        {
            session::warn_of_flawed(&flawed);
            if execution.cell != name {
                terminal::say(&format!(
                    "`{name}` is the same action as `{}`, which run {} executed: this is its log",
                    execution.cell, run.id
                ));
            }
            return tell(&run, execution);
        }
        if of_name.is_none() && head.is_some_and(|head| head.manifest == plan.manifest) {
            let mut named = executions
                .into_iter()
                .rev()
                .filter(|execution| execution.cell == name);
            of_name = named.next().map(|execution| (run.id, execution));
        }
    }
    session::warn_of_flawed(&flawed);
    Err(match of_name {
        Some((run, execution)) => CommandError::request(format!(
            "`{name}`, as the manifest describes it now, was not executed in any recorded run"
        ))
        .help(format!(
            "run {run} executed it with other parameters or inputs: `provenir log {}`",
            execution.key.short()
        )),
        None => CommandError::request(format!("`{name}` was not executed in any recorded run")).help(
            match &survey.standings[cell] {
                Standing::Cached(_) => {
                    "its result may come from another store, or its run's record was removed".to_owned()
                }
                Standing::Due { .. } | Standing::Unknown { .. } => format!(
                    "it has no result: `provenir why {}` tells why it has to run, and what it waits for",
                    quoted(&name)
                ),
            },
        ),
    })
}

/// Prints what was said, and tells how the execution failed, if it did.
fn tell(run: &StoredRun, execution: &Execution) -> Result<Exit, CommandError> {
    let failure = failure(run, execution)?;
    let said = match execution.log() {
        Some(path) => {
            let text = fs_err::read(path).map_err(StoreError::io("cannot read a log"))?;
            terminal::say(path.as_str());
            terminal::print(&String::from_utf8_lossy(&text))?;
            true
        }
        None => false,
    };
    match failure {
        Some(mut failure) => {
            if said {
                failure.tail.clear();
            }
            let what = format!("{} failed in run {}", execution.cell, run.id);
            terminal::say(&display::failed(&what, &failure));
        }
        None if !said => terminal::say(&format!("`{}` said nothing in run {}", execution.cell, run.id)),
        None => {}
    }
    Ok(Exit::Done)
}

/// Why an execution failed: of several attempts, the last.
fn failure(run: &StoredRun, execution: &Execution) -> Result<Option<Failure>, CommandError> {
    // An attempt that failed may be followed by one that is under way.
    if !run.failed_at()?.contains_key(&execution.cell) {
        return Ok(None);
    }
    let ends = run.records()?.into_iter().rev();
    let end = ends
        .filter_map(|record| match record {
            Record::Executed(executed) => Some((executed.key, None)),
            Record::Failed { key, failure, .. } => Some((key, Some(failure))),
            Record::Reused { .. } => None,
        })
        .find(|(key, _)| *key == execution.key);
    Ok(end.and_then(|(_, failure)| failure))
}

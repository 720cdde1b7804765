use std::collections::BTreeSet;

use super::arguments::LogArguments;
use super::digest::{self, Beginning};
use super::error::{CommandError, Exit};
use super::selector::Selector;
use super::{Edition, session, terminal};
use crate::record::{Execution, RunId, RunStore};
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
fn by_digest(beginning: &Beginning<'_>, runs: &RunStore) -> Result<Option<(RunId, Execution)>, CommandError> {
    for run in runs.runs()? {
        let mut executions = run.executions()?;
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
            return Ok(Some((run.id, execution)));
        }
    }
    Ok(None)
}

fn by_cell(edition: &Edition, arguments: &LogArguments) -> Result<Exit, CommandError> {
    let plan = session::plan(edition, &arguments.manifest)?;
    let store = session::open(&arguments.manifest, &plan)?;
    let (selector, rest) = Selector::parse(&arguments.cell)?;
    if !rest.is_empty() {
        return Err(CommandError::request(format!(
            "`{}` names an output; a cell is wanted",
            arguments.cell
        )));
    }
    let name = plan.name(selector.cell(&plan)?);
    for run in RunStore::new(store.layout()).runs()? {
        if run.head()?.is_none_or(|head| head.manifest != plan.manifest) {
            continue;
        }
        let executions = run.executions()?.into_iter();
        if let Some(execution) = executions.rev().find(|execution| execution.cell == name) {
            return tell(&run.id, &execution);
        }
    }
    let error = CommandError::request(format!(
        "`{name}` was not executed in any recorded run of this manifest"
    ));
    Err(error.help("its result may come from another manifest, or its run's record was removed"))
}

fn tell(run: &RunId, execution: &Execution) -> Result<Exit, CommandError> {
    let Some(path) = execution.log() else {
        terminal::say(&format!("`{}` said nothing in run {run}", execution.cell));
        return Ok(Exit::Done);
    };
    let text = fs_err::read(path).map_err(StoreError::io("cannot read a log"))?;
    terminal::say(path.as_str());
    terminal::print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}

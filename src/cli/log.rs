use super::arguments::LogArguments;
use super::error::{CommandError, Exit};
use super::selector::Selector;
use super::{Edition, session, terminal};
use crate::record::RunStore;
use crate::store::StoreError;

/// `log`: of the latest run that executed, or executes, a cell of that name.
pub(super) fn log(edition: &Edition, arguments: &LogArguments) -> Result<Exit, CommandError> {
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
        let Some(log) = run.log(&name)? else { continue };
        let Some(path) = log else {
            terminal::say(&format!("`{name}` said nothing in run {}", run.id));
            return Ok(Exit::Done);
        };
        let text = fs_err::read(&path).map_err(StoreError::io("cannot read a log"))?;
        terminal::say(&format!("{path}"));
        terminal::print(&String::from_utf8_lossy(&text))?;
        return Ok(Exit::Done);
    }
    let error = CommandError::request(format!(
        "`{name}` was not executed in any recorded run of this manifest"
    ));
    Err(error.help("its result may come from another manifest, or its run's record was removed"))
}

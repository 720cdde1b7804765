use super::arguments::{PinArguments, UnpinArguments};
use super::digest::{self, Beginning, Name};
use super::error::{CommandError, Exit};
use super::selector::Selector;
use super::{Edition, runs, session, terminal};
use crate::exec::{Standing, Survey};
use crate::record::{History, RunStore, StoredRun};
use crate::store::{ActionKey, Layout, Pin, Store};

/// `pin`.
pub(super) fn pin(edition: &Edition, arguments: &PinArguments) -> Result<Exit, CommandError> {
    let layout = digest::store(&arguments.manifest)?;
    let Some(what) = &arguments.what else {
        return list(&layout);
    };
    if let Some(run) = runs::find(&layout, what)? {
        return pin_run(&Store::open(layout.root()), &run);
    }
    if let Some(beginning) = Beginning::parse(what)
        && !session::names_stage(edition, &arguments.manifest, what)
    {
        let Some(name) = beginning.name(&layout)? else {
            return Err(beginning.unknown(&layout));
        };
        let Name::Action(key) = name else {
            return Err(
                CommandError::request(format!("`{what}` is an object; an action is pinned"))
                    .help("`provenir plan --verbose` lists the keys of actions"),
            );
        };
        let store = Store::open(layout.root());
        let name = History::read(&layout)?.name(&key);
        tell(&name, &key, store.pin(key, &name, None)?);
        return Ok(Exit::Done);
    }
    pin_cells(edition, arguments, what)
}

fn pin_run(store: &Store, run: &StoredRun) -> Result<Exit, CommandError> {
    let is_new = run.annotate(store, |annotation| annotation.pinned = true)?;
    terminal::say(&if is_new {
        format!(
            "pinned run {}: `provenir gc` keeps all that it has results of",
            run.id
        )
    } else {
        format!("run {} was pinned already", run.id)
    });
    Ok(Exit::Done)
}

fn pin_cells(edition: &Edition, arguments: &PinArguments, what: &str) -> Result<Exit, CommandError> {
    let (selector, rest) = Selector::parse(what)?;
    if !rest.is_empty() {
        return Err(CommandError::request(format!(
            "`{what}` names an output; a run or a cell is pinned"
        )));
    }
    let plan = session::plan(edition, &arguments.manifest)?;
    let store = session::open(&arguments.manifest, &plan)?;
    let survey = Survey::take(&plan, &store, &std::collections::BTreeSet::new())?;
    let mut wanted = Vec::new();
    for cell in selector.cells(&plan)? {
        match &survey.standings[cell] {
            Standing::Cached(result) => wanted.push((plan.name(cell), result.key())),
            Standing::Due { .. } | Standing::Unknown { .. } => {
                let error = CommandError::request(format!(
                    "the store does not have `{}` as the manifest now describes it",
                    plan.name(cell)
                ));
                return Err(error.help("`provenir run` computes it; an action key pins an earlier result"));
            }
        }
    }
    for (name, key) in wanted {
        tell(&name, &key, store.pin(key, &name, Some(plan.manifest.clone()))?);
    }
    Ok(Exit::Done)
}

fn tell(name: &str, key: &ActionKey, is_new: bool) {
    terminal::say(&if is_new {
        format!(
            "pinned {name} ({}): `provenir gc` keeps it and what it was computed from",
            key.short()
        )
    } else {
        format!("{name} ({}) was pinned already", key.short())
    });
}

fn list(layout: &Layout) -> Result<Exit, CommandError> {
    let mut grid = Vec::new();
    for run in pinned_runs(layout)? {
        let head = run.head()?;
        let manifest = head.map_or_else(String::new, |head| session::short(&head.manifest).to_string());
        grid.push(vec![format!("run {}", run.id), String::new(), manifest]);
    }
    for pin in Store::open(layout.root()).pins()? {
        let manifest = pin.manifest.as_deref().map(session::short);
        grid.push(vec![
            pin.cell.clone(),
            pin.key.short(),
            manifest.map_or_else(String::new, |manifest| manifest.to_string()),
        ]);
    }
    if grid.is_empty() {
        terminal::say(
            "nothing is pinned; `provenir pin RUN` or `provenir pin CELL` keeps results from `provenir gc`",
        );
    } else {
        terminal::print(&session::aligned(&grid))?;
    }
    Ok(Exit::Done)
}

fn pinned_runs(layout: &Layout) -> Result<Vec<StoredRun>, CommandError> {
    let mut pinned = Vec::new();
    for run in RunStore::new(layout).runs()? {
        if run.annotation()?.pinned {
            pinned.push(run);
        }
    }
    Ok(pinned)
}

/// `unpin`.
pub(super) fn unpin(arguments: &UnpinArguments) -> Result<Exit, CommandError> {
    let store = session::existing(&arguments.store)?;
    let what = arguments.what.as_str();
    let mut runs = pinned_runs(store.layout())?;
    let tagged = runs::find(store.layout(), what)?.map(|run| run.id);
    runs.retain(|run| Some(&run.id) == tagged.as_ref());
    let pins: Vec<Pin> = store
        .pins()?
        .into_iter()
        .filter(|pin| is_meant(pin, what))
        .collect();
    if runs.is_empty() && pins.is_empty() {
        return Err(CommandError::request(format!("`{what}` is not pinned"))
            .help("`provenir pin` lists what is; name it as it is listed there"));
    }
    for run in runs {
        run.annotate(&store, |annotation| annotation.pinned = false)?;
        terminal::say(&format!("run {} is not pinned any more", run.id));
    }
    for pin in pins {
        store.unpin(&pin.key)?;
        terminal::say(&format!(
            "{} ({}) is not pinned any more",
            pin.cell,
            pin.key.short()
        ));
    }
    Ok(Exit::Done)
}

/// Whether a person means this pin: its cell, its cell's stage, or the beginning of its key.
fn is_meant(pin: &Pin, text: &str) -> bool {
    let stage = pin.cell.split('[').next();
    pin.cell == text
        || stage == Some(text)
        || Beginning::parse(text).is_some_and(|beginning| beginning.begins(&pin.key.hex()))
}

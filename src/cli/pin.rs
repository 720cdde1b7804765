use std::collections::BTreeSet;

use super::arguments::{PinArguments, UnpinArguments};
use super::digest::{self, Beginning, Name};
use super::error::{CommandError, Exit};
use super::selector::Selector;
use super::standing::absent;
use super::{Edition, runs, session, terminal};
use crate::exec::{Standing, Survey};
use crate::record::{History, RunFile, RunStore, StoredRun};
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
        let history = History::read(&layout)?;
        session::warn_of_flawed(&history.flawed);
        let name = history.name(&key);
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
    let selector = Selector::of_cell(what, "a run or a cell is pinned")?;
    let plan = session::plan_of_past(edition, &arguments.manifest)?;
    let store = session::open(&arguments.manifest)?;
    let survey = Survey::take(&plan, &store, &BTreeSet::new())?;
    let mut wanted = Vec::new();
    for cell in selector.cells(&plan)? {
        match &survey.standings[cell] {
            Standing::Cached(result) => wanted.push((plan.name(cell), result.key())),
            Standing::Due { .. } | Standing::Unknown { .. } => {
                let error = absent(&plan, &store, &survey, cell);
                let help = error.advice().unwrap_or_default();
                let help = format!("{help}; an action key pins an earlier result");
                return Err(error.help(help));
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
    for (run, head) in pinned_runs(layout)? {
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

/// The pinned runs, each with what was asked for.
fn pinned_runs(layout: &Layout) -> Result<Vec<(StoredRun, Option<RunFile>)>, CommandError> {
    let (runs, flawed) = RunStore::new(layout).read(|run| {
        let head = run.head()?;
        Ok(run.annotation()?.pinned.then_some((run, head)))
    })?;
    session::warn_of_flawed(&flawed);
    Ok(runs.into_iter().flatten().collect())
}

/// `unpin`.
pub(super) fn unpin(arguments: &UnpinArguments) -> Result<Exit, CommandError> {
    let layout = digest::store_of(&arguments.manifest, &arguments.store)?;
    let store = session::there(&layout)?;
    let what = arguments.what.as_str();
    let manifest = session::absolute(&arguments.manifest)?;
    let mut runs = pinned_runs(store.layout())?;
    let tagged = runs::find(store.layout(), what)?.map(|run| run.id);
    runs.retain(|(run, _)| Some(&run.id) == tagged.as_ref());
    let meant: Vec<Pin> = store
        .pins()?
        .into_iter()
        .filter(|pin| is_meant(pin, what))
        .collect();
    // A key is one result, whatever manifest it was pinned by; cells of several manifests may have one name.
    let (pins, others): (Vec<Pin>, Vec<Pin>) = meant
        .into_iter()
        .partition(|pin| is_key(pin, what) || pin.manifest.as_ref().is_none_or(|pinned| *pinned == manifest));
    if runs.is_empty() && pins.is_empty() {
        let error = CommandError::request(format!("`{what}` is not pinned"));
        let elsewhere: BTreeSet<String> = others
            .iter()
            .filter_map(|pin| pin.manifest.as_deref())
            .map(|manifest| format!("`provenir unpin '{what}' {}`", session::short(manifest)))
            .collect();
        if elsewhere.is_empty() {
            return Err(error.help("`provenir pin` lists what is; name it as it is listed there"));
        }
        let error = CommandError::request(format!(
            "`{what}` of `{}` is not pinned; it is of another manifest",
            session::short(&manifest)
        ));
        return Err(error.help(elsewhere.into_iter().collect::<Vec<_>>().join(", or ")));
    }
    for (run, _) in runs {
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

/// Whether a person means this pin: its cell, where axes may be left out, or its key.
fn is_meant(pin: &Pin, text: &str) -> bool {
    let is_cell = || {
        let (meant, rest) = Selector::parse(text).ok()?;
        Some(rest.is_empty() && meant.includes(&Selector::parse(&pin.cell).ok()?.0))
    };
    pin.cell == text || is_key(pin, text) || is_cell().unwrap_or(false)
}

/// Whether a text is the beginning of a pin's key.
fn is_key(pin: &Pin, text: &str) -> bool {
    Beginning::parse(text).is_some_and(|beginning| beginning.begins(&pin.key.hex()))
}

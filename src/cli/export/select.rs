use std::collections::BTreeSet;

use camino::Utf8Path;
use provenir_api::Digest;

use crate::cli::arguments::{ExportArguments, ManifestArguments, OverrideArguments};
use crate::cli::digest::{self, Beginning, Name};
use crate::cli::error::CommandError;
use crate::cli::selector::{self, Selector, no_file};
use crate::cli::standing::absent;
use crate::cli::{Edition, environment, runs, session, terminal};
use crate::exec::{Standing, Survey};
use crate::lineage::{Condition, FileOrigin, Graph};
use crate::provenance::{Selection, Wanted, WantedOutput};
use crate::record::{RunStore, StoredRun};
use crate::store::{ActionKey, Layout, Store};

/// What is to be exported, and from where.
pub(super) struct Selected {
    pub(super) store: Store,
    pub(super) graph: Graph,
    pub(super) selection: Selection,
    /// What a file is named after where no name is given.
    pub(super) name: String,
    /// Which run is meant, where none was named.
    pub(super) which: Option<String>,
}

/// What was named, before the store is read.
enum Meant<'a> {
    /// The last run of a manifest.
    Last(&'a Utf8Path),
    Run(StoredRun),
    File(&'a Utf8Path),
    Digest(Beginning<'a>),
    Cells(&'a str),
}

/// Finds what is meant: the last run of the manifest where nothing is named; else files come before runs, runs before digests,
/// digests before cells.
pub(super) fn select(edition: &Edition, arguments: &ExportArguments) -> Result<Selected, CommandError> {
    let manifest = &arguments.manifest;
    let what = arguments.what.as_deref();
    let named = what.map(Utf8Path::new);
    let is_file = named.is_some_and(|path| fs_err::metadata(path).is_ok_and(|found| found.is_file()));
    let layout = match named.filter(|_| is_file) {
        Some(path) => beside(path, manifest)?,
        None => digest::store(manifest)?,
    };
    let store = session::there(&layout)?;
    let meant = match (what, named) {
        (None, _) => Meant::Last(&manifest.manifest),
        (_, Some(path)) if is_file && path.extension() == Some("toml") => Meant::Last(path),
        (_, Some(path)) if is_file => Meant::File(path),
        (Some(text), _) if selector::is_path(text) => {
            return Err(no_file(text));
        }
        (Some(text), _) => match (runs::find(&layout, text)?, Beginning::parse(text)) {
            (Some(run), _) => Meant::Run(run),
            (None, Some(beginning)) if !session::names_stage(edition, manifest, text) => {
                Meant::Digest(beginning)
            }
            _ => Meant::Cells(text),
        },
    };
    if manifest.overrides.is_given() && !matches!(meant, Meant::Cells(_) | Meant::Last(_)) {
        return Err(CommandError::request(
            "--set, --axis, --profile and --only go with a manifest or a cell; a run, a file and a digest are exported as they were made",
        )
        .help("leave them out, or name a manifest, whose last run with the same is meant, or a cell"));
    }
    let mut which_run = None;
    let (selection, name, graph) = match meant {
        Meant::Last(path) => {
            let run = last(&layout, path, &manifest.overrides)?;
            which_run = which(&run)?;
            of_run(&store, run)?
        }
        Meant::Run(run) => of_run(&store, run)?,
        Meant::File(path) => of_file(&store, path)?,
        Meant::Digest(beginning) => of_digest(&store, &beginning, what.unwrap_or_default())?,
        Meant::Cells(text) => of_cells(edition, manifest, &store, text)?,
    };
    session::warn_of_flawed(&graph.history().flawed);
    Ok(Selected {
        store,
        graph,
        selection,
        name,
        which: which_run,
    })
}

/// The store that a file belongs to: as for the manifest, but, where there is none from there upwards, from the file's own
/// folder.
fn beside(path: &Utf8Path, manifest: &ManifestArguments) -> Result<Layout, CommandError> {
    let path = environment::working_folder()?.join(path);
    let is_manifest = path.extension() == Some("toml");
    let layout = if is_manifest {
        digest::store_of(&path, &manifest.store)?
    } else {
        digest::store(manifest)?
    };
    if !layout.root().is_dir()
        && manifest.store.cache.is_none()
        && let Some(root) = path.canonicalize_utf8().ok().and_then(|path| Layout::find(&path))
    {
        return Ok(Layout::new(root));
    }
    Ok(layout)
}

type Found = (Selection, String, Graph);

/// The last recorded run of a manifest; with options that change it, the last one that had the same.
fn last(
    layout: &Layout,
    manifest: &Utf8Path,
    overrides: &OverrideArguments,
) -> Result<StoredRun, CommandError> {
    let path = session::absolute(manifest)?;
    let store = RunStore::new(layout);
    let latest = if overrides.is_given() {
        let (runs, flawed) = store.read(|run| {
            let head = run.head()?.filter(|head| head.manifest == path);
            let given = head.and_then(|head| OverrideArguments::recorded(&head.command));
            Ok((given.as_ref() == Some(overrides)).then_some(run))
        })?;
        session::warn_of_flawed(&flawed);
        runs.into_iter().flatten().next()
    } else {
        let (latest, flawed) = store.latest(Some(&path))?;
        session::warn_of_flawed(&flawed);
        latest.map(|latest| latest.run)
    };
    if let Some(latest) = latest {
        return Ok(latest);
    }
    let shown = session::short(&path);
    Err(if path.is_file() {
        CommandError::request(format!(
            "no run of `{shown}`{} is recorded in the store `{}`",
            overrides.suffix(&[]),
            session::short(layout.root())
        ))
        .help(if overrides.is_given() {
            "`provenir run` with the same makes one; `provenir runs` lists those that are recorded"
        } else {
            "`provenir run` makes one; a run in which everything is up to date is not recorded: name a cell or a figure"
        })
    } else {
        CommandError::request(format!("there is no manifest `{shown}`"))
            .help("name a run (`provenir runs` lists them), a figure, a cell, or a manifest whose last run is meant")
    })
}

/// Which run is meant, in words.
fn which(run: &StoredRun) -> Result<Option<String>, CommandError> {
    let Some(head) = run.head()? else {
        return Ok(None);
    };
    let outcome = run.outcome()?;
    Ok(Some(format!(
        "run {}, the last of {}: {}",
        run.id,
        runs::asked(&head),
        runs::state(outcome.as_ref().map(|outcome| &outcome.summary), run.liveness()?)
    )))
}

fn of_run(store: &Store, run: StoredRun) -> Result<Found, CommandError> {
    if run.is_running()? {
        return Err(CommandError::request(format!("run {} is still running", run.id))
            .help("export it when it is over, or name an earlier one: `provenir runs` lists them"));
    }
    let graph = Graph::read(store)?;
    let pipeline = run.head()?.map_or_else(|| "run".to_owned(), |head| head.pipeline);
    let name = format!("{pipeline}-{}", run.id);
    Ok((Selection::Run(run.id), name, graph))
}

fn of_file(store: &Store, path: &Utf8Path) -> Result<Found, CommandError> {
    let graph = Graph::read(store)?;
    let path = session::published_file(store, path)?;
    let origin = FileOrigin::of(&path, store, &graph)?;
    let shown = session::short(&path);
    let root = session::short(store.layout().root());
    if origin.condition == Condition::Altered {
        return Err(
            CommandError::request(format!("`{shown}` was altered since Provenir made it"))
                .help("`provenir run` restores what a manifest publishes; or export the cell that made it"),
        );
    }
    let Some(key) = origin.key else {
        return Err(CommandError::request(format!(
            "`{shown}` does not say where it comes from, and the store `{root}` does not know it"
        ))
        .help("figures (SVG, PNG, PDF, GIF) carry their origin; `--cache` names another store"));
    };
    if !graph.knows(&key) {
        return Err(CommandError::request(format!(
            "the store `{root}` has neither result nor record of action {}",
            key.short()
        ))
        .help("`--cache` or PROVENIR_CACHE names the store of whoever made the file"));
    }
    if !graph.makers(&origin.object).contains(&key) {
        terminal::say(&format!(
            "warning: `{shown}` does not have the bytes that the store has of action {}; what is exported is the store's",
            key.short()
        ));
    }
    let stem = shown.file_stem().unwrap_or("figure").to_owned();
    let selection = Selection::Results {
        of: vec![Wanted {
            key,
            cell: origin.published.map(|published| published.cell),
        }],
        output: Some(WantedOutput {
            object: origin.object,
            path: Some(path),
        }),
        title: format!("`{shown}`"),
    };
    Ok((selection, stem, graph))
}

fn of_digest(store: &Store, beginning: &Beginning<'_>, text: &str) -> Result<Found, CommandError> {
    let graph = Graph::read(store)?;
    let (key, object): (ActionKey, Option<Digest>) = match beginning.name(store.layout())? {
        None => {
            return Err(CommandError::request(format!(
                "`{text}` names no recorded run of the store `{}`, and no object and no action has a digest that begins so",
                session::short(store.layout().root())
            ))
            .help("`provenir runs` lists runs, `provenir plan --verbose` the keys of actions; `--cache` names another store"));
        }
        Some(Name::Action(key)) => (key, None),
        Some(Name::Object(object)) => match graph.makers(&object)[..] {
            [key, ..] => (key, Some(object)),
            [] => {
                return Err(CommandError::request(format!(
                    "no result names object {}: nothing is known of where it comes from",
                    object.short()
                )));
            }
        },
    };
    let title = match object {
        Some(object) => format!("artifact {} of {}", object.short(), graph.history().name(&key)),
        None => graph.history().name(&key),
    };
    let selection = Selection::Results {
        of: vec![Wanted { key, cell: None }],
        output: object.map(|object| WantedOutput { object, path: None }),
        title,
    };
    Ok((selection, format!("action-{}", key.short()), graph))
}

fn of_cells(
    edition: &Edition,
    manifest: &ManifestArguments,
    store: &Store,
    text: &str,
) -> Result<Found, CommandError> {
    let (selector, rest) = Selector::parse(text)?;
    if rest.starts_with('.') && manifest.manifest.is_file() {
        let plan = session::load(edition, &manifest.manifest, &manifest.overrides)?;
        selector.neither(text, rest, &plan)?;
    }
    if !rest.is_empty() {
        return Err(CommandError::request(format!(
            "`{text}` names an output; a run, a figure or a cell is exported, with all its outputs"
        )));
    }
    if !manifest.manifest.is_file() {
        return Err(CommandError::request(format!(
            "`{text}` is neither a recorded run nor a file, and there is no manifest `{}` that it could be a cell of",
            manifest.manifest
        ))
        .help("`provenir runs` lists runs"));
    }
    let plan = session::plan_of_past(edition, manifest)?;
    let survey = Survey::take(&plan, store, &BTreeSet::new())?;
    let mut of = Vec::new();
    for cell in selector.cells(&plan)? {
        match &survey.standings[cell] {
            Standing::Cached(result) => {
                of.push(Wanted {
                    key: result.key(),
                    cell: Some(plan.name(cell)),
                });
            }
            Standing::Due { .. } | Standing::Unknown { .. } => {
                return Err(absent(&plan, store, &survey, cell));
            }
        }
    }
    let selection = Selection::Results {
        of,
        output: None,
        title: text.to_owned(),
    };
    Ok((
        selection,
        format!("{}-{text}", plan.pipeline),
        Graph::read(store)?,
    ))
}

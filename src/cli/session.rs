//! What most commands begin with: a plan, and the store that it is for.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::schema;

use super::arguments::{ManifestArguments, OverrideArguments, StoreArguments};
use super::error::CommandError;
use super::selector::Selector;
use super::terminal::{say, show};
use super::{Edition, environment};
use crate::exec::{WorkerProgram, greeting};
use crate::lineage::Graph;
use crate::manifest::{self, visible};
use crate::plan::{CellIndex, Plan, RememberedSources};
use crate::record::{FlawedRun, RunId};
use crate::store::{Layout, Store, StoreError};

/// The manifest where none is named.
pub(super) const EXPECTED: &str = "pipeline.toml";

/// The plan of the manifest in which `what` is looked for, after all else that it could have been.
pub(super) fn plan_with(
    edition: &Edition,
    arguments: &ManifestArguments,
    what: &str,
) -> Result<Plan, CommandError> {
    if arguments.manifest == EXPECTED && !arguments.manifest.exists() {
        return Err(CommandError::request(format!(
            "there is no manifest `{EXPECTED}` here, whose cell `{what}` could be, and `{what}` is nothing else that is known"
        ))
        .help("name the manifest behind the cell, or write the path of a file with its folder, such as ./results.txt"));
    }
    plan_of_past(edition, arguments)
}

/// Reads and expands a manifest to tell of what was computed: a source file that was taken by a run, and is gone, is told, and
/// counts as what it was.
pub(super) fn plan_of_past(edition: &Edition, arguments: &ManifestArguments) -> Result<Plan, CommandError> {
    let problems = match plan(edition, arguments) {
        Err(CommandError::Manifest(problems)) => problems,
        other => return other,
    };
    let store = open(arguments)?;
    let remembered = Graph::read(&store)?.remembered_sources();
    match load_remembering(edition, &arguments.manifest, &arguments.overrides, &remembered) {
        Ok(plan) => {
            warn_of_oddities(&plan);
            for path in plan.gone.keys() {
                say(&format!(
                    "warning: the source file `{}` is not there any more; it is taken to hold what it held when a run last took it",
                    short(path)
                ));
            }
            Ok(plan)
        }
        Err(_) => Err(CommandError::Manifest(problems)),
    }
}

/// Reads and expands a manifest; warns of what is odd in it.
pub(super) fn plan(edition: &Edition, arguments: &ManifestArguments) -> Result<Plan, CommandError> {
    let plan = load(edition, &arguments.manifest, &arguments.overrides)?;
    warn_of_oddities(&plan);
    Ok(plan)
}

fn warn_of_oddities(plan: &Plan) {
    if !plan.warnings.is_empty() {
        show(&plan.warnings);
    }
}

/// Reads and expands a manifest.
pub(super) fn load(
    edition: &Edition,
    path: &Utf8Path,
    overrides: &OverrideArguments,
) -> Result<Plan, CommandError> {
    load_remembering(edition, path, overrides, &RememberedSources::new())
}

fn load_remembering(
    edition: &Edition,
    path: &Utf8Path,
    overrides: &OverrideArguments,
    remembered: &RememberedSources,
) -> Result<Plan, CommandError> {
    if path.is_dir() {
        return Err(is_folder(path));
    }
    let mut plan = manifest::load_remembering(path, &edition.registry(), &overrides.overrides(), remembered)
        .map_err(|diagnostics| CommandError::Manifest(Box::new(diagnostics)))?;
    if overrides.strict_platform {
        plan.platform = Some(platform(edition)?);
    }
    Ok(plan)
}

/// That a folder was named where a manifest is wanted, with the manifests that lie in it.
fn is_folder(path: &Utf8Path) -> CommandError {
    const SHOWN: usize = 8;
    let error = CommandError::request(format!("`{path}` is a folder; a manifest is a file"));
    let entries = path.read_dir_utf8().into_iter().flatten().flatten();
    let mut found: Vec<Utf8PathBuf> = entries
        .map(|entry| path.join(entry.file_name()))
        .filter(|path| path.extension() == Some("toml") && path.is_file())
        .collect();
    found.sort();
    let count = found.len();
    let names = schema::list(found.iter().take(SHOWN).map(|path| path.as_str()));
    error.help(match count {
        0 => "no manifest (.toml) lies in it; `provenir init FOLDER` writes one to begin with".to_owned(),
        1 => format!("did you mean {names}?"),
        _ if count > SHOWN => format!("in it lie {names} and {} more", count - SHOWN),
        _ => format!("in it lie {names}"),
    })
}

/// The path of a manifest, or of a published file, as plans and records have it.
pub(super) fn absolute(manifest: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
    manifest::located(manifest).map_err(|message| CommandError::Environment { message, help: None })
}

/// The path of a file that a person names, as it was published: through links that the manifest's own path goes through, or else
/// through none.
pub(super) fn published_file(store: &Store, file: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
    let named: Utf8PathBuf = environment::working_folder()?.join(file).components().collect();
    Ok(match store.publication(&named)? {
        Some(_) => named,
        None => absolute(file)?,
    })
}

/// The numeric platform as a text: what a worker says of it, sorted by name.
fn platform(edition: &Edition) -> Result<String, CommandError> {
    let hello = greeting(&worker(edition)?)?;
    // Why a device was chosen is said for people; which one it is counts.
    let counts = hello.platform.iter().filter(|(name, _)| *name != "device_reason");
    let told: Vec<String> = counts.map(|(name, value)| format!("{name}={value}")).collect();
    Ok(told.join("\n"))
}

/// Where the store is that belongs to a manifest's folder, whether the manifest exists or not.
pub(super) fn root(arguments: &ManifestArguments) -> Result<Utf8PathBuf, CommandError> {
    let root = unread_root(arguments)?;
    warn_of_newer(&root)?;
    Ok(root)
}

/// The same, of which nothing was read yet. It is looked for upwards along the path by which the manifest is named.
fn unread_root(arguments: &ManifestArguments) -> Result<Utf8PathBuf, CommandError> {
    let manifest = environment::working_folder()?.join(&arguments.manifest);
    let folder = manifest.parent().unwrap_or(&manifest);
    environment::store(arguments.store.cache.as_deref(), folder)
}

/// Whether a text that may also be the beginning of a digest names a stage of the manifest, where there is one that can
/// be read.
pub(super) fn names_stage(edition: &Edition, arguments: &ManifestArguments, text: &str) -> bool {
    let plan = manifest::load(
        &arguments.manifest,
        &edition.registry(),
        &arguments.overrides.overrides(),
    );
    let name = text.split('.').next().unwrap_or(text);
    plan.is_ok_and(|plan| plan.stages.iter().any(|stage| stage.name == name))
}

/// Opens the store of a manifest to read it.
pub(super) fn open(arguments: &ManifestArguments) -> Result<Store, CommandError> {
    let root = root(arguments)?;
    if root.is_dir() {
        Layout::new(&root).refuse_foreign()?;
    }
    Ok(Store::open(root))
}

/// Opens the store of a plan to write to it.
pub(super) fn create(arguments: &ManifestArguments, plan: &Plan) -> Result<Store, CommandError> {
    let store = Store::create(root(arguments)?)?;
    refuse_publishing_into(store.layout().root(), plan)?;
    Ok(store)
}

/// A file of ours in the store's folders would be taken for a damaged object.
pub(super) fn refuse_publishing_into(root: &Utf8Path, plan: &Plan) -> Result<(), CommandError> {
    let real = root.canonicalize_utf8().unwrap_or_else(|_| root.to_owned());
    for (index, cell) in plan.cells.iter().enumerate() {
        for copy in &cell.publish {
            let path = plan.folder.join(&copy.path);
            let through_links = manifest::located(&path).unwrap_or_else(|_| path.clone());
            if path.starts_with(root) || through_links.starts_with(&real) {
                return Err(CommandError::request(format!(
                    "`{}` would be published as `{}`, which lies in the store `{}`",
                    plan.name(index),
                    copy.path,
                    short(root)
                ))
                .help("publish it elsewhere; `provenir path` says where the store keeps an artifact"));
            }
        }
    }
    Ok(())
}

/// Opens the store that is meant where there is no manifest: the one asked for, or the nearest from the working folder
/// upwards. It must be there.
pub(super) fn existing(arguments: &StoreArguments) -> Result<Store, CommandError> {
    let root = environment::store(arguments.cache.as_deref(), &environment::working_folder()?)?;
    there(&Layout::new(root))
}

/// Opens a store that must be there.
pub(super) fn there(layout: &Layout) -> Result<Store, CommandError> {
    let root = layout.root();
    if !layout.is_store() {
        // What may not be looked into may be a store all the same.
        match layout.refuse_foreign() {
            Err(StoreError::Io { action, source }) if source.kind() == ErrorKind::PermissionDenied => {
                return Err(StoreError::Io { action, source }.into());
            }
            _ => {}
        }
        let error = CommandError::request(format!("there is no store `{}`", short(root)));
        return Err(error.help("`provenir run` makes one; `--cache` or PROVENIR_CACHE names another"));
    }
    warn_of_newer(root)?;
    Ok(Store::open(root))
}

fn warn_of_newer(root: &Utf8Path) -> Result<(), CommandError> {
    let newer = Layout::new(root).newer()?;
    if !newer.is_empty() {
        say(&format!(
            "warning: a newer version of Provenir has written to this store, too; this one does not see {}",
            newer.join(", ")
        ));
    }
    Ok(())
}

/// The store of a manifest, which must be there.
pub(super) fn of_manifest(arguments: &ManifestArguments) -> Result<Store, CommandError> {
    there(&Layout::new(unread_root(arguments)?))
}

/// Warns of runs whose records cannot be understood, of each once, however often they are read.
pub(super) fn warn_of_flawed(flawed: &[FlawedRun]) {
    const SHOWN: usize = 8;
    static TOLD: Mutex<BTreeSet<RunId>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let fresh: Vec<&FlawedRun> = flawed
        .iter()
        .filter(|flawed| told.insert(flawed.run.id.clone()))
        .collect();
    if fresh.is_empty() {
        return;
    }
    let mut text = match fresh.len() {
        1 => "warning: the record of a run cannot be understood and is left out".to_owned(),
        count => format!("warning: the records of {count} runs cannot be understood and are left out"),
    };
    for flawed in fresh.iter().take(SHOWN) {
        let _ = write!(text, "\n  {}: {}", short(flawed.run.folder()), flawed.reason());
    }
    if fresh.len() > SHOWN {
        let _ = write!(
            text,
            "\n  and {} more: `provenir verify` lists them",
            fresh.len() - SHOWN
        );
    }
    text.push_str(if fresh.iter().all(|flawed| flawed.is_newer()) {
        "\n  help: the newer version reads them"
    } else if fresh.iter().all(|flawed| flawed.is_of_events()) {
        "\n  help: move `events.jsonl` out of the store, or what it says is lost to every command that asks for it; the rest of the record is whole"
    } else if fresh.len() == 1 {
        "\n  help: move the folder out of the store: no result is lost, only that run's history"
    } else {
        "\n  help: move those folders out of the store: no result is lost, only the history of those runs"
    });
    say(&text);
}

/// The worker that belongs to the command.
pub(super) fn worker(edition: &Edition) -> Result<WorkerProgram, CommandError> {
    Ok(WorkerProgram {
        path: environment::beside(edition.worker)?,
        build: provenir_build_id::BUILD.to_owned(),
    })
}

/// The cells that selectors name.
pub(super) fn select(plan: &Plan, selectors: &[String]) -> Result<BTreeSet<CellIndex>, CommandError> {
    let mut cells = BTreeSet::new();
    for text in selectors {
        cells.extend(Selector::of_cell(text, "a cell is wanted")?.cells(plan)?);
    }
    Ok(cells)
}

/// A path as a person would type it: relative to the working folder where it lies below.
pub(super) fn short(path: &Utf8Path) -> Utf8PathBuf {
    environment::working_folder()
        .ok()
        .and_then(|here| path.strip_prefix(here).ok().map(Utf8Path::to_owned))
        .map_or_else(
            || path.to_owned(),
            |below| {
                if below.as_str().is_empty() {
                    ".".into()
                } else {
                    below
                }
            },
        )
}

/// That the folder is there in which a file, or a folder, is to be written.
pub(super) fn check_folder(out: &Utf8Path) -> Result<(), CommandError> {
    let out = environment::working_folder()?.join(out);
    let folder = out.parent().unwrap_or(&out);
    if folder.is_dir() {
        return Ok(());
    }
    Err(
        CommandError::request(format!("there is no folder `{}`", short(folder)))
            .help("make it, or name another file with --out"),
    )
}

/// Columns two spaces apart, each as wide as its widest value; numbers to the right.
pub(super) fn aligned(grid: &[Vec<String>]) -> String {
    let columns = grid.iter().map(Vec::len).max().unwrap_or_default();
    // A row is a line, whatever its values hold, and they may come from somebody else.
    let value = |row: &Vec<String>, column: usize| {
        row.get(column)
            .map_or_else(String::new, |value| visible(value).replace(['\n', '\r'], " "))
    };
    let width = |column: usize| {
        grid.iter()
            .map(|row| value(row, column).chars().count())
            .max()
            .unwrap_or_default()
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let numeric: Vec<bool> = (0..columns)
        .map(|column| {
            let values = || grid.iter().skip(1).map(|row| value(row, column));
            values().any(|value| is_number(&value))
                && values().all(|value| value.is_empty() || is_number(&value))
        })
        .collect();
    let mut text = String::new();
    for row in grid {
        let mut line = String::new();
        for column in 0..columns {
            let (value, width) = (value(row, column), widths[column]);
            let _ = if numeric[column] {
                write!(line, "  {value:>width$}")
            } else {
                write!(line, "  {value:<width$}")
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

//! From a path to a plan.

use std::io::Read as _;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use provenir_api::schema::nearest;

use super::diagnostic::{Diagnostics, Report};
use super::layers::{Overrides, apply};
use super::model::Manifest;
use super::node::{Data, Entry, Node, Table, merge_entry, parse_document};
use super::source::{Origin, Sources, Span};
use crate::number::grouped_u64;
use crate::plan::{self, Plan, RememberedSources, cause, neighbour, normal};
use crate::registry::Registry;

/// The version of the language that is read here.
pub const FORMAT: i64 = 1;
/// Longest manifest, in bytes.
pub const SIZE_LIMIT: u64 = 4 << 20;
/// Longest chain of manifests that extend one another.
const EXTENDS_LIMIT: usize = 16;

/// Reads a manifest with what it extends, lays the profile and the command line's settings over it, checks
/// everything, and expands it over its axes.
///
/// Everything that is wrong is returned together. What is merely odd is in [`Plan::warnings`].
pub fn load(path: &Utf8Path, registry: &Registry, overrides: &Overrides) -> Result<Plan, Diagnostics> {
    load_remembering(path, registry, overrides, &RememberedSources::new())
}

/// The same to explain what was done: source files that are `remembered` need not be there any more. [`Plan::gone`] has those that
/// are not.
pub fn load_remembering(
    path: &Utf8Path,
    registry: &Registry,
    overrides: &Overrides,
    remembered: &RememberedSources,
) -> Result<Plan, Diagnostics> {
    let mut report = Report::new(Sources::default());
    let Some(read) = read(path, overrides, &mut report) else {
        return Err(report.finish());
    };
    plan::expand(read, registry, remembered, report)
}

/// A manifest that was read, with problems in the report or without.
pub(crate) struct Read {
    pub(crate) manifest: Manifest,
    /// Everything merged, as it is recorded with a run.
    pub(crate) resolved: Node,
    /// The manifest, absolute.
    pub(crate) path: Utf8PathBuf,
    /// The manifests that it extends, absolute: the nearest first.
    pub(crate) bases: Vec<Utf8PathBuf>,
}

fn read(path: &Utf8Path, overrides: &Overrides, report: &mut Report) -> Option<Read> {
    let (source, table) = read_file(path, None, report)?;
    let absolute = match located(path) {
        Ok(absolute) => absolute,
        Err(message) => {
            report.error(Sources::start(source), message);
            return None;
        }
    };
    let (layers, bases) = with_bases(&absolute, path, table, report)?;
    let root = Sources::start(source);
    let (manifest, table) = apply(layers, root, overrides, report);
    Some(Read {
        manifest,
        resolved: Node::table(table, root),
        path: absolute,
        bases,
    })
}

/// Where a file lies, by whatever path it is named: absolute, through no link but itself, as far as its folder is there.
pub(crate) fn located(path: &Utf8Path) -> Result<Utf8PathBuf, String> {
    let absolute = match std::path::absolute(path.as_std_path()).map(Utf8PathBuf::from_path_buf) {
        Ok(Ok(absolute)) => absolute,
        Ok(Err(_)) => return Err("the path of the working folder is not valid UTF-8".to_owned()),
        Err(error) => return Err(format!("cannot find the working folder: {error}")),
    };
    let folder = absolute
        .parent()
        .and_then(|folder| folder.canonicalize_utf8().ok());
    Ok(match (folder, absolute.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => absolute,
    })
}

/// Reads one file and checks its format version. `extended` is the place that names it, where another manifest does.
fn read_file(path: &Utf8Path, extended: Option<Span>, report: &mut Report) -> Option<(u32, Table)> {
    let origin = Origin::File(path.to_owned());
    let text = match read_text(path) {
        Ok(text) => text,
        Err((message, help)) => {
            let span = extended.unwrap_or_else(|| Sources::start(report.sources.add(origin, String::new())));
            report.error(span, message).help.clone_from(&help);
            return None;
        }
    };
    let source = report.sources.add(origin, text.clone());
    let table = parse_document(source, &text, report)?;
    if table.is_empty() {
        report
            .error(Sources::start(source), "the manifest is empty")
            .help("`provenir init` writes one to begin with");
        return None;
    }
    check_format(&table, source, report).then_some((source, table))
}

/// Whether the rest of the manifest can be understood.
fn check_format(table: &Table, source: u32, report: &mut Report) -> bool {
    match table
        .get("format")
        .map(|entry| (&entry.node.data, entry.node.span))
    {
        None if table.keys().any(|key| nearest(key, ["format"]).is_some()) => {
            // The misspelt key is reported with the other keys.
            true
        }
        None => {
            report
                .error(Sources::start(source), "the manifest does not say its format")
                .help(format!("add `format = {FORMAT}` at the top"));
            true
        }
        Some((Data::Integer(FORMAT), _)) => true,
        Some((Data::Integer(version), span)) if *version > FORMAT => {
            report
                .error(
                    span,
                    format!(
                        "the manifest has format {version}; this version of provenir reads format {FORMAT}"
                    ),
                )
                .help("install a newer provenir");
            false
        }
        Some((_, span)) => {
            report.error(span, format!("`format` must be the whole number {FORMAT}"));
            true
        }
    }
}

/// The text of a manifest, or why there is none, and the nearest right thing.
fn read_text(path: &Utf8Path) -> Result<String, (String, Option<String>)> {
    let said = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let near = neighbour(path).map(|name| format!("did you mean `{}`?", path.with_file_name(name)));
            let other = || "name another manifest; `provenir init` writes one to begin with".to_owned();
            (
                format!("there is no file `{path}`"),
                Some(near.unwrap_or_else(other)),
            )
        }
        _ => (format!("`{path}` cannot be read: {}", cause(&error)), None),
    };
    // Opening a pipe would wait for its writer.
    let metadata = fs::metadata(path).map_err(said)?;
    if !metadata.is_file() {
        return Err((format!("`{path}` is not a file"), None));
    }
    let too_long = |size: u64| {
        let mebibytes = SIZE_LIMIT >> 20;
        let message = format!(
            "`{path}` has {} bytes or more; a manifest has at most {} ({mebibytes} MiB)",
            grouped_u64(size),
            grouped_u64(SIZE_LIMIT)
        );
        (message, None)
    };
    if metadata.len() > SIZE_LIMIT {
        return Err(too_long(metadata.len()));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(SIZE_LIMIT + 1).read_to_end(&mut bytes))
        .map_err(said)?;
    if bytes.len() as u64 > SIZE_LIMIT {
        return Err(too_long(bytes.len() as u64));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let before = String::from_utf8_lossy(&bytes[..valid]);
        let line = before.lines().count().max(1) + usize::from(before.ends_with('\n'));
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let message = format!(
            "`{path}` is not a manifest: it is not UTF-8 text (byte 0x{:02x} at line {line}, column {column})",
            bytes[valid]
        );
        let help = match bytes {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it is UTF-16: save it as UTF-8",
            _ if bytes.contains(&0) => "it holds bytes that no text has: is it the right file?",
            _ => "save it as UTF-8, which every editor can",
        };
        (message, Some(help.to_owned()))
    })?;
    // A byte order mark is no part of the text, and of no column.
    Ok(text
        .strip_prefix('\u{feff}')
        .map_or_else(|| text.clone(), str::to_owned))
}

/// The manifest and what it extends, from the deepest base up, and where those lie, the nearest first: absolute, as the manifest
/// is, which is shown by the path that was given.
fn with_bases(
    absolute: &Utf8Path,
    path: &Utf8Path,
    table: Table,
    report: &mut Report,
) -> Option<(Vec<Table>, Vec<Utf8PathBuf>)> {
    let mut layers = vec![table];
    let mut bases: Vec<Utf8PathBuf> = Vec::new();
    let mut current = path.to_owned();
    // What a message shows, and what identifies the file.
    let mut chain = vec![(current.clone(), fs::canonicalize(&current).ok())];
    let mut complete = true;
    while let Some(entry) = layers.last().and_then(|table| table.get("extends")) {
        let span = entry.node.span;
        let Some(base) = super::expect::expect_text(&entry.node, "`extends`", report) else {
            complete = false;
            break;
        };
        bases.push(beside(bases.last().map_or(absolute, |base| base), base));
        let base = beside(&current, base);
        let identity = fs::canonicalize(&base).ok();
        let known = chain
            .iter()
            .position(|(_, known)| identity.is_some() && *known == identity);
        chain.push((normal(&base), identity));
        if let Some(first) = known {
            let names: Vec<&str> = chain[first..].iter().map(|(path, _)| path.as_str()).collect();
            report.error(span, format!("a manifest extends itself: {}", names.join(" → ")));
            return None;
        }
        if chain.len() > EXTENDS_LIMIT {
            report.error(
                span,
                format!("more than {EXTENDS_LIMIT} manifests extend one another"),
            );
            return None;
        }
        let Some((_, table)) = read_file(&base, Some(span), report) else {
            complete = false;
            break;
        };
        layers.push(table);
        current = base;
    }
    layers.reverse();
    complete.then_some((layers, bases))
}

/// A path as a manifest names it.
fn beside(manifest: &Utf8Path, path: &str) -> Utf8PathBuf {
    manifest.parent().unwrap_or(Utf8Path::new("")).join(path)
}

/// Lays a manifest over another. What is wired to a port is replaced as a whole: half of one input is no input.
pub(super) fn merge(base: &mut Table, over: Table) {
    for (key, mut entry) in over {
        if key == "stages"
            && let Some(stages) = entry.node.as_table_mut()
            && let Some(base_stages) = base.get_mut("stages").and_then(|entry| entry.node.as_table_mut())
        {
            for (name, stage) in stages.iter_mut() {
                let inputs = stage.node.as_table().and_then(|stage| stage.get("inputs"));
                let base_inputs = base_stages
                    .get_mut(name)
                    .and_then(|stage| stage.node.as_table_mut()?.get_mut("inputs")?.node.as_table_mut());
                if let (Some(inputs), Some(base_inputs)) = (inputs, base_inputs) {
                    for port in inputs.node.as_table().into_iter().flatten().map(|(port, _)| port) {
                        base_inputs.shift_remove(port);
                    }
                }
            }
        }
        merge_entry(base, key, entry);
    }
}

/// An entry whose key and value have one place.
pub(super) fn entry(node: Node) -> Entry {
    Entry { key: node.span, node }
}

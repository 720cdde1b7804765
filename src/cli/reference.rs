//! What `show` and `path` refer to: an output of a cell, the beginning of a digest, or a file.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::{Digest, schema};

use super::arguments::ReferenceArguments;
use super::error::CommandError;
use super::selector::Selector;
use super::{Edition, environment, session};
use crate::exec::{Standing, Survey};
use crate::store::{ActionKey, Artifact, Layout, Store, StoreError};

/// Fewest digits of a digest that are taken for one.
const DIGITS: usize = 4;

/// Something that can be shown.
#[derive(Debug)]
pub(super) struct Found {
    /// Where its bytes are.
    pub(super) path: Utf8PathBuf,
    /// What its bytes must digest to, where that is known.
    pub(super) object: Option<Digest>,
    /// What the store knows of it.
    pub(super) artifact: Option<Artifact>,
    /// The cell that gave it.
    pub(super) cell: Option<String>,
}

/// Finds what a reference means: files come before digests, digests before cells.
pub(super) fn find(edition: &Edition, arguments: &ReferenceArguments) -> Result<Found, CommandError> {
    let text = arguments.reference.as_str();
    let is_file = |path: &str| fs_err::metadata(path).is_ok_and(|metadata| metadata.is_file());
    if text.contains('/') || is_file(text) {
        if !is_file(text) {
            return Err(CommandError::request(format!("there is no file `{text}`")));
        }
        return Ok(Found {
            path: text.into(),
            object: None,
            artifact: None,
            cell: None,
        });
    }
    let is_digest = (DIGITS..=64).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_digest && let Some(found) = find_digest(arguments, text)? {
        return Ok(found);
    }
    find_cell(edition, arguments)
}

fn find_digest(arguments: &ReferenceArguments, text: &str) -> Result<Option<Found>, CommandError> {
    let here = environment::working_folder()?;
    let manifest = here.join(&arguments.manifest.manifest);
    let folder = manifest.parent().unwrap_or(&here);
    let layout = Layout::new(environment::store(
        arguments.manifest.store.cache.as_deref(),
        folder,
    )?);
    let objects: Vec<String> = beginning_with(layout.objects(), text, "")?.into_iter().collect();
    let results: Vec<String> = beginning_with(layout.results(), text, ".json")?
        .into_iter()
        .collect();
    match (&objects[..], &results[..]) {
        ([], []) => Ok(None),
        ([object], []) => {
            let object: Digest = object
                .parse()
                .map_err(|error| CommandError::request(format!("{error}")))?;
            Ok(Some(Found {
                path: layout.object(&object),
                object: Some(object),
                artifact: None,
                cell: None,
            }))
        }
        ([], [key]) => {
            let key: ActionKey = key
                .parse()
                .map_err(|error| CommandError::request(format!("{error}")))?;
            let store = Store::open(layout.root());
            let result = store.result(&key)?.ok_or_else(|| missing(&key))?;
            match &result.outputs[..] {
                [artifact] => Ok(Some(found(&layout, artifact, None))),
                several => {
                    let objects: Vec<String> = several
                        .iter()
                        .map(|artifact| format!("{} {}", artifact.port, artifact.object.short()))
                        .collect();
                    let message = format!("action {} has {} outputs; name one", key.short(), several.len());
                    Err(CommandError::request(message).help(objects.join(", ")))
                }
            }
        }
        (objects, results) => {
            let all: Vec<&str> = objects
                .iter()
                .chain(results)
                .take(12)
                .map(|name| &name[..16])
                .collect();
            let count = objects.len() + results.len();
            let error = CommandError::request(format!("`{text}` begins {count} digests; give more digits"));
            Err(error.help(all.join(", ")))
        }
    }
}

fn missing(key: &ActionKey) -> CommandError {
    CommandError::request(format!("the result of action {} is gone", key.short()))
}

fn find_cell(edition: &Edition, arguments: &ReferenceArguments) -> Result<Found, CommandError> {
    let (selector, rest) = Selector::parse(&arguments.reference)?;
    let plan = session::plan(edition, &arguments.manifest)?;
    let store = session::open(&arguments.manifest, &plan)?;
    let cell = selector.cell(&plan)?;
    let name = plan.name(cell);
    let ports = plan.stage_of(cell).kind.outputs();
    let port = match rest.strip_prefix('.') {
        Some(port) => {
            let known = || ports.iter().map(|port| port.name);
            known().find(|known| *known == port).ok_or_else(|| {
                let help = match schema::nearest(port, known()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it has {}", schema::list(known())),
                };
                CommandError::request(format!("`{name}` has no output `{port}`")).help(help)
            })?
        }
        None if rest.is_empty() => ports.first().map(|port| port.name).unwrap_or_default(),
        None => {
            return Err(CommandError::request(format!(
                "`{rest}` is not an output; write `.port`"
            )));
        }
    };
    let survey = Survey::take(&plan, &store, &BTreeSet::new())?;
    match &survey.standings[cell] {
        Standing::Cached(result) => {
            let artifact = result.output(port).ok_or_else(|| missing(&result.key()))?;
            Ok(found(store.layout(), artifact, Some(name)))
        }
        Standing::Due { .. } | Standing::Unknown { .. } => {
            let error = CommandError::request(format!(
                "the store does not have `{name}` as the manifest now describes it"
            ));
            Err(error.help("`provenir run` computes it"))
        }
    }
}

fn found(layout: &Layout, artifact: &Artifact, cell: Option<String>) -> Found {
    Found {
        path: layout.object(&artifact.object),
        object: Some(artifact.object),
        artifact: Some(artifact.clone()),
        cell,
    }
}

/// Names (without suffix) of files in a sharded folder that begin with some digits.
fn beginning_with(folder: &Utf8Path, digits: &str, suffix: &str) -> Result<BTreeSet<String>, StoreError> {
    let failed = || StoreError::io("cannot read the store");
    let entries = match fs_err::read_dir(folder.join(&digits[..2])) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(failed()(error)),
    };
    let mut found = BTreeSet::new();
    for entry in entries {
        let name = entry.map_err(failed())?.file_name();
        if let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(suffix))
            && stem.starts_with(digits)
            && stem.len() == 64
        {
            found.insert(stem.to_owned());
        }
    }
    Ok(found)
}

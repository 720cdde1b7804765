//! What `show` and `path` refer to: an output of a cell, the beginning of a digest, or a file.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use provenir_api::{Digest, schema};

use super::arguments::ReferenceArguments;
use super::digest::{self, Beginning, Named};
use super::error::CommandError;
use super::selector::{Selector, is_file, is_path, no_file};
use super::standing::absent;
use super::{Edition, session};
use crate::exec::{Standing, Survey};
use crate::plan::Plan;
use crate::store::{ActionKey, Artifact, Layout, StoreError};

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

/// Finds what a reference means: files come before digests, digests before cells. A manifest is read only where a cell
/// may be meant.
pub(super) fn find(edition: &Edition, arguments: &ReferenceArguments) -> Result<Found, CommandError> {
    let text = arguments.reference.as_str();
    if is_path(text) || is_file(text) {
        if !is_file(text) {
            return Err(no_file(text));
        }
        return Ok(Found {
            path: text.into(),
            object: None,
            artifact: None,
            cell: None,
        });
    }
    let Some(beginning) = Beginning::parse(text) else {
        return find_cell(edition, arguments);
    };
    let layout = digest::store(&arguments.manifest)?;
    match beginning.find(&layout)? {
        Some(Named::Object(object)) => Ok(Found {
            path: layout.object(&object),
            object: Some(object),
            artifact: None,
            cell: None,
        }),
        Some(Named::Output(artifact)) => found(&layout, &artifact, None),
        None if session::names_stage(edition, &arguments.manifest, text) => find_cell(edition, arguments),
        None => Err(beginning.unknown(&layout)),
    }
}

fn missing(key: &ActionKey) -> CommandError {
    CommandError::request(format!("the result of action {} is gone", key.short()))
}

fn find_cell(edition: &Edition, arguments: &ReferenceArguments) -> Result<Found, CommandError> {
    let (selector, rest) = Selector::parse(&arguments.reference)?;
    let plan = session::plan_of_past(edition, &arguments.manifest)?;
    let store = session::open(&arguments.manifest)?;
    if let Some((output, axes)) = rest.strip_prefix('.').and_then(|rest| rest.split_once('[')) {
        return Err(misplaced(&selector, &plan, output, axes, &arguments.reference)?);
    }
    let cell = selector.cell(&plan)?;
    let name = plan.name(cell);
    let stage = plan.stage_of(cell);
    let ports = &stage.outputs;
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
        None if rest.is_empty() && stage.kind.declares_ports() && ports.len() > 1 => {
            let known = ports.iter().map(|port| port.name);
            let error = CommandError::request(format!("`{name}` has several outputs"));
            return Err(error.help(format!("write `{name}.OUTPUT`; it has {}", schema::list(known))));
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
            found(store.layout(), artifact, Some(name))
        }
        Standing::Due { .. } | Standing::Unknown { .. } => Err(absent(&plan, &store, &survey, cell)),
    }
}

/// That an output was named before the values of the axes, and how to write it.
fn misplaced(
    selector: &Selector<'_>,
    plan: &Plan,
    output: &str,
    axes: &str,
    text: &str,
) -> Result<CommandError, CommandError> {
    let first = selector.cells(plan)?.into_iter().next().unwrap_or_default();
    let ports = &plan.stage_of(first).outputs;
    let known = || ports.iter().map(|port| port.name);
    let meant = known().find(|known| *known == output);
    let stage = &plan.stage_of(first).name;
    let error = CommandError::request(format!("`{text}`: the output goes after the bracket"));
    Ok(
        error.help(match meant.or_else(|| schema::nearest(output, known())) {
            Some(port) => format!("write `{stage}[{axes}.{port}`"),
            None => format!("write `{stage}[{axes}.OUTPUT`; it has {}", schema::list(known())),
        }),
    )
}

fn found(layout: &Layout, artifact: &Artifact, cell: Option<String>) -> Result<Found, CommandError> {
    let (path, object) = (layout.object(&artifact.object), artifact.object);
    if !path.exists() {
        return Err(StoreError::Missing { object, path }.into());
    }
    Ok(Found {
        path,
        object: Some(object),
        artifact: Some(artifact.clone()),
        cell,
    })
}

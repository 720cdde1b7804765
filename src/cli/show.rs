use std::fmt::Write;
use std::io::ErrorKind;

use provenir_table::TableError;
use serde_json::{Map, Value, json};

use super::arguments::{ReferenceArguments, ShowArguments};
use super::describe;
use super::error::{CommandError, Exit};
use super::policy::{self, Format, Loaded};
use super::reference::{Found, find};
use super::{Edition, terminal};
use crate::store::StoreError;

/// What there is to show.
enum Shown {
    /// A policy, in whatever file.
    Policy(Box<Loaded>),
    /// A table; of policies, where it should be one and is not, and why.
    Table(provenir_table::Table, Option<String>),
    /// Another file.
    File,
}

/// `show`.
pub(super) fn show(edition: &Edition, arguments: &ShowArguments) -> Result<Exit, CommandError> {
    let found = find(edition, &arguments.reference)?;
    let format = match &found.artifact {
        Some(artifact) if artifact.extension == "parquet" => Format::Table,
        _ => Format::of(&found.path)?,
    };
    arguments.agent.check(&found.path, format)?;
    let shown = match format {
        Format::Table => {
            let table =
                provenir_table::read(&found.path, found.object).map_err(|error| unreadable(&error))?;
            match policy::of_table(&table) {
                Some(Ok(loaded)) => Shown::Policy(Box::new(loaded)),
                Some(Err(reason)) => Shown::Table(table, Some(reason)),
                None => Shown::Table(table, None),
            }
        }
        Format::Safetensors => Shown::Policy(Box::new(policy::of_safetensors(&found.path)?)),
        Format::Archive => match policy::of_archive(&found.path, &arguments.agent)? {
            Some(loaded) => Shown::Policy(Box::new(loaded)),
            None => Shown::File,
        },
        Format::Other => Shown::File,
    };
    let failed = StoreError::io("cannot read the artifact");
    let size = fs_err::metadata(&found.path).map_err(failed)?.len();
    let text = if arguments.json {
        let mut entries = origin(&found, size);
        entries.extend(as_json(&shown)?);
        let text = serde_json::to_string_pretty(&entries).map_err(std::io::Error::from)?;
        format!("{text}\n")
    } else {
        in_words(&found, size, &shown)?
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
}

/// `path`.
pub(super) fn path(edition: &Edition, arguments: &ReferenceArguments) -> Result<Exit, CommandError> {
    let found = find(edition, arguments)?;
    terminal::print(&format!("{}\n", found.path))?;
    Ok(Exit::Done)
}

/// Where it comes from, as JSON; `null` is what is not known.
fn origin(found: &Found, size: u64) -> Map<String, Value> {
    let port = found.artifact.as_ref().map(|artifact| artifact.port.clone());
    let object = found.object.map(|object| object.to_string());
    [
        ("cell", json!(found.cell)),
        ("output", json!(port)),
        ("object", json!(object)),
        ("path", json!(found.path)),
        ("bytes", json!(size)),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect()
}

fn as_json(shown: &Shown) -> Result<Map<String, Value>, CommandError> {
    let value = match shown {
        Shown::Policy(loaded) => loaded.json()?,
        Shown::Table(table, flaw) => {
            let mut value = describe::json(table).map_err(|error| unreadable(&error))?;
            if let Some(flaw) = flaw {
                value["flaw"] = json!(flaw);
            }
            value
        }
        Shown::File => json!({"kind": "file"}),
    };
    match value {
        Value::Object(entries) => Ok(entries),
        _ => unreachable!("all of them are objects"),
    }
}

fn in_words(found: &Found, size: u64, shown: &Shown) -> Result<String, CommandError> {
    let mut text = String::new();
    if let Some(cell) = &found.cell {
        let _ = writeln!(text, "{cell}");
    }
    if let Some(artifact) = &found.artifact {
        let _ = writeln!(text, "output {}, content {}", artifact.port, artifact.content);
    }
    if let Some(object) = &found.object {
        let _ = writeln!(text, "object {object}");
    }
    let _ = writeln!(text, "{size} bytes at {}\n", found.path);
    match shown {
        Shown::Policy(loaded) => {
            text.push_str("a policy\n\n");
            text.push_str(&loaded.describe()?);
        }
        Shown::Table(table, flaw) => {
            if let Some(flaw) = flaw {
                let _ = writeln!(text, "{flaw}\n");
            }
            text.push_str(&describe::describe(table).map_err(|error| unreadable(&error))?);
        }
        Shown::File => {
            let extension = found
                .artifact
                .as_ref()
                .map(|artifact| artifact.extension.as_str())
                .or(found.path.extension())
                .map_or_else(String::new, |extension| format!(".{extension} "));
            let _ = writeln!(text, "a {extension}file, neither a table nor a policy");
        }
    }
    Ok(text)
}

pub(super) fn unreadable(error: &TableError) -> CommandError {
    match error {
        TableError::Damaged { expected, path, .. } => StoreError::Damaged {
            object: *expected,
            path: path.clone(),
        }
        .into(),
        TableError::Io { source, .. } => CommandError::Environment {
            message: error.to_string(),
            help: matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
                .then(|| "free some space on the disk of that file".to_owned()),
        },
        _ => CommandError::request(error.to_string()),
    }
}

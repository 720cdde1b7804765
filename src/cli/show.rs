use std::fmt::Write;

use provenir_table::TableError;

use super::arguments::ReferenceArguments;
use super::describe::describe;
use super::error::{CommandError, Exit};
use super::reference::find;
use super::{Edition, terminal};
use crate::store::StoreError;

/// `show`.
pub(super) fn show(edition: &Edition, arguments: &ReferenceArguments) -> Result<Exit, CommandError> {
    let found = find(edition, arguments)?;
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
    let failed = StoreError::io("cannot read the artifact");
    let size = fs_err::metadata(&found.path).map_err(failed)?.len();
    let _ = writeln!(text, "{size} bytes at {}\n", found.path);
    let is_table = match &found.artifact {
        Some(artifact) => artifact.extension == "parquet",
        None => has_parquet_magic(&found.path)?,
    };
    if is_table {
        let table = provenir_table::read(&found.path, found.object).map_err(|error| unreadable(&error))?;
        text.push_str(&describe(&table).map_err(|error| unreadable(&error))?);
    } else {
        let extension = found
            .artifact
            .as_ref()
            .map(|artifact| artifact.extension.as_str());
        let kind = extension
            .or(found.path.extension())
            .map_or_else(String::new, |extension| format!(".{extension} "));
        let _ = writeln!(text, "a {kind}file, not a table");
    }
    terminal::print(&text)?;
    Ok(Exit::Done)
}

/// `path`.
pub(super) fn path(edition: &Edition, arguments: &ReferenceArguments) -> Result<Exit, CommandError> {
    let found = find(edition, arguments)?;
    terminal::print(&format!("{}\n", found.path))?;
    Ok(Exit::Done)
}

/// Whether a file begins as Parquet files do.
fn has_parquet_magic(path: &camino::Utf8Path) -> Result<bool, StoreError> {
    use std::io::Read;

    let failed = || StoreError::io("cannot read the file");
    let mut magic = Vec::new();
    fs_err::File::open(path)
        .map_err(failed())?
        .take(4)
        .read_to_end(&mut magic)
        .map_err(failed())?;
    Ok(magic == b"PAR1")
}

fn unreadable(error: &TableError) -> CommandError {
    match error {
        TableError::Damaged { expected, .. } => StoreError::Damaged { object: *expected }.into(),
        TableError::Io { .. } => CommandError::Environment {
            message: error.to_string(),
            help: None,
        },
        _ => CommandError::request(error.to_string()),
    }
}

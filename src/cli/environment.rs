//! The environment variables that the command obeys; nothing else reads any.

use camino::{Utf8Path, Utf8PathBuf};

use super::error::CommandError;
use crate::store::Layout;

const CACHE: &str = "PROVENIR_CACHE";

/// Whether a variable is set to something.
#[expect(
    clippy::disallowed_methods,
    reason = "the command line module reads what may be set"
)]
pub(super) fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command line module reads what may be set"
)]
fn cache() -> Result<Option<Utf8PathBuf>, CommandError> {
    match std::env::var_os(CACHE) {
        Some(value) if !value.is_empty() => Utf8PathBuf::from_os_string(value)
            .map(Some)
            .map_err(|_| CommandError::request(format!("the path in {CACHE} is not valid UTF-8"))),
        _ => Ok(None),
    }
}

/// The folder that the command works in.
pub(super) fn working_folder() -> Result<Utf8PathBuf, CommandError> {
    let folder = std::env::current_dir().map_err(|error| CommandError::Environment {
        message: format!("cannot find the working folder: {error}"),
        help: None,
    })?;
    Utf8PathBuf::from_path_buf(folder)
        .map_err(|_| CommandError::request("the path of the working folder is not valid UTF-8"))
}

/// The store: the one asked for, or the nearest of ours from a folder upwards, or `cache` in that folder; absolute.
pub(super) fn store(asked: Option<&Utf8Path>, folder: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
    let here = working_folder()?;
    let asked = match asked {
        Some(asked) => Some(asked.to_owned()),
        None => cache()?,
    };
    let root: Utf8PathBuf = match asked {
        // Components leave out what says nothing, such as a `.` at the end.
        Some(asked) => here.join(asked).components().collect(),
        None => Layout::find(folder).unwrap_or_else(|| folder.join("cache")),
    };
    match fs_err::symlink_metadata(&root) {
        Ok(found) if !found.is_dir() && !root.is_dir() => {
            let what = if found.is_symlink() {
                "a link to no folder"
            } else {
                "a file, not a folder"
            };
            Err(
                CommandError::request(format!("the store `{root}` is {what}")).help(format!(
                    "name a folder, new or a store: `--cache FOLDER` or {CACHE}"
                )),
            )
        }
        // What cannot be looked at is told by whoever reads or makes it.
        _ => Ok(root),
    }
}

/// An executable that belongs beside this one.
pub(super) fn beside(name: &str) -> Result<Utf8PathBuf, CommandError> {
    let failed = |reason: String| CommandError::Environment {
        message: format!("cannot find the command's own folder: {reason}"),
        help: None,
    };
    let own = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let own =
        Utf8PathBuf::from_path_buf(own).map_err(|_| failed("its path is not valid UTF-8".to_owned()))?;
    Ok(own.with_file_name(name))
}

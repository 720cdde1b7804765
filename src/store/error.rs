use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;

/// What to do when the disk of a store is full.
pub(crate) const FULL: &str = "free some space (`provenir gc` says what of the store nothing needs, and removes it with `--yes`), or take a store on another disk (`--cache FOLDER`); then run again: everything that finished is kept";

/// What went wrong with the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused something; its message names the path.
    #[error("{action}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// A file of the store cannot be understood.
    #[error("`{path}` is not a {what}: {reason}")]
    Malformed {
        /// The file.
        path: Utf8PathBuf,
        /// What it should be.
        what: &'static str,
        /// Why it is not.
        reason: String,
    },
    /// A file was written by a newer version.
    #[error("`{path}` has format {found}; this version of Provenir reads up to {known}")]
    Newer {
        /// The file.
        path: Utf8PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// An object's bytes are not what its name says.
    #[error("object {} is damaged: the bytes of `{path}` are not those that were stored", object.short())]
    Damaged {
        /// The object.
        object: Digest,
        /// Its file.
        path: Utf8PathBuf,
    },
    /// An object that was expected is not there.
    #[error("object {} is missing from the store: there is no file `{path}`", object.short())]
    Missing {
        /// The object.
        object: Digest,
        /// Where its file should be.
        path: Utf8PathBuf,
    },
    /// A worker handed over something that is not what it announced.
    #[error("the outputs of a cell are not what its worker announced: {0}")]
    Outputs(String),
    /// What an audit computes again could not be computed, for a reason that has nothing to do with the cells.
    #[error("the audit stopped: {0}")]
    Audit(String),
    /// A folder that was named as the store holds something else.
    #[error("`{path}` is not a store of Provenir and holds other files")]
    NotAStore {
        /// The folder.
        path: Utf8PathBuf,
    },
    /// The operating system refused to put a copy of an output in its place; its message names the path.
    #[error("{source}")]
    Publish {
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// A folder stands where a copy of an output should be published.
    #[error("a folder has that name")]
    FolderInTheWay {
        /// The folder.
        path: Utf8PathBuf,
    },
    /// What should be the folder of a copy of an output is none.
    #[error("`{path}` is {what}")]
    NoFolder {
        /// What should be a folder.
        path: Utf8PathBuf,
        /// What it is.
        what: &'static str,
    },
}

impl StoreError {
    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }

    /// Why a copy could not be put in its place.
    pub(super) fn publish(path: &Utf8Path, source: io::Error) -> Self {
        for folder in path.ancestors().skip(1) {
            let Ok(found) = fs_err::symlink_metadata(folder) else {
                continue;
            };
            let what = match (found.is_symlink(), fs_err::metadata(folder)) {
                (_, Ok(metadata)) if metadata.is_dir() => break,
                (true, Err(error)) if error.kind() == io::ErrorKind::NotFound => {
                    "a link to a place that does not exist"
                }
                (false, _) => "a file, not a folder",
                (true, _) => "a link, and not to a folder",
            };
            return Self::NoFolder {
                path: folder.to_owned(),
                what,
            };
        }
        Self::Publish { source }
    }

    pub(crate) fn malformed(path: &Utf8Path, what: &'static str, reason: &dyn ToString) -> Self {
        Self::Malformed {
            path: path.to_owned(),
            what,
            reason: reason.to_string(),
        }
    }

    /// What to do next, where that is known.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Io { action, source } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(FULL),
                io::ErrorKind::PermissionDenied if action.starts_with("cannot read") => {
                    Some("make the store readable, or choose another with `--cache` or PROVENIR_CACHE")
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("make the store writable, or choose another with `--cache` or PROVENIR_CACHE")
                }
                io::ErrorKind::FileTooLarge => Some(
                    "raise the limit on the size of files (`ulimit -f`), or take a store on a disk that holds larger ones (`--cache FOLDER`)",
                ),
                _ => None,
            },
            Self::Malformed { what, .. } if what.contains("of a run") => Some(
                "move the folder of that run out of the store: no result is lost, only that run's history (`runs`, `why`, `log`)",
            ),
            Self::Malformed { what, .. } if what.contains("published") => Some(
                "the next `provenir run` that publishes the copy writes it anew; or remove the file: then nothing is kept for that copy's sake",
            ),
            Self::Malformed { what: "pin", .. } => Some(
                "remove the file, and pin again what should be kept (`provenir pin CELL`): until then, the result that it named is not kept by it",
            ),
            Self::Malformed { .. } => {
                Some("remove the file: what it holds is computed again when it is needed")
            }
            Self::Newer { .. } => Some("use the newer version, or another store (`--cache`)"),
            Self::Damaged { .. } => Some(
                "`provenir verify --discard` takes what is damaged out of the store; the next `provenir run` that needs it computes it again",
            ),
            Self::Missing { .. } => Some("the next `provenir run` that needs it computes it again"),
            Self::NotAStore { .. } => Some("name a new or empty folder, or a store"),
            Self::Outputs(_) | Self::Audit(_) => None,
            Self::Publish { source } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Some("free some space on the disk of that folder and run again: only the copy is missing")
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Some(
                    "make that folder writable, or publish elsewhere (`publish` in the manifest), and run again: only the copy is missing",
                ),
                _ => Some("run again once that is mended: only the copy is missing"),
            },
            Self::FolderInTheWay { .. } => Some("move the folder away, or publish under another name"),
            Self::NoFolder { .. } => {
                Some("move it away, or publish elsewhere (`publish` in the manifest); then run again")
            }
        }
    }
}

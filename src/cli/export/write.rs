use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};

use crate::cli::error::CommandError;
use crate::cli::session;

fn failed(path: &Utf8Path) -> impl Fn(std::io::Error) -> CommandError {
    move |error| CommandError::Environment {
        message: format!("cannot write `{path}`: {error}"),
        help: None,
    }
}

fn parent(path: &Utf8Path) -> &Utf8Path {
    match path.parent() {
        Some(folder) if !folder.as_str().is_empty() => folder,
        _ => Utf8Path::new("."),
    }
}

/// Writes a whole file or none, and none over a file that holds something else.
pub(super) fn file(path: &Utf8Path, bytes: &[u8]) -> Result<(), CommandError> {
    let failed = failed(path);
    match fs_err::metadata(path) {
        Ok(metadata) if metadata.is_file() && metadata.len() == bytes.len() as u64 => {
            if fs_err::read(path).map_err(&failed)? == bytes {
                return Ok(());
            }
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            session::check_folder(path)?;
            let mut file = tempfile::Builder::new()
                .permissions(PermissionsExt::from_mode(0o644))
                .tempfile_in(parent(path))
                .map_err(&failed)?;
            file.write_all(bytes).map_err(&failed)?;
            file.persist_noclobber(path)
                .map_err(|error| failed(error.error))?;
            return Ok(());
        }
        Err(error) => return Err(failed(error)),
    }
    Err(
        CommandError::request(format!("`{path}` exists and holds something else"))
            .help("remove it, or name another file with --out"),
    )
}

/// A folder that gets its name when it is complete; dropped before, it leaves nothing.
pub(super) struct Folder {
    path: Utf8PathBuf,
    unnamed: tempfile::TempDir,
}

impl Folder {
    /// Prepares a folder beside `path`, which must not be there, or be an empty folder.
    pub(super) fn new(path: &Utf8Path) -> Result<Self, CommandError> {
        let failed = failed(path);
        match fs_err::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                if fs_err::read_dir(path).map_err(&failed)?.next().is_some() {
                    return Err(CommandError::request(format!("the folder `{path}` is not empty"))
                        .help("name a new one with --out, or remove what is in it"));
                }
            }
            Ok(_) => {
                return Err(
                    CommandError::request(format!("`{path}` is a file; a crate is a folder"))
                        .help("name a new folder with --out"),
                );
            }
            Err(error) if error.kind() == ErrorKind::NotFound => session::check_folder(path)?,
            Err(error) => return Err(failed(error)),
        }
        let unnamed = tempfile::Builder::new()
            .prefix(".provenir-export-")
            .permissions(PermissionsExt::from_mode(0o755))
            .tempdir_in(parent(path))
            .map_err(&failed)?;
        Ok(Self {
            path: path.to_owned(),
            unnamed,
        })
    }

    /// Where to write meanwhile.
    pub(super) fn unnamed(&self) -> Result<&Utf8Path, CommandError> {
        Utf8Path::from_path(self.unnamed.path())
            .ok_or_else(|| CommandError::request("the path of the working folder is not valid UTF-8"))
    }

    /// Writes a file in it.
    pub(super) fn write(&self, name: &Utf8Path, bytes: &[u8]) -> Result<(), CommandError> {
        let path = self.unnamed()?.join(name);
        let failed = failed(&self.path);
        fs_err::create_dir_all(parent(&path)).map_err(&failed)?;
        fs_err::write(&path, bytes).map_err(&failed)
    }

    /// Gives it its name.
    pub(super) fn finish(self) -> Result<(), CommandError> {
        let failed = failed(&self.path);
        // Onto an empty folder, too; onto one that is not empty any more it fails.
        fs_err::rename(self.unnamed.path(), &self.path).map_err(failed)?;
        let _ = self.unnamed.keep();
        Ok(())
    }
}

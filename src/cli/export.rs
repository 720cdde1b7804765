use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};

use super::arguments::{ExportArguments, ExportFormat};
use super::error::{CommandError, Exit};
use super::reference::{Found, find};
use super::{Edition, policy, terminal};

/// `export`.
pub(super) fn export(edition: &Edition, arguments: &ExportArguments) -> Result<Exit, CommandError> {
    let found = find(edition, &arguments.reference)?;
    let loaded = policy::load(&found, &arguments.agent)?;
    loaded.check_complete(&found.path)?;
    let (bytes, extension) = match arguments.format {
        ExportFormat::Safetensors => (loaded.policies.to_safetensors(), "safetensors"),
    };
    let path = match &arguments.out {
        Some(path) => path.clone(),
        None => name(&found, &loaded)?.with_extension(extension),
    };
    write(&path, &bytes)?;
    if let Some(content) = loaded.content()? {
        terminal::say(&format!("{} bytes, content {content}", bytes.len()));
    }
    terminal::print(&format!("{path}\n"))?;
    Ok(Exit::Done)
}

/// A name in the working folder, without extension: a file's own, or one by what an artifact holds.
fn name(found: &Found, loaded: &policy::Loaded) -> Result<Utf8PathBuf, CommandError> {
    let own = found.path.file_stem().filter(|_| found.object.is_none());
    Ok(match (own, loaded.content()?) {
        (Some(stem), _) => stem.into(),
        (None, Some(content)) => format!("policy-{}", content.short()).into(),
        (None, None) => "policy".into(),
    })
}

/// Writes a whole file or none, and none over a file that holds something else.
fn write(path: &Utf8Path, bytes: &[u8]) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| CommandError::Environment {
        message: format!("cannot write `{path}`: {error}"),
        help: None,
    };
    match fs_err::metadata(path) {
        Ok(metadata) if metadata.is_file() && metadata.len() == bytes.len() as u64 => {
            if fs_err::read(path).map_err(failed)? == bytes {
                return Ok(());
            }
        }
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = match path.parent() {
                Some(folder) if !folder.as_str().is_empty() => folder,
                _ => Utf8Path::new("."),
            };
            let mut file = tempfile::Builder::new()
                .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
                .tempfile_in(folder)
                .map_err(failed)?;
            file.write_all(bytes).map_err(failed)?;
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

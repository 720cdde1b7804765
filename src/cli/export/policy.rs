use camino::Utf8PathBuf;

use super::write;
use crate::cli::arguments::{ExportArguments, ReferenceArguments};
use crate::cli::error::{CommandError, Exit};
use crate::cli::reference::{Found, find};
use crate::cli::{Edition, policy, terminal};

/// The end of a name.
const EXTENSION: &str = "safetensors";

/// `export` of a policy.
pub(super) fn export(edition: &Edition, arguments: &ExportArguments) -> Result<Exit, CommandError> {
    let Some(what) = &arguments.what else {
        return Err(CommandError::request("no policy is named")
            .help("name the output of a cell, such as 'policy[epsilon=0.1]', a digest, or a file"));
    };
    if arguments.out.as_deref().is_some_and(|out| out == "-") {
        return Err(CommandError::request("a policy is not printed").help("name a file with --out"));
    }
    let reference = ReferenceArguments {
        reference: what.clone(),
        manifest: arguments.manifest.clone(),
    };
    let found = find(edition, &reference)?;
    let loaded = policy::load(&found, &arguments.agent)?;
    loaded.check_complete(&found.path)?;
    match loaded.fits() {
        // It may be for whoever has that environment.
        Err(misfit) if misfit.is_of_name() => {
            terminal::say(&format!(
                "warning: `{}`: {misfit}; no stage can use it",
                found.path
            ));
        }
        _ => loaded.check_fits(&found.path)?,
    }
    let bytes = loaded.policies.to_safetensors();
    let path = match &arguments.out {
        Some(path) => path.clone(),
        None => name(&found, &loaded)?.with_extension(EXTENSION),
    };
    write::file(&path, &bytes)?;
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

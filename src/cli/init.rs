//! `init`: a manifest to start from, and a store beside it.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use super::arguments::quoted;
use super::error::{CommandError, Exit};
use super::{environment, terminal};
use crate::store::Layout;

/// Its name, which every command takes for granted.
const NAME: &str = "pipeline.toml";

/// The manifest that `init` writes.
const MANIFEST: &str = r#"# A pipeline: from demonstrations to a figure.
#
#   provenir plan     what would run, and why
#   provenir run      run it; again: nothing runs
#
# Paths are relative to this file's folder.

format = 1

[pipeline]
name = "{name}"
description = "Reward against the share of corrupted samples"

# A stage varies over every axis that it, or what it takes, names.
[axes]
epsilon = [0.0, 0.1, 0.2]
method = ["bc", "rbc"]

{comment}
[stages.demos]
kind = "collect"
params = { env = "hopper", expert = "{expert}", samples = 20_000 }

[stages.corrupted]
kind = "corrupt"
inputs = { demos = "demos" }
params = { outlier = "boundary", fraction = "${epsilon}" }

[stages.policy]
kind = "train"
inputs = { demos = "corrupted" }
params = { method = "${method}", hidden = [256, 256, 256], epochs = 60 }

[stages.reward]
kind = "evaluate"
inputs = { policy = "policy" }
params = { env = "hopper", trials = 20 }

# A plot takes many tables: it gathers every axis, as columns.
[stages.figure]
kind = "plot"
inputs = { table = "reward" }
params = { x = "epsilon", y = "return", series = "method" }
publish = { svg = "figures/${stage}.svg", png = "figures/${stage}.png" }

# `provenir run --profile smoke`: the same graph, small.
[profiles.smoke]
axes = { epsilon = [0.0, 0.2] }
params = { demos = { samples = 2_000 }, policy = { hidden = [32, 32], epochs = 2 }, reward = { trials = 2 } }
"#;

/// Where an expert lies below a folder that has some.
const EXPERT: &str = "pipelines/experts/hopper.parquet";

/// What is said of an expert that is there.
const FOUND: &str = "\
# This expert comes with Provenir; README.md beside it says how it was trained. `expert` names a policy (.parquet) or a Stable-Baselines3 archive (.zip, with `normalization` for its .pkl).";

/// What is asked for where none is.
const WANTED: &str = "\
# PUT AN EXPERT HERE: `expert` names a policy (.parquet), or a Stable-Baselines3 archive (.zip, with `normalization` for
# its .pkl). Until the file is there, `provenir plan` says that it is missing.";

/// `init`: lays a manifest and a store into a folder; nothing that exists is touched.
pub(super) fn init(folder: &Utf8Path) -> Result<Exit, CommandError> {
    let failed = |error: io::Error| CommandError::Environment {
        message: format!("cannot lay out a pipeline: {error}"),
        help: None,
    };
    for above in folder.ancestors() {
        match fs_err::metadata(above) {
            Ok(found) if found.is_dir() => break,
            Ok(_) => {
                return Err(CommandError::request(format!("`{above}` is a file"))
                    .help("name a folder, new or not: `provenir init FOLDER`"));
            }
            Err(_) => {}
        }
    }
    let layout = Layout::new(folder.join("cache"));
    layout.create()?;
    let path = folder.join(NAME);
    let full = fs_err::canonicalize(folder).map_err(failed)?;
    let full = Utf8PathBuf::from_path_buf(full)
        .map_err(|_| CommandError::request("the path of the folder is not valid UTF-8"))?;
    let expert = expert(&full)?;
    let text = manifest(&full, expert.as_deref());
    let created = fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path);
    match created {
        Ok(mut file) => io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(
                CommandError::request(format!("`{path}` exists and stays as it is"))
                    .help("name another folder: `provenir init FOLDER`"),
            );
        }
        Err(error) => return Err(failed(error)),
    }
    terminal::say(&format!(
        "wrote `{path}`, and a store beside it: `{}`",
        layout.root()
    ));
    let first = match &expert {
        Some(expert) => {
            terminal::say(&format!(
                "the expert that it takes comes with Provenir: `{expert}` (README.md beside it says how it was trained)"
            ));
            ""
        }
        None => "put an expert where the manifest says, then ",
    };
    terminal::say(&format!(
        "next: {first}`provenir plan {0}` and `provenir run {0}`",
        pasted(&path)
    ));
    Ok(Exit::Done)
}

/// A path as a shell and a command take it.
fn pasted(path: &Utf8Path) -> String {
    if path.as_str().starts_with('-') {
        quoted(&format!("./{path}"))
    } else {
        quoted(path.as_str())
    }
}

/// The name of a folder's pipeline: the folder's, with hyphens where it has what names may not have; `pipeline` where it
/// has letters that names may not have, because what is left of a word without them is none.
fn name(folder: &Utf8Path) -> String {
    const LONGEST: usize = 60;
    let name = folder.file_name().unwrap_or_default();
    if name
        .chars()
        .any(|letter| letter.is_alphanumeric() && !letter.is_ascii())
    {
        return "pipeline".to_owned();
    }
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut name: String = words.join("-").chars().take(LONGEST).collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name.insert_str(0, "pipeline-");
    }
    name.trim_end_matches('-').to_owned()
}

/// The manifest for a folder.
fn manifest(folder: &Utf8Path, expert: Option<&Utf8Path>) -> String {
    let (comment, expert) = match expert {
        Some(expert) => (FOUND, expert),
        None => (WANTED, Utf8Path::new("experts/hopper.parquet")),
    };
    MANIFEST
        .replace("{name}", &name(folder))
        .replace("{comment}", comment)
        .replace(
            "{expert}",
            &expert.as_str().replace('\\', "\\\\").replace('"', "\\\""),
        )
}

/// The expert of the nearest folder that has one, above the folder or above the command; as a path from the folder.
fn expert(folder: &Utf8Path) -> Result<Option<Utf8PathBuf>, CommandError> {
    let command = environment::beside("")?;
    let found = folder
        .ancestors()
        .chain(command.ancestors())
        .map(|ancestor| ancestor.join(EXPERT))
        .find(|expert| expert.is_file());
    Ok(found.map(|expert| relative(folder, &expert)))
}

/// The way from a folder to a file, both absolute.
fn relative(folder: &Utf8Path, file: &Utf8Path) -> Utf8PathBuf {
    let mut up = Utf8PathBuf::new();
    for ancestor in folder.ancestors() {
        if let Ok(rest) = file.strip_prefix(ancestor) {
            return up.join(rest);
        }
        up.push("..");
    }
    file.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipeline_has_a_name_whatever_its_folder_is_called() {
        let named = |folder: &str| name(Utf8Path::new(folder));
        assert_eq!(named("/home/ünï"), "pipeline");
        assert_eq!(named("/home/a  b -- c_d!"), "a-b-c-d");
        assert_eq!(named("/home/2026"), "pipeline-2026");
        assert_eq!(named("/home/---"), "pipeline");
    }

    #[test]
    fn the_manifest_is_named_after_its_folder_and_takes_the_expert_that_is_there() {
        let text = manifest(Utf8Path::new("/home/ada/my study 2"), None);
        assert!(
            text.contains("name = \"my-study-2\"") && text.contains("PUT AN EXPERT HERE"),
            "{text}"
        );
        assert!(manifest(Utf8Path::new("/"), None).contains("name = \"pipeline\""));
        let expert = relative(
            Utf8Path::new("/a/b/c"),
            Utf8Path::new("/a/pipelines/experts/hopper.parquet"),
        );
        assert_eq!(expert, "../../pipelines/experts/hopper.parquet");
        let text = manifest(Utf8Path::new("/a/b/c"), Some(&expert));
        assert!(
            text.contains("expert = \"../../pipelines/experts/hopper.parquet\""),
            "{text}"
        );
        assert!(!text.contains("PUT AN EXPERT"), "{text}");
    }
}

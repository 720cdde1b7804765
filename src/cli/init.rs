//! `init`: a manifest to start from, and a store beside it.

use std::io;

use camino::Utf8Path;

use super::error::{CommandError, Exit};
use super::terminal;
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
name = "study"
description = "Reward against the share of corrupted samples"

# A stage varies over every axis that it, or what it takes, names.
[axes]
epsilon = [0.0, 0.1, 0.2]
method = ["bc", "rbc"]

# `expert` names a policy (.parquet) or a Stable-Baselines3 archive (.zip, with `normalization` for its .pkl).
[stages.demos]
kind = "collect"
params = { env = "hopper", expert = "expert.zip", samples = 20_000 }

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

/// `init`: lays a manifest and a store into a folder; nothing that exists is touched.
pub(super) fn init(folder: &Utf8Path) -> Result<Exit, CommandError> {
    let failed = |error: io::Error| CommandError::Environment {
        message: format!("cannot lay out a pipeline: {error}"),
        help: None,
    };
    let layout = Layout::new(folder.join("cache"));
    layout.create()?;
    let path = folder.join(NAME);
    let created = fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path);
    match created {
        Ok(mut file) => io::Write::write_all(&mut file, MANIFEST.as_bytes()).map_err(failed)?,
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
    terminal::say("next: put an expert where the manifest says, then `provenir plan` and `provenir run`");
    Ok(Exit::Done)
}

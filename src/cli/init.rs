//! `init`: a manifest to start from, and a store beside it.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

/// The manifest that `init` writes.
pub(super) const MANIFEST: &str = r#"# A pipeline: from demonstrations to a figure.
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

/// What was made, in order; nothing that exists is touched.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) written: Vec<Utf8PathBuf>,
    pub(super) kept: Vec<Utf8PathBuf>,
}

/// Lays a manifest and a store into a folder.
pub(super) fn init(folder: &Utf8Path, store_files: &[(&str, &str)]) -> io::Result<Made> {
    let mut made = Made { written: Vec::new(), kept: Vec::new() };
    fs_err::create_dir_all(folder.join("cache"))?;
    let files = std::iter::once(("pipeline.toml", MANIFEST))
        .map(|(name, text)| (Utf8PathBuf::from(name), text))
        .chain(store_files.iter().map(|(name, text)| (Utf8Path::new("cache").join(name), *text)));
    for (name, text) in files {
        let path = folder.join(name);
        match fs_err::OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                io::Write::write_all(&mut file, text.as_bytes())?;
                made.written.push(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => made.kept.push(path),
            Err(error) => return Err(error),
        }
    }
    Ok(made)
}

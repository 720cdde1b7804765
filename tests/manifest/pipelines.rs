//! The manifests that ship with the project.

use std::collections::BTreeSet;
use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use provenir::manifest::{Overrides, load};
use provenir::registry::Registry;

/// Those that a manifest has, of its own and of what it extends.
fn profiles(path: &Utf8Path) -> BTreeSet<String> {
    let text = fs_err::read_to_string(path).expect("a manifest that ships");
    let own = text
        .lines()
        .filter_map(|line| line.strip_prefix("[profiles.")?.strip_suffix(']'));
    let mut names: BTreeSet<String> = own.map(str::to_owned).collect();
    let extended = text
        .lines()
        .find_map(|line| line.strip_prefix("extends = \"")?.strip_suffix('"'));
    if let Some(extended) = extended {
        names.extend(profiles(&path.with_file_name(extended)));
    }
    names
}

/// What each cell of a stage computes, whatever its stages and axes are called: kind, parameters, and what it takes.
fn computations(manifest: &str, profile: Option<&str>, stage: &str) -> BTreeSet<String> {
    let overrides = Overrides {
        profile: profile.map(str::to_owned),
        ..Overrides::default()
    };
    let registry = Registry::new(provenir_kinds::all());
    let plan = load(Utf8Path::new(manifest), &registry, &overrides).expect("a plan");
    let mut all: Vec<String> = Vec::new();
    let mut wanted = BTreeSet::new();
    for cell in &plan.cells {
        let inputs = cell.inputs.iter();
        let inputs: Vec<String> = inputs
            .map(|input| format!("{}={}.{}", input.port, all[input.producer], input.output))
            .collect();
        let of = &plan.stages[cell.stage];
        let computation = format!(
            "{} {} ({})",
            of.kind.name(),
            cell.parameters.full,
            inputs.join(", ")
        );
        if of.name == stage {
            wanted.insert(computation.clone());
        }
        all.push(computation);
    }
    wanted
}

#[test]
fn figures_have_in_common_what_they_can() {
    for profile in [None, Some("laptop")] {
        let of = |name: &str| computations(&format!("pipelines/{name}.toml"), profile, "reward");
        let (first, second) = (of("fig1-hopper"), of("fig2-corruption"));
        // The profile of the second has fewer shares of outliers.
        let apart = if profile.is_none() { 0 } else { 2 * 3 };
        assert_eq!(first.difference(&second).count(), apart);
        assert!(first.len() > apart);
    }
}

#[test]
fn every_pipeline_can_be_planned_in_every_profile() {
    let registry = Registry::new(provenir_kinds::all());
    let mut paths: Vec<Utf8PathBuf> = fs_err::read_dir("pipelines")
        .unwrap()
        .map(|entry| Utf8PathBuf::from_path_buf(entry.unwrap().path()).unwrap())
        .filter(|path| path.extension() == Some("toml"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let profiles = profiles(&path).into_iter().map(Some);
        for profile in profiles.chain([None]) {
            let overrides = Overrides {
                profile: profile.clone(),
                ..Overrides::default()
            };
            match load(&path, &registry, &overrides) {
                Ok(plan) => assert!(plan.warnings.is_empty(), "{}", plan.warnings),
                // Data that is not part of the repository may be absent; everything else of the manifest is checked.
                Err(found)
                    if found
                        .entries()
                        .all(|entry| entry.message.contains("there is no file")) =>
                {
                    // Past the harness, which shows nothing of a test that passes.
                    let said = format!("SKIPPED the sources of {path} (profile {profile:?}):\n{found}\n");
                    std::io::stderr().write_all(said.as_bytes()).unwrap();
                }
                Err(found) => panic!("{found}"),
            }
        }
    }
}

#[test]
fn more_samples_than_are_collected_are_refused_with_both_places() {
    let manifest = |size: &str, training: &str| {
        format!(
            r#"format = 1
[pipeline]
name = "sizes"
[axes]
n = [500, 2000]
[stages.demos]
kind = "collect"
params = {{ env = "hopper", expert = "e.parquet", {size} }}
[stages.corrupted]
kind = "corrupt"
inputs = {{ demos = "demos" }}
params = {{ outlier = "boundary", fraction = 0.1 }}
[stages.parts]
kind = "split"
inputs = {{ demos = "corrupted" }}
params = {{ {training} }}
"#
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().join("m.toml")).unwrap();
    fs_err::write(folder.path().join("e.parquet"), "").unwrap();
    let registry = Registry::new(provenir_kinds::all());
    let said = |size: &str, training: &str| {
        fs_err::write(&path, manifest(size, training)).unwrap();
        let place = format!("{path}:");
        match load(&path, &registry, &Overrides::default()) {
            Ok(_) => String::new(),
            Err(found) => format!("{found}\n{}", found.render(100, false))
                .replace(&place, "")
                .replace(path.as_str(), "m.toml"),
        }
    };
    insta::assert_snapshot!(said("samples = 1_000", "samples = 1_500"), @r#"
    16:22: `samples`: 1500 samples beside a share of 0.1 for validation need 1667 rows, and `corrupted` gives 1000 (ask for fewer, or set `samples` of stage `demos` to 1667 or more)
      × `samples`: 1500 samples beside a share of 0.1 for validation need 1667 rows, and `corrupted`
      │ gives 1000
       ╭─[8:60]
     7 │ kind = "collect"
     8 │ params = { env = "hopper", expert = "e.parquet", samples = 1_000 }
       ·                                                            ──┬──
       ·                                                              ╰── this says 1000
     9 │ [stages.corrupted]
       ╰────
        ╭─[16:22]
     15 │ inputs = { demos = "corrupted" }
     16 │ params = { samples = 1_500 }
        ·                      ─────
        ╰────
      help: ask for fewer, or set `samples` of stage `demos` to 1667 or more
    "#);
    insta::assert_snapshot!(said("samples = 1_000", "samples = '${n}', validation = 0.0"), @r#"
    5:11: `samples`: 2000 rows are asked for, and `corrupted` gives 1000 (ask for fewer, or set `samples` of stage `demos` to 2000 or more)
      × `samples`: 2000 rows are asked for, and `corrupted` gives 1000
       ╭─[5:11]
     4 │ [axes]
     5 │ n = [500, 2000]
       ·           ────
     6 │ [stages.demos]
     7 │ kind = "collect"
     8 │ params = { env = "hopper", expert = "e.parquet", samples = 1_000 }
       ·                                                            ──┬──
       ·                                                              ╰── this says 1000
     9 │ [stages.corrupted]
       ╰────
        ╭─[16:22]
     15 │ inputs = { demos = "corrupted" }
     16 │ params = { samples = '${n}', validation = 0.0 }
        ·                      ───┬──
        ·                         ╰── used here
        ╰────
      help: ask for fewer, or set `samples` of stage `demos` to 2000 or more
    "#);
    for (size, training) in [
        ("samples = 1_500", "samples = 1_500, validation = 0.0"),
        ("episodes = 1", "samples = 1_500"),
        ("samples = 1_000", "validation = 0.5"),
    ] {
        assert_eq!(said(size, training), "", "{size}, {training}");
    }
}

#[test]
fn what_a_study_knows_reaches_diagnoses_and_figures_and_no_learner() {
    let manifest = |stages: &str| {
        format!(
            r#"format = 1
[pipeline]
name = "privilege"
[axes]
epsilon = [0.0, 0.1]
[stages.demos]
kind = "collect"
params = {{ env = "hopper", expert = "e.parquet", samples = 2_000 }}
[stages.corrupted]
kind = "corrupt"
inputs = {{ demos = "demos" }}
params = {{ outlier = "boundary", fraction = "${{epsilon}}" }}
[stages.parts]
kind = "split"
inputs = {{ demos = "corrupted" }}
[stages.policy]
kind = "train"
inputs = {{ demos = "parts" }}
params = {{ method = "bc", epochs = 1 }}
{stages}"#
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().join("m.toml")).unwrap();
    fs_err::write(folder.path().join("e.parquet"), "").unwrap();
    let registry = Registry::new(provenir_kinds::all());
    let said = |stages: &str| {
        fs_err::write(&path, manifest(stages)).unwrap();
        match load(&path, &registry, &Overrides::default()) {
            Ok(plan) => plan.warnings.to_string(),
            Err(found) => found.to_string().replace(&format!("{path}:"), ""),
        }
    };
    let diagnosis = r#"
[stages.diagnosis]
kind = "diagnose"
inputs = { demos = "parts", mask = "corrupted.mask", clean = "corrupted.clean", trust = "policy.trust", policy = "policy" }
[stages.figure]
kind = "plot"
inputs = { table = "diagnosis" }
params = { x = "epsilon", y = "recall" }
"#;
    assert_eq!(said(diagnosis), "");
    for (port, input) in [("mask", "demos"), ("clean", "validation")] {
        let cheat = format!(
            "[stages.cheat]\nkind = \"train\"\ninputs = {{ demos = \"demos\", {input} = \"corrupted.{port}\" }}\nparams = {{ method = \"bc\", epochs = 1 }}\n"
        )
        .replace("demos = \"demos\", demos", "demos");
        let found = said(&cheat);
        let expected = format!(
            "`corrupted.{port}` is privileged: the input `{input}` of `cheat` must not see it (no learner could know it; kinds \
             that may: `diagnose`, `evaluate`, `plot`, `render`, `time-to-target`)"
        );
        assert!(found.ends_with(&expected) && found.starts_with("22:"), "{found}");
        assert_eq!(found.lines().count(), 1, "{found}");
    }
}

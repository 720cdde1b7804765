//! Manifests and their options, and what must hold of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use camino::Utf8PathBuf;
use provenir::manifest::{Diagnostics, Overrides, load};
use provenir::plan::Plan;
use provenir::registry::Registry;

use crate::harness::folder;

/// Larger plans are right, too, and take their time: they are left to the tests.
const CELLS: usize = 200;

/// The kinds that ship, and those for tests.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut kinds = provenir_testing::kinds();
        kinds.extend(provenir_kinds::all());
        Registry::new(kinds)
    })
}

/// A manifest with what it extends and the options that are laid over it.
#[derive(Debug, Default)]
pub struct Request {
    /// `m.toml`.
    pub manifest: Vec<u8>,
    /// `base.toml`, which it may extend.
    pub base: Vec<u8>,
    /// The command line.
    pub overrides: Overrides,
}

impl Request {
    /// The parts: manifest, base, options a line each, with a letter that says which option it is.
    pub fn of(parts: &[&[u8]]) -> Self {
        let part = |index: usize| parts.get(index).map(|part| part.to_vec()).unwrap_or_default();
        let mut overrides = Overrides::default();
        for line in String::from_utf8_lossy(&part(2)).lines().take(8) {
            let mut letters = line.chars();
            let letter = letters.next();
            let rest = letters.as_str().to_owned();
            match letter {
                Some('p') => overrides.profile = Some(rest),
                Some('a') => overrides.axes.push(rest),
                Some('s') => overrides.set.push(rest),
                Some('o') => overrides.only.push(rest),
                _ => {}
            }
        }
        Self {
            manifest: part(0),
            base: part(1),
            overrides,
        }
    }

    /// Whether it may expand to more cells than are worth the time here.
    fn is_vast(&self) -> bool {
        let mut lengths: BTreeMap<String, usize> = BTreeMap::new();
        let mut note = |axes: Option<&toml::Value>| {
            for (name, values) in axes.and_then(toml::Value::as_table).into_iter().flatten() {
                let length = values.as_array().map_or(1, Vec::len);
                let most = lengths.entry(name.clone()).or_default();
                *most = length.max(*most);
            }
        };
        for text in [&self.manifest, &self.base] {
            let Ok(table) = toml::from_str::<toml::Table>(&String::from_utf8_lossy(text)) else {
                continue;
            };
            note(table.get("axes"));
            let profiles = table.get("profiles").and_then(toml::Value::as_table);
            for (_, profile) in profiles.into_iter().flatten() {
                note(profile.get("axes"));
            }
        }
        let given = self.overrides.axes.iter().chain(&self.overrides.set);
        let given = given.map(|option| option.matches(',').count() + 1);
        let all = lengths.values().copied().chain(given);
        all.fold(1_usize, |cells, length| cells.saturating_mul(length.max(1))) > CELLS
    }

    /// Reads and expands it; `None` where that would take too long.
    pub fn load(&self) -> Option<Result<Plan, Diagnostics>> {
        if self.is_vast() {
            return None;
        }
        let write = |name: &str, bytes: &[u8]| {
            let path: Utf8PathBuf = folder().join(name);
            fs_err::write(&path, bytes).expect("a manifest can be written");
            path
        };
        write("base.toml", &self.base);
        let path = write("m.toml", &self.manifest);
        if !folder().join("expert.parquet").exists() {
            write("expert.parquet", b"expert");
            write("agent.zip", b"agent");
        }
        Some(load(&path, registry(), &self.overrides))
    }
}

/// What must hold of everything that is read, whatever the text.
pub fn check(found: &Result<Plan, Diagnostics>) {
    match found {
        Ok(plan) => {
            assert!(!plan.warnings.has_errors());
            check_plan(plan);
        }
        Err(problems) => {
            assert!(problems.has_errors());
            assert!(problems.entries().all(|entry| !entry.message.is_empty()));
        }
    }
}

/// What must hold of problems when they are shown, which takes as long as all the rest.
pub fn check_shown(problems: &Diagnostics) {
    let shown = format!("{problems}{}", problems.render(80, false));
    let steers = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t' | '\r');
    assert!(!shown.contains(steers), "{shown:?}");
}

fn check_plan(plan: &Plan) {
    let mut names = BTreeSet::new();
    let mut published = BTreeSet::new();
    let mut next = 0;
    for (position, stage) in plan.stages.iter().enumerate() {
        assert_eq!(stage.cells.start, next, "the cells of a stage are contiguous");
        next = stage.cells.end;
        assert!(stage.inputs.iter().all(|input| input.producer < position));
    }
    assert_eq!(next, plan.cells.len());
    for (index, cell) in plan.cells.iter().enumerate() {
        assert!(plan.stages[cell.stage].cells.contains(&index));
        assert_eq!(cell.labels.len(), plan.stages[cell.stage].axes.len());
        assert!(cell.inputs.iter().all(|input| input.producer < index));
        assert!(names.insert(plan.name(index)), "two cells have one name");
        for copy in &cell.publish {
            assert!(published.insert(copy.path.clone()), "two copies have one path");
            let stays = copy.path.is_relative() && !copy.path.components().any(|part| part.as_str() == "..");
            assert!(stays, "`{}` leaves the manifest's folder", copy.path);
        }
    }
}

/// What a plan is, whatever the order in which its manifest is written: a line a cell, sorted.
pub fn told(plan: &Plan) -> Vec<String> {
    let mut told: Vec<String> = plan
        .cells
        .iter()
        .enumerate()
        .map(|(index, cell)| {
            // The order of axes in a name is the manifest's.
            let point: BTreeMap<&str, String> = plan.stages[cell.stage]
                .axes
                .iter()
                .zip(&cell.labels)
                .map(|(axis, label)| (axis.as_ref(), label.to_string()))
                .collect();
            let mut inputs: Vec<String> = cell
                .inputs
                .iter()
                .map(|input| {
                    let producer = &plan.stages[plan.cells[input.producer].stage].name;
                    let gathered: Vec<String> = input
                        .gathered
                        .iter()
                        .map(|(axis, label)| format!("{axis}={label}"))
                        .collect();
                    format!(
                        "{} {producer} {} {} {gathered:?}",
                        input.port, input.output, input.source
                    )
                })
                .collect();
            inputs.sort();
            let stage = plan.stage_of(index);
            format!(
                "{} {point:?} {} {inputs:?}",
                stage.name, cell.parameters.canonical
            )
        })
        .collect();
    told.sort();
    told
}

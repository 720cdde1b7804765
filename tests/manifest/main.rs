//! Manifests through the engine's eyes: what they expand to, and what is said of every mistake.

mod expansion;
mod hostile;
mod kinds;
mod language;
mod mistakes;
mod pipelines;
mod study;
mod syntax;
mod together;

use camino::{Utf8Path, Utf8PathBuf};
use provenir::manifest::{Diagnostics, Overrides, load};
use provenir::plan::{CellIndex, Plan};

/// A folder with a manifest in it, gone with the test.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new(manifest: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let project = Self { folder };
        project.write("m.toml", manifest);
        project
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path())
            .expect("the path is UTF-8")
            .join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent).expect("the folder can be made");
        }
        fs_err::write(path, text).expect("the file can be written");
    }

    fn load(&self) -> Result<Plan, Diagnostics> {
        self.load_with(&Overrides::default())
    }

    fn load_with(&self, overrides: &Overrides) -> Result<Plan, Diagnostics> {
        load(&self.path("m.toml"), &kinds::registry(), overrides)
    }

    /// The plan of a manifest that is right.
    fn plan(&self) -> Plan {
        self.load().unwrap_or_else(|found| panic!("{found}"))
    }

    fn plan_with(&self, overrides: &Overrides) -> Plan {
        self.load_with(overrides)
            .unwrap_or_else(|found| panic!("{found}"))
    }

    /// Everything that is said of it, without the folder's name.
    fn problems(&self, overrides: &Overrides) -> Vec<String> {
        let found = match self.load_with(overrides) {
            Ok(plan) => plan.warnings,
            Err(found) => found,
        };
        let folder = format!("{}/", self.path(""));
        let folder = folder.trim_end_matches('/').to_owned() + "/";
        found
            .to_string()
            .lines()
            .map(|line| line.replace(&folder, ""))
            .collect()
    }
}

/// The plan of a manifest that is right.
fn plan(manifest: &str) -> Plan {
    Project::new(manifest).plan()
}

/// The names of a stage's cells.
fn cells(plan: &Plan, stage: &str) -> Vec<String> {
    let stage = plan.stages.iter().find(|found| found.name == stage);
    stage
        .map(|stage| stage.cells.clone().map(|cell| plan.name(cell)).collect())
        .unwrap_or_default()
}

/// The cell of that name.
fn cell(plan: &Plan, name: &str) -> CellIndex {
    (0..plan.cells.len())
        .find(|cell| plan.name(*cell) == name)
        .unwrap_or_else(|| panic!("there is no cell {name}"))
}

/// What a cell takes: `port <- producer.output {gathered} source`.
fn inputs(plan: &Plan, name: &str) -> Vec<String> {
    plan.cells[cell(plan, name)]
        .inputs
        .iter()
        .map(|input| {
            let gathered: Vec<String> = input
                .gathered
                .iter()
                .map(|(axis, label)| format!("{axis}={label}"))
                .collect();
            format!(
                "{} <- {}.{} {{{}}} {}",
                input.port,
                plan.name(input.producer),
                input.output,
                gathered.join(", "),
                input.source
            )
        })
        .collect()
}

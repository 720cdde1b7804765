use std::collections::{BTreeMap, BTreeSet};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err::os::unix::fs::OpenOptionsExt;
use provenir_api::schema;
use provenir_execution::{Context, Failure, Inputs, StoredInput};
use provenir_kinds::command::{CommandParameters, INPUTS};
use provenir_table::{Member, unite, write};

/// How many folders deep what a program left behind is looked at.
const DEPTH: usize = 64;
/// How many entries of what a program left behind are looked at.
const ENTRIES: usize = 100_000;

/// The folder that a program runs in, with its neighbours.
pub(crate) struct Folder {
    /// Where it runs; absolute.
    pub(crate) work: Utf8PathBuf,
    /// Where it may leave what nobody wants: `$TMPDIR`.
    pub(crate) temporary: Utf8PathBuf,
    /// What it takes for the person's home: `$HOME`.
    pub(crate) home: Utf8PathBuf,
    /// The path of each input in the folder.
    pub(crate) inputs: BTreeMap<String, String>,
}

impl Folder {
    /// Makes the folder, with copies of inputs and files, and the folders of outputs.
    pub(crate) fn prepare(
        parameters: &CommandParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Self, Failure> {
        let scratch = context.scratch()?;
        let mut folder = Self {
            work: scratch.join("work"),
            temporary: scratch.join("tmp"),
            home: scratch.join("home"),
            inputs: BTreeMap::new(),
        };
        for path in [&folder.work, &folder.temporary, &folder.home] {
            fs_err::create_dir(path).map_err(|error| failed(&error))?;
        }
        if !inputs.stored().is_empty() {
            fs_err::create_dir(folder.work.join(INPUTS)).map_err(|error| failed(&error))?;
        }
        for (name, artifacts) in inputs.stored() {
            let many = parameters.inputs.get(name).is_some_and(|options| options.many);
            let path = folder.bring(name, artifacts, many)?;
            folder.inputs.insert(name.clone(), path);
        }
        for name in parameters.files.keys() {
            let bytes = context.source(&schema::join("/files", name))?;
            let path = folder.work.join(name);
            make_parent(&path)?;
            let mut options = fs_err::OpenOptions::new();
            options.write(true).create_new(true).mode(0o755);
            let written = options
                .open(&path)
                .and_then(|mut file| io::Write::write_all(&mut file, &bytes));
            written.map_err(|error| failed(&error))?;
        }
        for (name, options) in &parameters.outputs {
            make_parent(&folder.work.join(options.path(name)))?;
        }
        Ok(folder)
    }

    /// Copies what arrived at an input; several tables become one. Gives the path in the folder.
    fn bring(&self, name: &str, artifacts: &[StoredInput], many: bool) -> Result<String, Failure> {
        if many {
            let tables = artifacts
                .iter()
                .map(StoredInput::table)
                .collect::<Result<Vec<_>, _>>()?;
            let members: Vec<Member<'_>> = artifacts
                .iter()
                .zip(&tables)
                .map(|(artifact, table)| Member {
                    labels: &artifact.labels,
                    source: &artifact.source,
                    table,
                })
                .collect();
            let path = format!("{INPUTS}/{name}.parquet");
            write(&self.work.join(&path), &unite(&members)?)?;
            return Ok(path);
        }
        let [artifact] = artifacts else {
            return Err(Failure::bug(format!(
                "{} artifacts arrived at the input `{name}`, which takes one",
                artifacts.len()
            )));
        };
        let path = format!("{INPUTS}/{name}.{}", artifact.extension);
        artifact.copy(&self.work.join(&path))?;
        Ok(path)
    }

    /// Files, and whatever else is no folder, that the program left in the folder and that nobody declared, by name; and
    /// whether there are too many to look at them all.
    pub(crate) fn undeclared(&self, parameters: &CommandParameters) -> (Vec<String>, bool) {
        let mut known: BTreeSet<Utf8PathBuf> = BTreeSet::new();
        known.extend(self.inputs.values().map(Utf8PathBuf::from));
        known.extend(
            parameters
                .files
                .keys()
                .map(|name| Utf8Path::new(name).components().collect()),
        );
        known.extend(
            parameters
                .outputs
                .iter()
                .map(|(name, options)| options.path(name).into()),
        );
        let mut found = Vec::new();
        let mut seen = 0;
        let mut folders = vec![(Utf8PathBuf::new(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let Ok(entries) = self.work.join(&folder).read_dir_utf8() else {
                // A name that is no text, or a folder that was closed.
                found.push(format!("{folder}/…"));
                continue;
            };
            for entry in entries {
                seen += 1;
                if seen > ENTRIES {
                    found.sort();
                    return (found, true);
                }
                let Ok(entry) = entry else {
                    found.push(format!("{folder}/…"));
                    continue;
                };
                let path = folder.join(entry.file_name());
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) && depth < DEPTH {
                    folders.push((path, depth + 1));
                } else if !known.contains(&path) {
                    found.push(path.into_string());
                }
            }
        }
        found.sort();
        (found, false)
    }
}

fn make_parent(path: &Utf8Path) -> Result<(), Failure> {
    let parent = path.parent().unwrap_or(path);
    fs_err::create_dir_all(parent).map_err(|error| failed(&error))
}

fn failed(error: &io::Error) -> Failure {
    Failure::environment(format!(
        "cannot prepare the folder that the program runs in: {error}"
    ))
}

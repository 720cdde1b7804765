use camino::Utf8PathBuf;

use super::select::{Selected, select};
use super::write::{self, Folder};
use crate::cli::arguments::ExportArguments;
use crate::cli::error::{CommandError, Exit};
use crate::cli::{Edition, terminal};
use crate::display::grouped;
use crate::provenance::{self as exports, Cell, File, GatherError, Licence, METADATA, Provenance};

/// So many of what is not included are named.
const SHOWN: usize = 5;

/// A format of provenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standard {
    RoCrate,
    OpenLineage,
    Prov,
    InToto,
}

impl Standard {
    /// The end of a name.
    fn suffix(self) -> &'static str {
        match self {
            Self::RoCrate => "-ro-crate",
            Self::OpenLineage => ".openlineage.jsonl",
            Self::Prov => ".prov.json",
            Self::InToto => ".intoto.json",
        }
    }
}

/// `export` of provenance.
pub(super) fn export(
    edition: &Edition,
    arguments: &ExportArguments,
    standard: Standard,
) -> Result<Exit, CommandError> {
    let licence = licence(arguments)?;
    let Selected {
        store,
        graph,
        selection,
        name,
        which,
    } = select(edition, arguments)?;
    let mut provenance = Provenance::gather(&graph, &selection).map_err(explain)?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.=".contains(letter);
    let default = || -> Utf8PathBuf {
        let letters = name.chars();
        let letters = letters.map(|letter| if is_plain(letter) { letter } else { '_' });
        let name: String = letters.collect();
        format!("{}{}", name.trim_matches(['.', '_']), standard.suffix()).into()
    };
    let out = arguments.out.clone().unwrap_or_else(default);
    if standard == Standard::RoCrate {
        if out == "-" {
            return Err(
                CommandError::request("a crate is a folder, and cannot be printed")
                    .help("name a folder with --out"),
            );
        }
        let folder = Folder::new(&out)?;
        let into = (!arguments.without_data).then(|| folder.unnamed()).transpose()?;
        provenance.read_files(store.layout(), into)?;
        for (index, run) in provenance.runs.iter().enumerate() {
            if index == provenance.main || into.is_some() {
                folder.write(&run.file.place, run.text.as_bytes())?;
            }
        }
        let metadata = exports::ro_crate(&provenance, &licence, into.is_some());
        folder.write(METADATA.into(), pretty(&metadata)?.as_bytes())?;
        tell(which, &provenance, arguments.without_data);
        folder.finish()?;
    } else {
        provenance.read_files(store.layout(), None)?;
        if standard == Standard::InToto && provenance.subjects.is_empty() {
            return Err(CommandError::request(format!(
                "{} gave nothing that a statement could be about",
                provenance.title
            ))
            .help("name a figure, a cell, or a run that gave something"));
        }
        let text = match standard {
            Standard::OpenLineage => exports::openlineage(&provenance),
            Standard::Prov => pretty(&exports::prov(&provenance))?,
            Standard::InToto | Standard::RoCrate => pretty(&exports::in_toto(&provenance))?,
        };
        tell(which, &provenance, false);
        if out == "-" {
            terminal::print(&text)?;
            return Ok(Exit::Done);
        }
        write::file(&out, text.as_bytes())?;
    }
    terminal::print(&format!("{out}\n"))?;
    Ok(Exit::Done)
}

fn licence(arguments: &ExportArguments) -> Result<Licence, CommandError> {
    match &arguments.license {
        None => Ok(Licence::Unstated),
        Some(url) if is_url(url) => Ok(Licence::Url(url.clone())),
        Some(text) => Err(
            CommandError::request(format!("`{text}` is not the URL of a licence")).help(
                "such as https://creativecommons.org/licenses/by/4.0/ or https://spdx.org/licenses/MIT",
            ),
        ),
    }
}

fn is_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let is_plain = |letter: char| letter.is_ascii_graphic() && !"<>\"{}|\\^`".contains(letter);
    rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_plain))
}

fn pretty(value: &serde_json::Value) -> Result<String, CommandError> {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
    Ok(format!("{text}\n"))
}

fn explain(error: GatherError) -> CommandError {
    let help = match &error {
        GatherError::Store(_) => "",
        GatherError::Unrecorded(_) => {
            "its result may come from another store, or the records of its runs were removed"
        }
        GatherError::Headless(_) => "it was killed before it could: name another run, a figure or a cell",
        GatherError::Empty(_) => "name another run: `provenir runs` lists them",
        GatherError::Manifest { .. } => {
            "please report it: what was read from a manifest should be written as one"
        }
    };
    match error {
        GatherError::Store(error) => error.into(),
        error => CommandError::request(error.to_string()).help(help),
    }
}

/// Says what is in an export, and what is not.
fn tell(which: Option<String>, provenance: &Provenance, without_data: bool) {
    if let Some(which) = which {
        terminal::say(&which);
    }
    let bytes: u64 = provenance
        .artifacts
        .iter()
        .filter_map(|artifact| artifact.file.size)
        .fold(0, u64::saturating_add);
    let count = |number: usize, what: &str| {
        format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
    };
    let again = |cell: &&Cell| cell.repetition.is_some();
    let repetitions = provenance.cells.iter().filter(again).count();
    let actions = provenance.cells.len() - repetitions;
    let cells = actions + provenance.cells.iter().map(|cell| cell.also.len()).sum::<usize>();
    let mut about = Vec::new();
    if cells > actions {
        about.push(count(actions, "different action"));
    }
    if repetitions > 0 {
        about.push(format!("{} computed once more", grouped(repetitions)));
    }
    let about = if about.is_empty() {
        String::new()
    } else {
        format!(" ({})", about.join(", "))
    };
    terminal::say(&format!(
        "{}: {}{about}, {} ({} bytes{}), {} from outside",
        provenance.title,
        count(cells, "cell"),
        count(provenance.artifacts.len(), "artifact"),
        grouped(usize::try_from(bytes).unwrap_or(usize::MAX)),
        if without_data {
            ", which are not included"
        } else {
            ""
        },
        count(provenance.sources.len(), "file"),
    ));
    let missing: Vec<&File> = provenance.missing().map(|artifact| &artifact.file).collect();
    if !missing.is_empty() {
        terminal::say(&format!(
            "warning: the bytes of {} are not in the store any more: listed by their BLAKE3 alone, without SHA-256, and not included ({})\n  help: `provenir run` computes again what it still needs of them",
            count(missing.len(), "artifact"),
            listed(missing.iter().map(|file| file.blake3.short())),
        ));
    }
    let changed = provenance.changed();
    let changed: Vec<String> = changed
        .map(|source| match &source.path {
            Some(path) => format!("`{path}`"),
            None => format!("{}, no record says where it lay", source.file.blake3.short()),
        })
        .collect();
    if !changed.is_empty() {
        terminal::say(&format!(
            "warning: {} since {} taken: only {} BLAKE3 of that time is given ({})",
            if changed.len() == 1 {
                "1 source file has changed".to_owned()
            } else {
                format!("{} source files have changed", grouped(changed.len()))
            },
            if changed.len() == 1 { "it was" } else { "they were" },
            if changed.len() == 1 { "its" } else { "their" },
            listed(changed.into_iter()),
        ));
    }
    if !provenance.unknown.is_empty() {
        terminal::say(&format!(
            "warning: neither a result nor a record tells what {} of the run did: not exported ({})",
            count(provenance.unknown.len(), "cell"),
            listed(provenance.unknown.iter().cloned()),
        ));
    }
}

fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let count = names.len();
    let mut names: Vec<String> = names.take(SHOWN).collect();
    if count > SHOWN {
        names.push(format!("and {} more", grouped(count - SHOWN)));
    }
    names.join(", ")
}

use camino::{Utf8Path, Utf8PathBuf};

use crate::cli::arguments::{LineageArguments, OverrideArguments, quoted};
use crate::cli::error::CommandError;
use crate::cli::session::EXPECTED;
use crate::cli::{Edition, session};
use crate::lineage::{Condition, FileOrigin, Freshness, Graph};
use crate::record::PastRun;
use crate::store::{ActionKey, Publication, Store};

/// Whether a file would be made the same today.
pub(super) struct Told {
    pub(super) text: String,
    /// What it was held against.
    pub(super) manifest: Option<Utf8PathBuf>,
    pub(super) arguments: Vec<String>,
    /// Absent where that is not known.
    pub(super) stale: Option<bool>,
}

/// What a file is held against: a manifest as it is now, with arguments.
struct Standard {
    /// The manifest as it is shown and read.
    manifest: Utf8PathBuf,
    overrides: OverrideArguments,
    /// The run whose recorded arguments those are; absent where they were given, or nothing is known of any.
    run: Option<String>,
}

impl Told {
    /// Holds the file at `path` (absolute), which `origin` tells of and the action `key` made, against the manifest that it is of.
    pub(super) fn of(
        edition: &Edition,
        arguments: &LineageArguments,
        path: &Utf8Path,
        origin: &FileOrigin,
        key: &ActionKey,
        store: &Store,
        graph: &Graph,
    ) -> Result<Self, CommandError> {
        let unknown = |reason: String| Self {
            text: format!("whether it is stale cannot be told: {reason}"),
            manifest: None,
            arguments: Vec::new(),
            stale: None,
        };
        if origin.condition == Condition::SealedOtherwise {
            return Ok(unknown(
                "its bytes are not what its action gave, as far as the store knows".to_owned(),
            ));
        }
        let publication = store
            .publication(path)?
            .filter(|publication| publication.key == *key);
        let standard = match Standard::find(arguments, key, publication.as_ref(), graph)? {
            Ok(standard) => standard,
            Err(reason) => return Ok(unknown(reason)),
        };
        let plan = match session::load(edition, &standard.manifest, &standard.overrides) {
            Ok(plan) => plan,
            Err(CommandError::Manifest(_) | CommandError::Request { .. }) => {
                return Ok(unknown(format!(
                    "{} has problems (`provenir plan {}` shows them)",
                    standard.name(),
                    standard.words().join(" ")
                )));
            }
            Err(error) => return Ok(unknown(error.to_string())),
        };
        let freshness = Freshness::of(path, &origin.object, key, graph, &plan, store)?;
        let (text, stale) = standard.tell(&freshness, path, arguments);
        Ok(Self {
            text,
            manifest: Some(plan.manifest),
            arguments: standard.overrides.words(),
            stale,
        })
    }
}

impl Standard {
    /// The manifest that is named; else the one that published this very file, as the store has noted; else one that lies where
    /// one is expected, or, where that never made the file, the one whose run did. The arguments are those that are given, or
    /// else those by which it was published, or those of the latest of the manifest's runs that had the file's action. `Err`
    /// is a reason why there is nothing to hold the file against.
    fn find(
        arguments: &LineageArguments,
        key: &ActionKey,
        publication: Option<&Publication>,
        graph: &Graph,
    ) -> Result<Result<Self, String>, CommandError> {
        let named = &arguments.manifest.manifest;
        let given = &arguments.manifest.overrides;
        let latest = graph.history().uses(key).next();
        if let Some(publication) = publication
            && let Some(publisher) = &publication.manifest
            && publisher.is_file()
            && !given.is_given()
            && (named == EXPECTED || named.is_file() && session::absolute(named)? == *publisher)
        {
            return Ok(Self::by_command(
                session::short(publisher),
                &publication.command,
                None,
            ));
        }
        if named.is_file() {
            let here = session::absolute(named)?;
            let own = graph
                .history()
                .uses(key)
                .find(|run| run.manifest() == Some(&here));
            // A project that was moved has other paths than its records.
            let moved = || latest.filter(|run| run.manifest().is_none_or(|made| !made.is_file()));
            let run = own.or_else(moved);
            if given.is_given() {
                return Ok(Ok(Self {
                    manifest: named.clone(),
                    overrides: given.clone(),
                    run: None,
                }));
            }
            if let Some(run) = run {
                return Ok(Self::recorded(named.clone(), run));
            }
            if named != EXPECTED || latest.is_none() {
                return Ok(Ok(Self {
                    manifest: named.clone(),
                    overrides: OverrideArguments::default(),
                    run: None,
                }));
            }
        }
        let made = latest.and_then(|run| Some((run, run.manifest()?)));
        Ok(match made {
            Some((run, made)) if made.is_file() => Self::recorded(session::short(made), run),
            Some((_, made)) => Err(format!(
                "`{}`, which made it, is not there any more",
                session::short(made)
            )),
            None => Err("there is no manifest to hold it against".to_owned()),
        })
    }

    /// A manifest with the arguments that a run of it had.
    fn recorded(manifest: Utf8PathBuf, run: &PastRun) -> Result<Self, String> {
        let command = run.head.as_ref().map(|head| head.command.as_slice());
        Self::by_command(
            manifest,
            command.unwrap_or_default(),
            Some(run.stored.id.to_string()),
        )
    }

    /// A manifest with the arguments of a command line.
    fn by_command(manifest: Utf8PathBuf, command: &[String], run: Option<String>) -> Result<Self, String> {
        let Some(overrides) = OverrideArguments::recorded(command) else {
            let words: Vec<String> = command.iter().skip(1).map(|word| quoted(word)).collect();
            let words = words.join(" ");
            return Err(match run {
                Some(run) => {
                    format!("run {run} (`provenir {words}`) made it, which is no `run` of a manifest")
                }
                None => format!("`provenir {words}` made it, which is no `run` of a manifest"),
            });
        };
        Ok(Self {
            manifest,
            overrides,
            run,
        })
    }

    /// The manifest and the arguments as `run` and `plan` take them.
    fn words(&self) -> Vec<String> {
        let mut words = vec![quoted(self.manifest.as_str())];
        words.extend(self.overrides.words());
        words
    }

    /// For people: the manifest, with which arguments, and where those are from.
    fn name(&self) -> String {
        let words = self.overrides.words();
        if words.is_empty() {
            return format!("`{}`", self.manifest);
        }
        let origin = self
            .run
            .as_ref()
            .map_or_else(String::new, |run| format!(", as in run {run},"));
        format!("`{}` with `{}`{origin}", self.manifest, words.join(" "))
    }

    fn tell(
        &self,
        freshness: &Freshness,
        path: &Utf8Path,
        arguments: &LineageArguments,
    ) -> (String, Option<bool>) {
        let name = self.name();
        match freshness {
            Freshness::Current { cell } => (
                format!("up to date: {name} makes the same today ({cell})"),
                Some(false),
            ),
            Freshness::Stale {
                cell,
                differences,
                computed,
                published_as,
            } => {
                let mut words = self.words();
                if let Some(cache) = &arguments.manifest.store.cache {
                    words.extend(["--cache".to_owned(), quoted(cache.as_str())]);
                }
                let run = format!("`provenir run {}`", words.join(" "));
                let differences = differences.join("; ");
                let place = match published_as {
                    Some(place) if place == path => String::new(),
                    Some(place) => format!(" as `{}`", session::short(place)),
                    None => String::new(),
                };
                let text = match (computed, published_as) {
                    (true, Some(_)) => format!(
                        "stale: {name} makes another today ({cell}: {differences}); the newer result is in the store; {run} publishes it{place}"
                    ),
                    (true, None) => format!(
                        "stale: {name} makes another today ({cell}: {differences}); the newer result is in the store, and is published nowhere"
                    ),
                    (false, _) => format!(
                        "probably stale: {name} would compute it anew ({cell}: {differences}); {run} computes it"
                    ),
                };
                (text, Some(true))
            }
            Freshness::Unknown { cell, producer } => (
                format!(
                    "whether it is stale is known only when {producer} has run, which {cell} of {name} depends on"
                ),
                None,
            ),
            Freshness::NotThere => (
                format!("whether it is stale cannot be told: no cell of {name} makes it"),
                None,
            ),
        }
    }
}

use std::collections::BTreeSet;
use std::fmt::Write;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use serde_json::{Value, json};

use super::arguments::VerifyArguments;
use super::digest::{Beginning, Name};
use super::error::{CommandError, Exit};
use super::measure::{bytes, count};
use super::{session, terminal};
use crate::lineage::{Condition, FileOrigin, Graph};
use crate::record::{Damaged, FlawedRun, History, RunStore};
use crate::store::{ActionKey, Catalogue, Remover, Scope, Store, StoreError, Verification, hash_file};

/// So many of a kind are named.
const SHOWN: usize = 50;

/// What is to be verified: parts of the store, and files outside it.
#[derive(Default)]
struct Wanted {
    scope: Scope,
    files: Vec<Checked>,
}

/// A file outside the store.
struct Checked {
    path: Utf8PathBuf,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Intact,
    Altered,
    Missing,
    /// Another artifact, or figure, lies where it was published.
    Replaced,
    /// It was not published, and has the bytes of this object.
    Same(Digest),
    /// It was not published from here; its seal fits.
    Sealed,
    /// The same, but the store has other bytes of the action that it names.
    SealedOtherwise,
    /// It was not published from here, and its seal does not fit.
    SealBroken,
}

impl State {
    fn is_good(self) -> bool {
        matches!(self, Self::Intact | Self::Same(_) | Self::Sealed)
    }
}

impl Checked {
    /// What has become of it, in a line.
    fn told(&self) -> String {
        let path = session::short(&self.path);
        match self.state {
            State::Intact => format!("`{path}` is as it was published\n"),
            State::Same(object) => format!(
                "`{path}` has the bytes of object {}; nothing tells that it was published\n",
                object.short()
            ),
            State::Sealed => format!(
                "`{path}` has a seal that fits its content; it was not published from this store, which has nothing to hold it against\n"
            ),
            State::SealedOtherwise => format!(
                "`{path}` has a seal that fits, but not the bytes that the store has of the action that it names: it was changed and sealed again, or computed elsewhere\n"
            ),
            State::Replaced => format!(
                "`{path}` is another artifact, or figure, than was published there; the next run that publishes there replaces it\n"
            ),
            State::SealBroken => {
                format!("`{path}` was altered since Provenir made it: its seal does not fit its content\n")
            }
            State::Altered => format!(
                "`{path}` was altered since it was published; the next run that publishes there restores it and keeps this one as `{}.orig`\n",
                path.file_name().unwrap_or_default()
            ),
            State::Missing => {
                format!("`{path}` was published and is gone; the next run that publishes there restores it\n")
            }
        }
    }
}

/// `verify`.
pub(super) fn verify(arguments: &VerifyArguments) -> Result<Exit, CommandError> {
    let store = session::existing(&arguments.store)?;
    let mut wanted = Wanted::default();
    for what in &arguments.what {
        wanted.add(&store, what)?;
    }
    let is_partial = !arguments.what.is_empty();
    let verification = store.verify(is_partial.then_some(&wanted.scope))?;
    let history = History::read(store.layout())?;
    if arguments.discard {
        discard(&store, &verification)?;
    }
    let events = if is_partial {
        Vec::new()
    } else {
        flawed_events(&history)
    };
    let report = Report {
        events: &events,
        store: &store,
        verification: &verification,
        files: &wanted.files,
        history: &history,
        published: fs_err::read_dir(store.layout().published()).map_or(0, Iterator::count),
        discarded: arguments.discard,
        is_partial,
    };
    if arguments.json {
        let text = serde_json::to_string_pretty(&report.json()).map_err(std::io::Error::from)?;
        terminal::print(&format!("{text}\n"))?;
    } else {
        terminal::print(&report.text())?;
    }
    let altered = wanted.files.iter().any(|file| !file.state.is_good());
    Ok(if report.is_bad() || altered {
        Exit::StageFailed
    } else {
        Exit::Done
    })
}

/// Takes what is damaged out of the store, objects and results that cannot be understood, and notes that.
fn discard(store: &Store, found: &Verification) -> Result<(), CommandError> {
    let mut damaged = Damaged::default();
    let lengths = Catalogue::read(store.layout())?.lengths();
    for object in found.damaged.keys() {
        if store.discard_if_damaged(object, lengths.get(object).copied())? {
            damaged.objects.push(*object);
        }
    }
    let mut remover = Remover::new(store);
    for unreadable in &found.unreadable {
        if let Some(key) = &unreadable.key
            && remover.unreadable(key, &unreadable.path)?
        {
            damaged.results.push(*key);
        }
    }
    RunStore::new(store.layout()).note_discarded(&damaged)?;
    Ok(())
}

impl Wanted {
    fn add(&mut self, store: &Store, what: &str) -> Result<(), CommandError> {
        let path = session::published_file(store, Utf8Path::new(what))?;
        match fs_err::metadata(&path) {
            Ok(metadata) if metadata.is_file() => return self.add_file(store, &path),
            Ok(_) => {
                return Err(CommandError::request(format!("`{what}` is not a file"))
                    .help("name files; without an argument, `provenir verify` checks the whole store"));
            }
            Err(_) if store.publication(&path)?.is_some() => {
                self.files.push(Checked {
                    path,
                    state: State::Missing,
                });
                return Ok(());
            }
            Err(_) => {}
        }
        let Some(beginning) = Beginning::parse(what) else {
            let error = CommandError::request(format!(
                "`{what}` is neither a file nor the beginning of a digest"
            ));
            return Err(error.help(
                "`provenir path CELL` prints where a cell's artifact is; without an argument, the whole store is checked",
            ));
        };
        match beginning.name(store.layout())? {
            Some(Name::Object(object)) => {
                self.scope.objects.insert(object);
            }
            Some(Name::Action(key)) => {
                self.scope.results.insert(key);
            }
            None => return Err(beginning.unknown(store.layout())),
        }
        Ok(())
    }

    fn add_file(&mut self, store: &Store, path: &Utf8Path) -> Result<(), CommandError> {
        let failed = || StoreError::io("cannot read the file");
        let canonical = path.canonicalize_utf8().map_err(failed())?;
        if let Ok(objects) = store.layout().objects().canonicalize_utf8()
            && canonical.starts_with(&objects)
            && let Some(Ok(object)) = canonical.file_name().map(str::parse::<Digest>)
        {
            self.scope.objects.insert(object);
            return Ok(());
        }
        let (found, _) = hash_file(path).map_err(failed())?;
        let state = match store.publication(path)? {
            Some(publication) if publication.object == found => State::Intact,
            Some(_) if store.has_bytes(&found) => State::Replaced,
            Some(_) => State::Altered,
            None if store.layout().object(&found).is_file() => {
                self.scope.objects.insert(found);
                State::Same(found)
            }
            None => sealed(store, path)?,
        };
        self.files.push(Checked {
            path: path.to_owned(),
            state,
        });
        Ok(())
    }
}

/// What a figure that was not published from here says by its own seal, held against what the store has of its action.
fn sealed(store: &Store, path: &Utf8Path) -> Result<State, CommandError> {
    let origin = FileOrigin::of(path, store, &Graph::read(store)?)?;
    match origin.condition {
        Condition::AsMade => return Ok(State::Same(origin.object)),
        Condition::Sealed => return Ok(State::Sealed),
        Condition::SealedOtherwise => return Ok(State::SealedOtherwise),
        Condition::Altered => return Ok(State::SealBroken),
        Condition::Unknown => {}
    }
    Err(CommandError::request(format!(
        "nothing is known of `{}`: it was not published from this store, and carries no seal of Provenir",
        session::short(path)
    ))
    .help("`--cache` or PROVENIR_CACHE names another store"))
}

/// The runs whose lists of events cannot be understood, of those whose records can.
fn flawed_events(history: &History) -> Vec<FlawedRun> {
    let runs = history.runs.iter().map(|run| &run.stored);
    let flawed = runs.filter_map(|run| {
        let error = run.executions().err()?;
        Some(FlawedRun {
            run: run.clone(),
            error,
        })
    });
    flawed.collect()
}

struct Report<'a> {
    /// Runs whose events alone cannot be understood.
    events: &'a [FlawedRun],
    store: &'a Store,
    verification: &'a Verification,
    files: &'a [Checked],
    history: &'a History,
    /// How many published files the store knows.
    published: usize,
    discarded: bool,
    is_partial: bool,
}

impl Report<'_> {
    /// Runs whose records cannot be understood, where all of the store was asked for.
    fn records(&self) -> &[FlawedRun] {
        if self.is_partial {
            &[]
        } else {
            &self.history.flawed
        }
    }

    fn is_bad(&self) -> bool {
        self.verification.is_bad() || !self.records().is_empty() || !self.events.is_empty()
    }

    fn text(&self) -> String {
        let found = self.verification;
        let mut text = String::new();
        if !self.is_partial || found.objects + found.results > 0 || found.is_bad() {
            let _ = writeln!(
                text,
                "store {}: read {} ({}) and {}",
                session::short(self.store.layout().root()),
                count(found.objects, "object"),
                bytes(found.bytes),
                count(found.results, "result")
            );
        }
        if !self.is_partial && self.published > 0 {
            let _ = writeln!(
                text,
                "{} outside it: not read (`provenir verify FILE` looks at one, `provenir plan` at those of a manifest)",
                count(self.published, "published file")
            );
        }
        for file in self.files {
            text.push_str(&file.told());
        }
        let of = |makers: &[ActionKey]| {
            let names: BTreeSet<String> = makers.iter().map(|key| self.history.name(key)).collect();
            if names.is_empty() {
                "of no result".to_owned()
            } else {
                format!("of {}", names.into_iter().collect::<Vec<_>>().join(", "))
            }
        };
        for (title, objects) in [
            (
                "damaged: the bytes are not those that were stored",
                &found.damaged,
            ),
            (
                "missing: a result names an object that is not there",
                &found.missing,
            ),
            (
                "gone: nothing computes them again, because they are second results, or made from what is gone, too; nothing that counts needs them",
                &found.gone,
            ),
        ] {
            let objects = objects.iter();
            let lines = objects.map(|(object, makers)| format!("object {}, {}", object.short(), of(makers)));
            section(&mut text, title, lines);
        }
        section(
            &mut text,
            "unreadable",
            found.unreadable.iter().map(|unreadable| {
                let of = unreadable.key.map_or_else(String::new, |key| {
                    format!(", the result of {}", self.history.name(&key))
                });
                format!("{}{of}: {}", session::short(&unreadable.path), unreadable.reason)
            }),
        );
        section(
            &mut text,
            "records of runs that cannot be understood: other commands go on without those runs, and `gc` removes nothing",
            self.records()
                .iter()
                .map(|flawed| format!("{}: {}", session::short(flawed.run.folder()), flawed.reason())),
        );
        section(
            &mut text,
            "lists of a run's events that cannot be understood: what the run computed is known all the same",
            self.events
                .iter()
                .map(|flawed| format!("{}: {}", session::short(flawed.run.folder()), flawed.reason())),
        );
        section(
            &mut text,
            "pins and notes of published copies that cannot be understood: `gc` removes nothing while they are there",
            found
                .notes
                .iter()
                .map(|note| format!("{}: {}", session::short(&note.path), note.reason)),
        );
        section(
            &mut text,
            "orphaned: no result names them, which harms nothing (a command was killed before its result was committed, or the result was computed again)",
            found
                .orphaned
                .iter()
                .map(|(object, size)| format!("object {}, {}", object.short(), bytes(*size))),
        );
        for step in self.steps() {
            let _ = write!(text, "\nnext: {step}");
        }
        if !self.is_bad() && self.files.iter().all(|file| file.state.is_good()) {
            // Behind what is told and is not wrong, a line of its own.
            let is_apart = !text.ends_with('\n') || text.contains("\n\n");
            let line_break = if is_apart && !text.is_empty() { "\n" } else { "" };
            let _ = writeln!(text, "{line_break}nothing is wrong");
        } else if !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }

    /// What to do next.
    fn steps(&self) -> Vec<&'static str> {
        let found = self.verification;
        let mut steps = Vec::new();
        let seconds = found.damaged_seconds.len();
        if seconds > 0 {
            steps.push(if self.discarded {
                "damaged objects that only second results name were taken out of the store; nothing computes those again"
            } else {
                "`provenir verify --discard` takes damaged objects that only second results name out of the store; nothing computes those again"
            });
        }
        if found.damaged.len() > seconds {
            steps.push(if self.discarded {
                "the damaged objects were taken out of the store; the next `provenir run` that needs them computes them again"
            } else {
                "`provenir verify --discard` takes the damaged objects out of the store; the next `provenir run` that needs them computes them again"
            });
        }
        if !found.missing.is_empty() {
            steps.push("the next `provenir run` that needs a missing object computes it again");
        }
        if found.unreadable.iter().any(|unreadable| unreadable.key.is_some()) {
            steps.push(if self.discarded {
                "the results that cannot be read were taken out of the store; the next `provenir run` that needs them computes them again"
            } else {
                "`provenir verify --discard` takes the results that cannot be read out of the store; the next `provenir run` that needs them computes them again"
            });
        }
        if found.unreadable.iter().any(|unreadable| unreadable.key.is_none()) {
            steps.push("files that are none of the store's can be moved away");
        }
        let (newer, flawed): (Vec<_>, Vec<_>) = found
            .notes
            .iter()
            .partition(|note| self.store.is_newer_note(&note.path));
        if !flawed.is_empty() {
            steps.push(if newer.is_empty() {
                "remove those notes: a cell has to be pinned again, and a published copy is noted again by the next `provenir run`"
            } else {
                "remove the notes that cannot be understood, and not those of a newer format: a cell has to be pinned again, and a published copy is noted again by the next `provenir run`"
            });
        }
        if !newer.is_empty() {
            steps.push("leave the notes that a newer version of Provenir wrote: that version reads them");
        }
        if self.records().iter().any(FlawedRun::is_newer) {
            steps.push("the newer version of Provenir reads the records that it wrote");
        }
        if self.records().iter().any(|flawed| !flawed.is_newer()) {
            steps.push("move the folder of a run with damaged records out of the store: no result is lost, only that run's history");
        }
        if !self.events.is_empty() {
            steps.push(
                "move damaged `events.jsonl` out of the store: `log` and exports lack what only they told",
            );
        }
        if !found.orphaned.is_empty() {
            steps.push("`provenir gc` says what could be removed, orphaned objects included");
        }
        steps
    }

    fn json(&self) -> Value {
        let found = self.verification;
        let flaw = |(object, makers): (&Digest, &Vec<ActionKey>)| {
            json!({
                "object": object.to_string(),
                "actions": makers.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "cells": makers.iter().filter_map(|key| self.history.cell(key)).collect::<BTreeSet<_>>(),
            })
        };
        let files = self.files.iter().map(|file| {
            let state = match file.state {
                State::Intact => "intact",
                State::Altered => "altered",
                State::Missing => "missing",
                State::Same(_) => "same-bytes",
                State::Sealed => "sealed",
                State::SealedOtherwise => "sealed-otherwise",
                State::Replaced => "replaced",
                State::SealBroken => "seal-broken",
            };
            json!({ "path": file.path, "state": state })
        });
        json!({
            "store": self.store.layout().root(),
            "objects": found.objects,
            "bytes": found.bytes,
            "results": found.results,
            "damaged": found.damaged.iter().map(flaw).collect::<Vec<_>>(),
            "discarded": self.discarded,
            "missing": found.missing.iter().map(flaw).collect::<Vec<_>>(),
            "gone": found.gone.iter().map(flaw).collect::<Vec<_>>(),
            "unreadable": found.unreadable.iter()
                .map(|unreadable| json!({
                    "path": unreadable.path,
                    "action": unreadable.key.map(|key| key.to_string()),
                    "cell": unreadable.key.and_then(|key| self.history.cell(&key)),
                    "reason": unreadable.reason,
                })).collect::<Vec<_>>(),
            "notes": found.notes.iter()
                .map(|note| json!({ "path": note.path, "reason": note.reason })).collect::<Vec<_>>(),
            "records": self.records().iter()
                .map(|flawed| json!({
                    "run": flawed.run.id,
                    "path": flawed.run.folder(),
                    "reason": flawed.reason(),
                    "newer": flawed.is_newer(),
                })).collect::<Vec<_>>(),
            "events": self.events.iter()
                .map(|flawed| json!({ "run": flawed.run.id, "path": flawed.run.folder(), "reason": flawed.reason() }))
                .collect::<Vec<_>>(),
            "orphaned": found.orphaned.iter()
                .map(|(object, size)| json!({ "object": object.to_string(), "bytes": size })).collect::<Vec<_>>(),
            "files": files.collect::<Vec<_>>(),
        })
    }
}

fn section(text: &mut String, title: &str, lines: impl ExactSizeIterator<Item = String>) {
    let total = lines.len();
    if total == 0 {
        return;
    }
    let _ = writeln!(text, "\n{title}");
    for line in lines.take(SHOWN) {
        let _ = writeln!(text, "  {line}");
    }
    if total > SHOWN {
        let _ = writeln!(text, "  and {} more", total - SHOWN);
    }
}

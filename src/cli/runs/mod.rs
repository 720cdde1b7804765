//! `runs`: what was run, with tags and notes; and runs as people name them.
//!
//! * `diff`: what differs between two runs.

mod diff;

use std::collections::BTreeSet;
use std::fmt::Write;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::arguments::{OverrideArguments, RunsAction, RunsArguments, StoreArguments};
use super::describe::cut;
use super::error::{CommandError, Exit};
use super::{session, terminal};
use crate::display::{counts, duration, grouped};
use crate::exec::Summary;
use crate::manifest::{alike, apart};
use crate::record::{Annotation, OutcomeFile, Record, RunFile, RunStore, StoredRun};
use crate::store::{Layout, Liveness, Store, StoreError};

pub(super) use diff::diff;

/// What names the latest run.
const LAST: &str = "last";
/// Longest tag.
const TAG: usize = 64;
/// Longest note.
const NOTE: usize = 4096;

/// The run that a text means: the beginning of its name, its last four characters, a tag, or `last`. `None` where no
/// run answers to it. A run that is named and cannot be understood is an error; where it is not named, it is passed over.
pub(super) fn find(layout: &Layout, text: &str) -> Result<Option<StoredRun>, CommandError> {
    let store = RunStore::new(layout);
    if text == LAST {
        let (latest, flawed) = store.latest(None)?;
        session::warn_of_flawed(&flawed);
        return Ok(latest.map(|latest| latest.run));
    }
    let mut found = store.runs()?;
    found.retain(|run| run.id.answers_to(text));
    if found.is_empty() {
        let (tagged, flawed) = store.read(|run| {
            let is_tagged = run.annotation()?.tags.contains(text);
            Ok(is_tagged.then_some(run))
        })?;
        session::warn_of_flawed(&flawed);
        found.extend(tagged.into_iter().flatten());
    }
    if found.len() > 1 {
        const SHOWN: usize = 12;
        let mut names: Vec<String> = found.iter().take(SHOWN).map(|run| run.id.to_string()).collect();
        if found.len() > SHOWN {
            names.push(format!("and {} more", found.len() - SHOWN));
        }
        let error = CommandError::request(format!("`{text}` means {} runs; name one", found.len()));
        return Err(error.help(names.join(", ")));
    }
    let found = found.pop();
    if let Some(run) = &found {
        run.check()?;
    }
    Ok(found)
}

/// The run that a text means; there must be one.
fn wanted(layout: &Layout, text: &str) -> Result<StoredRun, CommandError> {
    find(layout, text)?.ok_or_else(|| {
        CommandError::request(format!(
            "no recorded run of the store `{}` answers to `{text}`",
            session::short(layout.root())
        ))
        .help("`provenir runs` lists them; a run is named by the beginning of its name, its last four characters, a tag, or `last`")
    })
}

/// What a run was of: its manifest, with what changed that.
pub(super) fn asked(head: &RunFile) -> String {
    let options = OverrideArguments::recorded(&head.command);
    let options = options.map_or_else(String::new, |options| options.suffix(&[]));
    format!("`{}`{options}", session::short(&head.manifest))
}

/// How a run ended, or that it has not.
pub(super) fn state(summary: Option<&Summary>, liveness: Liveness) -> &'static str {
    match summary {
        Some(summary) if summary.interrupted => "interrupted",
        Some(summary) if summary.halted.is_some() => "stopped by a failure",
        Some(summary) if summary.is_incomplete() => "failed in part",
        Some(_) => "done",
        None => match liveness {
            Liveness::Alive => "running",
            Liveness::Unknown => "no end recorded: running elsewhere, or killed",
            Liveness::Dead => "no end recorded: killed, or the disk failed",
        },
    }
}

/// `runs`.
pub(super) fn runs(arguments: &RunsArguments) -> Result<Exit, CommandError> {
    match &arguments.action {
        None => list(arguments),
        Some(RunsAction::Tag {
            run,
            tags,
            remove,
            store,
        }) => tag(run, tags, *remove, store),
        Some(RunsAction::Note { run, text, store }) => note(run, text, store),
    }
}

/// A run as the list shows it.
struct Listed {
    run: StoredRun,
    head: Option<RunFile>,
    outcome: Option<OutcomeFile>,
    annotation: Annotation,
    state: &'static str,
    /// What its records tell of a run whose end is not recorded.
    so_far: Option<Summary>,
}

impl Listed {
    fn read(run: StoredRun) -> Result<Self, StoreError> {
        let outcome = run.outcome()?;
        let liveness = run.liveness()?;
        let head = run.head()?;
        Ok(Self {
            so_far: match &outcome {
                Some(_) => None,
                None => Some(so_far(&run, head.as_ref())?),
            },
            head,
            annotation: run.annotation()?,
            state: state(outcome.as_ref().map(|outcome| &outcome.summary), liveness),
            outcome,
            run,
        })
    }

    fn summary(&self) -> Option<&Summary> {
        self.outcome.as_ref().map(|outcome| &outcome.summary)
    }

    /// What it did, as far as that is recorded.
    fn known(&self) -> Option<&Summary> {
        self.summary().or(self.so_far.as_ref())
    }

    /// How long it took; of a run without an end what is known of that.
    fn time(&self) -> String {
        match (self.summary(), &self.so_far) {
            (Some(summary), _) => duration(summary.seconds),
            (None, Some(so_far)) if so_far.seconds > 0.0 => format!("≥ {}", duration(so_far.seconds)),
            (None, _) => String::new(),
        }
    }
}

/// What the records of a run tell that has not ended, or was killed: its cells, and the time until the last of them was over.
fn so_far(run: &StoredRun, head: Option<&RunFile>) -> Result<Summary, StoreError> {
    let mut summary = Summary::default();
    let mut failed = run.failed_at()?;
    let mut ends: Vec<Timestamp> = failed.values().copied().collect();
    for record in run.records()? {
        match record {
            Record::Executed(executed) => {
                summary.ran += 1;
                failed.remove(&executed.cell);
                let lasted = SignedDuration::try_from_secs_f64(executed.seconds).ok();
                ends.extend(lasted.and_then(|lasted| executed.started.checked_add(lasted).ok()));
            }
            Record::Reused { cells, .. } => summary.reused += cells.len(),
            Record::Failed { .. } => {}
        }
    }
    summary.failed = failed.len();
    if let (Some(head), Some(last)) = (head, ends.into_iter().max()) {
        summary.seconds = last.duration_since(head.started).as_secs_f64().max(0.0);
    }
    Ok(summary)
}

fn list(arguments: &RunsArguments) -> Result<Exit, CommandError> {
    let store = session::existing(&arguments.store)?;
    let manifest = arguments.manifest.as_deref().map(session::absolute).transpose()?;
    let mut shown = Vec::new();
    let mut more = 0;
    let (runs, flawed) = RunStore::new(store.layout()).read(Listed::read)?;
    session::warn_of_flawed(&flawed);
    for listed in runs {
        let head = listed.head.as_ref();
        let fits = arguments
            .tag
            .as_ref()
            .is_none_or(|tag| listed.annotation.tags.contains(tag))
            && arguments
                .pipeline
                .as_ref()
                .is_none_or(|name| head.is_some_and(|head| head.pipeline == *name))
            && manifest
                .as_ref()
                .is_none_or(|manifest| head.is_some_and(|head| head.manifest == *manifest))
            && (!arguments.failed || !matches!(listed.state, "done" | "running"));
        if fits && shown.len() < arguments.limit {
            shown.push(listed);
        } else if fits {
            more += 1;
        }
    }
    if arguments.json {
        let list: Vec<Value> = shown.iter().map(as_json).collect();
        let text = serde_json::to_string_pretty(&list).map_err(std::io::Error::from)?;
        terminal::print(&format!("{text}\n"))?;
        return Ok(Exit::Done);
    }
    if shown.is_empty() {
        terminal::say("no such run is recorded; one that finds nothing to do leaves no record of its own");
        return Ok(Exit::Done);
    }
    terminal::print(&table(&shown))?;
    if more > 0 {
        terminal::say(&format!("{} earlier; `--limit N` shows more", grouped(more)));
    }
    Ok(Exit::Done)
}

fn table(shown: &[Listed]) -> String {
    let header = [
        "run", "pipeline", "manifest", "options", "ended", "cells", "time", "host", "git", "tags", "note",
    ];
    let mut grid = vec![header.map(str::to_owned).to_vec()];
    // What all have in common is not told of each.
    let manifest = |listed: &Listed| listed.head.as_ref().map(|head| head.manifest.clone());
    let host = |listed: &Listed| listed.head.as_ref().map(|head| head.host.name.clone());
    let manifests: BTreeSet<_> = shown.iter().filter_map(manifest).collect();
    let hosts: BTreeSet<_> = shown.iter().filter_map(host).collect();
    for listed in shown {
        let head = listed.head.as_ref();
        let git = head.and_then(|head| head.git.as_ref());
        let mut tags: Vec<&str> = listed.annotation.tags.iter().map(String::as_str).collect();
        if listed.annotation.pinned {
            tags.push("(pinned)");
        }
        grid.push(vec![
            listed.run.id.to_string(),
            head.map_or_else(String::new, |head| head.pipeline.clone()),
            manifest(listed)
                .filter(|_| manifests.len() > 1)
                .map_or_else(String::new, |manifest| session::short(&manifest).into_string()),
            head.map_or_else(String::new, options),
            listed.state.to_owned(),
            listed.known().map_or_else(String::new, counts),
            listed.time(),
            host(listed).filter(|_| hosts.len() > 1).unwrap_or_default(),
            git.map_or_else(String::new, ToString::to_string),
            tags.join(", "),
            listed
                .annotation
                .note
                .as_deref()
                .map_or_else(String::new, |note| cut(&in_a_line(note), 60)),
        ]);
    }
    // A column that says nothing of any run is left out.
    let used: Vec<bool> = (0..header.len())
        .map(|column| grid.iter().skip(1).any(|row| !row[column].is_empty()))
        .collect();
    for row in &mut grid {
        let mut column = 0;
        row.retain(|_| {
            column += 1;
            used[column - 1]
        });
    }
    session::aligned(&grid)
}

/// What changed the manifest for a run; of a command that is no `run` of a manifest, all of it.
fn options(head: &RunFile) -> String {
    match OverrideArguments::recorded(&head.command) {
        Some(options) => options.words().join(" "),
        None => cut(
            &head.command.iter().skip(1).cloned().collect::<Vec<_>>().join(" "),
            60,
        ),
    }
}

fn as_json(listed: &Listed) -> Value {
    let head = listed.head.as_ref();
    json!({
        "run": listed.run.id,
        "pipeline": head.map(|head| &head.pipeline),
        "manifest": head.map(|head| &head.manifest),
        "started": head.map(|head| head.started),
        "ended": listed.outcome.as_ref().map(|outcome| outcome.ended),
        "state": listed.state,
        "summary": listed.summary(),
        "so_far": listed.so_far,
        "command": head.map(|head| &head.command),
        "program": head.map(|head| &head.program),
        "host": head.map(|head| &head.host),
        "git": head.and_then(|head| head.git.as_ref()),
        "tags": listed.annotation.tags,
        "note": listed.annotation.note,
        "pinned": listed.annotation.pinned,
    })
}

fn tag(run: &str, tags: &[String], remove: bool, store: &StoreArguments) -> Result<Exit, CommandError> {
    let store = session::existing(store)?;
    let run = wanted(store.layout(), run)?;
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    for tag in tags {
        if tag == LAST || tag.is_empty() || tag.len() > TAG || !tag.chars().all(is_plain) {
            return Err(
                CommandError::request(format!("`{tag}` cannot be a tag")).help(format!(
                    "a tag is letters, digits, `-`, `_` and `.`, at most {TAG} bytes, and not `{LAST}`"
                )),
            );
        }
    }
    if !remove {
        refuse_alike(store.layout(), tags)?;
    }
    annotate(&store, &run, |annotation| {
        for tag in tags {
            if remove {
                annotation.tags.remove(tag);
            } else {
                annotation.tags.insert(tag.clone());
            }
        }
    })
}

/// A tag that looks like another one that is in use would name a run that nobody means.
fn refuse_alike(layout: &Layout, tags: &[String]) -> Result<(), CommandError> {
    let (annotations, flawed) = RunStore::new(layout).read(|run| run.annotation())?;
    session::warn_of_flawed(&flawed);
    let known: BTreeSet<&str> = annotations
        .iter()
        .flat_map(|annotation| &annotation.tags)
        .map(String::as_str)
        .collect();
    for tag in tags {
        let others = known.iter().copied().chain(tags.iter().map(String::as_str));
        for other in others.filter(|other| other != tag) {
            if !alike([other, tag].into_iter()).is_empty() {
                return Err(
                    CommandError::request(format!("the tag `{tag}` looks like `{other}`")).help(format!(
                        "they differ in {}; take the same, or one that people can tell apart",
                        apart(tag, other)
                    )),
                );
            }
        }
    }
    Ok(())
}

/// A note of several lines as one.
fn in_a_line(note: &str) -> String {
    note.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn note(run: &str, text: &str, store: &StoreArguments) -> Result<Exit, CommandError> {
    let store = session::existing(store)?;
    let run = wanted(store.layout(), run)?;
    if text.len() > NOTE {
        return Err(CommandError::request(format!(
            "a note has at most {} bytes; this one has {}",
            grouped(NOTE),
            grouped(text.len())
        )));
    }
    annotate(&store, &run, |annotation| {
        annotation.note = (!text.is_empty()).then(|| text.to_owned());
    })
}

fn annotate(
    store: &Store,
    run: &StoredRun,
    change: impl FnOnce(&mut Annotation),
) -> Result<Exit, CommandError> {
    run.annotate(store, change)?;
    let annotation = run.annotation()?;
    let mut told = format!("run {}", run.id);
    if !annotation.tags.is_empty() {
        let tags: Vec<&str> = annotation.tags.iter().map(String::as_str).collect();
        let _ = write!(told, ", tagged {}", tags.join(", "));
    }
    if let Some(note) = &annotation.note {
        let _ = write!(told, ": {}", cut(&in_a_line(note), 200));
    }
    terminal::say(&told);
    Ok(Exit::Done)
}

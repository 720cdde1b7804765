use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::arguments::{OverrideArguments, WhyArguments, quoted};
use super::error::{CommandError, Exit};
use super::measure::count;
use super::selector::Selector;
use super::{Edition, session, terminal};
use crate::exec::{Difference, Survey};
use crate::lineage::{
    Change, Explainer, Moment, Reason, SameAction, Upstream, Why, discarded_on, moment as on,
};

/// So many names are given where several cells have one explanation.
const NAMES: usize = 3;
/// So many explanations of changed artifacts of a port are given.
const GROUPS: usize = 8;

/// `why`.
pub(super) fn why(edition: &Edition, arguments: &WhyArguments) -> Result<Exit, CommandError> {
    let selector = Selector::of_cell(&arguments.cell, "a cell is wanted")?;
    let plan = session::plan_with(edition, &arguments.manifest, &arguments.cell)?;
    let store = session::open(&arguments.manifest)?;
    let cells = selector.cells(&plan)?;
    let survey = Survey::take(&plan, &store, &BTreeSet::new())?;
    store.flush();
    let explainer = Explainer::new(&plan, &store, &survey);
    let mut found = Vec::with_capacity(cells.len());
    for cell in cells {
        found.push(explainer.explain(cell)?);
    }
    session::warn_of_flawed(explainer.flawed());
    let text = if arguments.json {
        let text = serde_json::to_string_pretty(&found).map_err(std::io::Error::from)?;
        format!("{text}\n")
    } else {
        let told = found
            .iter()
            .map(|why| (why.cell.clone(), told(why, &arguments.manifest.overrides)));
        let mut text = String::new();
        for (cells, told) in grouped(told) {
            let who = if cells.len() == 1 {
                cells[0].clone()
            } else {
                format!("{} ({}), each", names(&cells), count(cells.len(), "cell"))
            };
            if !text.is_empty() {
                text.push('\n');
            }
            let _ = writeln!(text, "{who}\n{told}");
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
}

/// Puts together what is told alike, in the order in which it is first told.
fn grouped(told: impl Iterator<Item = (String, String)>) -> Vec<(Vec<String>, String)> {
    let mut groups: Vec<(Vec<String>, String)> = Vec::new();
    let mut positions: BTreeMap<String, usize> = BTreeMap::new();
    for (cell, text) in told {
        if let Some(position) = positions.get(&text) {
            groups[*position].0.push(cell);
        } else {
            positions.insert(text.clone(), groups.len());
            groups.push((vec![cell], text));
        }
    }
    groups
}

fn names(cells: &[String]) -> String {
    let shown = cells[..cells.len().min(NAMES)].join(", ");
    if cells.len() > NAMES {
        format!("{shown} and {} more", cells.len() - NAMES)
    } else {
        shown
    }
}

/// What is said of a cell below its name.
fn told(why: &Why, asked: &OverrideArguments) -> String {
    let mut text = String::new();
    if why.reason == Reason::Waits {
        if let Some(since) = &why.since
            && !why.changes.is_empty()
        {
            let _ = writeln!(
                text,
                "  of its own, this changed since {}:",
                compared(since, asked)
            );
            text.push_str(&changes(&why.changes, 4));
        }
        text.push_str("  whether it has to run is known only when these have run:\n");
        let waits = why.waits.iter().map(|wait| {
            let mut told = phrase(wait, 6, asked);
            if let Some(attempt) = &wait.attempt {
                let _ = writeln!(told, "      an earlier attempt {attempt}");
            }
            (wait.cell.clone(), told)
        });
        for (cells, told) in grouped(waits) {
            let _ = write!(text, "    {}: {told}", names(&cells));
        }
    } else {
        let _ = write!(text, "  {}", phrase(why, 4, asked));
        if let Some(attempt) = &why.attempt {
            let _ = writeln!(text, "  an earlier attempt {attempt}");
        }
        if let Some(executor) = &why.executor {
            let _ = writeln!(text, "  {executor}");
        }
        if let Some(time) = why.collected
            && why.reason != Reason::ResultGone
        {
            let _ = writeln!(
                text,
                "  an earlier result of the same was removed by `provenir gc` on {}",
                on(time)
            );
        }
        for second in &why.seconds {
            let _ = writeln!(text, "  {second}");
        }
    }
    let roots = roots(why);
    if !roots.is_empty() {
        text.push_str("  root cause:\n");
        for (told, cells) in roots {
            let cells: Vec<String> = cells.into_iter().collect();
            let _ = writeln!(text, "    {told}, in {}", names(&cells));
        }
    }
    text
}

/// Why a cell has to run, or ran, with what differs below, indented.
fn phrase(why: &Why, indent: usize, asked: &OverrideArguments) -> String {
    let is_compared = matches!(why.reason, Reason::Changed | Reason::New);
    let since = why.since.as_ref().map(|since| {
        if is_compared {
            compared(since, asked)
        } else {
            moment(since)
        }
    });
    let since = since.unwrap_or_default();
    let computed = why.computed.as_ref().map(moment).unwrap_or_default();
    let below = changes(&why.changes, indent);
    let as_cell = match &why.since {
        Some(moment) if moment.cell != why.cell => format!(", as `{}`", moment.cell),
        _ => String::new(),
    };
    if why.up_to_date {
        let alias = match &why.computed {
            Some(moment) if moment.cell != why.cell => format!(" as `{}`", moment.cell),
            _ => String::new(),
        };
        let then = match &why.reason {
            Reason::Changed if below.is_empty() => {
                format!("another action than in {since}, by fields that are not recorded")
            }
            Reason::Changed if why.failed => {
                format!("it ran then, because it had failed in {since}, since which this had changed:")
            }
            Reason::Changed => format!("it ran then, because this had changed since {since}:"),
            Reason::Repeated => format!(
                "it ran then although it was the same action in {since}{as_cell}: it was forced, or its result had been lost; the record does not say which"
            ),
            Reason::Forced => format!(
                "it ran then although it was the same action in {since}{as_cell}, because that was asked for (--force)"
            ),
            Reason::ResultGone => format!(
                "it ran then, because its result, which {since} had{as_cell}, was no longer in the store{}",
                removed(why).unwrap_or_else(|| "; no record says what removed it".to_owned())
            ),
            Reason::Missing(object) => repaired(
                &since,
                &format!(
                    "its artifact {} was not in the store any more{}",
                    object.short(),
                    removed(why).unwrap_or_default()
                ),
            ),
            Reason::Damaged(object) => repaired(
                &since,
                &format!(
                    "its artifact {} was damaged (its bytes were not those that had been stored)",
                    object.short()
                ),
            ),
            Reason::Unreadable => repaired(&since, "its result in the store could not be read"),
            Reason::Unrecorded => "no record says what it was before".to_owned(),
            Reason::UpToDate => {
                return "is up to date; no run recorded here computed it: its result was brought here, or the record was removed\n"
                    .to_owned();
            }
            Reason::New => format!(
                "it ran then, because no earlier run had it; the nearest that had run was `{}` of {since}, from which this differed:",
                why.since.as_ref().map_or("", |moment| moment.cell.as_str())
            ),
            _ => "it ran then, because no earlier run had it".to_owned(),
        };
        return format!("is up to date: {computed} computed it{alias}\n  {then}\n{below}");
    }
    let told = match &why.reason {
        Reason::Changed if why.failed => {
            format!("has to run, because it failed in {since}, since which this changed:")
        }
        Reason::Changed => format!("has to run, because this changed since {since}:"),
        Reason::New => format!(
            "has to run, because no run has finished it yet; the nearest that did run is `{}` of {since}, from which this differs:",
            why.since.as_ref().map_or("", |moment| moment.cell.as_str())
        ),
        Reason::NeverRun => "has to run, because no run has finished it yet".to_owned(),
        Reason::Forced => "runs, because that was asked for (--force)".to_owned(),
        Reason::ResultGone => format!(
            "has to run, because its result, which {since} had{as_cell}, is no longer in the store{}",
            removed(why).unwrap_or_else(|| "; no record says what removed it".to_owned())
        ),
        Reason::Unreadable => "has to run, because its result in the store cannot be read".to_owned(),
        Reason::Missing(object) => format!(
            "has to run, because its artifact {} is not in the store any more{}",
            object.short(),
            removed(why).unwrap_or_default()
        ),
        Reason::Damaged(object) => format!(
            "has to run, because its artifact {} is damaged: its bytes are not those that were stored",
            object.short()
        ),
        Reason::Unrecorded => format!(
            "has to run, because it is another action than in {since}; what it was then, no record says"
        ),
        Reason::Repeated | Reason::UpToDate | Reason::Waits => String::new(),
    };
    format!("{told}\n{below}")
}

/// Why an action was executed again, in words that "because" precedes.
fn again(reason: &Reason) -> Option<String> {
    Some(match reason {
        Reason::Missing(object) => format!("its artifact {} was not in the store any more", object.short()),
        Reason::Damaged(object) => format!("its artifact {} was damaged", object.short()),
        Reason::Unreadable => "its result could not be read".to_owned(),
        Reason::ResultGone => "its result was not in the store any more".to_owned(),
        Reason::Forced => "that was asked for (--force)".to_owned(),
        _ => return None,
    })
}

/// What took out the result that a cell lacks, or lacked, where that is recorded.
fn removed(why: &Why) -> Option<String> {
    let had = if why.up_to_date { "had " } else { "" };
    let collected = |time| format!("`provenir gc` {had}removed it on {}", on(time));
    let told = match why.reason {
        Reason::Missing(_) => why.discarded.map(discarded_on),
        _ => why.discarded.map(discarded_on).or(why.collected.map(collected)),
    };
    told.map(|told| format!(": {told}"))
}

/// That a cell ran once more because of what had become of its result.
fn repaired(since: &str, flaw: &str) -> String {
    let had = if since.is_empty() {
        String::new()
    } else {
        format!("; {since} had it")
    };
    format!("it ran then, because {flaw}{had}")
}

/// A run that is compared with: with what changed the manifest for it, where that is something else than is asked for now.
fn compared(run: &Moment, asked: &OverrideArguments) -> String {
    let options = OverrideArguments::recorded(&run.command).filter(|options| options != asked);
    let options = options.map(|options| options.suffix(&[])).unwrap_or_default();
    format!("{}{options}", moment(run))
}

fn moment(moment: &Moment) -> String {
    match moment.time {
        Some(time) => format!("run {} ({})", moment.run, on(time)),
        None => format!("run {}", moment.run),
    }
}

fn changes(changes: &[Change], indent: usize) -> String {
    let mut text = String::new();
    let space = " ".repeat(indent);
    for change in changes {
        let _ = writeln!(text, "{space}{:#}", change.difference);
        let upstream = change.upstream.iter().map(|upstream| {
            let from = match (&upstream.cell, &upstream.was) {
                (Some(cell), Some(was)) if !upstream.rewired => format!("{was} → {cell}"),
                (Some(cell), _) => cell.clone(),
                (None, _) => String::new(),
            };
            (from, upstream_told(upstream, indent + 4))
        });
        let groups = grouped(upstream);
        for (cells, told) in groups.iter().take(GROUPS) {
            if cells[0].is_empty() {
                let _ = writeln!(text, "{space}  {told}");
            } else {
                let _ = writeln!(text, "{space}  from {}{told}", names(cells));
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        let more = change.more
            + groups
                .iter()
                .skip(GROUPS)
                .map(|(cells, _)| cells.len())
                .sum::<usize>();
        if more > 0 {
            let _ = writeln!(text, "{space}  and {more} more changed (`--json` tells of each)");
        }
    }
    text
}

fn upstream_told(upstream: &Upstream, indent: usize) -> String {
    let before = match &upstream.was {
        Some(was) if upstream.rewired => format!(" instead of {was}"),
        _ => String::new(),
    };
    if upstream.told_before {
        return format!("{before}, as told above");
    }
    if let Some(told) = executed_again(upstream) {
        return format!(", which {told}");
    }
    if upstream.changes.is_empty() {
        return match upstream.cell {
            Some(_) if upstream.rewired => before,
            Some(_) => ", of which no record says what it was before".to_owned(),
            None => "no record says where it comes from".to_owned(),
        };
    }
    let because = if upstream.rewired {
        "and those differ:"
    } else {
        "because this changed:"
    };
    format!("{before}, {because}\n{}", changes(&upstream.changes, indent))
}

/// How the same action came to give something else, in words that go on after the cell.
fn executed_again(upstream: &Upstream) -> Option<String> {
    let because = upstream.again.as_ref().and_then(again);
    Some(match (upstream.same_action?, because) {
        (SameAction::Measured, Some(because)) => format!("was measured again, because {because}"),
        (SameAction::Measured, None) => {
            "was measured again: it is volatile, and nothing of it changed".to_owned()
        }
        (SameAction::Diverged, because) => {
            let again = because.map_or_else(String::new, |because| {
                format!("was executed again, because {because}, and ")
            });
            format!("{again}gave something else although nothing of it changed: its result is not repeatable")
        }
    })
}

/// What lies at the bottom of an explanation that has more than one level: each cause with the cells that it is in.
fn roots(why: &Why) -> BTreeMap<String, BTreeSet<String>> {
    type Roots = BTreeMap<String, BTreeSet<String>>;
    fn add(roots: &mut Roots, told: String, cell: &str) {
        roots.entry(told).or_default().insert(cell.to_owned());
    }
    fn collect(cell: &str, changes: &[Change], roots: &mut Roots) {
        for change in changes {
            let mut is_root = true;
            for upstream in &change.upstream {
                if let (true, Difference::Input { port, .. }) = (upstream.rewired, &change.difference) {
                    let (now, was) = (upstream.cell.as_deref(), upstream.was.as_deref());
                    let (now, was) = (now.unwrap_or_default(), was.unwrap_or_default());
                    add(
                        roots,
                        format!("input {port} comes from {now} instead of {was}"),
                        cell,
                    );
                    is_root = false;
                } else if upstream.told_before {
                    is_root = false;
                } else if let Some(told) = executed_again(upstream) {
                    add(roots, told, upstream.cell.as_deref().unwrap_or(cell));
                    is_root = false;
                } else if !upstream.changes.is_empty() {
                    is_root = false;
                    collect(upstream.cell.as_deref().unwrap_or(cell), &upstream.changes, roots);
                }
            }
            if change.unfollowed {
                let told = format!(
                    "{}, the causes of which are too far up: `provenir why {}` goes on from there",
                    change.difference,
                    quoted(cell)
                );
                add(roots, told, cell);
            } else if is_root {
                add(roots, change.difference.to_string(), cell);
            } else if let Some(gathered) = change.difference.of_gathered() {
                add(roots, gathered.to_string(), cell);
            }
        }
    }
    let has_levels = |changes: &[Change]| {
        changes
            .iter()
            .flat_map(|change| &change.upstream)
            .any(|upstream| upstream.rewired || !upstream.changes.is_empty())
    };
    let mut roots = BTreeMap::new();
    if has_levels(&why.changes) || why.waits.iter().any(|wait| has_levels(&wait.changes)) {
        collect(&why.cell, &why.changes, &mut roots);
        for wait in &why.waits {
            collect(&wait.cell, &wait.changes, &mut roots);
        }
    }
    roots
}

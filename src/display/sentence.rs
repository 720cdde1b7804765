//! What events say, in words.

use std::fmt::Write;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::protocol::{Level, Progress};

use crate::exec::{Event, Failure, Summary};
use crate::number::{grouped, grouped_u64};
use crate::store::{Copied, LEASE, Outcome};

/// So many published files are named at the end of a run.
const SHOWN: usize = 20;

/// What an event says to a person who only wants to know what is over or needs attention: `None` where it is neither.
pub(super) fn sentence(event: &Event<'_>) -> Option<String> {
    let told = match event {
        Event::RunStarted {
            pipeline,
            cells: count,
            cached,
        } if cached < count => {
            format!("{pipeline}: {}, {} up to date", cells(*count), grouped(*cached))
        }
        Event::AuditStarted { cells: count } => format!("auditing {}", cells(*count)),
        Event::CellFinished {
            cell,
            seconds,
            outcome,
            ..
        } => {
            let finished = format!("finished {cell} in {}", duration(*seconds));
            match outcome {
                Outcome::New | Outcome::Same => finished,
                Outcome::Measured { .. } => {
                    format!("{finished}; what it measured is kept beside the first measurement, which stays")
                }
                Outcome::Diverged { .. } | Outcome::Replaced { .. } => {
                    let warning = urgent(event).unwrap_or_default();
                    format!("{finished}\n{warning}")
                }
            }
        }
        Event::CellLog {
            cell,
            level: Level::Notice,
            message,
        } => format!("{cell}: {message}"),
        Event::CellAwaited { cell, owner, .. } if owner.is_unreadable() => format!(
            "waiting for {cell}: a claim that cannot be read stands in the way; it is taken over when it has not changed for {}",
            duration(LEASE.as_secs_f64())
        ),
        Event::CellAwaited { cell, owner, .. } => {
            format!(
                "waiting for {cell}, which process {} on {} executes",
                owner.pid, owner.host
            )
        }
        Event::CellReused {
            cell, awaited: true, ..
        } => format!("arrived: {cell}"),
        Event::CellLost { cell, object } => format!(
            "warning: the artifact {} of {cell} was removed from the store meanwhile; the cell runs again",
            object.short()
        ),
        Event::CellRepairing { cell, reader, object } => format!(
            "warning: the artifact {} is damaged; {cell}, which made it, runs again, and then {reader}, which was to read it",
            object.short()
        ),
        _ => return urgent(event),
    };
    Some(told)
}

/// What an event says to a person who wants to hear of trouble only.
pub(super) fn urgent(event: &Event<'_>) -> Option<String> {
    let told = match event {
        Event::CellLog {
            cell,
            level: Level::Warning,
            message,
        } => format!("warning: {cell}: {message}"),
        Event::WorkerLost {
            cell,
            reason,
            log,
            again: true,
            ..
        } => {
            let place = log.map_or_else(String::new, |log| format!(" (log: {})", shortest(log)));
            format!(
                "warning: the worker that was starting for {cell} {reason}; another one is started{place}"
            )
        }
        Event::CellFinished {
            cell,
            outcome: Outcome::Diverged { port, .. },
            ..
        } => format!(
            "warning: the result of {cell} differs at `{port}` from the one in the store, which stays; this one is kept beside it"
        ),
        Event::CellFinished {
            cell,
            outcome: Outcome::Replaced { port, measured: true },
            ..
        } => format!(
            "warning: the store has lost artifacts of {cell}; what it measured now takes the place of what it had measured (output `{port}`)"
        ),
        Event::CellFinished {
            cell,
            outcome: Outcome::Replaced {
                port,
                measured: false,
            },
            ..
        } => format!(
            "warning: the result of {cell} differs at `{port}` from the earlier one, whose artifacts are gone; it takes its place"
        ),
        Event::CellDamaged { cell, object } => format!(
            "warning: the artifact {} of {cell} is not what was stored: it is taken out of the store, and the cell runs again",
            object.short()
        ),
        Event::ResultDamaged { cell, path, .. } => format!(
            "warning: the result of {cell} in the store cannot be read: `{}` is damaged; the cell runs again",
            shortest(path)
        ),
        Event::CellFailed {
            cell,
            failure,
            seconds,
            log,
            ..
        } => {
            let mut told = failed(&format!("{cell} failed after {}", duration(*seconds)), failure);
            if let Some(place) = cell.place() {
                let _ = write!(told, "\n  stage: {place}");
            }
            if let Some(log) = log {
                let _ = write!(
                    told,
                    "
  log: {}",
                    shortest(log)
                );
            }
            told
        }
        Event::CellRetried {
            cell,
            failure,
            attempt,
            attempts,
            seconds,
            ..
        } => format!(
            "warning: {cell} failed after {} (attempt {attempt} of {attempts}) and is executed once more: {}",
            duration(*seconds),
            failure.message
        ),
        // Those that were not begun are counted at the end.
        Event::CellCancelled { cell, begun: true } => format!("stopped: {cell}"),
        Event::RunHalted { failure } => failed("the run stops", failure),
        Event::Published {
            path,
            copied,
            kept,
            taken_from,
            ..
        } => published(shortest(path), *copied, *kept, *taken_from)?,
        Event::NotPublished { path, failure, .. } => {
            failed(&format!("cannot publish `{}`", shortest(path)), failure)
        }
        Event::Interrupted => "stopping: finished cells are kept; interrupt again to stop at once".to_owned(),
        _ => return None,
    };
    Some(told)
}

/// How a run ended, with the published files that are in their places, also where nothing ran.
pub(super) fn ending(summary: &Summary, published: &[Utf8PathBuf]) -> String {
    let mut lines = Vec::new();
    if summary.is_noop() {
        let mut restored = match summary.published {
            0 => String::new(),
            1 => ", 1 published file written".to_owned(),
            count => format!(", {} published files written", grouped(count)),
        };
        if summary.unpublished > 0 {
            let _ = write!(restored, ", {} not published", grouped(summary.unpublished));
        }
        lines.push(format!(
            "nothing to run: {} up to date{restored} ({})",
            cells(summary.reused),
            duration(summary.seconds)
        ));
    } else {
        lines.push(format!("{} in {}", counts(summary), duration(summary.seconds)));
    }
    if !published.is_empty() {
        lines.push("published:".to_owned());
        let shown = published.iter().take(SHOWN);
        lines.extend(shown.map(|path| format!("  {}", shortest(path))));
        if published.len() > SHOWN {
            lines.push(format!("  and {} more", grouped(published.len() - SHOWN)));
        }
    }
    lines.join("\n")
}

/// What became of a run's cells: `3 cells executed, 4 reused, 1 failed`.
pub(crate) fn counts(summary: &Summary) -> String {
    let mut counts = vec![format!("{} executed", cells(summary.ran))];
    for (count, what) in [
        (summary.reused, "reused"),
        (summary.failed, "failed"),
        (summary.blocked, "blocked"),
        (summary.cancelled, "not run"),
        (summary.diverged, "diverged"),
        (summary.unpublished, "not published"),
    ] {
        if count > 0 {
            counts.push(format!("{} {what}", grouped(count)));
        }
    }
    counts.join(", ")
}

/// A running cell's progress: `12/60 epochs, loss 0.0123`.
pub(super) fn progress(progress: &Progress) -> String {
    let mut told = match progress.total {
        Some(total) => format!(
            "{}/{} {}",
            grouped_u64(progress.done),
            grouped_u64(total),
            progress.unit
        ),
        None => format!("{} {}", grouped_u64(progress.done), progress.unit),
    };
    for (name, value) in &progress.metrics {
        let _ = write!(told, ", {name} {}", significant(*value));
    }
    told
}

/// Time in the largest units that matter: `0.08 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn duration(seconds: f64) -> String {
    // Not `max`: it may give on the sign of a zero, which the sum of nothing has.
    let seconds = if seconds > 0.0 { seconds } else { 0.0 };
    // Records may say anything; the conversion stops at the greatest whole number.
    let whole = seconds as u64;
    match whole {
        0..=9 => format!("{seconds:.2} s"),
        10..=59 => format!("{whole} s"),
        60..=3599 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// What failed, and what is known of it.
pub(crate) fn failed(what: &str, failure: &Failure) -> String {
    let attempt = failure.attempt;
    let attempt = attempt.map_or_else(String::new, |attempt| format!(" ({attempt})"));
    let mut told = format!("error: {what}{attempt}: {}", failure.message);
    if !failure.tail.is_empty() {
        told.push_str("\n  the last lines of its log:");
        for line in &failure.tail {
            let _ = write!(told, "\n  | {line}");
        }
    }
    if let Some(help) = &failure.help {
        let _ = write!(told, "\n  help: {help}");
    }
    told
}

fn published(
    path: &Utf8Path,
    copied: Copied,
    kept: Option<&Utf8Path>,
    taken_from: Option<&Utf8Path>,
) -> Option<String> {
    if let Some(other) = taken_from {
        return Some(format!(
            "warning: published `{path}`, where the copy of `{}` was: whichever runs last has the place",
            shortest(other)
        ));
    }
    let told = match copied {
        Copied::Updated if kept.is_some() => {
            format!("updated `{path}`, whose earlier bytes the store has lost")
        }
        Copied::Unchanged | Copied::New | Copied::Updated => return None,
        Copied::RestoredMissing => format!("restored `{path}`, which was missing"),
        Copied::RestoredAltered => format!("restored `{path}`, which had been altered"),
        Copied::Displaced => format!("published `{path}`, where another file was"),
    };
    Some(match kept {
        Some(kept) => format!(
            "warning: {told}; the file that was there is kept as `{}`",
            shortest(kept)
        ),
        None => told,
    })
}

/// A path as a person would type it: relative to the working folder where it lies below.
fn shortest(path: &Utf8Path) -> &Utf8Path {
    std::env::current_dir()
        .ok()
        .and_then(|here| path.as_std_path().strip_prefix(here).ok())
        .and_then(Utf8Path::from_path)
        .unwrap_or(path)
}

fn cells(count: usize) -> String {
    format!("{} cell{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Three significant digits; what counts something, as it is.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() || value.fract() == 0.0 && value.abs() < 1e6 {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor();
    if (-4.0..6.0).contains(&magnitude) {
        format!("{value:.*}", (2.0 - magnitude).max(0.0) as usize)
    } else {
        format!("{value:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn times_are_told_in_the_units_that_matter() {
        let told: Vec<String> = [-0.0, 0.0834, 9.99, 12.7, 75.0, 3600.0 * 2.0 + 301.0]
            .map(duration)
            .into();
        assert_eq!(
            told,
            ["0.00 s", "0.08 s", "9.99 s", "12 s", "1 min 15 s", "2 h 5 min"]
        );
    }

    #[test]
    fn numbers_are_grouped_and_kept_to_what_matters() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        let told: Vec<String> = [-0.0, 0.012_345, 2442.4, -1.5, 1.0e-9].map(significant).into();
        assert_eq!(told, ["0", "0.0123", "2442", "-1.50", "1.00e-9"]);
    }

    #[test]
    fn progress_names_what_is_counted() {
        let counted = Progress {
            done: 12,
            total: Some(60),
            unit: "epochs".into(),
            metrics: BTreeMap::from([("loss".into(), 0.5), ("epoch".into(), 41.0)]),
        };
        assert_eq!(progress(&counted), "12/60 epochs, epoch 41, loss 0.500");
    }
}

use std::fmt::Write;

use serde_json::{Value, json};

use super::arguments::GcArguments;
use super::error::{CommandError, Exit};
use super::measure::{bytes, count};
use super::{session, terminal};
use crate::display::{duration, grouped};
use crate::retention::{Keep, Removed, Survey, Unwanted, collect, survey};
use crate::store::Store;

/// So many results are listed; the rest is counted.
const SHOWN: usize = 40;

/// `gc`.
pub(super) fn gc(arguments: &GcArguments) -> Result<Exit, CommandError> {
    let store = session::existing(&arguments.store)?;
    let keep = Keep {
        runs: arguments.keep_runs,
        grace: arguments.grace,
    };
    let found = survey(&store, keep)?;
    let removed = if arguments.yes && !found.is_empty() {
        Some(collect(&store, &found)?)
    } else {
        None
    };
    if arguments.json {
        let text =
            serde_json::to_string_pretty(&as_json(&store, &found, removed)).map_err(std::io::Error::from)?;
        terminal::print(&format!("{text}\n"))?;
    } else {
        terminal::print(&in_words(&store, &found, keep, removed))?;
    }
    Ok(Exit::Done)
}

fn in_words(store: &Store, found: &Survey, keep: Keep, removed: Option<Removed>) -> String {
    let kept: usize = found.kept.values().sum();
    let mut text = format!(
        "store {}: {} and {} ({}) are kept",
        session::short(store.layout().root()),
        count(kept, "result"),
        count(found.kept_objects, "object"),
        bytes(found.kept_bytes)
    );
    let reasons: Vec<String> = found
        .kept
        .iter()
        .map(|(reason, number)| format!("{} {reason}", grouped(*number)))
        .collect();
    if !reasons.is_empty() {
        let _ = write!(text, ": {}", reasons.join(", "));
    }
    if !found.kept_partials.is_empty() {
        let size = found.kept_partials.iter().map(|partial| partial.size).sum();
        let _ = write!(
            text,
            "; so are checkpoints of {}, {}",
            count(found.kept_partials.len(), "unfinished action"),
            bytes(size)
        );
    }
    text.push('\n');
    if found.is_empty() {
        text.push_str("nothing to remove\n");
        return text;
    }
    let verb = if removed.is_some() {
        "removed"
    } else {
        "would remove"
    };
    if !found.results.is_empty() {
        let _ = writeln!(text, "\n{verb}, because nothing that is kept needs it");
        text.push_str(&table(&found.results, keep));
    }
    let mut others = Vec::new();
    if found.orphans.0 > 0 {
        others.push(format!(
            "{} that no result names, {}",
            count(found.orphans.0, "object"),
            bytes(found.orphans.1)
        ));
    }
    if !found.partials.is_empty() {
        let size = found.partials.iter().map(|partial| partial.size).sum();
        others.push(format!(
            "checkpoints of {} that no kept run began, {}",
            count(found.partials.len(), "interrupted action"),
            bytes(size)
        ));
    }
    if found.abandoned.files > 0 {
        others.push(format!(
            "{} that killed commands left behind, {}",
            count(found.abandoned.files, "temporary file"),
            bytes(found.abandoned.bytes)
        ));
    }
    if !others.is_empty() {
        let _ = writeln!(text, "\n{verb}");
        for other in others {
            let _ = writeln!(text, "  {other}");
        }
    }
    text.push('\n');
    text.push_str(&ending(found, removed));
    text
}

fn ending(found: &Survey, removed: Option<Removed>) -> String {
    let seconds: f64 = found.results.iter().filter_map(|unwanted| unwanted.seconds).sum();
    let unknown = found
        .results
        .iter()
        .filter(|unwanted| unwanted.seconds.is_none())
        .count();
    let mut cost = String::new();
    if found.results.len() > unknown {
        let _ = write!(
            cost,
            "; computing all of it again would take {} of work",
            duration(seconds)
        );
        if unknown > 0 {
            let _ = write!(cost, ", and unknown time for {}", count(unknown, "result"));
        }
    }
    let volatile = found.results.iter().filter(|unwanted| unwanted.volatile).count();
    if volatile > 0 {
        let _ = write!(
            cost,
            "; what {} measured, or was made from that, cannot be had again",
            count(volatile, "result")
        );
    }
    match removed {
        None => format!(
            "in all {}, {}, {}{cost}\nnothing was removed: the same command with `--yes` removes it; `provenir pin CELL` keeps a cell\n",
            count(found.results.len(), "result"),
            count(found.objects().0, "object"),
            bytes(found.bytes())
        ),
        Some(removed) => {
            let mut text = format!(
                "removed {}, {}, {}{cost}\n",
                count(removed.results, "result"),
                count(removed.objects, "object"),
                bytes(removed.bytes)
            );
            if removed.spared > 0 {
                let _ = writeln!(
                    text,
                    "{} came into use meanwhile, and stayed",
                    count(removed.spared, "file")
                );
            }
            text
        }
    }
}

fn table(results: &[Unwanted], keep: Keep) -> String {
    let mut grid = vec![
        ["cell", "action", "size", "took", "why"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for unwanted in results.iter().take(SHOWN) {
        grid.push(vec![
            match &unwanted.cell {
                Some(cell) => cell.clone(),
                None => format!("not recorded (kind {})", unwanted.kind),
            },
            unwanted.key.short(),
            bytes(unwanted.bytes),
            unwanted.seconds.map_or_else(|| "unknown".to_owned(), duration),
            why(unwanted, keep),
        ]);
    }
    let mut text = session::aligned(&grid);
    if results.len() > SHOWN {
        let rest = &results[SHOWN..];
        let size = rest.iter().map(|unwanted| unwanted.bytes).sum();
        let _ = writeln!(text, "  and {} more, {}", grouped(rest.len()), bytes(size));
    }
    text
}

/// Why nothing reaches a result.
fn why(unwanted: &Unwanted, keep: Keep) -> String {
    let mut text = match &unwanted.last_use {
        None => "no recorded run had it".to_owned(),
        Some((run, manifest)) => {
            let of = manifest.as_ref().map_or_else(String::new, |manifest| {
                format!(" of `{}`", session::short(manifest))
            });
            match keep.runs {
                0 => format!("last used by run {run}{of}; no runs are kept"),
                1 => format!("last used by run {run}{of}, which is older than the run that is kept"),
                runs => {
                    format!("last used by run {run}{of}, which is older than the {runs} runs that are kept")
                }
            }
        }
    };
    for path in &unwanted.gone {
        let _ = write!(text, "; its published copy `{}` is gone", session::short(path));
    }
    text
}

fn as_json(store: &Store, found: &Survey, removed: Option<Removed>) -> Value {
    let results = found.results.iter().map(|unwanted| {
        json!({
            "cell": unwanted.cell,
            "kind": unwanted.kind,
            "action": unwanted.key.to_string(),
            "bytes": unwanted.bytes,
            "seconds": unwanted.seconds,
            "last_run": unwanted.last_use.as_ref().map(|(run, _)| run),
            "manifest": unwanted.last_use.as_ref().and_then(|(_, manifest)| manifest.clone()),
            "gone": unwanted.gone,
        })
    });
    let partials = found
        .partials
        .iter()
        .map(|partial| json!({ "action": partial.key.to_string(), "bytes": partial.size }));
    json!({
        "store": store.layout().root(),
        "kept": { "results": found.kept, "objects": found.kept_objects, "bytes": found.kept_bytes },
        "unwanted": {
            "results": results.collect::<Vec<_>>(),
            "objects": found.objects().0,
            "orphans": { "objects": found.orphans.0, "bytes": found.orphans.1 },
            "checkpoints": partials.collect::<Vec<_>>(),
            "abandoned": { "files": found.abandoned.files, "bytes": found.abandoned.bytes },
            "bytes": found.bytes(),
        },
        "removed": removed.map(|removed| json!({
            "results": removed.results,
            "objects": removed.objects,
            "bytes": removed.bytes,
            "spared": removed.spared,
        })),
    })
}

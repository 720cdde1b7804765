use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::MANIFEST;
use super::gather::{GatherError, Gathering};
use super::model::{Cell, Ending, Execution, File, Run};
use crate::record::{PastRun, Record};
use crate::store::ActionKey;

impl Gathering<'_> {
    /// Cells of the run that failed, and were not executed by a later attempt. No action is recorded of them.
    pub(super) fn add_failures(&mut self) -> Result<(), GatherError> {
        let times = self.main.stored.failed_at()?;
        let done: BTreeSet<&String> = self.in_main.values().flatten().collect();
        let mut failed: BTreeMap<String, Cell> = BTreeMap::new();
        for record in self.main.stored.records()? {
            let Record::Failed {
                cell,
                key,
                seconds,
                failure,
                ..
            } = record
            else {
                continue;
            };
            if done.contains(&cell) {
                continue;
            }
            let run = self.runs.iter().position(|run| run.id == self.main.stored.id);
            let stage = stage(&cell).to_owned();
            let kind = run.and_then(|run| self.runs[run].resolved["stages"][&stage]["kind"].as_str());
            failed.insert(
                cell.clone(),
                Cell {
                    key,
                    kind: kind.unwrap_or("unknown").to_owned(),
                    execution: times.get(&cell).map(|ended| Execution {
                        run,
                        started: after(*ended, -seconds),
                        ended: *ended,
                        seconds,
                        platform: BTreeMap::new(),
                    }),
                    name: cell,
                    also: Vec::new(),
                    stage,
                    revisions: BTreeMap::new(),
                    parameters: Value::Null,
                    sources: Vec::new(),
                    inputs: Vec::new(),
                    outputs: Vec::new(),
                    failure: Some(failure.message),
                    in_main: true,
                },
            );
        }
        // An earlier result of the same action may be among the cells: two activities must not have one name.
        let known: BTreeSet<ActionKey> = self.cells.iter().map(|cell| cell.key).collect();
        failed.retain(|_, cell| !known.contains(&cell.key));
        self.cells.extend(failed.into_values());
        Ok(())
    }
}

/// A run as its record has it; `None` where that does not say what was run.
pub(super) fn described(run: &PastRun, is_main: bool) -> Result<Option<Run>, GatherError> {
    let Some(head) = run.head.clone() else {
        return Ok(None);
    };
    let text = toml::to_string(&head.resolved).map_err(|error| GatherError::Manifest {
        run: head.id.clone(),
        reason: error.to_string(),
    })?;
    // Nothing of the run: equal manifests are equal files.
    let text = format!(
        "# The manifest as it was resolved: after `extends`, the profile and the command line.\n{text}"
    );
    let last = run
        .executed
        .iter()
        .map(|executed| after(executed.started, executed.seconds));
    let (ended, ending) = match &run.outcome {
        None => (last.max().unwrap_or(head.started), Ending::Killed),
        Some(outcome) if outcome.summary.interrupted => (outcome.ended, Ending::Interrupted),
        Some(outcome) if outcome.summary.is_incomplete() => (outcome.ended, Ending::Failed),
        Some(outcome) => (outcome.ended, Ending::Done),
    };
    let place = if is_main {
        MANIFEST.to_owned()
    } else {
        format!("runs/{}/manifest.toml", head.id)
    };
    Ok(Some(Run {
        file: File::of(text.as_bytes(), "toml", place),
        text,
        id: head.id,
        pipeline: head.pipeline,
        manifest: head.manifest,
        resolved: head.resolved,
        command: head.command,
        program: head.program,
        host: head.host,
        git: head.git,
        started: head.started,
        ended,
        ending,
    }))
}

/// The stage of a cell's name.
pub(super) fn stage(cell: &str) -> &str {
    cell.split('[').next().unwrap_or(cell)
}

/// A time so many seconds later; the same where that cannot be said.
pub(super) fn after(time: Timestamp, seconds: f64) -> Timestamp {
    let Ok(duration) = SignedDuration::try_from_secs_f64(seconds) else {
        return time;
    };
    time.checked_add(duration).unwrap_or(time)
}

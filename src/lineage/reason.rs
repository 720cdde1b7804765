//! Reasons, as they are told.

use std::collections::BTreeMap;
use std::fmt;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use provenir_api::Digest;
use serde::Serialize;

use super::earlier::Use;
use crate::exec::{Difference, NthAttempt};
use crate::record::{Executed, History, PastRun, RunId};
use crate::store::{ActionKey, Artifact, Store, StoreError};

/// An output of another result of an action than the one that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecondOutput {
    /// The output port.
    pub port: String,
    /// What it has there.
    pub object: Digest,
    /// Whether that is not in the store any more: it was lost, and what counts was computed in its stead, or it was lost since.
    pub gone: bool,
}

/// Another result of an action than the one that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Second {
    /// What of it differs.
    pub outputs: Vec<SecondOutput>,
    /// The run that gave it and when that began, where a record tells.
    pub run: Option<(RunId, Timestamp)>,
    /// The numeric platform that it was computed on.
    pub platform: BTreeMap<String, String>,
    /// Whether nothing else differs than what is volatile, as a measured time.
    pub measured: bool,
    /// What of that is another than where the first was computed.
    #[serde(skip)]
    other_platform: BTreeMap<String, String>,
}

impl Second {
    /// The second results of an action that the store keeps.
    pub(super) fn of(store: &Store, history: &History, key: &ActionKey) -> Result<Vec<Self>, StoreError> {
        let kept = store.divergences(key)?;
        let first = if kept.is_empty() { None } else { store.result(key)? };
        let Some(first) = first else {
            return Ok(Vec::new());
        };
        let seconds = kept.into_iter().filter_map(|second| {
            let differs = |artifact: &&Artifact| {
                let mut counterparts = first.outputs.iter();
                let counterpart = counterparts.find(|other| other.port == artifact.port);
                counterpart.is_none_or(|other| other.content != artifact.content)
            };
            let outputs: Vec<SecondOutput> = second
                .outputs
                .iter()
                .filter(differs)
                .map(|artifact| SecondOutput {
                    port: artifact.port.clone(),
                    object: artifact.object,
                    gone: !store.layout().object(&artifact.object).is_file(),
                })
                .collect();
            if outputs.is_empty() {
                return None;
            }
            let mut executions = history.executions(key);
            let gave = executions.find(|(_, executed)| executed.outputs == second.outputs);
            let elsewhere = second.platform.iter();
            let elsewhere = elsewhere.filter(|(name, value)| {
                *name != "device_reason" && first.platform.get(*name) != Some(*value)
            });
            Some(Self {
                measured: first.agrees_with(&second),
                outputs,
                run: gave.map(|(run, executed)| (run.stored.id.clone(), executed.started)),
                other_platform: elsewhere
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
                platform: second.platform,
            })
        });
        let mut seconds: Vec<Self> = seconds.collect();
        // In the order in which they were given; those that no record tells of come last.
        seconds.sort_by_key(|second| (second.run.is_none(), second.run.as_ref().map(|(_, time)| *time)));
        Ok(seconds)
    }
}

impl fmt::Display for Second {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.run {
            Some((run, time)) => write!(formatter, "run {run} ({}) gave", moment(*time))?,
            None => formatter.write_str("an execution that no record here tells of gave")?,
        }
        let is_gone = |output: &SecondOutput| output.gone;
        let all_gone = self.outputs.iter().all(is_gone);
        formatter.write_str(match (self.measured, all_gone) {
            (true, _) => " another measurement",
            (false, true) => " another result",
            (false, false) => " a second, different result",
        })?;
        // Of several outputs each says where it is.
        let is_mixed = !all_gone && self.outputs.iter().any(is_gone);
        for (number, output) in self.outputs.iter().enumerate() {
            let joint = if number == 0 { " for" } else { "," };
            write!(
                formatter,
                "{joint} output {}, object {}",
                output.port,
                output.object.short()
            )?;
            if is_mixed && output.gone {
                formatter.write_str(" (gone)")?;
            }
        }
        if !self.other_platform.is_empty() {
            write!(formatter, ", on {}", platform(&self.other_platform))?;
        }
        formatter.write_str(if all_gone {
            "; it is not in the store any more"
        } else {
            "; it is kept beside the one that counts"
        })
    }
}

/// A numeric platform in a line, without why its device was chosen.
pub fn platform(platform: &BTreeMap<String, String>) -> String {
    let told: Vec<String> = platform
        .iter()
        .filter(|(name, _)| *name != "device_reason")
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    told.join(", ")
}

/// A time for people.
pub fn moment(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// That a verification took something out.
pub fn discarded_on(time: Timestamp) -> String {
    format!(
        "`provenir verify --discard` removed it on {}, because it was damaged",
        moment(time)
    )
}

/// Why a cell runs, or ran.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// The cell.
    pub cell: String,
    /// Its action; absent while it depends on what has to run first.
    pub key: Option<ActionKey>,
    /// Whether its result is there, so that it does not run; the reason is that of then.
    pub up_to_date: bool,
    /// The reason.
    pub reason: Reason,
    /// When it was computed, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computed: Option<Moment>,
    /// What it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Moment>,
    /// Whether it failed there: there is no result of what it was then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// What differs from that.
    pub changes: Vec<Change>,
    /// Who executes it now, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// What became of an earlier attempt, where it has no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// When a collection removed an earlier result of this action, where that is recorded: the last time before it ran, or,
    /// where it has to run, before now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collected: Option<Timestamp>,
    /// When a verification took out its result, or what it lacks of it, because that was damaged; as `collected`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discarded: Option<Timestamp>,
    /// Second, different results of it that are kept beside the one that counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seconds: Vec<Second>,
    /// The cells that run first, where it depends on what they give.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Why>,
}

/// The kind of reason for which a cell runs, or ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It does not run: its result is there, and no recorded run says how that came to be.
    UpToDate,
    /// Fields of its key differ from those of an earlier run.
    Changed,
    /// No run had it before.
    NeverRun,
    /// No run had it before; what it is compared with is another cell of its kind.
    New,
    /// A person wants it.
    Forced,
    /// An earlier run had the same; its result is not in the store any more.
    ResultGone,
    /// Its result cannot be read.
    Unreadable,
    /// An object of its result is not in the store any more.
    Missing(Digest),
    /// An object of its result is damaged.
    Damaged(Digest),
    /// It ran although an earlier run had the same; its record does not say why.
    Repeated,
    /// It differs from an earlier run, of which no record says what it was.
    Unrecorded,
    /// It depends on what other cells give, which have to run first.
    Waits,
}

/// A run in which a cell was something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// The run.
    pub run: RunId,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// The manifest, absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Utf8PathBuf>,
    /// What the cell was called there.
    pub cell: String,
    /// What action it was.
    pub key: ActionKey,
    /// The command line of the run.
    #[serde(skip)]
    pub command: Vec<String>,
}

/// Earlier attempts at an action, none of which was finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// The latest run in which it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_in: Option<RunId>,
    /// Why it failed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Which attempt that was, where its stage allowed several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<NthAttempt>,
    /// The latest run that was interrupted, or killed, while it executed it, where that was after it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_short_in: Option<RunId>,
    /// Bytes of the checkpoints that it goes on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
}

impl fmt::Display for Attempt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(run), Some(message)) = (&self.failed_in, &self.message) {
            let message = message.lines().next().unwrap_or_default();
            let attempt = self.tried;
            let attempt = attempt.map_or_else(String::new, |attempt| format!(" ({attempt})"));
            write!(formatter, "failed in run {run}{attempt}: {message}")?;
        } else if let Some(run) = &self.cut_short_in {
            write!(formatter, "was cut short in run {run}")?;
        } else {
            formatter.write_str("was cut short")?;
        }
        if self.checkpoint.is_some() {
            formatter.write_str("; it goes on from a checkpoint")?;
        }
        Ok(())
    }
}

/// A field that differs, and what that comes from.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// What differs.
    #[serde(flatten)]
    pub difference: Difference,
    /// For artifacts at a port: how those that changed came to be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upstream: Vec<Upstream>,
    /// How many more artifacts changed there.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
    /// Whether it is not told where they come from, because so many changes lie between.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unfollowed: bool,
}

/// Why an action gave something else than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SameAction {
    /// It is not repeatable, although it should be.
    Diverged,
    /// It is volatile, as a measured time, and was measured again.
    Measured,
}

/// How an artifact came to be another than before.
#[derive(Clone, Debug, Serialize)]
pub struct Upstream {
    /// The cell that gives it; absent where no record says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// The cell that gave it before, where that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Content before.
    pub old: Digest,
    /// Content now.
    pub new: Digest,
    /// What differs in the action that gave it. None where no record says what it was before, or where the same action
    /// gave something else.
    pub changes: Vec<Change>,
    /// Why they differ, where the same action gave both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_action: Option<SameAction>,
    /// Why that was executed again, where its record tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<Reason>,
    /// Whether it comes from a cell of another stage than before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rewired: bool,
    /// Whether the same was told before: what it comes from stands there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub told_before: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Why {
    pub(super) fn bare(cell: String, key: Option<ActionKey>, reason: Reason) -> Self {
        Self {
            cell,
            key,
            up_to_date: false,
            reason,
            computed: None,
            since: None,
            failed: false,
            executor: None,
            changes: Vec::new(),
            attempt: None,
            collected: None,
            discarded: None,
            seconds: Vec::new(),
            waits: Vec::new(),
        }
    }
}

impl Moment {
    pub(super) fn of(found: Use<'_>) -> Self {
        Self {
            run: found.run.stored.id.clone(),
            time: found.run.started(),
            manifest: found.run.manifest().map(ToOwned::to_owned),
            cell: found.cell.to_owned(),
            key: found.key,
            command: found
                .run
                .head
                .as_ref()
                .map_or_else(Vec::new, |head| head.command.clone()),
        }
    }

    pub(super) fn at(run: &PastRun, executed: &Executed) -> Self {
        Self {
            time: Some(executed.started),
            ..Self::of(Use {
                run,
                cell: &executed.cell,
                key: executed.key,
            })
        }
    }
}

//! Why the store cannot give what a cell gave, in words.

use super::error::CommandError;
use super::session;
use crate::exec::{Due, Standing, Survey};
use crate::plan::{CellIndex, Plan};
use crate::store::{ActionKey, MissReason, Store};

/// Why there is no artifact of a cell to be had, and what to do. What was lost or damaged is told as that: the manifest is
/// not to blame for it.
pub(super) fn absent(plan: &Plan, store: &Store, survey: &Survey<'_>, cell: CellIndex) -> CommandError {
    let name = plan.name(cell);
    let due = |cell: CellIndex, who: String| match &survey.standings[cell] {
        Standing::Due { key, reason } => flaw(store, &who, key, reason),
        Standing::Cached(_) | Standing::Unknown { .. } => None,
    };
    let told = match &survey.standings[cell] {
        Standing::Unknown { producer } => {
            let who = format!("`{}`, which it depends on,", plan.name(*producer));
            due(*producer, who).map(|told| format!("whether the store has `{name}` is not known: {told}"))
        }
        Standing::Cached(_) | Standing::Due { .. } => due(cell, format!("`{name}`")),
    };
    match told {
        Some(message) => CommandError::Environment {
            message,
            help: Some(
                "`provenir run` computes it again; `provenir verify` finds whatever else is damaged"
                    .to_owned(),
            ),
        },
        None => CommandError::request(format!(
            "the store does not have `{name}` as the manifest now describes it"
        ))
        .help("`provenir run` computes it"),
    }
}

/// What is wrong with a result that the store should have; `None` where it does not have any.
fn flaw(store: &Store, who: &str, key: &ActionKey, reason: &Due) -> Option<String> {
    let layout = store.layout();
    Some(match reason {
        Due::Forced | Due::Miss(MissReason::NoResult) => return None,
        Due::Miss(MissReason::Damaged(object)) => format!(
            "the artifact of {who} is damaged: the bytes of `{}` are not those that were stored",
            session::short(&layout.object(object))
        ),
        Due::Miss(MissReason::Missing(object)) => format!(
            "the artifact of {who} is missing: there is no file `{}`",
            session::short(&layout.object(object))
        ),
        Due::Miss(MissReason::Unreadable) => format!(
            "the result of {who} cannot be read: `{}` is damaged",
            session::short(&layout.result(key))
        ),
    })
}

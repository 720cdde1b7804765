use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::{Failed, PastRun};
use crate::store::StoreError;

/// Which of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// The first.
    First,
    /// The second.
    Second,
    /// Both of them.
    Both,
}

/// Why a run has no result of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Shortfall {
    /// The cell failed.
    Failed {
        /// Why.
        message: String,
    },
    /// Another one failed that it needs.
    Blocked {
        /// That one.
        by: String,
    },
    /// It was stopped, or not begun.
    Cancelled,
    /// Nothing tells how the run ended, nor whether the cell belonged to it.
    EndNotRecorded,
}

/// What tells why cells have no result in a run.
pub(super) struct Shortfalls<'a> {
    run: &'a PastRun,
    /// The last failure of each cell that failed for good.
    pub(super) failed: BTreeMap<&'a str, &'a Failed>,
    unreached: BTreeMap<String, Option<String>>,
}

impl<'a> Shortfalls<'a> {
    pub(super) fn of(run: &'a PastRun) -> Result<Self, StoreError> {
        let did_all = |run: &PastRun| {
            let outcome = run.outcome.as_ref();
            outcome.is_some_and(|outcome| !outcome.summary.is_incomplete())
        };
        Ok(Self {
            unreached: if did_all(run) {
                BTreeMap::new()
            } else {
                run.stored.unreached()?
            },
            failed: run.failures(),
            run,
        })
    }

    /// Why a cell has no result; `None` where it did not belong to the run.
    pub(super) fn find(&self, cell: &str) -> Option<Shortfall> {
        if let Some(failed) = self.failed.get(cell) {
            return Some(Shortfall::Failed {
                message: failed.message.clone(),
            });
        }
        match self.unreached.get(cell) {
            Some(Some(by)) => Some(Shortfall::Blocked { by: by.clone() }),
            Some(None) => Some(Shortfall::Cancelled),
            None => self.run.outcome.is_none().then_some(Shortfall::EndNotRecorded),
        }
    }
}

//! Where results come from, and why cells run.
//!
//! * `why`: what differs from the nearest earlier record of a cell, back to the root cause; `earlier` finds that record,
//!   `reason` is what is told.
//! * `graph`: every action that is known, and where the cells that it was stand; `trace` follows one of them up to sources and
//!   down to figures.
//! * `place`: a cell among those of its run or plan.
//! * `planned`: where the cells of a plan stand, as those of a run do.
//! * `source`: files outside the store that were taken, and what has become of them.
//! * `side`: an action as one of the cells that are it, to be compared with another.
//! * `absent`: what the parameters are that an action does not have.
//! * `compare`: what differs between two runs; `shortfall` says why a run has no result of a cell.
//! * `figure`: which cell drew a file, and whether it would be drawn the same today.
//!
//! Invariant: everything said here follows from results and records. Nothing is guessed: where a record does not say how
//! something came to be, that is said.

mod absent;
mod compare;
mod earlier;
mod figure;
mod graph;
mod place;
mod planned;
mod reason;
mod shortfall;
mod side;
mod source;
mod trace;
mod why;

pub use compare::{CellDifference, RunDifference, shown};
pub use figure::{Condition, FileOrigin, Freshness};
pub use graph::{Computed, Copy, Graph, Link, Node};
pub use place::{NodeId, Place};
pub use planned::cells as cells_of_plan;
pub use reason::{Change, Moment, Reason, SameAction, Second, Upstream, Why, discarded_on, moment, platform};
pub use shortfall::{Shortfall, Which};
pub use side::Side;
pub use source::{Now, SourceFile};
pub use trace::{Focus, Lineage, SourceName};
pub use why::Explainer;

//! Where results come from, and why cells run.
//!
//! * `why`: what differs from the nearest earlier record of a cell, back to the root cause; `earlier` finds that record,
//!   `reason` is what is told.
//! * `graph`: what an artifact was made from, down to sources, and what was made from it, up to figures.
//! * `source`: files outside the store that were taken, and what has become of them.
//! * `absent`: what the parameters are that an action does not have.
//! * `compare`: what differs between two runs.
//! * `figure`: which cell drew a file, and whether it would be drawn the same today.
//!
//! Invariant: everything said here follows from results and records. Nothing is guessed: where a record does not say how
//! something came to be, that is said.

mod absent;
mod compare;
mod earlier;
mod figure;
mod graph;
mod reason;
mod source;
mod why;

pub use compare::{CellDifference, RunDifference, shown};
pub use figure::{FileOrigin, Freshness};
pub use graph::{Computed, Copy, Graph, Link, Node, Wiring};
pub use reason::{Change, Moment, Reason, Second, Upstream, Why, moment, platform};
pub use source::{Now, SourceFile};
pub use why::Explainer;

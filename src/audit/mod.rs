//! Audits: computes again what a store holds, in a scratch store, and compares.
//!
//! * `rerun`: which cells, and what becomes of them.
//! * `listen`: what is heard of them meanwhile: why they fail, and their logs.
//! * `compare`, `place`: the first place at which two artifacts differ.
//! * `verdict`: what is said of a cell, and where that is recorded.

mod compare;
mod listen;
mod place;
mod rerun;
mod verdict;

pub use compare::first_difference;
pub use place::Place;
pub use rerun::{Audit, Audited, Choice, Chosen, Request, Untolerated, audit, choose};
pub use verdict::{Record, Verdict, verdicts};

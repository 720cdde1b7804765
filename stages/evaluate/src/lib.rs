//! `evaluate`: rolls policies out and summarises their returns.
//!
//! * [`EvaluateExecution`]: every checkpoint of a policy, in the same episodes.
//! * [`Summary`]: centre, spread and intervals of a sample of returns, by stated definitions.
//! * `expert`: the mean return that shares relate to.
//! * `tables`: results as tables.
//!
//! Invariant: a return depends on the checkpoint and on the trial's initial state, and that on `seed` and the trial's number
//! only: the first 20 of 100 trials are those of 20, and every policy meets the same ones.

mod execution;
mod expert;
mod summary;
mod tables;

pub use execution::EvaluateExecution;
pub use summary::Summary;

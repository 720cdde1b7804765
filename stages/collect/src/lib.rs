//! Execution of the `collect` kind: rolls an expert out in the simulator and records what it does.
//!
//! * `recording`: episodes as rows, whole or cut at a number of samples.
//!
//! Invariant: episode k depends on the seed and on k alone, and episodes are recorded in that order: fewer samples are
//! a beginning of more, and nothing depends on how many episodes run side by side.

mod execution;
mod recording;

pub use execution::CollectExecution;

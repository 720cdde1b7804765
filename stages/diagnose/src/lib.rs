//! Execution of the `diagnose` kind: holds what a method trusted and learned against what `corrupt` did to its data.
//!
//! * `join`: the samples of the demonstrations, with what the other tables say of them.
//! * `detection`: trust as a detector of corrupted samples: precision, recall, average precision.
//! * `accuracy`: a policy's error on the clean actions.
//!
//! Invariant: tables are joined by sample numbers alone; a sample of which something must be known and is not is an error.

mod accuracy;
mod detection;
mod execution;
mod join;

pub use execution::DiagnoseExecution;

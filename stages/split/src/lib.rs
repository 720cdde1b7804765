//! Execution of the `split` kind: training and validation sets that share no episode.
//!
//! Invariant: which samples go where depends on the seed, the parameters, the episodes' numbers and their lengths
//! alone; rows keep their order.

mod choice;
mod execution;

pub use execution::SplitExecution;

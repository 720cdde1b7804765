//! Execution of the `time-to-target` kind: how long a training took to come near the expert.
//!
//! * `clock`: the seconds at the end of each epoch.
//! * `checkpoints`: what each checkpoint achieves, with its seconds, and the first that reaches a target.
//!
//! Invariant: a checkpoint whose training time is not known is an error; nothing is interpolated.

mod checkpoints;
mod clock;
mod execution;

pub use execution::TimeToTargetExecution;

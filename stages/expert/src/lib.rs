//! Execution of `expert`: policies from the simulator, by reinforcement learning off the policy.
//!
//! * `execution`: from parameters to tables.
//! * `run`: the loop of steps, updates and evaluations; `journal` is what it notes.
//! * `sampler`: environments that step side by side; `replay`: what they gave; `evaluation`: what a policy is worth.
//! * `checkpoint`: all of it in files, and back; `bytes` and `policies` write values and policies down.
//! * `learner`: what is learnt from transitions; knows nothing of environments, files or the loop.
//!
//! Invariant: a draw depends on the seed and on the number of the step, update, episode or evaluation it is for, never on
//! draws before it; an episode depends on its seed and its actions. So a training that was interrupted goes on to the
//! same result.

#![expect(
    clippy::cast_possible_wrap,
    reason = "LibTorch counts in i64, and no tensor has 2^63 of anything"
)]

mod checkpoint;
mod evaluation;
mod execution;
mod journal;
mod learner;
mod policies;
mod replay;
mod run;
mod sampler;
#[cfg(test)]
mod tests;

pub use execution::ExpertExecution;
pub use learner::{Batch, Learner, LearnerSettings, Metrics, PolicyMetrics, Value};

//! Execution of `train`: policies from demonstrations.
//!
//! * `execution`: from tables to tables.
//! * `data`: demonstrations as tensors; the standardisation of observations.
//! * `run`: the loop over epochs, whatever the method; `state` is all that it has learnt and noted, `checkpoint` that as bytes;
//!   `validation` measures; `warm_up` is what comes before time is measured.
//! * `method`: what a method is; `methods`: the methods, a module each, and which one is asked for.
//! * `cloning`: learning from minibatches by rules, for each policy one: all methods but `rbc`, `co-teaching` and `filter` are
//!   rules; `rounds`: trainings one after another.
//! * `learner`: networks that learn; `student`: those with buffers for minibatches; `order`: which samples make which minibatch.
//! * `sweep`: samples through networks that do not learn from them.
//! * `partition`: median of means: how samples are drawn, divided into blocks and selected.
//! * `committee`: several networks as one, which gives the mean of what they do.
//!
//! Everything below `execution` trains K policies of one shape on K data sets of one size as one ensemble of J = K · M
//! networks, M of them a policy (a committee; 1 for most methods); each has its own random streams, and on a processor its
//! results do not depend on the others, to the bit. Data sets of different widths are padded to one (`data`); A is the number
//! of components that a policy's own actions have.
//!
//! Invariant: a draw depends on the seed and on the number of the epoch or step it is for, never on draws before it. So a
//! training that was interrupted continues to the same result.

#![expect(
    clippy::cast_possible_wrap,
    reason = "LibTorch counts in i64, and no tensor has 2^63 of anything"
)]

mod checkpoint;
mod cloning;
mod committee;
mod data;
mod execution;
mod learner;
mod lesson;
mod method;
mod methods;
mod order;
mod partition;
mod rounds;
mod run;
mod state;
mod student;
mod sweep;
#[cfg(test)]
mod tests;
mod validation;
mod warm_up;

pub use execution::TrainExecution;

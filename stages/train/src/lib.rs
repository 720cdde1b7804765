//! Execution of `train`: policies from demonstrations.
//!
//! * `execution`: from tables to tables.
//! * `data`: demonstrations as tensors; the standardisation of observations.
//! * `run`: the loop over epochs, whatever the method; `state` is all that it has learnt and noted, `checkpoint` that as bytes;
//!   `validation` measures.
//! * `method`: what a method is; `bc` and `rbc` are the methods; `learner` is a network that learns, the part they share.
//! * `partition`: median of means: how samples are drawn, divided into blocks and selected.
//!
//! Everything below `execution` trains K policies of one shape on K data sets of one size as one ensemble; each has its
//! own random streams, and on a processor its results do not depend on the others, to the bit.
//!
//! Invariant: a draw depends on the seed and on the number of the epoch or step it is for, never on draws before it. So a
//! training that was interrupted continues to the same result.

#![expect(
    clippy::cast_possible_wrap,
    reason = "LibTorch counts in i64, and no tensor has 2^63 of anything"
)]

mod bc;
mod checkpoint;
mod data;
mod execution;
mod learner;
mod method;
mod partition;
mod rbc;
mod run;
mod state;
#[cfg(test)]
mod tests;
mod validation;

pub use execution::TrainExecution;

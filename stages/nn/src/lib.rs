//! Ensembles of multilayer perceptrons on LibTorch.
//!
//! * [`Shape`]: what a network looks like; [`Widths`]: how much of it one uses.
//! * [`Ensemble`]: K networks of one shape in one tensor, their initialisation, and their layers as a policy's.
//! * [`Forward`], [`Backward`]: batched passes with preallocated buffers and a hand-written gradient.
//! * [`Renormalised`]: such passes with batch renormalisation before every layer.
//! * [`select_rows`]: minibatches out of a data set.
//! * [`squared_error`], [`Robust`], [`Contamination`], [`Deviations`]: losses of policies by what they are off.
//! * [`Adam`]: the optimiser, with state that can be saved, a learning rate for each network and gradient clipping.
//! * [`Repeated`]: a step that a GPU repeats without being told every operation again.
//! * [`Schedule`]: how the learning rate changes.
//! * [`device`]: where to compute, how exactly, and why not there.
//!
//! **Shapes.** K networks (`members`), B samples (`rows`): inputs `[K, B, in]`, weights `[K, in, out]`, biases
//! `[K, 1, out]`. Everything that is learnt lies in one tensor `[K, P]`, and so do its gradient and Adam's moments: the
//! optimiser is a few operations, whatever the number of layers and networks. Networks of different widths have the shape of
//! a wider one, in which what they do not use is 0.
//!
//! **Determinism.** Invariant: nothing here draws from LibTorch's process-wide generator; initial weights come from
//! [`provenir_random::Stream`]s. With one thread within an operation, results are the same to the bit on one machine,
//! whatever else runs.

#![expect(
    clippy::cast_possible_wrap,
    reason = "LibTorch counts in i64, and no tensor has 2^63 of anything"
)]

mod adam;
mod cuda;
pub mod device;
mod driver;
mod ensemble;
mod error;
mod graph;
mod loss;
mod passes;
mod renormalised;
mod schedule;
mod shape;
#[cfg(test)]
mod testing;

pub use adam::{Adam, AdamSettings};
pub use ensemble::{Ensemble, Gradient};
pub use error::NnError;
pub use graph::Repeated;
pub use loss::{Contamination, Deviations, Judged, Responsibility, Robust, squared_error};
pub use passes::{Backward, Forward, select_rows};
pub use renormalised::Renormalised;
pub use schedule::Schedule;
pub use shape::{Shape, Widths};

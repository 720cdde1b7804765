//! Policies: feed-forward networks with their standardisation and action map.
//!
//! * [`Policy`]: the network; [`PolicySet`]: the checkpoints of one training, ⇄ a table of tensors, ⇄ safetensors.
//! * [`Actor`]: inference, whose result for a row depends on that row alone: not on other rows, their number, the
//!   row's place, the thread or the instruction set.
//! * [`Policy::fits`]: whether it can act in a task.
//!
//! Invariant: a [`Policy`] that exists can act. Shapes agree, numbers are finite, scales are positive, bounds are in
//! order; what is read from a file is checked for all of that and has no other way in.

mod actor;
mod error;
mod fits;
mod header;
mod kernel;
mod policy;
mod safetensors;
mod set;
mod table;
mod tensors;

pub use actor::Actor;
pub use error::PolicyError;
pub use fits::{Misfit, TaskShape};
pub use policy::{
    About, ActionMap, Activation, LAYER_LIMIT, Layer, Policy, Squash, Standardisation, WIDTH_LIMIT,
};
pub use set::PolicySet;
pub use tensors::printable;

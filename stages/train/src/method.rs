use provenir_nn::{Ensemble, NnError};
use tch::Tensor;

use crate::learner::Learner;

/// A way to learn K policies.
pub(crate) trait Method {
    /// What the policies are.
    fn policies(&self) -> &Ensemble;

    /// All that learns: the policies first, then whatever helps them.
    fn learners(&mut self) -> Vec<&mut Learner>;

    /// Prepares the steps of an epoch, counted from 0.
    fn begin_epoch(&mut self, epoch: u64) -> Result<(), NnError>;

    /// A gradient step: the one of this number within its epoch and within the run, both counted from 0, with a learning
    /// rate for each policy.
    fn step(&mut self, within: usize, step: u64, rates: &[f64]) -> Result<Trace, NnError>;

    /// How often each sample of each policy was drawn and selected so far.
    fn counts(&self) -> Result<Counts, NnError>;

    /// Goes on counting from there.
    fn restore_counts(&mut self, counts: &Counts) -> Result<(), NnError>;
}

/// What a step leaves to be read at the end of the epoch, so that no step waits for the device: `[K]` each.
pub(crate) struct Trace {
    /// Loss that gave the gradient, before the step.
    pub(crate) loss: Tensor,
    /// Norm of the policy's gradient, before clipping.
    pub(crate) norm: Tensor,
    /// Value of the median block.
    pub(crate) median: Option<Tensor>,
}

/// Counts for each sample, policy after policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) drawn: Vec<u64>,
    pub(crate) selected: Vec<u64>,
}

use crate::method::Memory;

/// A training after a number of epochs: all that it takes to continue to the same result.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    /// Epochs done.
    pub(crate) epochs: u64,
    pub(crate) journal: Journal,
    /// Of the method.
    pub(crate) memory: Memory,
    /// The policies after some of the epochs: the number of epochs, and what `Ensemble::save` gave.
    pub(crate) kept: Vec<(u64, Vec<f32>)>,
}

/// What was noted in each epoch E: columns `[E · K]`, policies within epochs, or `[E]` where all policies agree.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Journal {
    /// Mean over steps of the loss that gave the gradient, `[E · K]`.
    pub(crate) loss: Vec<f64>,
    /// Mean over steps of the gradient's norm, `[E · K]`.
    pub(crate) norm: Vec<f64>,
    /// Mean over steps of the median block's value, `[E · K]`; empty where the method has none.
    pub(crate) median: Vec<f64>,
    /// Loss on the validation set, `[E · K]`; empty where there is none.
    pub(crate) validation: Vec<f64>,
    /// What methods note of their policies, `[E · K]`; missing in epochs in which there is none.
    pub(crate) sigma: Vec<Option<f64>>,
    pub(crate) effective: Vec<Option<f64>>,
    /// Share of the initial learning rates at the last step, `[E]`.
    pub(crate) rate: Vec<f64>,
    /// Wall-clock seconds since the start, `[E]`; those between an interruption and the attempt after it are left out.
    pub(crate) seconds: Vec<f64>,
}

impl Journal {
    /// Whether it holds as much as that many epochs of that many policies note.
    pub(crate) fn fits(&self, epochs: usize, members: usize) -> bool {
        let each = epochs * members;
        let or_none = |column: &[f64]| column.is_empty() || column.len() == each;
        self.loss.len() == each
            && self.norm.len() == each
            && or_none(&self.median)
            && or_none(&self.validation)
            && self.sigma.len() == each
            && self.effective.len() == each
            && self.rate.len() == epochs
            && self.seconds.len() == epochs
    }
}

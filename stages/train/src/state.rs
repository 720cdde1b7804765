use crate::method::{Memory, part};

/// A training after a number of epochs: all that it takes to continue to the same result.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    /// Epochs done.
    pub(crate) epochs: u64,
    pub(crate) journal: Journal,
    /// Of the method, `[K]`.
    pub(crate) memories: Vec<Memory>,
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
    /// Wall-clock seconds of training, `[E · K]`: without validation and checkpoints, and without those epochs that were lost
    /// to an interruption.
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
            && self.seconds.len() == each
    }
}

impl State {
    /// The training of each of K policies alone, of which this is the training together.
    pub(crate) fn apart(&self, members: usize) -> Vec<Self> {
        (0..members)
            .map(|member| Self {
                epochs: self.epochs,
                journal: self.journal.of(member, members),
                memories: self.memories.get(member).cloned().into_iter().collect(),
                kept: self
                    .kept
                    .iter()
                    .map(|(epoch, networks)| (*epoch, part(networks, member, members)))
                    .collect(),
            })
            .collect()
    }

    /// The training together of policies that were trained alone, after equally many epochs in the same way: the inverse
    /// of [`State::apart`]. Nothing where they do not go together.
    pub(crate) fn together(alone: &[Self]) -> Option<Self> {
        let (first, rest) = alone.split_first()?;
        let fits = |other: &Self| {
            let kept = |state: &Self| -> Vec<u64> { state.kept.iter().map(|(epoch, _)| *epoch).collect() };
            // Methods may have more that learns, beside what takes its steps with all.
            let steps = |state: &Self| -> Vec<Option<u64>> {
                let learners = state.memories.iter().map(|memory| memory.learners.first());
                learners
                    .map(|learner| learner.map(|learner| learner.steps))
                    .collect()
            };
            other.epochs == first.epochs && kept(other) == kept(first) && steps(other) == steps(first)
        };
        if !rest.iter().all(fits) {
            return None;
        }
        Some(Self {
            epochs: first.epochs,
            journal: Journal::together(&alone.iter().map(|state| &state.journal).collect::<Vec<_>>()),
            memories: alone.iter().flat_map(|state| state.memories.clone()).collect(),
            kept: (0..first.kept.len())
                .map(|index| (first.kept[index].0, chained(alone, |state| &state.kept[index].1)))
                .collect(),
        })
    }
}

impl Journal {
    fn of(&self, member: usize, members: usize) -> Self {
        Self {
            loss: every(&self.loss, member, members),
            norm: every(&self.norm, member, members),
            median: every(&self.median, member, members),
            validation: every(&self.validation, member, members),
            sigma: every(&self.sigma, member, members),
            effective: every(&self.effective, member, members),
            rate: self.rate.clone(),
            seconds: every(&self.seconds, member, members),
        }
    }

    fn together(alone: &[&Self]) -> Self {
        Self {
            loss: in_turn(alone, |journal| &journal.loss),
            norm: in_turn(alone, |journal| &journal.norm),
            median: in_turn(alone, |journal| &journal.median),
            validation: in_turn(alone, |journal| &journal.validation),
            sigma: in_turn(alone, |journal| &journal.sigma),
            effective: in_turn(alone, |journal| &journal.effective),
            rate: alone
                .first()
                .map(|journal| journal.rate.clone())
                .unwrap_or_default(),
            seconds: in_turn(alone, |journal| &journal.seconds),
        }
    }
}

/// The inverse of [`part`].
fn chained<S, T: Copy>(alone: &[S], values: impl Fn(&S) -> &Vec<T>) -> Vec<T> {
    alone.iter().flat_map(|one| values(one).iter().copied()).collect()
}

/// The values of a policy in a column that holds policies within epochs.
fn every<T: Copy>(column: &[T], member: usize, members: usize) -> Vec<T> {
    column.iter().skip(member).step_by(members).copied().collect()
}

/// The inverse of [`every`].
fn in_turn<T: Copy>(alone: &[&Journal], column: impl Fn(&Journal) -> &Vec<T>) -> Vec<T> {
    let epochs = alone.first().map_or(0, |journal| column(journal).len());
    (0..epochs)
        .flat_map(|epoch| alone.iter().map(move |journal| (epoch, *journal)))
        .filter_map(|(epoch, journal)| column(journal).get(epoch).copied())
        .collect()
}

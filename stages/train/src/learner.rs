use provenir_nn::{
    Adam, AdamSettings, Backward, Deviations, Ensemble, Forward, Gradient, NnError, Shape, Widths,
};
use provenir_random::Stream;
use tch::{Device, Tensor};

use crate::method::part;

/// How networks follow their gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Descent {
    /// Largest norm of each network's gradient.
    pub(crate) clip: Option<f64>,
    /// Decoupled weight decay.
    pub(crate) weight_decay: f64,
}

/// J networks that learn.
pub(crate) struct Learner {
    pub(crate) ensemble: Ensemble,
    gradient: Gradient,
    adam: Adam,
    clip: Option<f64>,
}

/// Everything that a learner has learnt.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LearnerState {
    pub(crate) networks: Vec<f32>,
    pub(crate) mean: Vec<f32>,
    pub(crate) square: Vec<f32>,
    pub(crate) steps: u64,
}

impl LearnerState {
    /// What it has learnt for one of its policies.
    pub(crate) fn part(&self, member: usize, members: usize) -> Self {
        Self {
            networks: part(&self.networks, member, members),
            mean: part(&self.mean, member, members),
            square: part(&self.square, member, members),
            steps: self.steps,
        }
    }

    /// What one has learnt that has learnt this for each policy, in equally many steps: the inverse of [`LearnerState::part`].
    pub(crate) fn together(alone: &[Self]) -> Self {
        let chained = |values: fn(&Self) -> &Vec<f32>| -> Vec<f32> {
            alone.iter().flat_map(|one| values(one).iter().copied()).collect()
        };
        Self {
            networks: chained(|one| &one.networks),
            mean: chained(|one| &one.mean),
            square: chained(|one| &one.square),
            steps: alone.first().map_or(0, |one| one.steps),
        }
    }
}

impl Learner {
    /// Networks of these widths at their initial values, one for each stream.
    pub(crate) fn new(
        shape: &Shape,
        widths: &[Widths],
        streams: &[Stream],
        descent: Descent,
        device: Device,
    ) -> Result<Self, NnError> {
        let ensemble = Ensemble::padded(shape, widths, streams, device)?;
        let gradient = ensemble.gradient()?;
        let settings = AdamSettings {
            weight_decay: descent.weight_decay,
            ..AdamSettings::default()
        };
        let adam = Adam::new(&ensemble, &gradient, settings)?;
        Ok(Self {
            ensemble,
            gradient,
            adam,
            clip: descent.clip,
        })
    }

    /// Begins anew, at initial values from these streams.
    pub(crate) fn begin_anew(&mut self, streams: &[Stream]) -> Result<(), NnError> {
        self.ensemble.reinitialise(streams)?;
        self.adam.reset()
    }

    /// The rates of steps to come, of each network, step after step.
    pub(crate) fn announce(&mut self, rates: &[Vec<f64>]) -> Result<(), NnError> {
        self.adam.announce(rates)
    }

    /// Begins the next of the steps that were announced.
    pub(crate) fn advance(&mut self) -> Result<(), NnError> {
        self.adam.advance()
    }

    /// Begins a step that was not announced.
    pub(crate) fn prepare(&mut self, rates: &[f64]) -> Result<(), NnError> {
        self.adam.prepare(rates)
    }

    /// The part of a step that a GPU can repeat: moves each network against the gradient of its loss, whose derivative by the
    /// output stands in `backward`; gives the norms of the gradients, `[J]`, always the same tensor.
    pub(crate) fn descend(&mut self, forward: &Forward, backward: &mut Backward) -> Result<&Tensor, NnError> {
        backward.run(&self.ensemble, forward, &mut self.gradient)?;
        self.adam.apply(self.clip)?;
        Ok(self.adam.norms())
    }

    /// Ends a step.
    pub(crate) fn settle(&mut self) -> Result<(), NnError> {
        self.adam.settle()
    }

    pub(crate) fn save(&self) -> Result<LearnerState, NnError> {
        let (mean, square, steps) = self.adam.save()?;
        Ok(LearnerState {
            networks: self.ensemble.save()?,
            mean,
            square,
            steps,
        })
    }

    pub(crate) fn load(&mut self, state: &LearnerState) -> Result<(), NnError> {
        self.ensemble.load(&state.networks)?;
        self.adam.load(&state.mean, &state.square, state.steps)
    }
}

/// Deviations as the state of a learner.
pub(crate) fn save_deviations(deviations: &Deviations) -> Result<LearnerState, NnError> {
    let (mean, square, steps) = deviations.adam().save()?;
    Ok(LearnerState {
        networks: deviations.save()?,
        mean,
        square,
        steps,
    })
}

/// The inverse of [`save_deviations`].
pub(crate) fn load_deviations(deviations: &mut Deviations, state: &LearnerState) -> Result<(), NnError> {
    deviations.load(&state.networks)?;
    deviations
        .adam_mut()
        .load(&state.mean, &state.square, state.steps)
}

use provenir_nn::{Adam, AdamSettings, Backward, Ensemble, Forward, Gradient, NnError, Shape};
use provenir_random::Stream;
use tch::{Device, Tensor};

/// K networks that learn.
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

impl Learner {
    /// Networks at their initial values, one for each stream; `clip` bounds the norm of each network's gradient.
    pub(crate) fn new(
        shape: &Shape,
        streams: &[Stream],
        clip: Option<f64>,
        device: Device,
    ) -> Result<Self, NnError> {
        let ensemble = Ensemble::initial(shape, streams, device)?;
        let gradient = ensemble.gradient()?;
        let adam = Adam::new(&ensemble, &gradient, AdamSettings::default())?;
        Ok(Self {
            ensemble,
            gradient,
            adam,
            clip,
        })
    }

    /// One step of each network against the gradient of its loss, whose derivative by the output stands in `backward`;
    /// gives the norms of the gradients, `[K]`.
    pub(crate) fn descend(
        &mut self,
        forward: &Forward,
        backward: &mut Backward,
        rates: &[f64],
    ) -> Result<Tensor, NnError> {
        backward.run(&self.ensemble, forward, &mut self.gradient)?;
        self.adam.step(rates, self.clip)
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

//! Soft actor-critic (Haarnoja et al. 2018, with learned temperature) and truncated quantile critics (Kuznetsov et al.
//! 2020): what is learnt from a batch of transitions.
//!
//! * `actor`: the Gaussian policy squashed by tanh; its actions, their log-probabilities, and the way back through both.
//! * `spread`: how far its actions spread about their means, by a head of the network or by gSDE.
//! * `critics`: two networks that value actions, what they should have said, and the gradient of what they got wrong.
//! * `temperature`: the weight of the entropy.
//! * `inputs`: what an update reads, where a GPU that repeats a recorded one finds it.
//!
//! Gradients are written by hand, on the passes of `provenir-nn`; the tests hold them against LibTorch's own.
//!
//! Invariant: the noise of update n depends on the seed and n alone.

mod actor;
mod critics;
#[cfg(test)]
mod gradients;
mod inputs;
mod spread;
mod temperature;

use provenir_nn::{Adam, Ensemble, NnError, Repeated};
use provenir_policy::{About, Policy};
use provenir_random::Stream;
use tch::{Device, Kind, Tensor};

use actor::Actor;
pub use critics::Value;
use critics::{Critics, Transitions};
use inputs::Inputs;
use provenir_execution::{Coded, coded};
use temperature::Temperature;

/// What and how to learn.
#[derive(Clone, Debug)]
pub struct LearnerSettings {
    /// Widths of the hidden layers of policy and critics.
    pub hidden: Vec<usize>,
    /// What a critic says of an action.
    pub value: Value,
    /// Whether critics are normalised and value what comes next themselves, without slow copies.
    pub normalised_critics: bool,
    /// Where the policy's deviations depend on the state (gSDE, Raffin et al. 2021), their logarithm at the start.
    pub gsde: Option<f64>,
    /// Adam's step size at the start.
    pub learning_rate: f64,
    /// Transitions a batch.
    pub batch: usize,
    /// Share by which the target networks move at an update.
    pub tau: f64,
    /// Updates of the critics for each of the policy.
    pub policy_delay: u64,
    /// Fixed weight of the entropy; learned where not given.
    pub temperature: Option<f64>,
}

/// Adam's decay of the mean of gradients where critics are normalised (Bhatt et al. 2024).
const NORMALISED_BETA1: f64 = 0.5;

/// Transitions to learn from, row by row.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// `[B, O]`
    pub observations: &'a [f32],
    /// In [−1, 1], `[B, A]`.
    pub actions: &'a [f32],
    /// `[B]`
    pub rewards: &'a [f32],
    /// `[B, O]`
    pub next_observations: &'a [f32],
    /// What the value of the next observation counts for: the discount, or 0 where nothing comes next; `[B]`.
    pub discounts: &'a [f32],
}

/// What an update found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    /// The loss of the critics before the step.
    pub critic_loss: f64,
    /// Where the policy was updated, too.
    pub policy: Option<PolicyMetrics>,
    /// Weight of the entropy in this update.
    pub temperature: f64,
}

/// What an update of the policy found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyMetrics {
    /// The mean of α log π − Q.
    pub loss: f64,
    /// Mean of −log π over the batch.
    pub entropy: f64,
}

/// A policy and its critics.
pub struct Learner {
    settings: LearnerSettings,
    stream: Stream,
    updates: u64,
    actor: Actor,
    critics: Critics,
    temperature: Temperature,
    inputs: Inputs,
    /// What an update finds: the loss of the critics and, where the policy is updated, the mean of log π and what the
    /// critics say of it, in double precision, `[3]`.
    found: Tensor,
    /// Whether the policy is updated, and whether normalisation is corrected.
    repeated: Repeated<(bool, bool)>,
}

struct State {
    updates: u64,
    actor: Vec<u8>,
    critics: Vec<u8>,
    temperature: Temperature,
}

coded! { State { updates, actor, critics, temperature } }

impl Learner {
    /// Everything at its initial value.
    pub fn new(
        settings: &LearnerSettings,
        observation: usize,
        action: usize,
        seed: u64,
        device: Device,
    ) -> Result<Self, NnError> {
        let stream = Stream::new(seed, "learner");
        Ok(Self {
            actor: Actor::new(settings, observation, action, &stream, device)?,
            critics: Critics::new(settings, observation, action, &stream, device)?,
            temperature: Temperature::new(settings.temperature, action),
            inputs: Inputs::new(settings.batch, observation, action, device)?,
            found: Tensor::f_zeros([3], (Kind::Double, device))?,
            repeated: Repeated::new(device)?,
            settings: settings.clone(),
            stream,
            updates: 0,
        })
    }

    /// A step of the critics and, where it is due, of policy and temperature; `rate_share` multiplies the learning rate.
    pub fn update(&mut self, batch: &Batch<'_>, rate_share: f64) -> Result<Metrics, NnError> {
        let rate = self.settings.learning_rate * rate_share;
        let temperature = self.temperature.value();
        let stream = self.stream.child("update", self.updates);
        let due = self.updates.is_multiple_of(self.settings.policy_delay);
        self.updates += 1;

        self.inputs.load(batch, &stream, temperature)?;
        let corrected = self.critics.prepare(rate)?;
        if due {
            self.actor.prepare(rate)?;
        }
        let Self {
            actor,
            critics,
            inputs,
            found,
            repeated,
            ..
        } = self;
        repeated.run((due, corrected), || step(actor, critics, inputs, found, due))?;
        critics.settle()?;
        if due {
            actor.settle()?;
        }
        let mut numbers = [0.0; 3];
        found.f_copy_data(&mut numbers, 3)?;
        let [critic_loss, log_probability, value] = numbers;
        if due {
            self.temperature.step(log_probability, rate);
        }
        Ok(Metrics {
            critic_loss,
            policy: due.then_some(PolicyMetrics {
                loss: temperature * log_probability - value,
                entropy: -log_probability,
            }),
            temperature,
        })
    }

    /// An action for every row of observations, drawn from the policy with noise of this stream. With gSDE the stream stands
    /// for a function of the state for every row: give the same one for as long as the functions are to stay.
    pub fn explore(
        &mut self,
        observations: &[f32],
        actions: &mut [f32],
        noise: Stream,
    ) -> Result<(), NnError> {
        self.actor.explore(observations, actions, noise)
    }

    /// The policy without its noise.
    pub fn policy(&self, about: About) -> Result<Policy, NnError> {
        self.actor.policy(about)
    }

    /// Everything that was learnt.
    pub fn save(&self) -> Result<Vec<u8>, NnError> {
        let state = State {
            updates: self.updates,
            actor: self.actor.save()?,
            critics: self.critics.save()?,
            temperature: self.temperature.clone(),
        };
        let mut bytes = Vec::new();
        state.write(&mut bytes);
        Ok(bytes)
    }

    /// Takes back what [`Learner::save`] gave; where that fails it is of no further use.
    pub fn load(&mut self, mut bytes: &[u8]) -> Result<(), NnError> {
        let state = State::read(&mut bytes).ok_or_else(|| unreadable("a learner"))?;
        self.updates = state.updates;
        self.actor.load(&state.actor)?;
        self.critics.load(&state.critics)?;
        self.temperature.load(&state.temperature);
        Ok(())
    }
}

/// The part of an update that a GPU does without the host: a step of the critics and, where it is due, of the policy.
fn step(
    actor: &mut Actor,
    critics: &mut Critics,
    inputs: &Inputs,
    found: &Tensor,
    due: bool,
) -> Result<(), NnError> {
    let find = |place: i64, number: &Tensor| found.f_get(place)?.f_copy_(number);
    let next = actor.sample(&inputs.next_observations, &inputs.next_noise)?;
    let critic_loss = critics.step(&Transitions {
        observations: &inputs.observations,
        actions: &inputs.actions,
        rewards: &inputs.rewards,
        discounts: &inputs.discounts,
        next_observations: &inputs.next_observations,
        next_actions: &next.actions,
        soft: &next.log_probability.f_mul(&inputs.entropy.negative)?,
    })?;
    find(0, &critic_loss)?;
    if due {
        let sample = actor.sample(&inputs.observations, &inputs.noise)?;
        let (value, slope) = critics.slope(&inputs.observations, &sample.actions)?;
        actor.step(&sample, &slope, &inputs.entropy)?;
        find(1, &sample.log_probability.f_mean(Kind::Float)?)?;
        find(2, &value)?;
    }
    critics.follow()
}

fn unreadable(what: &'static str) -> NnError {
    NnError::Length {
        what,
        expected: 1,
        found: 0,
    }
}

/// The values of a tensor.
fn host(tensor: &Tensor) -> Result<Vec<f32>, NnError> {
    let mut values = vec![0.0; tensor.numel()];
    let count = values.len();
    tensor.f_contiguous()?.f_copy_data(&mut values, count)?;
    Ok(values)
}

/// Standard normal numbers.
fn normal(mut stream: Stream, shape: [i64; 2]) -> Result<Tensor, NnError> {
    let values: Vec<f32> = (0..shape[0] * shape[1]).map(|_| stream.normal() as f32).collect();
    Ok(Tensor::f_from_slice(&values)?.f_view(shape)?)
}

/// Networks, and how far Adam has come with them.
struct Saved {
    networks: Vec<f32>,
    mean: Vec<f32>,
    square: Vec<f32>,
    steps: u64,
}

coded! { Saved { networks, mean, square, steps } }

impl Saved {
    fn of(ensemble: &Ensemble, adam: &Adam) -> Result<Self, NnError> {
        let (mean, square, steps) = adam.save()?;
        Ok(Self {
            networks: ensemble.save()?,
            mean,
            square,
            steps,
        })
    }

    fn load(&self, ensemble: &mut Ensemble, adam: &mut Adam) -> Result<(), NnError> {
        ensemble.load(&self.networks)?;
        adam.load(&self.mean, &self.square, self.steps)
    }
}

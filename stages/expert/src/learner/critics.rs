use provenir_nn::{Adam, AdamSettings, Backward, Ensemble, Forward, Gradient, NnError, Renormalised, Shape};
use provenir_policy::Activation;
use provenir_random::Stream;
use tch::{Device, Kind, Tensor};

use super::{LearnerSettings, NORMALISED_BETA1, Saved, host, unreadable};
use provenir_execution::{Coded, coded};

/// How many critics.
const COUNT: usize = 2;

/// What a critic says of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The mean of the return; of the two critics the lower one is believed.
    Mean,
    /// So many quantiles of the return. Of those of both critics together the highest are not believed: `dropped` a
    /// critic.
    Quantiles {
        /// Quantiles a critic.
        count: usize,
        /// Of them, how many a critic are not believed.
        dropped: usize,
    },
}

/// Two critics.
pub(super) struct Critics {
    value: Value,
    observation: usize,
    pub(super) ensemble: Ensemble,
    pub(super) gradient: Gradient,
    pub(super) next: Next,
    adam: Adam,
    forward: Forward,
    backward: Backward,
    /// Gradient by observations and actions, `[2, B, O + A]`.
    by_input: Tensor,
    /// The middle of each quantile's share; empty where the mean is learned.
    levels: Vec<f32>,
    /// The same where the critics are, `[N, 1]`.
    levels_there: Tensor,
}

/// Who values what comes next.
pub(super) enum Next {
    /// Copies that follow the critics slowly.
    Slow {
        networks: Ensemble,
        forward: Forward,
        tau: f64,
    },
    /// The critics themselves, which see now and next in one batch and normalise it: CrossQ (Bhatt et al. 2024).
    Joint {
        passes: Renormalised,
        /// What the critics are outside of that batch: with the running statistics.
        folded: Ensemble,
    },
}

/// Transitions, row by row, with actions that the policy takes next.
pub(super) struct Transitions<'a> {
    pub(super) observations: &'a Tensor,
    pub(super) actions: &'a Tensor,
    pub(super) rewards: &'a Tensor,
    pub(super) discounts: &'a Tensor,
    pub(super) next_observations: &'a Tensor,
    pub(super) next_actions: &'a Tensor,
    /// What the entropy of the next action is worth, −α log π, `[B, 1]`.
    pub(super) soft: &'a Tensor,
}

struct State {
    critics: Saved,
    /// Values of the slow copies, or the running statistics.
    next: Vec<f32>,
}

coded! { State { critics, next } }

impl Critics {
    pub(super) fn new(
        settings: &LearnerSettings,
        observation: usize,
        action: usize,
        stream: &Stream,
        device: Device,
    ) -> Result<Self, NnError> {
        let outputs = match settings.value {
            Value::Mean => 1,
            Value::Quantiles { count, .. } => count,
        };
        let shape = Shape {
            inputs: observation + action,
            hidden: settings.hidden.clone(),
            outputs,
            activation: Activation::Relu,
        };
        let streams: [Stream; COUNT] = std::array::from_fn(|critic| stream.child("critic", critic as u64));
        let ensemble = Ensemble::initial(&shape, &streams, device)?;
        let copy = Ensemble::initial(&shape, &streams, device)?;
        let gradient = ensemble.gradient()?;
        let forward = Forward::new(&ensemble, settings.batch)?;
        let levels = match settings.value {
            Value::Mean => Vec::new(),
            Value::Quantiles { count, .. } => (0..count)
                .map(|quantile| ((quantile as f64 + 0.5) / count as f64) as f32)
                .collect(),
        };
        let mut adam = AdamSettings::default();
        let next = if settings.normalised_critics {
            adam.beta1 = NORMALISED_BETA1;
            Next::Joint {
                passes: Renormalised::new(&ensemble, 2 * settings.batch, settings.batch)?,
                folded: copy,
            }
        } else {
            Next::Slow {
                forward: Forward::new(&copy, settings.batch)?,
                networks: copy,
                tau: settings.tau,
            }
        };
        Ok(Self {
            value: settings.value,
            next,
            adam: Adam::new(&ensemble, &gradient, adam)?,
            backward: Backward::new(&ensemble, settings.batch)?,
            by_input: forward.input().f_zeros_like()?,
            observation,
            levels_there: Tensor::f_from_slice(&levels)?
                .f_unsqueeze(1)?
                .f_to_device(device)?,
            levels,
            gradient,
            ensemble,
            forward,
        })
    }

    /// What comes before a step of that rate; gives whether it is one of those whose normalisation is corrected.
    pub(super) fn prepare(&mut self, rate: f64) -> Result<bool, NnError> {
        self.adam.prepare(&[rate; COUNT])?;
        Ok(match &mut self.next {
            Next::Slow { .. } => false,
            Next::Joint { passes, .. } => passes.prepare(),
        })
    }

    /// A step towards what the critics should have said; gives the loss, one number in double precision.
    pub(super) fn step(&mut self, transitions: &Transitions<'_>) -> Result<Tensor, NnError> {
        let loss = self.differentiate(transitions)?;
        self.adam.apply(None)?;
        Ok(loss)
    }

    /// What comes after a step.
    pub(super) fn settle(&mut self) -> Result<(), NnError> {
        self.adam.settle()
    }

    pub(super) fn differentiate(&mut self, transitions: &Transitions<'_>) -> Result<Tensor, NnError> {
        let (said, next) = self.say(transitions)?;
        let targets = self.targets(&next, transitions)?;
        let (loss, delta) = match self.value {
            Value::Mean => squared(&said, &targets)?,
            Value::Quantiles { .. } if said.device() == Device::Cpu => {
                quantile_huber(&said, &targets, &self.levels)?
            }
            Value::Quantiles { .. } => quantile_huber_by_tensors(&said, &targets, &self.levels_there)?,
        };
        match &mut self.next {
            Next::Slow { .. } => {
                self.backward.output().shallow_clone().f_copy_(&delta)?;
                self.backward
                    .run(&self.ensemble, &self.forward, &mut self.gradient)?;
            }
            Next::Joint { passes, .. } => {
                passes.delta().shallow_clone().f_copy_(&delta)?;
                passes.back(&self.ensemble, &mut self.gradient)?;
            }
        }
        Ok(loss)
    }

    /// What the critics say of the actions that were taken, and what is said of those taken next, `[2, B, N]` each.
    pub(super) fn say(&mut self, transitions: &Transitions<'_>) -> Result<(Tensor, Tensor), NnError> {
        let Transitions {
            observations,
            actions,
            next_observations,
            next_actions,
            ..
        } = transitions;
        match &mut self.next {
            Next::Slow {
                networks, forward, ..
            } => {
                fill(self.forward.input(), observations, actions)?;
                self.forward.run(&self.ensemble)?;
                fill(forward.input(), next_observations, next_actions)?;
                forward.run(networks)?;
                Ok((
                    self.forward.output().shallow_clone(),
                    forward.output().shallow_clone(),
                ))
            }
            Next::Joint { passes, .. } => {
                let rows = observations.size()[0];
                let half = |all: &Tensor, half: i64| all.f_narrow(1, half * rows, rows);
                fill(&half(passes.input(), 0)?, observations, actions)?;
                fill(&half(passes.input(), 1)?, next_observations, next_actions)?;
                passes.run(&self.ensemble)?;
                Ok((half(passes.output(), 0)?, half(passes.output(), 1)?))
            }
        }
    }

    /// What the critics should have said of a transition, `[B, T]`: its reward, and what is believed of what comes next.
    pub(super) fn targets(&self, next: &Tensor, transitions: &Transitions<'_>) -> Result<Tensor, NnError> {
        let believed = match self.value {
            Value::Mean => next.f_amin([0_i64].as_slice(), false)?,
            Value::Quantiles { count, dropped } => {
                let (sorted, _) = next
                    .f_transpose(0, 1)?
                    .f_reshape([next.size()[1], -1])?
                    .f_sort(1, false)?;
                sorted.f_narrow(1, 0, (COUNT * (count - dropped)) as i64)?
            }
        };
        Ok(believed
            .f_add(transitions.soft)?
            .f_mul(transitions.discounts)?
            .f_add(transitions.rewards)?)
    }

    /// What the critics say of these actions, in the mean over the batch, and its slope by each sample's action,
    /// `[B, A]`: what the policy climbs. With means that is the lower critic's value, with quantiles the mean of all.
    pub(super) fn slope(
        &mut self,
        observations: &Tensor,
        actions: &Tensor,
    ) -> Result<(Tensor, Tensor), NnError> {
        let networks = match &mut self.next {
            Next::Slow { .. } => &self.ensemble,
            Next::Joint { passes, folded } => {
                passes.fold(&self.ensemble, folded)?;
                &*folded
            }
        };
        fill(self.forward.input(), observations, actions)?;
        self.forward.run(networks)?;
        let said = self.forward.output();
        let mut delta = self.backward.output().shallow_clone();
        let value = match self.value {
            Value::Mean => {
                let (lower, critic) = said.f_min_dim(0, true)?;
                let _ = delta.f_zero_()?;
                let _ = delta.f_scatter_value_(0, &critic, 1.0)?;
                lower.f_mean(Kind::Float)?
            }
            Value::Quantiles { count, .. } => {
                let _ = delta.f_fill_(1.0 / (COUNT * count) as f64)?;
                said.f_mean(Kind::Float)?
            }
        };
        self.backward
            .run_to_input(networks, &self.forward, &self.by_input)?;
        let width = self.by_input.size()[2] - self.observation as i64;
        let slope = self
            .by_input
            .f_narrow(2, self.observation as i64, width)?
            .f_sum_dim_intlist([0_i64].as_slice(), false, Kind::Float)?;
        Ok((value, slope))
    }

    /// Slow copies move towards the critics.
    pub(super) fn follow(&mut self) -> Result<(), NnError> {
        match &mut self.next {
            Next::Slow { networks, tau, .. } => networks.approach(&self.ensemble, *tau),
            Next::Joint { .. } => Ok(()),
        }
    }

    pub(super) fn save(&self) -> Result<Vec<u8>, NnError> {
        let next = match &self.next {
            Next::Slow { networks, .. } => networks.save()?,
            // There was a pass for every step of Adam.
            Next::Joint { passes, .. } => passes.save()?.0,
        };
        let state = State {
            critics: Saved::of(&self.ensemble, &self.adam)?,
            next,
        };
        let mut bytes = Vec::new();
        state.write(&mut bytes);
        Ok(bytes)
    }

    pub(super) fn load(&mut self, mut bytes: &[u8]) -> Result<(), NnError> {
        let State { critics, next } = State::read(&mut bytes).ok_or_else(|| unreadable("critics"))?;
        critics.load(&mut self.ensemble, &mut self.adam)?;
        match &mut self.next {
            Next::Slow { networks, .. } => networks.load(&next),
            Next::Joint { passes, .. } => passes.load(&next, critics.steps),
        }
    }
}

/// Every critic is shown the same.
fn fill(input: &Tensor, observations: &Tensor, actions: &Tensor) -> Result<(), NnError> {
    let (observation, action) = (observations.size()[1], actions.size()[1]);
    input.f_narrow(2, 0, observation)?.f_copy_(observations)?;
    input.f_narrow(2, observation, action)?.f_copy_(actions)?;
    Ok(())
}

/// Half the squared error, in the mean over the batch, summed over the critics; and its gradient by what they said
/// (`[2, B, 1]`). Targets are `[B, 1]`.
fn squared(said: &Tensor, targets: &Tensor) -> Result<(Tensor, Tensor), NnError> {
    let rows = said.size()[1] as f64;
    let error = said.f_sub(targets)?;
    let loss = error
        .f_square()?
        .f_sum(Kind::Float)?
        .f_to_kind(Kind::Double)?
        .f_div_scalar(2.0 * rows)?;
    Ok((loss, error.f_div_scalar(rows)?))
}

/// The quantile Huber loss (Dabney et al. 2018, equation 10, κ = 1), in the mean over samples, critics, quantiles and
/// targets; and its gradient by what the critics said (`[2, B, N]`). Targets are `[B, T]`, a level stands for each of the N.
///
/// There are 2 · B · N · T pairs and few numbers: one pass of the processor takes a fifth of the time of LibTorch's many
/// over the pairs.
fn quantile_huber(said: &Tensor, targets: &Tensor, levels: &[f32]) -> Result<(Tensor, Tensor), NnError> {
    let (shape, width) = (said.size(), targets.size()[1] as usize);
    let (said, targets) = (host(said)?, host(targets)?);
    let pairs = (said.len() * width) as f64;
    let mut deltas = vec![0.0; said.len()];
    let mut losses = vec![0.0; levels.len()];
    let mut loss = 0.0;
    let rows = said
        .chunks_exact(levels.len())
        .zip(deltas.chunks_exact_mut(levels.len()));
    for ((said, deltas), targets) in rows.zip(targets.chunks_exact(width).cycle()) {
        losses.fill(0.0);
        for target in targets {
            // Quantile by quantile, each with sums of its own: the order that a processor's vectors like.
            let quantiles = said.iter().zip(levels);
            for ((said, level), (delta, loss)) in quantiles.zip(deltas.iter_mut().zip(&mut losses)) {
                let error = target - said;
                let clipped = error.clamp(-1.0, 1.0);
                let weight = if error < 0.0 { 1.0 - level } else { *level };
                let slope = weight * clipped;
                *delta -= slope;
                // e²/2 within ±1 and |e| − 1/2 beyond are both c (e − c/2), where c is e clipped.
                *loss += slope * (error - 0.5 * clipped);
            }
        }
        loss += losses.iter().map(|loss| f64::from(*loss)).sum::<f64>();
        for delta in deltas {
            *delta /= pairs as f32;
        }
    }
    Ok((
        Tensor::f_from_slice(&[loss / pairs])?.f_squeeze()?,
        Tensor::f_from_slice(&deltas)?.f_view(shape.as_slice())?,
    ))
}

/// [`quantile_huber`] where numbers cannot be had without waiting for a GPU; levels are `[N, 1]`.
pub(super) fn quantile_huber_by_tensors(
    said: &Tensor,
    targets: &Tensor,
    levels: &Tensor,
) -> Result<(Tensor, Tensor), NnError> {
    let error = targets.f_unsqueeze(1)?.f_sub(&said.f_unsqueeze(3)?)?;
    let pairs = error.numel() as f64;
    let clipped = error.f_clamp(-1.0, 1.0)?;
    let slope = levels
        .f_sub(&error.f_lt(0.0)?.f_to_kind(Kind::Float)?)?
        .f_abs()?
        .f_mul(&clipped)?;
    let delta = slope
        .f_sum_dim_intlist([3_i64].as_slice(), false, Kind::Float)?
        .f_div_scalar(-pairs)?;
    let loss = slope
        .f_mul(&error.f_sub(&clipped.f_mul_scalar(0.5)?)?)?
        .f_sum(Kind::Double)?
        .f_div_scalar(pairs)?;
    Ok((loss, delta))
}

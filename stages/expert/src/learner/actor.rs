use provenir_nn::{Adam, AdamSettings, Backward, Ensemble, Forward, Gradient, NnError, Shape};
use provenir_policy::{About, ActionMap, Activation, Layer, Policy, Squash};
use provenir_random::Stream;
use tch::{Device, Kind, Tensor};

use super::{LearnerSettings, NORMALISED_BETA1, Saved, normal, unreadable};
use crate::bytes::Coded;

/// Bounds of the logarithm of the deviation, as in the paper's code.
const LOG_STD: (f64, f64) = (-20.0, 2.0);

/// A Gaussian policy squashed by tanh: the network gives mean and logarithm of the deviation of every action.
pub(super) struct Actor {
    action: usize,
    pub(super) ensemble: Ensemble,
    pub(super) gradient: Gradient,
    adam: Adam,
    forward: Forward,
    backward: Backward,
    /// Buffers for the environments' observations, made for as many as come.
    explorer: Option<Forward>,
}

/// Actions drawn from the policy.
pub(super) struct Sample {
    /// In (−1, 1), `[B, A]`.
    pub(super) actions: Tensor,
    /// `[B, 1]`
    pub(super) log_probability: Tensor,
    /// Standard normal, `[B, A]`.
    noise: Tensor,
    /// Deviations, `[B, A]`.
    deviation: Tensor,
    /// 1 where the deviation is within its bounds, else 0; `[B, A]`.
    free: Tensor,
}

impl Actor {
    pub(super) fn new(
        settings: &LearnerSettings,
        observation: usize,
        action: usize,
        stream: &Stream,
        device: Device,
    ) -> Result<Self, NnError> {
        let shape = Shape {
            inputs: observation,
            hidden: settings.hidden.clone(),
            outputs: 2 * action,
            activation: Activation::Relu,
        };
        let ensemble = Ensemble::initial(&shape, &[stream.child("actor", 0)], device)?;
        let gradient = ensemble.gradient()?;
        let mut adam = AdamSettings::default();
        if settings.normalised_critics {
            adam.beta1 = NORMALISED_BETA1;
        }
        Ok(Self {
            action,
            adam: Adam::new(&ensemble, &gradient, adam)?,
            forward: Forward::new(&ensemble, settings.batch)?,
            backward: Backward::new(&ensemble, settings.batch)?,
            gradient,
            ensemble,
            explorer: None,
        })
    }

    /// Draws an action for every observation, `[B, O]`. What the pass computed stays until the next one, for
    /// [`Actor::step`].
    pub(super) fn sample(&mut self, observations: &Tensor, noise: Stream) -> Result<Sample, NnError> {
        self.forward.input().f_get(0)?.f_copy_(observations)?;
        self.forward.run(&self.ensemble)?;
        let output = self.forward.output().f_get(0)?;
        let (rows, action) = (output.size()[0], self.action as i64);
        let mean = output.f_narrow(1, 0, action)?;
        let raw = output.f_narrow(1, action, action)?;
        let log_deviation = raw.f_clamp(LOG_STD.0, LOG_STD.1)?;
        let free = raw.f_eq_tensor(&log_deviation)?.f_to_kind(Kind::Float)?;
        let deviation = log_deviation.f_exp()?;
        let noise = normal(noise, [rows, action], output.device())?;
        let before = mean.f_addcmul(&deviation, &noise)?;
        let actions = before.f_tanh()?;
        // log N(u) − log(1 − tanh²u), the latter as 2 (log 2 − u − softplus(−2u)), which does not cancel.
        let squashing = before
            .f_mul_scalar(-2.0)?
            .f_softplus()?
            .f_add(&before)?
            .f_add_scalar(-std::f64::consts::LN_2)?
            .f_mul_scalar(2.0)?;
        let half_log_tau = 0.5 * libm::log(2.0 * std::f64::consts::PI);
        let log_probability = noise
            .f_square()?
            .f_mul_scalar(-0.5)?
            .f_sub(&log_deviation)?
            .f_add_scalar(-half_log_tau)?
            .f_add(&squashing)?
            .f_sum_dim_intlist(1, true, Kind::Float)?;
        Ok(Sample {
            actions,
            log_probability,
            noise,
            deviation,
            free,
        })
    }

    /// A step against the gradient of the mean of α log π − Q at the last sample; `slope` is that of Q by the actions,
    /// `[B, A]`.
    pub(super) fn step(
        &mut self,
        sample: &Sample,
        slope: &Tensor,
        temperature: f64,
        rate: f64,
    ) -> Result<(), NnError> {
        self.differentiate(sample, slope, temperature)?;
        let _ = self.adam.step(&[rate], None)?;
        Ok(())
    }

    pub(super) fn differentiate(
        &mut self,
        sample: &Sample,
        slope: &Tensor,
        temperature: f64,
    ) -> Result<(), NnError> {
        let Sample {
            actions,
            noise,
            deviation,
            free,
            ..
        } = sample;
        let rows = actions.size()[0] as f64;
        // By u, where the action is tanh u: log π has the slope 2 tanh u there, and Q what comes through tanh.
        let through = actions.f_square()?.f_neg()?.f_add_scalar(1.0)?.f_mul(slope)?;
        let by_mean = actions
            .f_mul_scalar(2.0 * temperature)?
            .f_sub(&through)?
            .f_div_scalar(rows)?;
        // u moves with the noise by the deviation, whose logarithm log π also counts itself.
        let by_log_deviation = by_mean
            .f_mul(deviation)?
            .f_mul(noise)?
            .f_add_scalar(-temperature / rows)?
            .f_mul(free)?;
        let delta = self.backward.output().f_get(0)?;
        let action = self.action as i64;
        delta.f_narrow(1, 0, action)?.f_copy_(&by_mean)?;
        delta.f_narrow(1, action, action)?.f_copy_(&by_log_deviation)?;
        self.backward
            .run(&self.ensemble, &self.forward, &mut self.gradient)
    }

    /// Draws an action for every row of observations, without touching what [`Actor::sample`] left.
    pub(super) fn explore(
        &mut self,
        observations: &[f32],
        actions: &mut [f32],
        mut noise: Stream,
    ) -> Result<(), NnError> {
        let rows = actions.len() / self.action;
        let forward = match &mut self.explorer {
            Some(forward) if forward.rows() == rows => forward,
            other => other.insert(Forward::new(&self.ensemble, rows)?),
        };
        let input = forward.input();
        input
            .shallow_clone()
            .f_copy_(&Tensor::f_from_slice(observations)?.f_view(input.size().as_slice())?)?;
        forward.run(&self.ensemble)?;
        let mut output = vec![0.0_f32; rows * 2 * self.action];
        let count = output.len();
        forward.output().f_copy_data(&mut output, count)?;
        let given = output.chunks_exact(2 * self.action);
        for (chosen, given) in actions.chunks_exact_mut(self.action).zip(given) {
            let (means, logarithms) = given.split_at(self.action);
            for ((action, mean), logarithm) in chosen.iter_mut().zip(means).zip(logarithms) {
                let deviation = libm::exp(f64::from(*logarithm).clamp(LOG_STD.0, LOG_STD.1));
                *action = libm::tanh(f64::from(*mean) + deviation * noise.normal()) as f32;
            }
        }
        Ok(())
    }

    /// tanh of the means.
    pub(super) fn policy(&self, about: About) -> Result<Policy, NnError> {
        let mut layers = self.ensemble.member(0)?;
        if let Some(last) = layers.pop() {
            let inputs = last.inputs();
            layers.push(Layer::new(
                inputs,
                self.action,
                last.weights()[..inputs * self.action].to_vec(),
                last.bias()[..self.action].to_vec(),
            )?);
        }
        let map = ActionMap {
            squash: Squash::Tanh,
            low: vec![-1.0; self.action],
            high: vec![1.0; self.action],
        };
        Ok(Policy::new(layers, Activation::Relu, None, map, about)?)
    }

    pub(super) fn save(&self) -> Result<Vec<u8>, NnError> {
        let (mean, square, steps) = self.adam.save()?;
        let saved = Saved {
            networks: self.ensemble.save()?,
            mean,
            square,
            steps,
        };
        let mut bytes = Vec::new();
        saved.write(&mut bytes);
        Ok(bytes)
    }

    pub(super) fn load(&mut self, mut bytes: &[u8]) -> Result<(), NnError> {
        let saved = Saved::read(&mut bytes).ok_or_else(|| unreadable("an actor"))?;
        self.ensemble.load(&saved.networks)?;
        self.adam.load(&saved.mean, &saved.square, saved.steps)
    }
}

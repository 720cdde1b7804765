use provenir_nn::{Adam, AdamSettings, Backward, Ensemble, Forward, Gradient, NnError, Shape};
use provenir_policy::{About, ActionMap, Activation, Layer, Policy};
use provenir_random::Stream;
use tch::{Device, Kind, Tensor};

use super::inputs::Entropy;
use super::spread::{Gaussian, Spread};
use super::{LearnerSettings, NORMALISED_BETA1, Saved, unreadable};
use provenir_execution::Coded;

/// A Gaussian policy squashed by tanh.
pub(super) struct Actor {
    action: usize,
    pub(super) ensemble: Ensemble,
    pub(super) gradient: Gradient,
    pub(super) spread: Spread,
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
    gaussian: Gaussian,
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
            outputs: if settings.gsde.is_some() {
                action
            } else {
                2 * action
            },
            activation: Activation::Relu,
        };
        let ensemble = Ensemble::initial(&shape, &[stream.child("actor", 0)], device)?;
        let gradient = ensemble.gradient()?;
        let mut adam = AdamSettings::default();
        if settings.normalised_critics {
            adam.beta1 = NORMALISED_BETA1;
        }
        let width = settings.hidden.last().copied().unwrap_or(observation);
        Ok(Self {
            action,
            spread: Spread::new(settings.gsde, width, action, adam, device)?,
            adam: Adam::new(&ensemble, &gradient, adam)?,
            forward: Forward::new(&ensemble, settings.batch)?,
            backward: Backward::new(&ensemble, settings.batch)?,
            gradient,
            ensemble,
            explorer: None,
        })
    }

    /// Draws an action for every observation, `[B, O]`, with standard normal noise, `[B, A]`. What the pass computed stays
    /// until the next one, for [`Actor::differentiate`].
    pub(super) fn sample(&mut self, observations: &Tensor, noise: &Tensor) -> Result<Sample, NnError> {
        self.forward.input().f_get(0)?.f_copy_(observations)?;
        self.forward.run(&self.ensemble)?;
        let gaussian = self.spread.gaussian(&self.forward, self.action)?;
        let before = gaussian.mean.f_addcmul(&gaussian.deviation, noise)?;
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
            .f_sub(&gaussian.log_deviation)?
            .f_add_scalar(-half_log_tau)?
            .f_add(&squashing)?
            .f_sum_dim_intlist(1, true, Kind::Float)?;
        Ok(Sample {
            actions,
            log_probability,
            noise: noise.shallow_clone(),
            gaussian,
        })
    }

    /// What comes before a step of that rate.
    pub(super) fn prepare(&mut self, rate: f64) -> Result<(), NnError> {
        self.adam.prepare(&[rate])?;
        self.spread.prepare(rate)
    }

    /// A step against the gradient of the mean of α log π − Q at the last sample; `slope` is that of Q by the actions,
    /// `[B, A]`.
    pub(super) fn step(&mut self, sample: &Sample, slope: &Tensor, entropy: &Entropy) -> Result<(), NnError> {
        self.differentiate(sample, slope, entropy)?;
        self.adam.apply(None)?;
        self.spread.step()
    }

    /// What comes after a step.
    pub(super) fn settle(&mut self) -> Result<(), NnError> {
        self.adam.settle()?;
        self.spread.settle()
    }

    pub(super) fn differentiate(
        &mut self,
        sample: &Sample,
        slope: &Tensor,
        entropy: &Entropy,
    ) -> Result<(), NnError> {
        let Sample {
            actions,
            noise,
            gaussian,
            ..
        } = sample;
        let rows = actions.size()[0] as f64;
        // By u, where the action is tanh u: log π has the slope 2 tanh u there, and Q what comes through tanh.
        let through = actions.f_square()?.f_neg()?.f_add_scalar(1.0)?.f_mul(slope)?;
        let by_mean = actions
            .f_mul(&entropy.double)?
            .f_sub(&through)?
            .f_div_scalar(rows)?;
        // u moves with the noise by the deviation, whose logarithm log π also counts itself.
        let by_log_deviation = by_mean
            .f_mul(&gaussian.deviation)?
            .f_mul(noise)?
            .f_add(&entropy.negative_share)?;
        let by_features = self.spread.differentiate(
            gaussian,
            &self.forward,
            (&by_mean, &by_log_deviation),
            &mut self.backward.output().f_get(0)?,
        )?;
        self.backward.run_with(
            &self.ensemble,
            &self.forward,
            by_features.as_ref(),
            &mut self.gradient,
        )
    }

    /// Draws an action for every row of observations, without touching what [`Actor::sample`] left.
    pub(super) fn explore(
        &mut self,
        observations: &[f32],
        actions: &mut [f32],
        noise: Stream,
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
        let drawn = self.spread.draw(forward, self.action, noise)?;
        for (action, drawn) in actions.iter_mut().zip(drawn) {
            *action = libm::tanh(drawn) as f32;
        }
        Ok(())
    }

    /// The policy without its noise.
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
            squash: self.spread.squash(),
            low: vec![-1.0; self.action],
            high: vec![1.0; self.action],
        };
        Ok(Policy::new(layers, Activation::Relu, None, map, about)?)
    }

    pub(super) fn save(&self) -> Result<Vec<u8>, NnError> {
        let mut bytes = Vec::new();
        Saved::of(&self.ensemble, &self.adam)?.write(&mut bytes);
        if let Some(saved) = self.spread.save()? {
            saved.write(&mut bytes);
        }
        Ok(bytes)
    }

    pub(super) fn load(&mut self, mut bytes: &[u8]) -> Result<(), NnError> {
        let saved = Saved::read(&mut bytes).ok_or_else(|| unreadable("an actor"))?;
        saved.load(&mut self.ensemble, &mut self.adam)?;
        self.spread.load(Saved::read(&mut bytes).as_ref())
    }
}

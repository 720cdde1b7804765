//! Inference: blocks of rows through all layers.

#![expect(
    clippy::inline_always,
    reason = "what is not inlined into the dispatched function is compiled without its instruction set"
)]

use std::sync::Arc;

use pulp::{Arch, Simd, WithSimd};

use crate::kernel::PackedLayer;
use crate::{ActionMap, Activation, Policy, Squash, Standardisation};

/// Rows that pass through all layers together: enough to use a panel of weights many times while it is near, few
/// enough for two layers' outputs to stay near as well.
const BLOCK: usize = 64;

/// Inference with a [`Policy`]. One for each thread: clones share the weights.
///
/// The action of a row depends on the observation of that row alone, to the bit: not on the other rows, on their
/// number, on the row's place, on the thread, or on the instruction set.
#[derive(Clone, Debug)]
pub struct Actor {
    network: Arc<Network>,
    front: Vec<f32>,
    back: Vec<f32>,
}

#[derive(Debug)]
struct Network {
    arch: Arch,
    layers: Vec<PackedLayer>,
    activation: Activation,
    standardisation: Option<Standardisation>,
    action_map: ActionMap,
    observation_width: usize,
}

impl Policy {
    /// An actor that follows this policy.
    pub fn actor(&self) -> Actor {
        self.actor_on(Arch::new())
    }

    pub(crate) fn actor_on(&self, arch: Arch) -> Actor {
        let lanes = arch.dispatch(Lanes);
        let layers: Vec<_> = self
            .layers()
            .iter()
            .map(|layer| PackedLayer::new(layer, lanes))
            .collect();
        let widest = layers.iter().map(PackedLayer::width).max().unwrap_or(0);
        let stride = widest.max(self.observation_width());
        Actor {
            network: Arc::new(Network {
                arch,
                layers,
                activation: self.activation(),
                standardisation: self.standardisation().cloned(),
                action_map: self.action_map().clone(),
                observation_width: self.observation_width(),
            }),
            front: vec![0.0; BLOCK * stride],
            back: vec![0.0; BLOCK * stride],
        }
    }
}

impl Actor {
    /// Number of entries of an observation.
    pub fn observation_width(&self) -> usize {
        self.network.observation_width
    }

    /// Number of entries of an action.
    pub fn action_width(&self) -> usize {
        self.network.action_map.low.len()
    }

    /// Writes the action for each observation; both are given row after row, any number of rows.
    ///
    /// # Panics
    ///
    /// Where the two do not hold the same number of whole rows.
    pub fn act(&mut self, observations: &[f32], actions: &mut [f32]) {
        let (width, action_width) = (self.observation_width(), self.action_width());
        assert!(
            observations.len().is_multiple_of(width)
                && actions.len().is_multiple_of(action_width)
                && observations.len() / width == actions.len() / action_width,
            "{} observed values of width {width} do not match {} action values of width {action_width}",
            observations.len(),
            actions.len()
        );
        let blocks = observations
            .chunks(BLOCK * width)
            .zip(actions.chunks_mut(BLOCK * action_width));
        for (observations, actions) in blocks {
            self.network.arch.dispatch(Pass {
                network: &self.network,
                observations,
                actions,
                front: &mut self.front,
                back: &mut self.back,
            });
        }
    }
}

/// How many f32 a vector holds.
struct Lanes;

impl WithSimd for Lanes {
    type Output = usize;

    fn with_simd<S: Simd>(self, _: S) -> usize {
        S::F32_LANES
    }
}

/// One block of rows through the whole network.
struct Pass<'a> {
    network: &'a Network,
    observations: &'a [f32],
    actions: &'a mut [f32],
    front: &'a mut [f32],
    back: &'a mut [f32],
}

impl WithSimd for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Network {
            layers,
            activation,
            standardisation,
            action_map,
            observation_width,
            ..
        } = self.network;
        let rows = self.observations.len() / observation_width;
        let (mut front, mut back) = (self.front, self.back);
        let mut stride = *observation_width;
        standardise(
            standardisation.as_ref(),
            self.observations,
            &mut front[..rows * stride],
        );
        for (index, layer) in layers.iter().enumerate() {
            layer.forward(simd, rows, front, stride, back);
            stride = layer.width();
            (front, back) = (back, front);
            if index + 1 < layers.len() {
                activate(*activation, &mut front[..rows * stride]);
            }
        }
        let width = action_map.low.len();
        for (output, action) in front
            .chunks_exact(stride)
            .zip(self.actions.chunks_exact_mut(width))
        {
            map(action_map, output, action);
        }
    }
}

#[inline(always)]
fn standardise(standardisation: Option<&Standardisation>, observations: &[f32], standardised: &mut [f32]) {
    let Some(Standardisation { mean, scale, clip }) = standardisation else {
        standardised.copy_from_slice(observations);
        return;
    };
    let clip = clip.unwrap_or(f64::INFINITY);
    let width = mean.len();
    let rows = observations
        .chunks_exact(width)
        .zip(standardised.chunks_exact_mut(width));
    for (observed, standardised) in rows {
        for (((observed, standardised), mean), scale) in
            observed.iter().zip(standardised).zip(mean).zip(scale)
        {
            *standardised = ((f64::from(*observed) - mean) / scale).clamp(-clip, clip) as f32;
        }
    }
}

#[inline(always)]
fn activate(activation: Activation, values: &mut [f32]) {
    match activation {
        // Written so that NaN stays NaN: a broken input must not look like a sound one.
        Activation::Relu => values
            .iter_mut()
            .for_each(|value| *value = if *value <= 0.0 { 0.0 } else { *value }),
        Activation::Tanh => values.iter_mut().for_each(|value| *value = libm::tanhf(*value)),
    }
}

#[inline(always)]
fn map(ActionMap { squash, low, high }: &ActionMap, output: &[f32], action: &mut [f32]) {
    for (((output, action), low), high) in output.iter().zip(action).zip(low).zip(high) {
        *action = match squash {
            Squash::Clip => output.clamp(*low, *high),
            Squash::Tanh => unscale(*output, *low, *high),
            Squash::ClippedTanh { bound } => unscale(output.clamp(-bound, *bound), *low, *high),
        };
    }
}

/// The hyperbolic tangent of a number, from between −1 and 1 to between the bounds.
#[inline(always)]
fn unscale(output: f32, low: f32, high: f32) -> f32 {
    low + 0.5 * (libm::tanhf(output) + 1.0) * (high - low)
}

#[cfg(test)]
mod tests;

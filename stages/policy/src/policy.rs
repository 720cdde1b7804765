use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::PolicyError;
use crate::header::is_reserved;
use crate::tensors::short;

/// The most layers a policy may have.
pub const LAYER_LIMIT: usize = 64;

/// The widest layer, observation or action a policy may have.
pub const WIDTH_LIMIT: usize = 1 << 16;

/// A deterministic policy:
/// `action = map(W_n · … σ(W_1 · clip((observation − mean) / scale) + b_1) … + b_n)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    layers: Vec<Layer>,
    activation: Activation,
    standardisation: Option<Standardisation>,
    action_map: ActionMap,
    about: About,
}

/// An affine map of f32, or several side by side: group g of the outputs depends on group g of the inputs alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    groups: usize,
    inputs: usize,
    outputs: usize,
    weights: Vec<f32>,
    bias: Vec<f32>,
}

/// The non-linearity between layers; there is none after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `max(x, 0)`.
    Relu,
    /// Hyperbolic tangent.
    Tanh,
}

/// How observations are brought to unit scale: `(observation − mean) / scale` in f64, clipped, then rounded to f32.
#[derive(Clone, Debug, PartialEq)]
pub struct Standardisation {
    /// What is subtracted from each entry.
    pub mean: Vec<f64>,
    /// What each entry is divided by; positive.
    pub scale: Vec<f64>,
    /// Bound on the size of the quotient; positive.
    pub clip: Option<f64>,
}

/// What becomes of the last layer's output.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionMap {
    /// How values outside the bounds are avoided.
    pub squash: Squash,
    /// Lower bound of each action.
    pub low: Vec<f32>,
    /// Upper bound of each action.
    pub high: Vec<f32>,
}

/// How an action is kept between its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Squash {
    /// `min(max(x, low), high)`.
    Clip,
    /// `low + (tanh(x) + 1) / 2 · (high − low)`.
    Tanh,
    /// As [`Squash::Tanh`], of `min(max(x, −bound), bound)`: the deterministic action of SAC and TQC with gSDE, which keep
    /// their mean from saturating.
    ClippedTanh {
        /// Positive.
        bound: f32,
    },
}

/// Where a policy comes from and what it is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Name of the environment it acts in.
    pub environment: String,
    /// Whether the last entry of its observations is the share of the episode's time that is left.
    pub time_feature: bool,
    /// How it was made (`bc`, `rbc`, `ppo`), for people.
    pub method: String,
    /// Further entries, kept as they are: `training_steps`, `source`, …. Their keys are none of those that describe a policy.
    pub notes: BTreeMap<String, String>,
}

impl Layer {
    /// A layer of weights `[outputs, inputs]`, row by row, and a bias for each output.
    pub fn new(
        inputs: usize,
        outputs: usize,
        weights: Vec<f32>,
        bias: Vec<f32>,
    ) -> Result<Self, PolicyError> {
        Self::grouped(1, inputs, outputs, weights, bias)
    }

    /// A layer of weights `[groups, outputs / groups, inputs / groups]`, and a bias for each output; `groups` divides both
    /// numbers.
    pub fn grouped(
        groups: usize,
        inputs: usize,
        outputs: usize,
        weights: Vec<f32>,
        bias: Vec<f32>,
    ) -> Result<Self, PolicyError> {
        let widths = 1..=WIDTH_LIMIT;
        if !widths.contains(&inputs) || !widths.contains(&outputs) {
            return Err(PolicyError::new(format!(
                "a layer from {inputs} to {outputs} values is not within 1 to {WIDTH_LIMIT}"
            )));
        }
        if groups == 0 || !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
            return Err(PolicyError::new(format!(
                "a layer from {inputs} to {outputs} values does not make {groups} groups"
            )));
        }
        if weights.len() != inputs * outputs / groups || bias.len() != outputs {
            return Err(PolicyError::new(format!(
                "a layer from {inputs} to {outputs} values with {} weights and {} biases",
                weights.len(),
                bias.len()
            )));
        }
        if !weights.iter().chain(&bias).all(|value| value.is_finite()) {
            return Err(PolicyError::new("a layer has weights that are not finite"));
        }
        Ok(Self {
            groups,
            inputs,
            outputs,
            weights,
            bias,
        })
    }

    /// Number of groups; 1 for an ordinary layer.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Weights `[outputs, inputs]`, or `[groups, outputs / groups, inputs / groups]`, row by row.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Bias of each output.
    pub fn bias(&self) -> &[f32] {
        &self.bias
    }
}

impl Policy {
    /// A policy of these parts, where they fit together.
    pub fn new(
        layers: Vec<Layer>,
        activation: Activation,
        standardisation: Option<Standardisation>,
        action_map: ActionMap,
        about: About,
    ) -> Result<Self, PolicyError> {
        let (Some(first), Some(last)) = (layers.first(), layers.last()) else {
            return Err(PolicyError::new("it has no layers"));
        };
        if layers.len() > LAYER_LIMIT {
            return Err(PolicyError::new(format!(
                "it has {} layers; at most {LAYER_LIMIT} are taken",
                layers.len()
            )));
        }
        for (index, pair) in layers.windows(2).enumerate() {
            if pair[0].outputs != pair[1].inputs {
                return Err(PolicyError::new(format!(
                    "layer {index} gives {} values where layer {} takes {}",
                    pair[0].outputs,
                    index + 1,
                    pair[1].inputs
                )));
            }
        }
        if let Some(standardisation) = &standardisation {
            standardisation.check(first.inputs)?;
        }
        action_map.check(last.outputs)?;
        if let Some(key) = about.notes.keys().find(|key| is_reserved(key)) {
            return Err(PolicyError::new(format!(
                "`{key}` cannot be a note: it is how files describe a policy"
            )));
        }
        Ok(Self {
            layers,
            activation,
            standardisation,
            action_map,
            about,
        })
    }

    /// The layers, from observation to action; at least one.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The non-linearity between layers.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// How observations are standardised, where they are.
    pub fn standardisation(&self) -> Option<&Standardisation> {
        self.standardisation.as_ref()
    }

    /// How the last layer's output becomes an action.
    pub fn action_map(&self) -> &ActionMap {
        &self.action_map
    }

    /// Where it comes from.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Number of entries of an observation.
    pub fn observation_width(&self) -> usize {
        self.layers[0].inputs
    }

    /// Number of entries of an action.
    pub fn action_width(&self) -> usize {
        self.layers[self.layers.len() - 1].outputs
    }

    /// Number of weights and biases.
    pub fn parameter_count(&self) -> usize {
        self.layers
            .iter()
            .map(|layer| layer.weights.len() + layer.bias.len())
            .sum()
    }
}

impl Standardisation {
    fn check(&self, width: usize) -> Result<(), PolicyError> {
        if self.mean.len() != width || self.scale.len() != width {
            return Err(PolicyError::new(format!(
                "it standardises {} means and {} scales of {width} observed values",
                self.mean.len(),
                self.scale.len()
            )));
        }
        let positive = |value: &f64| value.is_finite() && *value > 0.0;
        if !self.mean.iter().all(|mean| mean.is_finite()) || !self.scale.iter().all(positive) {
            return Err(PolicyError::new(
                "its standardisation has means that are not finite or scales that are not positive",
            ));
        }
        match self.clip {
            Some(clip) if !positive(&clip) => Err(PolicyError::new(format!(
                "it clips observations at {clip}, which is not a positive number"
            ))),
            _ => Ok(()),
        }
    }
}

impl ActionMap {
    fn check(&self, width: usize) -> Result<(), PolicyError> {
        if self.low.len() != width || self.high.len() != width {
            return Err(PolicyError::new(format!(
                "it bounds {} and {} of {width} actions",
                self.low.len(),
                self.high.len()
            )));
        }
        if let Squash::ClippedTanh { bound } = self.squash
            && !(bound.is_finite() && bound > 0.0)
        {
            return Err(PolicyError::new(format!(
                "it clips what it squashes at {bound}, which is not a positive number"
            )));
        }
        let bounds = self.low.iter().zip(&self.high);
        let ordered = |(low, high): (&f32, &f32)| low.is_finite() && high.is_finite() && low <= high;
        if bounds.into_iter().all(ordered) {
            Ok(())
        } else {
            Err(PolicyError::new(
                "its action bounds are not finite or not in order",
            ))
        }
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Relu => "relu",
            Self::Tanh => "tanh",
        })
    }
}

impl FromStr for Activation {
    type Err = PolicyError;

    fn from_str(name: &str) -> Result<Self, PolicyError> {
        match name {
            "relu" => Ok(Self::Relu),
            "tanh" => Ok(Self::Tanh),
            other => Err(PolicyError::new(format!(
                "the activation `{}` is not `relu` or `tanh`",
                short(other)
            ))),
        }
    }
}

impl fmt::Display for Squash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Clip => "clip",
            Self::Tanh => "tanh",
            Self::ClippedTanh { .. } => "clipped-tanh",
        })
    }
}

//! `train`: learns a policy from demonstrations.
//!
//! The paper's table of settings also has an entropy coefficient and a number of parallel environments. Neither has an
//! effect on these losses: the entropy of a Gaussian about the policy's action does not depend on the policy's
//! parameters, and nothing acts in an environment while a policy learns from demonstrations.

mod methods;
mod relevance;

pub use methods::{
    Among, CoTeaching, Filter, FilterBy, Mixture, Nll, NoisyBc, NoisyForm, Objective, RangeFilter, Rbc,
    RobustKind, RobustLoss, Trimmed,
};

use provenir_api::port::{Arity, Column, ColumnType, Content, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Facts, Group, Kind, Known, Need, Resources, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{NN, POLICY, RANDOM, TABLE};
use crate::{facts, tables};

/// Parameters of `train`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the methods' tables say themselves what they are: a text beside their names would hide that in the schema"
)]
pub struct TrainParameters {
    /// How to learn.
    pub method: Method,
    /// What `bc` and `rbc` minimise. The other methods say what they do.
    #[serde(default)]
    pub loss: Loss,
    /// The Gaussian of the loss `nll`.
    #[serde(default)]
    pub nll: Nll,
    /// Widths of the hidden layers.
    #[serde(default = "default_hidden")]
    #[schemars(length(min = 1, max = 16), inner(range(min = 1, max = 8192)))]
    pub hidden: Vec<u32>,
    /// Activation of the hidden layers.
    #[serde(default)]
    pub activation: Activation,
    /// Passes over the data; for every method an epoch is ⌈N / `batch`⌉ gradient steps, so that curves over epochs
    /// compare methods and not step counts.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub epochs: u32,
    /// Minibatch size, and what counts steps for `rbc`, which draws chunks.
    #[serde(default = "default_batch")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub batch: u32,
    /// Adam's step size at the start.
    #[serde(default = "default_learning_rate")]
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub learning_rate: f64,
    /// How the step size changes over the run.
    #[serde(default)]
    pub schedule: Schedule,
    /// What a linear or cosine schedule ends at, as a share of `learning_rate`.
    #[serde(default = "default_final_share")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub final_share: f64,
    /// Largest norm of the whole gradient of a policy; 0 switches clipping off.
    #[serde(default = "default_clip")]
    #[schemars(range(min = 0.0))]
    pub gradient_clip: f64,
    /// Decoupled weight decay: at every step each weight and bias is multiplied by 1 − step size · this first. Beside the
    /// gradient, hence neither clipped nor rescaled by Adam's means, as a penalty of the squares (the paper's ℓ2, which is 0)
    /// would be.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub weight_decay: f64,
    /// Whether observations are standardised by the training set's mean and deviation, which the policy keeps.
    #[serde(default = "yes")]
    pub standardize: bool,
    /// Least deviation used by the standardisation, so that a constant column does not explode.
    #[serde(default = "default_floor")]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub standardize_floor: f64,
    #[serde(default)]
    pub rbc: Rbc,
    #[serde(default)]
    pub noisy_bc: NoisyBc,
    #[serde(default)]
    pub trimmed: Trimmed,
    #[serde(default)]
    pub mixture: Mixture,
    #[serde(default)]
    pub robust_loss: RobustLoss,
    #[serde(default)]
    pub co_teaching: CoTeaching,
    #[serde(default)]
    pub filter: Filter,
    #[serde(default)]
    pub range_filter: RangeFilter,
    /// A checkpoint is kept every so many epochs, and after the last; 0 keeps the last alone.
    #[serde(default)]
    pub checkpoint_every: u32,
    /// Whether `timing` is to be a measurement: the policy is then trained by itself, while nothing else of the run is
    /// executed, and after a few steps of which nothing is kept, so that what a process has to load does not count. What is
    /// learnt is the same. It is part of the key, so that no measurement is taken from a training that had company; to
    /// measure again, train with another `seed`.
    #[serde(default)]
    pub measure_time: bool,
    /// Where to compute. `auto` takes a GPU where there is one and says what it took.
    #[serde(default)]
    pub device: Device,
    /// How exactly a GPU multiplies matrices. A processor does it in single precision, whatever this says.
    #[serde(default)]
    pub precision: Precision,
    /// LibTorch's threads within one operation; results depend on it in the last bits.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1024))]
    pub threads: u32,
    /// Seed of the initial weights and of the order of samples.
    #[serde(default)]
    pub seed: u64,
}

/// How to learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Behaviour cloning over minibatches.
    Bc,
    /// Robust behaviour cloning: median of means (Liu, Tang, Li, Luo 2022, Algorithm 1).
    Rbc,
    /// Behaviour cloning from noisy demonstrations: samples count by their density under the policy of the round before.
    NoisyBc,
    /// Least squares on the samples that are fitted best (Shen and Sanghavi 2019).
    Trimmed,
    /// The likelihood of a Gaussian contaminated by a uniform density.
    Mixture,
    /// A loss that grows more slowly than the squared error.
    RobustLoss,
    /// Two networks that choose each other's samples (Han et al. 2018).
    CoTeaching,
    /// `bc` on the samples that are left when others were found implausible.
    Filter,
    /// `bc` on the samples whose actions lie within a range.
    RangeFilter,
}

impl Method {
    /// Whether it is a rule for minibatches, by which one network takes steps of one shape whatever the rule.
    pub fn is_rule(self) -> bool {
        match self {
            Self::Bc | Self::Trimmed | Self::Mixture | Self::RobustLoss | Self::RangeFilter => true,
            Self::Rbc | Self::NoisyBc | Self::CoTeaching | Self::Filter => false,
        }
    }

    /// The name, as manifests write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bc => "bc",
            Self::Rbc => "rbc",
            Self::NoisyBc => "noisy-bc",
            Self::Trimmed => "trimmed",
            Self::Mixture => "mixture",
            Self::RobustLoss => "robust-loss",
            Self::CoTeaching => "co-teaching",
            Self::Filter => "filter",
            Self::RangeFilter => "range-filter",
        }
    }
}

/// What is minimised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// The squared error, averaged over components: as in the paper's experiments.
    #[default]
    Mse,
    /// The negative log-likelihood Σᵢ (rᵢ²/(2σᵢ²) + log σᵢ + ½ log 2π) of a Gaussian about the policy's action, as in the
    /// paper's theory (Definition 3.1).
    Nll,
}

/// Activation of the hidden layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// max(0, x)
    #[default]
    Relu,
    /// Hyperbolic tangent.
    Tanh,
}

/// How the step size changes over the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Not at all, as in the paper.
    Constant,
    /// Linearly, step by step, to `final_share` of the start.
    #[default]
    Linear,
    /// Along half a cosine, step by step, to `final_share` of the start.
    Cosine,
}

/// Where to compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// A GPU where there is one.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// A GPU; an error where there is none.
    Cuda,
}

/// How exactly a GPU multiplies matrices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// In single precision.
    #[default]
    Float32,
    /// By its tensor cores: factors are rounded to TF32, which has the range of single precision and 10 bits of mantissa, and
    /// sums are in single precision. Several times faster, and policies differ as by another seed.
    Tf32,
}

fn default_hidden() -> Vec<u32> {
    vec![500, 500, 500]
}

fn default_batch() -> u32 {
    256
}

fn default_learning_rate() -> f64 {
    7.5e-4
}

fn default_final_share() -> f64 {
    0.02
}

fn default_clip() -> f64 {
    0.1
}

fn default_floor() -> f64 {
    1e-3
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

/// The declaration of `train`.
pub struct Train;

impl Kind for Train {
    type Parameters = TrainParameters;
    const NAME: &'static str = "train";
    const SUMMARY: &'static str = "Learns a policy from demonstrations.";
    const REVISIONS: &'static [Revision] = &[
        // 2: `trust` and `history` have more columns; policies are what they were.
        // 3: a higher floor of `noisy-bc`'s deviation where none is given.
        // 4: widths are padded, which changes roundings.
        // 5: actions are padded further.
        Revision {
            part: "train",
            number: 5,
        },
        NN,
        POLICY,
        RANDOM,
        TABLE,
    ];
    const DETERMINISM: Determinism = Determinism::Platform;

    fn inputs() -> Vec<InputPort> {
        vec![
            InputPort {
                name: "demos",
                doc: "Demonstrations to learn from.",
                arity: Arity::One,
                required: true,
                content: tables::demonstrations(),
            },
            InputPort {
                name: "validation",
                doc: "Demonstrations to validate on.",
                arity: Arity::One,
                required: false,
                content: tables::demonstrations(),
            },
        ]
    }

    fn outputs() -> Vec<OutputPort> {
        vec![
            OutputPort {
                name: "policy",
                doc: "The policy, one checkpoint or several.",
                content: tables::policy(),
                volatile: false,
            },
            OutputPort {
                name: "history",
                doc: "One row per epoch: mean over its steps of the loss that gave the gradient, of the value of the median \
                      block (what `rbc` ranks by), and of the gradient's norm before clipping; squared error on the \
                      validation set, whatever the loss, and the learning rate, at its end; the deviation σ of a policy that \
                      has one that is not given (`nll` with a learnt one, `noisy-bc`, `mixture`) or the scale of \
                      `robust-loss`; the effective number of samples (Σw)²/Σw² of `noisy-bc`; and in the last row τ̂ of \
                      `rbc`, a lower estimate of the paper's τ and no certificate.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("epoch", ColumnType::UInt32),
                    Column::new("loss", ColumnType::Float64),
                    Column::new("validation_loss", ColumnType::Float64).nullable(),
                    Column::new("median", ColumnType::Float64).nullable(),
                    Column::new("learning_rate", ColumnType::Float64),
                    Column::new("gradient_norm", ColumnType::Float64),
                    Column::new("sigma", ColumnType::Float64).nullable(),
                    Column::new("effective_samples", ColumnType::Float64).nullable(),
                    Column::new("tau", ColumnType::Float64).nullable(),
                ])),
                volatile: false,
            },
            OutputPort {
                name: "trust",
                doc: "One row per training sample: how often it was drawn, and how often it gave a gradient; and how much \
                      the method trusts it, within 0 and 1. For `noisy-bc`, `mixture` and `robust-loss` that is its density \
                      in proportion to the greatest possible, its responsibility, and its weight, under the policy that was \
                      learnt; for the others how often it gave a gradient when it was drawn, 0 where it never was.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("sample", ColumnType::UInt64),
                    Column::new("drawn", ColumnType::UInt64),
                    Column::new("selected", ColumnType::UInt64),
                    Column::new("trust", ColumnType::Float64),
                ])),
                volatile: false,
            },
            OutputPort {
                name: "timing",
                doc: "Wall-clock seconds of training up to the end of each epoch: of the gradient steps and what a method does \
                      between them, without starting up, validation, checkpoints, and whatever was done after an \
                      interruption's last checkpoint. Others that run at the same time make it longer, and of cells that \
                      are trained together each has the seconds of all: `measure_time` keeps both away.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("epoch", ColumnType::UInt32),
                    Column::new("seconds", ColumnType::Float64).unit("s"),
                ])),
                volatile: true,
            },
        ]
    }

    fn facts(_: &TrainParameters) -> Facts {
        let outputs = ["policy", "history", "trust", "timing"];
        Facts::default()
            .give(facts::ENVIRONMENT, outputs, &Known::Of("demos"))
            .need(facts::ENVIRONMENT, "validation", Need::Alike("demos"))
    }

    fn resources(parameters: &TrainParameters) -> Resources {
        /// What a data set is taken to hold where all of it passes through the networks at once.
        const SAMPLES: u64 = 100_000;

        let widths = || parameters.hidden.iter().map(|width| u64::from(*width));
        let between = widths()
            .zip(widths().skip(1))
            .map(|(inputs, outputs)| inputs * outputs);
        // Parameters, gradient, Adam's two means; and a copy on the way to a checkpoint.
        let network = 6 * 4 * (between.sum::<u64>() + 64 * widths().sum::<u64>());
        // Every layer's output, and on the way back its gradient.
        let pass = |rows: u64| 2 * 4 * rows * widths().sum::<u64>();
        let batch = u64::from(parameters.batch);
        // Where all samples pass through the networks, they do in parts.
        let sweep = pass(1024) / 2;
        let rbc = || match parameters.rbc.chunk {
            0 => 2 * (network + 2 * pass(SAMPLES)),
            chunk => 2 * (network + 2 * pass(u64::from(chunk))) + sweep,
        };
        let cloning = |networks: u64| networks * (network + pass(batch) + sweep);
        let need = match parameters.method {
            Method::Bc | Method::Trimmed | Method::Mixture | Method::RobustLoss | Method::RangeFilter => {
                cloning(1)
            }
            Method::NoisyBc if parameters.noisy_bc.form == NoisyForm::Published => {
                cloning(u64::from(parameters.noisy_bc.members))
            }
            Method::NoisyBc => cloning(1),
            Method::CoTeaching => cloning(2),
            Method::Rbc => rbc(),
            Method::Filter => {
                cloning(1)
                    + match parameters.filter.by {
                        FilterBy::CrossFit => cloning(u64::from(parameters.filter.folds)),
                        FilterBy::Rbc => rbc(),
                    }
            }
        };
        Resources {
            cores: parameters.threads,
            memory: (LIBTORCH + need).div_ceil(1 << 20),
        }
    }

    fn exclusive(parameters: &TrainParameters) -> bool {
        parameters.measure_time
    }

    fn group(parameters: &TrainParameters) -> Option<Group> {
        /// Where hidden layers are no wider than this, what an operation of LibTorch costs beside what it computes is worth
        /// sharing on a processor: on one core policies of 3×32 learn 1.8 times faster in company, of 3×64 up to 1.5, of 3×128 1.1 times
        /// (`cargo run --example groups`).
        const NARROW: u32 = 128;
        /// More gain nothing: what they touch in a step leaves a core's cache.
        const MOST: u32 = 8;
        /// What an accelerator has memory for with networks of usual size; where it has not, the worker divides the group.
        const MOST_ACCELERATED: u32 = 256;

        if parameters.measure_time {
            return None;
        }
        let is_narrow = parameters.hidden.iter().all(|width| *width <= NARROW);
        // Median of means passes whole chunks through its networks: there is little left to share.
        let most = if is_narrow && !parameters.uses_rbc() {
            MOST
        } else {
            1
        };
        let alone = Self::resources(parameters).memory;
        Some(Group {
            own: if parameters.method.is_rule() {
                &[
                    "/seed",
                    "/learning_rate",
                    "/method",
                    "/loss",
                    "/nll",
                    "/rbc",
                    "/noisy_bc",
                    "/trimmed",
                    "/mixture",
                    "/robust_loss",
                    "/co_teaching",
                    "/filter",
                    "/range_filter",
                ]
            } else {
                &["/seed", "/learning_rate"]
            },
            most,
            most_accelerated: match parameters.device {
                Device::Cpu => most,
                Device::Auto | Device::Cuda => MOST_ACCELERATED,
            },
            memory: alone.saturating_sub(LIBTORCH >> 20),
        })
    }
}

/// Memory in bytes that LibTorch itself takes, with data sets of usual size.
const LIBTORCH: u64 = 512 << 20;

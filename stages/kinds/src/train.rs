//! `train`: learns a policy from demonstrations.

use provenir_api::port::{Arity, Column, ColumnType, Content, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Kind, Parameters, Problem, Resources, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{NN, POLICY, RANDOM, TABLE};
use crate::tables;

/// Parameters of `train`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainParameters {
    /// How to learn. Every method minimises squared errors: the negative log-likelihood, up to a factor and a constant, of
    /// a Gaussian policy of fixed deviation.
    pub method: Method,
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
    /// Minibatch size of `bc`, and what counts steps for the others.
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
    /// What a linear schedule ends at, as a share of `learning_rate`.
    #[serde(default = "default_final_share")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub final_share: f64,
    /// Largest norm of the whole gradient of a policy; 0 switches clipping off.
    #[serde(default = "default_clip")]
    #[schemars(range(min = 0.0))]
    pub gradient_clip: f64,
    /// Whether observations are standardised by the training set's mean and deviation, which the policy keeps.
    #[serde(default = "yes")]
    pub standardize: bool,
    /// Least deviation used by the standardisation, so that a constant column does not explode.
    #[serde(default = "default_floor")]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub standardize_floor: f64,
    /// Settings of `rbc`.
    #[serde(default)]
    pub rbc: Rbc,
    /// A checkpoint is kept every so many epochs, and after the last; 0 keeps the last alone.
    #[serde(default)]
    pub checkpoint_every: u32,
    /// Where to compute. `auto` takes a GPU where there is one and says what it took.
    #[serde(default)]
    pub device: Device,
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
    /// Behaviour cloning: least squares over minibatches.
    Bc,
    /// Robust behaviour cloning: median of means (Liu, Tang, Li, Luo 2022, Algorithm 1).
    Rbc,
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

/// Settings of robust behaviour cloning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rbc {
    /// What the blocks are ranked by.
    pub objective: Objective,
    /// The share of outliers to withstand; never read from the data. Sets `block` and `window` where they are not given.
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 0.5))]
    pub assumed_epsilon: f64,
    /// Samples a block; ⌊1/(3 `assumed_epsilon`)⌋, between 1 and `block_max`, where it is not given.
    #[schemars(range(min = 1))]
    pub block: Option<u32>,
    /// Largest block that `assumed_epsilon` may set.
    #[schemars(range(min = 1))]
    pub block_max: u32,
    /// Samples drawn and divided into blocks at each step; 0 takes the whole data set, as Algorithm 1 does.
    pub chunk: u32,
    /// Share of the blocks, around the median one, that give the gradient. Where it is not given it is as wide as the
    /// assumption allows: a share (1 − `assumed_epsilon`)^`block` of the blocks is clean, the upper end of the window is
    /// put there, hence 2 (1 − `assumed_epsilon`)^`block` − 1, and the median block alone where that is not positive.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub window: Option<f64>,
}

impl Rbc {
    /// Samples a block: as given, or ⌊1/(3 `assumed_epsilon`)⌋ between 1 and `block_max`.
    pub fn block_size(&self) -> u32 {
        self.block.unwrap_or_else(|| {
            // The quotient of two decimals that divide evenly (0.2 · 5/3, 1/(3 · 0.1)) may fall short by a rounding.
            let size = (1.0 / (3.0 * self.assumed_epsilon) + 1e-9).floor();
            size.clamp(1.0, f64::from(self.block_max)) as u32
        })
    }

    /// Share of the blocks that give the gradient: as given, or as wide as `assumed_epsilon` allows; 0 stands for the
    /// median block alone.
    pub fn window_share(&self) -> f64 {
        self.window.unwrap_or_else(|| {
            // A product, not a power: the C library has no say in it.
            let clean = (0..self.block_size()).fold(1.0, |clean, _| clean * (1.0 - self.assumed_epsilon));
            (2.0 * clean - 1.0).max(0.0)
        })
    }
}

impl Default for Rbc {
    fn default() -> Self {
        Self {
            objective: Objective::MinMax,
            assumed_epsilon: 0.2,
            block: None,
            block_max: 6,
            chunk: 960,
            window: None,
        }
    }
}

/// What blocks are ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The loss of the policy less that of a challenger that is trained to make it large (Definition 3.1).
    MinMax,
    /// The loss of the policy alone.
    Direct,
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

impl Parameters for TrainParameters {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let (block, chunk) = (self.rbc.block_size(), self.rbc.chunk);
        if self.method == Method::Rbc && chunk != 0 && block > chunk {
            problems.push(Problem::new(
                "/rbc/chunk",
                format!("a chunk of {chunk} samples does not hold a block of {block}"),
            ));
        }
        problems
    }

    fn irrelevant(&self) -> Vec<&'static str> {
        // Where it is computed is recorded, not keyed: `--strict-platform` is for those who want it keyed.
        let mut irrelevant = vec!["/device"];
        if self.method != Method::Rbc {
            irrelevant.push("/rbc");
        } else if self.rbc.block.is_some() {
            irrelevant.push("/rbc/block_max");
            if self.rbc.window.is_some() {
                irrelevant.push("/rbc/assumed_epsilon");
            }
        }
        if self.schedule == Schedule::Constant {
            irrelevant.push("/final_share");
        }
        if !self.standardize {
            irrelevant.push("/standardize_floor");
        }
        irrelevant
    }
}

/// The declaration of `train`.
pub struct Train;

impl Kind for Train {
    type Parameters = TrainParameters;
    const NAME: &'static str = "train";
    const SUMMARY: &'static str = "Learns a policy from demonstrations.";
    const REVISIONS: &'static [Revision] = &[
        Revision {
            part: "train",
            number: 1,
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
                doc: "One row per epoch: mean over its steps of the squared error that gave the gradient, of the value of \
                      the median block (what `rbc` ranks by), and of the gradient's norm before clipping; squared error \
                      on the validation set, and the learning rate, at its end.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("epoch", ColumnType::UInt32),
                    Column::new("loss", ColumnType::Float64),
                    Column::new("validation_loss", ColumnType::Float64).nullable(),
                    Column::new("median", ColumnType::Float64).nullable(),
                    Column::new("learning_rate", ColumnType::Float64),
                    Column::new("gradient_norm", ColumnType::Float64),
                ])),
                volatile: false,
            },
            OutputPort {
                name: "trust",
                doc: "One row per training sample: how often it was drawn, and how often it gave a gradient.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("sample", ColumnType::UInt64),
                    Column::new("drawn", ColumnType::UInt64),
                    Column::new("selected", ColumnType::UInt64),
                ])),
                volatile: false,
            },
            OutputPort {
                name: "timing",
                doc: "Wall-clock seconds at the end of each epoch.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("epoch", ColumnType::UInt32),
                    Column::new("seconds", ColumnType::Float64).unit("s"),
                ])),
                volatile: true,
            },
        ]
    }

    fn resources(parameters: &TrainParameters) -> Resources {
        /// LibTorch itself, and data sets of usual size.
        const BASE: u64 = 512 << 20;
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
        let need = match (parameters.method, parameters.rbc.chunk) {
            (Method::Bc, _) => network + pass(u64::from(parameters.batch)),
            (Method::Rbc, 0) => 2 * (network + 2 * pass(SAMPLES)),
            (Method::Rbc, chunk) => 2 * (network + 2 * pass(u64::from(chunk))),
        };
        Resources {
            cores: parameters.threads,
            memory: (BASE + need).div_ceil(1 << 20),
        }
    }
}

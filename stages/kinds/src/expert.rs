//! `expert`: trains a policy in the simulator by reinforcement learning.

use provenir_api::port::{Column, ColumnType, Content, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Facts, Kind, Parameters, Problem, Resources, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{NN, POLICY, RANDOM, SIM, TABLE};
use crate::train::Device;
use crate::{Environment, facts, tables};

/// Parameters of `expert`. Defaults are the SAC settings that RL Baselines3 Zoo uses for these tasks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpertParameters {
    /// The task to learn.
    pub env: Environment,
    /// Whether observations end with the share of the episode's time that is left.
    #[serde(default)]
    pub time_feature: bool,
    /// Seed of the initial weights, the episodes and everything that is drawn.
    #[serde(default)]
    pub seed: u64,
    /// Environment steps, those of all environments together; rounded up to whole steps of all of them.
    #[serde(default = "default_steps")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub steps: u64,
    /// What the critics learn.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// CrossQ (Bhatt et al. 2024): batch renormalisation in the critics, and no target networks.
    #[serde(default)]
    pub normalised_critics: bool,
    /// Widths of the hidden layers of policy and critics.
    #[serde(default = "default_hidden")]
    #[schemars(length(min = 1, max = 16), inner(range(min = 1, max = 8192)))]
    pub hidden: Vec<u32>,
    /// Adam's step size at the start, for policy, critics and temperature.
    #[serde(default = "default_learning_rate")]
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub learning_rate: f64,
    /// How the step size changes over the run.
    #[serde(default)]
    pub schedule: Schedule,
    /// Share of the updates after which a linear schedule begins to fall.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub decay_from: f64,
    /// What a linear schedule ends at, as a share of `learning_rate`.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub final_share: f64,
    /// Transitions an update learns from.
    #[serde(default = "default_batch")]
    #[schemars(range(min = 2, max = 1_000_000))]
    pub batch: u32,
    /// Transitions that the replay buffer holds; the oldest make room.
    #[serde(default = "default_buffer")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub buffer: u32,
    /// Discount of future rewards.
    #[serde(default = "default_gamma")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gamma: f64,
    /// Share by which target networks move towards the critics at an update.
    #[serde(default = "default_tau")]
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub tau: f64,
    /// Environment steps with uniformly random actions before the first update.
    #[serde(default = "default_learning_starts")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub learning_starts: u64,
    /// Environments that step side by side.
    #[serde(default = "default_environments")]
    #[schemars(range(min = 1, max = 1024))]
    pub environments: u32,
    /// Environment steps an update; with a fast simulator, more of them is time well spent.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10_000))]
    pub steps_per_update: u32,
    /// Generalised state-dependent exploration (Raffin et al. 2021).
    #[serde(default)]
    pub gsde: Gsde,
    /// Settings of `tqc`.
    #[serde(default)]
    pub tqc: Tqc,
    /// Updates of the critics for each of the policy.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000))]
    pub policy_delay: u32,
    /// Weight of the policy's entropy; where it is not given it is learned, so that the entropy approaches minus the
    /// number of actions.
    #[serde(default)]
    #[schemars(range(min = 0.0))]
    pub temperature: Option<f64>,
    /// Environment steps between evaluations of the policy without its noise; there is one at the end, too.
    #[serde(default = "default_evaluate_every")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub evaluate_every: u64,
    /// Episodes an evaluation, new ones each time. No other stage plays their seeds, training does not either.
    #[serde(default = "default_evaluation_episodes")]
    #[schemars(range(min = 1, max = 10_000))]
    pub evaluation_episodes: u32,
    /// Which policy is the result. The mean of the best evaluation overstates its policy: measure it with `evaluate`.
    #[serde(default)]
    pub keep: Keep,
    /// How many of the policies with the best evaluations are played again at the end, to find the best of them; 1 takes the
    /// best evaluation at its word.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub candidates: u32,
    /// Episodes in which candidates are compared, the same for each, and new to all.
    #[serde(default = "default_candidate_episodes")]
    #[schemars(range(min = 1, max = 10_000))]
    pub candidate_episodes: u32,
    /// Where to compute. `auto` takes a GPU where there is one and says what it took.
    #[serde(default)]
    pub device: Device,
    /// LibTorch's threads within one operation; results depend on it in the last bits.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1024))]
    pub threads: u32,
}

/// What the critics learn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Soft actor-critic (Haarnoja et al. 2018): the mean of the return.
    #[default]
    Sac,
    /// Truncated quantile critics (Kuznetsov et al. 2020): quantiles of the return, of which the highest are dropped.
    Tqc,
}

impl Algorithm {
    /// The name used in manifests and in the metadata of tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sac => "sac",
            Self::Tqc => "tqc",
        }
    }
}

/// How the step size changes over the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Not at all.
    #[default]
    Constant,
    /// From `decay_from` on linearly, update by update, to `final_share` of the start.
    Linear,
}

/// Settings of generalised state-dependent exploration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gsde {
    /// Whether actions deviate by a random function of the state, not by independent noise.
    pub enabled: bool,
    /// Logarithm of the deviations at the start.
    #[schemars(range(min = -20.0, max = 2.0))]
    pub log_std_init: f64,
    /// Steps of an environment after which its function is drawn anew.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub resample: u32,
}

impl Default for Gsde {
    fn default() -> Self {
        Self {
            enabled: false,
            log_std_init: -3.0,
            resample: 8,
        }
    }
}

/// Settings of truncated quantile critics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tqc {
    /// Quantiles that each of the two critics learns.
    #[schemars(range(min = 1, max = 1000))]
    pub quantiles: u32,
    /// Quantiles that are dropped a critic: the highest of those of both together.
    #[schemars(range(max = 999))]
    pub dropped: u32,
}

impl Default for Tqc {
    fn default() -> Self {
        Self {
            quantiles: 25,
            dropped: 2,
        }
    }
}

/// Which policy is the result of a training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// The one whose episodes had the highest mean; the earliest of equals.
    #[default]
    Best,
    /// The one at the end.
    Last,
}

fn default_steps() -> u64 {
    1_000_000
}

fn default_hidden() -> Vec<u32> {
    vec![400, 300]
}

fn default_learning_rate() -> f64 {
    7.3e-4
}

fn default_batch() -> u32 {
    256
}

fn default_buffer() -> u32 {
    300_000
}

fn default_gamma() -> f64 {
    0.98
}

fn default_tau() -> f64 {
    0.02
}

fn default_learning_starts() -> u64 {
    10_000
}

fn default_environments() -> u32 {
    16
}

fn default_evaluate_every() -> u64 {
    10_000
}

fn default_evaluation_episodes() -> u32 {
    10
}

fn default_candidate_episodes() -> u32 {
    100
}

fn one() -> u32 {
    1
}

impl ExpertParameters {
    /// Share of the learning rate at an update, counted from 0, of `updates` in all.
    pub fn rate_share(&self, update: u64, updates: u64) -> f64 {
        if self.schedule == Schedule::Constant {
            return 1.0;
        }
        let done = update as f64 / updates.saturating_sub(1).max(1) as f64;
        if done <= self.decay_from {
            return 1.0;
        }
        1.0 + (self.final_share - 1.0) * (done - self.decay_from) / (1.0 - self.decay_from)
    }
}

impl Parameters for ExpertParameters {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.algorithm == Algorithm::Tqc && self.tqc.dropped >= self.tqc.quantiles {
            let message = format!(
                "of {} quantiles a critic, {} cannot be dropped",
                self.tqc.quantiles, self.tqc.dropped
            );
            problems.push(Problem::new("/tqc/dropped", message).beside(["/tqc/quantiles", "/algorithm"]));
        }
        if self.learning_starts >= self.steps {
            problems.push(
                Problem::new(
                    "/learning_starts",
                    format!(
                        "learning would start after {} of {} steps: nothing would be learned",
                        self.learning_starts, self.steps
                    ),
                )
                .beside(["/steps"])
                .help("give more `steps`, or let learning start earlier"),
            );
        }
        if self.buffer < self.environments {
            let message = format!(
                "a buffer of {} transitions does not hold a step of {} environments",
                self.buffer, self.environments
            );
            problems.push(Problem::new("/buffer", message).beside(["/environments"]));
        }
        problems
    }

    fn irrelevant(&self) -> Vec<&'static str> {
        // Where it is computed is recorded, not keyed: `--strict-platform` is for those who want it keyed.
        let mut irrelevant = vec!["/device"];
        if self.keep == Keep::Last {
            irrelevant.push("/candidates");
        }
        if self.keep == Keep::Last || self.candidates == 1 {
            irrelevant.push("/candidate_episodes");
        }
        if self.algorithm != Algorithm::Tqc {
            irrelevant.push("/tqc");
        }
        if self.schedule == Schedule::Constant {
            irrelevant.extend(["/decay_from", "/final_share"]);
        }
        if self.normalised_critics {
            irrelevant.push("/tau");
        }
        if !self.gsde.enabled {
            irrelevant.push("/gsde");
        }
        irrelevant
    }
}

/// The declaration of `expert`.
pub struct Expert;

impl Kind for Expert {
    type Parameters = ExpertParameters;
    const NAME: &'static str = "expert";
    const SUMMARY: &'static str = "Trains a policy in the simulator by reinforcement learning.";
    const REVISIONS: &'static [Revision] = &[
        Revision {
            part: "expert",
            number: 1,
        },
        NN,
        SIM,
        POLICY,
        RANDOM,
        TABLE,
    ];
    const DETERMINISM: Determinism = Determinism::Platform;

    fn facts(parameters: &ExpertParameters) -> Facts {
        facts::environment(parameters.env, ["policy", "history"])
    }

    fn inputs() -> Vec<InputPort> {
        Vec::new()
    }

    fn outputs() -> Vec<OutputPort> {
        let float = |name| Column::new(name, ColumnType::Float64);
        let steps = || Column::new("steps", ColumnType::UInt32);
        vec![
            OutputPort {
                name: "policy",
                doc: "The policy without its noise; its checkpoint is numbered by the environment steps before it.",
                content: tables::policy(),
                volatile: false,
            },
            OutputPort {
                name: "history",
                doc: "One row per evaluation. `return` is the mean over its episodes, `falls` counts those that ended early; \
                      `training_return` is the mean over the episodes, noise included, that ended since the row before; \
                      losses, temperature and entropy are means over the updates since then; the learning rate is that \
                      of the last one.",
                content: Content::Table(TableSchema::new(vec![
                    steps(),
                    Column::new("updates", ColumnType::UInt64),
                    Column::new("episodes", ColumnType::UInt64),
                    float("return"),
                    float("return_std"),
                    float("return_min"),
                    float("length").unit("steps"),
                    Column::new("falls", ColumnType::UInt32),
                    float("training_return").nullable(),
                    float("critic_loss").nullable(),
                    float("policy_loss").nullable(),
                    float("temperature").nullable(),
                    float("entropy").nullable(),
                    float("learning_rate").nullable(),
                ])),
                volatile: false,
            },
            OutputPort {
                name: "timing",
                doc: "Wall-clock seconds at each evaluation; those between an interruption and the attempt after it are left \
                      out.",
                content: Content::Table(TableSchema::new(vec![steps(), float("seconds").unit("s")])),
                volatile: true,
            },
        ]
    }

    fn resources(parameters: &ExpertParameters) -> Resources {
        /// LibTorch itself.
        const BASE: u64 = 512 << 20;
        /// A world of Bullet.
        const WORLD: u64 = 8 << 20;
        /// A transition of the widest robot: two observations, an action, reward and discount.
        const TRANSITION: u64 = 4 * (2 * 32 + 8 + 2);

        let widths = || parameters.hidden.iter().map(|width| u64::from(*width));
        let between = widths()
            .zip(widths().skip(1))
            .map(|(inputs, outputs)| inputs * outputs);
        // Policy, two critics and their targets, with gradients, Adam's two means, and a copy on the way to a checkpoint.
        let networks = 5 * 6 * 4 * (between.sum::<u64>() + 64 * widths().sum::<u64>());
        // Normalised critics hold twice the batch three times over.
        let passes = if parameters.normalised_critics { 9 } else { 5 };
        let passes = passes * 4 * 4 * u64::from(parameters.batch) * widths().sum::<u64>();
        // An evaluation runs at most 32 episodes side by side.
        let worlds = u64::from(parameters.environments) + u64::from(parameters.evaluation_episodes.min(32));
        let need = networks + passes + WORLD * worlds + TRANSITION * u64::from(parameters.buffer);
        Resources {
            cores: parameters.threads,
            memory: (BASE + need).div_ceil(1 << 20),
        }
    }
}

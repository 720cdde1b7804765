//! `evaluate`: rolls policies out and summarises their returns.

use provenir_api::port::{Arity, Column, ColumnType, Content, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Facts, Kind, Parameters, Problem, Revision, SourceFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{POLICY, RANDOM, SIM, TABLE};
use crate::{Activation, Environment, PolicySource, facts, tables};

/// Parameters of `evaluate`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluateParameters {
    /// The task in which the policy acts.
    pub env: Environment,
    /// The policy, where it is not wired to the port `policy`: a policy (`.parquet` or `.safetensors`), or a
    /// Stable-Baselines3 archive of PPO, A2C, SAC, TQC, TD3 or DDPG (`.zip`).
    #[serde(default)]
    pub policy: Option<SourceFile>,
    /// The `VecNormalize` statistics (`.pkl`) that a Stable-Baselines3 agent was trained with.
    #[serde(default)]
    pub normalization: Option<SourceFile>,
    /// Activation of a Stable-Baselines3 agent whose archive does not tell.
    #[serde(default)]
    pub activation: Option<Activation>,
    /// Whether a Stable-Baselines3 agent reads the time feature: the share of the episode's time that is left, as the last
    /// number of an observation (RL Zoo's `TimeFeatureWrapper`); not, where absent. A policy says so itself, and is
    /// refused where it says otherwise.
    #[serde(default)]
    pub time_feature: Option<bool>,
    /// Episodes a checkpoint.
    #[serde(default = "default_trials")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub trials: u32,
    /// Seed of the initial states: the same for every policy that is evaluated with it.
    #[serde(default)]
    pub seed: u64,
    /// γ of the discounted returns.
    #[serde(default = "default_discount")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: f64,
}

fn default_trials() -> u32 {
    20
}

fn default_discount() -> f64 {
    0.99
}

impl EvaluateParameters {
    /// Where the policy is from.
    pub fn source(&self) -> PolicySource<'_> {
        PolicySource {
            name: "policy",
            pointer: "/policy",
            file: self.policy.as_ref(),
            normalization: self.normalization.as_ref(),
            activation: self.activation,
            time_feature: self.time_feature,
        }
    }
}

impl Parameters for EvaluateParameters {
    fn problems(&self) -> Vec<Problem> {
        self.source().problems()
    }
}

/// The declaration of `evaluate`.
pub struct Evaluate;

impl Kind for Evaluate {
    type Parameters = EvaluateParameters;
    const NAME: &'static str = "evaluate";
    const SUMMARY: &'static str = "Rolls policies out in the simulator and summarises their returns.";
    const REVISIONS: &'static [Revision] = &[
        // 2: discounted returns, shares of the expert's, the interval of the interquartile mean.
        Revision {
            part: "evaluate",
            number: 2,
        },
        SIM,
        POLICY,
        RANDOM,
        TABLE,
    ];
    const DETERMINISM: Determinism = Determinism::Platform;
    const PRIVILEGED_INPUTS: &'static [&'static str] = &["policy", "expert"];

    fn facts(parameters: &EvaluateParameters) -> Facts {
        facts::environment(parameters.env, ["trials", "summary"])
            .need(facts::ENVIRONMENT, "policy", facts::same(parameters.env))
            .need(facts::ENVIRONMENT, "expert", facts::same(parameters.env))
    }

    /// A core an episode.
    fn spare_cores(parameters: &EvaluateParameters) -> u32 {
        parameters.trials - 1
    }

    fn check(parameters: &EvaluateParameters, wired: &[(&str, TableSchema)]) -> Vec<Problem> {
        parameters.source().check(wired)
    }

    fn inputs() -> Vec<InputPort> {
        vec![
            InputPort {
                name: "policy",
                doc: "A policy, with any number of checkpoints, where no file is named.",
                arity: Arity::One,
                required: false,
                content: tables::policy(),
            },
            InputPort {
                name: "expert",
                doc: "Episodes of the expert (`collect`) or its trials (`evaluate`), to whose mean return `share` relates.",
                arity: Arity::One,
                required: false,
                content: Content::Table(TableSchema::new(vec![
                    Column::new("return", ColumnType::Float64),
                    Column::new("length", ColumnType::UInt32).unit("steps"),
                    Column::new("truncated", ColumnType::Bool),
                ])),
            },
        ]
    }

    fn outputs() -> Vec<OutputPort> {
        let float = |name| Column::new(name, ColumnType::Float64);
        vec![
            OutputPort {
                name: "trials",
                doc: "One row per checkpoint and episode: the raw returns, discounted ones, and shares of the expert's mean.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("checkpoint", ColumnType::UInt32),
                    Column::new("trial", ColumnType::UInt32),
                    float("return"),
                    Column::new("length", ColumnType::UInt32).unit("steps"),
                    Column::new("terminated", ColumnType::Bool),
                    Column::new("truncated", ColumnType::Bool),
                    float("discounted_return"),
                    float("share").nullable(),
                ])),
                volatile: false,
            },
            OutputPort {
                name: "summary",
                doc: "One row per checkpoint: 95 % bootstrap intervals of the mean and of the interquartile mean among others.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("checkpoint", ColumnType::UInt32),
                    Column::new("trials", ColumnType::UInt32),
                    float("mean"),
                    float("std"),
                    float("median"),
                    float("iqm"),
                    float("ci_low"),
                    float("ci_high"),
                    float("min"),
                    float("max"),
                    float("length").unit("steps"),
                    Column::new("early_falls", ColumnType::UInt32),
                    float("iqm_low"),
                    float("iqm_high"),
                    float("discounted_mean"),
                    float("share").nullable(),
                ])),
                volatile: false,
            },
        ]
    }
}

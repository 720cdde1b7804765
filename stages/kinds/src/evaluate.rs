//! `evaluate`: rolls policies out and summarises their returns.

use provenir_api::port::{Arity, Column, ColumnType, Content, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Facts, Kind, Parameters, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{POLICY, RANDOM, SIM, TABLE};
use crate::{Environment, facts, tables};

/// Parameters of `evaluate`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluateParameters {
    /// The task in which the policy acts.
    pub env: Environment,
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

impl Parameters for EvaluateParameters {}

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

    fn inputs() -> Vec<InputPort> {
        vec![
            InputPort {
                name: "policy",
                doc: "A policy, with any number of checkpoints.",
                arity: Arity::One,
                required: true,
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

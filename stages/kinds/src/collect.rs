//! `collect`: rolls an expert out in the simulator.

use provenir_api::port::{Arity, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Facts, Kind, Known, Parameters, Problem, Resources, Revision, SourceFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{POLICY, RANDOM, SIM, TABLE};
use crate::{Environment, PolicyFormat, facts, tables};

/// Parameters of `collect`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectParameters {
    /// The task in which the expert acts.
    pub env: Environment,
    /// The expert, where it is not wired to the port `expert`: a policy (`.parquet` or `.safetensors`), or a
    /// Stable-Baselines3 archive of PPO, A2C, SAC, TQC, TD3 or DDPG (`.zip`).
    #[serde(default)]
    pub expert: Option<SourceFile>,
    /// The `VecNormalize` statistics (`.pkl`) that a Stable-Baselines3 expert was trained with.
    #[serde(default)]
    pub normalization: Option<SourceFile>,
    /// Activation of a Stable-Baselines3 expert whose archive does not tell.
    #[serde(default)]
    pub activation: Option<Activation>,
    /// Whether a Stable-Baselines3 expert reads the time feature: the share of the episode's time that is left, as the
    /// last number of an observation (RL Zoo's `TimeFeatureWrapper`); not, where absent. A policy says so itself, and is
    /// refused where it says otherwise.
    #[serde(default)]
    pub time_feature: Option<bool>,
    /// Number of transitions; the last episode is cut there and marked truncated.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub samples: Option<u64>,
    /// Number of whole episodes, in place of `samples`.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10_000))]
    pub episodes: Option<u64>,
    /// Seed of the initial states.
    #[serde(default)]
    pub seed: u64,
}

/// A hidden layer's activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// max(0, x)
    Relu,
    /// Hyperbolic tangent.
    Tanh,
}

/// Steps.
const LONGEST_EPISODE: u64 = 1000;

impl Parameters for CollectParameters {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        match (self.samples, self.episodes) {
            (None, None) => problems.push(
                Problem::new("", "how much to collect is missing").help("give `samples` or `episodes`"),
            ),
            (Some(_), Some(_)) => problems.push(
                Problem::new("/episodes", "`samples` and `episodes` are both given")
                    .beside(["/samples"])
                    .help("give one of the two"),
            ),
            _ => {}
        }
        let format = self.expert.as_ref().map(|file| PolicyFormat::of(file.path()));
        // That an empty path names no file is said of every source.
        if let (Some(file), Some(None)) = (&self.expert, format)
            && !file.path().as_str().is_empty()
        {
            problems.push(
                Problem::new(
                    "/expert",
                    format!("`{}` is neither a policy nor an archive", file.path()),
                )
                .help("a policy ends in .parquet or .safetensors, a Stable-Baselines3 archive in .zip"),
            );
        }
        let archive = format == Some(Some(PolicyFormat::Archive));
        for (given, pointer) in [
            (self.normalization.is_some(), "/normalization"),
            (self.activation.is_some(), "/activation"),
        ] {
            if given && !archive {
                let message = format!(
                    "`{}` belongs to a Stable-Baselines3 archive (.zip) named by `expert`",
                    &pointer[1..]
                );
                problems.push(Problem::new(pointer, message).beside(["/expert"]));
            }
        }
        problems
    }
}

/// The declaration of `collect`.
pub struct Collect;

impl Kind for Collect {
    type Parameters = CollectParameters;
    const NAME: &'static str = "collect";
    const SUMMARY: &'static str = "Rolls an expert out in the simulator and records what it does.";
    const REVISIONS: &'static [Revision] = &[
        // 2: agents of A2C are called `a2c`.
        Revision {
            part: "collect",
            number: 2,
        },
        SIM,
        POLICY,
        RANDOM,
        TABLE,
    ];
    const DETERMINISM: Determinism = Determinism::Platform;

    fn inputs() -> Vec<InputPort> {
        vec![InputPort {
            name: "expert",
            doc: "The policy to roll out, where no file is named.",
            arity: Arity::One,
            required: false,
            content: tables::policy(),
        }]
    }

    fn outputs() -> Vec<OutputPort> {
        vec![
            OutputPort {
                name: "demos",
                doc: "One row per transition.",
                content: tables::demonstrations(),
                volatile: false,
            },
            OutputPort {
                name: "episodes",
                doc: "One row per episode: its return and length; a cut episode's are those of what was kept.",
                content: tables::episodes(),
                volatile: false,
            },
        ]
    }

    fn facts(parameters: &CollectParameters) -> Facts {
        let mut facts = facts::environment(parameters.env, ["demos", "episodes"]).need(
            facts::ENVIRONMENT,
            "expert",
            facts::same(parameters.env),
        );
        for (port, count, pointer) in [
            ("demos", parameters.samples, "/samples"),
            ("episodes", parameters.episodes, "/episodes"),
        ] {
            if let Some(rows) = count.and_then(facts::count) {
                facts = facts.give(facts::ROWS, [port], &Known::Given(rows, pointer));
            }
        }
        facts
    }

    /// A core an episode, of those that are certain to be needed.
    fn spare_cores(parameters: &CollectParameters) -> u32 {
        let episodes = match (parameters.episodes, parameters.samples) {
            (Some(episodes), _) => episodes,
            (None, Some(samples)) => samples.div_ceil(LONGEST_EPISODE),
            (None, None) => 1,
        };
        u32::try_from(episodes - 1).unwrap_or(u32::MAX)
    }

    fn resources(parameters: &CollectParameters) -> Resources {
        // A transition of the widest robot takes about 200 bytes; it is held as it was rolled out, as columns and as Arrow.
        const TRANSITION: u64 = 600;
        let transitions = parameters
            .samples
            .or(parameters.episodes.map(|episodes| episodes * LONGEST_EPISODE))
            .unwrap_or(0);
        Resources {
            memory: 512 + transitions * TRANSITION / (1 << 20),
            ..Resources::default()
        }
    }

    fn check(parameters: &CollectParameters, wired: &[(&str, TableSchema)]) -> Vec<Problem> {
        match (
            &parameters.expert,
            wired.iter().any(|(port, _)| *port == "expert"),
        ) {
            (Some(_), true) => vec![
                Problem::new(
                    "/expert",
                    "the expert is both named by a parameter and wired to the port `expert`",
                )
                .help("keep one of the two"),
            ],
            (None, false) => vec![Problem::new("", "the expert is missing").help(
                "name a file with the parameter `expert`, or wire a stage's policy to the port `expert`",
            )],
            _ => Vec::new(),
        }
    }
}

//! `collect`: rolls an expert out in the simulator.

use provenir_api::port::{Arity, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Facts, Kind, Known, Parameters, Problem, Resources, Revision, SourceFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{POLICY, RANDOM, SIM, TABLE};
use crate::{Activation, Environment, PolicySource, facts, tables};

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
    /// Number of transitions; the last episode is cut there and marked truncated in `demos`.
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

/// Steps.
const LONGEST_EPISODE: u64 = 1000;

impl CollectParameters {
    /// Where the expert is from.
    pub fn source(&self) -> PolicySource<'_> {
        PolicySource {
            name: "expert",
            pointer: "/expert",
            file: self.expert.as_ref(),
            normalization: self.normalization.as_ref(),
            activation: self.activation,
            time_feature: self.time_feature,
        }
    }
}

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
        problems.extend(self.source().problems());
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
        // 2: agents of A2C are called `a2c`. 3: an episode's row tells of the whole, also where it was cut.
        Revision {
            part: "collect",
            number: 3,
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
                doc: "One row per episode: its return and length, also of what `demos` has no room for any more; `recorded` says how much of it \
                      is there.",
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
        parameters.source().check(wired)
    }
}

//! `corrupt`: replaces a share of the samples by outliers.

use provenir_api::port::{Arity, Column, ColumnType, Content, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Facts, Kind, Known, Need, Parameters, Problem, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{RANDOM, TABLE};
use crate::{facts, tables};

/// Parameters of `corrupt`.
///
/// Of N samples with observations s and actions a, those that `placement` chooses become outliers s̃ and ã.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorruptParameters {
    /// What the chosen samples become.
    pub outlier: Outlier,
    /// Share ε of the samples: exactly round(ε N) of them are replaced; with `placement = "episode"` at least so many.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub fraction: f64,
    /// Which samples are replaced.
    #[serde(default)]
    pub placement: Placement,
    /// Value of every dimension of an action that `constant` gives.
    #[serde(default = "default_constant")]
    #[schemars(range(min = -1.0, max = 1.0))]
    pub constant: f64,
    /// Standard deviation σ of the noise of `gaussian`, in units of the action, and of `observation-noise`, in units of each
    /// observation's own standard deviation.
    #[serde(default = "default_noise")]
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 100.0))]
    pub noise: f64,
    /// Steps k by which `delayed` is late.
    #[serde(default = "default_delay")]
    #[schemars(range(min = 1, max = 1000))]
    pub delay: u32,
    /// Share of the entries of an observation that `dead-sensors` kills; at least one dies.
    #[serde(default = "default_sensors")]
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub sensors: f64,
    /// Seed of which samples, and of what they become. At one seed the samples of a smaller share are among those of
    /// a larger one, with the same outliers.
    #[serde(default)]
    pub seed: u64,
}

/// What a chosen sample becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outlier {
    /// Every dimension −1 or +1 at random, as in the paper's first option.
    Boundary,
    /// All dimensions −1 or all +1, at random.
    BoundaryOneSign,
    /// Every dimension `constant`, for all samples alike: the mean action shifts, which symmetric outliers leave in place.
    Constant,
    /// Every dimension the least or the largest value that it takes in the data, at random: a filter by range sees nothing.
    RangeBoundary,
    /// Uniform on \[−1, 1\], as in the paper's second option.
    Uniform,
    /// ã = a + σ z with z standard normal in every dimension, σ being `noise`; not clipped.
    Gaussian,
    /// ã = −a.
    SignFlip,
    /// The actions of the chosen samples change places: in a random order, each takes that of the next, the last that of the
    /// first. What actions there are stays as it was, so that only together with observations can it be seen. With
    /// `placement = "sample"` one action differs at another share, that of the sample at the end of the order; otherwise the order
    /// is another one.
    Permuted,
    /// The action of `delay` samples before in the same episode; of its first sample where there are fewer.
    Delayed,
    /// s̃ = s + σ σₛ z with z standard normal in every entry, σ being `noise` and σₛ the entry's standard deviation over the
    /// data. The time feature, which is no measurement, keeps its value.
    ObservationNoise,
    /// A share `sensors` of the entries of the observation reads 0: the same entries, drawn from the seed, for all samples. Those
    /// that vary in the data die first: nobody would miss the others. The time feature keeps its value.
    DeadSensors,
    /// Whole episodes become those of the demonstrations at the port `weaker`: observations, actions, rewards and ends. A
    /// replaced episode keeps its samples, its number and its length: the weaker episodes follow one another in it in an
    /// order drawn for it, and the last is cut and marked truncated there. Needs `placement = "episode"`.
    WeakerPolicy,
}

/// Which samples are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Samples at random, exactly round(ε N).
    #[default]
    Sample,
    /// Whole episodes in random order, until at least round(ε N) samples are reached: fewer than one episode too many.
    Episode,
    /// The rarest states, exactly round(ε N): those with the largest Σ ((s − μ) / σₛ)² over the entries of the observation
    /// that vary, with mean μ and standard deviation σₛ over the data. An adversary who knows where data is scarce.
    Rare,
}

impl Outlier {
    /// Whether observations become others, too.
    pub fn changes_observations(self) -> bool {
        matches!(
            self,
            Self::ObservationNoise | Self::DeadSensors | Self::WeakerPolicy
        )
    }
}

fn default_constant() -> f64 {
    1.0
}

fn default_noise() -> f64 {
    0.5
}

fn default_delay() -> u32 {
    5
}

fn default_sensors() -> f64 {
    0.25
}

impl Parameters for CorruptParameters {
    fn problems(&self) -> Vec<Problem> {
        if self.outlier == Outlier::WeakerPolicy && self.placement != Placement::Episode {
            vec![
                Problem::new("/outlier", "`weaker-policy` replaces whole episodes")
                    .beside(["/placement"])
                    .help("set `placement = \"episode\"`"),
            ]
        } else {
            Vec::new()
        }
    }

    fn irrelevant(&self) -> Vec<&'static str> {
        let relevant = match self.outlier {
            Outlier::Constant => "/constant",
            Outlier::Gaussian | Outlier::ObservationNoise => "/noise",
            Outlier::Delayed => "/delay",
            Outlier::DeadSensors => "/sensors",
            _ => "",
        };
        let mut settings = vec!["/constant", "/noise", "/delay", "/sensors"];
        settings.retain(|setting| *setting != relevant);
        settings
    }
}

/// The declaration of `corrupt`.
pub struct Corrupt;

impl Kind for Corrupt {
    type Parameters = CorruptParameters;
    const NAME: &'static str = "corrupt";
    const SUMMARY: &'static str = "Replaces a share of the samples by outliers.";
    const REVISIONS: &'static [Revision] = &[
        // 2: of the sensors those die first that vary.
        Revision {
            part: "corrupt",
            number: 2,
        },
        RANDOM,
        TABLE,
    ];
    const DETERMINISM: Determinism = Determinism::Exact;
    const PRIVILEGED_OUTPUTS: &'static [&'static str] = &["mask", "clean"];

    fn inputs() -> Vec<InputPort> {
        vec![
            InputPort {
                name: "demos",
                doc: "Demonstrations.",
                arity: Arity::One,
                required: true,
                content: tables::demonstrations(),
            },
            InputPort {
                name: "weaker",
                doc: "Demonstrations of a weaker policy in the same environment, for the outlier `weaker-policy`.",
                arity: Arity::One,
                required: false,
                content: tables::demonstrations(),
            },
        ]
    }

    fn check(parameters: &CorruptParameters, wired: &[(&str, TableSchema)]) -> Vec<Problem> {
        let is_wired = wired.iter().any(|(port, _)| *port == "weaker");
        match (parameters.outlier == Outlier::WeakerPolicy, is_wired) {
            (true, false) => vec![
                Problem::new("/outlier", "the weaker policy's demonstrations are missing")
                    .help("wire a stage's demonstrations to the port `weaker`"),
            ],
            (false, true) => vec![
                Problem::new(
                    "/outlier",
                    "demonstrations are wired to the port `weaker`, which only `weaker-policy` takes",
                )
                .help("set `outlier = \"weaker-policy\"`, or unwire the port"),
            ],
            _ => Vec::new(),
        }
    }

    fn facts(_: &CorruptParameters) -> Facts {
        let outputs = ["demos", "mask", "clean"];
        Facts::default()
            .give(facts::ROWS, outputs, &Known::Of("demos"))
            .give(facts::ENVIRONMENT, outputs, &Known::Of("demos"))
            .need(facts::ENVIRONMENT, "weaker", Need::Alike("demos"))
    }

    fn outputs() -> Vec<OutputPort> {
        vec![
            OutputPort {
                name: "demos",
                doc: "The demonstrations with outliers; samples keep their numbers, episodes and steps.",
                content: tables::demonstrations(),
                volatile: false,
            },
            OutputPort {
                name: "mask",
                doc: "Which samples were replaced. Privileged: no learner takes it.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("sample", ColumnType::UInt64),
                    Column::new("corrupted", ColumnType::Bool),
                ])),
                volatile: false,
            },
            OutputPort {
                name: "clean",
                doc: "The actions before and, where observations are replaced too, `clean_observation`. Privileged: no learner takes it.",
                content: Content::Table(
                    TableSchema::new(vec![
                        Column::new("sample", ColumnType::UInt64),
                        Column::new(
                            "clean_action",
                            ColumnType::FixedList(Box::new(ColumnType::Float32)),
                        ),
                    ])
                    .open(),
                ),
                volatile: false,
            },
        ]
    }
}

//! Small kinds with everything that a declaration may have.

use provenir::registry::Registry;
use provenir_api::port::{Arity, Column, ColumnType, Content, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Kind, Parameters, Problem, Resources, Revision, SourceFile, erase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) fn registry() -> Registry {
    Registry::new(vec![
        erase::<Make>(),
        erase::<Refine>(),
        erase::<Draw>(),
        erase::<Sink>(),
        erase::<Spoil>(),
        erase::<Judge>(),
    ])
}

fn samples() -> TableSchema {
    TableSchema::new(vec![
        Column::new("sample", ColumnType::UInt64),
        Column::new("value", ColumnType::Float32),
    ])
}

fn output(name: &'static str, content: Content, volatile: bool) -> OutputPort {
    OutputPort {
        name,
        doc: "An output.",
        content,
        volatile,
    }
}

fn input(name: &'static str, arity: Arity, required: bool, content: Content) -> InputPort {
    InputPort {
        name,
        doc: "What it works on.",
        arity,
        required,
        content,
    }
}

/// Makes samples out of nothing or a file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MakeParameters {
    /// How many.
    #[schemars(range(min = 1, max = 1_000))]
    count: u32,
    /// Where from.
    #[serde(default)]
    file: Option<SourceFile>,
    /// A text.
    #[serde(default)]
    tag: String,
    /// Random stream.
    #[serde(default)]
    seed: u64,
}

impl Parameters for MakeParameters {}

pub(crate) struct Make;

impl Kind for Make {
    type Parameters = MakeParameters;
    const NAME: &'static str = "make";
    const SUMMARY: &'static str = "Makes samples.";
    const REVISIONS: &'static [Revision] = &[Revision {
        part: "make",
        number: 1,
    }];
    const DETERMINISM: Determinism = Determinism::Exact;

    fn inputs() -> Vec<InputPort> {
        Vec::new()
    }

    fn outputs() -> Vec<OutputPort> {
        vec![
            output("samples", Content::Table(samples()), false),
            output(
                "notes",
                Content::Table(TableSchema::new(vec![Column::new("text", ColumnType::Utf8)])),
                false,
            ),
            output("timing", Content::Table(samples()), true),
        ]
    }

    fn resources(parameters: &MakeParameters) -> Resources {
        Resources {
            cores: 1,
            memory: u64::from(parameters.count),
        }
    }
}

/// Settings of one method.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RobustParameters {
    /// Rounds.
    #[schemars(range(min = 1))]
    rounds: u32,
    /// Weight.
    weight: f64,
}

impl Default for RobustParameters {
    fn default() -> Self {
        Self {
            rounds: 5,
            weight: 1.0,
        }
    }
}

/// Works on samples.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefineParameters {
    /// Share of samples.
    #[schemars(range(min = 0.0, max = 0.5))]
    fraction: f64,
    /// Which way.
    #[serde(default)]
    method: Method,
    /// Widths.
    #[serde(default)]
    #[schemars(length(max = 4), inner(range(min = 1)))]
    hidden: Vec<u32>,
    /// Settings of `robust`.
    #[serde(default)]
    robust: RobustParameters,
}

#[derive(Serialize, Deserialize, JsonSchema, Default, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Method {
    /// As it is.
    #[default]
    Plain,
    /// With care.
    Robust,
}

impl Parameters for RefineParameters {
    fn problems(&self) -> Vec<Problem> {
        if self.method == Method::Robust && self.hidden.len() > 2 {
            vec![Problem::new("/hidden", "`robust` takes at most two widths")]
        } else {
            Vec::new()
        }
    }
}

pub(crate) struct Refine;

impl Kind for Refine {
    type Parameters = RefineParameters;
    const NAME: &'static str = "refine";
    const SUMMARY: &'static str = "Works on samples.";
    const REVISIONS: &'static [Revision] = &[Revision {
        part: "refine",
        number: 3,
    }];
    const DETERMINISM: Determinism = Determinism::Platform;

    fn inputs() -> Vec<InputPort> {
        vec![
            input("samples", Arity::One, true, Content::Table(samples())),
            input("reference", Arity::One, false, Content::Table(samples())),
        ]
    }

    fn outputs() -> Vec<OutputPort> {
        vec![
            output("samples", Content::Table(samples()), false),
            output(
                "mask",
                Content::Table(TableSchema::new(vec![Column::new("bad", ColumnType::Bool)])),
                false,
            ),
        ]
    }
}

/// Draws tables.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DrawParameters {
    /// The column to the right.
    x: String,
    /// Above the figure.
    #[serde(default)]
    title: String,
}

impl Parameters for DrawParameters {}

pub(crate) struct Draw;

impl Kind for Draw {
    type Parameters = DrawParameters;
    const NAME: &'static str = "draw";
    const SUMMARY: &'static str = "Draws tables.";
    const REVISIONS: &'static [Revision] = &[Revision {
        part: "draw",
        number: 1,
    }];
    const DETERMINISM: Determinism = Determinism::Exact;
    const PRIVILEGED_INPUTS: &'static [&'static str] = &["table"];

    fn inputs() -> Vec<InputPort> {
        vec![input(
            "table",
            Arity::Many,
            true,
            Content::Table(TableSchema::any()),
        )]
    }

    fn outputs() -> Vec<OutputPort> {
        vec![
            output("svg", Content::File("svg".to_owned()), false),
            output("data", Content::Table(TableSchema::any()), false),
        ]
    }

    fn check(parameters: &DrawParameters, wired: &[(&str, TableSchema)]) -> Vec<Problem> {
        if wired
            .iter()
            .any(|(_, schema)| schema.column(&parameters.x).is_some())
        {
            return Vec::new();
        }
        let columns = wired.iter().flat_map(|(_, schema)| &schema.columns);
        let known: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
        let message = format!("no column `{}` arrives", parameters.x);
        vec![Problem::new("/x", message).help(format!("there is {}", known.join(", ")))]
    }
}

/// Gives nothing.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SinkParameters {}

impl Parameters for SinkParameters {}

pub(crate) struct Sink;

impl Kind for Sink {
    type Parameters = SinkParameters;
    const NAME: &'static str = "sink";
    const SUMMARY: &'static str = "Gives nothing.";
    const REVISIONS: &'static [Revision] = &[Revision {
        part: "sink",
        number: 1,
    }];
    const DETERMINISM: Determinism = Determinism::Exact;

    fn inputs() -> Vec<InputPort> {
        vec![
            input("figure", Arity::One, false, Content::File("svg".to_owned())),
            input("tables", Arity::Many, false, Content::Table(samples())),
        ]
    }

    fn outputs() -> Vec<OutputPort> {
        Vec::new()
    }
}

/// Parameters of kinds that need none.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParameters {}

impl Parameters for NoParameters {}

/// Spoils samples, and says which.
pub(crate) struct Spoil;

impl Kind for Spoil {
    type Parameters = NoParameters;
    const NAME: &'static str = "spoil";
    const SUMMARY: &'static str = "Spoils samples.";
    const REVISIONS: &'static [Revision] = &[Revision {
        part: "spoil",
        number: 1,
    }];
    const DETERMINISM: Determinism = Determinism::Exact;
    const PRIVILEGED_OUTPUTS: &'static [&'static str] = &["truth"];

    fn inputs() -> Vec<InputPort> {
        vec![input("samples", Arity::One, true, Content::Table(samples()))]
    }

    fn outputs() -> Vec<OutputPort> {
        vec![
            output("samples", Content::Table(samples()), false),
            output("truth", Content::Table(samples()), false),
        ]
    }
}

/// Holds samples against the truth, which it may see.
pub(crate) struct Judge;

impl Kind for Judge {
    type Parameters = NoParameters;
    const NAME: &'static str = "judge";
    const SUMMARY: &'static str = "Holds samples against the truth.";
    const REVISIONS: &'static [Revision] = &[Revision {
        part: "judge",
        number: 1,
    }];
    const DETERMINISM: Determinism = Determinism::Exact;
    const PRIVILEGED_INPUTS: &'static [&'static str] = &["samples", "truth"];

    fn inputs() -> Vec<InputPort> {
        vec![
            input("samples", Arity::One, true, Content::Table(samples())),
            input("truth", Arity::One, false, Content::Table(samples())),
        ]
    }

    fn outputs() -> Vec<OutputPort> {
        vec![output("samples", Content::Table(samples()), false)]
    }
}

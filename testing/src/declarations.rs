use provenir_api::port::{Arity, Column, ColumnType, Content, InputPort, OutputPort, TableSchema};
use provenir_api::{AnyKind, Determinism, Group, Kind, Parameters, Revision, SourceFile, erase};
use provenir_kinds::command::Command;
use provenir_kinds::render::Render;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Those of which there is one version.
pub(crate) fn kinds() -> Vec<Box<dyn AnyKind>> {
    vec![
        erase::<Noop>(),
        erase::<Sleep>(),
        erase::<Fail>(),
        erase::<Crash>(),
        erase::<Chatter>(),
        erase::<Clock>(),
        erase::<Flaky>(),
        erase::<Team>(),
        erase::<Render>(),
        erase::<Command>(),
    ]
}

fn number() -> Content {
    Content::Table(TableSchema::new(vec![Column::new("value", ColumnType::Float64)]))
}

pub(crate) fn optional_input() -> Vec<InputPort> {
    vec![
        InputPort {
            name: "one",
            doc: "A number to add.",
            arity: Arity::One,
            required: false,
            content: number(),
        },
        InputPort {
            name: "many",
            doc: "Numbers to add.",
            arity: Arity::Many,
            required: false,
            content: number(),
        },
    ]
}

pub(crate) fn number_output(volatile: bool) -> Vec<OutputPort> {
    vec![OutputPort {
        name: "sum",
        doc: "The sum, one row.",
        content: number(),
        volatile,
    }]
}

macro_rules! kind {
    ($(#[$doc:meta])* $kind:ident, $parameters:ident, $name:literal, $summary:literal, $determinism:ident, $volatile:literal $(, $($more:item)+)?) => {
        $(#[$doc])*
        pub(crate) struct $kind;

        impl Parameters for $parameters {}

        impl Kind for $kind {
            type Parameters = $parameters;
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = $summary;
            const REVISIONS: &'static [Revision] = &[Revision { part: $name, number: 1 }];
            const DETERMINISM: Determinism = Determinism::$determinism;

            fn inputs() -> Vec<InputPort> {
                optional_input()
            }

            fn outputs() -> Vec<OutputPort> {
                number_output($volatile)
            }

            $($($more)+)?
        }
    };
}

/// Parameters of `noop`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoopParameters {
    /// What to add to the sum of the inputs.
    #[serde(default)]
    #[schemars(range(min = -1e9, max = 1e9))]
    pub(crate) value: f64,
    /// A file whose length is added, too.
    #[serde(default)]
    pub(crate) file: Option<SourceFile>,
}

/// Parameters of `sleep`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SleepParameters {
    /// What to add to the sum of the inputs.
    #[serde(default)]
    pub(crate) value: f64,
    /// How long it takes.
    #[schemars(range(min = 0.0, max = 3600.0))]
    pub(crate) seconds: f64,
    /// Whether it goes on although it was asked to stop.
    #[serde(default)]
    pub(crate) deaf: bool,
    /// How many spare cores it could use.
    #[serde(default)]
    pub(crate) spare: u32,
    /// Whether it is executed while nothing else is.
    #[serde(default)]
    pub(crate) exclusive: bool,
}

/// Parameters of `fail`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailParameters {
    /// What it says.
    pub(crate) message: String,
    /// Whether it fails; otherwise it is a `noop` of value 0.
    #[serde(default = "yes")]
    pub(crate) fails: bool,
}

/// Parameters of `crash`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CrashParameters {
    /// How the worker dies.
    pub(crate) how: Death,
}

/// How a worker dies.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Death {
    /// A panic, which the worker survives.
    Panic,
    /// `abort`, as a failed assertion in a C++ library would do.
    Abort,
    /// It leaves with an exit code and no word.
    Exit,
}

/// Parameters of `chatter`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatterParameters {
    /// A line for the log, standard output and a warning.
    pub(crate) text: String,
}

/// Parameters of `flaky`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FlakyParameters {
    /// How many attempts fail before one succeeds.
    pub(crate) failures: u32,
}

/// Parameters of `clock`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClockParameters {}

/// Parameters of `team`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TeamParameters {
    /// What to add to the sum of the inputs.
    #[serde(default)]
    pub(crate) value: f64,
    /// Cells of one team are executed together.
    pub(crate) team: String,
    /// How long it takes, in seconds, whatever the size of the team.
    #[serde(default)]
    pub(crate) seconds: f64,
    /// Where it takes its worker down.
    #[serde(default)]
    pub(crate) dies: Dies,
}

/// Where a cell takes its worker down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Dies {
    /// Nowhere.
    #[default]
    Never,
    /// Among others only.
    InCompany,
    /// Everywhere.
    Always,
    /// Among others it panics, which the worker survives.
    PanicsInCompany,
}

fn yes() -> bool {
    true
}

kind!(
    /// The cheapest cell there is.
    Noop, NoopParameters, "noop", "Adds a number to the sum of its inputs.", Exact, false
);
kind!(
    /// A cell that takes a while.
    Sleep, SleepParameters, "sleep", "Adds a number to the sum of its inputs, after a while.", Exact, false,
    fn spare_cores(parameters: &SleepParameters) -> u32 {
        parameters.spare
    }

    fn exclusive(parameters: &SleepParameters) -> bool {
        parameters.exclusive
    }
);
kind!(
    /// A cell that cannot be executed.
    Fail, FailParameters, "fail", "Fails with a message.", Exact, false
);
kind!(
    /// A cell that takes its worker down.
    Crash, CrashParameters, "crash", "Takes its worker down.", Exact, false
);
kind!(
    /// A cell that says a lot.
    Chatter, ChatterParameters, "chatter", "Writes to every channel it has.", Exact, false
);
kind!(
    /// A cell whose output differs every time.
    Clock, ClockParameters, "clock", "Gives the time.", Exact, true
);
kind!(
    /// A cell that fails at first.
    Flaky, FlakyParameters, "flaky", "Fails so many times, then gives how often it failed.", Exact, false
);
kind!(
    /// A cell that is executed together with others, and that gives the same to the bit on one platform only.
    Team, TeamParameters, "team", "Adds a number to the sum of its inputs, together with others.", Platform, false,
    fn group(parameters: &TeamParameters) -> Option<Group> {
        (!parameters.team.is_empty()).then_some(Group { own: &["/value", "/dies"], most: 6, most_accelerated: 6, memory: 1 })
    }
);

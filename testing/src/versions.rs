//! Kinds of which there are two versions, so that it can be seen what an upgrade makes run again. `provenir-noop` has the first
//! of each, `provenir-noop-next` the second.
//!
//! * `revised`: its results changed, so that its revision was raised.
//! * `extended`: it got a parameter with a default, under which it gives what it gave before.
//! * `redefined`: the default of a parameter changed, so that its revision was raised.

use provenir_api::port::{InputPort, OutputPort};
use provenir_api::{AnyKind, Determinism, Kind, Parameters, Revision};
use provenir_execution::{AnyExecution, Context, Execution, Failure, Inputs, Outputs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declarations::{number_output, optional_input};
use crate::executions::sum;

/// Kinds, and what executes them.
pub(crate) struct Version {
    pub(crate) kinds: Vec<Box<dyn AnyKind>>,
    pub(crate) executions: Vec<Box<dyn AnyExecution>>,
}

/// The first version of each.
pub(crate) fn first() -> Version {
    Version {
        kinds: vec![
            provenir_api::erase::<Revised1>(),
            provenir_api::erase::<Extended1>(),
            provenir_api::erase::<Redefined1>(),
        ],
        executions: vec![
            provenir_execution::erase(Revised1),
            provenir_execution::erase(Extended1),
            provenir_execution::erase(Redefined1),
        ],
    }
}

/// The second version of each.
pub(crate) fn second() -> Version {
    Version {
        kinds: vec![
            provenir_api::erase::<Revised2>(),
            provenir_api::erase::<Extended2>(),
            provenir_api::erase::<Redefined2>(),
        ],
        executions: vec![
            provenir_execution::erase(Revised2),
            provenir_execution::erase(Extended2),
            provenir_execution::erase(Redefined2),
        ],
    }
}

/// A number to add.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plain {
    /// What to add to the sum of the inputs.
    #[serde(default)]
    value: f64,
}

/// Two numbers to add.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct More {
    /// What to add to the sum of the inputs.
    #[serde(default)]
    value: f64,
    /// What to add beside that.
    #[serde(default)]
    extra: f64,
}

/// A number to add that is 1 unless another is given.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct One {
    /// What to add to the sum of the inputs.
    #[serde(default = "one")]
    value: f64,
}

/// A number to add that is 2 unless another is given.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Two {
    /// What to add to the sum of the inputs.
    #[serde(default = "two")]
    value: f64,
}

fn one() -> f64 {
    1.0
}

fn two() -> f64 {
    2.0
}

impl Parameters for Plain {}
impl Parameters for More {}
impl Parameters for One {}
impl Parameters for Two {}

macro_rules! version {
    ($(#[$doc:meta])* $kind:ident, $name:literal, $revision:literal, $parameters:ident, $added:expr) => {
        $(#[$doc])*
        struct $kind;

        impl Kind for $kind {
            type Parameters = $parameters;
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = "Adds a number to the sum of its inputs.";
            const REVISIONS: &'static [Revision] = &[Revision { part: $name, number: $revision }];
            const DETERMINISM: Determinism = Determinism::Exact;

            fn inputs() -> Vec<InputPort> {
                optional_input()
            }

            fn outputs() -> Vec<OutputPort> {
                number_output(false)
            }
        }

        impl Execution for $kind {
            type Kind = Self;

            fn execute(
                &self,
                parameters: &$parameters,
                inputs: &Inputs,
                _: &Context<'_>,
            ) -> Result<Outputs, Failure> {
                let added: fn(&$parameters) -> f64 = $added;
                sum(inputs, added(parameters))
            }
        }
    };
}

version!(Revised1, "revised", 1, Plain, |parameters| parameters.value);
version!(
    /// Negative numbers count as none.
    Revised2, "revised", 2, Plain, |parameters| parameters.value.max(0.0)
);
version!(Extended1, "extended", 1, Plain, |parameters| parameters.value);
version!(Extended2, "extended", 1, More, |parameters| parameters.value
    + parameters.extra);
version!(Redefined1, "redefined", 1, One, |parameters| parameters.value);
version!(Redefined2, "redefined", 2, Two, |parameters| parameters.value);

//! `split`: training and validation sets that share no episode.

use provenir_api::port::{Arity, InputPort, OutputPort};
use provenir_api::{Determinism, Kind, Need, Parameters, Revision, Rows, Sizes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{RANDOM, TABLE};
use crate::tables;

/// Parameters of `split`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SplitParameters {
    /// Share of the samples set aside for validation, in whole episodes; the count of samples is the nearest that whole
    /// episodes allow.
    #[serde(default = "default_validation")]
    #[schemars(range(min = 0.0, max = 0.9))]
    pub validation: f64,
    /// Number N of training samples, of whole episodes in seeded order, the last one cut and marked truncated; all that
    /// validation leaves where it is not given. At one seed a smaller training set is part of a larger one.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub samples: Option<u64>,
    /// Seed of the order of episodes.
    #[serde(default)]
    pub seed: u64,
}

fn default_validation() -> f64 {
    0.1
}

impl Parameters for SplitParameters {}

/// The declaration of `split`.
pub struct Split;

impl Kind for Split {
    type Parameters = SplitParameters;
    const NAME: &'static str = "split";
    const SUMMARY: &'static str =
        "Divides demonstrations into training and validation sets that share no episode.";
    const REVISIONS: &'static [Revision] = &[
        Revision {
            part: "split",
            number: 1,
        },
        RANDOM,
        TABLE,
    ];
    const DETERMINISM: Determinism = Determinism::Exact;

    fn inputs() -> Vec<InputPort> {
        vec![InputPort {
            name: "demos",
            doc: "Demonstrations.",
            arity: Arity::One,
            required: true,
            content: tables::demonstrations(),
        }]
    }

    fn sizes(parameters: &SplitParameters) -> Sizes {
        // What validation sets aside depends on the lengths of the episodes.
        let Some(rows) = parameters.samples else {
            return Sizes::default();
        };
        let pointer = "/samples";
        Sizes {
            outputs: vec![("train", Rows::Given(rows, pointer))],
            needs: vec![Need {
                port: "demos",
                rows,
                pointer,
            }],
        }
    }

    fn outputs() -> Vec<OutputPort> {
        vec![
            OutputPort {
                name: "train",
                doc: "Samples to learn from.",
                content: tables::demonstrations(),
                volatile: false,
            },
            OutputPort {
                name: "validation",
                doc: "Samples to validate on, of other episodes.",
                content: tables::demonstrations(),
                volatile: false,
            },
        ]
    }
}

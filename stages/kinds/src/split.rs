//! `split`: training and validation sets that share no episode.

use provenir_api::port::{Arity, InputPort, OutputPort};
use provenir_api::{Determinism, Facts, Kind, Known, Need, Parameters, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{RANDOM, TABLE};
use crate::{facts, tables};

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

    fn facts(parameters: &SplitParameters) -> Facts {
        let facts = Facts::default().give(facts::ENVIRONMENT, ["train", "validation"], &Known::Of("demos"));
        let pointer = "/samples";
        let Some((samples, rows)) = parameters
            .samples
            .and_then(|samples| Some((samples, facts::count(samples)?)))
        else {
            return facts;
        };
        // Validation sets aside whole episodes, hence not exactly its share; what the share leaves room for is what was meant.
        let share = parameters.validation;
        let least = if share > 0.0 {
            (samples as f64 / (1.0 - share) - 0.5).ceil() as u64
        } else {
            samples
        };
        facts
            .give(facts::ROWS, ["train"], &Known::Given(rows, pointer))
            .need(
                facts::ROWS,
                "demos",
                Need::AtLeast {
                    least,
                    pointer,
                    beside: if share > 0.0 { &["/validation"] } else { &[] },
                    reason: (share > 0.0)
                        .then(|| format!("{samples} samples beside a share of {share} for validation")),
                },
            )
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

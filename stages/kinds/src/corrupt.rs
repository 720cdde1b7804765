//! `corrupt`: replaces the actions of a share of the samples.

use provenir_api::port::{Arity, Column, ColumnType, Content, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Kind, Parameters, Revision, Rows, Sizes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{RANDOM, TABLE};
use crate::tables;

/// Parameters of `corrupt`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorruptParameters {
    /// Where the replaced actions come from.
    pub outlier: Outlier,
    /// Share ε of the samples: exactly round(ε N) of them are replaced.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub fraction: f64,
    /// Seed of which samples, and of their new actions. At one seed the samples of a smaller share are among those of
    /// a larger one, with the same new actions.
    #[serde(default)]
    pub seed: u64,
}

/// Where replaced actions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outlier {
    /// Every dimension −1 or +1 at random, as in the paper's first option.
    Boundary,
    /// Uniform on \[−1, 1\], as in the paper's second option.
    Uniform,
}

impl Parameters for CorruptParameters {}

/// The declaration of `corrupt`.
pub struct Corrupt;

impl Kind for Corrupt {
    type Parameters = CorruptParameters;
    const NAME: &'static str = "corrupt";
    const SUMMARY: &'static str = "Replaces the actions of a share of the samples by outliers.";
    const REVISIONS: &'static [Revision] = &[
        Revision {
            part: "corrupt",
            number: 1,
        },
        RANDOM,
        TABLE,
    ];
    const DETERMINISM: Determinism = Determinism::Exact;
    const PRIVILEGED_OUTPUTS: &'static [&'static str] = &["mask", "clean"];

    fn inputs() -> Vec<InputPort> {
        vec![InputPort {
            name: "demos",
            doc: "Demonstrations.",
            arity: Arity::One,
            required: true,
            content: tables::demonstrations(),
        }]
    }

    fn sizes(_: &CorruptParameters) -> Sizes {
        let outputs = ["demos", "mask", "clean"].map(|port| (port, Rows::Of("demos")));
        Sizes {
            outputs: outputs.into(),
            needs: Vec::new(),
        }
    }

    fn outputs() -> Vec<OutputPort> {
        vec![
            OutputPort {
                name: "demos",
                doc: "The demonstrations with replaced actions; samples keep their numbers.",
                content: tables::demonstrations(),
                volatile: false,
            },
            OutputPort {
                name: "mask",
                doc: "Which samples were replaced. No method takes it.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("sample", ColumnType::UInt64),
                    Column::new("corrupted", ColumnType::Bool),
                ])),
                volatile: false,
            },
            OutputPort {
                name: "clean",
                doc: "The actions before. No method takes it.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("sample", ColumnType::UInt64),
                    Column::new(
                        "clean_action",
                        ColumnType::FixedList(Box::new(ColumnType::Float32)),
                    ),
                ])),
                volatile: false,
            },
        ]
    }
}

//! `time-to-target`: how long a training took to come near the expert.

use provenir_api::port::{Arity, Column, ColumnType, Content, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Facts, Kind, Known, Need, Parameters, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts;
use crate::machinery::TABLE;

/// Parameters of `time-to-target`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeToTargetParameters {
    /// The target: a share of the expert's mean return. It is reached at the first checkpoint whose mean over the trials is
    /// at least that; nothing is interpolated between checkpoints, so that they must lie close enough.
    #[serde(default = "default_share")]
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 100.0))]
    pub share: f64,
}

/// That of the paper's table of convergence times.
fn default_share() -> f64 {
    0.95
}

impl Parameters for TimeToTargetParameters {}

/// The declaration of `time-to-target`.
pub struct TimeToTarget;

impl Kind for TimeToTarget {
    type Parameters = TimeToTargetParameters;
    const NAME: &'static str = "time-to-target";
    const SUMMARY: &'static str = "Joins what checkpoints achieve with the seconds of their training, and finds when a target was reached.";
    const REVISIONS: &'static [Revision] = &[
        Revision {
            part: "time-to-target",
            number: 1,
        },
        TABLE,
    ];
    const DETERMINISM: Determinism = Determinism::Exact;
    const PRIVILEGED_INPUTS: &'static [&'static str] = &["trials", "timing"];

    fn inputs() -> Vec<InputPort> {
        let input = |name, doc, columns| InputPort {
            name,
            doc,
            arity: Arity::One,
            required: true,
            content: Content::Table(TableSchema::new(columns)),
        };
        vec![
            input(
                "trials",
                "What the checkpoints of a policy achieve: `trials` of `evaluate`, which has an expert wired.",
                vec![
                    Column::new("checkpoint", ColumnType::UInt32),
                    Column::new("trial", ColumnType::UInt32),
                    Column::new("return", ColumnType::Float64),
                    Column::new("share", ColumnType::Float64).nullable(),
                ],
            ),
            input(
                "timing",
                "How long the training of that policy took: `timing` of `train`, with `measure_time`.",
                vec![
                    Column::new("epoch", ColumnType::UInt32),
                    Column::new("seconds", ColumnType::Float64),
                ],
            ),
        ]
    }

    fn outputs() -> Vec<OutputPort> {
        let float = |name| Column::new(name, ColumnType::Float64);
        let seconds = |name| float(name).unit("s");
        vec![
            OutputPort {
                name: "time",
                doc: "One row. `reached`: whether a checkpoint reached the target; `epochs` and `seconds`: of training up to \
                      the first that did, missing where none did; `best_share`: the greatest mean share of the expert's \
                      return at any checkpoint; `trained_epochs` and `trained_seconds`: of the whole training, so that a \
                      target that was not reached by then is told from one that was late.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("target", ColumnType::Float64),
                    Column::new("reached", ColumnType::Bool),
                    Column::new("epochs", ColumnType::UInt32).nullable(),
                    seconds("seconds").nullable(),
                    float("best_share"),
                    Column::new("trained_epochs", ColumnType::UInt32),
                    seconds("trained_seconds"),
                ])),
                volatile: false,
            },
            OutputPort {
                name: "curve",
                doc: "One row per checkpoint and trial: epochs and seconds of training up to the checkpoint, the trial's return \
                      and its share of the expert's mean return.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("epoch", ColumnType::UInt32),
                    seconds("seconds"),
                    Column::new("trial", ColumnType::UInt32),
                    float("return"),
                    float("share"),
                ])),
                volatile: false,
            },
        ]
    }

    fn facts(_: &TimeToTargetParameters) -> Facts {
        Facts::default()
            .give(facts::ENVIRONMENT, ["time", "curve"], &Known::Of("trials"))
            .need(facts::ENVIRONMENT, "timing", Need::Alike("trials"))
    }
}

//! `diagnose`: what a method could not see.

use provenir_api::port::{Arity, Column, ColumnType, Content, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Facts, Kind, Known, Need, Parameters, Problem, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{POLICY, TABLE};
use crate::{facts, tables};

/// Parameters of `diagnose`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiagnoseParameters {
    /// A sample whose trust is below this counts as distrusted in `precision` and `recall`; the table `curve` has every other
    /// threshold.
    #[serde(default = "default_threshold")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub threshold: f64,
}

fn default_threshold() -> f64 {
    0.5
}

impl Parameters for DiagnoseParameters {}

/// The declaration of `diagnose`.
pub struct Diagnose;

impl Kind for Diagnose {
    type Parameters = DiagnoseParameters;
    const NAME: &'static str = "diagnose";
    const SUMMARY: &'static str =
        "Holds what a method trusted and learned against what `corrupt` did to its data.";
    const REVISIONS: &'static [Revision] = &[
        // 2: what methods that give weights took for outliers counts less in `selected_corrupted`.
        Revision {
            part: "diagnose",
            number: 2,
        },
        POLICY,
        TABLE,
    ];
    const DETERMINISM: Determinism = Determinism::Exact;
    const PRIVILEGED_INPUTS: &'static [&'static str] = &["demos", "mask", "trust", "clean", "policy"];

    fn inputs() -> Vec<InputPort> {
        let input = |name, doc, required, content| InputPort {
            name,
            doc,
            arity: Arity::One,
            required,
            content,
        };
        let sample = || Column::new("sample", ColumnType::UInt64);
        vec![
            input(
                "demos",
                "The demonstrations that the method learned from.",
                true,
                tables::demonstrations(),
            ),
            input(
                "mask",
                "Which samples are corrupted: `mask` of `corrupt`; it may hold further samples.",
                true,
                Content::Table(TableSchema::new(vec![
                    sample(),
                    Column::new("corrupted", ColumnType::Bool),
                ])),
            ),
            input(
                "trust",
                "What the method trusted: `trust` of `train`, of samples that are among the demonstrations.",
                false,
                Content::Table(TableSchema::new(vec![sample()])),
            ),
            input(
                "policy",
                "What the method learned: a policy, with any number of checkpoints.",
                false,
                tables::policy(),
            ),
            input(
                "clean",
                "What samples were before: `clean` of `corrupt`; it may hold further samples.",
                false,
                Content::Table(TableSchema::new(vec![
                    sample(),
                    Column::new("clean_action", tables::floats()),
                ])),
            ),
        ]
    }

    fn facts(_: &DiagnoseParameters) -> Facts {
        Facts::default()
            .give(facts::ENVIRONMENT, ["diagnosis", "curve"], &Known::Of("demos"))
            .need(facts::ENVIRONMENT, "policy", Need::Alike("demos"))
    }

    fn check(_: &DiagnoseParameters, wired: &[(&str, TableSchema)]) -> Vec<Problem> {
        let port = |name: &str| {
            wired
                .iter()
                .find(|(port, _)| *port == name)
                .map(|(_, schema)| schema)
        };
        let mut problems = Vec::new();
        if port("trust").is_none() && port("policy").is_none() {
            problems.push(
                Problem::new("", "there is nothing to diagnose")
                    .help("wire `trust` or `policy` of a `train` stage, or both"),
            );
        }
        if port("policy").is_some() != port("clean").is_some() {
            problems.push(
                Problem::new("", "`policy` and `clean` are needed together")
                    .help("the policy is held against the clean actions: wire both, or neither"),
            );
        }
        if let Some(trust) = port("trust") {
            let has = |name: &str| trust.open || trust.column(name).is_some();
            let tells = has("trust") || (has("drawn") && has("selected"));
            if !tells {
                problems.push(Problem::new(
                    "",
                    "what arrives at `trust` has neither a column `trust` nor `drawn` and `selected`",
                ));
            }
        }
        problems
    }

    fn outputs() -> Vec<OutputPort> {
        let count = |name| Column::new(name, ColumnType::UInt64);
        let share = |name| Column::new(name, ColumnType::Float64).nullable();
        vec![
            OutputPort {
                name: "diagnosis",
                doc: "One row per checkpoint, or one without checkpoint where no policy is wired. `samples`, and how many of \
                      them are `corrupted`. Of trust, where it is wired: at `threshold`, `precision` (corrupted ones among \
                      the distrusted) and `recall` (distrusted ones among the corrupted); `average_precision`, of which the \
                      share of corrupted samples is what chance gives; `selected_corrupted`, the corrupted share of what gave \
                      the gradients, to which a sample adds as often as it was drawn, times its trust. Of the policy, where it is wired: its mean \
                      squared error on the clean actions, `mse` of all samples, `mse_corrupted` and `mse_rest`. Missing where \
                      there is nothing to divide by.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("checkpoint", ColumnType::UInt32).nullable(),
                    count("samples"),
                    count("corrupted"),
                    Column::new("threshold", ColumnType::Float64),
                    share("precision"),
                    share("recall"),
                    share("average_precision"),
                    share("selected_corrupted"),
                    share("mse"),
                    share("mse_corrupted"),
                    share("mse_rest"),
                ])),
                volatile: false,
            },
            OutputPort {
                name: "curve",
                doc: "One row per value that trust has, ascending: how many samples have at most that trust, and precision and \
                      recall where those are the distrusted.",
                content: Content::Table(TableSchema::new(vec![
                    Column::new("trust", ColumnType::Float64),
                    count("distrusted"),
                    Column::new("precision", ColumnType::Float64),
                    share("recall"),
                ])),
                volatile: false,
            },
        ]
    }
}

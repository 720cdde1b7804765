//! `plot`: draws tables as figures.

use provenir_api::port::{Arity, Content, InputPort, OutputPort, TableSchema};
use provenir_api::{Determinism, Kind, Parameters, Revision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machinery::{RANDOM, TABLE};

/// Parameters of `plot`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlotParameters {
    /// Column of the horizontal axis.
    pub x: String,
}

impl Parameters for PlotParameters {}

/// The declaration of `plot`.
pub struct Plot;

impl Kind for Plot {
    type Parameters = PlotParameters;
    const NAME: &'static str = "plot";
    const SUMMARY: &'static str = "Draws tables as a figure.";
    const REVISIONS: &'static [Revision] = &[
        Revision {
            part: "plot",
            number: 1,
        },
        RANDOM,
        TABLE,
    ];
    const DETERMINISM: Determinism = Determinism::Exact;

    fn inputs() -> Vec<InputPort> {
        vec![InputPort {
            name: "table",
            doc: "Tables to draw.",
            arity: Arity::Many,
            required: true,
            content: Content::Table(TableSchema::any()),
        }]
    }

    fn outputs() -> Vec<OutputPort> {
        Vec::new()
    }
}

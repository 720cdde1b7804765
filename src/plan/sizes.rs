//! How many rows pass between cells, where their parameters tell: a cell that needs more than arrive cannot succeed.

use provenir_api::{Resolved, Rows};

use super::model::{CellIndex, Input};

/// The rows of an output, and the parameter that says how many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Known {
    pub(super) rows: u64,
    /// The cell whose parameter it is.
    pub(super) origin: CellIndex,
    pub(super) pointer: &'static str,
}

/// Fewer rows arrive than a parameter asks for.
#[derive(Debug, PartialEq)]
pub(super) struct Shortage {
    pub(super) wanted: u64,
    /// The parameter that asks for them.
    pub(super) pointer: &'static str,
    pub(super) producer: CellIndex,
    pub(super) known: Known,
}

/// What is known of every cell's outputs so far.
#[derive(Default)]
pub(super) struct Ledger(Vec<Vec<(&'static str, Known)>>);

impl Ledger {
    /// Adds the next cell; gives the parameters that ask for more rows than arrive.
    pub(super) fn add(&mut self, parameters: &Resolved, inputs: &[Input]) -> Vec<Shortage> {
        let cell = self.0.len();
        let arriving = |port: &str| {
            let input = inputs.iter().find(|input| input.port == port)?;
            let outputs = self.0.get(input.producer)?;
            let (_, known) = outputs.iter().find(|(output, _)| *output == input.output)?;
            Some((input.producer, *known))
        };
        let shortages = parameters.sizes.needs.iter().filter_map(|need| {
            let (producer, known) = arriving(need.port)?;
            (known.rows < need.rows).then_some(Shortage {
                wanted: need.rows,
                pointer: need.pointer,
                producer,
                known,
            })
        });
        let shortages = shortages.collect();
        let outputs = parameters.sizes.outputs.iter().filter_map(|(port, rows)| {
            let known = match rows {
                Rows::Given(rows, pointer) => Known {
                    rows: *rows,
                    origin: cell,
                    pointer,
                },
                Rows::Of(input) => arriving(input)?.1,
            };
            Some((*port, known))
        });
        let outputs = outputs.collect();
        self.0.push(outputs);
        shortages
    }
}

//! The data sets that policies learn from.

use std::error::Error;

use provenir_execution::Inputs;
use provenir_table::Matrix;
use provenir_table::demonstrations::Demonstrations;

use crate::support::demonstrations;
use crate::workload::WIDTHS;

/// Data sets of one size, of which no two have a sample in common.
pub(crate) struct Sets {
    base: Demonstrations,
    /// What a policy is given that learns from each; tables of their own, as those of different corruptions are.
    inputs: Vec<Inputs>,
}

impl Sets {
    pub(crate) fn new(samples: usize) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            base: demonstrations(samples, WIDTHS)?,
            inputs: Vec::new(),
        })
    }

    /// The set of that number: always the same, and the same tables.
    pub(crate) fn inputs(&mut self, set: usize) -> Result<Inputs, Box<dyn Error>> {
        for number in self.inputs.len()..=set {
            let table = shifted(&self.base, number).into_table()?;
            self.inputs.push(Inputs::new().with_table("demos", table));
        }
        Ok(self.inputs[set].clone())
    }
}

/// Observations that many places further on, actions twice as many: each observation meets another action in every set, and neither
/// stands where it stands in another one. Means and deviations are those of the base, and it costs a copy.
fn shifted(base: &Demonstrations, places: usize) -> Demonstrations {
    let shift = |matrix: &mut Matrix, places: usize| {
        let values = places % matrix.rows() * matrix.width();
        matrix.values_mut().rotate_left(values);
    };
    let mut set = base.clone();
    shift(&mut set.observation, places);
    shift(&mut set.action, 2 * places);
    set
}

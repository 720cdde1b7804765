use provenir_execution::{Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::corrupt::{Corrupt, CorruptParameters};
use provenir_table::TableBuilder;
use provenir_table::demonstrations::Demonstrations;

use crate::outliers::{Outliers, count};

/// Replaces the actions of a share of the samples.
pub struct CorruptExecution;

impl Execution for CorruptExecution {
    type Kind = Corrupt;

    fn execute(
        &self,
        parameters: &CorruptParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let mut demos = Demonstrations::from_table(inputs.one("demos")?)?;
        check_distinct(&demos.sample)?;
        let outliers = Outliers::new(parameters.outlier, parameters.seed);
        let clean = demos.action.clone();
        let mut corrupted = vec![false; demos.rows()];
        for row in outliers.choose(&demos.sample, count(parameters.fraction, demos.rows())) {
            outliers.replace(demos.sample[row], demos.action.row_mut(row));
            corrupted[row] = true;
        }
        context.info(format!(
            "replaced the actions of {} of {} samples",
            corrupted.iter().filter(|corrupted| **corrupted).count(),
            corrupted.len()
        ));
        let mask = TableBuilder::new()
            .u64("sample", demos.sample.clone())
            .bool("corrupted", corrupted)
            .build()?;
        let clean = TableBuilder::new()
            .u64("sample", demos.sample.clone())
            .matrix("clean_action", clean)
            .build()?;
        Ok(Outputs::new()
            .table("demos", demos.into_table()?)
            .table("mask", mask)
            .table("clean", clean))
    }
}

fn check_distinct(samples: &[u64]) -> Result<(), Failure> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Failure::stage(format!(
            "the demonstrations hold the sample {} twice; a sample's number is its identity",
            pair[0]
        ))),
        None => Ok(()),
    }
}

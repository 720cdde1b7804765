use provenir_execution::{Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::corrupt::{Corrupt, CorruptParameters};
use provenir_table::TableBuilder;
use provenir_table::demonstrations::Demonstrations;

use crate::choice::{Choice, count};
use crate::outliers::corrupted;

/// Replaces a share of the samples by outliers.
pub struct CorruptExecution;

impl Execution for CorruptExecution {
    type Kind = Corrupt;

    fn execute(
        &self,
        parameters: &CorruptParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let clean = Demonstrations::from_table(inputs.one("demos")?)?;
        check_distinct(&clean.sample)?;
        let weaker = inputs
            .optional("weaker")
            .map(Demonstrations::from_table)
            .transpose()?;
        let wanted = count(parameters.fraction, clean.rows());
        let rows = Choice::new(parameters.seed).rows(parameters.placement, &clean, wanted);
        let demos = corrupted(parameters, &clean, &rows, weaker.as_ref())?;
        context.info(format!("replaced {} of {} samples", rows.len(), clean.rows()));
        let mut is_corrupted = vec![false; clean.rows()];
        for row in rows {
            is_corrupted[row] = true;
        }
        let mask = TableBuilder::new()
            .u64("sample", clean.sample.clone())
            .bool("corrupted", is_corrupted)
            .build()?;
        let mut before = TableBuilder::new()
            .u64("sample", clean.sample)
            .matrix("clean_action", clean.action);
        if parameters.outlier.changes_observations() {
            before = before.matrix("clean_observation", clean.observation);
        }
        Ok(Outputs::new()
            .table("demos", demos.into_table()?)
            .table("mask", mask)
            .table("clean", before.build()?))
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

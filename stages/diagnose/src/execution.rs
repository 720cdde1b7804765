use provenir_execution::{Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::diagnose::{Diagnose, DiagnoseParameters};
use provenir_table::demonstrations::Demonstrations;
use provenir_table::{Table, TableBuilder, TableError};

use crate::accuracy::{Accuracy, Clean, policies};
use crate::detection::{Detection, Judged, Trust};
use crate::join::{Samples, corrupted, lists};

/// Holds what a method trusted and learned against what `corrupt` did to its data.
pub struct DiagnoseExecution;

impl Execution for DiagnoseExecution {
    type Kind = Diagnose;

    fn execute(
        &self,
        parameters: &DiagnoseParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let demos = Demonstrations::from_table(inputs.one("demos")?)?;
        let corrupted = corrupted(inputs.one("mask")?, &demos.sample)?;
        let trusted = inputs
            .optional("trust")
            .map(|table| trusted(table, &demos.sample, &corrupted))
            .transpose()?;
        let accuracies = match (inputs.optional("policy"), inputs.optional("clean")) {
            (Some(policy), Some(table)) => accuracies(policy, table, &demos, &corrupted, context)?,
            _ => vec![(None, Accuracy::default())],
        };
        let (detection, selected) = trusted.unwrap_or_else(|| (Detection::of(Vec::new()), None));
        let diagnosis = diagnosis(parameters, &corrupted, &detection, selected, &accuracies)?;
        Ok(Outputs::new()
            .table("diagnosis", diagnosis)
            .table("curve", detection.table()?))
    }
}

/// Trust as a detector, and the corrupted share of what gave the gradients.
fn trusted(table: &Table, samples: &[u64], corrupted: &[bool]) -> Result<(Detection, Option<f64>), Failure> {
    let Trust { trust, weight } = Trust::from_table(table)?;
    let rows = Samples::new("demos", samples)?.rows_of(distinct(table.column_u64("sample")?)?, "trust")?;
    let judged = trust.iter().zip(&rows).filter_map(|(trust, row)| {
        trust.map(|trust| Judged {
            trust,
            corrupted: corrupted[*row],
        })
    });
    let detection = Detection::of(judged.collect());
    let all: f64 = weight.iter().sum();
    let of_corrupted: f64 = weight
        .iter()
        .zip(&rows)
        .filter(|(_, row)| corrupted[**row])
        .map(|(weight, _)| weight)
        .sum();
    // A sum of nothing is −0.
    Ok((detection, (all > 0.0).then(|| (of_corrupted / all).abs())))
}

/// The samples at the port `trust`, each there once.
fn distinct(samples: &[u64]) -> Result<&[u64], Failure> {
    Samples::new("trust", samples).map(|_| samples)
}

/// The errors of every checkpoint of a policy.
fn accuracies(
    policy: &Table,
    table: &Table,
    demos: &Demonstrations,
    corrupted: &[bool],
    context: &Context<'_>,
) -> Result<Vec<(Option<u32>, Accuracy)>, Failure> {
    let rows = Samples::new("clean", table.column_u64("sample")?)?.rows_of(&demos.sample, "demos")?;
    let clean = Clean {
        // Where only actions were replaced, what was observed is clean.
        observation: if table.has_column("clean_observation") {
            lists(table, "clean_observation", &rows)?
        } else {
            demos.observation.clone()
        },
        action: lists(table, "clean_action", &rows)?,
    };
    let policies = policies(policy, &demos.about, &clean)?;
    let mut found = Vec::with_capacity(policies.checkpoints().len());
    for (number, policy) in policies.checkpoints() {
        context.check_cancelled()?;
        let accuracy = Accuracy::of(policy, &clean, corrupted)?;
        if let (Some(of_corrupted), Some(rest)) = (accuracy.corrupted, accuracy.rest) {
            context.info(format!(
                "checkpoint {number}: mean squared error on clean actions {of_corrupted:.4} of corrupted samples, {rest:.4} of \
                 the rest"
            ));
        }
        found.push((Some(*number), accuracy));
    }
    Ok(found)
}

fn diagnosis(
    parameters: &DiagnoseParameters,
    corrupted: &[bool],
    detection: &Detection,
    selected: Option<f64>,
    accuracies: &[(Option<u32>, Accuracy)],
) -> Result<Table, TableError> {
    let rows = accuracies.len();
    let (precision, recall) = detection.at(parameters.threshold);
    let average = detection.average_precision();
    let count = corrupted.iter().filter(|corrupted| **corrupted).count() as u64;
    let errors = |error: fn(&Accuracy) -> Option<f64>| {
        accuracies
            .iter()
            .map(|(_, accuracy)| error(accuracy))
            .collect::<Vec<_>>()
    };
    TableBuilder::new()
        .optional_u32(
            "checkpoint",
            accuracies.iter().map(|(number, _)| *number).collect(),
        )
        .u64("samples", vec![corrupted.len() as u64; rows])
        .u64("corrupted", vec![count; rows])
        .f64("threshold", vec![parameters.threshold; rows])
        .optional_f64("precision", vec![precision; rows])
        .optional_f64("recall", vec![recall; rows])
        .optional_f64("average_precision", vec![average; rows])
        .optional_f64("selected_corrupted", vec![selected; rows])
        .optional_f64("mse", errors(|accuracy| accuracy.all))
        .optional_f64("mse_corrupted", errors(|accuracy| accuracy.corrupted))
        .optional_f64("mse_rest", errors(|accuracy| accuracy.rest))
        .build()
}

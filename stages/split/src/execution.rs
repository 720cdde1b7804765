use provenir_execution::{Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::split::{Split, SplitParameters};
use provenir_table::demonstrations::Demonstrations;

use crate::choice::{nearest, shuffled, take};

/// Divides demonstrations into training and validation sets.
pub struct SplitExecution;

impl Execution for SplitExecution {
    type Kind = Split;

    fn execute(
        &self,
        parameters: &SplitParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let demos = Demonstrations::from_table(inputs.one("demos")?)?;
        let episodes = shuffled(&demos.episode, &demos.step, parameters.seed);
        let (validation, training) = episodes.split_at(nearest(&episodes, parameters.validation));
        let left: usize = training.iter().map(Vec::len).sum();
        if parameters.validation > 0.0 && validation.is_empty() {
            context.warn(format!(
                "the validation set is empty: none of {} episodes is short enough to hold about {} of the samples",
                episodes.len(),
                parameters.validation
            ));
        }
        let wanted = match parameters.samples {
            None => left,
            Some(samples) => usize::try_from(samples)
                .ok()
                .filter(|samples| *samples <= left)
                .ok_or_else(|| too_few(samples, &demos, left))?,
        };
        let (rows, cut) = take(training, wanted);
        let mut marked = demos.clone();
        if let Some(row) = cut {
            marked.truncated[row] = true;
        }
        let validation = validation.concat();
        context.info(format!(
            "{} samples for training, {} in {} episodes for validation",
            rows.len(),
            validation.len(),
            episodes.len() - training.len()
        ));
        Ok(Outputs::new()
            .table("train", marked.select(&sorted(rows)).into_table()?)
            .table("validation", demos.select(&sorted(validation)).into_table()?))
    }
}

fn sorted(mut rows: Vec<usize>) -> Vec<usize> {
    rows.sort_unstable();
    rows
}

fn too_few(wanted: u64, demos: &Demonstrations, left: usize) -> Failure {
    Failure::stage(format!(
        "{wanted} training samples are asked for; of {} demonstrated, {left} are left after validation",
        demos.rows()
    ))
    .help("collect more, ask for fewer `samples`, or set less aside with `validation`")
}

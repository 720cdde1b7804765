use provenir_execution::Failure;
use provenir_sim::{EPISODE_STEPS, Task};
use provenir_table::Table;

/// The mean return of an expert's episodes in this task: of the last checkpoint where the table tells checkpoints apart.
///
/// An episode that was cut where `collect` had its samples is not one of the expert's, and is left out.
pub(crate) fn mean_return(table: &Table, task: &Task) -> Result<f64, Failure> {
    if let Some(environment) = table.metadata().get("environment")
        && environment != task.name()
    {
        return Err(Failure::stage(format!(
            "the input `expert` holds episodes in `{environment}`, not in `{}`",
            task.name()
        )));
    }
    let checkpoints = if table.has_column("checkpoint") {
        Some(table.column_u32("checkpoint")?)
    } else {
        None
    };
    let last = checkpoints.and_then(|numbers| numbers.iter().max());
    let (lengths, truncated) = (table.column_u32("length")?, table.column_bool("truncated")?);
    let returns: Vec<f64> = table
        .column_f64("return")?
        .iter()
        .enumerate()
        .filter(|(row, _)| checkpoints.map(|numbers| &numbers[*row]) == last)
        .filter(|(row, _)| !truncated[*row] || lengths[*row] >= EPISODE_STEPS)
        .map(|(_, value)| *value)
        .collect();
    let mean = returns.iter().sum::<f64>() / returns.len() as f64;
    if returns.is_empty() {
        return Err(
            Failure::stage("the input `expert` holds no whole episode").help("collect more samples of it")
        );
    }
    if !(mean.is_finite() && mean > 0.0) {
        return Err(Failure::stage(format!(
            "the expert's mean return is {mean}: a share of it says nothing"
        ))
        .help("leave the port `expert` unwired"));
    }
    Ok(mean)
}

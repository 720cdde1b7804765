use provenir_execution::{Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::time_to_target::{TimeToTarget, TimeToTargetParameters};
use provenir_table::{Table, TableBuilder, TableError};

use crate::checkpoints::{Checkpoint, Trial, checkpoints, first_to_reach, timed};
use crate::clock::Clock;

/// Joins what checkpoints achieve with the seconds of their training.
pub struct TimeToTargetExecution;

impl Execution for TimeToTargetExecution {
    type Kind = TimeToTarget;

    fn execute(
        &self,
        parameters: &TimeToTargetParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let clock = Clock::from_table(inputs.one("timing")?)?;
        let trials = timed(inputs.one("trials")?, &clock)?;
        let checkpoints = checkpoints(&trials);
        let reached = first_to_reach(&checkpoints, parameters.share);
        let best = checkpoints
            .iter()
            .map(|checkpoint| checkpoint.share)
            .fold(f64::NEG_INFINITY, f64::max);
        let target = 100.0 * parameters.share;
        context.info(match reached {
            Some(Checkpoint { epoch, seconds, .. }) => {
                format!("{target} % of the expert's return after {epoch} epochs, {seconds:.3} s")
            }
            None => format!(
                "{target} % of the expert's return at none of {} checkpoints; {:.1} % at the best",
                checkpoints.len(),
                100.0 * best
            ),
        });
        Ok(Outputs::new()
            .table("time", time(parameters.share, reached, best, &clock)?)
            .table("curve", curve(&trials)?))
    }
}

fn time(target: f64, reached: Option<Checkpoint>, best: f64, clock: &Clock) -> Result<Table, TableError> {
    let (epochs, seconds) = clock.last();
    TableBuilder::new()
        .f64("target", vec![target])
        .bool("reached", vec![reached.is_some()])
        .optional_u32("epochs", vec![reached.map(|checkpoint| checkpoint.epoch)])
        .optional_f64("seconds", vec![reached.map(|checkpoint| checkpoint.seconds)])
        .unit("s")
        .f64("best_share", vec![best])
        .u32("trained_epochs", vec![epochs])
        .f64("trained_seconds", vec![seconds])
        .unit("s")
        .build()
}

fn curve(trials: &[Trial]) -> Result<Table, TableError> {
    let floats = |pick: fn(&Trial) -> f64| trials.iter().map(pick).collect::<Vec<_>>();
    TableBuilder::new()
        .u32("epoch", trials.iter().map(|trial| trial.epoch).collect())
        .f64("seconds", floats(|trial| trial.seconds))
        .unit("s")
        .u32("trial", trials.iter().map(|trial| trial.number).collect())
        .f64("return", floats(|trial| trial.earned))
        .f64("share", floats(|trial| trial.share))
        .build()
}

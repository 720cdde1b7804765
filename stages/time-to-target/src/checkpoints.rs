use std::collections::BTreeMap;

use provenir_execution::Failure;
use provenir_table::Table;

use crate::clock::Clock;

/// A trial of a checkpoint, with the time of its training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trial {
    pub(crate) epoch: u32,
    pub(crate) seconds: f64,
    pub(crate) number: u32,
    pub(crate) earned: f64,
    pub(crate) share: f64,
}

/// A checkpoint, by the mean over its trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Checkpoint {
    pub(crate) epoch: u32,
    pub(crate) seconds: f64,
    pub(crate) share: f64,
}

/// The trials with the time of each, by epoch and trial.
pub(crate) fn timed(trials: &Table, clock: &Clock) -> Result<Vec<Trial>, Failure> {
    let (epochs, numbers) = (trials.column_u32("checkpoint")?, trials.column_u32("trial")?);
    let (returns, shares) = (trials.column_f64("return")?, trials.optional_f64("share")?);
    let mut timed = Vec::with_capacity(epochs.len());
    for (((epoch, trial), earned), share) in epochs.iter().zip(numbers).zip(returns).zip(shares) {
        let share = share.filter(|share| share.is_finite()).ok_or_else(|| {
            Failure::stage(format!(
                "trial {trial} of the checkpoint after {epoch} epochs has no share of an expert's return"
            ))
            .help("wire episodes of the expert to `expert` of the `evaluate` stage")
        })?;
        timed.push(Trial {
            epoch: *epoch,
            seconds: clock.at(*epoch)?,
            number: *trial,
            earned: *earned,
            share,
        });
    }
    if timed.is_empty() {
        return Err(Failure::stage("the input `trials` holds no trial"));
    }
    timed.sort_by_key(|trial| (trial.epoch, trial.number));
    if let Some(pair) = timed
        .windows(2)
        .find(|pair| (pair[0].epoch, pair[0].number) == (pair[1].epoch, pair[1].number))
    {
        return Err(Failure::stage(format!(
            "trial {} of the checkpoint after {} epochs is there twice",
            pair[0].number, pair[0].epoch
        )));
    }
    Ok(timed)
}

/// The checkpoints of trials, by epoch.
pub(crate) fn checkpoints(trials: &[Trial]) -> Vec<Checkpoint> {
    let mut of_each: BTreeMap<u32, Vec<&Trial>> = BTreeMap::new();
    for trial in trials {
        of_each.entry(trial.epoch).or_default().push(trial);
    }
    of_each
        .into_iter()
        .map(|(epoch, trials)| Checkpoint {
            epoch,
            seconds: trials[0].seconds,
            share: trials.iter().map(|trial| trial.share).sum::<f64>() / trials.len() as f64,
        })
        .collect()
}

/// The first of the checkpoints, which are in order, that achieves at least that share.
pub(crate) fn first_to_reach(checkpoints: &[Checkpoint], share: f64) -> Option<Checkpoint> {
    checkpoints
        .iter()
        .find(|checkpoint| checkpoint.share >= share)
        .copied()
}

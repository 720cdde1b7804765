use std::collections::BTreeMap;

use provenir_api::protocol::Progress;
use provenir_execution::{Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::collect::{Collect, CollectParameters};
use provenir_policy::Policy;
use provenir_random::Stream;
use provenir_sim::{EPISODE_STEPS, Rollouts, SimError, Task};
use provenir_table::demonstrations::About;

use crate::recording::{Recording, Widths};

/// The most episodes that are held before they are recorded.
const BATCH: usize = 256;

/// Rolls an expert out and records what it does.
pub struct CollectExecution;

impl Execution for CollectExecution {
    type Kind = Collect;

    fn execute(
        &self,
        parameters: &CollectParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let task = Task::named(parameters.env.name()).map_err(|error| Failure::bug(error.to_string()))?;
        let policies = provenir_policy_file::read(&parameters.source(), inputs, context, task)?;
        let policy = policies.last();
        let recording = record(task, policy, parameters, context)?;
        context.info(format!(
            "{} episodes, mean return {:.1}, mean length {:.1}",
            recording.episodes(),
            recording.mean_return(),
            recording.mean_length()
        ));
        let about = About {
            environment: task.name().to_owned(),
            time_feature: policy.about().time_feature,
            expert: policy.about().method.clone(),
            notes: BTreeMap::new(),
        };
        let (demos, episodes) = recording.into_tables(about)?;
        Ok(Outputs::new().table("demos", demos).table("episodes", episodes))
    }
}

fn record(
    task: &Task,
    policy: &Policy,
    parameters: &CollectParameters,
    context: &Context<'_>,
) -> Result<Recording, Failure> {
    let widths = Widths {
        observation: policy.observation_width(),
        action: policy.action_width(),
    };
    let rollouts = Rollouts {
        record: true,
        threads: context.cores(),
        ..Rollouts::of(task, policy)
    };
    let seeds = Stream::new(parameters.seed, "collect");
    let actor = policy.actor();
    // The schema's ranges keep both counts far below the limits of `usize`.
    let mut recording = Recording::new(
        widths,
        parameters.samples.map_or(usize::MAX, |samples| samples as usize),
    );
    let wanted = parameters.episodes.map(|episodes| episodes as usize);
    loop {
        let first = recording.episodes();
        let count = match wanted {
            Some(episodes) => episodes - first,
            None => episodes_for(&recording),
        };
        if count == 0 {
            return Ok(recording);
        }
        let seeds: Vec<u64> = (first..first + count.min(BATCH))
            .map(|episode| seeds.at(episode as u64))
            .collect();
        let go_on = |finished: usize| {
            context.progress(progress(&recording, finished, first + count));
            context.check_cancelled().is_ok()
        };
        let act = || {
            let mut actor = actor.clone();
            move |observations: &[f32], actions: &mut [f32]| actor.act(observations, actions)
        };
        let episodes = rollouts.run(&seeds, act, go_on).map_err(|error| match error {
            SimError::Stopped => Failure::cancelled(),
            error => Failure::stage(format!("the expert cannot be rolled out: {error}")),
        })?;
        for episode in &episodes {
            recording.push(episode);
        }
    }
}

/// About how many more episodes fill the recording; at least one, while there is room.
fn episodes_for(recording: &Recording) -> usize {
    let length = match recording.episodes() {
        0 => f64::from(EPISODE_STEPS),
        _ => recording.mean_length(),
    };
    (recording.room() as f64 / length).ceil() as usize
}

fn progress(recording: &Recording, finished: usize, total: usize) -> Progress {
    let metrics = match recording.episodes() {
        0 => BTreeMap::new(),
        _ => BTreeMap::from([("return".to_owned(), recording.mean_return())]),
    };
    Progress {
        done: (recording.episodes() + finished) as u64,
        total: Some(total as u64),
        unit: "episodes".to_owned(),
        metrics,
    }
}

use std::collections::BTreeMap;

use provenir_api::protocol::Progress;
use provenir_execution::{Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::evaluate::{Evaluate, EvaluateParameters};
use provenir_policy::{Policy, PolicyError, PolicySet};
use provenir_random::Stream;
use provenir_sim::{Episode, Rollouts, SimError, Task};
use provenir_table::{Table, TableBuilder, TableError};

use crate::Summary;

/// Rolls every checkpoint of a policy out.
pub struct EvaluateExecution;

impl Execution for EvaluateExecution {
    type Kind = Evaluate;

    fn execute(
        &self,
        parameters: &EvaluateParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let policies = PolicySet::from_table(inputs.one("policy")?).map_err(|error| match error {
            PolicyError::Table(error) => error.into(),
            error => Failure::stage(format!("the input `policy` is {error}")),
        })?;
        let task = Task::named(parameters.env.name()).map_err(|error| Failure::bug(error.to_string()))?;
        // Checkpoints are alike in all that this looks at.
        task.fits(policies.last())
            .map_err(|misfit| Failure::stage(misfit.to_string()).help(misfit.help()))?;
        let seeds = trial_seeds(parameters.seed, parameters.trials);
        let count = policies.checkpoints().len();
        let mut results = Vec::with_capacity(count);
        for (index, (number, policy)) in policies.checkpoints().iter().enumerate() {
            let before = (index * seeds.len()) as u64;
            let total = (count * seeds.len()) as u64;
            let episodes = roll_out(task, policy, &seeds, context, before, total)
                .map_err(|failure| failure_of(*number, failure))?;
            let returns: Vec<f64> = episodes.iter().map(|episode| episode.total_reward).collect();
            let bootstrap = Stream::new(parameters.seed, "bootstrap").child("checkpoint", u64::from(*number));
            let summary = Summary::of(&returns, bootstrap);
            context.info(format!(
                "checkpoint {number}: mean return {:.1} (standard deviation {:.1}) over {} trials",
                summary.mean,
                summary.std,
                returns.len()
            ));
            results.push(Evaluated {
                number: *number,
                episodes,
                summary,
            });
        }
        let about = policies.last().about();
        let about = [
            ("environment", about.environment.as_str()),
            ("method", about.method.as_str()),
        ];
        Ok(Outputs::new()
            .table("trials", trials(&results, about)?)
            .table("summary", summary(&results, about)?))
    }
}

/// A checkpoint's results.
struct Evaluated {
    number: u32,
    episodes: Vec<Episode>,
    summary: Summary,
}

/// What a rollout may fail with.
enum Trouble {
    Cancelled(Failure),
    Simulation(SimError),
}

/// The episode seeds of the trials, the same whatever is evaluated.
fn trial_seeds(seed: u64, trials: u32) -> Vec<u64> {
    let mut stream = Stream::new(seed, "trials");
    (0..trials).map(|_| stream.u64()).collect()
}

fn roll_out(
    task: &Task,
    policy: &Policy,
    seeds: &[u64],
    context: &Context<'_>,
    before: u64,
    total: u64,
) -> Result<Vec<Episode>, Trouble> {
    let go_on = |finished: usize| {
        context.progress(Progress {
            done: before + finished as u64,
            total: Some(total),
            unit: "episodes".to_owned(),
            metrics: BTreeMap::new(),
        });
        context.check_cancelled().is_ok()
    };
    // One thread: cells run side by side, each on the core that it declares.
    Rollouts::of(task, policy)
        .run_policy(policy, seeds, go_on)
        .map_err(|error| match context.check_cancelled() {
            Err(cancelled) if error == SimError::Stopped => Trouble::Cancelled(cancelled),
            _ => Trouble::Simulation(error),
        })
}

fn failure_of(checkpoint: u32, trouble: Trouble) -> Failure {
    match trouble {
        Trouble::Cancelled(failure) => failure,
        Trouble::Simulation(error) => Failure::stage(format!("checkpoint {checkpoint}: {error}")),
    }
}

fn trials(results: &[Evaluated], about: [(&str, &str); 2]) -> Result<Table, TableError> {
    fn column<T>(results: &[Evaluated], value: impl Fn(&Episode) -> T) -> Vec<T> {
        results
            .iter()
            .flat_map(|result| result.episodes.iter().map(&value))
            .collect()
    }
    let numbers = results
        .iter()
        .flat_map(|result| result.episodes.iter().map(|_| result.number));
    let trials = results.iter().flat_map(|result| 0..result.episodes.len() as u32);
    with_metadata(about)
        .u32("checkpoint", numbers.collect())
        .u32("trial", trials.collect())
        .f64("return", column(results, |episode| episode.total_reward))
        .u32("length", column(results, |episode| episode.length))
        .unit("steps")
        .bool("terminated", column(results, |episode| episode.terminated))
        .bool("truncated", column(results, |episode| episode.truncated))
        .build()
}

fn summary(results: &[Evaluated], about: [(&str, &str); 2]) -> Result<Table, TableError> {
    let column = |value: fn(&Summary) -> f64| results.iter().map(|result| value(&result.summary)).collect();
    let mean_length = |result: &Evaluated| {
        let steps: u64 = result
            .episodes
            .iter()
            .map(|episode| u64::from(episode.length))
            .sum();
        steps as f64 / result.episodes.len() as f64
    };
    let falls = |result: &Evaluated| {
        result
            .episodes
            .iter()
            .map(|episode| u32::from(episode.terminated))
            .sum()
    };
    with_metadata(about)
        .u32("checkpoint", results.iter().map(|result| result.number).collect())
        .u32(
            "trials",
            results
                .iter()
                .map(|result| result.episodes.len() as u32)
                .collect(),
        )
        .f64("mean", column(|summary| summary.mean))
        .f64("std", column(|summary| summary.std))
        .f64("median", column(|summary| summary.median))
        .f64("iqm", column(|summary| summary.iqm))
        .f64("ci_low", column(|summary| summary.interval.0))
        .f64("ci_high", column(|summary| summary.interval.1))
        .f64("min", column(|summary| summary.min))
        .f64("max", column(|summary| summary.max))
        .f64("length", results.iter().map(mean_length).collect())
        .unit("steps")
        .u32("early_falls", results.iter().map(falls).collect())
        .build()
}

fn with_metadata(about: [(&str, &str); 2]) -> TableBuilder {
    about
        .into_iter()
        .fold(TableBuilder::new(), |builder, (key, value)| {
            builder.metadata(key, value)
        })
}

use std::collections::BTreeMap;

use provenir_api::protocol::Progress;
use provenir_execution::{Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::evaluate::{Evaluate, EvaluateParameters};
use provenir_policy::Policy;
use provenir_random::Stream;
use provenir_sim::{Episode, Rollouts, SimError, Task, trial_seed};

use crate::Summary;
use crate::expert;
use crate::tables::{Evaluated, Results};

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
        let task = Task::named(parameters.env.name()).map_err(|error| Failure::bug(error.to_string()))?;
        let policies = provenir_policy_file::read(&parameters.source(), inputs, context, task)?;
        let expert = match inputs.optional("expert") {
            Some(table) => Some(expert::mean_return(table, task)?),
            None => None,
        };
        let rollouts = Rollouts {
            discount: parameters.discount,
            threads: context.cores(),
            ..Rollouts::of(task, policies.last())
        };
        let seeds = trial_seeds(parameters.seed, parameters.trials);
        let count = policies.checkpoints().len();
        let mut checkpoints = Vec::with_capacity(count);
        for (index, (number, policy)) in policies.checkpoints().iter().enumerate() {
            let before = (index * seeds.len()) as u64;
            let total = (count * seeds.len()) as u64;
            let episodes = roll_out(&rollouts, policy, &seeds, context, before, total)
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
            checkpoints.push(Evaluated {
                number: *number,
                episodes,
                summary,
            });
        }
        let about = policies.last().about();
        let results = Results {
            checkpoints,
            expert,
            about: [
                ("environment", about.environment.clone()),
                ("method", about.method.clone()),
                ("discount", parameters.discount.to_string()),
            ],
        };
        Ok(Outputs::new()
            .table("trials", results.trials()?)
            .table("summary", results.summary()?))
    }
}

/// What a rollout may fail with.
enum Trouble {
    Cancelled(Failure),
    Simulation(SimError),
}

/// The episode seeds of the trials, the same whatever is evaluated.
fn trial_seeds(seed: u64, trials: u32) -> Vec<u64> {
    (0..trials).map(|trial| trial_seed(seed, trial)).collect()
}

fn roll_out(
    rollouts: &Rollouts<'_>,
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
    rollouts
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

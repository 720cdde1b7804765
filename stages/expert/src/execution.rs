use std::time::Duration;

use provenir_execution::{Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::expert::{Expert, ExpertParameters};
use provenir_kinds::train;
use provenir_nn::device::{Choice, Precision, select, set_precision, set_threads};
use provenir_policy::{About, PolicySet};
use provenir_sim::Task;
use provenir_table::{Table, TableBuilder, TableError};

use crate::journal::{Journal, Row};
use crate::run::{Training, failure};

/// Trains a policy in the simulator.
pub struct ExpertExecution;

/// Time between checkpoints: an interruption loses about as much.
const PACE: Duration = Duration::from_secs(30);

impl Execution for ExpertExecution {
    type Kind = Expert;

    fn execute(
        &self,
        parameters: &ExpertParameters,
        _: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        execute(parameters, context, PACE)
    }
}

pub(crate) fn execute(
    parameters: &ExpertParameters,
    context: &Context<'_>,
    pace: Duration,
) -> Result<Outputs, Failure> {
    let task = Task::named(parameters.env.name()).map_err(|error| Failure::bug(error.to_string()))?;
    set_threads(parameters.threads);
    let selected = select(match parameters.device {
        train::Device::Auto => Choice::Auto,
        train::Device::Cpu => Choice::Cpu,
        train::Device::Cuda => Choice::Cuda,
    })
    .map_err(failure)?;
    set_precision(selected.device, Precision::Float32).map_err(failure)?;
    context.info(selected.reason);
    let about = About {
        environment: task.name().to_owned(),
        time_feature: parameters.time_feature,
        method: parameters.algorithm.name().to_owned(),
        ..About::default()
    };
    let finished = Training::new(parameters, task, about.clone(), selected.device, context)?
        .resume()?
        .run(pace)?;
    let (steps, policy) = finished.policy;
    context.info(format!("the policy after {steps} steps is the result"));
    let number = u32::try_from(steps).map_err(|_| Failure::bug("more steps than a checkpoint counts"))?;
    let set = PolicySet::new(vec![(number, policy)]).map_err(|error| Failure::bug(error.to_string()))?;
    let about = [
        ("environment", about.environment.as_str()),
        ("method", about.method.as_str()),
    ];
    Ok(Outputs::new()
        .table("policy", set.to_table()?)
        .table("history", history(&finished.journal, parameters, about)?)
        .table("timing", timing(&finished.journal)?))
}

/// The schema bounds the steps by a number that fits.
fn steps(journal: &Journal) -> Vec<u32> {
    journal.rows.iter().map(|row| row.steps as u32).collect()
}

fn history(
    journal: &Journal,
    parameters: &ExpertParameters,
    about: [(&str, &str); 2],
) -> Result<Table, TableError> {
    fn column<T>(journal: &Journal, value: impl Fn(&Row) -> T) -> Vec<T> {
        journal.rows.iter().map(value).collect()
    }
    let rate = |row: &Row| row.rate_share.map(|share| share * parameters.learning_rate);
    let table = TableBuilder::new()
        .u32("steps", steps(journal))
        .u64("updates", column(journal, |row| row.updates))
        .u64("episodes", column(journal, |row| row.episodes))
        .f64("return", column(journal, |row| row.evaluation.mean))
        .f64("return_std", column(journal, |row| row.evaluation.std))
        .f64("return_min", column(journal, |row| row.evaluation.min))
        .f64("length", column(journal, |row| row.evaluation.length))
        .unit("steps")
        .u32("falls", column(journal, |row| row.evaluation.falls))
        .optional_f64("training_return", column(journal, |row| row.training_return))
        .optional_f64("critic_loss", column(journal, |row| row.critic_loss))
        .optional_f64("policy_loss", column(journal, |row| row.policy_loss))
        .optional_f64("temperature", column(journal, |row| row.temperature))
        .optional_f64("entropy", column(journal, |row| row.entropy))
        .optional_f64("learning_rate", column(journal, rate));
    about
        .into_iter()
        .fold(table, |table, (key, value)| table.metadata(key, value))
        .build()
}

fn timing(journal: &Journal) -> Result<Table, TableError> {
    TableBuilder::new()
        .u32("steps", steps(journal))
        .f64("seconds", journal.rows.iter().map(|row| row.seconds).collect())
        .unit("s")
        .build()
}

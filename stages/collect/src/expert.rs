use provenir_execution::{Context, Failure, Inputs};
use provenir_kinds::collect::{Activation, CollectParameters};
use provenir_policy::{Policy, PolicyError, PolicySet};
use provenir_sim::{Misfit, Task};
use provenir_stable_baselines::Agent;
use provenir_table::{Table, parse};

/// The expert that the parameters or the port `expert` name, checked against the task.
pub(crate) fn read(
    parameters: &CollectParameters,
    inputs: &Inputs,
    context: &Context<'_>,
    task: &Task,
) -> Result<Policy, Failure> {
    let policy = match (&parameters.expert, inputs.optional("expert")) {
        (None, Some(table)) => finished(table)?,
        (Some(_), None) if from_archive(parameters) => agent(parameters, context)?,
        (Some(file), None) => finished(&parse(file.path(), context.source("/expert")?)?)?,
        _ => {
            return Err(Failure::bug(
                "exactly one expert should have passed the command's checks",
            ));
        }
    };
    fit(&policy, parameters, task)?;
    Ok(policy)
}

fn from_archive(parameters: &CollectParameters) -> bool {
    parameters
        .expert
        .as_ref()
        .is_some_and(|file| file.path().extension() == Some("zip"))
}

/// The last checkpoint in a table of policies.
fn finished(table: &Table) -> Result<Policy, Failure> {
    let set = PolicySet::from_table(table).map_err(|error| match error {
        PolicyError::Table(error) => error.into(),
        error @ PolicyError::Invalid(_) => Failure::stage(format!("the expert is {error}")),
    })?;
    Ok(set.last().clone())
}

fn agent(parameters: &CollectParameters, context: &Context<'_>) -> Result<Policy, Failure> {
    let archive = context.source("/expert")?;
    let statistics = match parameters.normalization {
        Some(_) => Some(context.source("/normalization")?),
        None => None,
    };
    let agent = Agent {
        archive: &archive,
        statistics: statistics.as_deref(),
        activation: parameters.activation.map(|activation| match activation {
            Activation::Relu => provenir_policy::Activation::Relu,
            Activation::Tanh => provenir_policy::Activation::Tanh,
        }),
        environment: parameters.env.name(),
        time_feature: parameters.time_feature,
    };
    provenir_stable_baselines::read(&agent).map_err(|error| {
        let failure = Failure::stage(error.to_string());
        match error.help() {
            Some(help) => failure.help(help),
            None => failure,
        }
    })
}

/// [`Task::fits`], with what to do next.
fn fit(policy: &Policy, parameters: &CollectParameters, task: &Task) -> Result<(), Failure> {
    task.fits(policy).map_err(|misfit| {
        let help = match &misfit {
            Misfit::Observation { found, expected, .. }
                if from_archive(parameters) && found.abs_diff(*expected) == 1 =>
            {
                if parameters.time_feature {
                    "this expert seems to read no time feature: leave `time_feature` out".to_owned()
                } else {
                    "the one more may be the time feature of RL Zoo's `TimeFeatureWrapper`: set `time_feature = true`"
                        .to_owned()
                }
            }
            _ => format!("was the expert trained in `{}`?", task.name()),
        };
        Failure::stage(format!("the expert does not fit: {misfit}")).help(help)
    })
}

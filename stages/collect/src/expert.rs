use provenir_api::port::Content;
use provenir_execution::{Context, Failure, Inputs};
use provenir_kinds::collect::{Activation, CollectParameters};
use provenir_kinds::tables::policy;
use provenir_policy::{Policy, PolicySet};
use provenir_sim::{Misfit, Task};
use provenir_stable_baselines::{Agent, Error};
use provenir_table::{Table, parse};

/// The expert that the parameters or the port `expert` name, checked against the task.
pub(crate) fn read(
    parameters: &CollectParameters,
    inputs: &Inputs,
    context: &Context<'_>,
    task: &Task,
) -> Result<Policy, Failure> {
    let policy = match (&parameters.expert, inputs.optional("expert")) {
        (None, Some(table)) => finished(table, "the expert")?,
        (Some(_), None) if from_archive(parameters) => agent(parameters, context)?,
        (Some(file), None) => {
            let table = parse(file.path(), context.source("/expert")?)
                .map_err(|error| Failure::stage(error.to_string()).help(wanted()))?;
            finished(&table, &format!("`{}`", file.path()))?
        }
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

/// The last checkpoint in a table of policies, which a message calls `name`.
fn finished(table: &Table, name: &str) -> Result<Policy, Failure> {
    let set = PolicySet::from_table(table)
        .map_err(|error| Failure::stage(format!("{name} is not a policy: {error}")).help(wanted()))?;
    Ok(set.last().clone())
}

/// What an expert is, for whoever named something else.
fn wanted() -> String {
    let columns = match policy() {
        Content::Table(schema) => schema.columns,
        Content::File(_) => Vec::new(),
    };
    let columns: Vec<String> = columns
        .iter()
        .map(|column| format!("`{}` ({})", column.name, column.kind))
        .collect();
    format!(
        "an expert is the `policy` that a stage such as `train` gives (`provenir path STAGE` says where it is): a table \
         with the columns {}; or a Stable-Baselines3 archive, which ends in .zip",
        columns.join(", ")
    )
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
        let file = match &error {
            Error::Normalization(_) => &parameters.normalization,
            _ => &parameters.expert,
        };
        let path = file.as_ref().map_or("the expert", |file| file.path().as_str());
        let failure = Failure::stage(format!("`{path}` cannot be used: {error}"));
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

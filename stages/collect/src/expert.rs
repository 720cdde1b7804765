use camino::Utf8Path;
use provenir_api::port::Content;
use provenir_execution::{Context, Failure, Inputs};
use provenir_kinds::collect::{Activation, CollectParameters, ExpertFile};
use provenir_kinds::tables::policy;
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
    let (expert, format, policy) = match (&parameters.expert, inputs.optional("expert")) {
        (None, Some(table)) => ("the expert".to_owned(), None, from_table(table, "the expert")?),
        (Some(file), None) => {
            let (path, format) = (file.path(), ExpertFile::of(file.path()));
            let expert = format!("the expert `{path}`");
            let policy = match format {
                Some(ExpertFile::Archive) => agent(parameters, path, context)?,
                Some(ExpertFile::Safetensors) => {
                    finished(PolicySet::from_safetensors(&context.source("/expert")?), &expert)?
                }
                Some(ExpertFile::Table) => {
                    let table = parse(path, context.source("/expert")?)
                        .map_err(|error| Failure::stage(error.to_string()).help(wanted()))?;
                    from_table(&table, &format!("`{path}`"))?
                }
                None => {
                    return Err(Failure::bug(
                        "a file of unknown format passed the command's checks",
                    ));
                }
            };
            (expert, format, policy)
        }
        _ => {
            return Err(Failure::bug(
                "exactly one expert should have passed the command's checks",
            ));
        }
    };
    task.fits(&policy).map_err(|misfit| {
        let help = help(&misfit, format);
        Failure::stage(format!("{expert} does not fit: {misfit}")).help(help)
    })?;
    Ok(policy)
}

/// The last checkpoint in a table of policies.
fn from_table(table: &Table, expert: &str) -> Result<Policy, Failure> {
    finished(PolicySet::from_table(table), expert)
}

/// The last checkpoint of a set, which a message calls `expert`.
fn finished(set: Result<PolicySet, PolicyError>, expert: &str) -> Result<Policy, Failure> {
    match set {
        Ok(set) => Ok(set.last().clone()),
        Err(PolicyError::Table(error)) => {
            Err(Failure::stage(format!("{expert} is not a policy: {error}")).help(wanted()))
        }
        Err(error) => Err(Failure::stage(format!("{expert} is {error}")).help(wanted())),
    }
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
         with the columns {}; or what `provenir export` makes of one (.safetensors); or a Stable-Baselines3 archive (.zip)",
        columns.join(", ")
    )
}

fn agent(parameters: &CollectParameters, path: &Utf8Path, context: &Context<'_>) -> Result<Policy, Failure> {
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
        let file = match &parameters.normalization {
            Some(statistics) if error.is_of_statistics() => statistics.path(),
            _ => path,
        };
        let failure = Failure::stage(format!("`{file}` cannot be read: {error}"));
        match error.help() {
            Some(help) => failure.help(help),
            None => failure,
        }
    })
}

/// What to do next about an expert that does not fit.
fn help(misfit: &Misfit, format: Option<ExpertFile>) -> String {
    match (format, misfit.time_feature()) {
        (Some(ExpertFile::Archive), Some(true)) => {
            "it was probably trained with the time feature (RL Zoo's `TimeFeatureWrapper`): set `time_feature = true`".to_owned()
        }
        (Some(ExpertFile::Archive), Some(false)) => {
            "it was probably trained without the time feature: leave `time_feature` out".to_owned()
        }
        _ => misfit.help(),
    }
}

//! Reads the policy that a stage is given, from whatever holds one, and checks it against its task.
//!
//! [`read`] takes a table that is wired to a port, or the file that the parameter of the same name names: a policy as Parquet
//! or as safetensors, or a Stable-Baselines3 archive.

use provenir_api::SourceFile;
use provenir_api::port::Content;
use provenir_execution::{Context, Failure, Inputs};
use provenir_kinds::{Activation, PolicyFormat, PolicySource, tables};
use provenir_policy::{Misfit, PolicyError, PolicySet};
use provenir_sim::{NAMES, Task};
use provenir_stable_baselines::Agent;
use provenir_table::parse;

/// Reads the policy that a stage is given, with all its checkpoints, which can act in the task.
pub fn read(
    source: &PolicySource<'_>,
    inputs: &Inputs,
    context: &Context<'_>,
    task: &Task,
) -> Result<PolicySet, Failure> {
    let role = source.name;
    let (name, format, policies) = match (source.file, inputs.optional(role)) {
        (None, Some(table)) => {
            let name = format!("the {role}");
            let policies = checked(PolicySet::from_table(table), &name)?;
            (name, None, policies)
        }
        (Some(file), None) => {
            let name = format!("the {role} `{}`", file.path());
            let (format, policies) = read_file(source, file, &name, context, task)?;
            (name, Some(format), policies)
        }
        _ => {
            return Err(Failure::bug(format!(
                "exactly one {role} should have passed the command's checks"
            )));
        }
    };
    // Checkpoints are alike in all that this looks at.
    let policy = policies.last();
    task.fits(policy).map_err(|misfit| {
        let is_archive = format == Some(PolicyFormat::Archive);
        Failure::stage(format!("{name} does not fit: {misfit}")).help(help(&misfit, is_archive))
    })?;
    match source.time_feature {
        Some(given) if given != policy.about().time_feature => {
            let with = |is_with: bool| if is_with { "with" } else { "without" };
            Err(Failure::stage(format!(
                "{name} observes {} the time feature, by its own metadata; `time_feature = {given}` says {} it",
                with(policy.about().time_feature),
                with(given)
            ))
            .help("leave `time_feature` out: a policy says it itself"))
        }
        _ => Ok(policies),
    }
}

/// What to do next about a policy that does not fit: parameters tell what an archive leaves open.
fn help(misfit: &Misfit, is_archive: bool) -> String {
    match misfit.time_feature().filter(|_| is_archive) {
        Some(true) => "it was probably trained with the time feature (RL Zoo's `TimeFeatureWrapper`): set `time_feature = true` \
                       (`--time-feature` on the command line)"
            .to_owned(),
        Some(false) => "it was probably trained without the time feature: leave `time_feature` out (`--time-feature` on the \
                        command line)"
            .to_owned(),
        None => misfit.help(&NAMES),
    }
}

fn read_file(
    source: &PolicySource<'_>,
    file: &SourceFile,
    name: &str,
    context: &Context<'_>,
    task: &Task,
) -> Result<(PolicyFormat, PolicySet), Failure> {
    let bytes = context.source(source.pointer)?;
    // By what it holds, which is in the key; its name is not.
    let format = PolicyFormat::of_bytes(&bytes)
        .or_else(|| PolicyFormat::of(file.path()))
        .ok_or_else(|| Failure::stage(format!("{name} is neither a policy nor an archive")).help(wanted()))?;
    let is_for_archives = source.normalization.is_some() || source.activation.is_some();
    if is_for_archives && format != PolicyFormat::Archive {
        return Err(Failure::stage(format!(
            "{name} is no archive of Stable-Baselines3, whatever its name says"
        ))
        .help("leave `normalization` and `activation` out: a policy says all of that itself"));
    }
    let policies = match format {
        PolicyFormat::Archive => agent(source, file, &bytes, context, task)?,
        PolicyFormat::Safetensors => checked(PolicySet::from_safetensors(&bytes), name)?,
        PolicyFormat::Table => {
            let table = parse(file.path(), bytes)
                .map_err(|error| Failure::stage(error.to_string()).help(wanted()))?;
            checked(PolicySet::from_table(&table), name)?
        }
    };
    Ok((format, policies))
}

/// What holds a policy, for whoever named something else.
fn wanted() -> String {
    let columns = match tables::policy() {
        Content::Table(schema) => schema.columns,
        Content::File(_) | Content::FileOf(_) | Content::Any => Vec::new(),
    };
    let columns: Vec<String> = columns
        .iter()
        .map(|column| format!("`{}` ({})", column.name, column.kind))
        .collect();
    format!(
        "wanted is the `policy` that a stage such as `train` gives (`provenir path STAGE` says where it is), a table with the \
         columns {}; what `provenir export` makes of one (.safetensors); or a Stable-Baselines3 archive (.zip)",
        columns.join(", ")
    )
}

fn checked(policies: Result<PolicySet, PolicyError>, name: &str) -> Result<PolicySet, Failure> {
    policies.map_err(|error| match error {
        PolicyError::Table(error) => {
            Failure::stage(format!("{name} is not a policy: {error}")).help(wanted())
        }
        error => Failure::stage(format!("{name} is {error}")).help(wanted()),
    })
}

fn agent(
    source: &PolicySource<'_>,
    file: &SourceFile,
    archive: &[u8],
    context: &Context<'_>,
    task: &Task,
) -> Result<PolicySet, Failure> {
    let statistics = source
        .normalization
        .map(|_| context.source(PolicySource::NORMALIZATION))
        .transpose()?;
    let agent = Agent {
        archive,
        statistics: statistics.as_deref(),
        activation: source.activation.map(|activation| match activation {
            Activation::Relu => provenir_policy::Activation::Relu,
            Activation::Tanh => provenir_policy::Activation::Tanh,
        }),
        environment: task.name(),
        time_feature: source.time_feature.unwrap_or(false),
    };
    match provenir_stable_baselines::read(&agent) {
        Ok(policy) => Ok(PolicySet::single(policy)),
        Err(error) => {
            let at_fault = match source.normalization {
                Some(statistics) if error.is_of_statistics() => statistics,
                _ => file,
            };
            let failure = Failure::stage(format!("`{}` cannot be read: {error}", at_fault.path()));
            Err(match error.help() {
                Some(help) => failure.help(help),
                None => failure,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use provenir_kinds::Environment;
    use provenir_sim::Task;

    #[test]
    fn environments_are_declared_as_wide_as_they_are_simulated() {
        for environment in Environment::ALL {
            let task = Task::named(environment.name()).unwrap();
            assert_eq!(
                (environment.observation_width(), environment.action_width()),
                (task.observation_width(), task.action_width()),
                "{}",
                environment.name()
            );
        }
    }
}

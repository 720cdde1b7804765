//! Reads the policy that a stage is given, from whatever holds one, and checks it against its task.
//!
//! [`read`] takes a table that is wired to a port, or a file that a parameter names: a policy as Parquet or as safetensors,
//! or a Stable-Baselines3 archive.

use camino::Utf8Path;
use provenir_api::port::Content;
use provenir_execution::{Context, Failure};
use provenir_kinds::collect::Activation;
use provenir_kinds::{PolicyFormat, tables};
use provenir_policy::{PolicyError, PolicySet};
use provenir_sim::{Misfit, Task};
use provenir_stable_baselines::Agent;
use provenir_table::{Table, parse};

/// What holds the policy.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// A table that arrived at a port.
    Table(&'a Table),
    /// A source file.
    File(File<'a>),
}

/// A source file that holds a policy, and what one of Stable-Baselines3 leaves open.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// JSON pointer of the parameter that names it.
    pub pointer: &'a str,
    /// Its path.
    pub path: &'a Utf8Path,
    /// JSON pointer and path of the `VecNormalize` statistics, where they are given.
    pub normalization: Option<(&'a str, &'a Utf8Path)>,
    /// Activation of the hidden layers, where it is given.
    pub activation: Option<Activation>,
    /// Whether the agent reads the time feature.
    pub time_feature: bool,
}

/// Reads a policy with all its checkpoints. Messages call it by its `role`: `expert`, `policy`.
pub fn read(
    role: &str,
    origin: Origin<'_>,
    context: &Context<'_>,
    task: &Task,
) -> Result<PolicySet, Failure> {
    let (name, format, policies) = match origin {
        Origin::Table(table) => {
            let name = format!("the {role}");
            let policies = checked(PolicySet::from_table(table), &name)?;
            (name, None, policies)
        }
        Origin::File(file) => {
            let name = format!("the {role} `{}`", file.path);
            let bytes = context.source(file.pointer)?;
            // By what it holds, which is in the key; its name is not.
            let format = PolicyFormat::of_bytes(&bytes).or_else(|| PolicyFormat::of(file.path));
            let is_for_archives = file.normalization.is_some() || file.activation.is_some();
            if is_for_archives && matches!(format, Some(PolicyFormat::Safetensors | PolicyFormat::Table)) {
                return Err(Failure::stage(format!(
                    "{name} is no archive of Stable-Baselines3, whatever its name says"
                ))
                .help("leave `normalization` and `activation` out: a policy says all of that itself"));
            }
            let policies = match format {
                Some(PolicyFormat::Archive) => agent(&file, &bytes, context, task)?,
                Some(PolicyFormat::Safetensors) => checked(PolicySet::from_safetensors(&bytes), &name)?,
                Some(PolicyFormat::Table) => {
                    let table = parse(file.path, bytes)
                        .map_err(|error| Failure::stage(error.to_string()).help(wanted()))?;
                    checked(PolicySet::from_table(&table), &name)?
                }
                None => {
                    return Err(
                        Failure::stage(format!("{name} is neither a policy nor an archive")).help(wanted()),
                    );
                }
            };
            (name, format, policies)
        }
    };
    // Checkpoints are alike in all that this looks at.
    task.fits(policies.last()).map_err(|misfit| {
        Failure::stage(format!("{name} does not fit: {misfit}")).help(help(&misfit, format))
    })?;
    Ok(policies)
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

fn agent(file: &File<'_>, archive: &[u8], context: &Context<'_>, task: &Task) -> Result<PolicySet, Failure> {
    let statistics = match file.normalization {
        Some((pointer, _)) => Some(context.source(pointer)?),
        None => None,
    };
    let agent = Agent {
        archive,
        statistics: statistics.as_deref(),
        activation: file.activation.map(|activation| match activation {
            Activation::Relu => provenir_policy::Activation::Relu,
            Activation::Tanh => provenir_policy::Activation::Tanh,
        }),
        environment: task.name(),
        time_feature: file.time_feature,
    };
    match provenir_stable_baselines::read(&agent) {
        Ok(policy) => Ok(PolicySet::single(policy)),
        Err(error) => {
            let at_fault = match file.normalization {
                Some((_, statistics)) if error.is_of_statistics() => statistics,
                _ => file.path,
            };
            let failure = Failure::stage(format!("`{at_fault}` cannot be read: {error}"));
            Err(match error.help() {
                Some(help) => failure.help(help),
                None => failure,
            })
        }
    }
}

/// What to do next about a policy that does not fit.
fn help(misfit: &Misfit, format: Option<PolicyFormat>) -> String {
    match (format, misfit.time_feature()) {
        (Some(PolicyFormat::Archive), Some(true)) => {
            "it was probably trained with the time feature (RL Zoo's `TimeFeatureWrapper`): set `time_feature = true` \
             (`--time-feature` on the command line)"
                .to_owned()
        }
        (Some(PolicyFormat::Archive), Some(false)) => {
            "it was probably trained without the time feature: leave `time_feature` out \
             (`--time-feature` on the command line)"
                .to_owned()
        }
        _ => misfit.help(),
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

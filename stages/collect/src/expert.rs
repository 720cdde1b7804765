use provenir_execution::{Context, Failure, Inputs};
use provenir_kinds::collect::CollectParameters;
use provenir_policy::Policy;
use provenir_policy_file::{File, Origin};
use provenir_sim::Task;

/// The expert that the parameters or the port `expert` name, checked against the task and the parameters: the last
/// checkpoint of a policy.
pub(crate) fn read(
    parameters: &CollectParameters,
    inputs: &Inputs,
    context: &Context<'_>,
    task: &Task,
) -> Result<Policy, Failure> {
    let file = parameters.expert.as_ref().map(|expert| File {
        pointer: "/expert",
        path: expert.path(),
        normalization: parameters
            .normalization
            .as_ref()
            .map(|file| ("/normalization", file.path())),
        activation: parameters.activation,
        time_feature: parameters.time_feature.unwrap_or(false),
    });
    let origin = match (file, inputs.optional("expert")) {
        (Some(file), None) => Origin::File(file),
        (None, Some(table)) => Origin::Table(table),
        _ => {
            return Err(Failure::bug(
                "exactly one expert should have passed the command's checks",
            ));
        }
    };
    let policies = provenir_policy_file::read("expert", origin, context, task)?;
    let policy = policies.last();
    match parameters.time_feature {
        Some(given) if given != policy.about().time_feature => {
            let name = match &parameters.expert {
                Some(file) => format!("the expert `{}`", file.path()),
                None => "the expert".to_owned(),
            };
            let with = |is_with: bool| if is_with { "with" } else { "without" };
            Err(Failure::stage(format!(
                "{name} observes {} the time feature, by its own metadata; `time_feature = {given}` says {} it",
                with(policy.about().time_feature),
                with(given)
            ))
            .help("leave `time_feature` out: a policy says it itself"))
        }
        _ => Ok(policy.clone()),
    }
}

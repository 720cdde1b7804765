use provenir_execution::Failure;
use provenir_policy::{Policy, PolicyError, PolicySet};
use provenir_table::demonstrations::About;
use provenir_table::{Matrix, Table};

/// What a policy should do where.
pub(crate) struct Clean {
    pub(crate) observation: Matrix,
    pub(crate) action: Matrix,
}

/// Mean squared errors over samples and entries of actions; missing where there are no such samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Accuracy {
    pub(crate) all: Option<f64>,
    pub(crate) corrupted: Option<f64>,
    pub(crate) rest: Option<f64>,
}

impl Accuracy {
    /// Of a policy that fits; `corrupted` tells the samples apart.
    pub(crate) fn of(policy: &Policy, clean: &Clean, corrupted: &[bool]) -> Result<Self, Failure> {
        let width = clean.action.width();
        let mut actions = vec![0.0; corrupted.len() * width];
        policy.actor().act(clean.observation.values(), &mut actions);
        let mut sums = [0.0; 2];
        let mut counts = [0_u64; 2];
        for ((action, expected), corrupted) in actions.chunks_exact(width).zip(&clean.action).zip(corrupted) {
            let error: f64 = action
                .iter()
                .zip(expected)
                .map(|(found, expected)| {
                    let difference = f64::from(*found) - f64::from(*expected);
                    difference * difference
                })
                .sum();
            if !error.is_finite() {
                return Err(Failure::stage(
                    "the policy gives an action that is not a finite number",
                ));
            }
            sums[usize::from(*corrupted)] += error / width as f64;
            counts[usize::from(*corrupted)] += 1;
        }
        let mean = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        Ok(Self {
            all: mean(sums[0] + sums[1], counts[0] + counts[1]),
            corrupted: mean(sums[1], counts[1]),
            rest: mean(sums[0], counts[0]),
        })
    }
}

/// The policy at the port `policy`, if it is one that could have been learned from such demonstrations.
pub(crate) fn policies(table: &Table, about: &About, clean: &Clean) -> Result<PolicySet, Failure> {
    let policies = PolicySet::from_table(table).map_err(|error| match error {
        PolicyError::Table(error) => error.into(),
        error => Failure::stage(format!("the input `policy` is {error}")),
    })?;
    let policy = policies.last();
    let problem = if policy.about().environment != about.environment {
        format!(
            "is for the environment `{}`, the demonstrations are of `{}`",
            policy.about().environment,
            about.environment
        )
    } else if policy.about().time_feature != about.time_feature {
        let said = |time_feature| if time_feature { "with" } else { "without" };
        format!(
            "observes {} the time feature, the demonstrations are {} it",
            said(policy.about().time_feature),
            said(about.time_feature)
        )
    } else if policy.observation_width() != clean.observation.width() {
        format!(
            "observes {} numbers, the demonstrations have {}",
            policy.observation_width(),
            clean.observation.width()
        )
    } else if policy.action_width() != clean.action.width() {
        format!(
            "gives actions of {} entries, the clean ones have {}",
            policy.action_width(),
            clean.action.width()
        )
    } else {
        return Ok(policies);
    };
    Err(Failure::stage(format!("the policy {problem}")).help("wire all ports from the same demonstrations"))
}

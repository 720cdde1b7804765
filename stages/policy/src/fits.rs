use thiserror::Error;

use crate::Policy;

/// What a task shows a policy and takes from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskShape<'a> {
    /// Name of the environment.
    pub environment: &'a str,
    /// Numbers of an observation, without the time feature.
    pub observation: usize,
    /// Components of an action.
    pub action: usize,
}

/// Why a policy cannot act in a task.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Misfit {
    /// It was made for another environment.
    #[error("it was made for the environment `{policy}`, not for `{task}`")]
    Environment {
        /// What the policy names.
        policy: String,
        /// The task.
        task: String,
    },
    /// It sees observations of another width.
    #[error(
        "it sees {found} numbers {}; an observation of `{task}` {} has {expected}",
        if *time_feature { "of which the last is the time feature" } else { "without the time feature" },
        if *time_feature { "with it" } else { "alone" }
    )]
    Observation {
        /// The task.
        task: String,
        /// Whether the policy says that the last one is the time that is left.
        time_feature: bool,
        /// What the policy sees.
        found: usize,
        /// What it would be shown.
        expected: usize,
    },
    /// It gives actions of another width.
    #[error("it gives actions of {found} components; `{task}` takes {expected}")]
    Action {
        /// The task.
        task: String,
        /// What the policy gives.
        found: usize,
        /// What the task takes.
        expected: usize,
    },
}

impl Policy {
    /// Whether the policy is made for a task: environment, observations (with the time feature where it says so), actions.
    pub fn fits(&self, task: TaskShape<'_>) -> Result<(), Misfit> {
        let about = self.about();
        let name = || task.environment.to_owned();
        if about.environment != task.environment {
            return Err(Misfit::Environment {
                policy: about.environment.clone(),
                task: name(),
            });
        }
        let (time_feature, found) = (about.time_feature, self.observation_width());
        let expected = task.observation + usize::from(time_feature);
        if found != expected {
            return Err(Misfit::Observation {
                task: name(),
                time_feature,
                found,
                expected,
            });
        }
        let (found, expected) = (self.action_width(), task.action);
        if found != expected {
            return Err(Misfit::Action {
                task: name(),
                found,
                expected,
            });
        }
        Ok(())
    }
}

impl Misfit {
    /// Whether the policy would see as many numbers as it is shown, were it said to read the time feature (`Some(true)`), or
    /// not to (`Some(false)`).
    pub fn time_feature(&self) -> Option<bool> {
        match self {
            Self::Observation {
                time_feature: false,
                found,
                expected,
                ..
            } if *found == expected + 1 => Some(true),
            Self::Observation {
                time_feature: true,
                found,
                expected,
                ..
            } if found + 1 == *expected => Some(false),
            _ => None,
        }
    }

    /// What to do next about a policy that says itself what it is for; `names` are those of the environments that there are.
    pub fn help(&self, names: &[&str]) -> String {
        match (self, self.time_feature()) {
            (_, Some(true)) => "it was probably trained with the time feature, the share of the episode's time that is left: \
                                its metadata should say `time_feature` is `true`"
                .to_owned(),
            (_, Some(false)) => "it was probably trained without the time feature: its metadata should say `time_feature` is \
                                 `false`"
                .to_owned(),
            (Self::Environment { policy, .. }, _) if !names.contains(&policy.as_str()) => format!(
                "there is no environment `{policy}`: its metadata must name one of {}, and `env` the same",
                names.join(", ")
            ),
            (Self::Environment { policy, .. }, _) => {
                format!("`env` must name the environment that it was made for: `{policy}`")
            }
            (Self::Observation { task, .. } | Self::Action { task, .. }, _) => {
                format!("was it trained in `{task}`? The environments are {}", names.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{About, ActionMap, Activation, Layer, Squash};

    const HOPPER: TaskShape<'_> = TaskShape {
        environment: "hopper",
        observation: 15,
        action: 3,
    };
    const NAMES: &[&str] = &["hopper", "ant"];

    fn misfit(environment: &str, time_feature: bool, width: usize, actions: usize) -> Result<(), Misfit> {
        let layer = Layer::new(width, actions, vec![0.0; width * actions], vec![0.0; actions]).unwrap();
        let map = ActionMap {
            squash: Squash::Clip,
            low: vec![-1.0; actions],
            high: vec![1.0; actions],
        };
        let about = About {
            environment: environment.into(),
            time_feature,
            ..About::default()
        };
        let policy = Policy::new(vec![layer], Activation::Relu, None, map, about).unwrap();
        policy.fits(HOPPER)
    }

    #[test]
    fn a_policy_for_something_else_is_told_what_differs() {
        assert_eq!(misfit("hopper", false, 15, 3), Ok(()));
        assert_eq!(misfit("hopper", true, 16, 3), Ok(()));
        let told = |misfit: Result<(), Misfit>| misfit.unwrap_err().to_string();
        assert_eq!(
            told(misfit("ant", false, 15, 3)),
            "it was made for the environment `ant`, not for `hopper`"
        );
        assert_eq!(
            told(misfit("hopper", false, 16, 3)),
            "it sees 16 numbers without the time feature; an observation of `hopper` alone has 15"
        );
        assert_eq!(
            told(misfit("hopper", true, 15, 3)),
            "it sees 15 numbers of which the last is the time feature; an observation of `hopper` with it has 16"
        );
        assert_eq!(
            told(misfit("hopper", false, 15, 6)),
            "it gives actions of 6 components; `hopper` takes 3"
        );
    }

    #[test]
    fn widths_that_are_off_by_one_suggest_the_time_feature() {
        let misfit = |time_feature, width| misfit("hopper", time_feature, width, 3).unwrap_err();
        assert_eq!(misfit(false, 16).time_feature(), Some(true));
        assert!(
            misfit(false, 16)
                .help(NAMES)
                .ends_with("`time_feature` is `true`")
        );
        assert_eq!(misfit(true, 15).time_feature(), Some(false));
        assert!(
            misfit(true, 15)
                .help(NAMES)
                .ends_with("`time_feature` is `false`")
        );
        for (time_feature, width) in [(false, 14), (false, 17), (true, 17), (true, 14)] {
            let misfit = misfit(time_feature, width);
            assert_eq!(misfit.time_feature(), None);
            assert_eq!(
                misfit.help(NAMES),
                "was it trained in `hopper`? The environments are hopper, ant"
            );
        }
    }

    #[test]
    fn an_environment_that_there_is_not_is_told_as_such() {
        let help = |environment| misfit(environment, false, 15, 3).unwrap_err().help(NAMES);
        assert!(help("humanoid").starts_with("there is no environment `humanoid`"));
        assert!(help("ant").ends_with("`ant`"));
    }
}

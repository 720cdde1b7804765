use provenir_api::schema;
use provenir_kinds::Environment;
use provenir_policy::Policy;
use thiserror::Error;

use super::load::Loaded;

/// Why a policy cannot act in the environment that it is said to be for. The simulator, which the command does without, says
/// the same of it (`Task::fits`).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(in crate::cli) enum Misfit {
    /// Its metadata name none that there is.
    #[error("its metadata name the environment `{0}`, which there is not")]
    Unknown(String),
    /// Its metadata leave the name empty.
    #[error("its metadata name no environment")]
    Unnamed,
    /// It sees observations of another width.
    #[error(
        "it sees {found} numbers {}; an observation of `{environment}` {} has {expected}",
        if *time_feature { "of which the last is the time feature" } else { "without the time feature" },
        if *time_feature { "with it" } else { "alone" }
    )]
    Observation {
        environment: &'static str,
        time_feature: bool,
        found: usize,
        expected: usize,
    },
    /// It gives actions of another width.
    #[error("it gives actions of {found} components; `{environment}` takes {expected}")]
    Action {
        environment: &'static str,
        found: usize,
        expected: usize,
    },
}

impl Misfit {
    /// Checks the environment that the policy names, and the widths by it.
    fn of(policy: &Policy) -> Result<(), Self> {
        let about = policy.about();
        if about.environment.is_empty() {
            return Err(Self::Unnamed);
        }
        let environment = Environment::ALL
            .into_iter()
            .find(|environment| environment.name() == about.environment)
            .ok_or_else(|| Self::Unknown(about.environment.clone()))?;
        let (found, time_feature) = (policy.observation_width(), about.time_feature);
        let expected = environment.observation_width() + usize::from(time_feature);
        if found != expected {
            return Err(Self::Observation {
                environment: environment.name(),
                time_feature,
                found,
                expected,
            });
        }
        let (found, expected) = (policy.action_width(), environment.action_width());
        if found != expected {
            return Err(Self::Action {
                environment: environment.name(),
                found,
                expected,
            });
        }
        Ok(())
    }

    /// Whether it is the name of the environment, rather than a width.
    pub(in crate::cli) fn is_of_name(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Unnamed)
    }

    /// What to do next about a policy in an archive, of which options tell what it leaves open, or in another file.
    pub(super) fn help(&self, is_archive: bool) -> String {
        let names = || schema::list(Environment::ALL.iter().map(|environment| environment.name()));
        match *self {
            Self::Observation {
                time_feature: false,
                found,
                expected,
                ..
            } if found == expected + 1 => {
                let next = if is_archive {
                    "give --time-feature"
                } else {
                    "its metadata should say `time_feature` is `true`"
                };
                format!("it was probably trained with the time feature: {next}")
            }
            Self::Observation {
                time_feature: true,
                found,
                expected,
                ..
            } if found + 1 == expected => {
                let next = if is_archive {
                    "leave --time-feature out"
                } else {
                    "its metadata should say `time_feature` is `false`"
                };
                format!("it was probably trained without the time feature: {next}")
            }
            Self::Observation { environment, .. } | Self::Action { environment, .. } => {
                format!("was it trained in `{environment}`? There is {}", names())
            }
            Self::Unknown(_) | Self::Unnamed => {
                format!(
                    "there is {}; the entry `environment` of its metadata names one of them",
                    names()
                )
            }
        }
    }
}

impl Loaded {
    /// Whether the policies fit the environment that they are for; as they do where none is told.
    pub(in crate::cli) fn fits(&self) -> Result<(), Misfit> {
        if self.has_environment {
            // Checkpoints are alike in all that this looks at.
            Misfit::of(self.policies.last())
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use provenir_policy::{About, ActionMap, Activation, Layer, Squash};

    use super::*;

    fn misfit(
        environment: &str,
        time_feature: bool,
        width: usize,
        actions: usize,
    ) -> Option<(String, String)> {
        let layer = Layer::new(width, actions, vec![0.0; width * actions], vec![0.0; actions]).unwrap();
        let map = ActionMap {
            squash: Squash::Clip,
            low: vec![-1.0; actions],
            high: vec![1.0; actions],
        };
        let about = About {
            environment: environment.to_owned(),
            time_feature,
            ..About::default()
        };
        let policy = Policy::new(vec![layer], Activation::Relu, None, map, about).unwrap();
        let misfit = Misfit::of(&policy).err()?;
        Some((misfit.to_string(), misfit.help(true)))
    }

    #[test]
    fn widths_are_those_of_the_environment_that_is_named() {
        for environment in Environment::ALL {
            let (name, width, actions) = (
                environment.name(),
                environment.observation_width(),
                environment.action_width(),
            );
            for time_feature in [false, true] {
                let right = width + usize::from(time_feature);
                assert_eq!(misfit(name, time_feature, right, actions), None);
                for wrong in [right - 1, right + 1] {
                    let (message, _) = misfit(name, time_feature, wrong, actions).unwrap();
                    assert!(
                        message.starts_with(&format!("it sees {wrong} numbers")),
                        "{message}"
                    );
                }
                let (message, _) = misfit(name, time_feature, right, actions + 1).unwrap();
                assert!(
                    message.ends_with(&format!("`{name}` takes {actions}")),
                    "{message}"
                );
            }
        }
    }

    #[test]
    fn one_number_more_or_less_is_taken_for_the_time_feature() {
        let help = |time_feature, width| misfit("hopper", time_feature, width, 3).unwrap().1;
        assert!(help(false, 16).ends_with("give --time-feature"));
        assert!(help(true, 15).ends_with("leave --time-feature out"));
        for (time_feature, width) in [(false, 14), (false, 17), (true, 14), (true, 17)] {
            assert!(help(time_feature, width).starts_with("was it trained in `hopper`?"));
        }
    }

    #[test]
    fn a_name_that_is_none_is_told_as_such() {
        let (message, help) = misfit("humanoid", false, 15, 3).unwrap();
        assert!(message.contains("`humanoid`, which there is not"), "{message}");
        assert!(help.contains("half-cheetah"), "{help}");
        assert_eq!(
            misfit("", false, 15, 3).unwrap().0,
            "its metadata name no environment"
        );
    }
}

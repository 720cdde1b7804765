use provenir_api::schema;
use provenir_kinds::Environment;
use provenir_policy::{Policy, TaskShape};
use thiserror::Error;

use super::load::Loaded;

/// Why a policy cannot act in the environment that its metadata name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(in crate::cli) enum Misfit {
    /// Its metadata name none that there is.
    #[error("its metadata name the environment `{0}`, which there is not")]
    Unknown(String),
    /// Its metadata leave the name empty.
    #[error("its metadata name no environment")]
    Unnamed,
    /// It does not fit the one that they name.
    #[error(transparent)]
    Shape(#[from] provenir_policy::Misfit),
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
        Ok(policy.fits(TaskShape {
            environment: environment.name(),
            observation: environment.observation_width(),
            action: environment.action_width(),
        })?)
    }

    /// Whether it is the name of the environment, rather than a width.
    pub(in crate::cli) fn is_of_name(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Unnamed)
    }

    /// What to do next about a policy in an archive, of which options tell what it leaves open, or in another file.
    pub(super) fn help(&self, is_archive: bool) -> String {
        let names = Environment::ALL.map(Environment::name);
        match self {
            Self::Shape(misfit) => match misfit.time_feature().filter(|_| is_archive) {
                Some(true) => "it was probably trained with the time feature: give --time-feature".to_owned(),
                Some(false) => {
                    "it was probably trained without the time feature: leave --time-feature out".to_owned()
                }
                None => misfit.help(&names),
            },
            Self::Unknown(_) | Self::Unnamed => {
                format!(
                    "there is {}; the entry `environment` of its metadata names one of them",
                    schema::list(names.into_iter())
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

    fn misfit(environment: &str, time_feature: bool, width: usize) -> Option<(String, String)> {
        let layer = Layer::new(width, 3, vec![0.0; width * 3], vec![0.0; 3]).unwrap();
        let map = ActionMap {
            squash: Squash::Clip,
            low: vec![-1.0; 3],
            high: vec![1.0; 3],
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
        assert_eq!(misfit("hopper", false, 15), None);
        assert_eq!(misfit("hopper", true, 16), None);
        let (message, help) = misfit("hopper", false, 16).unwrap();
        assert!(message.starts_with("it sees 16 numbers"), "{message}");
        assert!(help.ends_with("give --time-feature"), "{help}");
        let (_, help) = misfit("hopper", true, 15).unwrap();
        assert!(help.ends_with("leave --time-feature out"), "{help}");
    }

    #[test]
    fn a_name_that_is_none_is_told_as_such() {
        let (message, help) = misfit("humanoid", false, 15).unwrap();
        assert!(message.contains("`humanoid`, which there is not"), "{message}");
        assert!(help.contains("half-cheetah"), "{help}");
        assert_eq!(
            misfit("", false, 15).unwrap().0,
            "its metadata name no environment"
        );
    }
}

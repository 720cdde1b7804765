//! Policies as actors of a task.

use provenir_policy::Policy;
use thiserror::Error;

use crate::{Episode, NAMES, Rollouts, SimError, Task};

/// Why a policy cannot act in a task.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Misfit {
    /// It was made for another environment.
    #[error("the policy was made for the environment `{policy}`, not for `{task}`")]
    Environment {
        /// What the policy names.
        policy: String,
        /// The task.
        task: String,
    },
    /// It sees observations of another width.
    #[error(
        "the policy sees {found} numbers {}; an observation of `{task}` {} has {expected}",
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
    #[error("the policy gives actions of {found} components; `{task}` takes {expected}")]
    Action {
        /// The task.
        task: String,
        /// What the policy gives.
        found: usize,
        /// What the task takes.
        expected: usize,
    },
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

    /// What to do next about a policy that says itself whether it reads the time feature.
    pub fn help(&self) -> String {
        match (self, self.time_feature()) {
            (_, Some(true)) => "it was probably trained with the time feature, the share of the episode's time that is left: \
                                its metadata should say `time_feature` is `true`"
                .to_owned(),
            (_, Some(false)) => "it was probably trained without the time feature: its metadata should say `time_feature` is \
                                 `false`"
                .to_owned(),
            (Self::Environment { policy, .. }, _) if !NAMES.contains(&policy.as_str()) => format!(
                "there is no environment `{policy}`: the policy's metadata must name one of {}, and `env` the same",
                NAMES.join(", ")
            ),
            (Self::Environment { policy, .. }, _) => {
                format!("`env` must name the environment that it was made for: `{policy}`")
            }
            (Self::Observation { task, .. } | Self::Action { task, .. }, _) => {
                format!("was it trained in `{task}`? The tasks are {}", NAMES.join(", "))
            }
        }
    }
}

impl Task {
    /// Whether a policy is made for this task: environment, observations (with the time feature where it says so), actions.
    pub fn fits(&self, policy: &Policy) -> Result<(), Misfit> {
        let about = policy.about();
        let task = || self.name().to_owned();
        if about.environment != self.name() {
            return Err(Misfit::Environment {
                policy: about.environment.clone(),
                task: task(),
            });
        }
        let (time_feature, found) = (about.time_feature, policy.observation_width());
        let expected = self.observation_width() + usize::from(time_feature);
        if found != expected {
            return Err(Misfit::Observation {
                task: task(),
                time_feature,
                found,
                expected,
            });
        }
        let (found, expected) = (policy.action_width(), self.action_width());
        if found != expected {
            return Err(Misfit::Action {
                task: task(),
                found,
                expected,
            });
        }
        Ok(())
    }
}

impl<'a> Rollouts<'a> {
    /// Rollouts of a policy that [`Task::fits`] accepts, on one thread, without discount and recording.
    pub fn of(task: &'a Task, policy: &Policy) -> Self {
        Self {
            task,
            time_feature: policy.about().time_feature,
            threads: 1,
            discount: 1.0,
            record: false,
        }
    }

    /// [`Rollouts::run`] with a policy for actor.
    pub fn run_policy(
        &self,
        policy: &Policy,
        seeds: &[u64],
        go_on: impl Fn(usize) -> bool + Sync,
    ) -> Result<Vec<Episode>, SimError> {
        let actor = policy.actor();
        let actors = || {
            let mut actor = actor.clone();
            move |observations: &[f32], actions: &mut [f32]| actor.act(observations, actions)
        };
        self.run(seeds, actors, go_on)
    }
}

#[cfg(test)]
mod tests {
    use provenir_policy::{About, ActionMap, Activation, Layer, Squash};

    use super::*;

    fn policy(environment: &str, time_feature: bool, width: usize, actions: usize) -> Policy {
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
        Policy::new(vec![layer], Activation::Relu, None, map, about).unwrap()
    }

    #[test]
    fn a_policy_for_something_else_is_told_what_differs() {
        let hopper = Task::named("hopper").unwrap();
        assert_eq!(hopper.fits(&policy("hopper", false, 15, 3)), Ok(()));
        assert_eq!(hopper.fits(&policy("hopper", true, 16, 3)), Ok(()));
        let misfit = |policy: &Policy| hopper.fits(policy).unwrap_err().to_string();
        assert_eq!(
            misfit(&policy("ant", false, 15, 3)),
            "the policy was made for the environment `ant`, not for `hopper`"
        );
        assert_eq!(
            misfit(&policy("hopper", false, 16, 3)),
            "the policy sees 16 numbers without the time feature; an observation of `hopper` alone has 15"
        );
        assert_eq!(
            misfit(&policy("hopper", true, 15, 3)),
            "the policy sees 15 numbers of which the last is the time feature; an observation of `hopper` with it has 16"
        );
        assert_eq!(
            misfit(&policy("hopper", false, 15, 6)),
            "the policy gives actions of 6 components; `hopper` takes 3"
        );
    }

    #[test]
    fn widths_that_are_off_by_one_suggest_the_time_feature() {
        let hopper = Task::named("hopper").unwrap();
        let misfit = |time_feature, width| {
            hopper
                .fits(&policy("hopper", time_feature, width, 3))
                .unwrap_err()
        };
        assert_eq!(misfit(false, 16).time_feature(), Some(true));
        assert!(misfit(false, 16).help().ends_with("`time_feature` is `true`"));
        assert_eq!(misfit(true, 15).time_feature(), Some(false));
        assert!(misfit(true, 15).help().ends_with("`time_feature` is `false`"));
        for (time_feature, width) in [(false, 14), (false, 17), (true, 17), (true, 14)] {
            assert_eq!(misfit(time_feature, width).time_feature(), None);
            assert!(
                misfit(time_feature, width)
                    .help()
                    .starts_with("was it trained in `hopper`?")
            );
        }
    }

    #[test]
    fn in_every_task_the_time_feature_is_part_of_what_a_policy_sees() {
        for (name, width, actions) in [
            ("hopper", 15, 3),
            ("walker2d", 22, 6),
            ("half-cheetah", 26, 6),
            ("ant", 28, 8),
        ] {
            let task = Task::named(name).unwrap();
            for time_feature in [false, true] {
                let expected = width + usize::from(time_feature);
                assert_eq!(task.fits(&policy(name, time_feature, expected, actions)), Ok(()));
                for found in [expected - 1, expected + 1] {
                    let misfit = task.fits(&policy(name, time_feature, found, actions));
                    let message = misfit.unwrap_err().to_string();
                    assert!(message.contains("the time feature"), "{name}: {message}");
                }
            }
        }
    }

    #[test]
    fn a_policy_acts_in_rollouts_as_it_does_alone() {
        let hopper = Task::named("hopper").unwrap();
        let policy = policy("hopper", true, 16, 3);
        let rollouts = Rollouts {
            record: true,
            threads: 2,
            ..Rollouts::of(hopper, &policy)
        };
        let episodes = rollouts.run_policy(&policy, &[1, 2, 3], |_| true).unwrap();
        let still = rollouts.run(
            &[1, 2, 3],
            || |_: &[f32], actions: &mut [f32]| actions.fill(0.0),
            |_| true,
        );
        assert_eq!(Ok(&episodes), still.as_ref());
        let observations = &episodes[0].transitions.as_ref().unwrap().observations;
        assert_eq!((observations[15], observations[31]), (1.0, 0.999));
    }
}

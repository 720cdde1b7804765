//! Policies as actors of a task.

use provenir_policy::{Misfit, Policy, TaskShape};

use crate::{Episode, Rollouts, SimError, Task};

impl Task {
    /// Whether a policy is made for this task.
    pub fn fits(&self, policy: &Policy) -> Result<(), Misfit> {
        policy.fits(TaskShape {
            environment: self.name(),
            observation: self.observation_width(),
            action: self.action_width(),
        })
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

//! Environments side by side.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use proptest::prelude::*;
use provenir_random::Stream;
use provenir_sim::{Environment, Lanes, NAMES, SimError, Step, Task};

const LANES: usize = 7;
const STEPS: usize = 60;

fn actions(task: &Task, seed: u64, step: usize) -> Vec<f32> {
    let mut draws = Stream::new(seed, &format!("actions {step}"));
    (0..LANES * task.action_width())
        .map(|_| draws.uniform(-1.2, 1.2) as f32)
        .collect()
}

/// What each lane sees and gets, where lanes are reset when their episode ends.
type History = Vec<Vec<(Vec<u32>, Option<Step>)>>;

fn bits(observation: &[f32]) -> Vec<u32> {
    observation.iter().map(|value| value.to_bits()).collect()
}

fn together(task: &Task, threads: usize) -> History {
    let mut lanes = Lanes::new(task, true, LANES).with_threads(threads).unwrap();
    let width = lanes.observation_width();
    let mut history = vec![Vec::new(); LANES];
    for (lane, seen) in history.iter_mut().enumerate() {
        lanes.reset(lane, lane as u64);
        seen.push((bits(lanes.observation(lane)), None));
    }
    for number in 0..STEPS {
        let steps = lanes.step(&actions(task, 1, number)).unwrap().to_vec();
        for (lane, step) in steps.into_iter().enumerate() {
            let row = &lanes.observations()[lane * width..][..width];
            history[lane].push((bits(row), Some(step)));
            if step.is_last() {
                lanes.reset(lane, (1000 * number + lane) as u64);
                history[lane].push((bits(lanes.observation(lane)), None));
            }
        }
    }
    history
}

fn alone(task: &Task) -> History {
    let width = task.action_width();
    let life = |lane: usize| {
        let mut environment = Environment::new(task, true);
        let mut seen = vec![(bits(environment.reset(lane as u64)), None)];
        for number in 0..STEPS {
            let action = &actions(task, 1, number)[lane * width..][..width];
            let step = environment.step(action).unwrap();
            seen.push((bits(environment.observation()), Some(step)));
            if step.is_last() {
                seen.push((bits(environment.reset((1000 * number + lane) as u64)), None));
            }
        }
        seen
    };
    (0..LANES).map(life).collect()
}

#[test]
fn a_lane_is_an_environment_whoever_steps_it() {
    for name in NAMES {
        let task = Task::named(name).unwrap();
        let expected = alone(task);
        for threads in [1, 2, 3, 16] {
            assert!(
                together(task, threads) == expected,
                "{name} with {threads} threads"
            );
        }
    }
    // Some lanes did begin again, or half of the above was not tried.
    let hopper = alone(Task::named("hopper").unwrap());
    assert!(hopper.iter().any(|seen| seen.len() > 1 + STEPS));
}

#[test]
fn a_refused_action_names_its_lane_and_moves_none() {
    let task = Task::named("walker2d").unwrap();
    for threads in [1, 2] {
        let mut lanes = Lanes::new(task, false, 3).with_threads(threads).unwrap();
        let before = lanes.observations().to_vec();
        let mut actions = vec![0.5; 18];
        actions[14] = f32::INFINITY;
        let error = lanes.step(&actions).unwrap_err();
        assert_eq!(
            error.to_string(),
            "environment 2: component 2 of the action at step 0 is inf: the policy has diverged"
        );
        assert!(matches!(error.error, SimError::Action { .. }));
        assert_eq!(lanes.observations(), before);
        assert!((0..3).all(|lane| lanes.episode_steps(lane) == 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// Against the obvious model: a vector of environments.
    #[test]
    fn lanes_are_taken_out_as_from_a_vector(
        removals in prop::collection::vec(0_usize..100, 1..6), threads in 1_usize..4,
    ) {
        let task = Task::named("hopper").unwrap();
        let mut lanes = Lanes::new(task, false, 6).with_threads(threads).unwrap();
        let mut model: Vec<_> = (0..6).map(|_| Environment::new(task, false)).collect();
        for (lane, environment) in model.iter_mut().enumerate() {
            environment.reset(lane as u64);
            lanes.reset(lane, lane as u64);
        }
        for (round, removal) in removals.into_iter().enumerate() {
            let lane = removal % model.len();
            lanes.swap_remove(lane);
            model.swap_remove(lane);
            let actions = &actions(task, 2, round)[..3 * model.len()];
            let expected: Vec<Step> = model
                .iter_mut()
                .zip(actions.chunks(3))
                .map(|(environment, action)| environment.step(action).unwrap())
                .collect();
            prop_assert_eq!(lanes.step(actions).unwrap(), expected);
            let seen: Vec<f32> = model.iter().flat_map(Environment::observation).copied().collect();
            prop_assert_eq!(lanes.observations(), seen);
            prop_assert_eq!(lanes.len(), model.len());
        }
    }
}

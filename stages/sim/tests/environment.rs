//! Episodes and rollouts: what they may depend on and what not.

use proptest::prelude::*;
use provenir_sim::{EPISODE_STEPS, Environment, Episode, NAMES, Rollouts, SimError, Step, Task};

fn hopper() -> &'static Task {
    Task::named("hopper").expect("it is built in")
}

/// A fixed policy whose rows do not influence each other; it stands for a while before it falls.
fn actor(width: usize) -> impl FnMut(&[f32], &mut [f32]) {
    move |observations, actions| {
        assert_eq!(observations.len() / width, actions.len() / 3);
        for (observation, action) in observations.chunks_exact(width).zip(actions.chunks_exact_mut(3)) {
            // Holds the joints near their start, each a little differently.
            for (joint, value) in action.iter_mut().enumerate() {
                let (position, speed) = (observation[8 + 2 * joint], observation[9 + 2 * joint]);
                *value = [0.9, 0.95, 0.0][joint] - position - 0.1 * speed;
            }
        }
    }
}

fn run(seeds: &[u64], threads: usize, record: bool) -> Vec<Episode> {
    let rollouts = Rollouts {
        task: hopper(),
        time_feature: false,
        threads,
        discount: 0.9,
        record,
    };
    rollouts
        .run(seeds, || actor(15), |_| true)
        .expect("the actor never diverges")
}

/// The episode of a seed, by hand.
fn alone(seed: u64) -> Episode {
    let mut environment = Environment::new(hopper(), false);
    let mut actor = actor(15);
    environment.reset(seed);
    let (mut total_reward, mut discounted_reward, mut weight, mut action) = (0.0, 0.0, 1.0, [0.0; 3]);
    loop {
        actor(environment.observation(), &mut action);
        let step = environment.step(&action).expect("the actor never diverges");
        total_reward += step.reward;
        discounted_reward += weight * step.reward;
        weight *= 0.9;
        if step.is_last() {
            let Step {
                terminated,
                truncated,
                ..
            } = step;
            let length = environment.steps();
            return Episode {
                seed,
                total_reward,
                discounted_reward,
                length,
                terminated,
                truncated,
                transitions: None,
            };
        }
    }
}

#[test]
fn an_episode_does_not_depend_on_threads_nor_on_its_company() {
    let seeds: Vec<u64> = (0..70).collect();
    let expected: Vec<_> = seeds.iter().map(|seed| alone(*seed)).collect();
    assert!(
        expected
            .iter()
            .any(|episode| episode.length != expected[0].length),
        "lanes never drift apart"
    );
    for threads in [1, 2, 3, 100] {
        assert_eq!(run(&seeds, threads, false), expected, "{threads} threads");
    }
    assert_eq!(run(&[41], 4, false), [expected[41].clone()]);
    assert_eq!(run(&[], 4, false), []);
}

#[test]
fn seeds_decide_the_start_and_nothing_else_does() {
    let mut environment = Environment::new(hopper(), false);
    let first = environment.reset(5).to_vec();
    assert_ne!(environment.reset(6), first);
    for _ in 0..30 {
        environment.step(&[1.0, -1.0, 1.0]).unwrap();
    }
    assert_eq!(environment.reset(5), first);
    // Uniform in ±0.1: the mean of 3 × 2000 draws stays within 4 standard errors, and the range is filled.
    let angles: Vec<f64> = (0..2000)
        .flat_map(|seed| {
            environment.reset(seed);
            let (q, qdot) = environment.joints();
            assert!(qdot.iter().all(|velocity| *velocity == 0.0));
            [q[4], q[6], q[8]]
        })
        .collect();
    let mean = angles.iter().sum::<f64>() / angles.len() as f64;
    assert!(
        mean.abs() < 4.0 * 0.1 / 3_f64.sqrt() / (angles.len() as f64).sqrt(),
        "{mean}"
    );
    let (low, high) = angles
        .iter()
        .fold((0.0_f64, 0.0_f64), |(low, high), q| (low.min(*q), high.max(*q)));
    assert!(
        (-0.1..-0.0995).contains(&low) && (0.0995..=0.1).contains(&high),
        "{low}..{high}"
    );
}

#[test]
fn recorded_transitions_tell_the_episode() {
    let episodes = run(&[3, 4, 5], 2, true);
    for episode in &episodes {
        let transitions = episode.transitions.as_ref().unwrap();
        let mut environment = Environment::new(hopper(), false);
        environment.reset(episode.seed);
        let rows = transitions
            .observations
            .chunks_exact(15)
            .zip(transitions.actions.chunks_exact(3));
        assert_eq!(rows.len(), episode.length as usize);
        let mut total = 0.0;
        for ((observation, action), reward) in rows.zip(&transitions.rewards) {
            assert_eq!(environment.observation(), observation);
            let step = environment.step(action).unwrap();
            assert_eq!(step.reward.to_bits(), reward.to_bits());
            total += reward;
        }
        assert_eq!(total.to_bits(), episode.total_reward.to_bits());
        assert_eq!(transitions.rewards.len(), episode.length as usize);
    }
}

#[test]
fn the_time_feature_counts_down_from_one_beside_the_plain_observation() {
    let (mut plain, mut timed) = (
        Environment::new(hopper(), false),
        Environment::new(hopper(), true),
    );
    assert_eq!((plain.observation_width(), timed.observation_width()), (15, 16));
    plain.reset(1);
    timed.reset(1);
    for step in 0..EPISODE_STEPS {
        let (body, time) = timed.observation().split_at(15);
        assert_eq!(body, plain.observation());
        assert_eq!(time, [(f64::from(1000 - step) / 1000.0) as f32], "step {step}");
        assert_eq!(plain.step(&[0.1; 3]), timed.step(&[0.1; 3]));
    }
}

#[test]
fn a_fall_terminates_and_the_time_limit_truncates() {
    let fallen = alone(0);
    assert!(fallen.terminated && !fallen.truncated && fallen.length < EPISODE_STEPS);
    // A task that never ends an episode by a fall, as the half-cheetah's.
    let text = include_str!("../src/robots/hopper.toml")
        .replace("falls_end_episodes = true", "falls_end_episodes = false");
    let endless = Task::parse(&text).unwrap();
    let mut environment = Environment::new(&endless, false);
    environment.reset(0);
    for number in 1..=EPISODE_STEPS {
        let step = environment.step(&[1.0; 3]).unwrap();
        assert_eq!(
            (step.terminated, step.truncated),
            (false, number == EPISODE_STEPS),
            "step {number}"
        );
    }
}

#[test]
fn an_observation_that_is_not_a_number_terminates_and_the_next_episode_is_as_ever() {
    for name in NAMES {
        let task = Task::named(name).unwrap();
        let action = vec![0.3; task.action_width()];
        let life = |environment: &mut Environment| {
            let mut seen = environment.reset(9).to_vec();
            for _ in 0..40 {
                environment.step(&action).unwrap();
                seen.extend(environment.observation());
            }
            seen
        };
        let mut environment = Environment::new(task, false);
        let expected = life(&mut environment);
        let mut angles = vec![0.0; task.action_width()];
        angles[1] = f64::NAN;
        environment.reset_to(&angles);
        let step = environment.step(&action).unwrap();
        assert!(step.terminated && !step.truncated, "{name}");
        assert!(
            environment.observation().iter().any(|value| value.is_nan()),
            "{name}"
        );
        assert!(life(&mut environment) == expected, "{name}");
    }
}

#[test]
fn an_action_that_does_not_fit_is_an_error_and_takes_no_step() {
    let mut environment = Environment::new(hopper(), false);
    let before = environment.reset(1).to_vec();
    assert_eq!(
        environment.step(&[0.0; 4]).unwrap_err().to_string(),
        "the action has 4 components; `hopper` takes 3"
    );
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = environment.step(&[0.0, bad, 0.0]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("component 1 of the action at step 0 is {bad}: the policy has diverged")
        );
    }
    assert_eq!(
        (environment.steps(), environment.observation()),
        (0, before.as_slice())
    );
}

#[test]
fn a_rollout_ends_with_the_error_of_its_policy_or_where_it_is_told_to() {
    let rollouts = Rollouts {
        task: hopper(),
        time_feature: false,
        threads: 2,
        discount: 1.0,
        record: false,
    };
    let seeds: Vec<u64> = (0..50).collect();
    let diverged = || |_: &[f32], actions: &mut [f32]| actions.fill(f32::NAN);
    let error = rollouts.run(&seeds, diverged, |_| true).unwrap_err();
    assert!(
        matches!(
            error,
            SimError::Action {
                component: 0,
                step: 0,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(
        rollouts.run(&seeds, || actor(15), |finished| finished < 10),
        Err(SimError::Stopped)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Out of range, the joints are driven as at the bound; only the energy costs more.
    #[test]
    fn actions_saturate(seed: u64, actions in prop::collection::vec(prop::array::uniform3(-3.0_f32..3.0), 1..20)) {
        let (mut raw, mut clipped) = (Environment::new(hopper(), false), Environment::new(hopper(), false));
        raw.reset(seed);
        clipped.reset(seed);
        for action in actions {
            let (loose, tight) = (raw.step(&action).unwrap(), clipped.step(&action.map(|value| value.clamp(-1.0, 1.0))).unwrap());
            prop_assert_eq!(raw.observation(), clipped.observation());
            prop_assert!(loose.reward <= tight.reward);
        }
    }
}

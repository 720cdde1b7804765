use proptest::prelude::*;
use provenir_random::Stream;

use super::*;
use crate::{About, Layer};

/// Every instruction set of this machine that the kernel is compiled for.
fn architectures() -> Vec<Arch> {
    let mut found = vec![Arch::Scalar];
    #[cfg(target_arch = "x86_64")]
    {
        found.extend(pulp::x86::V3::try_new().map(Arch::V3));
        found.extend(pulp::x86::V4::try_new().map(Arch::V4));
    }
    found.push(Arch::new());
    found
}

fn random(seed: u64, widths: &[usize], activation: Activation, squash: Squash, standardise: bool) -> Policy {
    let mut stream = Stream::new(seed, "policy");
    let mut normals =
        |count: usize, scale: f64| -> Vec<f64> { (0..count).map(|_| scale * stream.normal()).collect() };
    let single = |values: Vec<f64>| -> Vec<f32> { values.into_iter().map(|value| value as f32).collect() };
    let layers = widths.windows(2).map(|pair| {
        // Some of random widths make three groups.
        let groups = if pair[0] % 3 == 0 && pair[1] % 3 == 0 {
            3
        } else {
            1
        };
        let weights = normals(pair[0] * pair[1] / groups, 1.0 / (pair[0] as f64).sqrt());
        let bias = normals(pair[1], 0.1);
        Layer::grouped(groups, pair[0], pair[1], single(weights), single(bias)).unwrap()
    });
    let layers = layers.collect();
    let standardisation = standardise.then(|| Standardisation {
        mean: normals(widths[0], 1.0),
        scale: normals(widths[0], 1.0)
            .into_iter()
            .map(|value| value.abs() + 0.1)
            .collect(),
        clip: Some(2.0),
    });
    let actions = widths[widths.len() - 1];
    let action_map = ActionMap {
        squash,
        low: vec![-0.75; actions],
        high: vec![1.25; actions],
    };
    Policy::new(layers, activation, standardisation, action_map, About::default()).unwrap()
}

fn observations(seed: u64, rows: usize, width: usize) -> Vec<f32> {
    let mut stream = Stream::new(seed, "observations");
    (0..rows * width).map(|_| stream.normal() as f32).collect()
}

fn act(policy: &Policy, arch: Arch, observations: &[f32]) -> Vec<u32> {
    let mut actor = policy.actor_on(arch);
    let rows = observations.len() / policy.observation_width();
    let mut actions = vec![f32::NAN; rows * policy.action_width()];
    actor.act(observations, &mut actions);
    actions.into_iter().map(f32::to_bits).collect()
}

/// One row in plain loops: the definition that the kernel must meet to the bit.
fn definition(policy: &Policy, observation: &[f32]) -> Vec<u32> {
    let mut values = observation.to_vec();
    if let Some(Standardisation { mean, scale, clip }) = policy.standardisation() {
        for (index, value) in values.iter_mut().enumerate() {
            let standard = (f64::from(*value) - mean[index]) / scale[index];
            *value = clip.map_or(standard, |clip| standard.max(-clip).min(clip)) as f32;
        }
    }
    for (index, layer) in policy.layers().iter().enumerate() {
        let mut outputs = Vec::new();
        let (group_inputs, group_outputs) =
            (layer.inputs() / layer.groups(), layer.outputs() / layer.groups());
        let rows = layer.bias().iter().zip(layer.weights().chunks(group_inputs));
        for (output, (bias, weights)) in rows.enumerate() {
            let mut sum = *bias;
            let values = &values[output / group_outputs * group_inputs..];
            for (weight, value) in weights.iter().zip(values) {
                let product = weight * value;
                sum += product;
            }
            if index + 1 < policy.layers().len() {
                sum = match policy.activation() {
                    Activation::Relu => sum.max(0.0) + 0.0,
                    Activation::Tanh => libm::tanhf(sum),
                };
            }
            outputs.push(sum);
        }
        values = outputs;
    }
    let map = policy.action_map();
    for (index, value) in values.iter_mut().enumerate() {
        let (low, high) = (map.low[index], map.high[index]);
        *value = match map.squash {
            Squash::Clip => value.max(low).min(high),
            Squash::Tanh => low + 0.5 * (libm::tanhf(*value) + 1.0) * (high - low),
            Squash::ClippedTanh { bound } => {
                low + 0.5 * (libm::tanhf(value.max(-bound).min(bound)) + 1.0) * (high - low)
            }
        };
    }
    values.into_iter().map(f32::to_bits).collect()
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let activation = prop_oneof![Just(Activation::Relu), Just(Activation::Tanh)];
    let squash = prop_oneof![
        Just(Squash::Clip),
        Just(Squash::Tanh),
        (0.01_f32..3.0).prop_map(|bound| Squash::ClippedTanh { bound })
    ];
    let widths = prop::collection::vec(1_usize..80, 2..5);
    (any::<u64>(), widths, activation, squash, any::<bool>()).prop_map(
        |(seed, widths, activation, squash, standardise)| {
            random(seed, &widths, activation, squash, standardise)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_row_is_that_of_the_definition_on_every_instruction_set(
        policy in any_policy(), seed: u64, rows in 1_usize..150,
    ) {
        let observations = observations(seed, rows, policy.observation_width());
        let expected: Vec<u32> = observations
            .chunks(policy.observation_width())
            .flat_map(|observation| definition(&policy, observation))
            .collect();
        for arch in architectures() {
            prop_assert_eq!(&act(&policy, arch, &observations), &expected, "{:?}", arch);
        }
    }

    #[test]
    fn company_and_place_are_immaterial(
        policy in any_policy(), seed: u64, order in Just((0..90_usize).collect::<Vec<_>>()).prop_shuffle(), count in 1_usize..90,
    ) {
        let (width, actions) = (policy.observation_width(), policy.action_width());
        let observations = observations(seed, order.len(), width);
        let all = act(&policy, Arch::new(), &observations);
        let picked: Vec<f32> =
            order[..count].iter().flat_map(|row| observations[row * width..][..width].to_vec()).collect();
        let expected: Vec<u32> =
            order[..count].iter().flat_map(|row| all[row * actions..][..actions].to_vec()).collect();
        prop_assert_eq!(act(&policy, Arch::new(), &picked), expected);
    }
}

/// In f64 the same network gives what rounding allows: each of the 4 layers adds at most about (n + 2) · 2^-24 of its
/// sums of absolute values, which are below 30 here.
#[test]
fn results_are_those_of_double_precision_within_rounding() {
    let policy = random(5, &[16, 256, 256, 256, 4], Activation::Relu, Squash::Tanh, true);
    let rows = 40;
    let observations = observations(6, rows, 16);
    let mut actions = vec![0.0; rows * 4];
    policy.actor().act(&observations, &mut actions);
    let standardisation = policy.standardisation().unwrap();
    for (observation, actions) in observations.chunks(16).zip(actions.chunks(4)) {
        let mut values: Vec<f64> = (0..16)
            .map(|index| {
                let centred = f64::from(observation[index]) - standardisation.mean[index];
                (centred / standardisation.scale[index]).clamp(-2.0, 2.0)
            })
            .collect();
        for (index, layer) in policy.layers().iter().enumerate() {
            let rows = layer.weights().chunks(layer.inputs()).zip(layer.bias());
            values = rows
                .map(|(weights, bias)| {
                    let products = weights
                        .iter()
                        .zip(&values)
                        .map(|(weight, value)| f64::from(*weight) * value);
                    let sum = f64::from(*bias) + products.sum::<f64>();
                    if index < 3 { sum.max(0.0) } else { sum }
                })
                .collect();
        }
        for (action, value) in actions.iter().zip(values) {
            let expected = -0.75 + value.tanh() + 1.0;
            assert!(
                (f64::from(*action) - expected).abs() < 1e-5,
                "{action} and {expected}"
            );
        }
    }
}

/// Groups of more outputs than a vector has, and of fewer: each row is that of the groups by themselves.
#[test]
fn groups_act_side_by_side() {
    for (inner, outer) in [(5, 40), (33, 17), (2, 3)] {
        let widths = [7, 3 * inner, 3 * outer, 2];
        let policy = random(9, &widths, Activation::Relu, Squash::Clip, false);
        assert_eq!(policy.layers()[1].groups(), 3);
        let observations = observations(10, 9, 7);
        let expected: Vec<u32> = observations
            .chunks(7)
            .flat_map(|observation| definition(&policy, observation))
            .collect();
        for arch in architectures() {
            assert_eq!(act(&policy, arch, &observations), expected);
        }
    }
    let refused = Layer::grouped(2, 4, 3, vec![0.0; 6], vec![0.0; 3]).unwrap_err();
    assert!(
        refused.to_string().contains("does not make 2 groups"),
        "{refused}"
    );
}

/// Two inputs, two hidden values, one action, worked out by hand.
#[test]
fn a_small_policy_acts_as_computed_by_hand() {
    let layers = vec![
        Layer::new(2, 2, vec![1.0, 2.0, -1.0, 0.5], vec![0.5, 0.0]).unwrap(),
        Layer::new(2, 1, vec![0.25, 3.0], vec![-0.5]).unwrap(),
    ];
    let standardisation = Standardisation {
        mean: vec![1.0, -1.0],
        scale: vec![2.0, 0.5],
        clip: Some(3.0),
    };
    let action_map = ActionMap {
        squash: Squash::Clip,
        low: vec![-1.0],
        high: vec![1.0],
    };
    let policy = Policy::new(
        layers,
        Activation::Relu,
        Some(standardisation),
        action_map,
        About::default(),
    )
    .unwrap();
    let mut actions = [0.0; 3];
    // (3, -1) → (1, 0) → (1.5, -1→0) → -0.125; (1, 5) → (0, 12→3) → (6.5, 1.5) → 5.625→1; (-3, -3) → (-2, -4→-3) →
    // (-7.5→0, 0.5) → 1.
    policy
        .actor()
        .act(&[3.0, -1.0, 1.0, 5.0, -3.0, -3.0], &mut actions);
    assert_eq!(
        actions.map(f32::to_bits),
        [-0.125_f32, 1.0, 1.0].map(f32::to_bits)
    );
}

#[test]
fn a_broken_row_stays_broken_and_alone() {
    for squash in [Squash::Clip, Squash::Tanh, Squash::ClippedTanh { bound: 0.5 }] {
        let policy = random(7, &[5, 33, 2], Activation::Relu, squash, true);
        let mut observations = observations(8, 6, 5);
        let sound = act(&policy, Arch::new(), &observations);
        observations[12] = f32::NAN;
        let broken = act(&policy, Arch::new(), &observations);
        assert!(broken[4..6].iter().all(|bits| f32::from_bits(*bits).is_nan()));
        assert_eq!((&broken[..4], &broken[6..]), (&sound[..4], &sound[6..]));
    }
}

#[test]
fn threads_agree() {
    let policy = random(9, &[11, 100, 100, 3], Activation::Relu, Squash::Clip, false);
    let observations = observations(10, 200, 11);
    let expected = act(&policy, Arch::new(), &observations);
    let actor = policy.actor();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut actor = actor.clone();
                let mut actions = vec![0.0; 600];
                actor.act(&observations, &mut actions);
                assert!(
                    actions
                        .iter()
                        .map(|action| action.to_bits())
                        .eq(expected.iter().copied())
                );
            });
        }
    });
}

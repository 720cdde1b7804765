//! Gradients against LibTorch's own, and losses against their definitions.

use super::critics::{Next, quantile_huber_by_tensors};
use super::inputs::Entropy;
use super::spread::Spread;
use super::*;

const OBSERVATION: usize = 5;
const ACTION: usize = 2;
const ROWS: i64 = 16;

fn settings(value: Value) -> LearnerSettings {
    LearnerSettings {
        hidden: vec![11, 7],
        value,
        normalised_critics: false,
        gsde: None,
        learning_rate: 1e-3,
        batch: ROWS as usize,
        tau: 0.1,
        policy_delay: 1,
        temperature: None,
    }
}

fn tensor(name: &str, width: usize) -> Tensor {
    normal(Stream::new(1, name), [ROWS, width as i64]).unwrap()
}

fn entropy(temperature: f64) -> Entropy {
    let mut entropy = Entropy::new(ROWS as usize, Device::Cpu).unwrap();
    entropy.set(temperature).unwrap();
    entropy
}

fn difference(left: &Tensor, right: &Tensor) -> f64 {
    assert_eq!(left.size(), right.size());
    (left - right).abs().max().double_value(&[])
}

/// A network of these layers, as LibTorch would write it.
fn network(leaves: &[(Tensor, Tensor)], input: &Tensor) -> Tensor {
    let mut values = input.shallow_clone();
    for (depth, (weight, bias)) in leaves.iter().enumerate() {
        values = values.matmul(&weight.tr()) + bias;
        if depth + 1 < leaves.len() {
            values = values.relu();
        }
    }
    values
}

/// Weights and biases of a network that record what is done with them.
fn leaves(ensemble: &provenir_nn::Ensemble, member: usize) -> Vec<(Tensor, Tensor)> {
    let leaf = |values: &[f32], shape: &[i64]| Tensor::from_slice(values).view(shape).set_requires_grad(true);
    ensemble
        .member(member)
        .unwrap()
        .iter()
        .map(|layer| {
            let (inputs, outputs) = (layer.inputs() as i64, layer.outputs() as i64);
            (
                leaf(layer.weights(), &[outputs, inputs]),
                leaf(layer.bias(), &[outputs]),
            )
        })
        .collect()
}

/// What one step of plain gradient descent changes, by two ways: that of the networks, given as the gradient laid out like
/// their parameters, and that of the leaves.
fn assert_same_gradient(
    ensemble: &mut provenir_nn::Ensemble,
    gradient: &provenir_nn::Gradient,
    leaves: &[Vec<(Tensor, Tensor)>],
) {
    // The gradient's values in the place of the parameters: read out the same way.
    ensemble.load(&gradient.save().unwrap()).unwrap();
    for (member, leaves) in leaves.iter().enumerate() {
        let layers = ensemble.member(member).unwrap();
        for (layer, (weight, bias)) in layers.iter().zip(leaves) {
            let found = Tensor::from_slice(layer.weights()).view(weight.size().as_slice());
            let scale = weight.grad().abs().max().double_value(&[]);
            assert!(scale > 0.0);
            assert!(difference(&found, &weight.grad()) < 2e-5 * scale.max(1e-2));
            assert!(difference(&Tensor::from_slice(layer.bias()), &bias.grad()) < 2e-5 * scale.max(1e-2));
        }
    }
}

const VALUES: [Value; 2] = [Value::Mean, Value::Quantiles { count: 5, dropped: 2 }];

/// log N(u; mean, deviation) − log(1 − tanh²u), and tanh u; of what a network with a head for the deviations gives.
fn squashed(output: &Tensor, noise: &Tensor) -> (Tensor, Tensor) {
    let mean = output.narrow(1, 0, ACTION as i64);
    let logarithm = output.narrow(1, ACTION as i64, ACTION as i64).clamp(-20.0, 2.0);
    density(&mean, &logarithm.exp(), noise)
}

/// In double precision, since log(1 − tanh²u) cancels.
fn density(mean: &Tensor, deviation: &Tensor, noise: &Tensor) -> (Tensor, Tensor) {
    let [mean, deviation, noise] = [mean, deviation, noise].map(|tensor| tensor.to_kind(Kind::Double));
    let before = &mean + &deviation * noise;
    let action = before.tanh();
    let normal = -(((&before - &mean) / &deviation).square() / 2.0)
        - deviation.log()
        - 0.5 * (2.0 * std::f64::consts::PI).ln();
    let squashing: Tensor = (action.square() * -1.0 + 1.0).log();
    let log_probability = (normal - squashing).sum_dim_intlist(1, true, None);
    (log_probability.to_kind(Kind::Float), action.to_kind(Kind::Float))
}

/// What a batch consists of.
struct Case {
    observations: Tensor,
    actions: Tensor,
    rewards: Tensor,
    discounts: Tensor,
    next_observations: Tensor,
    next_actions: Tensor,
    soft: Tensor,
}

impl Case {
    fn new() -> Self {
        Self {
            observations: tensor("observations", OBSERVATION),
            actions: tensor("actions", ACTION),
            // Errors on both sides of the Huber loss's corners.
            rewards: tensor("rewards", 1) * 2.0,
            // Some episodes end.
            discounts: tensor("discounts", 1).gt(0.0).to_kind(Kind::Float) * 0.9,
            next_observations: tensor("next observations", OBSERVATION),
            next_actions: tensor("next actions", ACTION),
            soft: tensor("soft", 1),
        }
    }

    fn transitions(&self) -> Transitions<'_> {
        Transitions {
            observations: &self.observations,
            actions: &self.actions,
            rewards: &self.rewards,
            discounts: &self.discounts,
            next_observations: &self.next_observations,
            next_actions: &self.next_actions,
            soft: &self.soft,
        }
    }
}

/// The loss that the papers give for what critics said, `[2, B, N]`, and should have said, `[B, T]`.
fn loss(value: Value, said: &Tensor, targets: &Tensor) -> Tensor {
    let Value::Quantiles { count, .. } = value else {
        let squares = (said - targets).square();
        return 0.5 * squares.mean_dim([1, 2].as_slice(), false, None).sum(None);
    };
    // Pair by pair, as equation 10 is written.
    let width = targets.size()[1];
    let mut sum = Tensor::zeros([], (Kind::Float, Device::Cpu));
    for quantile in 0..count as i64 {
        let level = (quantile as f64 + 0.5) / count as f64;
        for target in 0..width {
            let error = targets.narrow(1, target, 1).unsqueeze(0) - said.narrow(2, quantile, 1);
            let size = error.abs();
            let huber = (error.square() * 0.5).where_self(&size.le(1.0), &(&size - 0.5));
            let weight = (level - error.lt(0.0).to_kind(Kind::Float)).abs();
            sum += (weight * huber).sum(None);
        }
    }
    sum / (2 * ROWS * count as i64 * width) as f64
}

#[test]
fn the_critics_descend_along_their_loss() {
    for value in VALUES {
        let stream = Stream::new(2, "critics");
        let mut critics = Critics::new(&settings(value), OBSERVATION, ACTION, &stream, Device::Cpu).unwrap();
        let case = Case::new();
        let leaves = [0, 1].map(|member| leaves(&critics.ensemble, member));
        let input = Tensor::cat(&[&case.observations, &case.actions], 1);
        let said = Tensor::stack(&leaves.each_ref().map(|leaves| network(leaves, &input)), 0);
        let (_, next) = critics.say(&case.transitions()).unwrap();
        let targets = critics.targets(&next, &case.transitions()).unwrap();
        let expected = loss(value, &said, &targets);
        expected.backward();
        let found = critics
            .differentiate(&case.transitions())
            .unwrap()
            .double_value(&[]);
        assert!((found - expected.double_value(&[])).abs() < 1e-5 * found);
        let Critics {
            ensemble, gradient, ..
        } = &mut critics;
        assert_same_gradient(ensemble, gradient, &leaves);
    }
}

/// A network whose layers see inputs normalised over now and next.
fn normalised(leaves: &[(Tensor, Tensor)], now: &Tensor, next: &Tensor) -> (Tensor, Tensor) {
    let mut values = Tensor::cat(&[now, next], 0);
    for (depth, (weight, bias)) in leaves.iter().enumerate() {
        let deviation = (values.var_dim(0, false, true) + 1e-3).sqrt();
        values = (&values - values.mean_dim(0, true, None)) / deviation;
        values = values.matmul(&weight.tr()) + bias;
        if depth + 1 < leaves.len() {
            values = values.relu();
        }
    }
    (values.narrow(0, 0, ROWS), values.narrow(0, ROWS, ROWS).detach())
}

#[test]
fn normalised_critics_descend_along_their_loss() {
    for value in VALUES {
        let settings = LearnerSettings {
            normalised_critics: true,
            ..settings(value)
        };
        let stream = Stream::new(2, "critics");
        let mut critics = Critics::new(&settings, OBSERVATION, ACTION, &stream, Device::Cpu).unwrap();
        let case = Case::new();
        let leaves = [0, 1].map(|member| leaves(&critics.ensemble, member));
        let now = Tensor::cat(&[&case.observations, &case.actions], 1);
        let next = Tensor::cat(&[&case.next_observations, &case.next_actions], 1);
        let both = leaves.each_ref().map(|leaves| normalised(leaves, &now, &next));
        let said = Tensor::stack(&both.each_ref().map(|(now, _)| now), 0);
        let next = Tensor::stack(&both.each_ref().map(|(_, next)| next), 0);
        let targets = critics.targets(&next, &case.transitions()).unwrap();
        let expected = loss(value, &said, &targets);
        expected.backward();
        let found = critics
            .differentiate(&case.transitions())
            .unwrap()
            .double_value(&[]);
        assert!((found - expected.double_value(&[])).abs() < 1e-5 * found);
        let Critics {
            ensemble, gradient, ..
        } = &mut critics;
        assert_same_gradient(ensemble, gradient, &leaves);
    }
}

#[test]
fn the_policy_descends_along_its_loss() {
    for value in VALUES {
        let stream = Stream::new(3, "policy");
        let settings = settings(value);
        let mut actor = Actor::new(&settings, OBSERVATION, ACTION, &stream, Device::Cpu).unwrap();
        let mut critics = Critics::new(&settings, OBSERVATION, ACTION, &stream, Device::Cpu).unwrap();
        let observations = tensor("observations", OBSERVATION);
        let noise = tensor("noise", ACTION);
        let own = leaves(&actor.ensemble, 0);
        let judges = [0, 1].map(|member| leaves(&critics.ensemble, member));
        let (log_probability, actions) = squashed(&network(&own, &observations), &noise);
        let input = Tensor::cat(&[&observations, &actions], 1);
        let said = Tensor::stack(&judges.each_ref().map(|leaves| network(leaves, &input)), 0);
        let worth = match value {
            Value::Mean => said.amin([0_i64].as_slice(), false).mean(None),
            Value::Quantiles { .. } => said.mean(None),
        };
        let expected = log_probability.mean(None) * 0.3 - &worth;
        expected.backward();

        let sample = actor.sample(&observations, &noise).unwrap();
        assert!(difference(&sample.actions, &actions) < 1e-6);
        assert!(difference(&sample.log_probability, &log_probability) < 1e-4);
        let (found, slope) = critics.slope(&observations, &sample.actions).unwrap();
        assert!((found.double_value(&[]) - worth.double_value(&[])).abs() < 1e-6);
        actor.differentiate(&sample, &slope, &entropy(0.3)).unwrap();
        let Actor {
            ensemble, gradient, ..
        } = &mut actor;
        assert_same_gradient(ensemble, gradient, &[own]);
    }
}

/// An actor with gSDE that is far from its start, and its logarithms as a leaf.
fn state_dependent() -> (Actor, Tensor) {
    let settings = LearnerSettings {
        gsde: Some(-0.5),
        ..settings(Value::Mean)
    };
    let stream = Stream::new(3, "policy");
    let mut actor = Actor::new(&settings, OBSERVATION, ACTION, &stream, Device::Cpu).unwrap();
    // Means on both sides of their bounds.
    let larger: Vec<f32> = actor
        .ensemble
        .save()
        .unwrap()
        .iter()
        .map(|value| 4.0 * value)
        .collect();
    actor.ensemble.load(&larger).unwrap();
    let logarithms = normal(Stream::new(1, "logarithms"), [7, ACTION as i64]).unwrap();
    let leaf = (logarithms * 0.3 - 0.5).set_requires_grad(true);
    let Spread::StateDependent(functions) = &mut actor.spread else {
        panic!("gSDE was asked for")
    };
    for (weight, _) in functions.logarithms.layers() {
        weight.get(0).copy_(&leaf.detach());
    }
    (actor, leaf)
}

/// What goes into a network's last layer, and its clamped output.
fn features(leaves: &[(Tensor, Tensor)], input: &Tensor) -> (Tensor, Tensor) {
    let (last, below) = leaves.split_last().unwrap();
    let features = network(below, input).relu();
    let output = network(std::slice::from_ref(last), &features);
    assert!(output.abs().max().double_value(&[]) > 2.0 && output.abs().min().double_value(&[]) < 2.0);
    (features, output.clamp(-2.0, 2.0))
}

#[test]
fn a_policy_with_gsde_descends_along_its_loss() {
    let (mut actor, logarithms) = state_dependent();
    let own = leaves(&actor.ensemble, 0);
    let (observations, noise) = (tensor("observations", OBSERVATION), tensor("noise", ACTION));
    let slope = tensor("slope", ACTION);
    let (features, mean) = features(&own, &observations);
    let deviation = (features.square().matmul(&(&logarithms * 2.0).exp()) + 1e-6).sqrt();
    let (log_probability, actions) = density(&mean, &deviation, &noise);
    let loss = (log_probability * 0.3 - (&actions * &slope).sum_dim_intlist(1, true, None)).mean(None);
    loss.backward();

    let sample = actor.sample(&observations, &noise).unwrap();
    assert!(difference(&sample.actions, &actions) < 1e-6);
    actor.differentiate(&sample, &slope, &entropy(0.3)).unwrap();
    let Spread::StateDependent(functions) = &actor.spread else {
        panic!("gSDE was asked for")
    };
    for (weight, bias) in functions.gradient.layers() {
        let scale = logarithms.grad().abs().max().double_value(&[]);
        let difference = difference(&weight.get(0), &logarithms.grad());
        assert!(
            scale > 1e-3 && difference < 2e-5 * scale,
            "{difference} of {scale}"
        );
        assert!(bias.abs().max().double_value(&[]) == 0.0);
    }
    let Actor {
        ensemble, gradient, ..
    } = &mut actor;
    assert_same_gradient(ensemble, gradient, &[own]);
}

#[test]
fn exploration_with_gsde_deviates_by_functions_of_the_state() {
    let (mut actor, logarithms) = state_dependent();
    let own = leaves(&actor.ensemble, 0);
    let (first, second) = (tensor("observations", OBSERVATION), tensor("others", OBSERVATION));
    let mut explore = |observations: &Tensor, draw: u64| {
        let values = Vec::<f32>::try_from(observations.view(-1)).unwrap();
        let mut actions = vec![0.0; ROWS as usize * ACTION];
        let noise = Stream::new(9, "noise").child("draw", draw);
        actor.explore(&values, &mut actions, noise).unwrap();
        Tensor::from_slice(&actions).view([ROWS, ACTION as i64])
    };
    // The functions that a stream stands for: weights row by row.
    let functions = |draw: u64| {
        let noise = Stream::new(9, "noise").child("draw", draw);
        let weights = normal(noise, [ROWS * 7, ACTION as i64]).unwrap();
        weights.view([ROWS, 7, ACTION as i64]) * logarithms.exp()
    };
    for (observations, draw) in [(&first, 0), (&second, 0), (&first, 1), (&first, 0)] {
        let (features, mean) = features(&own, observations);
        let deviation = features.unsqueeze(1).matmul(&functions(draw)).squeeze_dim(1);
        let expected = (mean + deviation).tanh();
        assert!(difference(&explore(observations, draw), &expected.detach()) < 1e-5);
    }

    let mut actions = vec![0.0; ROWS as usize * ACTION];
    let values = Vec::<f32>::try_from(first.view(-1)).unwrap();
    let policy = actor.policy(About::default()).unwrap();
    policy.actor().act(&values, &mut actions);
    let actions = Tensor::from_slice(&actions).view([ROWS, ACTION as i64]);
    let (_, mean) = features(&own, &first);
    assert!(difference(&actions, &mean.tanh().detach()) < 1e-6);
}

#[test]
fn targets_are_those_of_the_papers() {
    for value in VALUES {
        let stream = Stream::new(4, "targets");
        let mut critics = Critics::new(&settings(value), OBSERVATION, ACTION, &stream, Device::Cpu).unwrap();
        let Next::Slow { networks, .. } = &critics.next else {
            panic!("slow copies were asked for")
        };
        let leaves = [0, 1].map(|member| leaves(networks, member));
        let case = Case::new();
        let (_, next) = critics.say(&case.transitions()).unwrap();
        let targets = critics.targets(&next, &case.transitions()).unwrap();
        let input = Tensor::cat(&[&case.next_observations, &case.next_actions], 1);
        let said = leaves.each_ref().map(|leaves| network(leaves, &input));
        for row in 0..ROWS {
            let read = |tensor: &Tensor| Vec::<f64>::try_from(tensor.get(row).to_kind(Kind::Double)).unwrap();
            let mut values = [read(&said[0]), read(&said[1])].concat();
            values.sort_by(f64::total_cmp);
            values.truncate(if value == Value::Mean { 1 } else { 2 * (5 - 2) });
            let (soft, reward) = (read(&case.soft)[0], read(&case.rewards)[0]);
            let discount = read(&case.discounts)[0];
            let found = read(&targets);
            assert_eq!(found.len(), values.len());
            for (found, value) in found.iter().zip(values) {
                assert!((found - (reward + discount * (value + soft))).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn the_quantile_loss_of_a_gpu_is_that_of_the_processor() {
    let value = Value::Quantiles { count: 5, dropped: 2 };
    let stream = Stream::new(2, "critics");
    let mut critics = Critics::new(&settings(value), OBSERVATION, ACTION, &stream, Device::Cpu).unwrap();
    let case = Case::new();
    let (said, next) = critics.say(&case.transitions()).unwrap();
    let targets = critics.targets(&next, &case.transitions()).unwrap();
    let leaf = said.copy().set_requires_grad(true);
    let expected = loss(value, &leaf, &targets);
    expected.backward();
    let levels = Tensor::from_slice(&[0.1_f32, 0.3, 0.5, 0.7, 0.9]).unsqueeze(1);
    let (found, delta) = quantile_huber_by_tensors(&said, &targets, &levels).unwrap();
    let expected = expected.double_value(&[]);
    assert!((found.double_value(&[]) - expected).abs() < 1e-6 * expected);
    assert!(difference(&delta, &leaf.grad()) < 1e-6);
}

#[test]
fn slow_critics_follow() {
    let stream = Stream::new(5, "slow");
    let mut critics =
        Critics::new(&settings(Value::Mean), OBSERVATION, ACTION, &stream, Device::Cpu).unwrap();
    let copies = |critics: &Critics| match &critics.next {
        Next::Slow { networks, .. } => networks.save().unwrap(),
        Next::Joint { .. } => panic!("slow copies were asked for"),
    };
    let before = copies(&critics);
    critics.prepare(0.01).unwrap();
    let _ = critics.step(&Case::new().transitions()).unwrap();
    let there = critics.ensemble.save().unwrap();
    assert_ne!(before, there);
    critics.follow().unwrap();
    for ((found, before), there) in copies(&critics).iter().zip(&before).zip(&there) {
        assert!((found - (0.9 * before + 0.1 * there)).abs() < 1e-6);
    }
}

#[test]
fn exploration_draws_from_the_same_policy() {
    let stream = Stream::new(6, "explore");
    let mut actor = Actor::new(&settings(Value::Mean), OBSERVATION, ACTION, &stream, Device::Cpu).unwrap();
    let observations = tensor("observations", OBSERVATION);
    let noise = normal(Stream::new(9, "noise"), [ROWS, ACTION as i64]).unwrap();
    let sample = actor.sample(&observations, &noise).unwrap();
    let values = Vec::<f32>::try_from(observations.view(-1)).unwrap();
    let mut actions = vec![0.0; ROWS as usize * ACTION];
    actor
        .explore(&values, &mut actions, Stream::new(9, "noise"))
        .unwrap();
    let actions = Tensor::from_slice(&actions).view([ROWS, ACTION as i64]);
    assert!(difference(&actions, &sample.actions) < 1e-6);

    let mean = network(&leaves(&actor.ensemble, 0), &observations)
        .narrow(1, 0, ACTION as i64)
        .tanh();
    let mut actions = vec![0.0; ROWS as usize * ACTION];
    let policy = actor.policy(About::default()).unwrap();
    policy.actor().act(&values, &mut actions);
    assert!(
        difference(
            &Tensor::from_slice(&actions).view([ROWS, ACTION as i64]),
            &mean.detach()
        ) < 1e-6
    );
}

//! Gradients against LibTorch's own, and losses against their definitions.

use super::*;

const OBSERVATION: usize = 5;
const ACTION: usize = 2;
const ROWS: i64 = 16;

fn settings(value: Value) -> LearnerSettings {
    LearnerSettings {
        hidden: vec![11, 7],
        value,
        learning_rate: 1e-3,
        batch: ROWS as usize,
        tau: 0.1,
        policy_delay: 1,
        temperature: None,
    }
}

fn tensor(name: &str, width: usize) -> Tensor {
    normal(Stream::new(1, name), [ROWS, width as i64], Device::Cpu).unwrap()
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

/// log N(u; mean, deviation) − log(1 − tanh²u), and tanh u.
fn squashed(output: &Tensor, noise: &Tensor) -> (Tensor, Tensor) {
    let mean = output.narrow(1, 0, ACTION as i64);
    let logarithm = output.narrow(1, ACTION as i64, ACTION as i64).clamp(-20.0, 2.0);
    let before = &mean + logarithm.exp() * noise;
    let action = before.tanh();
    let density = -(((&before - &mean) / logarithm.exp()).square() / 2.0)
        - &logarithm
        - 0.5 * (2.0 * std::f64::consts::PI).ln();
    let squashing: Tensor = (action.square() * -1.0 + 1.0).log();
    ((density - squashing).sum_dim_intlist(1, true, None), action)
}

#[test]
fn the_critics_descend_along_their_loss() {
    for value in VALUES {
        let stream = Stream::new(2, "critics");
        let mut critics = Critics::new(&settings(value), OBSERVATION, ACTION, &stream, Device::Cpu).unwrap();
        let (observations, actions) = (tensor("observations", OBSERVATION), tensor("actions", ACTION));
        let outputs = if value == Value::Mean { 1 } else { 5 };
        // Errors on both sides of the Huber loss's corners.
        let targets = tensor("targets", if value == Value::Mean { 1 } else { 6 }) * 2.0;
        let leaves = [0, 1].map(|member| leaves(&critics.ensemble, member));
        let input = Tensor::cat(&[&observations, &actions], 1);
        let said = Tensor::stack(&leaves.each_ref().map(|leaves| network(leaves, &input)), 0);
        assert_eq!(said.size(), [2, ROWS, outputs]);
        let expected = match value {
            Value::Mean => {
                0.5 * (&said - &targets)
                    .square()
                    .mean_dim([1, 2].as_slice(), false, None)
                    .sum(None)
            }
            Value::Quantiles { count, .. } => {
                // Pair by pair, as equation 10 is written.
                let mut sum = Tensor::zeros([], (Kind::Float, Device::Cpu));
                for quantile in 0..count as i64 {
                    let level = (quantile as f64 + 0.5) / count as f64;
                    for target in 0..6 {
                        let error = targets.narrow(1, target, 1).unsqueeze(0) - said.narrow(2, quantile, 1);
                        let size = error.abs();
                        let huber = (error.square() * 0.5).where_self(&size.le(1.0), &(&size - 0.5));
                        let weight = (level - error.lt(0.0).to_kind(Kind::Float)).abs();
                        sum += (weight * huber).sum(None);
                    }
                }
                sum / (2 * ROWS * 5 * 6) as f64
            }
        };
        expected.backward();
        let loss = critics.differentiate(&observations, &actions, &targets).unwrap();
        assert!((loss - expected.double_value(&[])).abs() < 1e-5 * loss);
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

        let sample = actor.sample(&observations, Stream::new(1, "noise")).unwrap();
        assert!(difference(&sample.actions, &actions) < 1e-6);
        assert!(difference(&sample.log_probability, &log_probability) < 1e-4);
        let (found, slope) = critics.slope(&observations, &sample.actions).unwrap();
        assert!((found - worth.double_value(&[])).abs() < 1e-6);
        actor.differentiate(&sample, &slope, 0.3).unwrap();
        let Actor {
            ensemble, gradient, ..
        } = &mut actor;
        assert_same_gradient(ensemble, gradient, &[own]);
    }
}

#[test]
fn targets_are_those_of_the_papers() {
    for value in VALUES {
        let stream = Stream::new(4, "targets");
        let mut critics = Critics::new(&settings(value), OBSERVATION, ACTION, &stream, Device::Cpu).unwrap();
        let observations = tensor("observations", OBSERVATION);
        let actions = tensor("actions", ACTION);
        let (soft, rewards) = (tensor("soft", 1), tensor("rewards", 1));
        let discounts = tensor("discounts", 1).gt(0.0).to_kind(Kind::Float) * 0.9;
        let targets = critics
            .targets(&observations, &actions, &soft, &rewards, &discounts)
            .unwrap();
        let input = Tensor::cat(&[&observations, &actions], 1);
        let said = [0, 1].map(|member| network(&leaves(&critics.slow, member), &input));
        for row in 0..ROWS {
            let read = |tensor: &Tensor| Vec::<f64>::try_from(tensor.get(row).to_kind(Kind::Double)).unwrap();
            let mut values = [read(&said[0]), read(&said[1])].concat();
            values.sort_by(f64::total_cmp);
            values.truncate(if value == Value::Mean { 1 } else { 2 * (5 - 2) });
            let (soft, reward, discount) = (read(&soft)[0], read(&rewards)[0], read(&discounts)[0]);
            let found = read(&targets);
            assert_eq!(found.len(), values.len());
            for (found, value) in found.iter().zip(values) {
                assert!((found - (reward + discount * (value + soft))).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn slow_critics_follow() {
    let stream = Stream::new(5, "slow");
    let mut critics =
        Critics::new(&settings(Value::Mean), OBSERVATION, ACTION, &stream, Device::Cpu).unwrap();
    let before = critics.slow.save().unwrap();
    let actions = tensor("actions", ACTION);
    let _ = critics
        .step(
            &tensor("observations", OBSERVATION),
            &actions,
            &tensor("targets", 1),
            0.01,
        )
        .unwrap();
    let there = critics.ensemble.save().unwrap();
    assert_ne!(before, there);
    critics.follow().unwrap();
    for ((found, before), there) in critics.slow.save().unwrap().iter().zip(&before).zip(&there) {
        assert!((found - (0.9 * before + 0.1 * there)).abs() < 1e-6);
    }
}

#[test]
fn exploration_draws_from_the_same_policy() {
    let stream = Stream::new(6, "explore");
    let mut actor = Actor::new(&settings(Value::Mean), OBSERVATION, ACTION, &stream, Device::Cpu).unwrap();
    let observations = tensor("observations", OBSERVATION);
    let sample = actor.sample(&observations, Stream::new(9, "noise")).unwrap();
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

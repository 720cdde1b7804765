//! Policies as plain numbers, for checkpoints.

use provenir_policy::{Layer, Policy};

/// Weights and bias of every layer, layer after layer.
pub(crate) fn numbers_of(policy: &Policy) -> Vec<f32> {
    policy
        .layers()
        .iter()
        .flat_map(|layer| layer.weights().iter().chain(layer.bias()))
        .copied()
        .collect()
}

/// The same policy with other weights and biases; nothing where they do not fit or are not finite.
pub(crate) fn with_numbers(policy: &Policy, mut numbers: &[f32]) -> Option<Policy> {
    let mut layers = Vec::with_capacity(policy.layers().len());
    for layer in policy.layers() {
        let (weights, rest) = numbers.split_at_checked(layer.weights().len())?;
        let (bias, rest) = rest.split_at_checked(layer.bias().len())?;
        numbers = rest;
        let (groups, inputs, outputs) = (layer.groups(), layer.inputs(), layer.outputs());
        layers.push(Layer::grouped(groups, inputs, outputs, weights.to_vec(), bias.to_vec()).ok()?);
    }
    let policy = Policy::new(
        layers,
        policy.activation(),
        policy.standardisation().cloned(),
        policy.action_map().clone(),
        policy.about().clone(),
    );
    policy.ok().filter(|_| numbers.is_empty())
}

#[cfg(test)]
mod tests {
    use provenir_policy::{About, ActionMap, Activation, Squash};

    use super::*;

    #[test]
    fn a_policy_comes_back_from_its_numbers() {
        let policy = |shift: f32| {
            let numbers = |count: usize| (0..count).map(|n| n as f32 + shift).collect::<Vec<_>>();
            let map = ActionMap {
                squash: Squash::Tanh,
                low: vec![-1.0],
                high: vec![1.0],
            };
            let layers = vec![
                Layer::new(2, 3, numbers(6), numbers(3)).unwrap(),
                Layer::new(3, 1, numbers(3), numbers(1)).unwrap(),
            ];
            Policy::new(layers, Activation::Relu, None, map, About::default()).unwrap()
        };
        let numbers = numbers_of(&policy(0.5));
        assert_eq!(numbers.len(), 13);
        assert_eq!(with_numbers(&policy(0.0), &numbers), Some(policy(0.5)));
        assert_eq!(with_numbers(&policy(0.0), &numbers[1..]), None);
        assert_eq!(with_numbers(&policy(0.0), &[&numbers[..], &[1.0]].concat()), None);
        assert_eq!(with_numbers(&policy(0.0), &[f32::NAN; 13]), None);
    }
}

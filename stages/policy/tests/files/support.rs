use std::collections::BTreeMap;

use provenir_policy::{About, ActionMap, Activation, Layer, Policy, Squash, Standardisation};
use provenir_random::Stream;

/// A policy of standard normal weights, of everything that a file can hold but notes.
pub(crate) fn policy(seed: u64, widths: &[usize], standardised: bool) -> Policy {
    let mut stream = Stream::new(seed, "policy");
    let mut normals = |count: usize| -> Vec<f32> { (0..count).map(|_| stream.normal() as f32).collect() };
    let layers: Vec<Layer> = widths
        .windows(2)
        .map(|pair| Layer::new(pair[0], pair[1], normals(pair[0] * pair[1]), normals(pair[1])).unwrap())
        .collect();
    let observed = widths[0];
    let actions = widths[widths.len() - 1];
    Policy::new(
        layers,
        Activation::Tanh,
        standardised.then(|| Standardisation {
            mean: normals(observed)
                .into_iter()
                .map(|mean| f64::from(mean) / 3.0)
                .collect(),
            scale: vec![1.0 / 3.0; observed],
            clip: Some(0.1 + 0.2),
        }),
        ActionMap {
            squash: Squash::Tanh,
            low: vec![-1.0; actions],
            high: vec![0.5; actions],
        },
        About {
            environment: "hopper".to_owned(),
            time_feature: true,
            method: "rbc".to_owned(),
            notes: BTreeMap::new(),
        },
    )
    .unwrap()
}

/// The same policy with another action map and with notes.
pub(crate) fn with_squash(policy: &Policy, squash: Squash, notes: &[(&str, &str)]) -> Policy {
    let text = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Policy::new(
        policy.layers().to_vec(),
        policy.activation(),
        policy.standardisation().cloned(),
        ActionMap {
            squash,
            ..policy.action_map().clone()
        },
        About {
            notes: notes.iter().map(text).collect(),
            ..policy.about().clone()
        },
    )
    .unwrap()
}

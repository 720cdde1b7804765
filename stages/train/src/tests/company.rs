//! Every method, alone and in company.

use provenir_nn::device::set_threads;

use super::steps::{SAMPLES, data, setting};
use super::*;
use crate::cloning::Setting;
use crate::method::learnt_by;
use crate::methods::{Wanted, method};

/// What every method that there is, with every form that it has, is told; small enough for these data.
pub(super) fn every_method() -> Vec<(&'static str, TrainParameters)> {
    let with = |extra: serde_json::Value| {
        let mut json = serde_json::json!({
            "hidden": [12], "epochs": 8, "batch": 25,
            "rbc": { "chunk": 30, "assumed_epsilon": 0.1, "tau_steps": 3 },
            "noisy_bc": { "rounds": 3, "members": 2 },
            "filter": { "folds": 3 },
            "co_teaching": { "ramp": 3 },
        });
        for (key, value) in extra.as_object().unwrap() {
            json[key] = value.clone();
        }
        serde_json::from_value(json).unwrap()
    };
    vec![
        ("bc", with(serde_json::json!({"method": "bc"}))),
        (
            "bc nll",
            with(serde_json::json!({"method": "bc", "loss": "nll", "nll": {"sigma": 0.3}})),
        ),
        (
            "bc nll learnt",
            with(serde_json::json!({
                "method": "bc", "loss": "nll", "nll": {"learned": true}, "schedule": "cosine", "weight_decay": 0.1,
            })),
        ),
        ("rbc", with(serde_json::json!({"method": "rbc"}))),
        (
            "rbc nll",
            with(serde_json::json!({"method": "rbc", "loss": "nll"})),
        ),
        (
            "rbc direct",
            with(serde_json::json!({"method": "rbc", "rbc": {"objective": "direct", "chunk": 30}})),
        ),
        ("noisy-bc", with(serde_json::json!({"method": "noisy-bc"}))),
        (
            "noisy-bc published",
            with(serde_json::json!({
                "method": "noisy-bc", "noisy_bc": {"form": "published", "members": 3, "rounds": 2},
            })),
        ),
        ("trimmed", with(serde_json::json!({"method": "trimmed"}))),
        (
            "trimmed epoch",
            with(serde_json::json!({"method": "trimmed", "trimmed": {"among": "epoch"}})),
        ),
        ("mixture", with(serde_json::json!({"method": "mixture"}))),
        (
            "mixture learnt",
            with(serde_json::json!({"method": "mixture", "mixture": {"learn_epsilon": true}})),
        ),
        ("huber", with(serde_json::json!({"method": "robust-loss"}))),
        (
            "norm",
            with(serde_json::json!({"method": "robust-loss", "robust_loss": {"loss": "norm"}})),
        ),
        (
            "student-t",
            with(serde_json::json!({"method": "robust-loss", "robust_loss": {"loss": "student-t"}})),
        ),
        (
            "welsch",
            with(
                serde_json::json!({"method": "robust-loss", "robust_loss": {"loss": "welsch", "scale": 0.2}}),
            ),
        ),
        ("co-teaching", with(serde_json::json!({"method": "co-teaching"}))),
        ("filter", with(serde_json::json!({"method": "filter"}))),
        (
            "filter by rbc",
            with(serde_json::json!({"method": "filter", "filter": {"by": "rbc"}})),
        ),
        (
            "range-filter",
            with(serde_json::json!({"method": "range-filter"})),
        ),
    ]
}

/// Everything that a method leaves of each policy, with all bits: networks, trust, notes and τ̂.
fn learn(parameters: &TrainParameters, seeds: &[u64]) -> Vec<Vec<u64>> {
    set_threads(1);
    let data = data(seeds);
    let setting = Setting {
        epochs: u64::from(parameters.epochs),
        batch: parameters.batch as usize,
        ..setting(&data, seeds, Some(0.1))
    };
    let listener = Listener::default();
    let context = Context::new(&listener, &listener.cancelled, "nowhere");
    let wanted = Wanted {
        parameters,
        context: &context,
    };
    let mut method = method(&vec![wanted; seeds.len()], &setting).unwrap();
    let steps = SAMPLES.div_ceil(setting.batch);
    // Each policy has a learning rate of its own.
    let rates: Vec<f64> = seeds.iter().map(|seed| 3e-3 * (1 + seed) as f64).collect();
    let mut left = vec![Vec::new(); seeds.len()];
    let mut leave = |values: &[f64]| {
        let each = values.len() / seeds.len();
        for (left, values) in left.iter_mut().zip(values.chunks(each.max(1))) {
            left.extend(values.iter().map(|value| value.to_bits()));
        }
    };
    for epoch in 0..setting.epochs {
        method.begin_epoch(epoch).unwrap();
        for within in 0..steps {
            let number = epoch * steps as u64 + within as u64;
            for values in step(method.as_mut(), within, number, &rates) {
                leave(&Vec::<f64>::try_from(values.to_kind(tch::Kind::Double)).unwrap());
            }
        }
        let notes = method.notes().unwrap();
        for noted in [notes.sigma, notes.effective] {
            leave(
                &noted
                    .into_iter()
                    .map(|value| value.unwrap_or(-1.0))
                    .collect::<Vec<_>>(),
            );
        }
    }
    let committee = method.committee();
    for (member, left) in left.iter_mut().enumerate() {
        for network in member * committee..(member + 1) * committee {
            for layer in method.policies().member(network).unwrap() {
                left.extend(
                    layer
                        .weights()
                        .iter()
                        .chain(layer.bias())
                        .map(|value| u64::from(value.to_bits())),
                );
            }
        }
    }
    for step in 0..method.steps_afterwards() {
        method.step_afterwards(step, &rates).unwrap();
    }
    assert_unused_stays_zero(method.as_ref());
    let findings = method.findings().unwrap();
    for values in [&findings.trust, &findings.tau] {
        for (left, values) in left
            .iter_mut()
            .zip(values.chunks((values.len() / seeds.len()).max(1)))
        {
            left.extend(values.iter().map(|value| value.to_bits()));
        }
    }
    left
}

/// Nothing but what a network's own widths use differs from 0: in networks, and in the means of their gradients.
fn assert_unused_stays_zero(method: &dyn Method) {
    let networks = method.policies().members();
    let length = method.policies().save().unwrap().len();
    let count = |values: &mut dyn Iterator<Item = f32>| values.filter(|value| *value != 0.0).count();
    let memories = method.memory().unwrap();
    for index in 0..memories[0].learners.len() {
        let learnt = learnt_by(index, &memories).unwrap();
        // Learnt deviations have a layout of their own.
        if learnt.networks.len() != length {
            continue;
        }
        for values in [&learnt.networks, &learnt.mean, &learnt.square] {
            for (network, row) in values.chunks(length / networks).enumerate() {
                let layers = method.policies().saved_member(values, network).unwrap();
                let used = layers
                    .iter()
                    .flat_map(|layer| layer.weights().iter().chain(layer.bias()));
                assert_eq!(count(&mut row.iter().copied()), count(&mut used.copied()));
            }
        }
    }
}

#[test]
fn a_policy_learns_the_same_bits_alone_and_in_company() {
    for (name, parameters) in every_method() {
        let together = learn(&parameters, &[1, 2, 3]);
        for (index, seed) in [1, 2, 3].into_iter().enumerate() {
            let alone = learn(&parameters, &[seed]);
            assert_eq!(alone[0].len(), together[index].len(), "{name}");
            let same = alone[0]
                .iter()
                .zip(&together[index])
                .take_while(|(alone, together)| alone == together);
            assert_eq!(
                same.count(),
                alone[0].len(),
                "{name}: policy {seed} differs from where so many values agree"
            );
        }
        let other = learn(&parameters, &[3, 1]);
        assert!(other[1] == together[0] && other[0] == together[2], "{name}");
    }
}

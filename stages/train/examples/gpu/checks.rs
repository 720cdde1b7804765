//! Whether a device computes what the processor does.

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use provenir_execution::Outputs;
use provenir_kinds::train::TrainParameters;
use provenir_policy::PolicySet;
use serde_json::{Value, json};

use crate::support::Silent;
use crate::training::{Clock, in_one_group, with_seeds};
use crate::workload::Size;

/// How far results may lie apart: losses and norms of an epoch, in proportion to themselves; weights of a policy, by the length
/// of their difference in proportion to their own.
///
/// Roundings differ, in the last bits of single precision, and Adam's first steps have the size of the learning rate however
/// small a gradient is. Where samples are chosen by their rank, a rounding may choose another one.
#[derive(Clone, Copy)]
struct Tolerance {
    loss: f64,
    weights: f64,
}

const SMOOTH: Tolerance = Tolerance {
    loss: 1e-3,
    weights: 2e-3,
};
const RANKED: Tolerance = Tolerance {
    loss: 1e-2,
    weights: 1e-2,
};
/// Of TF32 beside single precision: 10 bits of mantissa.
const ROUNDED: Tolerance = Tolerance {
    loss: 3e-2,
    weights: 5e-2,
};

const SAMPLES: usize = 2_000;
const SEEDS: [u64; 3] = [0, 1, 2];

/// Every way of learning; every step that a GPU records.
fn methods() -> Vec<(&'static str, Tolerance, Value)> {
    vec![
        ("bc", SMOOTH, json!({ "method": "bc" })),
        (
            "bc nll learnt",
            SMOOTH,
            json!({ "method": "bc", "loss": "nll", "nll": { "learned": true }, "weight_decay": 0.1 }),
        ),
        ("rbc min-max", RANKED, json!({ "method": "rbc" })),
        (
            "rbc direct",
            RANKED,
            json!({ "method": "rbc", "rbc": { "objective": "direct", "block": 3 } }),
        ),
        ("noisy-bc", SMOOTH, json!({ "method": "noisy-bc" })),
        (
            "noisy-bc published",
            SMOOTH,
            json!({ "method": "noisy-bc", "noisy_bc": { "form": "published", "members": 2, "rounds": 2 } }),
        ),
        ("trimmed", RANKED, json!({ "method": "trimmed" })),
        (
            "trimmed epoch",
            RANKED,
            json!({ "method": "trimmed", "trimmed": { "among": "epoch" } }),
        ),
        ("mixture", SMOOTH, json!({ "method": "mixture" })),
        ("robust-loss", SMOOTH, json!({ "method": "robust-loss" })),
        (
            "co-teaching",
            RANKED,
            json!({ "method": "co-teaching", "co_teaching": { "ramp": 2 } }),
        ),
        ("filter", RANKED, json!({ "method": "filter" })),
        (
            "filter by rbc",
            RANKED,
            json!({ "method": "filter", "filter": { "by": "rbc" } }),
        ),
        ("range-filter", SMOOTH, json!({ "method": "range-filter" })),
    ]
}

/// Four epochs of short steps, with a short minibatch at the end of each.
fn parameters(size: &Size, special: &Value) -> Result<TrainParameters, Box<dyn Error>> {
    let mut json = json!({
        "hidden": if size.is_tiny { [16, 16] } else { [128, 128] }, "epochs": 4, "batch": 128,
        "rbc": { "chunk": 480, "tau_steps": 5 }, "noisy_bc": { "rounds": 2 }, "filter": { "folds": 2 },
        "range_filter": { "bound": 0.9 },
    });
    for (key, value) in special.as_object().ok_or("no table")? {
        match (json[key].as_object_mut(), value.as_object()) {
            (Some(table), Some(more)) => table.extend(more.clone()),
            _ => json[key] = value.clone(),
        }
    }
    Ok(serde_json::from_value(json)?)
}

/// What a policy's training left.
struct Trained {
    /// Epoch by epoch.
    losses: Vec<f64>,
    weights: Vec<f32>,
}

impl Trained {
    fn of(outputs: &Outputs) -> Result<Self, Box<dyn Error>> {
        let history = outputs.get_table("history").ok_or("no history")?;
        let mut losses = history.column_f64("loss")?.to_vec();
        losses.extend(history.column_f64("gradient_norm")?);
        let policies = PolicySet::from_table(outputs.get_table("policy").ok_or("no policy")?)?;
        let layers = policies.last().layers().iter();
        let weights = layers.flat_map(|layer| layer.weights().iter().chain(layer.bias()).copied());
        Ok(Self {
            losses,
            weights: weights.collect(),
        })
    }

    fn train(
        parameters: &TrainParameters,
        seeds: &[u64],
        clock: &Clock,
    ) -> Result<Vec<Self>, Box<dyn Error>> {
        let results = with_seeds(
            parameters,
            &clock.inputs(SAMPLES)?,
            seeds,
            &Silent,
            &AtomicBool::new(false),
        )?;
        results.into_iter().map(|outputs| Self::of(&outputs?)).collect()
    }

    /// How far the two lie apart: losses, weights.
    fn difference(&self, other: &Self) -> (f64, f64) {
        let losses = self.losses.iter().zip(&other.losses);
        let loss = losses
            .map(|(left, right)| (left - right).abs() / right.abs().max(1e-6))
            .fold(0.0, f64::max);
        let length =
            |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
        let pairs = self.weights.iter().zip(&other.weights);
        let apart = length(&mut pairs.map(|(left, right)| f64::from(*left) - f64::from(*right)));
        let own = length(&mut other.weights.iter().map(|value| f64::from(*value)));
        (loss, apart / own)
    }

    fn is_finite(&self) -> bool {
        self.losses.iter().all(|loss| loss.is_finite()) && self.weights.iter().all(|value| value.is_finite())
    }
}

/// Prints how far trainings lie apart, and whether that is near enough.
fn compare(what: &str, found: &[Trained], expected: &[Trained], tolerance: Tolerance) -> bool {
    let (mut loss, mut weights) = (0.0_f64, 0.0_f64);
    let mut is_sound = found.len() == expected.len();
    for (found, expected) in found.iter().zip(expected) {
        let (of_loss, of_weights) = found.difference(expected);
        (loss, weights) = (loss.max(of_loss), weights.max(of_weights));
        is_sound &= found.is_finite()
            && found.losses.len() == expected.losses.len()
            && found.weights.len() == expected.weights.len();
    }
    let passed = is_sound && loss <= tolerance.loss && weights <= tolerance.weights;
    println!(
        "{} {what}: losses {loss:.1e} apart (at most {:.0e}), weights {weights:.1e} (at most {:.0e})",
        if passed { "PASS" } else { "FAIL" },
        tolerance.loss,
        tolerance.weights
    );
    passed
}

/// All checks for which there is time; whether none failed.
pub(crate) fn check(size: &Size, clock: &Clock, limit: Duration) -> Result<bool, Box<dyn Error>> {
    let end = clock.now() + limit;
    let mut passed = true;
    for (name, tolerance, special) in methods() {
        if clock.now() > end {
            println!("FAIL {name}: the time for checks was over before it");
            passed = false;
            continue;
        }
        let on_processor: TrainParameters =
            serde_json::from_value(with(&parameters(size, &special)?, &json!({ "device": "cpu" }))?)?;
        let mut on_device = parameters(size, &special)?;
        if size.device == "cpu" {
            // A processor beside itself: a rate that is larger by a few roundings stands for other roundings, and shows what
            // becomes of them.
            on_device.learning_rate *= 1.0 + 1e-6;
        }
        let on_device: TrainParameters =
            serde_json::from_value(with(&on_device, &json!({ "device": size.device }))?)?;
        let expected = Trained::train(&on_processor, &SEEDS, clock)?;
        let found = Trained::train(&on_device, &SEEDS, clock)?;
        passed &= compare(
            &format!("{name}, {} against the processor", size.device),
            &found,
            &expected,
            tolerance,
        );
        let alone = Trained::train(&on_device, &SEEDS[1..2], clock)?;
        passed &= compare(
            &format!("{name}, in a group against alone"),
            &found[1..2],
            &alone,
            tolerance,
        );
        if name == "bc" {
            let rounded: TrainParameters =
                serde_json::from_value(with(&on_device, &json!({ "precision": "tf32" }))?)?;
            let rounded = Trained::train(&rounded, &SEEDS, clock)?;
            passed &= compare("bc, TF32 against single precision", &rounded, &found, ROUNDED);
            let (_, apart) = rounded[0].difference(&found[0]);
            // Nothing apart: TF32 was not switched on.
            let is_right = (apart > 0.0) == (size.device == "cuda");
            println!(
                "{} TF32 changes results on a GPU and nowhere else: weights {apart:.1e} apart",
                if is_right { "PASS" } else { "FAIL" }
            );
            passed &= is_right;
        }
    }
    passed &= check_different(size, clock, end)?;
    Ok(passed)
}

/// Whether policies of different methods, whose steps a GPU records as one, come to what each comes to alone.
fn check_different(size: &Size, clock: &Clock, end: Duration) -> Result<bool, Box<dyn Error>> {
    let mut rules = Vec::new();
    for (name, tolerance, special) in methods() {
        let parameters = with(
            &parameters(size, &special)?,
            &json!({ "device": size.device, "weight_decay": 0.0 }),
        )?;
        let parameters: TrainParameters = serde_json::from_value(parameters)?;
        if parameters.method.is_rule() {
            rules.push((name, tolerance, parameters));
        }
    }
    let members: Vec<TrainParameters> = rules.iter().map(|(.., parameters)| parameters.clone()).collect();
    let results = in_one_group(
        &members,
        &clock.inputs(SAMPLES)?,
        &Silent,
        &AtomicBool::new(false),
    )?;
    let mut passed = true;
    for ((name, tolerance, parameters), result) in rules.iter().zip(results) {
        if clock.now() > end {
            println!("FAIL {name}: the time for checks was over before it");
            return Ok(false);
        }
        let alone = Trained::train(parameters, &[parameters.seed], clock)?;
        let found = [Trained::of(&result?)?];
        passed &= compare(
            &format!("{name}, in a group of other methods against alone"),
            &found,
            &alone,
            *tolerance,
        );
    }
    Ok(passed)
}

/// Parameters with some of them changed.
fn with(parameters: &TrainParameters, changes: &Value) -> Result<Value, Box<dyn Error>> {
    let mut json = serde_json::to_value(parameters)?;
    for (key, value) in changes.as_object().ok_or("no table")? {
        json[key] = value.clone();
    }
    Ok(json)
}

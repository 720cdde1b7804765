//! Whether a device computes what the processor does.

use std::error::Error;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use provenir_execution::Outputs;
use provenir_kinds::train::TrainParameters;
use provenir_policy::PolicySet;
use serde_json::{Value, json};

use crate::support::Silent;
use crate::training::{Clock, Pupil, together};
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

/// Seed and data set of each policy. One set is that of two policies, so that none behind them stands where it would if each policy
/// had a set of its own.
const POLICIES: [(u64, usize); 4] = [(0, 0), (1, 0), (1, 1), (2, 2)];
/// Those of them that have a set of their own, without the others.
const DISTINCT: Range<usize> = 1..4;
/// Two that have nothing different but their sets.
const TWINS: [usize; 2] = [1, 2];
/// One that stands behind those that have a set in common.
const BEHIND: Range<usize> = 3..4;

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

    /// Policies with these seeds and data sets, trained together.
    fn together(
        parameters: &TrainParameters,
        policies: &[(u64, usize)],
        clock: &Clock,
    ) -> Result<Vec<Self>, Box<dyn Error>> {
        let pupils = policies.iter().map(|policy| pupil(parameters, *policy, clock));
        Self::all(&pupils.collect::<Result<Vec<_>, _>>()?)
    }

    fn all(pupils: &[Pupil]) -> Result<Vec<Self>, Box<dyn Error>> {
        let results = together(pupils, &Silent, &AtomicBool::new(false))?;
        results.into_iter().map(|outputs| Self::of(&outputs?)).collect()
    }

    /// Each for itself.
    fn alone(
        parameters: &TrainParameters,
        policies: &[(u64, usize)],
        clock: &Clock,
    ) -> Result<Vec<Self>, Box<dyn Error>> {
        let mut all = Vec::with_capacity(policies.len());
        for policy in policies {
            all.extend(Self::together(parameters, &[*policy], clock)?);
        }
        Ok(all)
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
    report(
        passed,
        &format!(
            "{what}: losses {loss:.1e} apart (at most {:.0e}), weights {weights:.1e} (at most {:.0e})",
            tolerance.loss, tolerance.weights
        ),
    )
}

/// Prints a finding; gives it back.
fn report(passed: bool, what: &str) -> bool {
    println!("{} {what}", if passed { "PASS" } else { "FAIL" });
    passed
}

/// Whether the time is over, which is then a failure.
fn is_late(name: &str, clock: &Clock, end: Duration) -> bool {
    clock.now() > end && !report(false, &format!("{name}: the time for checks was over before it"))
}

/// All checks for which there is time; whether none failed.
pub(crate) fn check(size: &Size, clock: &Clock, limit: Duration) -> Result<bool, Box<dyn Error>> {
    let end = clock.now() + limit;
    let mut passed = true;
    for (name, tolerance, special) in methods() {
        passed &= !is_late(name, clock, end) && check_method(name, tolerance, &special, size, clock)?;
    }
    passed &= check_different(size, clock, end)?;
    Ok(passed)
}

/// Whether policies that are trained together on the device, some of them on one data set or each on its own, come to what each comes
/// to alone, there and on the processor.
fn check_method(
    name: &str,
    tolerance: Tolerance,
    special: &Value,
    size: &Size,
    clock: &Clock,
) -> Result<bool, Box<dyn Error>> {
    let mut parameters = parameters(size, special)?;
    let on_processor = with(&parameters, &json!({ "device": "cpu" }))?;
    if size.device == "cpu" {
        // A processor beside itself: a rate that is larger by a few roundings stands for other roundings, and shows what
        // becomes of them.
        parameters.learning_rate *= 1.0 + 1e-6;
    }
    let on_device = with(&parameters, &json!({ "device": size.device }))?;
    let expected = Trained::alone(&on_processor, &POLICIES, clock)?;
    let sharing = Trained::together(&on_device, &POLICIES, clock)?;
    let distinct = Trained::together(&on_device, &POLICIES[DISTINCT], clock)?;
    let alone = Trained::alone(&on_device, &POLICIES[BEHIND], clock)?;
    let against = format!("{name}, {} against the processor", size.device);
    let in_common = format!("{against}, some on one data set");
    let mut passed = compare(&in_common, &sharing, &expected, tolerance);
    let of_each = format!("{against}, each on its own data set");
    passed &= compare(&of_each, &distinct, &expected[DISTINCT], tolerance);
    let by_itself = format!("{name}, in a group against alone");
    passed &= compare(&by_itself, &sharing[BEHIND], &alone, tolerance);
    let (_, apart) = expected[TWINS[0]].difference(&expected[TWINS[1]]);
    passed &= report(
        apart > tolerance.weights,
        &format!("{name}, another data set would be noticed: weights {apart:.1e} apart"),
    );
    if name == "bc" {
        passed &= check_precision(&on_device, &sharing, size, clock)?;
    }
    Ok(passed)
}

/// Whether TF32 changes a little of what was found in single precision.
fn check_precision(
    on_device: &TrainParameters,
    found: &[Trained],
    size: &Size,
    clock: &Clock,
) -> Result<bool, Box<dyn Error>> {
    let rounded = with(on_device, &json!({ "precision": "tf32" }))?;
    let rounded = Trained::together(&rounded, &POLICIES, clock)?;
    let passed = compare("bc, TF32 against single precision", &rounded, found, ROUNDED);
    let (_, apart) = rounded[0].difference(&found[0]);
    // Nothing apart: TF32 was not switched on.
    let is_right = (apart > 0.0) == (size.device == "cuda");
    let what = format!("TF32 changes results on a GPU and nowhere else: weights {apart:.1e} apart");
    Ok(report(is_right, &what) && passed)
}

/// Whether policies of different methods, whose steps a GPU records as one, come to what each comes to alone.
fn check_different(size: &Size, clock: &Clock, end: Duration) -> Result<bool, Box<dyn Error>> {
    let mut rules = Vec::new();
    for (name, tolerance, special) in methods() {
        let parameters = with(
            &parameters(size, &special)?,
            &json!({ "device": size.device, "weight_decay": 0.0 }),
        )?;
        if parameters.method.is_rule() {
            let policy = POLICIES[rules.len() % POLICIES.len()];
            rules.push((name, tolerance, parameters, policy));
        }
    }
    let pupils = rules
        .iter()
        .map(|(_, _, parameters, policy)| pupil(parameters, *policy, clock));
    let found = Trained::all(&pupils.collect::<Result<Vec<_>, _>>()?)?;
    let mut passed = true;
    for ((name, tolerance, parameters, policy), found) in rules.iter().zip(&found) {
        if is_late(name, clock, end) {
            return Ok(false);
        }
        let alone = Trained::alone(parameters, &[*policy], clock)?;
        let what = format!("{name}, in a group of other methods against alone");
        passed &= compare(&what, std::slice::from_ref(found), &alone, *tolerance);
    }
    Ok(passed)
}

/// A policy with this seed and this data set.
fn pupil(
    parameters: &TrainParameters,
    (seed, set): (u64, usize),
    clock: &Clock,
) -> Result<Pupil, Box<dyn Error>> {
    Ok(Pupil {
        parameters: TrainParameters {
            seed,
            ..parameters.clone()
        },
        inputs: clock.inputs(SAMPLES, set)?,
    })
}

/// Parameters with some of them changed.
fn with(parameters: &TrainParameters, changes: &Value) -> Result<TrainParameters, Box<dyn Error>> {
    let mut json = serde_json::to_value(parameters)?;
    for (key, value) in changes.as_object().ok_or("no table")? {
        json[key] = value.clone();
    }
    Ok(serde_json::from_value(json)?)
}

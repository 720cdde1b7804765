//! Single steps against the definition of their method, differentiated by LibTorch's recorder.

use provenir_nn::{Shape, Widths};
use provenir_policy::{Activation, Layer};
use tch::{Device, Tensor};

use super::*;
use crate::cloning::{Cloning, Setting};
use crate::data::{Data, padded};
use crate::learner::{Descent, LearnerState};
use crate::method::{Memory, Method, learnt_by};
use crate::methods::bc::{LeastSquares, Loss};
use crate::methods::rbc::{Rbc, RbcSettings};
use crate::methods::{Wanted, method};
use crate::partition::Partition;

pub(super) const SAMPLES: usize = 60;

fn shape(data: &Data) -> Shape {
    let Widths { inputs, outputs } = padded(data.widths[0]);
    Shape {
        inputs,
        hidden: vec![11, 7],
        outputs,
        activation: Activation::Relu,
    }
}

/// A data set for each seed, of different robots.
pub(super) fn data(seeds: &[u64]) -> Data {
    let sets: Vec<Demonstrations> = seeds
        .iter()
        .map(|seed| with_outliers(demonstrations_of_robot(*seed, SAMPLES, *seed), 9))
        .collect();
    let observations: Vec<&Matrix> = sets.iter().map(|demos| &demos.observation).collect();
    let actions: Vec<&Matrix> = sets.iter().map(|demos| &demos.action).collect();
    Data::new(&observations, &actions, (0..sets.len()).collect(), Device::Cpu).unwrap()
}

pub(super) fn setting<'a>(data: &'a Data, seeds: &[u64], clip: Option<f64>) -> Setting<'a> {
    Setting {
        shape: shape(data),
        data,
        streams: seeds.iter().map(|seed| Stream::new(*seed, "train")).collect(),
        batch: 25,
        epochs: 4,
        descent: Descent {
            clip,
            weight_decay: 0.0,
        },
    }
}

/// A network as tensors that record.
struct Recorder(Vec<(Tensor, Tensor)>);

impl Recorder {
    fn new(layers: &[Layer]) -> Self {
        let tensor =
            |values: &[f32], shape: &[i64]| Tensor::from_slice(values).view(shape).set_requires_grad(true);
        Self(
            layers
                .iter()
                .map(|layer| {
                    let (inputs, outputs) = (layer.inputs() as i64, layer.outputs() as i64);
                    (
                        tensor(layer.weights(), &[outputs, inputs]),
                        tensor(layer.bias(), &[outputs]),
                    )
                })
                .collect(),
        )
    }

    /// Squared error of each sample.
    fn losses(&self, data: &Data, member: usize, samples: &[usize]) -> Tensor {
        let rows: Vec<i64> = samples
            .iter()
            .map(|sample| (member * SAMPLES + sample) as i64)
            .collect();
        let rows = Tensor::from_slice(&rows);
        let Widths { inputs, outputs } = data.widths[member];
        let used = |tensor: &Tensor, width: usize| tensor.index_select(0, &rows).narrow(1, 0, width as i64);
        let mut values = used(&data.observations, inputs);
        for (depth, (weight, bias)) in self.0.iter().enumerate() {
            values = values.matmul(&weight.tr()) + bias;
            if depth + 1 < self.0.len() {
                values = values.relu();
            }
        }
        (values - used(&data.actions, outputs))
            .square()
            .mean_dim(1, false, None)
    }

    fn gradient(&self, loss: &Tensor) -> Vec<f64> {
        loss.backward();
        let tensors = self
            .0
            .iter()
            .flat_map(|(weight, bias)| [weight.grad(), bias.grad()]);
        tensors
            .flat_map(|tensor| Vec::<f32>::try_from(tensor.view(-1)).unwrap())
            .map(f64::from)
            .collect()
    }
}

/// The same for two policies.
fn wanted<'a>(parameters: &'a TrainParameters, context: &'a Context<'a>) -> [Wanted<'a>; 2] {
    [Wanted { parameters, context }; 2]
}

/// What everything that learns has learnt for all policies.
fn learnt(method: &dyn Method) -> Vec<LearnerState> {
    let memories = method.memory().unwrap();
    (0..memories[0].learners.len())
        .map(|index| learnt_by(index, &memories).unwrap())
        .collect()
}

/// The gradient of the first step, out of Adam's mean of gradients: a tenth of it.
fn first_gradient(method: &mut dyn Method, learner: usize, member: usize) -> Vec<f64> {
    let state = &learnt(method)[learner];
    assert_eq!(state.steps, 1);
    let layers = method.policies().saved_member(&state.mean, member).unwrap();
    let values = layers
        .iter()
        .flat_map(|layer| layer.weights().iter().chain(layer.bias()));
    values.map(|value| f64::from(*value) * 10.0).collect()
}

fn assert_close(found: &[f64], expected: &[f64]) {
    let largest = expected
        .iter()
        .fold(0.0_f64, |largest, value| largest.max(value.abs()));
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() < 3e-6 * largest,
            "{found} for {expected}"
        );
    }
}

#[test]
fn a_step_of_cloning_follows_the_mean_squared_error_of_its_batch() {
    let data = data(&[1, 2]);
    let setting = setting(&data, &[3, 4], None);
    let streams = &setting.streams;
    // Two batches of 25, and one of 10: the gradient of the first step is that of the first batch.
    for within in [0, 2] {
        let rule = |data: &Data| LeastSquares::new(Loss::SquaredError, data);
        let mut bc = Cloning::new(&setting, 1, rule).unwrap();
        let before: Vec<Vec<Layer>> = (0..2)
            .map(|member| bc.policies().member(member).unwrap())
            .collect();
        bc.begin_epoch(6).unwrap();
        let [losses, norms, _] = step(&mut bc, within, 0, &[1e-3, 1e-3]);
        for member in 0..2 {
            let order = streams[member].child("order", 6).permutation(SAMPLES);
            let batch = &order[25 * within..(25 * within + 25).min(SAMPLES)];
            let recorder = Recorder::new(&before[member]);
            let loss = recorder.losses(&data, member, batch).mean(None);
            assert!((losses.double_value(&[member as i64]) / loss.double_value(&[]) - 1.0).abs() < 1e-5);
            let expected = recorder.gradient(&loss);
            assert_close(&first_gradient(&mut bc, 0, member), &expected);
            let norm = expected.iter().map(|value| value * value).sum::<f64>().sqrt();
            assert!((norms.double_value(&[member as i64]) / norm - 1.0).abs() < 1e-5);
        }
    }
}

#[test]
fn a_step_of_median_of_means_follows_the_mean_of_the_middle_blocks() {
    let data = data(&[1, 2]);
    let setting = setting(&data, &[3, 4], None);
    let streams = &setting.streams;
    // Odd and even numbers of blocks, with and without a rest.
    for (chunk, block, window, challenger) in [
        (50, 3, 0.4, true),
        (50, 3, 0.4, false),
        (48, 4, 0.5, true),
        (60, 1, 0.6, true),
        (21, 2, 0.0, true),
    ] {
        let settings = RbcSettings {
            challenger,
            partition: Partition::new(chunk, block, window),
            block,
            loss: Loss::SquaredError,
            tau_steps: 0,
            sigma: 0.1,
        };
        let mut rbc = Rbc::new(&setting, settings).unwrap();
        let before: Vec<Vec<Vec<Layer>>> = learnt(&rbc)
            .iter()
            .map(|state| {
                (0..2)
                    .map(|member| rbc.policies().saved_member(&state.networks, member).unwrap())
                    .collect()
            })
            .collect();
        assert_eq!(before.len(), if challenger { 2 } else { 1 });
        let [of_policies, _, medians] = step(&mut rbc, 0, 17, &[1e-3, 1e-3]);
        for member in 0..2 {
            let samples = streams[member].child("chunk", 17).choose(SAMPLES, chunk);
            let players: Vec<Recorder> = before
                .iter()
                .map(|layers| Recorder::new(&layers[member]))
                .collect();
            let losses: Vec<Vec<f64>> = players
                .iter()
                .map(|player| {
                    Vec::try_from(player.losses(&data, member, &samples).to_kind(tch::Kind::Double)).unwrap()
                })
                .collect();
            let value = |place: usize| losses[0][place] - losses.get(1).map_or(0.0, |losses| losses[place]);
            // The blocks by their definition, ranked in double precision: there are no ties among random numbers.
            let count = chunk / block;
            let mut blocks: Vec<Vec<usize>> = (0..count)
                .map(|index| (index * block..(index + 1) * block).collect())
                .collect();
            (count * block..chunk).for_each(|place| blocks[place - count * block].push(place));
            let mean = |places: &[usize]| {
                places.iter().map(|place| value(*place)).sum::<f64>() / places.len() as f64
            };
            blocks.sort_by(|left, right| mean(left).total_cmp(&mean(right)));
            let median = mean(&blocks[(count - 1) / 2]);
            assert!((medians.double_value(&[member as i64]) - median).abs() < 1e-6);
            let wanted = ((window * count as f64).round() as usize).max(1);
            let first = (count - wanted) / 2;
            let middle = &blocks[first..first + wanted];
            for (index, player) in players.iter().enumerate() {
                let block_losses: Vec<Tensor> = middle
                    .iter()
                    .map(|places| {
                        let samples: Vec<usize> = places.iter().map(|place| samples[*place]).collect();
                        player.losses(&data, member, &samples).mean(None)
                    })
                    .collect();
                let loss = Tensor::stack(&block_losses, 0).mean(None);
                if index == 0 {
                    let found = of_policies.double_value(&[member as i64]);
                    assert!((found / loss.double_value(&[]) - 1.0).abs() < 1e-5);
                }
                assert_close(&first_gradient(&mut rbc, index, member), &player.gradient(&loss));
            }
            let counts = &rbc.memory().unwrap()[member];
            let mut expected = vec![(0, 0); SAMPLES];
            for sample in &samples {
                expected[*sample].0 = 1;
            }
            for place in middle.iter().flatten() {
                expected[samples[*place]].1 = 1;
            }
            for (sample, expected) in expected.into_iter().enumerate() {
                assert_eq!((counts.drawn[sample], counts.selected[sample]), expected);
            }
        }
    }
}

/// The gradient of the first step of a method, where it is that of a function of each sample's squared error, averaged over
/// the first minibatch; the function is told over how many components an error is averaged, too.
fn assert_follows(parameters: &TrainParameters, loss: &dyn Fn(Tensor, f64, &dyn Method, usize) -> Tensor) {
    let data = data(&[1, 2]);
    let setting = setting(&data, &[3, 4], None);
    let listener = Listener::default();
    let context = Context::new(&listener, &listener.cancelled, "nowhere");
    let mut method = method(&wanted(parameters, &context), &setting).unwrap();
    let before: Vec<Vec<Layer>> = (0..2)
        .map(|member| method.policies().member(member).unwrap())
        .collect();
    method.begin_epoch(0).unwrap();
    let [losses, ..] = step(method.as_mut(), 0, 0, &[1e-3, 1e-3]);
    for (member, before) in before.iter().enumerate() {
        let order = setting.streams[member].child("order", 0).permutation(SAMPLES);
        let recorder = Recorder::new(before);
        let errors = recorder.losses(&data, member, &order[..25]);
        let width = data.widths[member].outputs as f64;
        let loss = loss(errors, width, method.as_ref(), member).mean(None);
        let found = losses.double_value(&[member as i64]);
        let expected = loss.double_value(&[]);
        assert!(
            (found - expected).abs() < 1e-5 * (1.0 + expected.abs()),
            "{found} for {expected}"
        );
        assert_close(
            &first_gradient(method.as_mut(), 0, member),
            &recorder.gradient(&loss),
        );
    }
}

#[test]
fn a_step_by_likelihood_follows_that_of_the_gaussian() {
    let parameters = parameters!({ "method": "bc", "epochs": 4, "loss": "nll", "nll": { "sigma": 0.3 } });
    // Of A components: Σᵢ rᵢ² = A e.
    let likelihood = |errors: Tensor, width: f64, _: &dyn Method, _: usize| {
        let constant = 0.3_f64.ln() + 0.5 * (2.0 * std::f64::consts::PI).ln();
        (errors / (2.0 * 0.3 * 0.3) + constant) * width
    };
    assert_follows(&parameters, &likelihood);
    // Where the deviations are learnt, the first step is at those they start from.
    let parameters = parameters!({
        "method": "bc", "epochs": 4, "loss": "nll", "nll": { "sigma": 0.3, "learned": true },
    });
    assert_follows(&parameters, &likelihood);
}

#[test]
fn a_step_by_a_robust_loss_follows_that_loss_at_the_scale_it_notes() {
    let with = |loss: &str| parameters!({ "method": "robust-loss", "epochs": 4, "robust_loss": { "loss": loss, "tuning": 0.7, "freedom": 3.0 } });
    let scale = |method: &dyn Method, member: usize| 0.7 * method.notes().unwrap().sigma[member].unwrap();
    assert_follows(&with("huber"), &|errors, _, method, member| {
        let c = scale(method, member);
        let length = errors.sqrt();
        errors.where_self(&length.le(c), &((&length * 2.0 - c) * c))
    });
    assert_follows(&with("norm"), &|errors, _, method, member| {
        let c = scale(method, member);
        ((errors + c * c).sqrt() - c) * (2.0 * c)
    });
    assert_follows(&with("student-t"), &|errors, width, method, member| {
        let c = scale(method, member);
        let scale = 3.0 / width * c * c;
        (errors / scale).log1p() * scale
    });
    assert_follows(&with("welsch"), &|errors, _, method, member| {
        let c = scale(method, member);
        (-(errors / (-2.0 * c * c)).exp() + 1.0) * (2.0 * c * c)
    });
}

#[test]
fn a_step_on_what_is_left_follows_the_mean_of_the_smallest_errors() {
    let parameters = parameters!({ "method": "trimmed", "epochs": 4, "trimmed": { "keep": 0.5 } });
    assert_follows(&parameters, &|errors, _, _, _| {
        // ⌊0.5 · 25⌋ of them.
        errors.sort(0, false).0.narrow(0, 0, 12)
    });
}

/// The first gradient of a method that gives every sample of its data set a weight at the start of an epoch: that of the mean over
/// the first minibatch of weight times squared error. The weights follow from the errors, averaged over so many components, of the
/// networks as they are when the epoch begins.
fn assert_weighs(parameters: &TrainParameters, epoch: u64, weights: &dyn Fn(&[f64], f64) -> Vec<f64>) {
    let data = data(&[1, 2]);
    let setting = setting(&data, &[3, 4], None);
    let listener = Listener::default();
    let context = Context::new(&listener, &listener.cancelled, "nowhere");
    let mut method = method(&wanted(parameters, &context), &setting).unwrap();
    let layers = |method: &dyn Method| -> Vec<Recorder> {
        let each = (0..2).map(|member| method.policies().member(member).unwrap());
        each.map(|layers| Recorder::new(&layers)).collect()
    };
    method.begin_epoch(0).unwrap();
    let before = layers(method.as_ref());
    method.begin_epoch(epoch).unwrap();
    let begun = layers(method.as_ref());
    let [losses, ..] = step(method.as_mut(), 0, 0, &[1e-3, 1e-3]);
    for (member, (before, begun)) in before.iter().zip(&begun).enumerate() {
        let all: Vec<usize> = (0..SAMPLES).collect();
        let errors = before.losses(&data, member, &all).to_kind(tch::Kind::Double);
        let width = data.widths[member].outputs as f64;
        let weights = weights(&Vec::<f64>::try_from(errors).unwrap(), width);
        let order = setting.streams[member].child("order", epoch).permutation(SAMPLES);
        let batch = &order[..25];
        let own: Vec<f32> = batch.iter().map(|sample| weights[*sample] as f32).collect();
        assert!(own.iter().any(|weight| (weight - own[0]).abs() > 0.1), "{own:?}");
        let loss = (begun.losses(&data, member, batch) * Tensor::from_slice(&own)).mean(None);
        let found = losses.double_value(&[member as i64]);
        assert!((found / loss.double_value(&[]) - 1.0).abs() < 1e-5, "{found}");
        assert_close(
            &first_gradient(method.as_mut(), 0, member),
            &begun.gradient(&loss),
        );
    }
}

#[test]
fn a_step_on_what_an_epoch_left_follows_the_samples_that_were_fitted_best_at_its_start() {
    let parameters =
        parameters!({ "method": "trimmed", "epochs": 4, "trimmed": { "keep": 0.5, "among": "epoch" } });
    assert_weighs(&parameters, 1, &|errors, _| {
        let rank = |error: f64| errors.iter().filter(|other| **other < error).count();
        let kept = SAMPLES / 2;
        let weight = |error: &f64| {
            if rank(*error) < kept {
                SAMPLES as f64 / kept as f64
            } else {
                0.0
            }
        };
        errors.iter().map(weight).collect()
    });
}

#[test]
fn a_step_of_a_second_round_weighs_samples_by_their_density_under_the_first() {
    for floor in [0.01, 2.0] {
        let parameters = parameters!({
            "method": "noisy-bc", "epochs": 4, "noisy_bc": { "rounds": 2, "sigma_floor": floor },
        });
        assert_weighs(&parameters, 2, &|errors, width| {
            // The likeliest deviation of networks that weighed all samples the same.
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let sigma = mean(errors).sqrt().max(floor);
            let densities: Vec<f64> = errors
                .iter()
                .map(|error| (-width * error / (2.0 * sigma * sigma)).exp())
                .collect();
            densities
                .iter()
                .map(|density| density / mean(&densities))
                .collect()
        });
    }
}

#[test]
fn a_step_by_a_mixture_follows_its_likelihood_at_the_deviation_it_notes() {
    let data = data(&[1, 2]);
    let setting = setting(&data, &[3, 4], None);
    let listener = Listener::default();
    let context = Context::new(&listener, &listener.cancelled, "nowhere");
    let parameters = parameters!({ "method": "mixture", "epochs": 4, "mixture": { "assumed_epsilon": 0.3 } });
    let mut method = method(&wanted(&parameters, &context), &setting).unwrap();
    let before: Vec<Vec<Layer>> = (0..2)
        .map(|member| method.policies().member(member).unwrap())
        .collect();
    method.begin_epoch(0).unwrap();
    let [losses, ..] = step(method.as_mut(), 0, 0, &[1e-3, 1e-3]);
    for (member, before) in before.iter().enumerate() {
        let sigma = method.notes().unwrap().sigma[member].unwrap();
        let order = setting.streams[member].child("order", 0).permutation(SAMPLES);
        let recorder = Recorder::new(before);
        let errors = recorder.losses(&data, member, &order[..25]);
        let width = data.widths[member].outputs as i32;
        let normaliser = 0.7 * (2.0 * std::f64::consts::PI * sigma * sigma).sqrt().powi(-width);
        let slope = f64::from(-width) / (2.0 * sigma * sigma);
        let density = (errors * slope).exp() * normaliser + 0.3 * 0.5_f64.powi(width);
        let loss = -density.log().mean(None);
        let found = losses.double_value(&[member as i64]);
        assert!((found - loss.double_value(&[])).abs() < 1e-5);
        // Of 2σ²/A times the likelihood.
        let expected = recorder.gradient(&(loss * (-1.0 / slope)));
        assert_close(&first_gradient(method.as_mut(), 0, member), &expected);
    }
}

#[test]
fn each_of_two_networks_learns_from_what_the_other_one_fits_best() {
    let data = data(&[1, 2]);
    let setting = setting(&data, &[3, 4], None);
    let listener = Listener::default();
    let context = Context::new(&listener, &listener.cancelled, "nowhere");
    let parameters = parameters!({
        "method": "co-teaching", "epochs": 4, "co_teaching": { "assumed_epsilon": 0.3, "ramp": 0 },
    });
    let mut method = method(&wanted(&parameters, &context), &setting).unwrap();
    let before: Vec<Vec<Layer>> = learnt(method.as_ref())
        .iter()
        .map(|state| method.policies().saved_member(&state.networks, 1).unwrap())
        .collect();
    method.begin_epoch(0).unwrap();
    let _ = step(method.as_mut(), 0, 0, &[1e-3, 1e-3]);
    let order = setting.streams[1].child("order", 0).permutation(SAMPLES);
    let players: Vec<Recorder> = before.iter().map(|layers| Recorder::new(layers)).collect();
    // ⌊0.7 · 25⌋ of them.
    let chosen = |player: usize| -> Vec<usize> {
        let errors = players[player].losses(&data, 1, &order[..25]);
        let ranked = Vec::<i64>::try_from(errors.argsort(0, false)).unwrap();
        ranked[..17].iter().map(|place| order[*place as usize]).collect()
    };
    for (player, other) in [(0, 1), (1, 0)] {
        let loss = players[player].losses(&data, 1, &chosen(other)).mean(None);
        assert_close(
            &first_gradient(method.as_mut(), player, 1),
            &players[player].gradient(&loss),
        );
    }
    let Memory { selected, .. } = method.memory().unwrap().remove(1);
    for (sample, selected) in selected.into_iter().enumerate() {
        let expected = u64::from(chosen(1).contains(&sample));
        assert_eq!(selected, expected);
    }
}

#[test]
fn the_gap_to_a_challenger_is_the_median_over_blocks_of_likelihoods() {
    let data = data(&[1, 2]);
    let setting = setting(&data, &[3, 4], None);
    let settings = RbcSettings {
        challenger: true,
        partition: Partition::new(48, 4, 0.5),
        block: 4,
        loss: Loss::SquaredError,
        tau_steps: 5,
        sigma: 0.2,
    };
    let mut rbc = Rbc::new(&setting, settings).unwrap();
    let policy = rbc.policies().save().unwrap();
    for step in 0..rbc.steps_afterwards() {
        rbc.step_afterwards(step, &[1e-2; 2]).unwrap();
    }
    let found = rbc.findings().unwrap().tau;
    let learners = learnt(&rbc);
    // The policy stood still, the challenger did not.
    assert_eq!(learners[0].networks, policy);
    assert_eq!((learners[0].steps, learners[1].steps), (0, 5));
    for (member, found) in found.into_iter().enumerate() {
        let order = setting.streams[member].child("partition", 0).permutation(SAMPLES);
        let errors: Vec<Vec<f32>> = learners
            .iter()
            .map(|state| {
                let layers = rbc.policies().saved_member(&state.networks, member).unwrap();
                Vec::try_from(Recorder::new(&layers).losses(&data, member, &order)).unwrap()
            })
            .collect();
        // −log density is Σᵢ rᵢ²/(2σ²) and a constant, the sum A times the error.
        let factor = data.widths[member].outputs as f64 / (2.0 * 0.04);
        let differences: Vec<f64> = errors[0]
            .iter()
            .zip(&errors[1])
            .map(|(policy, challenger)| factor * (f64::from(*policy) - f64::from(*challenger)))
            .collect();
        let mut means: Vec<f64> = differences
            .chunks(4)
            .map(|block| block.iter().sum::<f64>() / 4.0)
            .collect();
        means.sort_by(f64::total_cmp);
        assert!((found / means[7] - 1.0).abs() < 1e-3, "{found} for {}", means[7]);
    }
}

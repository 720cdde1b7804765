//! Single steps against the definition of their method, differentiated by LibTorch's recorder.

use provenir_nn::Shape;
use provenir_policy::{Activation, Layer};
use tch::{Device, Tensor};

use super::*;
use crate::bc::Bc;
use crate::data::Data;
use crate::method::Method;
use crate::partition::Partition;
use crate::rbc::{Rbc, RbcSettings};

const SAMPLES: usize = 60;

fn shape() -> Shape {
    Shape {
        inputs: 3,
        hidden: vec![11, 7],
        outputs: 2,
        activation: Activation::Relu,
    }
}

fn data(seeds: &[u64]) -> Data {
    let sets: Vec<Demonstrations> = seeds
        .iter()
        .map(|seed| with_outliers(demonstrations(SAMPLES, *seed), 9))
        .collect();
    let observations: Vec<&Matrix> = sets.iter().map(|demos| &demos.observation).collect();
    let actions: Vec<&Matrix> = sets.iter().map(|demos| &demos.action).collect();
    Data::new(&observations, &actions, Device::Cpu).unwrap()
}

fn streams(seeds: &[u64]) -> Vec<Stream> {
    seeds.iter().map(|seed| Stream::new(*seed, "train")).collect()
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
        let mut values = data.observations.index_select(0, &rows);
        for (depth, (weight, bias)) in self.0.iter().enumerate() {
            values = values.matmul(&weight.tr()) + bias;
            if depth + 1 < self.0.len() {
                values = values.relu();
            }
        }
        (values - data.actions.index_select(0, &rows))
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

/// The gradient of the first step, out of Adam's mean of gradients: a tenth of it.
fn first_gradient(method: &mut dyn Method, learner: usize, member: usize) -> Vec<f64> {
    let state = method.learners()[learner].save().unwrap();
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
    let (data, streams) = (data(&[1, 2]), streams(&[3, 4]));
    // Two batches of 25, and one of 10: the gradient of the first step is that of the first batch.
    for within in [0, 2] {
        let mut bc = Bc::new(&shape(), &data, &streams, 25, None).unwrap();
        let before: Vec<Vec<Layer>> = (0..2)
            .map(|member| bc.policies().member(member).unwrap())
            .collect();
        bc.begin_epoch(6).unwrap();
        let trace = bc.step(within, 0, &[1e-3, 1e-3]).unwrap();
        for member in 0..2 {
            let order = streams[member].child("order", 6).permutation(SAMPLES);
            let batch = &order[25 * within..(25 * within + 25).min(SAMPLES)];
            let recorder = Recorder::new(&before[member]);
            let loss = recorder.losses(&data, member, batch).mean(None);
            assert!((trace.loss.double_value(&[member as i64]) / loss.double_value(&[]) - 1.0).abs() < 1e-5);
            let expected = recorder.gradient(&loss);
            assert_close(&first_gradient(&mut bc, 0, member), &expected);
            let norm = expected.iter().map(|value| value * value).sum::<f64>().sqrt();
            assert!((trace.norm.double_value(&[member as i64]) / norm - 1.0).abs() < 1e-5);
        }
    }
}

#[test]
fn a_step_of_median_of_means_follows_the_mean_of_the_middle_blocks() {
    let (data, streams) = (data(&[1, 2]), streams(&[3, 4]));
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
            clip: None,
        };
        let mut rbc = Rbc::new(&shape(), &data, &streams, settings).unwrap();
        let before: Vec<Vec<Vec<Layer>>> = rbc
            .learners()
            .iter()
            .map(|learner| {
                (0..2)
                    .map(|member| learner.ensemble.member(member).unwrap())
                    .collect()
            })
            .collect();
        assert_eq!(before.len(), if challenger { 2 } else { 1 });
        let trace = rbc.step(0, 17, &[1e-3, 1e-3]).unwrap();
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
            assert!((trace.median.as_ref().unwrap().double_value(&[member as i64]) - median).abs() < 1e-6);
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
                    let found = trace.loss.double_value(&[member as i64]);
                    assert!((found / loss.double_value(&[]) - 1.0).abs() < 1e-5);
                }
                assert_close(&first_gradient(&mut rbc, index, member), &player.gradient(&loss));
            }
            let counts = rbc.counts().unwrap();
            let mut expected = vec![(0, 0); SAMPLES];
            for sample in &samples {
                expected[*sample].0 = 1;
            }
            for place in middle.iter().flatten() {
                expected[samples[*place]].1 = 1;
            }
            for (sample, expected) in expected.into_iter().enumerate() {
                let index = member * SAMPLES + sample;
                assert_eq!((counts.drawn[index], counts.selected[index]), expected);
            }
        }
    }
}

#[test]
fn a_policy_learns_the_same_bits_alone_and_in_company() {
    let learn = |seeds: &[u64], robust: bool| {
        let (data, streams) = (data(seeds), streams(seeds));
        let settings = RbcSettings {
            challenger: true,
            partition: Partition::new(50, 3, 0.4),
            clip: Some(0.1),
        };
        let mut method: Box<dyn Method> = if robust {
            Box::new(Rbc::new(&shape(), &data, &streams, settings).unwrap())
        } else {
            Box::new(Bc::new(&shape(), &data, &streams, 25, Some(0.1)).unwrap())
        };
        for epoch in 0..3 {
            method.begin_epoch(epoch).unwrap();
            for within in 0..3 {
                let rates = vec![1e-2; seeds.len()];
                let _ = method.step(within, epoch * 3 + within as u64, &rates).unwrap();
            }
        }
        (0..seeds.len())
            .map(|member| method.policies().member(member).unwrap())
            .collect::<Vec<_>>()
    };
    for robust in [false, true] {
        let together = learn(&[1, 2, 3], robust);
        for (index, seed) in [1, 2, 3].into_iter().enumerate() {
            assert_eq!(learn(&[seed], robust)[0], together[index]);
        }
    }
}

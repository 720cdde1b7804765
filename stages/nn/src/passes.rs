use provenir_policy::Activation;
use tch::{Device, Kind, Tensor};

use crate::shape::ALIGNMENT;
use crate::{Ensemble, Gradient, NnError};

/// What the networks compute for B samples each: the input, what every hidden layer gave, and the output.
pub struct Forward {
    activation: Activation,
    /// The input and what the hidden layers gave, `[K, B, width]`.
    activations: Vec<Tensor>,
    /// `[K, B, out]`
    output: Tensor,
}

/// The way back: gradients by what goes into each layer's activation.
pub struct Backward {
    /// `[K, B, width]` of each hidden layer and of the output.
    deltas: Vec<Tensor>,
}

/// `[K, B, width]`, of which each network's part is contiguous and starts at a boundary of [`ALIGNMENT`].
fn buffer(members: usize, rows: usize, width: usize, device: Device) -> Result<Tensor, NnError> {
    let length = rows * width;
    let aligned = length.next_multiple_of(ALIGNMENT);
    let flat = Tensor::f_zeros([members as i64, aligned as i64], (Kind::Float, device))?;
    Ok(flat
        .f_narrow(1, 0, length as i64)?
        .f_view([members as i64, rows as i64, width as i64])?)
}

impl Forward {
    /// Buffers for `rows` samples a network.
    pub fn new(ensemble: &Ensemble, rows: usize) -> Result<Self, NnError> {
        let shape = ensemble.shape();
        let buffer = |width| buffer(ensemble.members(), rows, width, ensemble.device());
        Ok(Self {
            activation: shape.activation,
            activations: std::iter::once(&shape.inputs)
                .chain(&shape.hidden)
                .map(|width| buffer(*width))
                .collect::<Result<_, _>>()?,
            output: buffer(shape.outputs)?,
        })
    }

    /// B.
    pub fn rows(&self) -> usize {
        self.output.size()[1] as usize
    }

    /// The input, `[K, B, in]`: to be filled before [`Forward::run`].
    pub fn input(&self) -> &Tensor {
        &self.activations[0]
    }

    /// The output of the last run, `[K, B, out]`.
    pub fn output(&self) -> &Tensor {
        &self.output
    }

    /// What goes into the last layer, `[K, B, width]`.
    pub fn features(&self) -> &Tensor {
        &self.activations[self.activations.len() - 1]
    }

    /// Fills the input with rows of `data` (`[samples, in]`); `index` holds K · B of them, network after network.
    pub fn load(&mut self, data: &Tensor, index: &Tensor) -> Result<(), NnError> {
        select_rows(data, index, &self.activations[0])
    }

    /// Computes the output of every network for the input.
    pub fn run(&mut self, ensemble: &Ensemble) -> Result<(), NnError> {
        for (depth, (weight, bias)) in ensemble.layers().enumerate() {
            let output = self.activations.get(depth + 1).unwrap_or(&self.output);
            let mut output = bias.f_baddbmm_out(output, &self.activations[depth], weight)?;
            if depth + 1 < self.activations.len() {
                let _ = match self.activation {
                    Activation::Relu => output.f_relu_()?,
                    Activation::Tanh => output.f_tanh_()?,
                };
            }
        }
        Ok(())
    }

    /// Takes over input, hidden layers and output of some of the samples of another pass, without computing them
    /// again; `index` holds K · B rows of the K · B′ there, counted through.
    pub fn gather(&mut self, all: &Self, index: &Tensor) -> Result<(), NnError> {
        let pairs = all.activations.iter().zip(&self.activations);
        for (from, to) in pairs.chain([(&all.output, &self.output)]) {
            let (members, rows, width) = from.size3()?;
            select_rows(&from.f_reshape([members * rows, width])?, index, to)?;
        }
        Ok(())
    }
}

/// `to` (`[K, B, width]`) becomes the rows of `from` (`[samples, width]`) that `index` (`[K · B]`) names.
pub fn select_rows(from: &Tensor, index: &Tensor, to: &Tensor) -> Result<(), NnError> {
    let (members, rows, width) = to.size3()?;
    if to.is_contiguous() {
        let _ = from.f_index_select_out(&to.f_view([members * rows, width])?, 0, index)?;
        return Ok(());
    }
    let selected = from.f_index_select(0, index)?.f_view([members, rows, width])?;
    to.shallow_clone().f_copy_(&selected)?;
    Ok(())
}

impl Backward {
    /// Buffers for `rows` samples a network.
    pub fn new(ensemble: &Ensemble, rows: usize) -> Result<Self, NnError> {
        let shape = ensemble.shape();
        Ok(Self {
            deltas: shape
                .hidden
                .iter()
                .chain([&shape.outputs])
                .map(|width| buffer(ensemble.members(), rows, *width, ensemble.device()))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The gradient of the loss by the output, `[K, B, out]`: to be filled before [`Backward::run`].
    pub fn output(&self) -> &Tensor {
        &self.deltas[self.deltas.len() - 1]
    }

    /// Computes the gradient of the loss by all parameters; overwrites `gradient`.
    ///
    /// Written by hand rather than recorded: the results go straight into the flat gradient, every buffer is used
    /// again, and there is no graph to build.
    pub fn run(
        &mut self,
        ensemble: &Ensemble,
        forward: &Forward,
        gradient: &mut Gradient,
    ) -> Result<(), NnError> {
        self.run_with(ensemble, forward, None, gradient)
    }

    /// As [`Backward::run`] of a loss that depends on what goes into the last layer, too; `features` is the gradient by
    /// that, beside what comes through the layer.
    pub fn run_with(
        &mut self,
        ensemble: &Ensemble,
        forward: &Forward,
        features: Option<&Tensor>,
        gradient: &mut Gradient,
    ) -> Result<(), NnError> {
        let last = self.deltas.len() - 1;
        let layers = ensemble.layers().zip(gradient.layers()).enumerate().rev();
        for (depth, ((weight, _), (weight_gradient, bias_gradient))) in layers {
            let (input, delta) = (&forward.activations[depth], &self.deltas[depth]);
            let _ = input.f_transpose(1, 2)?.f_bmm_out(weight_gradient, delta)?;
            let _ = delta.f_sum_intlist_out(bias_gradient, 1, true, Kind::Float)?;
            if depth > 0 {
                self.pass(depth, weight, forward, features.filter(|_| depth == last))?;
            }
        }
        Ok(())
    }

    /// Computes the gradient of the loss by the input alone, `[K, B, in]`.
    pub fn run_to_input(
        &mut self,
        ensemble: &Ensemble,
        forward: &Forward,
        gradient: &Tensor,
    ) -> Result<(), NnError> {
        for (depth, (weight, _)) in ensemble.layers().enumerate().rev() {
            if depth > 0 {
                self.pass(depth, weight, forward, None)?;
            } else {
                let _ = self.deltas[0].f_bmm_out(gradient, &weight.f_transpose(1, 2)?)?;
            }
        }
        Ok(())
    }

    /// From a layer's delta, and what else is known of the gradient by its input, to the delta of the layer before it.
    fn pass(
        &self,
        depth: usize,
        weight: &Tensor,
        forward: &Forward,
        more: Option<&Tensor>,
    ) -> Result<(), NnError> {
        let (input, below) = (&forward.activations[depth], &self.deltas[depth - 1]);
        let weight = weight.f_transpose(1, 2)?;
        let _ = match more {
            None => self.deltas[depth].f_bmm_out(below, &weight)?,
            Some(more) => more.f_baddbmm_out(below, &self.deltas[depth], &weight)?,
        };
        let _ = match forward.activation {
            Activation::Relu => input.f_threshold_backward_grad_input(below, below, 0.0)?,
            Activation::Tanh => Tensor::f_tanh_backward_grad_input(below, below, input)?,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use provenir_policy::{About, ActionMap, Policy, Squash};

    use super::*;
    use crate::testing::{Learner, bits, normal, shape, streams};

    /// Largest difference in proportion to the largest value.
    fn difference(left: &Tensor, right: &Tensor) -> f64 {
        ((left - right).abs().max() / right.abs().max()).double_value(&[])
    }

    /// LibTorch's recorded differentiation, from the same values.
    fn recorded(ensemble: &Ensemble, input: &Tensor, target: &Tensor) -> (Tensor, Vec<(Tensor, Tensor)>) {
        let leaves: Vec<(Tensor, Tensor)> = ensemble
            .layers()
            .map(|(weight, bias)| {
                (
                    weight.copy().set_requires_grad(true),
                    bias.copy().set_requires_grad(true),
                )
            })
            .collect();
        let mut values = input.shallow_clone();
        for (depth, (weight, bias)) in leaves.iter().enumerate() {
            values = values.matmul(weight) + bias;
            if depth + 1 < leaves.len() {
                values = match ensemble.shape().activation {
                    Activation::Relu => values.relu(),
                    Activation::Tanh => values.tanh(),
                };
            }
        }
        let loss = (values - target)
            .square()
            .mean_dim([1, 2].as_slice(), false, None);
        loss.sum(None).backward();
        let gradients = leaves
            .iter()
            .map(|(weight, bias)| (weight.grad(), bias.grad()))
            .collect();
        (loss.detach(), gradients)
    }

    #[test]
    fn the_gradient_is_that_of_recorded_differentiation() {
        for activation in [Activation::Relu, Activation::Tanh] {
            for hidden in [&[][..], &[7], &[33, 8, 20]] {
                let shape = shape(5, hidden, 3, activation);
                let mut learner = Learner::new(&shape, &streams(&[0, 1, 2]), 40).unwrap();
                let (input, target) = (normal(1, &[3, 40, 5]), normal(2, &[3, 40, 3]));
                let loss = learner.differentiate(&input, &target).unwrap();
                let (expected_loss, expected) = recorded(&learner.ensemble, &input, &target);
                assert!(difference(&loss, &expected_loss) < 1e-6);
                for ((weight, bias), (expected_weight, expected_bias)) in
                    learner.gradient.layers().zip(&expected)
                {
                    assert!(difference(weight, expected_weight) < 2e-6);
                    assert!(difference(bias, expected_bias) < 2e-6);
                }
            }
        }
    }

    /// The layers of a network in double precision: units, weights of each unit in turn, and biases.
    type Doubles = Vec<(usize, Vec<f64>, Vec<f64>)>;

    /// The number at that place among a layer's weights and, after them, its biases.
    fn number(layers: &mut Doubles, depth: usize, place: usize) -> &mut f64 {
        let (_, weights, bias) = &mut layers[depth];
        let count = weights.len();
        match place.checked_sub(count) {
            None => &mut weights[place],
            Some(place) => &mut bias[place],
        }
    }

    /// The output of a network.
    fn output(layers: &Doubles, activation: Activation, input: &[f64]) -> Vec<f64> {
        let mut values = input.to_vec();
        for (depth, (units, weights, bias)) in layers.iter().enumerate() {
            let sum = |unit: usize| -> f64 {
                let own = weights[unit * values.len()..].iter().zip(&values);
                own.map(|(weight, value)| weight * value).sum::<f64>() + bias[unit]
            };
            let sums = (0..*units).map(sum);
            values = match activation {
                _ if depth + 1 == layers.len() => sums.collect(),
                Activation::Relu => sums.map(|sum| sum.max(0.0)).collect(),
                Activation::Tanh => sums.map(f64::tanh).collect(),
            };
        }
        values
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences_in_double_precision() {
        const ROWS: i64 = 12;
        const STEP: f64 = 1e-6;
        let singles = |values: &[f32]| -> Vec<f64> { values.iter().copied().map(f64::from).collect() };
        for activation in [Activation::Relu, Activation::Tanh] {
            let shape = shape(5, &[9, 6], 3, activation);
            let mut learner = Learner::new(&shape, &streams(&[4, 5]), ROWS as usize).unwrap();
            let (input, target) = (normal(1, &[2, ROWS, 5]), normal(2, &[2, ROWS, 3]));
            let _ = learner.differentiate(&input, &target).unwrap();
            let gradients = Vec::<f32>::try_from(learner.gradient.flat().reshape(-1)).unwrap();
            let largest = singles(&gradients).into_iter().map(f64::abs).fold(0.0, f64::max);
            for member in 0..2 {
                let doubles = |tensor: &Tensor| -> Vec<f64> {
                    let own = tensor.get(member as i64).reshape(-1).to_kind(Kind::Double);
                    Vec::try_from(own).unwrap()
                };
                let (inputs, targets) = (doubles(&input), doubles(&target));
                let error = |layers: &Doubles| -> f64 {
                    let outputs = inputs
                        .chunks(5)
                        .flat_map(|input| output(layers, activation, input));
                    let squares = outputs
                        .zip(&targets)
                        .map(|(output, target)| (output - target).powi(2));
                    squares.sum::<f64>() / targets.len() as f64
                };
                let own = learner.ensemble.member(member).unwrap();
                let mut layers: Doubles = own
                    .iter()
                    .map(|layer| (layer.outputs(), singles(layer.weights()), singles(layer.bias())))
                    .collect();
                let found = learner.ensemble.saved_member(&gradients, member).unwrap();
                for (depth, found) in found.iter().enumerate() {
                    for (place, found) in found.weights().iter().chain(found.bias()).enumerate() {
                        let mut at = |change: f64| {
                            let before = *number(&mut layers, depth, place);
                            *number(&mut layers, depth, place) = before + change;
                            let error = error(&layers);
                            *number(&mut layers, depth, place) = before;
                            error
                        };
                        let expected = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                        assert!(
                            (f64::from(*found) - expected).abs() < 2e-6 * largest,
                            "{found} for {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_gradient_by_the_input_is_that_of_recorded_differentiation() {
        for activation in [Activation::Relu, Activation::Tanh] {
            for hidden in [&[][..], &[7], &[33, 8, 20]] {
                let shape = shape(5, hidden, 3, activation);
                let ensemble = Ensemble::initial(&shape, &streams(&[0, 1]), Device::Cpu).unwrap();
                let mut forward = Forward::new(&ensemble, 40).unwrap();
                let mut backward = Backward::new(&ensemble, 40).unwrap();
                let input = normal(1, &[2, 40, 5]).set_requires_grad(true);
                let loss_scale = normal(2, &[2, 40, 3]);
                let mut values = input.shallow_clone();
                for (depth, (weight, bias)) in ensemble.layers().enumerate() {
                    values = values.matmul(weight) + bias;
                    if depth < hidden.len() {
                        values = match activation {
                            Activation::Relu => values.relu(),
                            Activation::Tanh => values.tanh(),
                        };
                    }
                }
                (&values * &loss_scale).sum(None).backward();

                forward.input().shallow_clone().copy_(&input.detach());
                forward.run(&ensemble).unwrap();
                backward.output().shallow_clone().copy_(&loss_scale);
                let found = forward.input().zeros_like();
                backward.run_to_input(&ensemble, &forward, &found).unwrap();
                assert!(difference(&found, &input.grad()) < 2e-6);
            }
        }
    }

    #[test]
    fn a_member_computes_what_its_policy_does() {
        let shape = shape(6, &[30, 17], 2, Activation::Tanh);
        let ensemble = Ensemble::initial(&shape, &streams(&[0, 1]), Device::Cpu).unwrap();
        let mut forward = Forward::new(&ensemble, 50).unwrap();
        let data = normal(3, &[50, 6]);
        let rows: Vec<i64> = (0..50).chain(0..50).collect();
        forward.load(&data, &Tensor::from_slice(&rows)).unwrap();
        forward.run(&ensemble).unwrap();
        for member in 0..2 {
            let policy = Policy::new(
                ensemble.member(member).unwrap(),
                Activation::Tanh,
                None,
                ActionMap {
                    squash: Squash::Clip,
                    low: vec![-9.0; 2],
                    high: vec![9.0; 2],
                },
                About::default(),
            )
            .unwrap();
            let mut actions = vec![0.0; 100];
            let observations = Vec::<f32>::try_from(data.view(-1)).unwrap();
            policy.actor().act(&observations, &mut actions);
            let expected = Tensor::from_slice(&actions).view([50, 2]);
            assert!(difference(&forward.output().get(member as i64), &expected) < 1e-6);
        }
    }

    #[test]
    fn gathered_samples_are_those_of_the_whole_pass() {
        let shape = shape(4, &[9, 9], 2, Activation::Relu);
        let ensemble = Ensemble::initial(&shape, &streams(&[0, 1]), Device::Cpu).unwrap();
        let mut all = Forward::new(&ensemble, 6).unwrap();
        all.load(
            &normal(4, &[10, 4]),
            &Tensor::from_slice(&[9_i64, 1, 2, 3, 4, 5, 0, 7, 7, 2, 6, 8]),
        )
        .unwrap();
        all.run(&ensemble).unwrap();
        let mut some = Forward::new(&ensemble, 2).unwrap();
        some.gather(&all, &Tensor::from_slice(&[5_i64, 0, 6, 9])).unwrap();
        let pairs = all.activations.iter().zip(&some.activations);
        for (from, to) in pairs.chain([(&all.output, &some.output)]) {
            for (member, row, gathered_from) in [(0, 0, 5), (0, 1, 0), (1, 0, 0), (1, 1, 3)] {
                let expected = from.get(member).get(gathered_from);
                assert_eq!(bits(&to.get(member).get(row)), bits(&expected));
            }
        }
    }
}

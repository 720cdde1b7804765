use std::ops::Range;

use provenir_policy::Layer;
use provenir_random::Stream;
use tch::{Device, Kind, Tensor};

use crate::shape::Place;
use crate::{NnError, Shape, Widths};

/// K networks of one shape.
pub struct Ensemble {
    shape: Shape,
    places: Vec<Place>,
    /// How much of the shape each network uses, `[K]`.
    widths: Vec<Widths>,
    /// Components of each network's output, `[K, 1]`.
    components: Tensor,
    values: Rows,
}

/// The gradient of K networks: laid out like their parameters.
pub struct Gradient {
    values: Rows,
}

/// A row of values for each network, and views of its tensors.
struct Rows {
    /// `[K, P]`
    flat: Tensor,
    /// Of each layer, `[K, inputs, outputs]`.
    weights: Vec<Tensor>,
    /// Of each layer, `[K, 1, outputs]`.
    biases: Vec<Tensor>,
}

impl Rows {
    fn zeros(places: &[Place], members: usize, length: usize, device: Device) -> Result<Self, NnError> {
        let (members, length) = (members as i64, length as i64);
        let flat = Tensor::f_zeros([members, length], (Kind::Float, device))?;
        let view = |start: usize, rows: usize, columns: usize| -> Result<Tensor, NnError> {
            let (start, rows, columns) = (start as i64, rows as i64, columns as i64);
            Ok(flat
                .f_narrow(1, start, rows * columns)?
                .f_view([members, rows, columns])?)
        };
        let weights = places
            .iter()
            .map(|place| view(place.weight, place.inputs, place.outputs))
            .collect::<Result<_, _>>()?;
        let biases = places
            .iter()
            .map(|place| view(place.bias, 1, place.outputs))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            flat,
            weights,
            biases,
        })
    }

    /// Some of the rows: the same values.
    fn part(&self, members: &Range<usize>) -> Result<Self, NnError> {
        let (start, count) = (members.start as i64, members.len() as i64);
        let narrow = |tensor: &Tensor| tensor.f_narrow(0, start, count);
        Ok(Self {
            flat: narrow(&self.flat)?,
            weights: self.weights.iter().map(narrow).collect::<Result<_, _>>()?,
            biases: self.biases.iter().map(narrow).collect::<Result<_, _>>()?,
        })
    }
}

impl Ensemble {
    /// Networks at their initial values, one for each stream.
    ///
    /// Weights and biases of a layer are uniform within ±1/√inputs: PyTorch's default for linear layers
    /// (`kaiming_uniform` with a = √5 and its bias). Each layer draws from its own child of the network's stream: the
    /// weight row by row, then the bias.
    pub fn initial(shape: &Shape, streams: &[Stream], device: Device) -> Result<Self, NnError> {
        Self::padded(shape, &vec![shape.whole(); streams.len()], streams, device)
    }

    /// Networks of which each uses no more of the shape than these widths, at the initial values that they would have in an
    /// ensemble of a shape of just these widths.
    ///
    /// # Panics
    ///
    /// Where there are not as many widths as streams, or one exceeds the shape.
    pub fn padded(
        shape: &Shape,
        widths: &[Widths],
        streams: &[Stream],
        device: Device,
    ) -> Result<Self, NnError> {
        assert_eq!(widths.len(), streams.len(), "widths of each network");
        let mut ensemble = Self::zeros(shape, widths, device)?;
        ensemble.reinitialise(streams)?;
        Ok(ensemble)
    }

    fn zeros(shape: &Shape, widths: &[Widths], device: Device) -> Result<Self, NnError> {
        let within = |widths: &Widths| widths.inputs <= shape.inputs && widths.outputs <= shape.outputs;
        assert!(widths.iter().all(within), "widths within the shape");
        let (places, length) = shape.layout();
        let components: Vec<f32> = widths.iter().map(|widths| widths.outputs as f32).collect();
        Ok(Self {
            values: Rows::zeros(&places, widths.len(), length, device)?,
            components: Tensor::f_from_slice(&components)?
                .f_view([-1, 1])?
                .f_to_device(device)?,
            widths: widths.to_vec(),
            shape: shape.clone(),
            places,
        })
    }

    /// Brings the networks to initial values anew, as [`Ensemble::initial`] does.
    pub fn reinitialise(&mut self, streams: &[Stream]) -> Result<(), NnError> {
        let length = self.values.flat.size()[1] as usize;
        let mut values = vec![0.0; streams.len() * length];
        let networks = streams.iter().zip(&self.widths);
        for (row, (stream, widths)) in values.chunks_exact_mut(length).zip(networks) {
            let layers = self.places.iter().zip(self.shape.layers(*widths));
            for (index, (place, (inputs, outputs))) in layers.enumerate() {
                let mut stream = stream.child("layer", index as u64);
                let bound = 1.0 / (inputs as f64).sqrt();
                let mut fill = |start: usize, count: usize| {
                    for value in &mut row[start..start + count] {
                        *value = stream.uniform(-bound, bound) as f32;
                    }
                };
                for input in 0..inputs {
                    fill(place.weight + input * place.outputs, outputs);
                }
                fill(place.bias, outputs);
            }
        }
        self.load(&values)
    }

    /// Networks of which every weight is this number, and every bias 0.
    pub fn constant(shape: &Shape, members: usize, weight: f32, device: Device) -> Result<Self, NnError> {
        let ensemble = Self::zeros(shape, &vec![shape.whole(); members], device)?;
        for (layer, _) in ensemble.layers() {
            let _ = layer.shallow_clone().f_fill_(f64::from(weight))?;
        }
        Ok(ensemble)
    }

    /// Some of the networks: the same ones, which move where these do.
    ///
    /// # Panics
    ///
    /// Where there are no such networks.
    pub fn part(&self, members: &Range<usize>) -> Result<Self, NnError> {
        let components = self
            .components
            .f_narrow(0, members.start as i64, members.len() as i64)?;
        Ok(Self {
            shape: self.shape.clone(),
            places: self.places.clone(),
            widths: self.widths[members.clone()].to_vec(),
            components,
            values: self.values.part(members)?,
        })
    }

    /// What each network looks like.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How many components of its output each network uses, `[K, 1]`: always the same tensor.
    pub fn components(&self) -> &Tensor {
        &self.components
    }

    /// K.
    pub fn members(&self) -> usize {
        self.values.flat.size()[0] as usize
    }

    /// Where the networks are.
    pub fn device(&self) -> Device {
        self.values.flat.device()
    }

    /// A gradient for these networks, at zero.
    pub fn gradient(&self) -> Result<Gradient, NnError> {
        let length = self.values.flat.size()[1] as usize;
        Ok(Gradient {
            values: Rows::zeros(&self.places, self.members(), length, self.device())?,
        })
    }

    /// Everything that is learnt, network after network: what [`Ensemble::load`] takes back.
    pub fn save(&self) -> Result<Vec<f32>, NnError> {
        to_host(&self.values.flat)
    }

    /// Takes back what [`Ensemble::save`] gave.
    pub fn load(&mut self, values: &[f32]) -> Result<(), NnError> {
        from_host(&mut self.values.flat, values, "networks")
    }

    /// Moves every parameter by a share of the way to that of networks of the same shape.
    pub fn approach(&mut self, other: &Self, share: f64) -> Result<(), NnError> {
        let _ = self.values.flat.f_lerp_(&other.values.flat, share)?;
        Ok(())
    }

    /// The layers of one network, from input to output, as wide as it uses them.
    ///
    /// # Panics
    ///
    /// Where there is no such network.
    pub fn member(&self, member: usize) -> Result<Vec<Layer>, NnError> {
        self.network(member, &to_host(&self.values.flat.f_get(member as i64)?)?)
    }

    /// The layers of one network among values that [`Ensemble::save`] gave.
    ///
    /// # Panics
    ///
    /// Where they hold no such network.
    pub fn saved_member(&self, saved: &[f32], member: usize) -> Result<Vec<Layer>, NnError> {
        let length = self.values.flat.size()[1] as usize;
        self.network(member, &saved[member * length..][..length])
    }

    fn network(&self, member: usize, row: &[f32]) -> Result<Vec<Layer>, NnError> {
        let layers = self.places.iter().zip(self.shape.layers(self.widths[member]));
        layers
            .map(|(place, (inputs, outputs))| {
                let weight = &row[place.weight..][..inputs * place.outputs];
                let transposed = (0..outputs)
                    .flat_map(|output| weight.iter().skip(output).step_by(place.outputs).copied())
                    .collect();
                let bias = row[place.bias..][..outputs].to_vec();
                Ok(Layer::new(inputs, outputs, transposed, bias)?)
            })
            .collect()
    }

    /// `[K, P]`
    pub(crate) fn flat(&self) -> &Tensor {
        &self.values.flat
    }

    /// Weight, `[K, inputs, outputs]`, and bias, `[K, 1, outputs]`, of each layer.
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = (&Tensor, &Tensor)> + ExactSizeIterator {
        self.values.weights.iter().zip(&self.values.biases)
    }
}

impl Gradient {
    /// All values, network after network, laid out as [`Ensemble::save`] lays out what they are derivatives by.
    pub fn save(&self) -> Result<Vec<f32>, NnError> {
        to_host(&self.values.flat)
    }

    /// `[K, P]`
    pub(crate) fn flat(&self) -> &Tensor {
        &self.values.flat
    }

    /// Weight, `[K, inputs, outputs]`, and bias, `[K, 1, outputs]`, of each layer.
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = (&Tensor, &Tensor)> + ExactSizeIterator {
        self.values.weights.iter().zip(&self.values.biases)
    }
}

/// The values of a tensor of floats, in row-major order.
pub(crate) fn to_host(tensor: &Tensor) -> Result<Vec<f32>, NnError> {
    let mut values = vec![0.0; tensor.numel()];
    let count = values.len();
    tensor.f_contiguous()?.f_copy_data(&mut values, count)?;
    Ok(values)
}

/// Overwrites a tensor of floats.
pub(crate) fn from_host(tensor: &mut Tensor, values: &[f32], what: &'static str) -> Result<(), NnError> {
    if values.len() != tensor.numel() {
        return Err(NnError::Length {
            what,
            expected: tensor.numel(),
            found: values.len(),
        });
    }
    let source = Tensor::f_from_slice(values)?.f_view(tensor.size().as_slice())?;
    tensor.f_copy_(&source)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use provenir_policy::Activation;

    use super::*;
    use crate::testing::{Learner, bits, normal, shape, streams};

    #[test]
    fn initial_values_are_uniform_within_one_over_root_inputs() {
        let shape = shape(100, &[400, 25], 3, Activation::Relu);
        let ensemble = Ensemble::initial(&shape, &streams(&[0, 1]), Device::Cpu).unwrap();
        let layers = ensemble.member(1).unwrap();
        assert_ne!(layers, ensemble.member(0).unwrap());
        for layer in layers {
            let bound = 1.0 / (layer.inputs() as f64).sqrt();
            for values in [layer.weights(), layer.bias()] {
                let values: Vec<f64> = values.iter().map(|value| f64::from(*value) / bound).collect();
                assert!(values.iter().all(|value| value.abs() <= 1.0));
                // The mean of n values uniform within ±1 has a variance of 1/(3n), that of their squares of 4/(45n).
                let count = values.len() as f64;
                let mean = values.iter().sum::<f64>() / count;
                let square = values.iter().map(|value| value * value).sum::<f64>() / count;
                assert!(mean.abs() < 5.0 / (3.0 * count).sqrt(), "{mean}");
                assert!(
                    (square - 1.0 / 3.0).abs() < 10.0 / (45.0 * count).sqrt(),
                    "{square}"
                );
            }
        }
    }

    #[test]
    fn a_network_learns_the_same_bits_alone_and_in_company() {
        // The third has the narrow layers whose products are computed in another way where their rows start elsewhere.
        for (hidden, rows) in [
            (&[64, 64][..], 64),
            (&[100, 37], 61),
            (&[11, 7], 25),
            (&[256, 256, 256], 256),
        ] {
            let shape = shape(16, hidden, 3, Activation::Relu);
            let (input, target) = (normal(5, &[4, rows as i64, 16]), normal(6, &[4, rows as i64, 3]));
            let train = |numbers: &[u64]| {
                let mut learner = Learner::new(&shape, &streams(numbers), rows).unwrap();
                let chosen: Vec<i64> = numbers.iter().map(|number| *number as i64).collect();
                let index = Tensor::from_slice(&chosen);
                let (input, target) = (input.index_select(0, &index), target.index_select(0, &index));
                let rates: Vec<f64> = numbers.iter().map(|number| 1e-3 * (*number + 1) as f64).collect();
                for _ in 0..5 {
                    let _ = learner.differentiate(&input, &target).unwrap();
                    let _ = learner.adam.step(&rates, Some(0.1)).unwrap();
                }
                learner.ensemble
            };
            let together = train(&[0, 1, 2, 3]);
            for number in 0..4 {
                let alone = train(&[number]);
                assert_eq!(
                    bits(&alone.flat().get(0)),
                    bits(&together.flat().get(number as i64))
                );
            }
        }
    }

    #[test]
    fn networks_of_other_widths_start_and_learn_as_in_a_shape_of_their_own() {
        let padded = shape(32, &[24, 16], 8, Activation::Relu);
        let widths = [(16, 3), (29, 8), (5, 1)].map(|(inputs, outputs)| Widths { inputs, outputs });
        let (input, target) = (normal(5, &[3, 40, 32]), normal(6, &[3, 40, 8]));
        for (member, widths) in (0..).zip(&widths) {
            for (tensor, used) in [(&input, widths.inputs as i64), (&target, widths.outputs as i64)] {
                let _ = tensor.get(member).slice(1, used, None, 1).zero_();
            }
        }
        let mut together = Learner::padded(&padded, &widths, &streams(&[0, 1, 2]), 40).unwrap();
        let mut alone: Vec<Learner> = (0..)
            .zip(&widths)
            .map(|(number, widths)| {
                let own = shape(widths.inputs, &[24, 16], widths.outputs, Activation::Relu);
                Learner::new(&own, &streams(&[number]), 40).unwrap()
            })
            .collect();
        for (member, alone) in alone.iter().enumerate() {
            assert_eq!(
                together.ensemble.member(member).unwrap(),
                alone.ensemble.member(0).unwrap()
            );
        }
        for _ in 0..20 {
            let losses = together.differentiate(&input, &target).unwrap();
            let norms = together.adam.step(&[1e-3; 3], Some(0.1)).unwrap();
            for (member, (alone, widths)) in (0..).zip(alone.iter_mut().zip(&widths)) {
                let used =
                    |tensor: &Tensor, width: usize| tensor.narrow(0, member, 1).narrow(2, 0, width as i64);
                let (input, target) = (used(&input, widths.inputs), used(&target, widths.outputs));
                let loss = alone.differentiate(&input, &target).unwrap();
                let norm = alone.adam.step(&[1e-3], Some(0.1)).unwrap();
                for (found, expected) in [(&losses, loss), (&norms, norm)] {
                    let ratio = found.double_value(&[member]) / expected.double_value(&[0]);
                    assert!((ratio - 1.0).abs() < 1e-4, "{ratio}");
                }
            }
        }
        for (member, alone) in alone.iter().enumerate() {
            let layers = together.ensemble.member(member).unwrap();
            for (found, expected) in layers.iter().zip(alone.ensemble.member(0).unwrap()) {
                assert_eq!(
                    (found.inputs(), found.outputs()),
                    (expected.inputs(), expected.outputs())
                );
                let pairs = found.weights().iter().chain(found.bias());
                for (found, expected) in pairs.zip(expected.weights().iter().chain(expected.bias())) {
                    assert!((found - expected).abs() < 2e-5, "{found} for {expected}");
                }
            }
        }
        let (mean, square, _) = together.adam.save().unwrap();
        let gradient = together.gradient.save().unwrap();
        for values in [together.ensemble.save().unwrap(), gradient, mean, square] {
            for (row, widths) in values.chunks(values.len() / 3).zip(&widths) {
                let mut is_used = vec![false; row.len()];
                let layers = together.ensemble.places.iter().zip(padded.layers(*widths));
                for (place, (inputs, outputs)) in layers {
                    for input in 0..inputs {
                        is_used[place.weight + input * place.outputs..][..outputs].fill(true);
                    }
                    is_used[place.bias..][..outputs].fill(true);
                }
                let mut unused = row.iter().zip(is_used).filter(|(_, is_used)| !is_used);
                assert!(unused.all(|(value, _)| *value == 0.0));
            }
        }
    }

    #[test]
    fn a_part_of_an_ensemble_is_the_same_networks() {
        let shape = shape(6, &[5], 4, Activation::Relu);
        let widths = [(6, 4), (2, 1), (3, 4), (5, 2)].map(|(inputs, outputs)| Widths { inputs, outputs });
        let mut all = Ensemble::padded(&shape, &widths, &streams(&[0, 1, 2, 3]), Device::Cpu).unwrap();
        let part = all.part(&(1..3)).unwrap();
        // Afterwards, too.
        all.reinitialise(&streams(&[4, 5, 6, 7])).unwrap();
        assert_eq!(part.members(), 2);
        for member in 0..2 {
            assert_eq!(part.member(member).unwrap(), all.member(1 + member).unwrap());
            let layers = part.layers().zip(all.layers());
            for ((weight, bias), (all_weight, all_bias)) in layers {
                let of_all = |tensor: &Tensor| bits(&tensor.get(1 + member as i64));
                assert_eq!(bits(&weight.get(member as i64)), of_all(all_weight));
                assert_eq!(bits(&bias.get(member as i64)), of_all(all_bias));
            }
        }
        assert_eq!(
            Vec::<f32>::try_from(part.components().view(-1)).unwrap(),
            [1.0, 4.0]
        );
    }

    #[test]
    fn networks_approach_others_by_a_share_of_the_way() {
        let shape = shape(3, &[5], 2, Activation::Relu);
        let ensemble =
            |number| Ensemble::initial(&shape, &streams(&[number, number + 1]), Device::Cpu).unwrap();
        let (mut moved, start, end) = (ensemble(0), ensemble(0), ensemble(5));
        moved.approach(&end, 0.25).unwrap();
        let [moved, start, end] = [moved, start, end].map(|ensemble| ensemble.save().unwrap());
        for ((moved, start), end) in moved.iter().zip(&start).zip(&end) {
            assert!((moved - (0.75 * start + 0.25 * end)).abs() < 1e-6);
        }
    }

    #[test]
    fn saved_values_come_back_and_others_are_refused() {
        let shape = shape(3, &[5], 2, Activation::Tanh);
        let saved = Ensemble::initial(&shape, &streams(&[0]), Device::Cpu)
            .unwrap()
            .save()
            .unwrap();
        let mut other = Ensemble::initial(&shape, &streams(&[1]), Device::Cpu).unwrap();
        assert_ne!(other.save().unwrap(), saved);
        other.load(&saved).unwrap();
        assert_eq!(other.save().unwrap(), saved);
        assert_eq!(other.saved_member(&saved, 0).unwrap(), other.member(0).unwrap());
        let error = other.load(&saved[1..]).unwrap_err().to_string();
        assert_eq!(error, "networks: 64 values are needed, 63 were given");
    }
}

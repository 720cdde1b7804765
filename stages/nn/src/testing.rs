//! What the tests of several modules use.

use provenir_policy::Activation;
use provenir_random::Stream;
use tch::{Device, Tensor};

use crate::device::set_threads;
use crate::{
    Adam, AdamSettings, Backward, Ensemble, Forward, Gradient, NnError, Shape, Widths, squared_error,
};

pub(crate) fn shape(inputs: usize, hidden: &[usize], outputs: usize, activation: Activation) -> Shape {
    Shape {
        inputs,
        hidden: hidden.to_vec(),
        outputs,
        activation,
    }
}

/// One stream for each of these numbers.
pub(crate) fn streams(numbers: &[u64]) -> Vec<Stream> {
    let root = Stream::new(11, "networks");
    numbers
        .iter()
        .map(|number| root.child("network", *number))
        .collect()
}

/// Standard normal values.
pub(crate) fn normal(seed: u64, shape: &[i64]) -> Tensor {
    let mut stream = Stream::new(seed, "data");
    let count: i64 = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|_| stream.normal() as f32).collect();
    Tensor::from_slice(&values).view(shape)
}

/// The bits of a tensor's values.
pub(crate) fn bits(tensor: &Tensor) -> Vec<u32> {
    let tensor = tensor.contiguous().view(-1);
    Vec::<f32>::try_from(tensor)
        .unwrap()
        .into_iter()
        .map(f32::to_bits)
        .collect()
}

/// Networks that learn by least squares.
pub(crate) struct Learner {
    pub(crate) ensemble: Ensemble,
    pub(crate) gradient: Gradient,
    pub(crate) adam: Adam,
    pub(crate) forward: Forward,
    backward: Backward,
}

impl Learner {
    pub(crate) fn new(shape: &Shape, streams: &[Stream], rows: usize) -> Result<Self, NnError> {
        Self::padded(shape, &vec![shape.whole(); streams.len()], streams, rows)
    }

    /// Of networks that use no more than these widths.
    pub(crate) fn padded(
        shape: &Shape,
        widths: &[Widths],
        streams: &[Stream],
        rows: usize,
    ) -> Result<Self, NnError> {
        set_threads(1);
        let ensemble = Ensemble::padded(shape, widths, streams, Device::Cpu)?;
        let gradient = ensemble.gradient()?;
        Ok(Self {
            adam: Adam::new(&ensemble, &gradient, AdamSettings::default())?,
            forward: Forward::new(&ensemble, rows)?,
            backward: Backward::new(&ensemble, rows)?,
            gradient,
            ensemble,
        })
    }

    /// Sets the gradient of the mean squared error on these inputs `[K, B, in]` and targets `[K, B, out]`, and gives the
    /// error of each network.
    pub(crate) fn differentiate(&mut self, input: &Tensor, target: &Tensor) -> Result<Tensor, NnError> {
        self.forward.input().shallow_clone().copy_(input);
        self.forward.run(&self.ensemble)?;
        let delta = self.backward.output().shallow_clone();
        let components = self.ensemble.components();
        let loss = squared_error(self.forward.output(), target, components, &delta)?.mean_dim(1, false, None);
        let rows = target.size()[1] as f64;
        let slopes = (components * rows).reciprocal() * 2.0;
        let _ = delta.shallow_clone().g_mul_(&slopes.unsqueeze(2));
        self.backward
            .run(&self.ensemble, &self.forward, &mut self.gradient)?;
        Ok(loss)
    }
}

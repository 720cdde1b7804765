use provenir_policy::Activation;

/// What a network looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Width of the input.
    pub inputs: usize,
    /// Widths of the hidden layers.
    pub hidden: Vec<usize>,
    /// Width of the output.
    pub outputs: usize,
    /// Activation of the hidden layers; the output layer is linear.
    pub activation: Activation,
}

/// Where a linear layer lies in a network's row of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// Start of the weight, row-major `[inputs, outputs]`.
    pub(crate) weight: usize,
    /// Start of the bias.
    pub(crate) bias: usize,
}

/// Floats in 64 bytes. What belongs to a network starts at such a boundary, parameters as well as what passes through it, so
/// that matrix kernels, which choose their path by alignment, compute the same bits for a network whatever its place in an
/// ensemble.
pub(crate) const ALIGNMENT: usize = 16;

/// A row is a multiple of this many floats, and so is every part of it that the optimiser treats at a time: vector kernels
/// then have no odd values left to treat in another way.
pub(crate) const COLUMNS: usize = 64;

impl Shape {
    /// Widths from input to output.
    fn widths(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.inputs)
            .chain(self.hidden.iter().copied())
            .chain(std::iter::once(self.outputs))
    }

    /// The linear layers, and the length of a row that holds them. What lies between tensors is zero, and stays so.
    pub(crate) fn layout(&self) -> (Vec<Place>, usize) {
        let mut end = 0;
        let mut place = |length: usize| {
            let start = end;
            end += length.next_multiple_of(ALIGNMENT);
            start
        };
        let places = self
            .widths()
            .zip(self.widths().skip(1))
            .map(|(inputs, outputs)| Place {
                inputs,
                outputs,
                weight: place(inputs * outputs),
                bias: place(outputs),
            })
            .collect();
        (places, end.next_multiple_of(COLUMNS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_aligned_and_do_not_overlap() {
        let shape = Shape {
            inputs: 5,
            hidden: vec![7, 3],
            outputs: 2,
            activation: Activation::Relu,
        };
        let (places, length) = shape.layout();
        let mut end = 0;
        for (place, (inputs, outputs)) in places.iter().zip([(5, 7), (7, 3), (3, 2)]) {
            assert_eq!((place.inputs, place.outputs), (inputs, outputs));
            for (start, size) in [(place.weight, inputs * outputs), (place.bias, outputs)] {
                assert!(start >= end && start % ALIGNMENT == 0);
                end = start + size;
            }
        }
        assert!(length >= end && length % COLUMNS == 0);
    }
}

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

/// How much of its shape's input and output a network uses: networks of different widths in one ensemble have the shape of
/// a wider one.
///
/// Beyond its widths a network's parameters are 0. So are their gradient and its means, and parameters stay what they are, as
/// long as whoever uses it keeps to it: what goes in there is 0, and so is the gradient by what comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Width of the input.
    pub inputs: usize,
    /// Width of the output.
    pub outputs: usize,
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

/// A row is a multiple of this many floats: vector kernels that go over the rows of all networks then have no odd values left to
/// treat in another way.
pub(crate) const COLUMNS: usize = 64;

impl Shape {
    /// Those of a network that uses all of it.
    pub fn whole(&self) -> Widths {
        Widths {
            inputs: self.inputs,
            outputs: self.outputs,
        }
    }

    /// Inputs and outputs of each linear layer of a network with these widths.
    pub(crate) fn layers(&self, widths: Widths) -> impl Iterator<Item = (usize, usize)> {
        let from = std::iter::once(widths.inputs).chain(self.hidden.iter().copied());
        from.zip(self.hidden.iter().copied().chain([widths.outputs]))
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
            .layers(self.whole())
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

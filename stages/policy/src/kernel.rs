//! Affine layers over blocks of rows.
//!
//! Output `j` of a row is `(…((b_j + x_0 · w_j0) + x_1 · w_j1) + …)`: one multiplication and one addition after the
//! other in the order of the inputs, never fused. Vectors run across outputs and blocks across rows, neither of which
//! changes that order, so that every instruction set gives the same bits.

#![expect(
    clippy::inline_always,
    reason = "what is not inlined into the dispatched function is compiled without its instruction set"
)]

use pulp::Simd;

use crate::Layer;

/// Rows whose sums are held in registers at once.
const ROWS: usize = 4;

/// Vectors of outputs whose sums are held in registers at once. With 4 rows and the 16 registers of AVX2: eight sums,
/// two of weights, one of input, one of product.
const VECTORS: usize = 2;

/// A layer whose weights lie in the order in which a processor with vectors of `lanes` numbers reads them.
#[derive(Clone, Debug)]
pub(crate) struct PackedLayer {
    groups: Vec<PackedGroup>,
    /// Inputs and outputs of a group.
    inputs: usize,
    outputs: usize,
    width: usize,
}

/// The outputs of a group.
#[derive(Clone, Debug)]
struct PackedGroup {
    inputs: usize,
    /// Panels of `lanes · VECTORS` outputs; in each, the weights of the first input, then of the second, …. The outputs that
    /// are added to make whole panels have weights and biases of zero.
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl PackedLayer {
    pub(crate) fn new(layer: &Layer, lanes: usize) -> Self {
        let (inputs, outputs) = (layer.inputs() / layer.groups(), layer.outputs() / layer.groups());
        let weights = layer.weights().chunks_exact(inputs * outputs);
        let groups: Vec<_> = weights
            .zip(layer.bias().chunks_exact(outputs))
            .map(|(weights, bias)| PackedGroup::new(inputs, weights, bias, lanes))
            .collect();
        // What a group writes beyond its outputs, the next one writes over.
        let width = (layer.groups() - 1) * outputs + outputs.next_multiple_of(lanes * VECTORS);
        Self {
            groups,
            inputs,
            outputs,
            width,
        }
    }

    /// Distance between rows of the output.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Computes `rows` rows of output, `width` apart, from rows of input, `stride` apart.
    #[inline(always)]
    pub(crate) fn forward<S: Simd>(
        &self,
        simd: S,
        rows: usize,
        input: &[f32],
        stride: usize,
        output: &mut [f32],
    ) {
        for (index, group) in self.groups.iter().enumerate() {
            let input = &input[index * self.inputs..];
            let output = &mut output[index * self.outputs..];
            group.forward(simd, rows, input, stride, output, self.width);
        }
    }
}

impl PackedGroup {
    fn new(inputs: usize, rows: &[f32], bias: &[f32], lanes: usize) -> Self {
        let panel = lanes * VECTORS;
        let width = bias.len().next_multiple_of(panel);
        let mut weights = vec![0.0; width * inputs];
        let mut bias = bias.to_vec();
        bias.resize(width, 0.0);
        for (output, row) in rows.chunks_exact(inputs).enumerate() {
            let start = output / panel * panel * inputs + output % panel;
            for (input, weight) in row.iter().enumerate() {
                weights[start + input * panel] = *weight;
            }
        }
        Self {
            inputs,
            weights,
            bias,
        }
    }

    /// Rows of input are `stride` apart, rows of output `width`.
    #[inline(always)]
    fn forward<S: Simd>(
        &self,
        simd: S,
        rows: usize,
        input: &[f32],
        stride: usize,
        output: &mut [f32],
        width: usize,
    ) {
        let panel = S::F32_LANES * VECTORS;
        let panels = self
            .weights
            .chunks_exact(self.inputs * panel)
            .zip(self.bias.chunks_exact(panel));
        for (index, (weights, bias)) in panels.enumerate() {
            let weights = S::as_simd_f32s(weights).0.as_chunks::<VECTORS>().0;
            let bias = S::as_simd_f32s(bias).0.as_chunks::<VECTORS>().0[0];
            let mut row = 0;
            while row < rows {
                let input = &input[row * stride..];
                let output = &mut output[row * width + index * panel..];
                row += match rows - row {
                    1 => tile::<S, 1>(simd, weights, bias, input, stride, output, width),
                    2 => tile::<S, 2>(simd, weights, bias, input, stride, output, width),
                    3 => tile::<S, 3>(simd, weights, bias, input, stride, output, width),
                    _ => tile::<S, ROWS>(simd, weights, bias, input, stride, output, width),
                };
            }
        }
    }
}

/// One panel of outputs for `COUNT` rows; gives `COUNT`.
#[inline(always)]
fn tile<S: Simd, const COUNT: usize>(
    simd: S,
    weights: &[[S::f32s; VECTORS]],
    bias: [S::f32s; VECTORS],
    input: &[f32],
    stride: usize,
    output: &mut [f32],
    width: usize,
) -> usize {
    let rows: [&[f32]; COUNT] = std::array::from_fn(|row| &input[row * stride..][..weights.len()]);
    let mut sums = [bias; COUNT];
    for (place, weights) in weights.iter().enumerate() {
        for (row, sums) in rows.iter().zip(&mut sums) {
            let value = simd.splat_f32s(row[place]);
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum = simd.add_f32s(*sum, simd.mul_f32s(value, *weight));
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        let output = &mut output[row * width..][..S::F32_LANES * VECTORS];
        S::as_mut_simd_f32s(output).0.copy_from_slice(sums);
    }
    COUNT
}

//! Adam's step on a processor: one pass over memory, where LibTorch's operations take eight.
//!
//! Every number goes through the same operations in the same order, none of them fused, and sums are formed in an order of
//! their own, so that every instruction set gives the same bits.

#![expect(
    clippy::inline_always,
    reason = "what is not inlined into the dispatched function is compiled without its instruction set"
)]

use pulp::{Arch, Simd, WithSimd};
use tch::{Device, Kind, Tensor};

/// The numbers of a tensor, row after row.
///
/// # Panics
///
/// Where they are not contiguous floats in this process's memory.
///
/// # Safety
///
/// As long as they are borrowed, nobody looks at them through another tensor that shares them.
#[expect(
    unsafe_code,
    reason = "LibTorch gives out where a tensor's numbers are as a bare pointer"
)]
pub(super) unsafe fn floats(tensor: &mut Tensor) -> &mut [f32] {
    assert!(
        tensor.device() == Device::Cpu && tensor.kind() == Kind::Float && tensor.is_contiguous(),
        "contiguous floats in memory"
    );
    match tensor.numel() {
        0 => &mut [],
        // SAFETY: just checked, and the tensor owns that many floats there for as long as it is borrowed; for who else shares them the
        // caller answers.
        count => unsafe { std::slice::from_raw_parts_mut(tensor.data_ptr().cast(), count) },
    }
}

/// The norm of a row.
pub(super) fn norm(arch: Arch, row: &[f32]) -> f64 {
    arch.dispatch(Norm(row))
}

struct Norm<'a>(&'a [f32]);

impl WithSimd for Norm<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        /// Sums that grow side by side.
        const SUMS: usize = 16;
        let mut sums = [0.0_f64; SUMS];
        let (whole, rest) = self.0.as_chunks::<SUMS>();
        for values in whole {
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += f64::from(*value) * f64::from(*value);
            }
        }
        for (sum, value) in sums.iter_mut().zip(rest) {
            *sum += f64::from(*value) * f64::from(*value);
        }
        sums.iter().sum::<f64>().sqrt()
    }
}

/// What moves a network.
pub(super) struct Move<'a> {
    pub(super) parameters: &'a mut [f32],
    pub(super) gradient: &'a [f32],
    pub(super) mean: &'a mut [f32],
    pub(super) square: &'a mut [f32],
    /// What clipping multiplies the gradient by.
    pub(super) scale: f32,
    /// Shares of what is new in the two means, 1 − β.
    pub(super) shares: [f32; 2],
    /// rate · √(1 − β₂ᵗ) / (1 − β₁ᵗ)
    pub(super) rate: f32,
    /// ε · √(1 − β₂ᵗ)
    pub(super) epsilon: f32,
    /// What weight decay leaves of the parameters.
    pub(super) kept: f32,
}

impl Move<'_> {
    /// Takes the step.
    pub(super) fn take(self, arch: Arch) {
        arch.dispatch(self);
    }
}

impl WithSimd for Move<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self {
            parameters,
            gradient,
            mean,
            square,
            scale,
            shares,
            rate,
            epsilon,
            kept,
        } = self;
        let means = mean.iter_mut().zip(square);
        for ((parameter, gradient), (mean, square)) in parameters.iter_mut().zip(gradient).zip(means) {
            let gradient = gradient * scale;
            *mean += shares[0] * (gradient - *mean);
            *square += shares[1] * (gradient * gradient - *square);
            *parameter = *parameter * kept - rate * (*mean / (square.sqrt() + epsilon));
        }
    }
}

/// Numbers that are no further from 0 than `least` become 0.
pub(super) fn flush(arch: Arch, values: &mut [f32], least: f32) {
    arch.dispatch(Flush(values, least));
}

struct Flush<'a>(&'a mut [f32], f32);

impl WithSimd for Flush<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for value in self.0 {
            *value = if value.abs() > self.1 || value.is_nan() {
                *value
            } else {
                0.0
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use provenir_random::Stream;

    use super::*;

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let mut stream = Stream::new(3, "adam");
        // Whole vectors of every length, and what is left over.
        for length in [0, 1, 15, 16, 17, 64, 1000] {
            let mut normal = || -> Vec<f32> { (0..length).map(|_| stream.normal() as f32).collect() };
            let (parameters, gradient, mean) = (normal(), normal(), normal());
            let square: Vec<f32> = normal().into_iter().map(f32::abs).collect();
            let step = |arch: Arch| {
                let mut own = [parameters.clone(), mean.clone(), square.clone()];
                let [parameters, mean, square] = &mut own;
                let norm = norm(arch, &gradient);
                Move {
                    parameters,
                    gradient: &gradient,
                    mean,
                    square,
                    scale: 0.7,
                    shares: [0.1, 0.001],
                    rate: 3e-3,
                    epsilon: 1e-8,
                    kept: 0.99,
                }
                .take(arch);
                flush(arch, &mut own[1], 0.5);
                (
                    norm.to_bits(),
                    own.map(|row| row.into_iter().map(f32::to_bits).collect::<Vec<_>>()),
                )
            };
            assert_eq!(step(Arch::new()), step(Arch::Scalar), "{length}");
        }
    }

    #[test]
    fn what_is_next_to_nothing_becomes_nothing_and_what_is_no_number_stays() {
        let mut values = [1e-31, -1e-31, 1e-29, -1e-29, 0.0, f32::NAN, f32::INFINITY];
        flush(Arch::new(), &mut values, 1e-30);
        assert_eq!(values[..5], [0.0, 0.0, 1e-29, -1e-29, 0.0]);
        assert!(values[5].is_nan() && values[6].is_infinite());
    }
}

//! Losses of samples by their residuals, and what becomes of them on the way back.
//!
//! * `squared`: the squared error, which the others are functions of.
//! * `robust`: losses that grow more slowly.
//! * `contamination`: a Gaussian beside a uniform density.
//! * `deviations`: a Gaussian whose deviations are learnt.

mod contamination;
mod deviations;
mod robust;
mod squared;

pub use contamination::{Contamination, Responsibility};
pub use deviations::Deviations;
pub use robust::Robust;
pub use squared::squared_error;
use tch::Tensor;

/// A loss that is a function of each sample's squared error e (averaged over the components of the residual r).
///
/// Up to a positive factor that the loss says of itself, its gradient by the output is `weight · ∂e/∂output`: that of the
/// squared error, times the weight.
pub struct Judged {
    /// Loss of each sample, `[K, B]`.
    pub loss: Tensor,
    /// Weight of each sample within 0 and 1, `[K, B]`: 1 for the smallest residuals.
    pub weight: Tensor,
}

#[cfg(test)]
mod testing {
    use tch::Tensor;

    use super::Judged;

    /// Checks a loss against its formula in double precision, and its weight against the formula's difference quotient:
    /// `factor · dL/de = weight`.
    pub(super) fn check(
        errors: &[f64],
        judge: impl Fn(&Tensor) -> Judged,
        formula: impl Fn(f64) -> f64,
        factor: f64,
    ) {
        let input: Vec<f32> = errors.iter().map(|error| *error as f32).collect();
        let Judged { loss, weight } = judge(&Tensor::from_slice(&input).view([1, -1]));
        let loss = Vec::<f32>::try_from(loss.view(-1)).unwrap();
        let weight = Vec::<f32>::try_from(weight.view(-1)).unwrap();
        for ((error, loss), weight) in input.iter().zip(loss).zip(weight) {
            let error = f64::from(*error);
            let expected = formula(error);
            assert!(
                (f64::from(loss) - expected).abs() < 2e-6 * (1.0 + expected.abs()),
                "loss {loss} for {expected} at {error}"
            );
            let step = 1e-5 * error;
            let slope = factor * (formula(error + step) - formula(error - step)) / (2.0 * step);
            assert!(
                (f64::from(weight) - slope).abs() < 1e-5,
                "weight {weight} for {slope} at {error}"
            );
        }
    }
}

use tch::{Kind, Tensor};

use crate::NnError;

/// The squared error of each sample, averaged over its components: `[K, B]` from `[K, B, out]`; leaves output − target
/// in `difference`.
///
/// Up to a constant factor and a constant it is the negative log-likelihood of a Gaussian of fixed deviation about the
/// output, which is the loss that the paper's theory speaks of.
pub fn squared_error(output: &Tensor, target: &Tensor, difference: &Tensor) -> Result<Tensor, NnError> {
    let _ = output.f_sub_out(difference, target)?;
    Ok(difference.f_square()?.f_mean_dim(2, false, Kind::Float)?)
}

use tch::{Kind, Tensor};

use crate::NnError;

/// The squared error of each sample, averaged over its components: `[K, B]` from `[K, B, out]`; leaves output − target
/// in `difference`. `components` says how many each network has, `[K, 1]`: the others are 0 in output and target.
///
/// Up to a constant factor and a constant it is the negative log-likelihood of a Gaussian of fixed deviation about the
/// output, which is the loss that the paper's theory speaks of.
pub fn squared_error(
    output: &Tensor,
    target: &Tensor,
    components: &Tensor,
    difference: &Tensor,
) -> Result<Tensor, NnError> {
    let _ = output.f_sub_out(difference, target)?;
    Ok(difference
        .f_square()?
        .f_sum_dim_intlist(2, false, Kind::Float)?
        .f_div_(components)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_averaged_over_the_components_that_a_network_has() {
        let tensor = |values: &[f32]| Tensor::from_slice(values).view([2, 2, 3]);
        // The first network has one component, the second one all three.
        let output = tensor(&[1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0]);
        let target = tensor(&[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
        let components = Tensor::from_slice(&[1.0_f32, 3.0]).view([2, 1]);
        let difference = output.zeros_like();
        let errors = squared_error(&output, &target, &components, &difference).unwrap();
        assert_eq!(
            Vec::<f32>::try_from(errors.view(-1)).unwrap(),
            [1.0, 0.25, 3.0, 1.0 / 3.0]
        );
        assert_eq!(difference, output - target);
    }
}

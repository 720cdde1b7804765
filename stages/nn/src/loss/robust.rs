use tch::Tensor;

use super::Judged;
use crate::NnError;

/// A loss that grows more slowly than the squared error e: of q = √e beyond a scale c.
///
/// All are e + o(e) for small e, so that small residuals count as in least squares, and c may differ from network to
/// network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Robust {
    /// e where q ≤ c, else c (2q − c): weight min(1, c/q) (Huber 1964).
    Huber,
    /// 2c (√(e + c²) − c): weight c/√(e + c²). The length of the residual, rounded off where it is shorter than c
    /// (Charbonnier's loss).
    Norm,
    /// c² log(1 + e/c²): weight 1/(1 + e/c²). For residuals of A components it is, up to a factor and a constant, the negative
    /// log-likelihood of a multivariate t distribution of ν degrees of freedom whose scale is c √(A/ν) (Lange, Little and
    /// Taylor 1989).
    StudentT,
    /// 2c² (1 − exp(−e/(2c²))): weight exp(−e/(2c²)) (Welsch's loss, correntropy).
    Welsch,
}

impl Robust {
    /// Losses and weights of samples with these squared errors, `[K, B]`, at these scales, `[K, 1]`, positive. The weight
    /// is the loss's derivative by e.
    pub fn judge(self, errors: &Tensor, scale: &Tensor) -> Result<Judged, NnError> {
        let square = scale.f_square()?;
        Ok(match self {
            Self::Huber => {
                let length = errors.f_sqrt()?;
                let weight = scale.f_div(&length.f_maximum(scale)?)?;
                let linear = length.f_mul_scalar(2.0)?.f_sub(scale)?.f_mul(scale)?;
                let inside = length.f_le_tensor(scale)?;
                let loss = errors.f_where_self(&inside, &linear)?;
                Judged { loss, weight }
            }
            Self::Norm => {
                let length = errors.f_add(&square)?.f_sqrt()?;
                Judged {
                    // 2c e/(√(e + c²) + c): the same without cancellation.
                    loss: errors
                        .f_div(&length.f_add(scale)?)?
                        .f_mul(scale)?
                        .f_mul_scalar(2.0)?,
                    weight: scale.f_div(&length)?,
                }
            }
            Self::StudentT => {
                let ratio = errors.f_div(&square)?;
                Judged {
                    loss: ratio.f_log1p()?.f_mul(&square)?,
                    weight: ratio.f_add_scalar(1.0)?.f_reciprocal()?,
                }
            }
            Self::Welsch => {
                let square = square.f_mul_scalar(2.0)?;
                let exponent = errors.f_div(&square)?.f_neg()?;
                Judged {
                    loss: exponent.f_expm1()?.f_mul(&square)?.f_neg()?,
                    weight: exponent.f_exp()?,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::check;

    #[test]
    fn losses_and_their_slopes_are_those_of_the_formulas() {
        let errors: Vec<f64> = (0..60).map(|index| 1e-4 * 1.2_f64.powi(index)).collect();
        for scale in [0.03, 0.5] {
            let column = Tensor::from_slice(&[scale as f32]).view([1, 1]);
            let c = f64::from(scale as f32);
            let judge = |loss: Robust| {
                let column = column.shallow_clone();
                move |errors: &Tensor| loss.judge(errors, &column).unwrap()
            };
            check(
                &errors,
                judge(Robust::Huber),
                |e| {
                    let q = e.sqrt();
                    if q <= c { e } else { c * (2.0 * q - c) }
                },
                1.0,
            );
            check(
                &errors,
                judge(Robust::Norm),
                |e| 2.0 * c * ((e + c * c).sqrt() - c),
                1.0,
            );
            // A t distribution of ν degrees of freedom and scale s in three dimensions: −log p = (ν + 3)/2 log(1 + ‖r‖²/(νs²))
            // + constant, brought to slope 1 at 0.
            let nu = 4.0;
            let s = c * (3.0_f64 / nu).sqrt();
            check(
                &errors,
                judge(Robust::StudentT),
                |e| {
                    let likelihood = 0.5 * (nu + 3.0) * (1.0 + 3.0 * e / (nu * s * s)).ln();
                    likelihood * 2.0 * nu * s * s / (3.0 * (nu + 3.0))
                },
                1.0,
            );
            check(
                &errors,
                judge(Robust::Welsch),
                |e| 2.0 * c * c * (1.0 - (-e / (2.0 * c * c)).exp()),
                1.0,
            );
        }
    }

    #[test]
    fn every_network_has_its_own_scale() {
        let errors = Tensor::from_slice(&[0.04_f32, 0.01, 0.04, 0.01]).view([2, 2]);
        let scale = Tensor::from_slice(&[0.1_f32, 0.05]).view([2, 1]);
        let weight = Robust::Huber.judge(&errors, &scale).unwrap().weight;
        let weight = Vec::<f32>::try_from(weight.view(-1)).unwrap();
        for (found, expected) in weight.iter().zip([0.5, 1.0, 0.25, 0.5]) {
            assert!((found - expected).abs() < 1e-6);
        }
    }
}

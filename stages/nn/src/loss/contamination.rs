use tch::{Device, Tensor};

use super::Judged;
use crate::NnError;

/// Gaussians about the outputs, contaminated by a uniform density over [−1, 1] in every component: the density of a
/// target a about an output μ is (1 − ε) N(a; μ, σ²I) + ε 2^−A.
pub struct Contamination {
    /// A of each network.
    widths: Vec<usize>,
    /// −log(ε 2^−A) of each network, `[K, 1]`.
    base: Tensor,
    /// Log odds of the Gaussian: their value where the error is 0, and their slope by it, `[K, 1]`.
    offset: Tensor,
    slope: Tensor,
}

/// The probability that a sample came from the Gaussian of such a density: z = (1 − ε) N/((1 − ε) N + ε 2^−A).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Responsibility {
    offset: f64,
    slope: f64,
}

impl Responsibility {
    /// Of a density over `width` components; σ is positive, and ε between 0 and 1, both excluded.
    ///
    /// # Panics
    ///
    /// Where they are not.
    pub fn new(width: usize, sigma: f64, epsilon: f64) -> Self {
        assert!(
            sigma > 0.0 && epsilon > 0.0 && epsilon < 1.0,
            "a mixture of deviation {sigma} and share {epsilon}"
        );
        let width = width as f64;
        // N(a) / 2^−A = (2/(σ √(2π)))^A exp(−A e/(2σ²)).
        let peak = width * libm::log(2.0 / (sigma * (2.0 * std::f64::consts::PI).sqrt()));
        Self {
            offset: libm::log((1.0 - epsilon) / epsilon) + peak,
            slope: -width / (2.0 * sigma * sigma),
        }
    }

    /// That of a sample with this squared error.
    pub fn of(self, error: f64) -> f64 {
        1.0 / (1.0 + libm::exp(-(self.offset + self.slope * error)))
    }
}

impl Contamination {
    /// Over so many components, with these pairs of σ and ε, of each network.
    ///
    /// # Panics
    ///
    /// As [`Responsibility::new`], and where there are not as many widths as pairs.
    pub fn new(widths: &[usize], parameters: &[(f64, f64)], device: Device) -> Result<Self, NnError> {
        assert_eq!(widths.len(), parameters.len(), "a width for each network");
        let odds: Vec<Responsibility> = widths
            .iter()
            .zip(parameters)
            .map(|(width, (sigma, epsilon))| Responsibility::new(*width, *sigma, *epsilon))
            .collect();
        let column = |value: &dyn Fn(usize) -> f64| column(odds.len(), device, value);
        Ok(Self {
            widths: widths.to_vec(),
            base: column(&|network| {
                widths[network] as f64 * std::f64::consts::LN_2 - libm::log(parameters[network].1)
            })?,
            offset: column(&|network| odds[network].offset)?,
            slope: column(&|network| odds[network].slope)?,
        })
    }

    /// Takes other parameters, as many as before; what a GPU has recorded of this density follows them.
    ///
    /// # Panics
    ///
    /// As [`Contamination::new`].
    pub fn set(&mut self, parameters: &[(f64, f64)]) -> Result<(), NnError> {
        let other = Self::new(&self.widths, parameters, self.base.device())?;
        self.base.f_copy_(&other.base)?;
        self.offset.f_copy_(&other.offset)?;
        self.slope.f_copy_(&other.slope)?;
        Ok(())
    }

    /// Negative log-likelihoods of samples with these squared errors, `[K, B]`, and their responsibilities as weights: 2σ²/A
    /// times the likelihood's derivative by the squared error.
    pub fn judge(&self, errors: &Tensor) -> Result<Judged, NnError> {
        let odds = errors.f_mul(&self.slope)?.f_add(&self.offset)?;
        // log(1 + exp(d)), without overflow.
        let tail = odds.f_abs()?.f_neg()?.f_exp()?.f_log1p()?;
        let gain = odds.f_clamp_min(0.0)?.f_add(&tail)?;
        Ok(Judged {
            loss: self.base.f_sub(&gain)?,
            weight: odds.f_neg()?.f_exp()?.f_add_scalar(1.0)?.f_reciprocal()?,
        })
    }
}

/// A value for each network, `[K, 1]`.
fn column(networks: usize, device: Device, value: &dyn Fn(usize) -> f64) -> Result<Tensor, NnError> {
    let values: Vec<f32> = (0..networks).map(|network| value(network) as f32).collect();
    Ok(Tensor::f_from_slice(&values)?
        .f_view([networks as i64, 1])?
        .f_to_device(device)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::check;
    use crate::testing::bits;

    /// The density of a sample, part by part: of the Gaussian, and of the uniform.
    fn densities(width: i32, (sigma, epsilon): (f64, f64), error: f64) -> (f64, f64) {
        let normaliser = (2.0 * std::f64::consts::PI * sigma * sigma).powf(-0.5 * f64::from(width));
        let square = error * f64::from(width);
        (
            (1.0 - epsilon) * normaliser * (-square / (2.0 * sigma * sigma)).exp(),
            epsilon * 0.5_f64.powi(width),
        )
    }

    #[test]
    fn likelihood_slope_and_responsibility_are_those_of_the_formula() {
        let errors: Vec<f64> = (0..40).map(|index| 1e-4 * 1.25_f64.powi(index)).collect();
        for (width, sigma, epsilon) in [(1, 0.3, 0.2), (3, 0.25, 0.05), (8, 0.5, 0.4)] {
            let parameters = [(sigma, epsilon)];
            let mut mixture = Contamination::new(&[width as usize], &[(1.0, 0.5)], Device::Cpu).unwrap();
            mixture.set(&parameters).unwrap();
            let responsibility = Responsibility::new(width as usize, sigma, epsilon);
            let formula = |error: f64| {
                let (gaussian, uniform) = densities(width, (sigma, epsilon), error);
                -(gaussian + uniform).ln()
            };
            check(
                &errors,
                |errors| mixture.judge(errors).unwrap(),
                formula,
                2.0 * sigma * sigma / f64::from(width),
            );
            for error in &errors {
                let (gaussian, uniform) = densities(width, (sigma, epsilon), *error);
                let expected = gaussian / (gaussian + uniform);
                assert!((responsibility.of(*error) - expected).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn every_network_has_its_own_density_over_its_own_components() {
        let networks = [(1, (0.3, 0.2)), (8, (0.3, 0.2)), (3, (0.1, 0.4))];
        let (widths, parameters): (Vec<_>, Vec<_>) = networks.into_iter().unzip();
        let together = Contamination::new(&widths, &parameters, Device::Cpu).unwrap();
        let errors = Tensor::from_slice(&[0.01_f32, 0.05, 0.2]).view([1, 3]);
        let judged = together.judge(&errors.expand([3, 3], false)).unwrap();
        for (member, (width, parameters)) in (0..).zip(networks) {
            let alone = Contamination::new(&[width], &[parameters], Device::Cpu).unwrap();
            let alone = alone.judge(&errors).unwrap();
            assert_eq!(bits(&judged.loss.get(member)), bits(&alone.loss));
            assert_eq!(bits(&judged.weight.get(member)), bits(&alone.weight));
        }
    }

    #[test]
    fn far_samples_have_finite_losses_and_no_weight() {
        let mixture = Contamination::new(&[3], &[(0.01, 0.2)], Device::Cpu).unwrap();
        let judged = mixture
            .judge(&Tensor::from_slice(&[4.0_f32]).view([1, 1]))
            .unwrap();
        let expected = -(0.2_f64 * 0.125).ln();
        assert!((judged.loss.double_value(&[0, 0]) - expected).abs() < 1e-5);
        assert!(judged.weight.double_value(&[0, 0]).abs() < 1e-30);
    }
}

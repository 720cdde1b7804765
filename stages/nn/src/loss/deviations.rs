use tch::{Device, Kind, Tensor};

use crate::ensemble::{from_host, to_host};
use crate::shape::COLUMNS;
use crate::{Adam, AdamSettings, NnError};

/// Deviations of Gaussian policies that are learnt beside their means: log σ of each component, whatever the state.
///
/// They have their own Adam, at the networks' rates, without clipping or decay. A deviation that falls below the floor is
/// put there after the step: without a floor the likelihood of data that a network can fit is unbounded.
pub struct Deviations {
    width: i64,
    floor: f64,
    /// log σ, `[K, P]`; the first `width` columns count, the others are 0.
    logarithms: Tensor,
    /// `[K, P]`
    gradient: Tensor,
    adam: Adam,
}

impl Deviations {
    /// K times `width` deviations of this size.
    pub fn new(
        members: usize,
        width: usize,
        sigma: f64,
        floor: f64,
        device: Device,
    ) -> Result<Self, NnError> {
        let (members, width) = (members as i64, width as i64);
        let columns = (width as usize).next_multiple_of(COLUMNS) as i64;
        let zeros = || Tensor::f_zeros([members, columns], (Kind::Float, device));
        let (logarithms, gradient) = (zeros()?, zeros()?);
        let _ = logarithms
            .f_narrow(1, 0, width)?
            .f_fill_(libm::log(sigma.max(floor)))?;
        Ok(Self {
            adam: Adam::over(&logarithms, &gradient, AdamSettings::default())?,
            width,
            floor,
            logarithms,
            gradient,
        })
    }

    /// Negative log-likelihoods Σᵢ (rᵢ²/(2σᵢ²) + log σᵢ + ½ log 2π) of samples with these residuals (`[K, B, out]`), which
    /// become the derivatives rᵢ/σᵢ² of them; gives `[K, B]`, and notes the derivatives of their means by log σ.
    pub fn likelihood(&mut self, residuals: &mut Tensor) -> Result<Tensor, NnError> {
        let column = |tensor: Tensor| -> Result<Tensor, NnError> {
            Ok(tensor.f_narrow(1, 0, self.width)?.f_unsqueeze(1)?)
        };
        let precision = column(self.logarithms.f_mul_scalar(-2.0)?.f_exp()?)?;
        let scaled = residuals.f_square()?.f_mul(&precision)?;
        // By log σ: 1 − r²/σ².
        let slope = scaled
            .f_mean_dim(1, false, Kind::Float)?
            .f_neg()?
            .f_add_scalar(1.0)?;
        self.gradient.f_narrow(1, 0, self.width)?.f_copy_(&slope)?;
        let _ = residuals.f_mul_(&precision)?;
        let constant = 0.5 * self.width as f64 * libm::log(2.0 * std::f64::consts::PI);
        let volume = self
            .logarithms
            .f_sum_dim_intlist(1, true, Kind::Float)?
            .f_add_scalar(constant)?;
        Ok(scaled
            .f_sum_dim_intlist(2, false, Kind::Float)?
            .f_mul_scalar(0.5)?
            .f_add(&volume)?)
    }

    /// A step along the gradient that was noted last.
    pub fn step(&mut self, rates: &[f64]) -> Result<(), NnError> {
        self.adam.prepare(rates)?;
        self.apply()?;
        self.adam.settle()
    }

    /// The part of a step that a GPU can repeat: see [`Adam::prepare`].
    pub fn apply(&mut self) -> Result<(), NnError> {
        self.adam.apply(None)?;
        let _ = self
            .logarithms
            .f_narrow(1, 0, self.width)?
            .f_clamp_min_(libm::log(self.floor))?;
        Ok(())
    }

    /// The geometric mean of each network's deviations.
    pub fn typical(&self) -> Result<Vec<f64>, NnError> {
        let values = to_host(&self.logarithms)?;
        let rows = values.chunks(values.len() / self.logarithms.size()[0] as usize);
        Ok(rows
            .map(|row| {
                let sum: f64 = row.iter().map(|value| f64::from(*value)).sum();
                libm::exp(sum / self.width as f64)
            })
            .collect())
    }

    /// log σ of all components, network after network: what [`Deviations::load`] takes back. Adam has its own state.
    pub fn save(&self) -> Result<Vec<f32>, NnError> {
        to_host(&self.logarithms)
    }

    /// Takes back what [`Deviations::save`] gave.
    pub fn load(&mut self, logarithms: &[f32]) -> Result<(), NnError> {
        from_host(&mut self.logarithms, logarithms, "deviations")
    }

    /// Their optimiser.
    pub fn adam(&self) -> &Adam {
        &self.adam
    }

    /// Their optimiser, to be told of steps and to be given its state back.
    pub fn adam_mut(&mut self) -> &mut Adam {
        &mut self.adam
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bits, normal};

    /// −log density of residuals `[B, A]`, for log σ of each component: mean over samples.
    fn formula(residuals: &[f64], logarithms: &[f64]) -> f64 {
        let width = logarithms.len();
        let total: f64 = residuals
            .iter()
            .enumerate()
            .map(|(index, residual)| {
                let logarithm = logarithms[index % width];
                let ratio = residual / logarithm.exp();
                0.5 * ratio * ratio + logarithm + 0.5 * (2.0 * std::f64::consts::PI).ln()
            })
            .sum();
        total / (residuals.len() / width) as f64
    }

    fn doubles(tensor: &Tensor) -> Vec<f64> {
        Vec::try_from(tensor.to_kind(Kind::Double).contiguous().view(-1)).unwrap()
    }

    #[test]
    fn likelihood_and_both_gradients_are_those_of_the_formula() {
        let (members, rows, width) = (2, 7, 3);
        let mut deviations = Deviations::new(2, 3, 0.4, 1e-3, Device::Cpu).unwrap();
        // Different in every component, as after some steps.
        let moved = normal(3, &[members, width]) * 0.3 - 0.8;
        deviations
            .logarithms
            .narrow(1, 0, width)
            .shallow_clone()
            .copy_(&moved);
        let residuals = normal(4, &[members, rows, width]) * 0.5;
        let mut slopes = residuals.copy();
        let losses = deviations.likelihood(&mut slopes).unwrap();
        let typical = deviations.typical().unwrap();
        for member in 0..members {
            let values = doubles(&residuals.get(member));
            let logarithms = doubles(&moved.get(member));
            let expected = formula(&values, &logarithms);
            assert!((losses.get(member).mean(Kind::Double).double_value(&[]) - expected).abs() < 1e-5);
            let quotient = |at: &[f64], index: usize, value: &dyn Fn(&[f64]) -> f64| {
                let shifted = |shift: f64| {
                    let mut at = at.to_vec();
                    at[index] += shift;
                    value(&at)
                };
                (shifted(1e-5) - shifted(-1e-5)) / 2e-5
            };
            for (index, found) in doubles(&slopes.get(member)).into_iter().enumerate() {
                // The formula is a mean over the rows, the slopes are of each row's own loss.
                let expected = quotient(&values, index, &|at| formula(at, &logarithms)) * rows as f64;
                assert!((found - expected).abs() < 1e-4 * (1.0 + expected.abs()));
            }
            let gradient = doubles(&deviations.gradient.get(member));
            for (index, found) in gradient[..3].iter().enumerate() {
                let expected = quotient(&logarithms, index, &|at| formula(&values, at));
                assert!((found - expected).abs() < 1e-5 * (1.0 + expected.abs()));
            }
            assert!(gradient[3..].iter().all(|value| *value == 0.0));
            let mean = (logarithms.iter().sum::<f64>() / 3.0).exp();
            assert!((typical[member as usize] / mean - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn deviations_approach_that_of_the_residuals_and_stop_at_the_floor() {
        let residuals = normal(5, &[2, 400, 2]) * Tensor::from_slice(&[0.3_f32, 0.01]).view([2, 1, 1]);
        let mut deviations = Deviations::new(2, 2, 0.1, 0.05, Device::Cpu).unwrap();
        for _ in 0..600 {
            let _ = deviations.likelihood(&mut residuals.copy()).unwrap();
            deviations.step(&[1e-2, 1e-2]).unwrap();
        }
        let expected = residuals.get(0).square().mean_dim(0, false, None).sqrt();
        let found = deviations.logarithms.get(0).narrow(0, 0, 2).exp();
        assert!((found - expected).abs().max().double_value(&[]) < 3e-3);
        assert!((deviations.typical().unwrap()[1] / 0.05 - 1.0).abs() < 1e-5);
    }

    #[test]
    fn saved_deviations_go_on_to_the_same_bits() {
        let residuals = normal(6, &[1, 30, 5]);
        let run = |deviations: &mut Deviations, steps: u32| {
            for _ in 0..steps {
                let _ = deviations.likelihood(&mut residuals.copy()).unwrap();
                deviations.step(&[1e-2]).unwrap();
            }
        };
        let mut whole = Deviations::new(1, 5, 0.2, 0.01, Device::Cpu).unwrap();
        run(&mut whole, 9);
        let mut first = Deviations::new(1, 5, 0.2, 0.01, Device::Cpu).unwrap();
        run(&mut first, 4);
        let (mean, square, steps) = first.adam().save().unwrap();
        let mut second = Deviations::new(1, 5, 0.7, 0.01, Device::Cpu).unwrap();
        second.load(&first.save().unwrap()).unwrap();
        second.adam_mut().load(&mean, &square, steps).unwrap();
        run(&mut second, 5);
        assert_eq!(bits(&second.logarithms), bits(&whole.logarithms));
    }
}

use tch::{Device, Kind, Tensor};

use crate::ensemble::{from_host, to_host};
use crate::shape::COLUMNS;
use crate::{Adam, AdamSettings, NnError};

/// Deviations of Gaussian policies that are learnt beside their means: log σ of each component, whatever the state.
///
/// They have their own Adam, at the networks' rates, without clipping or decay. A deviation that falls below the floor is
/// put there after the step: without a floor the likelihood of data that a network can fit is unbounded.
pub struct Deviations {
    /// A: components of each network's output.
    widths: Vec<usize>,
    /// log σ, `[K, P]`; the first A columns of a network count, the others are 0.
    logarithms: Tensor,
    /// `[K, P]`
    gradient: Tensor,
    /// 1 where a component counts, else 0, `[K, out]`.
    counted: Tensor,
    /// What log σ does not fall below: −∞ where it does not count, `[K, out]`.
    floor: Tensor,
    /// A/2 · log 2π, `[K, 1]`.
    constant: Tensor,
    adam: Adam,
}

impl Deviations {
    /// Deviations of this size, as many of each network as its output has components: `widths`, of which `columns` are the
    /// most that there can be, the others being 0 in every residual.
    ///
    /// # Panics
    ///
    /// Where a network has more.
    pub fn new(
        widths: &[usize],
        columns: usize,
        sigma: f64,
        floor: f64,
        device: Device,
    ) -> Result<Self, NnError> {
        assert!(
            widths.iter().all(|width| *width <= columns),
            "widths within {columns}"
        );
        let members = widths.len() as i64;
        let rows = |columns: usize, counted: f64, other: f64| -> Result<Tensor, NnError> {
            let values: Vec<f32> = widths
                .iter()
                .flat_map(|width| {
                    (0..columns).map(move |column| if column < *width { counted } else { other } as f32)
                })
                .collect();
            Ok(Tensor::f_from_slice(&values)?
                .f_view([members, -1])?
                .f_to_device(device)?)
        };
        let logarithms = rows(
            columns.next_multiple_of(COLUMNS),
            libm::log(sigma.max(floor)),
            0.0,
        )?;
        let gradient = logarithms.f_zeros_like()?;
        let constant = |width: &usize| (0.5 * *width as f64 * libm::log(2.0 * std::f64::consts::PI)) as f32;
        Ok(Self {
            adam: Adam::over(&logarithms, &gradient, AdamSettings::default())?,
            counted: rows(columns, 1.0, 0.0)?,
            floor: rows(columns, libm::log(floor), f64::NEG_INFINITY)?,
            constant: Tensor::f_from_slice(&widths.iter().map(constant).collect::<Vec<_>>())?
                .f_view([members, 1])?
                .f_to_device(device)?,
            widths: widths.to_vec(),
            logarithms,
            gradient,
        })
    }

    /// The columns of values like log σ that residuals have.
    fn columns(&self, values: &Tensor) -> Result<Tensor, NnError> {
        Ok(values.f_narrow(1, 0, self.counted.size()[1])?)
    }

    /// Negative log-likelihoods Σᵢ (rᵢ²/(2σᵢ²) + log σᵢ + ½ log 2π) of samples with these residuals (`[K, B, out]`), which
    /// become the derivatives rᵢ/σᵢ² of them; gives `[K, B]`, and notes the derivatives of their means by log σ.
    pub fn likelihood(&mut self, residuals: &mut Tensor) -> Result<Tensor, NnError> {
        let precision = self
            .columns(&self.logarithms.f_mul_scalar(-2.0)?.f_exp()?)?
            .f_unsqueeze(1)?;
        let scaled = residuals.f_square()?.f_mul(&precision)?;
        // By log σ: 1 − r²/σ².
        let slope = self.counted.f_sub(&scaled.f_mean_dim(1, false, Kind::Float)?)?;
        self.columns(&self.gradient)?.f_copy_(&slope)?;
        let _ = residuals.f_mul_(&precision)?;
        let volume = self
            .logarithms
            .f_sum_dim_intlist(1, true, Kind::Float)?
            .f_add(&self.constant)?;
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
        let _ = self.columns(&self.logarithms)?.f_clamp_min_tensor_(&self.floor)?;
        Ok(())
    }

    /// The geometric mean of each network's deviations.
    pub fn typical(&self) -> Result<Vec<f64>, NnError> {
        let values = to_host(&self.logarithms)?;
        let rows = values.chunks(values.len() / self.widths.len());
        Ok(rows
            .zip(&self.widths)
            .map(|(row, width)| {
                let sum: f64 = row[..*width].iter().map(|value| f64::from(*value)).sum();
                libm::exp(sum / *width as f64)
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
        let (rows, columns) = (7, 4);
        // One network has fewer components than residuals have columns, one as many.
        let widths = [3, 4];
        let mut deviations = Deviations::new(&widths, columns, 0.4, 1e-3, Device::Cpu).unwrap();
        let counted = deviations.counted.copy();
        // Different in every component, as after some steps.
        let moved = (normal(3, &[2, columns as i64]) * 0.3 - 0.8) * &counted;
        deviations.columns(&deviations.logarithms).unwrap().copy_(&moved);
        let residuals = normal(4, &[2, rows, columns as i64]) * 0.5 * counted.unsqueeze(1);
        let mut slopes = residuals.copy();
        let losses = deviations.likelihood(&mut slopes).unwrap();
        let typical = deviations.typical().unwrap();
        for (member, width) in widths.into_iter().enumerate() {
            let own = |tensor: &Tensor| {
                let tensor = tensor.get(member as i64);
                doubles(&tensor.narrow(tensor.dim() as i64 - 1, 0, width as i64))
            };
            let (values, logarithms) = (own(&residuals), own(&moved));
            let expected = formula(&values, &logarithms);
            let found = losses.get(member as i64).mean(Kind::Double).double_value(&[]);
            assert!((found - expected).abs() < 1e-5);
            let quotient = |at: &[f64], index: usize, value: &dyn Fn(&[f64]) -> f64| {
                let shifted = |shift: f64| {
                    let mut at = at.to_vec();
                    at[index] += shift;
                    value(&at)
                };
                (shifted(1e-5) - shifted(-1e-5)) / 2e-5
            };
            for (index, found) in own(&slopes).into_iter().enumerate() {
                // The formula is a mean over the rows, the slopes are of each row's own loss.
                let expected = quotient(&values, index, &|at| formula(at, &logarithms)) * rows as f64;
                assert!((found - expected).abs() < 1e-4 * (1.0 + expected.abs()));
            }
            let gradient = doubles(&deviations.gradient.get(member as i64));
            for (index, found) in gradient[..width].iter().enumerate() {
                let expected = quotient(&logarithms, index, &|at| formula(&values, at));
                assert!((found - expected).abs() < 1e-5 * (1.0 + expected.abs()));
            }
            assert!(gradient[width..].iter().all(|value| *value == 0.0));
            let mean = (logarithms.iter().sum::<f64>() / width as f64).exp();
            assert!((typical[member] / mean - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn what_has_no_component_has_no_deviation_whatever_the_floor() {
        for floor in [0.05, 3.0] {
            let mut deviations = Deviations::new(&[2, 5], 8, 0.4, floor, Device::Cpu).unwrap();
            for seed in 0..5 {
                let mut residuals = normal(seed, &[2, 30, 8]) * deviations.counted.unsqueeze(1);
                let _ = deviations.likelihood(&mut residuals).unwrap();
                deviations.step(&[1e-2, 1e-2]).unwrap();
            }
            let (mean, square, _) = deviations.adam.save().unwrap();
            for values in [deviations.save().unwrap(), mean, square] {
                for (row, width) in values.chunks(values.len() / 2).zip([2, 5]) {
                    assert!(row[..width].iter().all(|value| *value != 0.0));
                    assert!(row[width..].iter().all(|value| *value == 0.0));
                }
            }
        }
    }

    #[test]
    fn deviations_approach_that_of_the_residuals_and_stop_at_the_floor() {
        let residuals = normal(5, &[2, 400, 2]) * Tensor::from_slice(&[0.3_f32, 0.01]).view([2, 1, 1]);
        let mut deviations = Deviations::new(&[2, 2], 2, 0.1, 0.05, Device::Cpu).unwrap();
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
        let mut whole = Deviations::new(&[5], 5, 0.2, 0.01, Device::Cpu).unwrap();
        run(&mut whole, 9);
        let mut first = Deviations::new(&[5], 5, 0.2, 0.01, Device::Cpu).unwrap();
        run(&mut first, 4);
        let (mean, square, steps) = first.adam().save().unwrap();
        let mut second = Deviations::new(&[5], 5, 0.7, 0.01, Device::Cpu).unwrap();
        second.load(&first.save().unwrap()).unwrap();
        second.adam_mut().load(&mean, &square, steps).unwrap();
        run(&mut second, 5);
        assert_eq!(bits(&second.logarithms), bits(&whole.logarithms));
    }
}

use provenir_nn::{Ensemble, NnError};
use tch::Kind;

use crate::data::Data;
use crate::sweep::Sweep;

/// Measures the mean squared error of policies on data that they do not learn from.
pub(crate) struct Validation<'a> {
    sweep: Sweep<'a>,
    committee: usize,
    /// Numbers whose squares are summed, of each policy.
    terms: Vec<usize>,
}

impl<'a> Validation<'a> {
    /// For networks like these, `committee` of them a policy.
    pub(crate) fn new(ensemble: &Ensemble, committee: usize, data: &'a Data) -> Result<Self, NnError> {
        Ok(Self {
            sweep: Sweep::new(ensemble, data)?,
            committee,
            terms: data
                .components()
                .iter()
                .map(|width| data.samples * width)
                .collect(),
        })
    }

    /// The mean squared error of each policy.
    pub(crate) fn measure(&mut self, ensemble: &Ensemble) -> Result<Vec<f64>, NnError> {
        let mut sums = vec![0.0; self.terms.len()];
        let committee = self.committee as i64;
        self.sweep.each(ensemble, |_, output, actions| {
            let mut errors = output.f_sub(actions)?;
            if committee > 1 {
                // The mean of what the networks are off is what their mean is off.
                let (networks, rows, width) = errors.size3()?;
                errors = errors
                    .f_view([networks / committee, committee, rows, width])?
                    .f_mean_dim(1, false, Kind::Float)?;
            }
            let errors = errors
                .f_square()?
                .f_sum_dim_intlist([1, 2].as_slice(), false, Kind::Double)?;
            for (sum, error) in sums.iter_mut().zip(Vec::<f64>::try_from(errors)?) {
                *sum += error;
            }
            Ok(())
        })?;
        let terms = self.terms.iter().map(|terms| *terms as f64);
        Ok(sums
            .into_iter()
            .zip(terms)
            .map(|(sum, terms)| sum / terms)
            .collect())
    }
}

use provenir_nn::{Ensemble, Forward, NnError};
use tch::{Kind, Tensor};

use crate::data::Data;

/// Samples that pass through the networks together.
const ROWS: usize = 1024;

/// Measures the mean squared error of policies on data that they do not learn from.
pub(crate) struct Validation<'a> {
    data: &'a Data,
    parts: Vec<Part>,
}

struct Part {
    forward: Forward,
    /// Samples of each policy, counted through all data sets, `[K · B]`.
    index: Tensor,
}

impl<'a> Validation<'a> {
    /// For networks like these.
    pub(crate) fn new(ensemble: &Ensemble, data: &'a Data) -> Result<Self, NnError> {
        let parts = (0..data.samples)
            .step_by(ROWS)
            .map(|start| {
                let end = (start + ROWS).min(data.samples);
                let index: Vec<i64> = (0..data.members)
                    .flat_map(|member| {
                        (start..end).map(move |sample| (member * data.samples + sample) as i64)
                    })
                    .collect();
                Ok(Part {
                    forward: Forward::new(ensemble, end - start)?,
                    index: Tensor::f_from_slice(&index)?.f_to_device(data.device())?,
                })
            })
            .collect::<Result<_, NnError>>()?;
        Ok(Self { data, parts })
    }

    /// The mean squared error of each policy.
    pub(crate) fn measure(&mut self, ensemble: &Ensemble) -> Result<Vec<f64>, NnError> {
        let mut sums = vec![0.0; self.data.members];
        for Part { forward, index } in &mut self.parts {
            forward.load(&self.data.observations, index)?;
            forward.run(ensemble)?;
            let output = forward.output();
            let actions = self
                .data
                .actions
                .f_index_select(0, index)?
                .f_view(output.size().as_slice())?;
            let errors = output.f_sub(&actions)?.f_square()?.f_sum_dim_intlist(
                [1, 2].as_slice(),
                false,
                Kind::Double,
            )?;
            for (sum, error) in sums.iter_mut().zip(Vec::<f64>::try_from(errors)?) {
                *sum += error;
            }
        }
        let terms = (self.data.samples * self.data.action_width()) as f64;
        Ok(sums.into_iter().map(|sum| sum / terms).collect())
    }
}

use provenir_nn::{NnError, Robust};
use tch::{Device, Kind, Tensor};

use super::sample::residuals_of_some;
use crate::cloning::{Course, Rule, Verdict};
use crate::data::{Data, column};
use crate::method::Notes;
use crate::student::{Batch, mean};

/// A loss that grows more slowly than the squared error beyond a scale that comes from the data.
pub(crate) struct RobustLoss {
    loss: Robust,
    /// The loss's scale in proportion to that of the data, for each policy.
    reach: Vec<f64>,
    scale: Scale,
    /// Scale of each policy's residuals, and that of its loss, `[K, 1]`, from the start of the epoch.
    scales: Vec<f64>,
    column: Tensor,
}

/// Where the scale of the data comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    Given(f64),
    /// At the start of every epoch, and no less than this.
    Measured {
        floor: f64,
    },
}

/// 1.4826 times the median of the sizes: the deviation of normal values of mean 0.
fn deviation(values: &[f32]) -> f64 {
    /// 1/Φ⁻¹(3/4)
    const CONSISTENT: f64 = 1.482_602_218_505_602;
    let mut sizes: Vec<f64> = values.iter().map(|value| f64::from(value.abs())).collect();
    let middle = sizes.len() / 2;
    let (below, upper, _) = sizes.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    let median = if values.len().is_multiple_of(2) {
        let lower = below.iter().copied().max_by(f64::total_cmp).unwrap_or(upper);
        0.5 * (lower + upper)
    } else {
        upper
    };
    CONSISTENT * median
}

impl RobustLoss {
    /// For policies of these data.
    pub(crate) fn new(data: &Data, loss: Robust, reach: Vec<f64>, scale: Scale) -> Result<Self, NnError> {
        Ok(Self {
            loss,
            reach,
            scale,
            scales: Vec::new(),
            column: Tensor::f_zeros([data.members as i64, 1], (Kind::Float, data.device()))?,
        })
    }

    /// Finds each policy's scales from what it is off now.
    fn measure(&mut self, course: &Course<'_>) -> Result<(), NnError> {
        let members = course.data.members;
        self.scales = match self.scale {
            Scale::Given(scale) => vec![scale; members],
            Scale::Measured { floor } => {
                let residuals = residuals_of_some(course)?;
                let scale = |member| deviation(residuals.components(member)).max(floor);
                (0..members).map(scale).collect()
            }
        };
        let scales = self.scales.iter().zip(&self.reach);
        let scales = column(scales.map(|(scale, reach)| scale * reach), Device::Cpu)?;
        Ok(self.column.f_copy_(&scales)?)
    }
}

impl Rule for RobustLoss {
    fn begin_epoch(&mut self, _: u64, course: &Course<'_>) -> Result<(), NnError> {
        self.measure(course)
    }

    fn judge(&mut self, batch: &mut Batch) -> Result<Verdict, NnError> {
        let judged = self.loss.judge(&batch.errors, &self.column)?;
        batch.follow(&judged.weight)?;
        Ok(Verdict {
            loss: mean(&judged.loss)?,
            selected: None,
        })
    }

    fn notes(&self) -> Result<Notes, NnError> {
        Ok(Notes {
            sigma: self.scales.iter().copied().map(Some).collect(),
            effective: Vec::new(),
        })
    }

    fn trust(&mut self, course: &Course<'_>) -> Result<Option<Vec<f64>>, NnError> {
        self.measure(course)?;
        let residuals = course.residuals()?;
        let mut trust = Vec::with_capacity(course.data.members * course.data.samples);
        for (member, (scale, reach)) in self.scales.iter().zip(&self.reach).enumerate() {
            let errors: Vec<f32> = residuals
                .errors(member)
                .into_iter()
                .map(|error| error as f32)
                .collect();
            let scale = column(std::iter::once(scale * reach), Device::Cpu)?;
            let errors = Tensor::f_from_slice(&errors)?.f_view([1, -1])?;
            let weights = self.loss.judge(&errors, &scale)?.weight;
            trust.extend(
                Vec::<f32>::try_from(weights.f_view(-1)?)?
                    .into_iter()
                    .map(f64::from),
            );
        }
        Ok(Some(trust))
    }
}

#[cfg(test)]
mod tests {
    use provenir_random::Stream;

    use super::*;

    #[test]
    fn the_scale_is_the_deviation_of_normal_values_whatever_a_fifth_of_them_is() {
        let mut stream = Stream::new(3, "scale");
        let mut values: Vec<f32> = (0..40_000).map(|_| (0.07 * stream.normal()) as f32).collect();
        assert!((deviation(&values) / 0.07 - 1.0).abs() < 0.02);
        values[..8000].fill(1.0);
        // The median of all is the quantile 0.5/0.8 of the clean: Φ⁻¹((1 + 0.625)/2) = 0.88715.
        assert!((deviation(&values) / (0.07 * 0.88715 * 1.4826) - 1.0).abs() < 0.02);
        for (values, median) in [
            (&[-3.0_f32, 1.0, 2.0][..], 2.0),
            (&[1.0, -4.0, 2.0, 9.0], 3.0),
            (&[5.0], 5.0),
        ] {
            assert!((deviation(values) / 1.482_602_2 - median).abs() < 1e-6);
        }
    }
}

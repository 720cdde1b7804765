use std::ops::Range;

use provenir_nn::{Backward, Ensemble, Forward, NnError, Shape, Widths, squared_error};
use provenir_random::Stream;
use tch::{Kind, Tensor};

use crate::data::{Data, column};
use crate::learner::{Descent, Learner};

/// J networks that learn from minibatches, with buffers for the whole ones and for the short one.
pub(crate) struct Student {
    pub(crate) learner: Learner,
    passes: Vec<Passes>,
}

/// Buffers for a minibatch of one size.
struct Passes {
    forward: Forward,
    backward: Backward,
    /// `[J, B, out]`
    targets: Tensor,
    /// 2/(B A), `[J, 1]`.
    slopes: Tensor,
}

/// A minibatch that has passed through the networks.
pub(crate) struct Batch {
    /// Its samples, counted through all data sets, `[J · B]`.
    pub(crate) index: Tensor,
    /// The first sample of the first of the networks' data sets, so counted.
    first: usize,
    /// Squared error of each, averaged over components, `[J, B]`.
    pub(crate) errors: Tensor,
    /// Output − target, `[J, B, out]`: to become the derivative of the networks' losses by the output.
    pub(crate) residuals: Tensor,
    /// What a residual is multiplied by to be the derivative of the mean squared error: 2/(B A), `[J, 1]`.
    slopes: Tensor,
}

impl Batch {
    /// B.
    pub(crate) fn rows(&self) -> usize {
        self.errors.size()[1] as usize
    }

    /// Some of the networks' part of it, of whose data sets the first one begins with that sample: residuals are the same
    /// values, and become what they become here.
    pub(crate) fn part(&self, networks: &Range<usize>, first: usize) -> Result<Self, NnError> {
        let (start, count) = (networks.start as i64, networks.len() as i64);
        let rows = self.rows() as i64;
        Ok(Self {
            index: self.index.f_narrow(0, start * rows, count * rows)?,
            first,
            errors: self.errors.f_narrow(0, start, count)?,
            residuals: self.residuals.f_narrow(0, start, count)?,
            slopes: self.slopes.f_narrow(0, start, count)?,
        })
    }

    /// What a value of each sample of the networks' data sets (`[K · N]`) is at those of the minibatch, `[J, B]`.
    pub(crate) fn look_up(&self, values: &Tensor) -> Result<Tensor, NnError> {
        let index = match self.first {
            0 => self.index.shallow_clone(),
            first => self.index.f_sub_scalar(first as i64)?,
        };
        Ok(values
            .f_index_select(0, &index)?
            .f_view(self.errors.size().as_slice())?)
    }

    /// Turns residuals into the derivative of the mean squared error.
    pub(crate) fn follow_all(&mut self) -> Result<(), NnError> {
        let _ = self.residuals.f_mul_(&self.slopes.f_unsqueeze(2)?)?;
        Ok(())
    }

    /// Turns residuals into the derivative of the mean over the minibatch of weight times squared error. A weight is of a
    /// sample, `[J, B]`, or of all of a network, `[J, 1]`.
    pub(crate) fn follow(&mut self, weights: &Tensor) -> Result<(), NnError> {
        let slopes = weights.f_mul(&self.slopes)?;
        let _ = self.residuals.f_mul_(&slopes.f_unsqueeze(2)?)?;
        Ok(())
    }
}

impl Student {
    /// Networks at their initial values, one for each stream, for minibatches of these sizes.
    pub(crate) fn new(
        shape: &Shape,
        streams: &[Stream],
        descent: Descent,
        data: &Data,
        (whole, short): (usize, Option<usize>),
    ) -> Result<Self, NnError> {
        let widths = data.widths_of(streams.len());
        let learner = Learner::new(shape, &widths, streams, descent, data.device())?;
        let passes = std::iter::once(whole)
            .chain(short)
            .map(|rows| {
                let forward = Forward::new(&learner.ensemble, rows)?;
                let slope = |widths: &Widths| 2.0 / (rows * widths.outputs) as f64;
                Ok(Passes {
                    slopes: column(widths.iter().map(slope), data.device())?,
                    backward: Backward::new(&learner.ensemble, rows)?,
                    targets: forward.output().f_zeros_like()?,
                    forward,
                })
            })
            .collect::<Result<_, NnError>>()?;
        Ok(Self { learner, passes })
    }

    pub(crate) fn ensemble(&self) -> &Ensemble {
        &self.learner.ensemble
    }

    fn place(&self, rows: usize) -> usize {
        let place = self
            .passes
            .iter()
            .position(|passes| passes.forward.rows() == rows);
        place.expect("a minibatch of a size that was announced")
    }

    /// Passes a minibatch through the networks.
    pub(crate) fn pass(&mut self, data: &Data, index: &Tensor) -> Result<Batch, NnError> {
        let place = self.place(index.numel() / self.learner.ensemble.members());
        let Passes {
            forward,
            backward,
            targets,
            slopes,
        } = &mut self.passes[place];
        let rows = data.rows(index)?;
        data.observations_into(&rows, forward)?;
        data.actions_into(&rows, targets)?;
        forward.run(&self.learner.ensemble)?;
        let residuals = backward.output().shallow_clone();
        Ok(Batch {
            index: index.shallow_clone(),
            first: 0,
            errors: squared_error(
                forward.output(),
                targets,
                self.learner.ensemble.components(),
                &residuals,
            )?,
            residuals,
            slopes: slopes.shallow_clone(),
        })
    }

    /// The part of a step that a GPU can repeat, along what the residuals of the minibatch that was passed last have become;
    /// gives the norms of the gradients, `[J]`, always the same tensor.
    pub(crate) fn descend(&mut self, batch: &Batch) -> Result<&Tensor, NnError> {
        let place = self.place(batch.rows());
        let Passes {
            forward, backward, ..
        } = &mut self.passes[place];
        self.learner.descend(forward, backward)
    }
}

/// Which `keep` samples of each network have the smallest errors (`[J, B]`): 1 or 0. Equal ones rank by their place.
pub(crate) fn smallest(errors: &Tensor, keep: usize) -> Result<Tensor, NnError> {
    let chosen = errors
        .f_argsort_stable(true, 1, false)?
        .f_narrow(1, 0, keep as i64)?;
    let mut flags = errors.f_zeros_like()?;
    let _ = flags.f_scatter_value_(1, &chosen, 1.0)?;
    Ok(flags)
}

/// Mean over the minibatch of a loss of each sample: `[J]`.
pub(crate) fn mean(losses: &Tensor) -> Result<Tensor, NnError> {
    Ok(losses.f_mean_dim(1, false, Kind::Float)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_smallest_are_those_that_sorting_puts_first(
            // Few different values: ties are many.
            rows in prop::collection::vec(prop::collection::vec(0..5_u8, 9), 1..4), keep in 1..=9_usize,
        ) {
            let values: Vec<f32> = rows.iter().flatten().map(|value| f32::from(*value)).collect();
            let errors = Tensor::from_slice(&values).view([-1, 9]);
            let flags = Vec::<f32>::try_from(smallest(&errors, keep).unwrap().view(-1)).unwrap();
            for (values, flags) in values.chunks(9).zip(flags.chunks(9)) {
                let mut ranked: Vec<usize> = (0..9).collect();
                ranked.sort_by(|left, right| values[*left].total_cmp(&values[*right]).then(left.cmp(right)));
                for (rank, place) in ranked.into_iter().enumerate() {
                    let expected = if rank < keep { 1.0_f32 } else { 0.0 };
                    prop_assert_eq!(flags[place].to_bits(), expected.to_bits());
                }
            }
        }
    }
}

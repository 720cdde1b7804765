use provenir_nn::NnError;
use tch::{Kind, Tensor};

use crate::cloning::{Course, Rule, Verdict};
use crate::data::Data;
use crate::student::{Batch, smallest};

/// The trimmed loss: least squares on the samples that are fitted best.
pub(crate) struct Trimmed {
    /// The share of the samples that gives the gradient.
    keep: f64,
    among: Among,
}

enum Among {
    /// Those of the minibatch.
    Batch,
    /// All samples, at the start of every epoch but the first.
    Epoch {
        /// 1 or 0 for each, `[K · N]`.
        chosen: Tensor,
        /// Whether they are; all of them are used before.
        is_known: bool,
    },
}

impl Trimmed {
    /// Chooses that share of the samples, from all of them at the start of every epoch or from every minibatch.
    pub(crate) fn new(data: &Data, keep: f64, from_all: bool) -> Result<Self, NnError> {
        let samples = (data.members * data.samples) as i64;
        Ok(Self {
            keep,
            among: if from_all {
                Among::Epoch {
                    chosen: Tensor::f_zeros([samples], (Kind::Float, data.device()))?,
                    is_known: false,
                }
            } else {
                Among::Batch
            },
        })
    }

    /// How many of so many samples give the gradient; at least one.
    fn count(&self, samples: usize) -> usize {
        // A share that divides evenly (0.75 of 8) may fall short by a rounding.
        ((self.keep * samples as f64 + 1e-9).floor() as usize).clamp(1, samples)
    }
}

impl Rule for Trimmed {
    fn selects(&self) -> bool {
        true
    }

    fn begin_epoch(&mut self, epoch: u64, course: &Course<'_>) -> Result<(), NnError> {
        if epoch == 0 || matches!(self.among, Among::Batch) {
            return Ok(());
        }
        let samples = course.data.samples;
        let residuals = course.residuals()?;
        let mut chosen = vec![0.0_f32; course.data.members * samples];
        for (member, chosen) in chosen.chunks_mut(samples).enumerate() {
            let errors = residuals.errors(member);
            let mut ranked: Vec<usize> = (0..samples).collect();
            ranked.sort_by(|left, right| errors[*left].total_cmp(&errors[*right]));
            for sample in &ranked[..self.count(samples)] {
                chosen[*sample] = 1.0;
            }
        }
        if let Among::Epoch {
            chosen: kept,
            is_known,
        } = &mut self.among
        {
            kept.f_copy_(&Tensor::f_from_slice(&chosen)?)?;
            *is_known = true;
        }
        Ok(())
    }

    fn variant(&self) -> u8 {
        u8::from(matches!(self.among, Among::Epoch { is_known: true, .. }))
    }

    fn judge(&mut self, batch: &mut Batch) -> Result<Verdict, NnError> {
        let rows = batch.rows();
        // Weights have mean 1 over what is chosen from.
        let (flags, scale) = match &self.among {
            Among::Batch => {
                let keep = self.count(rows);
                (smallest(&batch.errors, keep)?, rows as f64 / keep as f64)
            }
            Among::Epoch { is_known: false, .. } => (batch.errors.f_ones_like()?, 1.0),
            Among::Epoch { chosen, .. } => {
                let samples = chosen.numel() / batch.errors.size()[0] as usize;
                (
                    batch.look_up(chosen)?,
                    samples as f64 / self.count(samples) as f64,
                )
            }
        };
        let weights = flags.f_mul_scalar(scale)?;
        let loss = batch.errors.f_mul(&weights)?.f_mean_dim(1, false, Kind::Float)?;
        batch.follow(&weights)?;
        Ok(Verdict {
            loss,
            selected: Some(flags),
        })
    }
}

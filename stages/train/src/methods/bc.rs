use provenir_nn::{Deviations, NnError};
use tch::Tensor;

use crate::cloning::{Rule, Verdict};
use crate::data::{Data, column};
use crate::learner::{load_deviations, save_deviations};
use crate::method::{Memory, Notes, learnt_by};
use crate::student::{Batch, mean};

/// A loss that is an affine function of the squared error e.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Loss {
    /// e itself.
    SquaredError,
    /// The likelihood of a Gaussian of this deviation.
    Likelihood(f64),
}

impl Loss {
    /// Factor and offset where e is averaged over A components: A e/(2σ²) + A log σ + A/2 · log 2π of a likelihood.
    pub(crate) fn line(self, components: usize) -> (f64, f64) {
        let components = components as f64;
        match self {
            Self::SquaredError => (1.0, 0.0),
            Self::Likelihood(sigma) => (
                components / (2.0 * sigma * sigma),
                components * (libm::log(sigma) + 0.5 * libm::log(2.0 * std::f64::consts::PI)),
            ),
        }
    }
}

/// Such a loss of K policies, and behaviour cloning by it.
pub(crate) struct LeastSquares {
    /// Factor and offset of each, `[K, 1]`, where it is not the squared error itself.
    line: Option<(Tensor, Tensor)>,
}

impl LeastSquares {
    /// Of policies that learn from these data.
    pub(crate) fn new(loss: Loss, data: &Data) -> Result<Self, NnError> {
        let line = || {
            let of_each = |part: fn((f64, f64)) -> f64| {
                let components = data.components().into_iter();
                column(components.map(|width| part(loss.line(width))), data.device())
            };
            Ok::<_, NnError>((of_each(|(factor, _)| factor)?, of_each(|(_, offset)| offset)?))
        };
        Ok(Self {
            line: (loss != Loss::SquaredError).then(line).transpose()?,
        })
    }

    /// The loss of squared errors, `[K, …]`.
    pub(crate) fn of(&self, errors: Tensor) -> Result<Tensor, NnError> {
        Ok(match &self.line {
            Some((factor, offset)) => errors.f_mul(factor)?.f_add(offset)?,
            None => errors,
        })
    }

    /// The difference of losses of a difference of squared errors, `[K, …]`.
    pub(crate) fn of_difference(&self, difference: Tensor) -> Result<Tensor, NnError> {
        Ok(match &self.line {
            Some((factor, _)) => difference.f_mul(factor)?,
            None => difference,
        })
    }
}

impl Rule for LeastSquares {
    fn judge(&mut self, batch: &mut Batch) -> Result<Verdict, NnError> {
        match &self.line {
            Some((factor, _)) => batch.follow(factor)?,
            None => batch.follow_all()?,
        }
        let mean = mean(&batch.errors)?.f_unsqueeze(1)?;
        Ok(Verdict {
            loss: self.of(mean)?.f_squeeze_dim(1)?,
            selected: None,
        })
    }
}

/// Behaviour cloning by the likelihood of a Gaussian whose deviations are learnt.
pub(crate) struct LearntLikelihood(Deviations);

impl LearntLikelihood {
    /// With deviations that start at `sigma` and do not fall below `floor`.
    pub(crate) fn new(data: &Data, sigma: f64, floor: f64) -> Result<Self, NnError> {
        Ok(Self(Deviations::new(
            &data.components(),
            data.action_columns(),
            sigma,
            floor,
            data.device(),
        )?))
    }
}

impl Rule for LearntLikelihood {
    fn announce(&mut self, rates: &[Vec<f64>]) -> Result<(), NnError> {
        self.0.adam_mut().announce(rates)
    }

    fn advance(&mut self) -> Result<(), NnError> {
        self.0.adam_mut().advance()
    }

    fn settle(&mut self) -> Result<(), NnError> {
        self.0.adam_mut().settle()
    }

    fn judge(&mut self, batch: &mut Batch) -> Result<Verdict, NnError> {
        let losses = self.0.likelihood(&mut batch.residuals)?;
        let _ = batch.residuals.f_mul_scalar_(1.0 / batch.rows() as f64)?;
        self.0.apply()?;
        Ok(Verdict {
            loss: mean(&losses)?,
            selected: None,
        })
    }

    fn notes(&self) -> Result<Notes, NnError> {
        Ok(Notes {
            sigma: self.0.typical()?.into_iter().map(Some).collect(),
            effective: Vec::new(),
        })
    }

    fn remember(&self, memories: &mut [Memory]) -> Result<(), NnError> {
        let deviations = save_deviations(&self.0)?;
        let members = memories.len();
        for (member, memory) in memories.iter_mut().enumerate() {
            memory.learners.push(deviations.part(member, members));
        }
        Ok(())
    }

    fn recall(&mut self, memories: &[Memory]) -> Result<(), NnError> {
        load_deviations(&mut self.0, &learnt_by(1, memories)?)
    }
}

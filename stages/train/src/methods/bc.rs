use provenir_nn::{Deviations, NnError};

use crate::cloning::{Rule, Setting, Verdict};
use crate::learner::{load_deviations, save_deviations};
use crate::method::{Memory, Notes, expect_length};
use crate::student::{Batch, mean};

/// Behaviour cloning by least squares, or by an affine function of the squared error: the likelihood of a Gaussian of
/// given deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LeastSquares {
    pub(crate) factor: f64,
    pub(crate) offset: f64,
}

impl LeastSquares {
    /// The squared error itself.
    pub(crate) const PLAIN: Self = Self {
        factor: 1.0,
        offset: 0.0,
    };

    /// A e/(2σ²) + A log σ + A/2 · log 2π, where e is the squared error averaged over A components.
    pub(crate) fn likelihood(width: usize, sigma: f64) -> Self {
        let width = width as f64;
        Self {
            factor: width / (2.0 * sigma * sigma),
            offset: width * (libm::log(sigma) + 0.5 * libm::log(2.0 * std::f64::consts::PI)),
        }
    }

    /// The same function of any tensor; it is left alone where that changes nothing.
    pub(crate) fn of(self, errors: tch::Tensor) -> Result<tch::Tensor, NnError> {
        if self == Self::PLAIN {
            return Ok(errors);
        }
        Ok(errors.f_mul_scalar(self.factor)?.f_add_scalar(self.offset)?)
    }
}

impl Rule for LeastSquares {
    fn judge(&mut self, batch: &mut Batch<'_>) -> Result<Verdict, NnError> {
        batch.follow_all(self.factor)?;
        Ok(Verdict {
            loss: self.of(mean(&batch.errors)?)?,
            selected: None,
        })
    }
}

/// Behaviour cloning by the likelihood of a Gaussian whose deviations are learnt.
pub(crate) struct LearntLikelihood(Deviations);

impl LearntLikelihood {
    /// With deviations that start at `sigma` and do not fall below `floor`.
    pub(crate) fn new(setting: &Setting<'_>, sigma: f64, floor: f64) -> Result<Self, NnError> {
        let data = setting.data;
        Ok(Self(Deviations::new(
            data.members,
            data.action_width(),
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

    fn judge(&mut self, batch: &mut Batch<'_>) -> Result<Verdict, NnError> {
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
            sigma: self.0.typical()?,
            effective: Vec::new(),
        })
    }

    fn remember(&self, memory: &mut Memory) -> Result<(), NnError> {
        memory.learners.push(save_deviations(&self.0)?);
        Ok(())
    }

    fn recall(&mut self, memory: &Memory) -> Result<(), NnError> {
        expect_length("learners", 2, memory.learners.len())?;
        load_deviations(&mut self.0, &memory.learners[1])
    }
}

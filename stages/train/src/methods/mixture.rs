use provenir_nn::{Contamination, NnError, Responsibility};

use super::sample::residuals_of_some;
use crate::cloning::{Course, Rule, Verdict};
use crate::data::Data;
use crate::method::Notes;
use crate::student::{Batch, mean};

/// The likelihood of a Gaussian contaminated by a uniform density: least squares where every sample counts by its
/// responsibility.
pub(crate) struct Mixture {
    settings: MixtureSettings,
    /// σ and ε of each policy, fitted at the start of the epoch: there is nothing to remember between epochs.
    fitted: Vec<(f64, f64)>,
    density: Contamination,
}

/// Settings of [`Mixture`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct MixtureSettings {
    pub(crate) epsilon: f64,
    pub(crate) learn_epsilon: bool,
    pub(crate) sigma_floor: f64,
}

/// Steps of a fit, at most, and the relative change of σ at which it ends.
const STEPS: usize = 500;
const CHANGE: f64 = 1e-6;

/// A learnt ε stays this far from 0 and 1.
const MARGIN: f64 = 1e-3;

/// σ and ε of residuals with these squared errors in `width` components, by expectation–maximisation (Dempster, Laird and
/// Rubin 1977): from all residuals' deviation, with z the responsibilities, σ² = Σ z e / Σ z, and where ε is learnt it is the
/// mean of 1 − z.
fn fit(errors: &[f64], width: usize, settings: MixtureSettings) -> (f64, f64) {
    let floor = settings.sigma_floor;
    // What is not finite ends the training when its sample is drawn.
    let errors: Vec<f64> = errors.iter().copied().filter(|error| error.is_finite()).collect();
    if errors.is_empty() {
        return (1.0_f64.max(floor), settings.epsilon);
    }
    let average = errors.iter().sum::<f64>() / errors.len() as f64;
    let (mut sigma, mut epsilon) = (average.sqrt().max(floor), settings.epsilon);
    for _ in 0..STEPS {
        let responsibility = Responsibility::new(width, sigma, epsilon);
        let (mut weight, mut square) = (0.0, 0.0);
        for error in &errors {
            let responsibility = responsibility.of(*error);
            weight += responsibility;
            square += responsibility * error;
        }
        let before = sigma;
        // Where nothing is left of the Gaussian, it stays what it is.
        if weight > 0.0 {
            sigma = (square / weight).sqrt().max(floor);
        }
        if settings.learn_epsilon {
            epsilon = (1.0 - weight / errors.len() as f64).clamp(MARGIN, 1.0 - MARGIN);
        }
        if (sigma - before).abs() <= CHANGE * sigma {
            break;
        }
    }
    (sigma, epsilon)
}

impl Mixture {
    /// For policies of these data.
    pub(crate) fn new(data: &Data, settings: MixtureSettings) -> Result<Self, NnError> {
        let fitted = vec![(1.0, settings.epsilon); data.members];
        Ok(Self {
            density: Contamination::new(&data.components(), &fitted, data.device())?,
            fitted,
            settings,
        })
    }

    /// Fits each policy's parameters to what it is off now.
    fn refit(&mut self, course: &Course<'_>) -> Result<(), NnError> {
        let residuals = residuals_of_some(course)?;
        let widths = course.data.components().into_iter().enumerate();
        self.fitted = widths
            .map(|(member, width)| fit(&residuals.errors(member), width, self.settings))
            .collect();
        self.density.set(&self.fitted)
    }
}

impl Rule for Mixture {
    fn begin_epoch(&mut self, _: u64, course: &Course<'_>) -> Result<(), NnError> {
        self.refit(course)
    }

    fn judge(&mut self, batch: &mut Batch) -> Result<Verdict, NnError> {
        let judged = self.density.judge(&batch.errors)?;
        // 2σ²/A times the likelihood's gradient, so that the size of steps and of clipped gradients does not depend on σ.
        batch.follow(&judged.weight)?;
        Ok(Verdict {
            loss: mean(&judged.loss)?,
            selected: None,
        })
    }

    fn notes(&self) -> Result<Notes, NnError> {
        Ok(Notes {
            sigma: self.fitted.iter().map(|(sigma, _)| Some(*sigma)).collect(),
            effective: Vec::new(),
        })
    }

    fn trust(&mut self, course: &Course<'_>) -> Result<Option<Vec<f64>>, NnError> {
        self.refit(course)?;
        let residuals = course.residuals()?;
        let fitted = self.fitted.iter().zip(course.data.components());
        let trust = fitted
            .enumerate()
            .flat_map(|(member, ((sigma, epsilon), width))| {
                let density = Responsibility::new(width, *sigma, *epsilon);
                let errors = residuals.errors(member);
                errors.into_iter().map(move |error| density.of(error))
            });
        Ok(Some(trust.collect()))
    }
}

#[cfg(test)]
mod tests {
    use provenir_random::Stream;

    use super::*;

    /// Squared errors of a mixture with these parameters, and which came from the Gaussian.
    fn draw(width: usize, sigma: f64, epsilon: f64, count: usize) -> Vec<f64> {
        let mut stream = Stream::new(5, "mixture");
        (0..count)
            .map(|_| {
                let uniform = stream.f64() < epsilon;
                let sum: f64 = (0..width)
                    .map(|_| {
                        let value = if uniform {
                            stream.uniform(-1.0, 1.0)
                        } else {
                            sigma * stream.normal()
                        };
                        value * value
                    })
                    .sum();
                sum / width as f64
            })
            .collect()
    }

    #[test]
    fn a_fit_finds_the_parameters_of_the_mixture_that_it_sees() {
        for (width, sigma, epsilon) in [(1, 0.05, 0.3), (3, 0.1, 0.2), (8, 0.2, 0.1)] {
            let errors = draw(width, sigma, epsilon, 20_000);
            let settings = MixtureSettings {
                epsilon,
                learn_epsilon: false,
                sigma_floor: 1e-3,
            };
            let (found, kept) = fit(&errors, width, settings);
            assert!((found / sigma - 1.0).abs() < 0.03, "{found} for {sigma}");
            assert!((kept - epsilon).abs() < 1e-15);
            let learnt = MixtureSettings {
                epsilon: 0.5,
                learn_epsilon: true,
                ..settings
            };
            let (found, share) = fit(&errors, width, learnt);
            assert!((found / sigma - 1.0).abs() < 0.03, "{found} for {sigma}");
            assert!((share - epsilon).abs() < 0.02, "{share} for {epsilon}");
        }
    }

    #[test]
    fn a_fit_is_a_stationary_point_of_the_likelihood() {
        let errors = draw(2, 0.1, 0.25, 3000);
        let settings = MixtureSettings {
            epsilon: 0.2,
            learn_epsilon: true,
            sigma_floor: 1e-3,
        };
        let (sigma, epsilon) = fit(&errors, 2, settings);
        let likelihood = |sigma: f64, epsilon: f64| -> f64 {
            let normaliser = 1.0 / (2.0 * std::f64::consts::PI * sigma * sigma);
            let density =
                |error: &f64| (1.0 - epsilon) * normaliser * (-error / (sigma * sigma)).exp() + epsilon / 4.0;
            errors.iter().map(|error| density(error).ln()).sum::<f64>() / 3000.0
        };
        let best = likelihood(sigma, epsilon);
        for (sigma, epsilon) in [
            (sigma * 1.01, epsilon),
            (sigma * 0.99, epsilon),
            (sigma, epsilon * 1.02),
            (sigma, epsilon * 0.98),
        ] {
            assert!(likelihood(sigma, epsilon) < best);
        }
    }

    #[test]
    fn the_floor_holds_where_everything_is_fitted() {
        let settings = MixtureSettings {
            epsilon: 0.2,
            learn_epsilon: false,
            sigma_floor: 0.05,
        };
        assert!((fit(&[0.0; 10], 3, settings).0 - 0.05).abs() < 1e-15);
    }
}

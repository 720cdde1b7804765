use provenir_nn::NnError;
use provenir_random::Stream;

use crate::cloning::Course;
use crate::sweep::{Residuals, Sweep};

/// The most samples that a scale is estimated from: to about a hundredth of itself.
const COUNT: usize = 4096;

/// What each policy is off at some samples of its data set: always the same ones, chosen at random.
pub(crate) fn residuals_of_some(course: &Course<'_>) -> Result<Residuals, NnError> {
    let samples = course.data.samples;
    let choose = |stream: &Stream| stream.child("scale", 0).choose(samples, COUNT.min(samples));
    let chosen: Vec<Vec<usize>> = course.networks.iter().map(choose).collect();
    let ensemble = course.ensemble;
    Sweep::over(ensemble, course.data, &chosen)?.residuals(ensemble)
}

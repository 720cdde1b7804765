use provenir_execution::{Context, Failure};
use provenir_nn::NnError;

use super::bc::{LeastSquares, Loss};
use crate::cloning::{Cloning, Setting};
use crate::method::Method;
use crate::run::failure;

/// Behaviour cloning of the samples whose actions lie within ±`bound` in every component.
pub(crate) fn range_filter<'a>(
    setting: &Setting<'a>,
    bound: f64,
    context: &Context<'_>,
) -> Result<Box<dyn Method + 'a>, Failure> {
    let within = within(setting, bound).map_err(failure)?;
    let samples = setting.data.samples;
    for kept in &within {
        if kept.is_empty() {
            return Err(
                Failure::stage(format!("no action lies within ±{bound} in every component"))
                    .help("give a larger `range_filter.bound`"),
            );
        }
        context.info(format!(
            "{} of {samples} samples have an action beyond ±{bound} and are left out",
            samples - kept.len()
        ));
    }
    let rule = LeastSquares::new(Loss::SquaredError, setting.data).map_err(failure)?;
    let mut cloning = Cloning::new(setting, 1, rule).map_err(failure)?;
    cloning.restrict(within);
    Ok(Box::new(cloning))
}

/// The samples of each data set whose actions do.
fn within(setting: &Setting<'_>, bound: f64) -> Result<Vec<Vec<usize>>, NnError> {
    let data = setting.data;
    let mut actions = vec![0.0_f32; data.actions.numel()];
    let count = actions.len();
    data.actions.f_copy_data(&mut actions, count)?;
    // What lies beyond the components of a data set is 0, and within every bound.
    let columns = data.action_columns();
    let sets = actions.chunks(data.samples * columns);
    Ok(sets
        .map(|actions| {
            let is_within = |action: &[f32]| action.iter().all(|value| f64::from(value.abs()) <= bound);
            let rows = actions.chunks(columns).enumerate();
            rows.filter(|(_, action)| is_within(action))
                .map(|(sample, _)| sample)
                .collect()
        })
        .collect())
}

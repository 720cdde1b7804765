use provenir_execution::Failure;
use provenir_nn::NnError;

use super::Wanted;
use crate::data::Data;
use crate::run::failure;

/// The samples of each policy's data set whose actions lie within ±`bound` in every component.
pub(crate) fn within(wanted: &[Wanted<'_>], data: &Data, bound: f64) -> Result<Vec<Vec<usize>>, Failure> {
    let within = samples_within(data, bound).map_err(failure)?;
    for (kept, wanted) in within.iter().zip(wanted) {
        if kept.is_empty() {
            return Err(
                Failure::stage(format!("no action lies within ±{bound} in every component"))
                    .help("give a larger `range_filter.bound`"),
            );
        }
        let told = format!(
            "{} of {} samples have an action beyond ±{bound} and are left out",
            data.samples - kept.len(),
            data.samples
        );
        // More than any share of outliers that can be withstood.
        if 2 * kept.len() < data.samples {
            wanted.context.warn(told);
        } else {
            wanted.context.info(told);
        }
    }
    Ok(within)
}

fn samples_within(data: &Data, bound: f64) -> Result<Vec<Vec<usize>>, NnError> {
    let mut actions = vec![0.0_f32; data.actions.numel()];
    let count = actions.len();
    data.actions.f_copy_data(&mut actions, count)?;
    // What lies beyond the components of a data set is 0, and within every bound.
    let columns = data.action_columns();
    let within: Vec<Vec<usize>> = actions
        .chunks(data.samples * columns)
        .map(|actions| {
            let is_within = |action: &[f32]| action.iter().all(|value| f64::from(value.abs()) <= bound);
            let rows = actions.chunks(columns).enumerate();
            rows.filter(|(_, action)| is_within(action))
                .map(|(sample, _)| sample)
                .collect()
        })
        .collect();
    Ok(data.sets.iter().map(|set| within[*set].clone()).collect())
}

use std::sync::atomic::AtomicBool;

use provenir_api::protocol::{Level, Progress};
use provenir_execution::{Context, Failure, Reporter};
use provenir_kinds::train::TrainParameters;

use crate::cloning::Setting;
use crate::methods::{Wanted, method};
use crate::run::{Plan, failure};

/// Gradient steps that are taken before time is measured.
const STEPS: usize = 10;

/// What is said of a method that is thrown away is said of the one that learns, too.
struct Silent;

impl Reporter for Silent {
    fn progress(&self, _: Progress) {}
    fn log(&self, _: Level, _: &str) {}
}

/// Takes some steps of which nothing is kept: the first ones of a process load what the device computes with, and reserve
/// memory, which is no training.
pub(crate) fn warm_up(
    parameters: &TrainParameters,
    setting: &Setting<'_>,
    plan: &Plan,
) -> Result<(), Failure> {
    let never = AtomicBool::new(false);
    let silent = Context::new(&Silent, &never, "");
    let wanted = Wanted {
        parameters,
        context: &silent,
    };
    let mut method = method(&vec![wanted; setting.data.members], setting)?;
    method.begin_epoch(0).map_err(failure)?;
    let stretch = plan.stretch(0, 0, STEPS.min(method.stretch()));
    let rates = vec![plan.rates.clone(); stretch.within.len()];
    method.announce(&stretch, &rates).map_err(failure)?;
    for step in stretch.within {
        method.step(step).map_err(failure)?;
        method.trace().wait().map_err(failure)?;
    }
    Ok(())
}

//! Times policies that are trained together beside the same ones trained one by one, on one core: what decides from which
//! width on company costs more than it saves on a processor.
//!
//! 20,000 samples of 16 observations and 3 actions each, three hidden layers, minibatches of 256, one thread. Prints
//! milliseconds a step and policy, and how many times faster than one by one that is.
//!
//! ```text
//! cargo run --release -p provenir-train --example groups [-- WIDTH…]
//! ```

#![expect(clippy::print_stdout, reason = "an example talks to the person who runs it")]

mod support;

use std::error::Error;
use std::sync::atomic::AtomicBool;

use camino::Utf8Path;
use provenir_execution::{Cell, Context, Execution, Inputs};
use provenir_kinds::train::TrainParameters;
use provenir_train::TrainExecution;
use serde_json::json;
use support::{Silent, demonstrations};

const SAMPLES: usize = 20_000;
const BATCH: usize = 256;
const EPOCHS: usize = 3;
const SIZES: [usize; 6] = [1, 4, 8, 16, 32, 64];

/// Milliseconds a step and policy: the least of the epochs after the first.
fn time(parameters: &TrainParameters, inputs: &Inputs, size: usize) -> Result<f64, Box<dyn Error>> {
    let cancelled = AtomicBool::new(false);
    // Checkpoints, if the machine is slow enough for any, are gone with the folder: nothing goes on from what was timed before.
    let scratch = tempfile::tempdir()?;
    let scratch = Utf8Path::from_path(scratch.path()).ok_or("a temporary folder whose name is not UTF-8")?;
    let contexts: Vec<_> = (0..size)
        .map(|member| Context::new(&Silent, &cancelled, scratch.join(member.to_string())))
        .collect();
    let members: Vec<TrainParameters> = (0..size as u64)
        .map(|seed| TrainParameters {
            seed,
            ..parameters.clone()
        })
        .collect();
    let cells: Vec<_> = members
        .iter()
        .zip(&contexts)
        .map(|(parameters, context)| Cell {
            parameters,
            inputs,
            context,
        })
        .collect();
    let outputs = TrainExecution.execute_together(&cells).remove(0)?;
    let timing = outputs.get_table("timing").ok_or("no timing")?;
    let steps = SAMPLES.div_ceil(BATCH) as f64;
    let seconds = timing.column_f64("seconds")?;
    let least = seconds
        .windows(2)
        .map(|ends| ends[1] - ends[0])
        .fold(f64::INFINITY, f64::min);
    Ok(least / steps / size as f64 * 1e3)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut widths = std::env::args()
        .skip(1)
        .map(|width| width.parse())
        .collect::<Result<Vec<u32>, _>>()?;
    if widths.is_empty() {
        widths = vec![32, 64, 128, 256];
    }
    let inputs = Inputs::new().with_table("demos", demonstrations(SAMPLES, (16, 3))?.into_table()?);
    for method in ["bc", "rbc"] {
        for width in &widths {
            let parameters: TrainParameters = serde_json::from_value(json!({
                "method": method, "hidden": [width, width, width], "epochs": EPOCHS, "batch": BATCH, "device": "cpu",
            }))?;
            let times = SIZES.map(|size| time(&parameters, &inputs, size));
            let mut alone = None;
            for (size, time) in SIZES.into_iter().zip(times) {
                let time = time?;
                let alone = *alone.get_or_insert(time);
                println!(
                    "{method} 3x{width}, {size} together: {time:.3} ms a step and policy, {:.2} times one by one",
                    alone / time
                );
            }
        }
    }
    Ok(())
}

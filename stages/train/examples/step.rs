//! Times gradient steps of `train` as it runs in a pipeline: what `scripts/bench_torch.py` does in PyTorch, and the robust
//! methods beside it.
//!
//! 60,000 samples of 16 observations and 3 actions, three hidden layers, minibatches of 256 (chunks of 960 for the robust
//! methods), gradients clipped, Adam, one thread. Prints milliseconds a step, median and least over epochs.
//!
//! ```text
//! cargo run --release -p provenir-train --example step [-- WIDTH…]
//! ```

#![expect(clippy::print_stdout, reason = "an example talks to the person who runs it")]

mod support;

use std::error::Error;
use std::sync::atomic::AtomicBool;

use camino::Utf8Path;
use provenir_execution::{Context, Execution, Inputs};
use provenir_kinds::train::TrainParameters;
use provenir_train::TrainExecution;
use serde_json::json;
use support::{Silent, demonstrations};

const SAMPLES: usize = 60_000;
const BATCH: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let mut widths = std::env::args()
        .skip(1)
        .map(|width| width.parse())
        .collect::<Result<Vec<u32>, _>>()?;
    if widths.is_empty() {
        widths = vec![64, 256, 500];
    }
    let inputs = Inputs::new().with_table("demos", demonstrations(SAMPLES, (16, 3))?.into_table()?);
    for width in widths {
        for (method, objective, epochs) in [
            ("bc", "direct", 8),
            ("rbc", "min-max", 4),
            ("rbc", "direct", 4),
            ("trimmed", "direct", 4),
            ("mixture", "direct", 4),
            ("robust-loss", "direct", 4),
            ("co-teaching", "direct", 4),
        ] {
            let parameters: TrainParameters = serde_json::from_value(json!({
                "method": method, "rbc": { "objective": objective }, "hidden": [width, width, width],
                "epochs": epochs, "batch": BATCH, "device": "cpu",
            }))?;
            let cancelled = AtomicBool::new(false);
            // Checkpoints, if the machine is slow enough for any, are gone with the folder: nothing goes on from what was timed before.
            let scratch = tempfile::tempdir()?;
            let scratch =
                Utf8Path::from_path(scratch.path()).ok_or("a temporary folder whose name is not UTF-8")?;
            let context = Context::new(&Silent, &cancelled, scratch);
            let outputs = TrainExecution.execute(&parameters, &inputs, &context)?;
            let timing = outputs.get_table("timing").ok_or("no timing")?;
            let steps = SAMPLES.div_ceil(BATCH) as f64;
            let mut times: Vec<f64> = timing
                .column_f64("seconds")?
                .windows(2)
                .map(|ends| (ends[1] - ends[0]) / steps * 1e3)
                .collect();
            times.sort_by(f64::total_cmp);
            let name = if method == "rbc" {
                format!("{method} {objective}")
            } else {
                method.to_owned()
            };
            println!(
                "provenir {name} 3x{width}: {:.3} ms/step (least {:.3})",
                times[times.len() / 2],
                times[0]
            );
        }
    }
    Ok(())
}

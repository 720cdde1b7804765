//! What a GPU is worth to `train`: correctness against the processor, the speed of steps, and the workload W256, each part
//! within a time of its own. Run by `benches/gpu.sh`.
//!
//! It is measured through `TrainExecution::execute_together`, as a pipeline trains: data on the host to tables on the host.
//! Data are drawn from seeded streams, with Ant's widths (29 observed values with the time feature, 8 actions), the widest
//! of the four robots. As in the reference, 36 policies learn from as many data sets (4 robots, each as it was recorded and in
//! 8 corruptions), each of which the device holds; of 144 policies, four at a time have one in common, which it holds once.
//!
//! ```text
//! gpu [--device cuda|cpu] [--tiny] [--seconds N]
//! gpu --self-check
//! ```
//!
//! `--tiny` shrinks everything, so that a processor shows in seconds that the program does what it is for. `--self-check`
//! measures nothing, needs no GPU, and fails where no GPU can be of use to the program, because it was built without CUDA's
//! headers. Exits with 1 where a check fails.

#![expect(clippy::print_stdout, reason = "an example talks to the person who runs it")]

mod checks;
mod sets;
#[path = "../support/mod.rs"]
mod support;
mod training;
mod w256;
mod workload;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use provenir_nn::device::check_build;
use training::{Clock, train};
use workload::{Kind, Size, Task};

/// What was asked for.
struct Request {
    is_self_check: bool,
    device: String,
    is_tiny: bool,
    /// Of all parts.
    seconds: f64,
}

fn request() -> Result<Request, String> {
    let mut request = Request {
        is_self_check: false,
        device: "cuda".to_owned(),
        is_tiny: false,
        seconds: 350.0,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("`{argument}` needs a value"));
        match argument.as_str() {
            "--self-check" => request.is_self_check = true,
            "--device" => request.device = value()?,
            "--tiny" => request.is_tiny = true,
            "--seconds" => {
                let text = value()?;
                request.seconds = text
                    .parse()
                    .ok()
                    .filter(|seconds: &f64| *seconds > 0.0 && *seconds < 1e6)
                    .ok_or(format!("`--seconds {text}` is no number of seconds"))?;
            }
            _ => {
                return Err(format!(
                    "`{argument}` is not known: --device cuda|cpu, --tiny, --seconds N, --self-check"
                ));
            }
        }
    }
    if !matches!(request.device.as_str(), "cuda" | "cpu") {
        return Err(format!("`--device {}` is neither cuda nor cpu", request.device));
    }
    Ok(request)
}

/// What PyTorch with CUDA graphs took on one H100, in ms a step: `None` where that was not measured.
fn reference(kind: Kind, policies: usize, size: &Size) -> Option<f64> {
    if policies != 36 || size.is_tiny {
        return None;
    }
    Some(match kind {
        Kind::Bc => 0.92,
        Kind::MinMax => 4.0,
        Kind::Direct => 2.2,
        Kind::NoisyBc => 0.98,
    })
}

/// A table of steps. Gives the ms a step of the first number of policies, method by method.
fn table(
    size: &Size,
    kinds: &[Kind],
    parity: bool,
    clock: &Clock,
    limit: Duration,
) -> Result<Vec<(Kind, f64)>, Box<dyn Error>> {
    println!(
        "{:<14} {:>4} {:>6} {:>9} {:>9} {:>11} {:>13}",
        "method", "K", "steps", "ms/step", "TFLOP/s", "200 ep., s", "reference, ms"
    );
    let rows = kinds.len() * size.policies.len();
    let end = clock.now() + limit;
    let mut done = 0;
    let mut found = Vec::new();
    for policies in size.policies {
        for kind in kinds {
            // What earlier rows left over is the others'.
            let share = end.saturating_sub(clock.now()) / (rows - done) as u32;
            done += 1;
            // Two rounds of Noisy BC: the second half of the epochs is weighted.
            let task =
                Task::new(*kind, size.table_samples, policies, size.table_epochs, parity).with_rounds(2);
            let measured = train(&task, size, clock, share)?;
            let Some(ms) = measured.step_ms(&task) else {
                println!(
                    "{:<14} {policies:>4} {:>6} no rate within {:.1} s",
                    kind.name(),
                    task.steps(),
                    share.as_secs_f64()
                );
                continue;
            };
            if policies == size.policies[0] {
                found.push((*kind, ms));
            }
            println!(
                "{:<14} {policies:>4} {:>6} {ms:>9.3} {:>9.2} {:>11.1} {:>13}",
                kind.name(),
                task.steps(),
                task.flop_per_step(size) / (ms * 1e9),
                ms * 1e-3 * (task.steps() * 200) as f64,
                reference(*kind, policies, size)
                    .map_or("-".to_owned(), |reference| format!("{reference:.2}")),
            );
        }
    }
    Ok(found)
}

fn run(request: &Request) -> Result<bool, Box<dyn Error>> {
    let size = Size::new(&request.device, request.is_tiny);
    let clock = Clock::start();
    let of_all = |share: f64| Duration::from_secs_f64(share * request.seconds);

    println!("== correctness");
    let passed = checks::check(&size, &clock, of_all(0.2))?;
    println!("({:.1} s)", clock.now().as_secs_f64());

    println!(
        "\n== steps of the reference: N/256 an epoch for bc and noisy-bc, N/960 for rbc; chunk 960, window 60 %, TF32"
    );
    let rates = table(&size, &Kind::ALL, false, &clock, of_all(0.22))?;
    println!("({:.1} s)", clock.now().as_secs_f64());

    println!("\n== step parity, which is the default of `train`: N/256 steps an epoch for rbc, too");
    let parity = table(&size, &[Kind::MinMax, Kind::Direct], true, &clock, of_all(0.12))?;
    println!("({:.1} s)", clock.now().as_secs_f64());

    println!("\n== W256: to beat 274 s (PyTorch with CUDA graphs, one H100); the aim is 140 s");
    let left = of_all(1.0).saturating_sub(clock.now());
    w256::run(&size, &clock, left, &rates, &parity)?;
    println!("({:.1} s)", clock.now().as_secs_f64());
    Ok(passed)
}

fn main() -> ExitCode {
    let request = match request() {
        Ok(request) => request,
        Err(message) => {
            println!("{message}");
            return ExitCode::from(2);
        }
    };
    let passed = if request.is_self_check {
        check_build().map(|()| true).map_err(Into::into)
    } else {
        run(&request)
    };
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("FAIL: {error}");
            ExitCode::FAILURE
        }
    }
}

//! Environment steps per second of processor time: uniform actions, reset where an episode ends.
//!
//! `cargo bench -p provenir-sim --bench steps -- [ROBOT] [STEPS]` prints one number;
//! `scripts/bench_pybullet.py` runs it beside PyBullet.

use provenir_random::Stream;
use provenir_sim::{Environment, Task};
use rustix::time::{ClockId, clock_gettime};

#[expect(clippy::print_stdout, reason = "the number is what this program is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo adds `--bench`.
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"));
    let task = Task::named(arguments.next().as_deref().unwrap_or("hopper"))?;
    let steps: u32 = arguments.next().as_deref().unwrap_or("50000").parse()?;

    let mut environment = Environment::new(task, false);
    let mut actions = Stream::new(0, "actions");
    let mut action = vec![0.0_f32; task.action_width()];
    let mut episode = 0;
    environment.reset(episode);
    let start = processor_seconds();
    for _ in 0..steps {
        action.fill_with(|| actions.uniform(-1.0, 1.0) as f32);
        if environment.step(&action)?.is_last() {
            episode += 1;
            environment.reset(episode);
        }
    }
    println!("{:.0}", f64::from(steps) / (processor_seconds() - start));
    Ok(())
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

//! Resident memory over a million steps with resets where episodes end.
//!
//! `cargo bench -p provenir-sim --bench memory -- [ROBOT] [STEPS]`

use provenir_random::Stream;
use provenir_sim::{Environment, Task};

#[expect(clippy::print_stdout, reason = "the numbers are what this program is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo adds `--bench`.
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"));
    let name = arguments.next().unwrap_or_else(|| "hopper".to_owned());
    let task = Task::named(&name)?;
    let steps: u32 = arguments.next().as_deref().unwrap_or("1000000").parse()?;

    let mut environment = Environment::new(task, false);
    let mut draws = Stream::new(0, "actions");
    let mut action = vec![0.0_f32; task.action_width()];
    let mut episode = 0;
    environment.reset(episode);
    let mut first = 0;
    for step in 0..steps {
        if step == steps / 100 {
            first = resident()?;
        }
        action.fill_with(|| draws.uniform(-1.0, 1.0) as f32);
        if environment.step(&action)?.is_last() {
            episode += 1;
            environment.reset(episode);
        }
    }
    println!(
        "{name}: {first} KiB resident after {} steps, {} KiB after {steps}, {episode} episodes",
        steps / 100,
        resident()?
    );
    Ok(())
}

fn resident() -> Result<usize, Box<dyn std::error::Error>> {
    let status = fs_err::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

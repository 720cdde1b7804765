//! Lanes stepped by two threads beside one: environment steps per second of wall-clock time, in interleaved rounds.
//!
//! `cargo bench -p provenir-sim --bench lanes -- [ROBOT] [LANES] [STEPS]`. The ratio means something where two cores are
//! free; that of processor time, which a second thread spends on waiting and waking, does on busy machines too.

use provenir_random::Stream;
use provenir_sim::{Lanes, Step, Task};
use rustix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 5;

#[expect(clippy::print_stdout, reason = "the numbers are what this program is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo adds `--bench`.
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"));
    let name = arguments.next().unwrap_or_else(|| "hopper".to_owned());
    let task = Task::named(&name)?;
    let lanes: usize = arguments.next().as_deref().unwrap_or("16").parse()?;
    let steps: usize = arguments.next().as_deref().unwrap_or("1000").parse()?;

    let clocks = [ClockId::Monotonic, ClockId::ProcessCPUTime];
    // By threads, then by clock.
    let mut times = [const { [const { Vec::new() }; 2] }; 2];
    for _ in 0..ROUNDS {
        for (threads, times) in (1..).zip(&mut times) {
            let mut lanes = Lanes::new(task, false, lanes).with_threads(threads)?;
            let before = clocks.map(seconds);
            run(&mut lanes, steps)?;
            for ((time, clock), before) in times.iter_mut().zip(clocks).zip(before) {
                time.push(seconds(clock) - before);
            }
        }
    }
    let [[one, one_processor], [two, two_processor]] = times.map(|times| times.map(median));
    let rate = |time: f64| (steps * lanes) as f64 / time;
    println!(
        "{name}, {lanes} lanes: {:.0} steps per second with one thread, {:.0} with two: {:.2} times, at {:.2} times the \
         processor time",
        rate(one),
        rate(two),
        one / two,
        two_processor / one_processor
    );
    Ok(())
}

fn run(lanes: &mut Lanes, steps: usize) -> Result<(), Box<dyn std::error::Error>> {
    let mut draws = Stream::new(0, "actions");
    let mut actions = vec![0.0_f32; lanes.len() * lanes.action_width()];
    let mut seed = 0;
    for _ in 0..steps {
        actions.fill_with(|| draws.uniform(-1.0, 1.0) as f32);
        let ended: Vec<bool> = lanes.step(&actions)?.iter().map(Step::is_last).collect();
        for lane in (0..ended.len()).filter(|lane| ended[*lane]) {
            seed += 1;
            lanes.reset(lane, seed);
        }
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

//! Two threads beside one: environment steps per second of wall-clock time, in interleaved rounds.
//!
//! * rollouts, as `collect` and `evaluate` run them: each thread has lanes and a policy (2 × 256, of random weights) of its
//!   own, and takes the next episode when one of its own ends;
//! * lanes, as `expert` steps them: so many take a step, and wait for each other and the next actions (uniform ones).
//!
//! `cargo bench -p provenir-sim --bench lanes -- ROBOT [LANES…]`. The ratios mean something where two cores are free; those
//! of processor time, which a second thread spends on waiting and waking, do on busy machines too.

use provenir_policy::{About, ActionMap, Activation, Layer, Policy, Squash};
use provenir_random::Stream;
use provenir_sim::{Lanes, Rollouts, Step, Task};
use rustix::time::{ClockId, clock_gettime};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const ROUNDS: usize = 5;
/// About so many in each measurement.
const STEPS: usize = 32_000;
const HIDDEN: usize = 256;

fn main() -> Result<()> {
    // Cargo adds `--bench`.
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"));
    let name = arguments.next().unwrap_or_else(|| "hopper".to_owned());
    let task = Task::named(&name)?;
    let policy = policy(task)?;
    let some: Vec<u64> = (0..16).collect();
    let length = roll_out(task, &policy, 1, &some)? / some.len();
    // Enough of them that no thread idles long at the end.
    let episodes: Vec<u64> = (0..(STEPS / length).max(32) as u64).collect();
    compare(&format!("{name}, rollouts"), |threads| {
        roll_out(task, &policy, threads, &episodes)
    })?;
    for lanes in arguments {
        let lanes: usize = lanes.parse()?;
        compare(&format!("{name}, {lanes} lanes"), |threads| {
            step_together(task, threads, lanes)
        })?;
    }
    Ok(())
}

/// Prints what two threads are to one; `work` takes their number and gives that of environment steps.
#[expect(clippy::print_stdout, reason = "the numbers are what this program is for")]
fn compare(what: &str, work: impl Fn(usize) -> Result<usize>) -> Result<()> {
    let clocks = [ClockId::Monotonic, ClockId::ProcessCPUTime];
    // By threads, then by clock.
    let mut times = [const { [const { Vec::new() }; 2] }; 2];
    let mut steps = 0;
    for _ in 0..ROUNDS {
        for (threads, times) in (1..).zip(&mut times) {
            let before = clocks.map(seconds);
            steps = work(threads)?;
            for ((time, clock), before) in times.iter_mut().zip(clocks).zip(before) {
                time.push(seconds(clock) - before);
            }
        }
    }
    let [[one, one_processor], [two, two_processor]] = times.map(|times| times.map(median));
    println!(
        "{what}: {:.0} steps per second with one thread, {:.0} with two: {:.2} times, at {:.2} times the processor time",
        steps as f64 / one,
        steps as f64 / two,
        one / two,
        two_processor / one_processor
    );
    Ok(())
}

fn roll_out(task: &Task, policy: &Policy, threads: usize, seeds: &[u64]) -> Result<usize> {
    let rollouts = Rollouts {
        task,
        time_feature: false,
        threads,
        discount: 0.99,
        record: false,
    };
    let actors = || {
        let mut actor = policy.actor();
        move |observations: &[f32], actions: &mut [f32]| actor.act(observations, actions)
    };
    let episodes = rollouts.run(seeds, actors, |_| true)?;
    Ok(episodes.iter().map(|episode| episode.length as usize).sum())
}

/// A policy that moves, and knows nothing.
fn policy(task: &Task) -> Result<Policy> {
    let mut draws = Stream::new(0, "weights");
    let (observation, action) = (task.observation_width(), task.action_width());
    let mut layer = |inputs: usize, outputs: usize| {
        let bound = (3.0 / inputs as f64).sqrt();
        let mut fill = |count: usize| (0..count).map(|_| draws.uniform(-bound, bound) as f32).collect();
        Layer::new(inputs, outputs, fill(inputs * outputs), fill(outputs))
    };
    Ok(Policy::new(
        vec![
            layer(observation, HIDDEN)?,
            layer(HIDDEN, HIDDEN)?,
            layer(HIDDEN, action)?,
        ],
        Activation::Relu,
        None,
        ActionMap {
            squash: Squash::Clip,
            low: vec![-1.0; action],
            high: vec![1.0; action],
        },
        About::default(),
    )?)
}

fn step_together(task: &Task, threads: usize, lanes: usize) -> Result<usize> {
    let mut draws = Stream::new(0, "actions");
    let mut lanes = Lanes::new(task, false, lanes).with_threads(threads)?;
    let mut actions = vec![0.0_f32; lanes.len() * lanes.action_width()];
    let mut seed = 0;
    let rounds = STEPS / lanes.len();
    for _ in 0..rounds {
        actions.fill_with(|| draws.uniform(-1.0, 1.0) as f32);
        let ended: Vec<bool> = lanes.step(&actions)?.iter().map(Step::is_last).collect();
        for lane in (0..ended.len()).filter(|lane| ended[*lane]) {
            seed += 1;
            lanes.reset(lane, seed);
        }
    }
    Ok(rounds * lanes.len())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

//! Times the updates of `expert`'s learner: what `scripts/bench_sac.py` does with Stable-Baselines3.
//!
//! Batches are gathered at random from 50,000 transitions; one thread. Prints updates a second of processor time.
//!
//! ```text
//! cargo run --release -p provenir-expert --example updates -- \
//!     sac|sac-gsde|tqc|crossq|crossq-tqc BATCH WIDTH[,WIDTH…] OBSERVATION ACTION UPDATES
//! ```

#![expect(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::error::Error;

use provenir_expert::{Batch, Learner, LearnerSettings, Value};
use provenir_nn::device::set_threads;
use provenir_random::Stream;
use rustix::time::{ClockId, clock_gettime};
use tch::Device;

const TRANSITIONS: u64 = 50_000;

/// Updates before those that are timed.
const WARM_UP: u64 = 50;

/// Rows of one width, and those of a batch.
struct Column {
    width: usize,
    all: Vec<f32>,
    batch: Vec<f32>,
}

impl Column {
    fn new(name: &str, width: usize) -> Self {
        let mut stream = Stream::new(0, name);
        Self {
            width,
            all: (0..TRANSITIONS as usize * width)
                .map(|_| stream.uniform(-1.0, 1.0) as f32)
                .collect(),
            batch: Vec::new(),
        }
    }

    fn gather(&mut self, rows: &[usize]) {
        self.batch.clear();
        for row in rows {
            self.batch
                .extend_from_slice(&self.all[row * self.width..][..self.width]);
        }
    }
}

fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [algorithm, batch, widths, observation, action, updates] = &arguments[..] else {
        return Err("ALGORITHM BATCH WIDTHS OBSERVATION ACTION UPDATES are needed".into());
    };
    let (observation, action, updates) = (observation.parse()?, action.parse()?, updates.parse::<u64>()?);
    let (normalised_critics, value) = match algorithm.as_str() {
        "sac" | "sac-gsde" => (false, Value::Mean),
        "crossq" => (true, Value::Mean),
        "tqc" | "crossq-tqc" => (
            algorithm != "tqc",
            Value::Quantiles {
                count: 25,
                dropped: 2,
            },
        ),
        other => return Err(format!("no such algorithm: {other}").into()),
    };
    let settings = LearnerSettings {
        hidden: widths.split(',').map(str::parse).collect::<Result<_, _>>()?,
        value,
        normalised_critics,
        gsde: (algorithm == "sac-gsde").then_some(-3.0),
        learning_rate: 3e-4,
        batch: batch.parse()?,
        tau: 0.005,
        policy_delay: if normalised_critics { 3 } else { 1 },
        temperature: None,
    };
    set_threads(1);
    let mut learner = Learner::new(&settings, observation, action, 0, Device::Cpu)?;
    let mut columns = [
        Column::new("observations", observation),
        Column::new("actions", action),
        Column::new("rewards", 1),
        Column::new("next observations", observation),
        Column::new("discounts", 1),
    ];
    let mut stream = Stream::new(0, "rows");
    let mut before = 0.0;
    for update in 0..WARM_UP + updates {
        if update == WARM_UP {
            before = seconds();
        }
        let rows: Vec<usize> = (0..settings.batch)
            .map(|_| stream.below(TRANSITIONS) as usize)
            .collect();
        for column in &mut columns {
            column.gather(&rows);
        }
        let [observations, actions, rewards, next_observations, discounts] = &columns;
        let _ = learner.update(
            &Batch {
                observations: &observations.batch,
                actions: &actions.batch,
                rewards: &rewards.batch,
                next_observations: &next_observations.batch,
                discounts: &discounts.batch,
            },
            1.0,
        )?;
    }
    println!("{:.1}", updates as f64 / (seconds() - before));
    Ok(())
}

//! What the examples are timed on.

use std::error::Error;

use provenir_api::protocol::{Level, Progress};
use provenir_execution::Reporter;
use provenir_random::Stream;
use provenir_table::Matrix;
use provenir_table::demonstrations::{About, Demonstrations};

/// Hears nothing.
pub(crate) struct Silent;

impl Reporter for Silent {
    fn progress(&self, _: Progress) {}
    fn log(&self, _: Level, _: &str) {}
}

/// So many samples of so many observations and actions.
pub(crate) fn demonstrations(
    samples: usize,
    (observation, action): (usize, usize),
) -> Result<Demonstrations, Box<dyn Error>> {
    let mut stream = Stream::new(0, "bench");
    let observations = (0..samples * observation)
        .map(|_| stream.normal() as f32)
        .collect();
    let actions = (0..samples * action)
        .map(|_| stream.uniform(-1.0, 1.0) as f32)
        .collect();
    Ok(Demonstrations {
        sample: (0..samples as u64).collect(),
        episode: vec![0; samples],
        step: (0..samples as u32).collect(),
        observation: Matrix::new(observation, observations)?,
        action: Matrix::new(action, actions)?,
        reward: vec![0.0; samples],
        terminated: vec![false; samples],
        truncated: vec![false; samples],
        about: About::default(),
    })
}

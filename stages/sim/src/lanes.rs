use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use thiserror::Error;

use crate::environment::{Environment, SimError, Step};
use crate::task::Task;

/// Environments of one task that are stepped together, their observations gathered for one batched pass of a policy.
///
/// Lanes do not influence each other, and nothing depends on the number of threads. A lane whose episode has ended goes on
/// until it is reset: so that its last observation can be read, no lane begins another episode by itself.
#[derive(Debug)]
pub struct Lanes {
    environments: Vec<Environment>,
    /// Row after row, those of the environments.
    observations: Vec<f32>,
    steps: Vec<Step>,
    width: usize,
    action_width: usize,
    /// Where more than the caller's thread steps.
    pool: Option<ThreadPool>,
}

/// A lane whose environment refused its action.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("environment {lane}: {error}")]
pub struct LaneError {
    /// Which.
    pub lane: usize,
    /// Why.
    pub error: SimError,
}

impl Lanes {
    /// So many environments, each at rest with all joints at zero, stepped by the caller's thread.
    pub fn new(task: &Task, time_feature: bool, count: usize) -> Self {
        let environments: Vec<_> = (0..count).map(|_| Environment::new(task, time_feature)).collect();
        let still = Step {
            reward: 0.0,
            terminated: false,
            truncated: false,
        };
        Self {
            observations: environments
                .iter()
                .flat_map(Environment::observation)
                .copied()
                .collect(),
            steps: vec![still; count],
            width: task.observation_width() + usize::from(time_feature),
            action_width: task.action_width(),
            environments,
            pool: None,
        }
    }

    /// The same, stepped by so many threads, which live as long as the lanes.
    pub fn with_threads(self, threads: usize) -> Result<Self, SimError> {
        if threads <= 1 {
            return Ok(Self { pool: None, ..self });
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("lanes {number}"))
            .build()
            .map_err(|error| SimError::Threads(error.to_string()))?;
        Ok(Self {
            pool: Some(pool),
            ..self
        })
    }

    /// How many lanes there are.
    pub fn len(&self) -> usize {
        self.environments.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.environments.is_empty()
    }

    /// Numbers in an observation, the time feature included.
    pub fn observation_width(&self) -> usize {
        self.width
    }

    /// Numbers in an action.
    pub fn action_width(&self) -> usize {
        self.action_width
    }

    /// The current observations of all lanes, row after row.
    pub fn observations(&self) -> &[f32] {
        &self.observations
    }

    /// The current observation of a lane.
    pub fn observation(&self, lane: usize) -> &[f32] {
        &self.observations[lane * self.width..][..self.width]
    }

    /// A lane's environment, to look at.
    pub fn environment(&self, lane: usize) -> &Environment {
        &self.environments[lane]
    }

    /// Begins the episode of that seed in a lane.
    pub fn reset(&mut self, lane: usize, seed: u64) {
        let observation = self.environments[lane].reset(seed);
        self.observations[lane * self.width..][..self.width].copy_from_slice(observation);
    }

    /// Takes one step in every lane; `actions` holds one row a lane. Where one of them is refused no lane has taken it.
    pub fn step(&mut self, actions: &[f32]) -> Result<&[Step], LaneError> {
        assert_eq!(actions.len(), self.len() * self.action_width, "one action a lane");
        for (lane, (environment, action)) in self
            .environments
            .iter()
            .zip(actions.chunks_exact(self.action_width))
            .enumerate()
        {
            environment
                .check(action)
                .map_err(|error| LaneError { lane, error })?;
        }
        let Self {
            environments,
            observations,
            steps,
            width,
            action_width,
            pool,
        } = self;
        let advance = |environment: &mut Environment, action: &[f32], row: &mut [f32], step: &mut Step| {
            *step = environment.advance(action);
            row.copy_from_slice(environment.observation());
        };
        match pool {
            None => environments
                .iter_mut()
                .zip(actions.chunks_exact(*action_width))
                .zip(observations.chunks_exact_mut(*width))
                .zip(steps.iter_mut())
                .for_each(|(((environment, action), row), step)| advance(environment, action, row, step)),
            Some(pool) => pool.install(|| {
                environments
                    .par_iter_mut()
                    .zip(actions.par_chunks_exact(*action_width))
                    .zip(observations.par_chunks_exact_mut(*width))
                    .zip(steps.par_iter_mut())
                    .for_each(|(((environment, action), row), step)| advance(environment, action, row, step));
            }),
        }
        Ok(steps)
    }

    /// Takes one step in one lane; the others stand still.
    pub fn step_lane(&mut self, lane: usize, action: &[f32]) -> Result<Step, SimError> {
        let environment = &mut self.environments[lane];
        environment.check(action)?;
        self.steps[lane] = environment.advance(action);
        self.observations[lane * self.width..][..self.width].copy_from_slice(environment.observation());
        Ok(self.steps[lane])
    }

    /// Takes a lane out; the last one takes its place.
    pub fn swap_remove(&mut self, lane: usize) {
        let last = self.len() - 1;
        self.environments.swap_remove(lane);
        self.steps.swap_remove(lane);
        self.observations
            .copy_within(last * self.width.., lane * self.width);
        self.observations.truncate(last * self.width);
    }
}

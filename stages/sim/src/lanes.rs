use thiserror::Error;

use crate::crew::{Crew, Lane};
use crate::environment::{Environment, SimError, Step};
use crate::task::Task;

/// Environments of one task that are stepped together, their observations gathered for one batched pass of a policy.
///
/// Lanes do not influence each other, and nothing depends on the number of threads. A lane whose episode has ended goes on
/// until it is reset: so that its last observation can be read, no lane begins another episode by itself.
#[derive(Debug)]
pub struct Lanes {
    crew: Crew,
    /// Lanes that have not been taken out: the first of the crew's.
    count: usize,
    /// Row after row, those of the environments.
    observations: Vec<f32>,
    steps: Vec<Step>,
    width: usize,
    action_width: usize,
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
        let crew = Crew::new((0..count).map(|_| Lane::new(Environment::new(task, time_feature))));
        Self {
            observations: (0..count)
                .flat_map(|lane| crew.lane(lane).environment.observation().to_vec())
                .collect(),
            steps: (0..count).map(|lane| crew.lane(lane).step).collect(),
            width: task.observation_width() + usize::from(time_feature),
            action_width: task.action_width(),
            count,
            crew,
        }
    }

    /// The same, stepped by so many threads, of which the caller's is one; the others live as long as the lanes.
    pub fn with_threads(mut self, threads: usize) -> Result<Self, SimError> {
        for _ in 1..threads.min(self.count) {
            self.crew
                .hire()
                .map_err(|error| SimError::Threads(error.to_string()))?;
        }
        Ok(self)
    }

    /// How many lanes there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
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

    /// Steps taken in a lane's episode.
    pub fn episode_steps(&self, lane: usize) -> u32 {
        self.crew.lane(lane).environment.steps()
    }

    /// Begins the episode of that seed in a lane.
    pub fn reset(&mut self, lane: usize, seed: u64) {
        let mut own = self.crew.lane(lane);
        self.observations[lane * self.width..][..self.width].copy_from_slice(own.environment.reset(seed));
    }

    /// Takes one step in every lane; `actions` holds one row a lane. Where one of them is refused no lane has taken it.
    pub fn step(&mut self, actions: &[f32]) -> Result<&[Step], LaneError> {
        assert_eq!(actions.len(), self.count * self.action_width, "one action a lane");
        for (lane, action) in actions.chunks_exact(self.action_width).enumerate() {
            let mut own = self.crew.lane(lane);
            own.environment
                .check(action)
                .map_err(|error| LaneError { lane, error })?;
            own.action.copy_from_slice(action);
        }
        self.crew.step(self.count);
        let rows = self.observations.chunks_exact_mut(self.width);
        for (lane, (row, step)) in rows.zip(&mut self.steps).enumerate() {
            let own = self.crew.lane(lane);
            row.copy_from_slice(own.environment.observation());
            *step = own.step;
        }
        Ok(&self.steps)
    }

    /// Takes one step in one lane; the others stand still.
    pub fn step_lane(&mut self, lane: usize, action: &[f32]) -> Result<Step, SimError> {
        let mut own = self.crew.lane(lane);
        let step = own.environment.step(action)?;
        self.observations[lane * self.width..][..self.width].copy_from_slice(own.environment.observation());
        self.steps[lane] = step;
        Ok(step)
    }

    /// Takes a lane out; the last one takes its place.
    pub fn swap_remove(&mut self, lane: usize) {
        let last = self.count - 1;
        self.crew.swap(lane, last);
        self.steps.swap_remove(lane);
        self.observations
            .copy_within(last * self.width.., lane * self.width);
        self.observations.truncate(last * self.width);
        self.count = last;
    }
}

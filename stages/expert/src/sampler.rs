use provenir_random::Stream;
use provenir_sim::{LaneError, Lanes, SimError};

use crate::replay::{Replay, Transition};

/// Environments that step side by side; where an episode ends the next one begins.
///
/// Episodes are numbered as they begin, those that begin together in the order of their lanes. What an episode begins with
/// depends on its number alone.
pub(crate) struct Sampler {
    lanes: Lanes,
    /// What runs in each lane.
    running: Vec<Running>,
    /// Draw n is the seed of episode n.
    seeds: Stream,
    /// Episodes begun.
    begun: u64,
    gamma: f32,
    /// What every environment showed before a step, row by row.
    before: Vec<f32>,
}

struct Running {
    state: LaneState,
    total_reward: f64,
}

/// A running episode, as far as it takes to get there again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LaneState {
    /// Its number.
    pub(crate) episode: u64,
    /// All actions so far, step after step.
    pub(crate) actions: Vec<f32>,
}

/// All running episodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SamplerState {
    pub(crate) begun: u64,
    pub(crate) lanes: Vec<LaneState>,
    /// What every environment shows: proof that it got there.
    pub(crate) observations: Vec<f32>,
}

/// An episode that ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) total_reward: f64,
}

impl Sampler {
    /// The first episodes begin in these lanes, of which there is at least one.
    pub(crate) fn new(mut lanes: Lanes, seeds: Stream, gamma: f32) -> Self {
        let count = lanes.len();
        let mut running = Vec::with_capacity(count);
        for lane in 0..count {
            let episode = lane as u64;
            lanes.reset(lane, seeds.at(episode));
            running.push(Running {
                state: LaneState {
                    episode,
                    actions: Vec::new(),
                },
                total_reward: 0.0,
            });
        }
        Self {
            lanes,
            running,
            seeds,
            begun: count as u64,
            gamma,
            before: Vec::new(),
        }
    }

    /// How many environments.
    pub(crate) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// Numbers in an observation.
    pub(crate) fn observation_width(&self) -> usize {
        self.lanes.observation_width()
    }

    /// Numbers in an action.
    pub(crate) fn action_width(&self) -> usize {
        self.lanes.action_width()
    }

    /// Episodes that ended.
    pub(crate) fn ended(&self) -> u64 {
        self.begun - self.lanes.len() as u64
    }

    /// What every environment shows, row by row.
    pub(crate) fn observations(&self) -> &[f32] {
        self.lanes.observations()
    }

    /// A step of every environment, with a row of `actions` each; what they gave goes into the replay buffer in the order
    /// of the lanes. Gives the episodes that ended.
    pub(crate) fn step(&mut self, actions: &[f32], replay: &mut Replay) -> Result<Vec<Ended>, Trouble> {
        let (observation_width, action_width) = (self.observation_width(), self.action_width());
        self.before.clear();
        self.before.extend_from_slice(self.lanes.observations());
        let steps = self
            .lanes
            .step(actions)
            .map_err(|LaneError { error, .. }| Trouble::Simulation(error))?
            .to_vec();
        let rows = self
            .before
            .chunks_exact(observation_width)
            .zip(actions.chunks_exact(action_width));
        let mut ended = Vec::new();
        for (lane, ((running, step), (observation, action))) in
            self.running.iter_mut().zip(steps).zip(rows).enumerate()
        {
            let next_observation = self.lanes.observation(lane);
            if !step.reward.is_finite() || !next_observation.iter().all(|value| value.is_finite()) {
                return Err(Trouble::Diverged {
                    episode: running.state.episode,
                    step: self.lanes.episode_steps(lane),
                });
            }
            replay.push(Transition {
                observation,
                action,
                reward: step.reward as f32,
                next_observation,
                discount: if step.terminated { 0.0 } else { self.gamma },
            });
            running.total_reward += step.reward;
            running.state.actions.extend(action);
            if step.is_last() {
                ended.push(Ended {
                    total_reward: running.total_reward,
                });
                running.state.episode = self.begun;
                running.state.actions.clear();
                running.total_reward = 0.0;
                self.lanes.reset(lane, self.seeds.at(self.begun));
                self.begun += 1;
            }
        }
        Ok(ended)
    }

    /// The running episodes.
    pub(crate) fn save(&self) -> SamplerState {
        SamplerState {
            begun: self.begun,
            lanes: self.running.iter().map(|running| running.state.clone()).collect(),
            observations: self.lanes.observations().to_vec(),
        }
    }

    /// Plays the running episodes again up to where they stood. `false` where that is not possible, or leads elsewhere: the
    /// sampler is then of no further use.
    pub(crate) fn load(&mut self, state: &SamplerState) -> bool {
        let width = self.action_width();
        if state.lanes.len() != self.running.len() {
            return false;
        }
        for (lane, (running, saved)) in self.running.iter_mut().zip(&state.lanes).enumerate() {
            if saved.episode >= state.begun || !saved.actions.len().is_multiple_of(width) {
                return false;
            }
            self.lanes.reset(lane, self.seeds.at(saved.episode));
            running.total_reward = 0.0;
            for action in saved.actions.chunks_exact(width) {
                match self.lanes.step_lane(lane, action) {
                    Ok(step) if !step.is_last() => running.total_reward += step.reward,
                    _ => return false,
                }
            }
            running.state = saved.clone();
        }
        self.begun = state.begun;
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        bits(self.lanes.observations()) == bits(&state.observations)
    }
}

/// Why an environment did not step.
#[derive(Debug)]
pub(crate) enum Trouble {
    Simulation(SimError),
    /// It gave a number that is not finite.
    Diverged {
        episode: u64,
        step: u32,
    },
}

#[cfg(test)]
mod tests {
    use provenir_sim::{Environment, Task};

    use super::*;

    fn sampler(count: usize) -> Sampler {
        sampler_on(1, count)
    }

    fn sampler_on(threads: usize, count: usize) -> Sampler {
        let lanes = Lanes::new(Task::named("hopper").unwrap(), false, count)
            .with_threads(threads)
            .unwrap();
        Sampler::new(lanes, Stream::new(8, "episodes"), 0.9)
    }

    /// An actor whose actions depend on the observation alone.
    fn act(observations: &[f32]) -> Vec<f32> {
        let rows = observations.chunks_exact(15);
        rows.flat_map(|row| [row[8].sin(), 0.5 - row[10], row[12] * row[0]])
            .collect()
    }

    /// Returns of the first episodes that end, and their transitions in between, lane by lane.
    fn play(sampler: &mut Sampler, rounds: usize) -> (Vec<f64>, Replay) {
        let mut replay = Replay::new(15, 3, 1 << 20);
        let mut returns = Vec::new();
        for _ in 0..rounds {
            let actions = act(sampler.observations());
            let ended = sampler.step(&actions, &mut replay).unwrap();
            returns.extend(ended.iter().map(|ended| ended.total_reward));
        }
        (returns, replay)
    }

    #[test]
    fn an_episode_depends_on_its_seed_and_actor_and_not_on_those_beside_it() {
        let (one_by_one, _) = play(&mut sampler(1), 400);
        let mut four = sampler(4);
        let (returns, _) = play(&mut four, 200);
        assert!(one_by_one.len() > 8, "{}", one_by_one.len());
        assert_eq!(four.ended(), returns.len() as u64);
        assert!(returns.len() >= one_by_one.len());
        for expected in one_by_one {
            let same = |found: &&f64| found.to_bits() == expected.to_bits();
            assert_eq!(
                returns.iter().filter(same).count(),
                1,
                "{expected} in {returns:?}"
            );
        }
    }

    #[test]
    fn transitions_are_those_of_an_environment_played_alone() {
        let count = 3;
        let mut sampler = sampler(count);
        let (returns, replay) = play(&mut sampler, 120);
        assert!(returns.len() > count);
        let rows = replay.rows_from(0);
        let task = Task::named("hopper").unwrap();
        let seeds = Stream::new(8, "episodes");
        let mut next_episode = count as u64;
        let mut environments: Vec<Environment> = (0..count).map(|_| Environment::new(task, false)).collect();
        for (lane, environment) in environments.iter_mut().enumerate() {
            environment.reset(seeds.at(lane as u64));
        }
        for (number, row) in rows.chunks(15 + 3 + 1 + 15 + 1).enumerate() {
            let environment = &mut environments[number % count];
            let (before, rest) = row.split_at(15);
            let (action, rest) = rest.split_at(3);
            assert_eq!(before, environment.observation());
            assert_eq!(action, act(before));
            let step = environment.step(action).unwrap();
            assert_eq!(rest[0].to_bits(), (step.reward as f32).to_bits());
            assert_eq!(&rest[1..16], environment.observation());
            let discount: f32 = if step.terminated { 0.0 } else { 0.9 };
            assert_eq!(rest[16].to_bits(), discount.to_bits());
            if step.is_last() {
                environment.reset(seeds.at(next_episode));
                next_episode += 1;
            }
        }
        assert_eq!(next_episode, sampler.ended() + count as u64);
        assert!(rows.chunks(35).any(|row| row[34] == 0.0));
    }

    #[test]
    fn transitions_do_not_depend_on_threads() {
        let (returns, replay) = play(&mut sampler(5), 100);
        for threads in [2, 3] {
            let (again, repeated) = play(&mut sampler_on(threads, 5), 100);
            assert_eq!(again, returns);
            assert_eq!(repeated.rows_from(0), replay.rows_from(0));
        }
    }

    #[test]
    fn what_comes_after_the_time_limit_counts() {
        let task = Task::named("half-cheetah").unwrap();
        let mut sampler = Sampler::new(Lanes::new(task, false, 2), Stream::new(8, "episodes"), 0.9);
        let mut replay = Replay::new(task.observation_width(), task.action_width(), 2_100);
        let still = vec![0.0; 2 * task.action_width()];
        let mut ended = Vec::new();
        let mut first = Vec::new();
        for round in 1..=1_001 {
            let before = sampler.observations().to_vec();
            if !sampler.step(&still, &mut replay).unwrap().is_empty() {
                ended.push(round);
                // The buffer holds what the episode came to, the sampler shows where the next one begins.
                first = sampler.observations().to_vec();
                assert_ne!(first, before);
            }
        }
        assert_eq!(ended, [1_000]);
        let rows = replay.rows_from(0);
        let rows: Vec<&[f32]> = rows.chunks(replay.width()).collect();
        assert!(
            rows.iter()
                .all(|row| row[row.len() - 1].to_bits() == 0.9_f32.to_bits())
        );
        let width = task.observation_width();
        for lane in 0..2 {
            let next = |round: usize| &rows[2 * round + lane][width + task.action_width() + 1..][..width];
            let observed = |round: usize| &rows[2 * round + lane][..width];
            assert_eq!(next(998), observed(999));
            assert_ne!(next(999), observed(1_000));
            assert_eq!(observed(1_000), &first[lane * width..][..width]);
        }
    }

    #[test]
    fn running_episodes_are_found_again() {
        let mut there = sampler(3);
        play(&mut there, 57);
        let saved = there.save();
        let mut again = sampler(3);
        assert!(again.load(&saved));
        assert_eq!(again.save(), saved);
        let (expected, replay) = play(&mut there, 100);
        let (returns, repeated) = play(&mut again, 100);
        assert_eq!(returns, expected);
        assert_eq!(repeated.rows_from(0), replay.rows_from(0));

        let refused = |change: &dyn Fn(&mut SamplerState)| {
            let mut changed = saved.clone();
            change(&mut changed);
            assert!(!sampler(3).load(&changed));
        };
        refused(&|state| state.observations[20] += 1e-6);
        refused(&|state| state.lanes[1].actions[0] += 1e-3);
        refused(&|state| state.lanes[2].episode = state.begun);
        refused(&|state| state.lanes[0].actions.truncate(4));
        refused(&|state| state.lanes.truncate(2));
    }
}

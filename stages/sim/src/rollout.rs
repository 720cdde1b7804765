use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::environment::{SimError, Step};
use crate::lanes::{LaneError, Lanes};
use crate::task::Task;

/// The most episodes that a thread runs side by side: enough rows for one pass over the weights of a network to be worth
/// its memory traffic.
const LANES: usize = 32;

/// How to run episodes.
#[derive(Clone, Copy, Debug)]
pub struct Rollouts<'a> {
    /// What the robot is to do.
    pub task: &'a Task,
    /// Whether observations end with the time feature.
    pub time_feature: bool,
    /// How many threads share the episodes; at least 1 is used.
    pub threads: usize,
    /// γ of the discounted returns.
    pub discount: f64,
    /// Whether episodes keep their transitions.
    pub record: bool,
}

/// A finished episode.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// What it was begun with.
    pub seed: u64,
    /// The return: rewards added in order.
    pub total_reward: f64,
    /// The discounted return: Σ γᵗ rₜ, added in order.
    pub discounted_reward: f64,
    /// Steps.
    pub length: u32,
    /// It ended in a fall.
    pub terminated: bool,
    /// It ended at the time limit.
    pub truncated: bool,
    /// Where they were to be recorded.
    pub transitions: Option<Transitions>,
}

/// What happened in an episode, one row a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transitions {
    /// Observations before each step, row after row.
    pub observations: Vec<f32>,
    /// Actions, row after row.
    pub actions: Vec<f32>,
    /// Rewards.
    pub rewards: Vec<f64>,
}

impl Rollouts<'_> {
    /// Runs exactly the episodes of these seeds, and gives them in that order.
    ///
    /// `actors` makes an actor for each thread: a function that reads observations (rows × width) and writes actions
    /// (rows × width). Where its rows do not influence each other, which is its duty, no episode depends on the number of
    /// threads or on the episodes beside it. `go_on` is asked after every batched step with the number of episodes that
    /// are finished so far; `false` ends the rollout with [`SimError::Stopped`].
    pub fn run<Actor>(
        &self,
        seeds: &[u64],
        actors: impl Fn() -> Actor + Sync,
        go_on: impl Fn(usize) -> bool + Sync,
    ) -> Result<Vec<Episode>, SimError>
    where
        Actor: FnMut(&[f32], &mut [f32]),
    {
        let threads = self.threads.clamp(1, seeds.len().max(1));
        let shared = Shared {
            seeds,
            next: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            lanes: seeds.len().div_ceil(threads).min(LANES),
        };
        let results: Vec<_> = std::thread::scope(|scope| {
            let work = || self.work(&shared, &mut actors(), &go_on);
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let joined = others.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            std::iter::once(own).chain(joined).collect()
        });
        let mut episodes = Vec::with_capacity(seeds.len());
        let mut errors = Vec::new();
        for result in results {
            match result {
                Ok(part) => episodes.extend(part),
                Err(failed) => errors.push(failed),
            }
        }
        // A thread's error stops the others; theirs is the consequence, and of two causes the earlier episode's is told.
        if let Some((_, error)) = errors.into_iter().min_by_key(|(index, _)| *index) {
            return Err(error);
        }
        episodes.sort_unstable_by_key(|(index, _)| *index);
        Ok(episodes.into_iter().map(|(_, episode)| episode).collect())
    }

    /// One thread's share: lanes that each take the next seed when their episode ends.
    fn work(
        &self,
        shared: &Shared<'_>,
        actor: &mut impl FnMut(&[f32], &mut [f32]),
        go_on: impl Fn(usize) -> bool,
    ) -> Result<Vec<(usize, Episode)>, (usize, SimError)> {
        let mut running: Vec<_> = std::iter::from_fn(|| shared.take())
            .take(shared.lanes)
            .map(|(index, seed)| Running::begin(index, seed, self.record))
            .collect();
        let mut lanes = Lanes::new(self.task, self.time_feature, running.len());
        for (lane, running) in running.iter().enumerate() {
            lanes.reset(lane, running.episode.seed);
        }
        let width = lanes.action_width();
        let mut actions = vec![0.0; lanes.len() * width];
        let mut finished = Vec::new();
        while !lanes.is_empty() {
            actions.truncate(lanes.len() * width);
            actor(lanes.observations(), &mut actions);
            for (lane, running) in running.iter_mut().enumerate() {
                running.note(lanes.observation(lane), &actions[lane * width..][..width]);
            }
            let steps = lanes.step(&actions).map_err(|LaneError { lane, error }| {
                shared.failed.store(true, Ordering::Relaxed);
                (running[lane].index, error)
            })?;
            for (running, step) in running.iter_mut().zip(steps) {
                running.take(step, self.discount);
            }
            // Backwards, so that removal moves only lanes that were already looked at.
            for lane in (0..lanes.len()).rev() {
                if !running[lane].last {
                    continue;
                }
                shared.finished.fetch_add(1, Ordering::Relaxed);
                let ended = if let Some((index, seed)) = shared.take() {
                    lanes.reset(lane, seed);
                    std::mem::replace(&mut running[lane], Running::begin(index, seed, self.record))
                } else {
                    lanes.swap_remove(lane);
                    running.swap_remove(lane)
                };
                finished.push((ended.index, ended.episode));
            }
            if shared.failed.load(Ordering::Relaxed) || !go_on(shared.finished.load(Ordering::Relaxed)) {
                return Err((usize::MAX, SimError::Stopped));
            }
        }
        Ok(finished)
    }
}

/// What the threads of a rollout share.
struct Shared<'a> {
    seeds: &'a [u64],
    next: AtomicUsize,
    finished: AtomicUsize,
    failed: AtomicBool,
    lanes: usize,
}

impl Shared<'_> {
    fn take(&self) -> Option<(usize, u64)> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        self.seeds.get(index).map(|seed| (index, *seed))
    }
}

/// The episode that runs in a lane.
struct Running {
    index: usize,
    episode: Episode,
    /// γ to the number of steps so far.
    weight: f64,
    last: bool,
}

impl Running {
    fn begin(index: usize, seed: u64, record: bool) -> Self {
        let episode = Episode {
            seed,
            total_reward: 0.0,
            discounted_reward: 0.0,
            length: 0,
            terminated: false,
            truncated: false,
            transitions: record.then(Transitions::default),
        };
        Self {
            index,
            episode,
            weight: 1.0,
            last: false,
        }
    }

    /// Where transitions are recorded: what the actor saw and chose.
    fn note(&mut self, observation: &[f32], action: &[f32]) {
        if let Some(transitions) = &mut self.episode.transitions {
            transitions.observations.extend(observation);
            transitions.actions.extend(action);
        }
    }

    /// What came of it.
    fn take(&mut self, step: &Step, discount: f64) {
        if let Some(transitions) = &mut self.episode.transitions {
            transitions.rewards.push(step.reward);
        }
        self.episode.total_reward += step.reward;
        self.episode.discounted_reward += self.weight * step.reward;
        self.weight *= discount;
        self.episode.length += 1;
        self.episode.terminated = step.terminated;
        self.episode.truncated = step.truncated;
        self.last = step.is_last();
    }
}

use provenir_execution::Failure;
use provenir_sim::{Episode, Transitions};
use provenir_table::demonstrations::{About, Demonstrations};
use provenir_table::{Matrix, Table, TableBuilder};

/// Episodes in the order in which they were pushed, up to a number of samples.
#[derive(Debug)]
pub(crate) struct Recording {
    widths: Widths,
    /// How many transitions may still be recorded.
    room: usize,
    transitions: Transitions,
    episode: Vec<u32>,
    step: Vec<u32>,
    ends: Vec<End>,
}

/// Numbers in an observation and in an action.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Widths {
    pub(crate) observation: usize,
    pub(crate) action: usize,
}

/// An episode's row: the whole of it, and how much was recorded.
#[derive(Clone, Copy, Debug)]
struct End {
    total_reward: f64,
    length: u32,
    terminated: bool,
    truncated: bool,
    recorded: u32,
}

impl Recording {
    /// An empty recording with room for this many transitions.
    pub(crate) fn new(widths: Widths, room: usize) -> Self {
        Self {
            widths,
            room,
            transitions: Transitions::default(),
            episode: Vec::new(),
            step: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Number of episodes so far.
    pub(crate) fn episodes(&self) -> usize {
        self.ends.len()
    }

    /// Number of transitions that there is still room for.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Mean length of the episodes so far; 0 where there are none.
    pub(crate) fn mean_length(&self) -> f64 {
        let total: f64 = self.ends.iter().map(|end| f64::from(end.length)).sum();
        total / self.ends.len().max(1) as f64
    }

    /// Mean return of the episodes so far; 0 where there are none.
    pub(crate) fn mean_return(&self) -> f64 {
        let total: f64 = self.ends.iter().map(|end| end.total_reward).sum();
        total / self.ends.len().max(1) as f64
    }

    /// Records as much of an episode as there is room for; one that is cut ends there, truncated, among the transitions. Its
    /// row tells of the whole: without it, returns and lengths would be biased.
    pub(crate) fn push(&mut self, episode: &Episode) {
        let Some(recorded) = &episode.transitions else {
            unreachable!("an episode without transitions is not for recording");
        };
        let length = recorded.rewards.len().min(self.room);
        if length == 0 {
            return;
        }
        let rewards = &recorded.rewards[..length];
        let number = self.ends.len() as u32;
        self.ends.push(End {
            total_reward: episode.total_reward,
            length: episode.length,
            terminated: episode.terminated,
            truncated: episode.truncated,
            recorded: length as u32,
        });
        self.episode.resize(self.episode.len() + length, number);
        self.step.extend(0..length as u32);
        let Widths { observation, action } = self.widths;
        self.transitions
            .observations
            .extend(&recorded.observations[..length * observation]);
        self.transitions
            .actions
            .extend(&recorded.actions[..length * action]);
        self.transitions.rewards.extend(rewards);
        self.room -= length;
    }

    /// The tables `demos` and `episodes`.
    pub(crate) fn into_tables(self, about: About) -> Result<(Table, Table), Failure> {
        let (mut terminated, mut truncated) = (vec![false; self.step.len()], vec![false; self.step.len()]);
        let mut last = 0;
        for end in &self.ends {
            last += end.recorded as usize;
            let cut = end.recorded < end.length;
            terminated[last - 1] = end.terminated && !cut;
            truncated[last - 1] = end.truncated || cut;
        }
        let column = |value: fn(&End) -> bool| self.ends.iter().map(value).collect();
        let episodes = TableBuilder::new()
            .u32("episode", (0..self.ends.len() as u32).collect())
            .f64("return", self.ends.iter().map(|end| end.total_reward).collect())
            .u32("length", self.ends.iter().map(|end| end.length).collect())
            .unit("steps")
            .bool("terminated", column(|end| end.terminated))
            .bool("truncated", column(|end| end.truncated))
            .u32("recorded", self.ends.iter().map(|end| end.recorded).collect())
            .unit("steps")
            .metadata("environment", &about.environment)
            .metadata("expert", &about.expert)
            .build()?;
        let demos = Demonstrations {
            sample: (0..self.step.len() as u64).collect(),
            episode: self.episode,
            step: self.step,
            observation: Matrix::new(self.widths.observation, self.transitions.observations)?,
            action: Matrix::new(self.widths.action, self.transitions.actions)?,
            reward: self
                .transitions
                .rewards
                .into_iter()
                .map(|reward| reward as f32)
                .collect(),
            terminated,
            truncated,
            about,
        };
        Ok((demos.into_table()?, episodes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTHS: Widths = Widths {
        observation: 2,
        action: 1,
    };

    /// An episode of observations (k, 10 k), actions −k and rewards 1 + k.
    fn episode(length: u32, terminated: bool) -> Episode {
        let steps = || (0..length).map(|step| step as f32);
        Episode {
            seed: 0,
            total_reward: steps().map(|step| f64::from(step) + 1.0).sum(),
            discounted_reward: 0.0,
            length,
            terminated,
            truncated: !terminated,
            transitions: Some(Transitions {
                observations: steps().flat_map(|step| [step, 10.0 * step]).collect(),
                actions: steps().map(|step| -step).collect(),
                rewards: steps().map(|step| f64::from(step) + 1.0).collect(),
            }),
        }
    }

    fn tables(lengths: &[u32], room: usize) -> (Demonstrations, Table) {
        let mut recording = Recording::new(WIDTHS, room);
        for (number, length) in lengths.iter().enumerate() {
            recording.push(&episode(*length, number % 2 == 0));
        }
        let (demos, episodes) = recording.into_tables(About::default()).unwrap();
        (Demonstrations::from_table(&demos).unwrap(), episodes)
    }

    #[test]
    fn whole_episodes_end_as_they_did() {
        let (demos, episodes) = tables(&[2, 3], usize::MAX);
        assert_eq!(demos.sample, [0, 1, 2, 3, 4]);
        assert_eq!(demos.episode, [0, 0, 1, 1, 1]);
        assert_eq!(demos.step, [0, 1, 0, 1, 2]);
        assert_eq!(demos.observation.row(4), [2.0, 20.0]);
        assert_eq!(demos.action.values(), [0.0, -1.0, 0.0, -1.0, -2.0]);
        assert_eq!(demos.reward, [1.0, 2.0, 1.0, 2.0, 3.0]);
        assert_eq!(demos.terminated, [false, true, false, false, false]);
        assert_eq!(demos.truncated, [false, false, false, false, true]);
        assert_eq!(episodes.column_f64("return").unwrap(), [3.0, 6.0]);
        assert_eq!(episodes.column_u32("length").unwrap(), [2, 3]);
        assert_eq!(episodes.column_bool("terminated").unwrap(), [true, false]);
        assert_eq!(episodes.column_bool("truncated").unwrap(), [false, true]);
    }

    #[test]
    fn the_last_episode_is_cut_and_truncated_even_where_it_terminated_later() {
        let (demos, episodes) = tables(&[2, 2, 5, 4], 7);
        assert_eq!(demos.episode, [0, 0, 1, 1, 2, 2, 2]);
        assert_eq!(demos.terminated, [false, true, false, false, false, false, false]);
        assert_eq!(demos.truncated, [false, false, false, true, false, false, true]);
        // The row tells of the whole episode.
        assert_eq!(episodes.column_f64("return").unwrap(), [3.0, 3.0, 15.0]);
        assert_eq!(episodes.column_u32("length").unwrap(), [2, 2, 5]);
        assert_eq!(episodes.column_u32("recorded").unwrap(), [2, 2, 3]);
        assert_eq!(episodes.column_bool("terminated").unwrap(), [true, false, true]);
        assert_eq!(episodes.column_bool("truncated").unwrap(), [false, true, false]);
    }

    #[test]
    fn an_episode_that_just_fits_is_whole_and_the_next_leaves_no_trace() {
        let (demos, episodes) = tables(&[3, 1], 3);
        assert_eq!((demos.rows(), episodes.rows()), (3, 1));
        assert_eq!((demos.terminated[2], demos.truncated[2]), (true, false));
    }
}

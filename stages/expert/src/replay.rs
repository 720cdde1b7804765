use provenir_random::Stream;

/// What an environment gave at a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Transition<'a> {
    pub(crate) observation: &'a [f32],
    pub(crate) action: &'a [f32],
    pub(crate) reward: f32,
    /// What was observed after the step, be it the last of its episode.
    pub(crate) next_observation: &'a [f32],
    /// What the value of `next_observation` counts for: 0 where the episode terminated. An episode that was cut at the time
    /// limit would have gone on, and counts like any other.
    pub(crate) discount: f32,
}

/// The last transitions, up to a capacity: a ring of rows.
pub(crate) struct Replay {
    observation: usize,
    action: usize,
    capacity: u64,
    /// Transition n stands at row n mod `capacity`; observation, action, reward, next observation and discount of each.
    rows: Vec<f32>,
    /// How many were ever pushed.
    pushed: u64,
}

/// Transitions, column by column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Columns {
    pub(crate) observations: Vec<f32>,
    pub(crate) actions: Vec<f32>,
    pub(crate) rewards: Vec<f32>,
    pub(crate) next_observations: Vec<f32>,
    pub(crate) discounts: Vec<f32>,
}

impl Replay {
    /// An empty buffer for observations and actions of these widths.
    pub(crate) fn new(observation: usize, action: usize, capacity: u64) -> Self {
        Self {
            observation,
            action,
            capacity,
            rows: Vec::new(),
            pushed: 0,
        }
    }

    /// Numbers a row.
    pub(crate) fn width(&self) -> usize {
        2 * self.observation + self.action + 2
    }

    /// How many transitions it can hold.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How many transitions it holds.
    pub(crate) fn len(&self) -> u64 {
        self.pushed.min(self.capacity)
    }

    /// How many were ever pushed.
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Adds a transition in place of the oldest, where it is full.
    pub(crate) fn push(&mut self, transition: Transition<'_>) {
        let Transition {
            observation,
            action,
            reward,
            next_observation,
            discount,
        } = transition;
        assert_eq!(observation.len(), self.observation);
        assert_eq!(next_observation.len(), self.observation);
        assert_eq!(action.len(), self.action);
        let numbers = observation
            .iter()
            .chain(action)
            .chain(std::iter::once(&reward))
            .chain(next_observation)
            .chain(std::iter::once(&discount));
        if self.pushed < self.capacity {
            self.rows.extend(numbers);
        } else {
            let place = self.place(self.pushed);
            for (old, new) in self.rows[place].iter_mut().zip(numbers) {
                *old = *new;
            }
        }
        self.pushed += 1;
    }

    /// Where transition n stands.
    fn place(&self, number: u64) -> std::ops::Range<usize> {
        let start = (number % self.capacity) as usize * self.width();
        start..start + self.width()
    }

    /// As many transitions as asked for, each drawn uniformly from all that are held.
    pub(crate) fn sample(&self, count: usize, mut stream: Stream, columns: &mut Columns) {
        columns.clear();
        for _ in 0..count {
            // Until the ring is full its rows are 0 .. len; afterwards all of them.
            let place = self.place(stream.below(self.len()));
            columns.push(&self.rows[place], self.observation, self.action);
        }
    }

    /// The transitions from number `first` on, row by row; they must still be held.
    pub(crate) fn rows_from(&self, first: u64) -> Vec<f32> {
        assert!(first <= self.pushed && self.pushed - first <= self.len());
        (first..self.pushed)
            .flat_map(|number| &self.rows[self.place(number)])
            .copied()
            .collect()
    }

    /// A buffer that continues where another of the same shape stood that had seen `pushed` transitions; `rows` are the
    /// last ones, in order. Nothing where they are not as many as it held.
    pub(crate) fn restored(mut self, pushed: u64, rows: &[f32]) -> Option<Self> {
        let held = pushed.min(self.capacity);
        if !rows.len().is_multiple_of(self.width()) || (rows.len() / self.width()) as u64 != held {
            return None;
        }
        self.rows = rows.to_vec();
        // `rows` begins with the oldest transition, whose place need not be the first.
        let oldest = self.place(pushed - held).start;
        self.rows.rotate_right(oldest);
        self.pushed = pushed;
        Some(self)
    }
}

impl Columns {
    fn clear(&mut self) {
        self.observations.clear();
        self.actions.clear();
        self.rewards.clear();
        self.next_observations.clear();
        self.discounts.clear();
    }

    fn push(&mut self, row: &[f32], observation: usize, action: usize) {
        let (before, row) = row.split_at(observation);
        let (taken, row) = row.split_at(action);
        self.observations.extend(before);
        self.actions.extend(taken);
        self.rewards.push(row[0]);
        self.next_observations.extend(&row[1..=observation]);
        self.discounts.push(row[observation + 1]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Transition n of two observed numbers and an action.
    fn numbers(number: u64) -> ([f32; 2], [f32; 1], f32, [f32; 2], f32) {
        let n = number as f32;
        ([n, n + 0.1], [n + 0.2], n + 0.3, [n + 0.4, n + 0.5], n + 0.6)
    }

    fn fill(replay: &mut Replay, count: u64) {
        for _ in 0..count {
            let (observation, action, reward, next_observation, discount) = numbers(replay.pushed());
            replay.push(Transition {
                observation: &observation,
                action: &action,
                reward,
                next_observation: &next_observation,
                discount,
            });
        }
    }

    /// The numbers of sampled transitions; every column must tell the same.
    fn sampled(columns: &Columns) -> Vec<u64> {
        let found: Vec<u64> = columns
            .observations
            .iter()
            .step_by(2)
            .map(|n| *n as u64)
            .collect();
        let mut expected = Columns::default();
        for number in &found {
            let (observation, action, reward, next_observation, discount) = numbers(*number);
            expected.observations.extend(observation);
            expected.actions.extend(action);
            expected.rewards.push(reward);
            expected.next_observations.extend(next_observation);
            expected.discounts.push(discount);
        }
        assert_eq!(*columns, expected);
        found
    }

    proptest! {
        #[test]
        fn it_holds_the_last_transitions_and_continues_from_them(
            capacity in 1..20_u64, counts in prop::collection::vec(0..15_u64, 1..6), seed: u64,
        ) {
            let mut replay = Replay::new(2, 1, capacity);
            let mut model = VecDeque::new();
            for count in counts {
                for _ in 0..count {
                    model.push_back(replay.pushed());
                    if model.len() as u64 > capacity {
                        model.pop_front();
                    }
                    fill(&mut replay, 1);
                }
                prop_assert_eq!(replay.len(), model.len() as u64);
                if model.is_empty() {
                    continue;
                }
                let oldest = model[0];
                let rows = replay.rows_from(oldest);
                let listed: Vec<u64> = rows.chunks(7).map(|row| row[0] as u64).collect();
                prop_assert_eq!(&listed, &Vec::from(model.clone()));

                let mut columns = Columns::default();
                replay.sample(200, Stream::new(seed, "sample"), &mut columns);
                let mut found = sampled(&columns);
                let restored = Replay::new(2, 1, capacity).restored(replay.pushed(), &rows).unwrap();
                let mut again = Columns::default();
                restored.sample(200, Stream::new(seed, "sample"), &mut again);
                prop_assert_eq!(&columns, &again);
                prop_assert_eq!(&restored.rows, &replay.rows);
                // 200 draws of at most 20: that one is left out has a chance below 20 · 0.95^200 = 0.0007.
                found.sort_unstable();
                found.dedup();
                prop_assert!(found.iter().all(|number| model.contains(number)));
                prop_assert!(found.len() + 2 >= model.len());

                prop_assert!(Replay::new(2, 1, capacity).restored(replay.pushed(), &rows[7..]).is_none());
                prop_assert!(Replay::new(2, 1, capacity).restored(replay.pushed(), &rows[1..]).is_none());
                replay = restored;
            }
        }
    }

    #[test]
    fn every_transition_is_drawn_as_often() {
        let mut replay = Replay::new(2, 1, 7);
        fill(&mut replay, 17);
        let mut columns = Columns::default();
        replay.sample(70_000, Stream::new(3, "sample"), &mut columns);
        let found = sampled(&columns);
        for number in 10..17 {
            let count = found.iter().filter(|found| **found == number).count();
            // Expected 10000 times, with a standard deviation of 93; six of them.
            assert!(count.abs_diff(10_000) < 560, "{number}: {count}");
        }
    }
}

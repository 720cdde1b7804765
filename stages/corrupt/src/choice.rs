use std::collections::BTreeMap;

use provenir_kinds::corrupt::Placement;
use provenir_random::Stream;
use provenir_table::demonstrations::Demonstrations;

use crate::statistics::{Moments, moments};

/// The random orders in which samples and episodes are chosen.
pub(crate) struct Choice {
    samples: Stream,
    episodes: Stream,
}

impl Choice {
    pub(crate) fn new(seed: u64) -> Self {
        let root = Stream::new(seed, "corrupt");
        Self {
            samples: root.child("order", 0),
            episodes: root.child("episode order", 0),
        }
    }

    /// The rows to replace, ascending, where `count` samples are asked for. A smaller count gives a subset.
    pub(crate) fn rows(&self, placement: Placement, demos: &Demonstrations, count: usize) -> Vec<usize> {
        let mut rows = match placement {
            Placement::Sample => self.ordered(&demos.sample, (0..demos.rows()).collect()),
            Placement::Episode => self.of_episodes(demos, count),
            Placement::Rare => self.rarest(demos),
        };
        if placement != Placement::Episode {
            rows.truncate(count);
        }
        rows.sort_unstable();
        rows
    }

    /// Rows in the random order of their samples.
    pub(crate) fn ordered(&self, samples: &[u64], mut rows: Vec<usize>) -> Vec<usize> {
        // Sample numbers are distinct, so that the order is total: rows of equal draws are ordered, too.
        rows.sort_unstable_by_key(|row| (self.samples.at(samples[*row]), samples[*row]));
        rows
    }

    /// The rows of whole episodes, in random order, until there are `count`.
    fn of_episodes(&self, demos: &Demonstrations, count: usize) -> Vec<usize> {
        let mut episodes: Vec<(u32, Vec<usize>)> = by_episode(demos).into_iter().collect();
        episodes.sort_unstable_by_key(|(episode, _)| (self.episodes.at(u64::from(*episode)), *episode));
        let mut rows = Vec::new();
        for (_, episode) in episodes {
            if rows.len() >= count {
                break;
            }
            rows.extend(episode);
        }
        rows
    }

    /// All rows, those of the rarest states first; equally rare ones in random order.
    fn rarest(&self, demos: &Demonstrations) -> Vec<usize> {
        let moments = moments(&demos.observation, &by_sample(&demos.sample));
        let rarity: Vec<f64> = demos
            .observation
            .iter()
            .map(|observation| rarity(observation, &moments))
            .collect();
        let mut rows = self.ordered(&demos.sample, (0..demos.rows()).collect());
        rows.sort_by(|left, right| rarity[*right].total_cmp(&rarity[*left]));
        rows
    }
}

/// Squared distance from the mean, each entry in units of its standard deviation; entries that do not vary do not count.
fn rarity(observation: &[f32], moments: &[Moments]) -> f64 {
    observation
        .iter()
        .zip(moments)
        .filter(|(_, moments)| moments.deviation > 0.0)
        .map(|(value, moments)| {
            let distance = (f64::from(*value) - moments.mean) / moments.deviation;
            distance * distance
        })
        .sum()
}

/// round(ε N), halves away from zero, the product taken in double precision.
pub(crate) fn count(fraction: f64, samples: usize) -> usize {
    (fraction * samples as f64).round() as usize
}

/// All rows in the order of their samples' numbers.
pub(crate) fn by_sample(samples: &[u64]) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..samples.len()).collect();
    rows.sort_unstable_by_key(|row| samples[*row]);
    rows
}

/// The rows of every episode in the order of its steps.
pub(crate) fn by_episode(demos: &Demonstrations) -> BTreeMap<u32, Vec<usize>> {
    let mut episodes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (row, episode) in demos.episode.iter().enumerate() {
        episodes.entry(*episode).or_default().push(row);
    }
    for rows in episodes.values_mut() {
        rows.sort_unstable_by_key(|row| (demos.step[*row], demos.sample[*row]));
    }
    episodes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use provenir_table::Matrix;
    use provenir_table::demonstrations::About;

    use super::*;

    #[test]
    fn counts_are_rounded_halves_up() {
        for (fraction, samples, expected) in [
            (0.0, 10, 0),
            (0.05, 10, 1),
            (0.04, 10, 0),
            (0.15, 10, 2),
            (0.25, 10, 3),
            (0.1, 60_000, 6000),
            (0.2, 20_001, 4000),
            (1.0, 7, 7),
            (0.5, 0, 0),
        ] {
            assert_eq!(count(fraction, samples), expected, "{fraction} of {samples}");
        }
    }

    /// A row for each sample and the episode that it is in; observations are what `observe` says.
    fn demonstrations(
        samples: &[u64],
        lengths: &[usize],
        observe: impl Fn(u64) -> [f32; 2],
    ) -> Demonstrations {
        let episodes = lengths.iter().enumerate();
        let episode: Vec<u32> = episodes
            .flat_map(|(episode, length)| vec![episode as u32; *length])
            .collect();
        let count = samples.len();
        assert_eq!(episode.len(), count);
        Demonstrations {
            sample: samples.to_vec(),
            step: (0..count as u32).collect(),
            episode,
            observation: Matrix::new(2, samples.iter().flat_map(|sample| observe(*sample)).collect())
                .unwrap(),
            action: Matrix::new(1, vec![0.0; count]).unwrap(),
            reward: vec![0.0; count],
            terminated: vec![false; count],
            truncated: vec![false; count],
            about: About::default(),
        }
    }

    fn plain(samples: &[u64]) -> Demonstrations {
        demonstrations(samples, &[samples.len()], |sample| [(sample % 97) as f32, 1.0])
    }

    #[test]
    fn every_sample_is_equally_likely_to_be_chosen() {
        let demos = plain(&(0..20).collect::<Vec<u64>>());
        let mut chosen = [0_i32; 20];
        for seed in 0..4000 {
            for row in Choice::new(seed).rows(Placement::Sample, &demos, 5) {
                chosen[row] += 1;
            }
        }
        // Each is expected 1000 times, with a standard deviation of √(4000 · 1/4 · 3/4) = 27.
        assert!(
            chosen.iter().all(|count| (count - 1000).abs() < 165),
            "{chosen:?}"
        );
    }

    #[test]
    fn every_order_of_episodes_is_equally_likely() {
        let demos = demonstrations(&(0..7).collect::<Vec<u64>>(), &[2, 4, 1], |_| [0.0, 0.0]);
        let mut counts = BTreeMap::new();
        for seed in 0..6000 {
            let first = Choice::new(seed).rows(Placement::Episode, &demos, 1);
            let second = Choice::new(seed).rows(Placement::Episode, &demos, first.len() + 1);
            *counts.entry((first, second)).or_insert(0_i32) += 1;
        }
        // Each of six orders is expected 1000 times, with a standard deviation of 29.
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (count - 1000).abs() < 175));
        assert_eq!(Choice::new(0).rows(Placement::Episode, &demos, 0), [0; 0]);
        assert_eq!(Choice::new(0).rows(Placement::Episode, &demos, 7).len(), 7);
    }

    #[test]
    fn the_rarest_are_those_far_out_in_units_of_the_deviation() {
        // The second entry has a deviation a thousand times larger: what is far out there is not what is large.
        let values: [[f32; 2]; 6] = [
            [0.0, 1000.0],
            [0.1, -1000.0],
            [-0.1, 900.0],
            [5.0, -900.0],
            [0.05, 0.0],
            [-0.05, 4000.0],
        ];
        let demos = demonstrations(&[0, 1, 2, 3, 4, 5], &[6], |sample| values[sample as usize]);
        assert_eq!(Choice::new(3).rows(Placement::Rare, &demos, 2), [3, 5]);
        let constant = demonstrations(&[0, 1, 2, 3], &[4], |_| [1.0, 2.0]);
        assert_eq!(
            Choice::new(3).rows(Placement::Rare, &constant, 2),
            Choice::new(3).rows(Placement::Sample, &constant, 2)
        );
    }

    proptest! {
        #[test]
        fn choices_are_nested_and_do_not_depend_on_the_order_of_rows(
            seed: u64,
            samples in prop::collection::btree_set(any::<u64>(), 0..60),
            placement in prop::sample::select(vec![Placement::Sample, Placement::Episode, Placement::Rare]),
            shift in 0..200_usize,
            small: prop::sample::Index,
            large: prop::sample::Index,
        ) {
            let samples: Vec<u64> = samples.into_iter().collect();
            let count = samples.len();
            let lengths: Vec<usize> = (0..count).step_by(7).map(|start| 7.min(count - start)).collect();
            let demos = demonstrations(&samples, &lengths, |sample| [(sample % 97) as f32, (sample % 89) as f32]);
            let choice = Choice::new(seed);
            let (small, large) = (small.index(count + 1), large.index(count + 1));
            let (small, large) = (small.min(large), small.max(large));
            let few = choice.rows(placement, &demos, small);
            let many = choice.rows(placement, &demos, large);
            prop_assert!(few.iter().all(|row| many.contains(row)));
            if placement == Placement::Episode {
                prop_assert!(few.len() >= small && few.len() < small + 7);
                for row in &few {
                    let mates = (0..count).filter(|other| demos.episode[*other] == demos.episode[*row]);
                    prop_assert!(mates.into_iter().all(|mate| few.contains(&mate)));
                }
            } else {
                prop_assert_eq!(few.len(), small);
            }
            let mut order: Vec<usize> = (0..count).collect();
            order.rotate_left(shift % count.max(1));
            let rotated = demos.select(&order);
            let mut again: Vec<u64> = choice
                .rows(placement, &rotated, small)
                .iter()
                .map(|row| rotated.sample[*row])
                .collect();
            again.sort_unstable();
            prop_assert_eq!(again, few.iter().map(|row| samples[*row]).collect::<Vec<_>>());
        }
    }
}

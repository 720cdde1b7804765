use provenir_kinds::corrupt::Outlier;
use provenir_random::Stream;

/// Which samples of a set are replaced, and by what.
pub(crate) struct Outliers {
    model: Outlier,
    order: Stream,
    values: Stream,
}

impl Outliers {
    pub(crate) fn new(model: Outlier, seed: u64) -> Self {
        let root = Stream::new(seed, "corrupt");
        Self {
            model,
            order: root.child("order", 0),
            values: match model {
                Outlier::Boundary => root.child("boundary", 0),
                Outlier::Uniform => root.child("uniform", 0),
            },
        }
    }

    /// The rows to replace, ascending: those of the `count` samples that come first in a random order of samples, so
    /// that a smaller count gives a subset.
    pub(crate) fn choose(&self, samples: &[u64], count: usize) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..samples.len()).collect();
        // Sample numbers are distinct, so that the order is total: rows of equal draws are ordered, too.
        rows.sort_unstable_by_key(|row| (self.order.at(samples[*row]), samples[*row]));
        rows.truncate(count);
        rows.sort_unstable();
        rows
    }

    /// Overwrites a sample's action.
    pub(crate) fn replace(&self, sample: u64, action: &mut [f32]) {
        let mut stream = self.values.child("sample", sample);
        for value in action {
            *value = match self.model {
                Outlier::Boundary if stream.u64() >> 63 == 0 => -1.0,
                Outlier::Boundary => 1.0,
                Outlier::Uniform => stream.uniform(-1.0, 1.0) as f32,
            };
        }
    }
}

/// round(ε N), halves away from zero, the product taken in double precision.
pub(crate) fn count(fraction: f64, samples: usize) -> usize {
    (fraction * samples as f64).round() as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    fn actions(model: Outlier, seed: u64, samples: usize, width: usize) -> Vec<Vec<f32>> {
        let outliers = Outliers::new(model, seed);
        let action = |sample| {
            let mut action = vec![0.0; width];
            outliers.replace(sample, &mut action);
            action
        };
        (0..samples as u64).map(action).collect()
    }

    #[test]
    fn boundary_dimensions_are_fair_and_independent() {
        let actions = actions(Outlier::Boundary, 1, 40_000, 3);
        let mut corners = [0_i32; 8];
        for action in &actions {
            assert!(action.iter().all(|value| [-1.0, 1.0].contains(value)));
            let corner: usize = action
                .iter()
                .enumerate()
                .map(|(dimension, value)| usize::from(*value > 0.0) << dimension)
                .sum();
            corners[corner] += 1;
        }
        // Each of eight corners is expected 5000 times, with a standard deviation of √(40000 · 1/8 · 7/8) = 66.
        assert!(
            corners.iter().all(|count| (count - 5000).abs() < 400),
            "{corners:?}"
        );
    }

    #[test]
    fn uniform_dimensions_have_the_moments_of_the_interval_and_are_uncorrelated() {
        let actions = actions(Outlier::Uniform, 2, 40_000, 2);
        assert!(actions.iter().flatten().all(|value| value.abs() <= 1.0));
        let mean =
            |of: &dyn Fn(&[f32]) -> f64| actions.iter().map(|action| of(action)).sum::<f64>() / 40_000.0;
        // Standard errors: √(1/3 / n), √(4/45 / n), √(1/9 / n); six of each.
        for dimension in 0..2 {
            assert!(mean(&|action| f64::from(action[dimension])).abs() < 0.018);
            assert!((mean(&|action| f64::from(action[dimension]).powi(2)) - 1.0 / 3.0).abs() < 0.009);
        }
        assert!(mean(&|action| f64::from(action[0]) * f64::from(action[1])).abs() < 0.01);
    }

    #[test]
    fn every_sample_is_equally_likely_to_be_chosen() {
        let samples: Vec<u64> = (0..20).collect();
        let mut chosen = [0_i32; 20];
        for seed in 0..4000 {
            for row in Outliers::new(Outlier::Boundary, seed).choose(&samples, 5) {
                chosen[row] += 1;
            }
        }
        // Each is expected 1000 times, with a standard deviation of √(4000 · 1/4 · 3/4) = 27.
        assert!(
            chosen.iter().all(|count| (count - 1000).abs() < 165),
            "{chosen:?}"
        );
    }

    proptest! {
        #[test]
        fn choices_are_nested_and_do_not_depend_on_the_order_of_rows(
            seed: u64,
            samples in prop::collection::btree_set(any::<u64>(), 0..200),
            shift in 0..200_usize,
            small: prop::sample::Index,
            large: prop::sample::Index,
        ) {
            let samples: Vec<u64> = samples.into_iter().collect();
            let outliers = Outliers::new(Outlier::Uniform, seed);
            let (small, large) = (small.index(samples.len() + 1), large.index(samples.len() + 1));
            let (small, large) = (small.min(large), small.max(large));
            let few = outliers.choose(&samples, small);
            let many = outliers.choose(&samples, large);
            prop_assert_eq!(few.len(), small);
            prop_assert!(few.iter().all(|row| many.contains(row)));
            let mut rotated = samples.clone();
            rotated.rotate_left(shift % samples.len().max(1));
            let mut again: Vec<u64> = outliers.choose(&rotated, small).iter().map(|row| rotated[*row]).collect();
            again.sort_unstable();
            prop_assert_eq!(again, few.iter().map(|row| samples[*row]).collect::<Vec<_>>());
        }
    }
}

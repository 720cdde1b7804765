use provenir_random::Stream;

/// Resamples behind an interval: its ends then vary by about a hundredth of its width between seeds.
const RESAMPLES: usize = 10_000;

/// Centre, spread and an interval of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample, with n − 1; not a number for a single value.
    pub std: f64,
    /// The middle value, or the mean of the two middle ones.
    pub median: f64,
    /// Interquartile mean: that of what remains without the lowest and the highest ⌊n / 4⌋ (Agarwal et al., "Deep
    /// reinforcement learning at the edge of the statistical precipice", `NeurIPS` 2021).
    pub iqm: f64,
    /// 95 % interval of the mean: the 2.5 and 97.5 percentiles of the means of bootstrap resamples (Efron and Tibshirani, "An
    /// introduction to the bootstrap", 1993, section 13.3). It says how far other trials of the same policy would move the
    /// mean, nothing of other policies; not a number for a single value.
    pub interval: (f64, f64),
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
}

impl Summary {
    /// Summarises at least one value; the stream draws the resamples.
    pub fn of(values: &[f64], bootstrap: Stream) -> Self {
        assert!(!values.is_empty(), "there is nothing to summarise");
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        let mean = mean(&sorted);
        let cut = n / 4;
        let squares: Vec<f64> = sorted
            .iter()
            .map(|value| (value - mean) * (value - mean))
            .collect();
        Self {
            mean,
            // 0 / 0 for a single value.
            std: (squares.iter().sum::<f64>() / (n - 1) as f64).sqrt(),
            median: f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]),
            iqm: self::mean(&sorted[cut..n - cut]),
            interval: interval(&sorted, bootstrap),
            min: sorted[0],
            max: sorted[n - 1],
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn interval(values: &[f64], mut stream: Stream) -> (f64, f64) {
    let n = values.len();
    if n == 1 {
        return (f64::NAN, f64::NAN);
    }
    let mut resampled = || {
        let total: f64 = (0..n).map(|_| values[stream.below(n as u64) as usize]).sum();
        total / n as f64
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| resampled()).collect();
    means.sort_unstable_by(f64::total_cmp);
    (quantile(&means, 0.025), quantile(&means, 0.975))
}

/// Linear between order statistics, `(n − 1) q` counted from the least: type 7 of Hyndman and Fan (1996), the default of `NumPy`
/// and of R.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * q;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (place - place.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(values: &[f64]) -> Summary {
        Summary::of(values, Stream::new(1, "bootstrap"))
    }

    #[test]
    fn a_small_sample_is_summarised_as_by_hand() {
        let found = summary(&[7.0, 1.0, 3.0, 100.0, 5.0, 9.0, -50.0, 4.0]);
        // Sorted: −50, 1, 3, 4, 5, 7, 9, 100; two are cut at each end for the interquartile mean.
        assert_eq!((found.min, found.max, found.median), (-50.0, 100.0, 4.5));
        assert_eq!((found.mean, found.iqm), (79.0 / 8.0, 19.0 / 4.0));
        // Σx² = 12681, so that the variance is (12681 − 79² / 8) / 7.
        let variance: f64 = (12681.0 - 79.0 * 79.0 / 8.0) / 7.0;
        assert!((found.std - variance.sqrt()).abs() < 1e-12, "{}", found.std);
    }

    #[test]
    fn a_single_value_says_nothing_of_spread() {
        let found = summary(&[3.0]);
        assert_eq!(
            (found.mean, found.median, found.iqm, found.min, found.max),
            (3.0, 3.0, 3.0, 3.0, 3.0)
        );
        assert!(found.std.is_nan() && found.interval.0.is_nan() && found.interval.1.is_nan());
        let found = summary(&[3.0, 3.0, 3.0]);
        assert_eq!((found.std, found.interval), (0.0, (3.0, 3.0)));
    }

    #[test]
    fn quantiles_lie_between_order_statistics() {
        let values = [0.0, 10.0, 20.0, 30.0, 40.0];
        assert_eq!(
            [0.0, 0.25, 0.375, 1.0].map(|q| quantile(&values, q).to_bits()),
            [0.0_f64, 10.0, 15.0, 40.0].map(f64::to_bits)
        );
    }

    /// The number of ones in a resample of zeros and ones is binomial: exact percentiles are known.
    #[test]
    fn the_interval_of_a_proportion_is_that_of_the_binomial_distribution() {
        let values: Vec<f64> = (0..100).map(|index| f64::from(u8::from(index < 30))).collect();
        let (low, high) = summary(&values).interval;
        // Binomial(100, 0.3): P(X ≤ 20) = 0.0165 and P(X ≤ 21) = 0.0288; P(X ≤ 38) = 0.9660 and P(X ≤ 39) = 0.9790.
        assert_eq!((low, high), (0.21, 0.39));
    }

    /// Over many samples of normal values the interval holds the true mean nearly as often as it says.
    #[test]
    fn the_interval_holds_the_mean_about_as_often_as_it_says() {
        let mut draws = Stream::new(2, "samples");
        let samples = 300;
        let held = (0..samples)
            .filter(|index| {
                let values: Vec<f64> = (0..40).map(|_| 5.0 + 2.0 * draws.normal()).collect();
                let (low, high) = Summary::of(&values, Stream::new(*index, "bootstrap")).interval;
                (low..=high).contains(&5.0)
            })
            .count();
        // Percentile intervals of 40 values hold it in about 94 of 100 cases; ± 4 standard errors.
        let share = held as f64 / samples as f64;
        assert!((0.885..=0.995).contains(&share), "{share}");
    }
}

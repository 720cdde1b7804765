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
    /// 95 % interval of the interquartile mean, from the same resamples as that of the mean.
    pub iqm_interval: (f64, f64),
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
        let squares: Vec<f64> = sorted
            .iter()
            .map(|value| (value - mean) * (value - mean))
            .collect();
        let (interval, iqm_interval) = intervals(&sorted, bootstrap);
        Self {
            mean,
            // 0 / 0 for a single value.
            std: (squares.iter().sum::<f64>() / (n - 1) as f64).sqrt(),
            median: f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]),
            iqm: self::mean(&sorted[trimmed(n)..n - trimmed(n)]),
            iqm_interval,
            interval,
            min: sorted[0],
            max: sorted[n - 1],
        }
    }
}

/// How many of n values the interquartile mean leaves out at each end.
fn trimmed(n: usize) -> usize {
    n / 4
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Percentile intervals of the mean and of the interquartile mean.
fn intervals(sorted: &[f64], mut stream: Stream) -> ((f64, f64), (f64, f64)) {
    let n = sorted.len();
    if n == 1 {
        return ((f64::NAN, f64::NAN), (f64::NAN, f64::NAN));
    }
    let mut counts = vec![0; n];
    let (mut means, mut iqms) = (Vec::with_capacity(RESAMPLES), Vec::with_capacity(RESAMPLES));
    for _ in 0..RESAMPLES {
        counts.fill(0);
        let mut total = 0.0;
        for _ in 0..n {
            let drawn = stream.below(n as u64) as usize;
            counts[drawn] += 1;
            total += sorted[drawn];
        }
        means.push(total / n as f64);
        iqms.push(iqm_of_counts(sorted, &counts));
    }
    let interval = |mut statistics: Vec<f64>| {
        statistics.sort_unstable_by(f64::total_cmp);
        (quantile(&statistics, 0.025), quantile(&statistics, 0.975))
    };
    (interval(means), interval(iqms))
}

/// The interquartile mean of a resample that holds each of the sorted values so many times: what sorting the resample
/// would give, without sorting it.
fn iqm_of_counts(sorted: &[f64], counts: &[usize]) -> f64 {
    let mut skip = trimmed(sorted.len());
    let kept = sorted.len() - 2 * skip;
    let (mut room, mut total) = (kept, 0.0);
    for (value, count) in sorted.iter().zip(counts) {
        let skipped = skip.min(*count);
        let taken = room.min(count - skipped);
        skip -= skipped;
        room -= taken;
        total += taken as f64 * value;
    }
    total / kept as f64
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
        let ends = [found.interval, found.iqm_interval].map(|(low, high)| low.is_nan() && high.is_nan());
        assert!(found.std.is_nan() && ends == [true, true]);
        let found = summary(&[3.0, 3.0, 3.0]);
        assert_eq!(
            (found.std, found.interval, found.iqm_interval),
            (0.0, (3.0, 3.0), (3.0, 3.0))
        );
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

    /// Against the obvious way: every resample written out, sorted, cut at both ends.
    #[test]
    fn the_interval_of_the_interquartile_mean_is_that_of_sorted_resamples() {
        let mut draws = Stream::new(3, "samples");
        for n in [2, 3, 4, 5, 8, 11, 20, 41] {
            // Rounded, so that some values are equal.
            let mut values: Vec<f64> = (0..n).map(|_| (10.0 * draws.normal()).round()).collect();
            let found = Summary::of(&values, Stream::new(n as u64, "bootstrap")).iqm_interval;
            values.sort_by(f64::total_cmp);
            let mut stream = Stream::new(n as u64, "bootstrap");
            let mut statistics: Vec<f64> = (0..RESAMPLES)
                .map(|_| {
                    let mut resample: Vec<f64> =
                        (0..n).map(|_| values[stream.below(n as u64) as usize]).collect();
                    resample.sort_by(f64::total_cmp);
                    let middle = &resample[n / 4..n - n / 4];
                    middle.iter().sum::<f64>() / middle.len() as f64
                })
                .collect();
            statistics.sort_by(f64::total_cmp);
            // 10,000 values: the percentiles lie at 249.975 and 9749.025.
            let expected = (
                statistics[249] + 0.975 * (statistics[250] - statistics[249]),
                statistics[9749] + 0.025 * (statistics[9750] - statistics[9749]),
            );
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            assert!(
                near(found.0, expected.0) && near(found.1, expected.1),
                "{n}: {found:?}, not {expected:?}"
            );
        }
    }

    /// With three values nothing is cut: the interquartile mean is the mean.
    #[test]
    fn the_interquartile_mean_of_few_values_is_their_mean() {
        let found = summary(&[1.0, 2.0, 6.0]);
        assert_eq!(found.mean.to_bits(), found.iqm.to_bits());
        let near = |(a, b): (f64, f64), (c, d): (f64, f64)| (a - c).abs() < 1e-12 && (b - d).abs() < 1e-12;
        assert!(near(found.interval, found.iqm_interval));
    }

    /// One wild value moves the mean and its interval, and hardly the middle half's.
    #[test]
    fn the_interquartile_mean_does_not_follow_one_value() {
        let mut values: Vec<f64> = (0..40).map(f64::from).collect();
        let calm = summary(&values);
        values[39] = 1e6;
        let wild = summary(&values);
        assert!(wild.mean > 1e4 && wild.interval.1 > 1e4);
        assert_eq!(calm.iqm.to_bits(), wild.iqm.to_bits());
        assert!(wild.iqm_interval.1 < 40.0);
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

//! How the numbers at a point become its y and its band.

use provenir_kinds::plot::{Band, Statistic};
use provenir_random::Stream;

/// Resamples of a bootstrap: the ends of a 95 % interval then rest on fifty resamples each.
const RESAMPLES: usize = 2000;

/// Numbers in order, at least one, all finite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sorted<'a>(&'a [f64]);

impl<'a> Sorted<'a> {
    /// Sorts numbers; `None` where there are none.
    ///
    /// Sums over sorted numbers do not depend on the order in which rows arrive.
    pub(crate) fn new(values: &'a mut [f64]) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then_some(Self(values))
    }

    /// How many there are.
    pub(crate) fn count(self) -> usize {
        self.0.len()
    }

    pub(crate) fn statistic(self, statistic: Statistic) -> f64 {
        match statistic {
            Statistic::Mean => self.mean(),
            Statistic::Median => self.quantile(0.5),
            Statistic::Iqm => self.interquartile_mean(),
        }
    }

    /// The ends of a band around `center`, in order; `None` where fewer than two numbers say nothing of spread.
    /// `stream` is drawn from for a bootstrap only.
    pub(crate) fn band(
        self,
        band: Band,
        center: f64,
        statistic: Statistic,
        confidence: f64,
        stream: impl FnOnce() -> Stream,
    ) -> Option<[f64; 2]> {
        let count = self.0.len();
        if count < 2 {
            return None;
        }
        let around = |half: f64| [center - half, center + half];
        Some(match band {
            Band::None => return None,
            Band::Std => around(self.deviation()),
            Band::Sem => around(self.deviation() / (count as f64).sqrt()),
            Band::Quartiles => [self.quantile(0.25), self.quantile(0.75)],
            Band::MinMax => [self.0[0], self.0[count - 1]],
            Band::Ci => self.bootstrap(statistic, confidence, stream()),
        })
    }

    fn mean(self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Standard deviation with n − 1, in two passes.
    fn deviation(self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|value| (value - mean) * (value - mean)).sum();
        (squares / (self.0.len() - 1) as f64).sqrt()
    }

    /// Quantile by linear interpolation of order statistics: type 7 of Hyndman and Fan (1996), the usual one.
    fn quantile(self, share: f64) -> f64 {
        let place = (self.0.len() - 1) as f64 * share;
        let below = place as usize;
        let low = self.0[below];
        match self.0.get(below + 1) {
            Some(high) => low + (high - low) * (place - below as f64),
            None => low,
        }
    }

    /// The mean without the lowest and the highest quarter, ⌊n/4⌋ numbers each: what Agarwal et al., "Deep reinforcement
    /// learning at the edge of the statistical precipice" (2021), compute.
    fn interquartile_mean(self) -> f64 {
        let cut = self.0.len() / 4;
        Sorted(&self.0[cut..self.0.len() - cut]).mean()
    }

    /// Percentile bootstrap (Efron and Tibshirani, 1993, chapter 13).
    fn bootstrap(self, statistic: Statistic, confidence: f64, mut stream: Stream) -> [f64; 2] {
        let count = self.0.len();
        let mut drawn = vec![0_u32; count];
        let mut resample = Vec::with_capacity(count);
        let mut outcomes: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                drawn.fill(0);
                for _ in 0..count {
                    drawn[stream.below(count as u64) as usize] += 1;
                }
                // Numbers are in order, and so is each resample.
                resample.clear();
                for (value, times) in self.0.iter().zip(&drawn) {
                    resample.extend(std::iter::repeat_n(*value, *times as usize));
                }
                Sorted(&resample).statistic(statistic)
            })
            .collect();
        outcomes.sort_by(f64::total_cmp);
        let tail = (1.0 - confidence) / 2.0;
        [tail, 1.0 - tail].map(|share| Sorted(&outcomes).quantile(share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn center(statistic: Statistic, values: &[f64]) -> f64 {
        Sorted::new(&mut values.to_vec()).unwrap().statistic(statistic)
    }

    fn band(band: Band, values: &[f64]) -> Option<[f64; 2]> {
        let mut values = values.to_vec();
        let sorted = Sorted::new(&mut values).unwrap();
        sorted.band(band, sorted.mean(), Statistic::Mean, 0.95, || {
            Stream::new(1, "test")
        })
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "sums of small whole numbers are exact")]
    fn statistics_of_small_samples_by_hand() {
        let values = [9.0, 1.0, 4.0, 2.0];
        assert_eq!(center(Statistic::Mean, &values), 4.0);
        assert_eq!(center(Statistic::Median, &values), 3.0);
        assert_eq!(center(Statistic::Iqm, &values), 3.0);
        assert_eq!(
            center(Statistic::Iqm, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 800.0, 900.0]),
            5.0
        );
        assert_eq!(center(Statistic::Iqm, &[1.0, 5.0, 6.0]), 4.0);
        assert!(Sorted::new(&mut []).is_none());
    }

    #[test]
    fn bands_of_small_samples_by_hand() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        let half = (32.0_f64 / 7.0).sqrt();
        assert_eq!(band(Band::Std, &values), Some([5.0 - half, 5.0 + half]));
        let half = half / 8.0_f64.sqrt();
        assert_eq!(band(Band::Sem, &values), Some([5.0 - half, 5.0 + half]));
        // numpy.quantile([1, 2, 4, 9], [.25, .75]) is 1.75 and 5.25.
        assert_eq!(band(Band::Quartiles, &[9.0, 1.0, 4.0, 2.0]), Some([1.75, 5.25]));
        assert_eq!(band(Band::MinMax, &values), Some([2.0, 9.0]));
        assert_eq!(band(Band::None, &values), None);
        for kind in [Band::Std, Band::Sem, Band::Quartiles, Band::MinMax, Band::Ci] {
            assert_eq!(band(kind, &[3.0]), None, "{kind:?} of one number");
        }
    }

    /// The bootstrap distribution of the mean has the standard deviation σ̂/√n (with n), and is nearly normal.
    #[test]
    fn the_bootstrap_of_a_mean_agrees_with_its_standard_error() {
        let mut values: Vec<f64> = (0..400).map(|index| f64::from(index % 20)).collect();
        let sorted = Sorted::new(&mut values).unwrap();
        // The variance of 0…19 is (20² − 1)/12.
        let half = 1.96 * (399.0_f64 / 12.0 / 400.0).sqrt();
        let [low, high] = band(Band::Ci, sorted.0).unwrap();
        // Ends estimated from 2000 resamples scatter by about a twentieth of the half width.
        assert!((low - (9.5 - half)).abs() < 0.15 * half, "{low}");
        assert!((high - (9.5 + half)).abs() < 0.15 * half, "{high}");
        assert_eq!(band(Band::Ci, &[4.0, 4.0, 4.0]), Some([4.0, 4.0]));
    }

    #[test]
    fn nothing_depends_on_the_order_of_rows() {
        let values: Vec<f64> = (0..50)
            .map(|index| 1.0 / f64::from(index * 37 % 50 + 1))
            .collect();
        let reversed: Vec<f64> = values.iter().rev().copied().collect();
        for kind in [Band::Std, Band::Sem, Band::Quartiles, Band::MinMax, Band::Ci] {
            assert_eq!(band(kind, &values), band(kind, &reversed));
        }
    }
}

use crate::Stream;

impl Stream {
    /// Uniform on the multiples of 2^-53 in [0, 1). Takes one draw.
    pub fn f64(&mut self) -> f64 {
        const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.u64() >> 11) as f64 * UNIT
    }

    /// Uniform between two finite bounds, computed as `low + (high - low) * f64()`; rounding may give `high` itself.
    /// Takes one draw.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.f64()
    }

    /// Uniform on the whole numbers below `bound`, without bias. Takes one draw, and with probability below
    /// `bound` / 2^64 another.
    ///
    /// Lemire, "Fast random integer generation in an interval", ACM TOMACS 29(1), 2019, algorithm 5.
    ///
    /// # Panics
    ///
    /// Where `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no whole number below 0");
        loop {
            let product = u128::from(self.u64()) * u128::from(bound);
            let low = product as u64;
            // 2^64 mod bound, computed only where it can matter: it is below `bound`.
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Standard normal. Takes one draw, so that positions stay predictable.
    pub fn normal(&mut self) -> f64 {
        const UNIT: f64 = 1.0 / (1_u64 << 52) as f64;
        // The middles of 2^52 equal intervals: exact, symmetric about one half, never 0 or 1.
        quantile(((self.u64() >> 12) as f64 + 0.5) * UNIT)
    }
}

/// The quantile of the standard normal distribution at `probability` in (0, 1), to about 1e-16 of its value.
///
/// Wichura, "Algorithm AS 241: The percentage points of the normal distribution", Applied Statistics 37(3), 1988,
/// `PPND16`.
fn quantile(probability: f64) -> f64 {
    const CENTRE: Rational = (
        [
            3.387_132_872_796_366_5,
            1.331_416_678_917_843_8e2,
            1.971_590_950_306_551_3e3,
            1.373_169_376_550_946e4,
            4.592_195_393_154_987e4,
            6.726_577_092_700_87e4,
            3.343_057_558_358_813e4,
            2.509_080_928_730_122_7e3,
        ],
        [
            1.0,
            4.231_333_070_160_091e1,
            6.871_870_074_920_579e2,
            5.394_196_021_424_751e3,
            2.121_379_430_158_659_7e4,
            3.930_789_580_009_271e4,
            2.872_908_573_572_194_3e4,
            5.226_495_278_852_854e3,
        ],
    );
    const MIDDLE: Rational = (
        [
            1.423_437_110_749_683_5,
            4.630_337_846_156_546,
            5.769_497_221_460_691,
            3.647_848_324_763_204_5,
            1.270_458_252_452_368_4,
            2.417_807_251_774_506e-1,
            2.272_384_498_926_918_4e-2,
            7.745_450_142_783_414e-4,
        ],
        [
            1.0,
            2.053_191_626_637_759,
            1.676_384_830_183_803_8,
            6.897_673_349_851e-1,
            1.481_039_764_274_800_8e-1,
            1.519_866_656_361_645_7e-2,
            5.475_938_084_995_345e-4,
            1.050_750_071_644_416_9e-9,
        ],
    );
    const FAR: Rational = (
        [
            6.657_904_643_501_103,
            5.463_784_911_164_114,
            1.784_826_539_917_291_3,
            2.965_605_718_285_048_7e-1,
            2.653_218_952_657_612_4e-2,
            1.242_660_947_388_078_4e-3,
            2.711_555_568_743_487_6e-5,
            2.010_334_399_292_288_1e-7,
        ],
        [
            1.0,
            5.998_322_065_558_88e-1,
            1.369_298_809_227_358e-1,
            1.487_536_129_085_061_5e-2,
            7.868_691_311_456_133e-4,
            1.846_318_317_510_054_8e-5,
            1.421_511_758_316_446e-7,
            2.044_263_103_389_939_8e-15,
        ],
    );
    let offset = probability - 0.5;
    if offset.abs() <= 0.425 {
        return offset * ratio(&CENTRE, 0.180_625 - offset * offset);
    }
    let tail = if offset < 0.0 {
        probability
    } else {
        1.0 - probability
    };
    let radius = libm::sqrt(-libm::log(tail));
    let size = if radius <= 5.0 {
        ratio(&MIDDLE, radius - 1.6)
    } else {
        ratio(&FAR, radius - 5.0)
    };
    if offset < 0.0 { -size } else { size }
}

/// Coefficients of numerator and denominator, constant term first.
type Rational = ([f64; 8], [f64; 8]);

fn ratio((numerator, denominator): &Rational, at: f64) -> f64 {
    let evaluate = |polynomial: &[f64; 8]| polynomial.iter().rev().fold(0.0, |sum, term| sum * at + term);
    evaluate(numerator) / evaluate(denominator)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's statistic of counts against equal expectations.
    fn chi_square(counts: &[u32]) -> f64 {
        let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        counts
            .iter()
            .map(|count| (f64::from(*count) - expected).powi(2) / expected)
            .sum()
    }

    /// Six standard deviations about the mean of the chi-square distribution with `cells - 1` degrees of freedom.
    fn assert_uniform(counts: &[u32]) {
        let freedom = counts.len() as f64 - 1.0;
        let deviation = (chi_square(counts) - freedom).abs();
        assert!(
            deviation < 6.0 * (2.0 * freedom).sqrt(),
            "{deviation} off {freedom}"
        );
    }

    #[test]
    fn uniform_draws_fill_the_unit_interval_evenly() {
        let mut stream = Stream::new(1, "uniform");
        let mut counts = [0; 256];
        let mut pairs = [0; 256];
        for _ in 0..100_000 {
            let (first, second) = (stream.f64(), stream.f64());
            assert!((0.0..1.0).contains(&first));
            counts[(first * 256.0) as usize] += 1;
            pairs[(first * 16.0) as usize * 16 + (second * 16.0) as usize] += 1;
        }
        assert_uniform(&counts);
        assert_uniform(&pairs);
        for _ in 0..1000 {
            assert!((-3.0..=5.0).contains(&stream.uniform(-3.0, 5.0)));
        }
    }

    #[test]
    fn below_is_unbiased_also_where_most_draws_are_rejected() {
        let mut stream = Stream::new(2, "below");
        for bound in [1, 2, 3, 7, 1000] {
            let mut counts = vec![0; usize::try_from(bound).unwrap()];
            for _ in 0..100 * bound.max(100) {
                counts[usize::try_from(stream.below(bound)).unwrap()] += 1;
            }
            if bound > 1 {
                assert_uniform(&counts);
            }
        }
        // Multiplication without rejection would give every third of these one half more often than the others.
        let bound = 3 << 62;
        let start = stream.position();
        let mut counts = [0; 3];
        for _ in 0..30_000 {
            counts[usize::try_from(stream.below(bound) % 3).unwrap()] += 1;
        }
        assert_uniform(&counts);
        let rejected = f64::from(u32::try_from(stream.position() - start).unwrap()) - 30_000.0;
        // One draw of four is rejected: 10,000 are expected, with a standard deviation of 115.
        assert!((rejected - 10_000.0).abs() < 700.0, "{rejected}");
    }

    #[test]
    fn quantile_inverts_the_distribution_function() {
        let distribution = |x: f64| 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
        let mut probability = 1e-300;
        while probability < 0.5 {
            let value = quantile(probability);
            let back = distribution(value);
            // The relative condition of the distribution function in its tail is about x².
            let bound = 1e-15 * (4.0 + value * value);
            assert!(
                (back / probability - 1.0).abs() < bound,
                "{probability}: {value} gives {back}"
            );
            probability *= 1.37;
        }
        assert_eq!(quantile(0.5).to_bits(), 0.0_f64.to_bits());
        // Abramowitz and Stegun, table 26.5 and its like: the familiar percentage points.
        for (probability, expected) in [
            (0.975, 1.959_963_984_540_054),
            (0.025, -1.959_963_984_540_054),
            (0.999_5, 3.290_526_731_491_926),
            (0.75, 0.674_489_750_196_081_7),
        ] {
            assert!((quantile(probability) - expected).abs() < 4e-15);
        }
    }

    #[test]
    fn normal_draws_have_the_moments_and_the_shape_of_the_normal() {
        let mut stream = Stream::new(3, "normal");
        let count = 200_000;
        let mut moments = [0.0; 4];
        let mut counts = [0; 64];
        for _ in 0..count {
            let value = stream.normal();
            for (power, moment) in (1..).zip(&mut moments) {
                *moment += value.powi(power) / f64::from(count);
            }
            let probability = 0.5 * libm::erfc(-value * std::f64::consts::FRAC_1_SQRT_2);
            counts[(probability * 64.0) as usize] += 1;
        }
        // Standard errors over n draws: √(1/n), √(2/n), √(15/n), √(96/n); six of each.
        for ((moment, expected), variance) in moments
            .iter()
            .zip([0.0, 1.0, 0.0, 3.0])
            .zip([1.0, 2.0, 15.0, 96.0_f64])
        {
            let bound = 6.0 * (variance / f64::from(count)).sqrt();
            assert!((moment - expected).abs() < bound, "{moment} against {expected}");
        }
        assert_uniform(&counts);
        assert_eq!(stream.position(), 200_000);
    }
}

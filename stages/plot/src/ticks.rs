//! Where an axis is marked, and how the marks are written.
//!
//! Marks are decimal numbers, held as integers times powers of ten, so that they are written exactly.

use provenir_kinds::plot::Scale;

/// More values of the data than this are not marked one by one.
const MOST_VALUES: usize = 8;

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    /// As people write it; empty for a mark between those that carry numbers.
    pub(crate) label: String,
}

/// An integer times a power of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    digits: i64,
    exponent: i32,
}

impl Decimal {
    fn new(digits: i64, exponent: i32) -> Self {
        let mut decimal = Self { digits, exponent };
        if digits == 0 {
            decimal.exponent = 0;
        }
        while decimal.digits != 0 && decimal.digits % 10 == 0 {
            decimal.digits /= 10;
            decimal.exponent += 1;
        }
        decimal
    }

    /// The shortest decimal that reads as this number.
    fn shortest(value: f64) -> Option<Self> {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e')?;
        let places = mantissa.split_once('.').map_or(0, |(_, places)| places.len());
        let digits = mantissa.replace('.', "").parse().ok()?;
        Some(Self::new(
            digits,
            exponent.parse::<i32>().ok()? - i32::try_from(places).ok()?,
        ))
    }

    /// The nearest float; parsing rounds correctly everywhere, which a product with a power of ten does not.
    fn value(self) -> f64 {
        format!("{}e{}", self.digits, self.exponent)
            .parse()
            .unwrap_or(f64::NAN)
    }

    /// Its power of ten, written as the leading digit's.
    fn magnitude(self) -> i32 {
        let count = self.digits.unsigned_abs().checked_ilog10().unwrap_or(0);
        self.exponent + count.cast_signed()
    }
}

/// Marks of an axis from `low` to `high`: the `values` of the data where they are few, have few digits, and `fit` says
/// that their labels have room; otherwise as many round numbers as fit, up to `most`.
pub(crate) fn ticks(
    scale: Scale,
    [low, high]: [f64; 2],
    values: &[f64],
    most: usize,
    fit: impl Fn(&[Tick]) -> bool,
) -> Vec<Tick> {
    let choose = |candidates: Vec<Vec<Decimal>>| {
        candidates
            .into_iter()
            .filter(|marks| marks.len() >= 2 || marks.len() == 1 && values.len() == 1)
            .map(|marks| labelled(&marks, scale))
            .find(|ticks| fit(ticks))
    };
    let mut candidates = Vec::new();
    if values.len() <= MOST_VALUES {
        let inside = values.iter().filter(|value| **value >= low && **value <= high);
        let marks: Vec<Decimal> = inside.filter_map(|value| Decimal::shortest(*value)).collect();
        if marks.iter().all(|mark| mark.digits.abs() < 10_000) {
            candidates.push(marks);
        }
    }
    if scale == Scale::Log {
        candidates.extend(log(low, high, most));
    }
    candidates.extend((2..=most.max(2)).rev().map(|count| linear(low, high, count)));
    let mut ticks = choose(candidates).unwrap_or_else(|| {
        // No two marks have room: the first round number is better than none.
        let single = linear(low, high, 2);
        labelled(single.get(..1).unwrap_or_default(), scale)
    });
    if scale == Scale::Log {
        add_unlabelled(&mut ticks, low, high);
    }
    ticks
}

/// At most `most` multiples of a round step: 1, 2, 2.5 or 5 times a power of ten.
fn linear(low: f64, high: f64, most: usize) -> Vec<Decimal> {
    let span = high - low;
    if !(span.is_finite() && span > 0.0) {
        return Vec::new();
    }
    let start = libm::floor(libm::log10(span / most as f64)) as i32 - 1;
    for exponent in start.. {
        for mantissa in [10, 20, 25, 50] {
            let step = Decimal::new(mantissa, exponent).value();
            // A mark that rounding puts just outside still belongs to the axis.
            let slack = 1e-9 * span / step;
            let first = libm::ceil(low / step - slack);
            let last = libm::floor(high / step + slack);
            // Beyond 2^53 neighbouring marks are no longer distinct numbers.
            if first.abs().max(last.abs()) > 9.0e15 / mantissa as f64 {
                continue;
            }
            if last - first < most as f64 {
                return (first as i64..=last as i64)
                    .map(|index| Decimal::new(index * mantissa, exponent))
                    .collect();
            }
        }
    }
    Vec::new()
}

/// Round ratios for a log axis, the densest first: 1-2-5, 1-3, powers of ten and of more.
fn log(low: f64, high: f64, most: usize) -> Vec<Vec<Decimal>> {
    let within = |decimal: &Decimal| {
        let value = decimal.value();
        value >= low * (1.0 - 1e-9) && value <= high * (1.0 + 1e-9)
    };
    let first = libm::floor(libm::log10(low)) as i32;
    let last = libm::ceil(libm::log10(high)) as i32;
    let series = |mantissas: &[i64], every: i32| -> Vec<Decimal> {
        (first..=last)
            .filter(|exponent| exponent.rem_euclid(every) == 0)
            .flat_map(|exponent| {
                mantissas
                    .iter()
                    .map(move |digits| Decimal::new(*digits, exponent))
            })
            .filter(within)
            .collect()
    };
    let dense = [series(&[1, 2, 5], 1), series(&[1, 3], 1)];
    let powers = [1, 2, 3, 5, 10, 20, 50, 100].map(|every| series(&[1], every));
    dense
        .into_iter()
        .chain(powers)
        .filter(|marks| marks.len() <= most)
        .collect()
}

/// Marks without numbers at the whole multiples of each power of ten, as far as these are few.
fn add_unlabelled(ticks: &mut Vec<Tick>, low: f64, high: f64) {
    let first = libm::floor(libm::log10(low)) as i32;
    let last = libm::floor(libm::log10(high)) as i32;
    if last - first > 4 {
        return;
    }
    for exponent in first..=last {
        for digits in 1..10 {
            let value = Decimal::new(digits, exponent).value();
            let known = ticks.iter().any(|tick| (tick.value / value - 1.0).abs() < 1e-9);
            if value >= low && value <= high && !known {
                ticks.push(Tick {
                    value,
                    label: String::new(),
                });
            }
        }
    }
}

/// Writes marks alike: on a linear scale with the same number of decimals, or all with powers of ten.
fn labelled(marks: &[Decimal], scale: Scale) -> Vec<Tick> {
    let nonzero = || marks.iter().filter(|mark| mark.digits != 0);
    let largest = nonzero().map(|mark| mark.magnitude()).max().unwrap_or(0);
    let smallest = nonzero().map(|mark| mark.magnitude()).min().unwrap_or(0);
    let decimals = nonzero().map(|mark| -mark.exponent).max().unwrap_or(0).max(0);
    let plain = largest < 6 && smallest >= -4 && decimals <= 6;
    // Powers of ten among themselves keep their own exponents; other numbers are brought to a common one.
    let powers = largest > smallest && nonzero().all(|mark| mark.digits == 1);
    let own = powers || largest - smallest > 3;
    marks
        .iter()
        .map(|mark| Tick {
            value: mark.value(),
            label: if plain {
                fixed(
                    *mark,
                    if scale == Scale::Log {
                        -mark.exponent
                    } else {
                        decimals
                    },
                )
            } else {
                scientific(*mark, own, largest)
            },
        })
        .collect()
}

/// With `decimals` places, which are enough.
fn fixed(mark: Decimal, decimals: i32) -> String {
    let shift = decimals.max(0);
    let digits =
        i128::from(mark.digits.unsigned_abs()) * 10_i128.pow((shift + mark.exponent).max(0).unsigned_abs());
    let shift = shift.unsigned_abs() as usize;
    let text = format!("{digits:0>width$}", width = shift + 1);
    let (whole, places) = text.split_at(text.len() - shift);
    let whole = grouped(whole);
    let sign = if mark.digits < 0 { "−" } else { "" };
    if places.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{places}")
    }
}

/// As a multiple of a power of ten: its `own`, or one that other marks share.
fn scientific(mark: Decimal, own: bool, shared: i32) -> String {
    let power = if own { mark.magnitude() } else { shared };
    if mark.digits == 0 {
        return "0".to_owned();
    }
    let exponent: String = power
        .to_string()
        .chars()
        .map(|digit| match digit {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            digit => char::from_u32('⁰' as u32 + u32::from(digit) - u32::from('0')).unwrap_or(digit),
        })
        .collect();
    let factor = Decimal::new(mark.digits, mark.exponent - power);
    if own && factor == Decimal::new(1, 0) {
        return format!("10{exponent}");
    }
    format!("{}×10{exponent}", fixed(factor, -factor.exponent))
}

/// Thin spaces between groups of three digits, from five digits on.
pub(crate) fn grouped(digits: &str) -> String {
    if digits.len() < 5 {
        return digits.to_owned();
    }
    let mut text = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, range: [f64; 2], values: &[f64], most: usize) -> Vec<String> {
        ticks(scale, range, values, most, |_| true)
            .into_iter()
            .map(|tick| tick.label)
            .filter(|label| !label.is_empty())
            .collect()
    }

    #[test]
    fn round_numbers_within_the_axis_written_alike() {
        let cases: [([f64; 2], usize, &[&str]); 9] = [
            ([-0.01, 0.21], 5, &["0.00", "0.05", "0.10", "0.15", "0.20"]),
            ([-0.01, 0.21], 3, &["0.0", "0.1", "0.2"]),
            ([-1100.0, 3200.0], 5, &["−1000", "0", "1000", "2000", "3000"]),
            (
                [0.0, 80_000.0],
                5,
                &[
                    "0",
                    "20\u{2009}000",
                    "40\u{2009}000",
                    "60\u{2009}000",
                    "80\u{2009}000",
                ],
            ),
            ([0.0, 4.0e6], 3, &["0", "2×10⁶", "4×10⁶"]),
            ([0.0, 1.5e6], 4, &["0", "0.5×10⁶", "1×10⁶", "1.5×10⁶"]),
            ([0.0, 3.0e-6], 4, &["0", "1×10⁻⁶", "2×10⁻⁶", "3×10⁻⁶"]),
            (
                [1.0e9, 1.0e9 + 4.0],
                3,
                &["1×10⁹", "1.000000002×10⁹", "1.000000004×10⁹"],
            ),
            ([2.3, 2.4], 2, &["2.3", "2.4"]),
        ];
        for (range, most, expected) in cases {
            assert_eq!(labels(Scale::Linear, range, &[], most), expected, "{range:?}");
        }
    }

    #[test]
    fn a_log_axis_shows_the_values_of_the_data_or_round_ratios() {
        let sizes = [5e3, 1e4, 2e4, 4e4, 8e4];
        assert_eq!(
            labels(Scale::Log, [4500.0, 90_000.0], &sizes, 6),
            [
                "5000",
                "10\u{2009}000",
                "20\u{2009}000",
                "40\u{2009}000",
                "80\u{2009}000"
            ]
        );
        let many: Vec<f64> = (1..100).map(f64::from).collect();
        assert_eq!(
            labels(Scale::Log, [1.0, 100.0], &many, 7),
            ["1", "2", "5", "10", "20", "50", "100"]
        );
        assert_eq!(labels(Scale::Log, [1.0, 100.0], &many, 3), ["1", "10", "100"]);
        assert_eq!(
            labels(Scale::Log, [1e-8, 1e4], &many, 5),
            ["10⁻⁶", "10⁻³", "10⁰", "10³"]
        );
        assert_eq!(
            labels(Scale::Log, [0.001, 10.0], &many, 5),
            ["0.001", "0.01", "0.1", "1", "10"]
        );
        assert_eq!(
            labels(Scale::Log, [0.02, 11.0], &many, 7),
            ["0.03", "0.1", "0.3", "1", "3", "10"]
        );
        assert_eq!(labels(Scale::Log, [55.0, 75.0], &many, 3), ["60", "70"]);
    }

    #[test]
    fn few_values_of_the_data_are_marked_themselves() {
        assert_eq!(
            labels(Scale::Linear, [-0.01, 0.21], &[0.0, 0.05, 0.2], 5),
            ["0.00", "0.05", "0.20"]
        );
        assert_eq!(
            labels(Scale::Linear, [-0.1, 1.1], &[0.0, 1.0 / 3.0], 2),
            ["0", "1"]
        );
        assert_eq!(labels(Scale::Linear, [0.09, 0.11], &[0.1], 5), ["0.1"]);
        assert_eq!(labels(Scale::Linear, [0.1, 1.1], &[0.0, 5.0], 2), ["0.5", "1.0"]);
    }

    #[test]
    fn marks_lie_within_the_axis_in_order_and_are_as_many_as_asked_at_most() {
        for (low, high) in [
            (0.0, 1.0),
            (-3.7, 12.9),
            (1e-12, 3e-12),
            (-1e15, 2e15),
            (99.999, 100.001),
        ] {
            for most in 2..12 {
                let marks: Vec<f64> = linear(low, high, most).into_iter().map(Decimal::value).collect();
                assert!(
                    !marks.is_empty() && marks.len() <= most,
                    "{low} {high} {most}: {marks:?}"
                );
                assert!(marks.windows(2).all(|pair| pair[0] < pair[1]));
                let slack = (high - low) * 1e-8;
                assert!(
                    marks
                        .iter()
                        .all(|mark| *mark >= low - slack && *mark <= high + slack)
                );
            }
        }
    }

    #[test]
    fn labels_that_have_no_room_are_thinned_out() {
        let few = ticks(Scale::Linear, [0.0, 10.0], &[], 10, |ticks| ticks.len() <= 3);
        assert_eq!(few.len(), 3);
        let one = ticks(Scale::Linear, [0.0, 10.0], &[], 10, |_| false);
        assert_eq!(one.len(), 1);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "both are the nearest float of one decimal")]
    fn a_label_reads_as_the_number_it_marks() {
        for (low, high) in [(0.0, 1.0), (-3.7, 12.9), (-1e5, 2e5), (99.99, 100.01)] {
            for tick in ticks(Scale::Linear, [low, high], &[], 8, |_| true) {
                let text = tick.label.replace('\u{2009}', "").replace('−', "-");
                assert_eq!(text.parse::<f64>().unwrap(), tick.value);
            }
        }
    }
}

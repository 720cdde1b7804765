//! From where to where an axis goes.

use provenir_kinds::plot::{Scale, Share};

use crate::figure::{Axis, Figure, Panel};

/// What is nearer to zero than this is zero, so that no quotient of two differences is lost to underflow.
const SMALLEST: f64 = 1e-290;

/// The numbers that an axis shows. Invariant: finite, `low < high`, and positive on a log scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) scale: Scale,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Span {
    /// What the limits of the axis say; otherwise all values, with a share of their extent as a margin on each side.
    fn around(axis: &Axis, values: impl Iterator<Item = f64>, margin: f64) -> Option<Self> {
        let scale = axis.scale;
        if let Some([low, high]) = axis.limits {
            return Some(Self { scale, low, high });
        }
        let shown = values.filter(|value| scale == Scale::Linear || *value > 0.0);
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        if low > high {
            return None;
        }
        Some(match scale {
            Scale::Linear => {
                // Values that are all the same, to rounding, still need room around them.
                let largest = low.abs().max(high.abs());
                let around = if high - low > (1e-9 * largest).max(SMALLEST) {
                    (high - low) * margin
                } else if largest < SMALLEST {
                    1.0
                } else {
                    largest * 0.1
                };
                Self {
                    scale,
                    low: low - around,
                    high: high + around,
                }
            }
            Scale::Log => {
                let (low, high) = (libm::log10(low), libm::log10(high));
                let around = if high - low > 1e-9 {
                    (high - low) * margin
                } else {
                    0.2
                };
                Self {
                    scale,
                    low: libm::pow(10.0, low - around),
                    high: libm::pow(10.0, high + around),
                }
            }
        })
    }

    /// How far along the axis a value lies: 0 at its low end, 1 at its high end, bounded far outside. What a log scale
    /// cannot show lies a little below its low end, so that a band that reaches there leaves the panel at a slant.
    pub(crate) fn share(self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log if value <= 0.0 => -0.1,
            Scale::Log => {
                let low = libm::log10(self.low);
                (libm::log10(value) - low) / (libm::log10(self.high) - low)
            }
        };
        share.clamp(-100.0, 100.0)
    }
}

/// The horizontal axis of every panel.
pub(crate) fn horizontal(figure: &Figure) -> Option<Span> {
    if !figure.categories.is_empty() {
        return Some(Span {
            scale: Scale::Linear,
            low: -0.5,
            high: figure.categories.len() as f64 - 0.5,
        });
    }
    let points = figure
        .panels
        .iter()
        .flat_map(|panel| &panel.curves)
        .flat_map(|curve| &curve.points);
    Span::around(&figure.x, points.map(|point| point.x), 0.04)
}

/// The vertical axis of each panel, those that share one alike; a panel without data has the one around all data.
pub(crate) fn vertical(figure: &Figure) -> Option<Vec<Span>> {
    let columns = figure.columns.len();
    let group = |index: usize| match figure.share_y {
        Share::All => 0,
        Share::Row => index / columns,
        Share::Column => index % columns,
        Share::None => index,
    };
    let around = |chosen: &dyn Fn(usize) -> bool| {
        let panels = figure
            .panels
            .iter()
            .enumerate()
            .filter(|(index, _)| chosen(*index));
        Span::around(&figure.y, panels.flat_map(|(_, panel)| heights(panel)), 0.06)
    };
    let all = around(&|_| true)?;
    let spans =
        (0..figure.panels.len()).map(|index| around(&|other| group(other) == group(index)).unwrap_or(all));
    Some(spans.collect())
}

fn heights(panel: &Panel) -> impl Iterator<Item = f64> {
    let points = panel.curves.iter().flat_map(|curve| &curve.points);
    let lines = panel.lines.iter().map(|line| line.y);
    points
        .flat_map(|point| std::iter::once(point.y).chain(point.band.into_iter().flatten()))
        .chain(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale) -> Axis {
        Axis {
            label: String::new(),
            scale,
            limits: None,
        }
    }

    #[test]
    fn an_axis_goes_around_its_values_even_where_they_are_one() {
        for (scale, values) in [
            (Scale::Linear, vec![-3.0, 5.0]),
            (Scale::Linear, vec![0.0]),
            (Scale::Linear, vec![2442.0, 2442.0]),
            (Scale::Linear, vec![-1e300, 1e300]),
            (Scale::Linear, vec![5e-324]),
            (Scale::Log, vec![0.001, 1000.0]),
            (Scale::Log, vec![7.0]),
            (Scale::Log, vec![-1.0, 0.0, 7.0]),
        ] {
            let span = Span::around(&axis(scale), values.iter().copied(), 0.05).unwrap();
            for value in values
                .into_iter()
                .filter(|value| scale == Scale::Linear || *value > 0.0)
            {
                let share = span.share(value);
                assert!(share > 0.0 && share < 1.0, "{span:?} {value} {share}");
            }
        }
        assert_eq!(Span::around(&axis(Scale::Log), [-1.0].into_iter(), 0.05), None);
    }

    #[test]
    fn limits_win_and_places_follow_the_scale() {
        let limits = Axis {
            limits: Some([1.0, 100.0]),
            ..axis(Scale::Log)
        };
        let span = Span::around(&limits, [5.0].into_iter(), 0.05).unwrap();
        assert!((span.share(10.0) - 0.5).abs() < 1e-12);
        assert_eq!(
            (span.share(1.0), span.share(100.0), span.share(-4.0)),
            (0.0, 1.0, -0.1)
        );
        let linear = Span {
            scale: Scale::Linear,
            ..span
        };
        assert!((linear.share(50.5) - 0.5).abs() < 1e-12);
    }
}

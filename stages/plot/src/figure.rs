//! What a figure shows, before any thought of paper.

use std::collections::BTreeSet;

use provenir_api::FigureIdentity;
use provenir_drawing::font;
use provenir_kinds::plot::{Scale, Share};

use crate::style;

/// A grid of panels that share their axes, with curves, bands and reference lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Above everything; none where empty.
    pub title: String,
    /// What there is to see, in words, for those who do not see it.
    pub description: String,
    /// Horizontal axis, the same in every panel.
    pub x: Axis,
    /// What stands at 0, 1, … along the horizontal axis, where that has no numbers: points near those are of that category, and
    /// no line joins them.
    pub categories: Vec<String>,
    /// Vertical axis.
    pub y: Axis,
    /// Which panels have one vertical axis in common.
    pub share_y: Share,
    /// A title for each column of panels; empty for none. At least one.
    pub columns: Vec<String>,
    /// A title for each row of panels; empty for none. At least one.
    pub rows: Vec<String>,
    /// Row by row: as many as rows times columns.
    pub panels: Vec<Panel>,
    /// What curves stand for, in the order of the legend.
    pub series: Vec<Series>,
    /// What reference lines stand for, in the order of the legend.
    pub references: Vec<String>,
    /// Width and height in points (1/72 inch); by the number of panels, where absent.
    pub size: Option<[f64; 2]>,
    /// Which cell draws it, and from what.
    pub identity: FigureIdentity,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name of what is shown.
    pub label: String,
    /// How numbers are laid along it.
    pub scale: Scale,
    /// Its ends, in order; around the data, where absent.
    pub limits: Option<[f64; 2]>,
}

/// An entry of the legend that curves refer to.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name; no entry where empty.
    pub label: String,
    /// Which of the styles it has, below [`Figure::STYLES`].
    pub style: usize,
}

/// A pair of axes and what is drawn within.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Curves, drawn in this order.
    pub curves: Vec<Curve>,
    /// Horizontal lines.
    pub lines: Vec<Line>,
}

/// A line through points.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Place of its series in [`Figure::series`].
    pub series: usize,
    /// In the order of x.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Horizontal place.
    pub x: f64,
    /// Vertical place.
    pub y: f64,
    /// Ends of the band, in order.
    pub band: Option<[f64; 2]>,
}

/// A horizontal line across a panel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Place of its name in [`Figure::references`].
    pub reference: usize,
    /// Vertical place.
    pub y: f64,
}

/// Why a figure cannot be drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FigureError {
    /// No panel has a point.
    #[error("there is nothing to draw: no panel has a point")]
    Empty,
    /// A number beyond what can be laid out.
    #[error("the {axis} axis cannot show {value}")]
    Unbounded {
        /// `horizontal` or `vertical`.
        axis: &'static str,
        /// The number.
        value: f64,
    },
    /// A number that has no logarithm.
    #[error("the {axis} axis has a log scale, which cannot show {value}")]
    NotPositive {
        /// `horizontal` or `vertical`.
        axis: &'static str,
        /// The number.
        value: f64,
    },
    /// Panels that are too small to show anything.
    #[error(
        "the figure has room for panels of {:.0} × {:.0} points only, at least {:.0} × {:.0} are needed",
        found[0], found[1], needed[0], needed[1]
    )]
    TooSmall {
        /// What each panel would have.
        found: [f64; 2],
        /// What each panel needs.
        needed: [f64; 2],
    },
    /// More different letters than a PDF's font holds.
    #[error("the figure has {count} different letters, and a PDF holds {limit}", limit = u16::MAX)]
    TooManyLetters {
        /// How many there are.
        count: usize,
    },
    /// More pixels than are reasonable.
    #[error("{width} × {height} pixels are more than the {limit} a picture may have", limit = Figure::MOST_PIXELS)]
    TooManyPixels {
        /// Pixels in a row.
        width: f64,
        /// Rows of pixels.
        height: f64,
    },
    /// A bug of ours.
    #[error("{0}")]
    Bug(String),
}

impl Figure {
    /// How many series can be told apart.
    pub const STYLES: usize = style::COUNT;

    /// How many pixels a picture may have.
    pub const MOST_PIXELS: u32 = provenir_kinds::plot::MOST_PIXELS;

    /// Numbers beyond this are refused, so that no difference of two overflows.
    const LARGEST: f64 = 1e300;

    /// The letters of its texts that the bundled font lacks, and that show as its replacement character.
    pub fn missing_letters(&self) -> BTreeSet<char> {
        let axes = [&self.title, &self.x.label, &self.y.label];
        let legend = self
            .series
            .iter()
            .map(|series| &series.label)
            .chain(&self.references);
        let texts = axes
            .into_iter()
            .chain(&self.categories)
            .chain(&self.columns)
            .chain(&self.rows)
            .chain(legend);
        texts.flat_map(|text| font::missing(text)).collect()
    }

    /// Checks what layout relies upon.
    pub(crate) fn check(&self) -> Result<(), FigureError> {
        if self.columns.is_empty() || self.panels.len() != self.columns.len() * self.rows.len() {
            return Err(FigureError::Bug(format!(
                "{} panels do not make {} rows of {}",
                self.panels.len(),
                self.rows.len(),
                self.columns.len()
            )));
        }
        let curves = || self.panels.iter().flat_map(|panel| &panel.curves);
        let lines = || self.panels.iter().flat_map(|panel| &panel.lines);
        if curves().any(|curve| curve.series >= self.series.len())
            || lines().any(|line| line.reference >= self.references.len())
            || self.series.iter().any(|series| series.style >= Self::STYLES)
        {
            return Err(FigureError::Bug("the legend lacks what is drawn".to_owned()));
        }
        if curves().all(|curve| curve.points.is_empty()) {
            return Err(FigureError::Empty);
        }
        let points = || curves().flat_map(|curve| &curve.points);
        let bands = || points().filter_map(|point| point.band).flatten();
        let heights = || points().map(|point| point.y).chain(lines().map(|line| line.y));
        self.x
            .check("horizontal", points().map(|point| point.x), std::iter::empty())?;
        self.y.check("vertical", heights(), bands())
    }
}

impl Axis {
    /// `band` may lie where a log scale shows nothing: it is drawn down to the axis there.
    fn check(
        &self,
        axis: &'static str,
        values: impl Iterator<Item = f64> + Clone,
        band: impl Iterator<Item = f64>,
    ) -> Result<(), FigureError> {
        let limits = self.limits.into_iter().flatten();
        let unbounded = |value: &f64| value.is_nan() || value.abs() > Figure::LARGEST;
        if let Some(value) = values.clone().chain(limits.clone()).chain(band).find(unbounded) {
            return Err(FigureError::Unbounded { axis, value });
        }
        if self.scale == Scale::Log
            && let Some(value) = values.chain(limits).find(|value| *value <= 0.0)
        {
            return Err(FigureError::NotPositive { axis, value });
        }
        Ok(())
    }
}

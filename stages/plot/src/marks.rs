//! What a figure consists of, mark by mark, in the order in which one covers another. Every format draws the same marks.

use crate::figure::{Curve, Figure, Point};
use crate::layout::{Layout, PanelLayout, TICK_LENGTH};
use crate::legend::{Entry, Key, SAMPLE};
use crate::path::Path;
use crate::style::{self, Colour, Style};
use crate::text::Text;

const PAPER: Colour = Colour([0xff, 0xff, 0xff]);
const GRID: Colour = Colour([0xe6, 0xe6, 0xe6]);
const AXIS: Colour = Colour([0x55, 0x55, 0x55]);
const REFERENCE: Colour = Colour([0x44, 0x44, 0x44]);
const LINE_WIDTH: f64 = 1.4;
const REFERENCE_WIDTH: f64 = 1.0;
const MARKER_RADIUS: f64 = 2.3;
const BAND_OPACITY: f64 = 0.17;
/// Half the width of the ends of an error bar.
const CAP: f64 = 2.6;
/// A curve with more points than this has markers at some of them only.
const MOST_MARKERS: usize = 12;

/// The colour of texts.
pub(crate) const INK: Colour = Colour([0x22, 0x22, 0x22]);

/// A step of drawing. Places are in points from the top left corner.
#[derive(Clone, Debug)]
pub(crate) enum Mark<'a> {
    /// What follows shows within this panel only, up to the next [`Mark::Unclip`].
    Clip(usize),
    Unclip,
    Shape(Path, Paint),
    Text(&'a Text),
}

/// How an outline is filled (by the nonzero rule), and then drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Paint {
    pub(crate) fill: Option<Fill>,
    pub(crate) stroke: Option<Stroke>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fill {
    pub(crate) colour: Colour,
    /// Between 0 and 1.
    pub(crate) opacity: f64,
}

/// A line with flat ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stroke {
    pub(crate) colour: Colour,
    pub(crate) width: f64,
    /// Whether its corners are round, rather than pointed.
    pub(crate) round: bool,
    /// Lengths of dashes and gaps in turn; empty for a line without gaps.
    pub(crate) dashes: Vec<f64>,
}

impl Paint {
    fn fill(colour: Colour, opacity: f64) -> Self {
        Self {
            fill: Some(Fill { colour, opacity }),
            stroke: None,
        }
    }

    fn and_stroke(mut self, colour: Colour, width: f64) -> Self {
        self.stroke = Some(Stroke {
            colour,
            width,
            round: false,
            dashes: Vec::new(),
        });
        self
    }

    fn stroke(colour: Colour, width: f64) -> Self {
        Self::default().and_stroke(colour, width)
    }

    /// `pattern` is in units of the line's width.
    fn dashed(mut self, pattern: &[f64]) -> Self {
        if let Some(stroke) = &mut self.stroke {
            stroke.dashes = pattern.iter().map(|length| length * stroke.width).collect();
        }
        self
    }

    fn round(mut self) -> Self {
        if let Some(stroke) = &mut self.stroke {
            stroke.round = true;
        }
        self
    }
}

/// The marks of a figure that passed its check.
pub(crate) fn marks<'a>(figure: &'a Figure, layout: &'a Layout) -> Vec<Mark<'a>> {
    let mut marks = Marks {
        figure,
        marks: Vec::new(),
    };
    let [width, height] = layout.size;
    marks.shape(
        Path::rectangle([0.0, 0.0, width, height]),
        Paint::fill(PAPER, 1.0),
    );
    for (index, panel) in layout.panels.iter().enumerate() {
        marks.panel(index, panel);
    }
    for entry in &layout.legend.entries {
        marks.entry(entry);
    }
    marks.marks.extend(layout.texts.iter().map(Mark::Text));
    marks.marks
}

struct Marks<'a> {
    figure: &'a Figure,
    marks: Vec<Mark<'a>>,
}

impl<'a> Marks<'a> {
    fn shape(&mut self, outline: Path, paint: Paint) {
        self.marks.push(Mark::Shape(outline, paint));
    }

    fn panel(&mut self, index: usize, panel: &PanelLayout) {
        self.grid(panel);
        self.marks.push(Mark::Clip(index));
        let content = &self.figure.panels[index];
        for curve in &content.curves {
            self.band(panel, curve);
        }
        let [left, _, width, _] = panel.area;
        for line in &content.lines {
            self.reference(line.reference, [left, panel.y(line.y)], width);
        }
        let joined = self.figure.categories.is_empty();
        for curve in content
            .curves
            .iter()
            .filter(|curve| joined && curve.points.len() > 1)
        {
            let points = curve.points.iter();
            let outline = Path::through(points.map(|point| [panel.x(point.x), panel.y(point.y)]));
            self.line(self.style(curve), outline);
        }
        self.marks.push(Mark::Unclip);
        // Markers may reach over the axes, so that a point on an axis is whole; points beyond the limits have none.
        for (place, curve) in content.curves.iter().enumerate() {
            self.markers(panel, curve, place, content.curves.len());
        }
        self.axes(panel);
    }

    fn style(&self, curve: &Curve) -> Style {
        style::series(self.figure.series[curve.series].style)
    }

    fn grid(&mut self, panel: &PanelLayout) {
        let [left, top, width, height] = panel.area;
        let mut grid = Path::default();
        // Categories have no place that is worth a line.
        let numbered = self.figure.categories.is_empty();
        let x_ticks = panel
            .x_ticks
            .iter()
            .filter(|tick| numbered && !tick.label.is_empty());
        for tick in x_ticks {
            grid.move_to([panel.x(tick.value), top]);
            grid.along_to(top + height);
        }
        for tick in panel.y_ticks.iter().filter(|tick| !tick.label.is_empty()) {
            grid.move_to([left, panel.y(tick.value)]);
            grid.across_to(left + width);
        }
        self.shape(grid, Paint::stroke(GRID, 0.6));
    }

    fn axes(&mut self, panel: &PanelLayout) {
        let [left, top, width, height] = panel.area;
        let bottom = top + height;
        let length = |label: &str| {
            if label.is_empty() {
                TICK_LENGTH * 0.6
            } else {
                TICK_LENGTH
            }
        };
        let mut axes = Path::default();
        axes.move_to([left, top]);
        axes.along_to(bottom);
        axes.across_to(left + width);
        for tick in &panel.x_ticks {
            axes.move_to([panel.x(tick.value), bottom]);
            axes.along_to(bottom + length(&tick.label));
        }
        for tick in &panel.y_ticks {
            axes.move_to([left, panel.y(tick.value)]);
            axes.across_to(left - length(&tick.label));
        }
        self.shape(axes, Paint::stroke(AXIS, 0.7));
    }

    /// The band, in as many pieces as there are runs of points that have one.
    fn band(&mut self, panel: &PanelLayout, curve: &Curve) {
        let colour = self.style(curve).colour;
        let joined = self.figure.categories.is_empty();
        for run in curve
            .points
            .chunk_by(|left, right| joined && left.band.is_some() == right.band.is_some())
        {
            let place = |point: &Point, end: usize| Some([panel.x(point.x), panel.y(point.band?[end])]);
            let lower: Vec<[f64; 2]> = run.iter().filter_map(|point| place(point, 0)).collect();
            let upper: Vec<[f64; 2]> = run.iter().filter_map(|point| place(point, 1)).collect();
            if let ([low], [high]) = (&lower[..], &upper[..]) {
                // A band of one point has no width: its ends are marked instead.
                let mut bar = Path::default();
                for [x, y] in [low, high] {
                    bar.move_to([x - CAP, *y]);
                    bar.across_to(x + CAP);
                }
                bar.move_to(*low);
                bar.along_to(high[1]);
                self.shape(bar, Paint::stroke(colour, 0.9));
            } else if !lower.is_empty() {
                let mut outline = Path::through(upper.into_iter().chain(lower.into_iter().rev()));
                outline.close();
                self.shape(outline, Paint::fill(colour, BAND_OPACITY));
            }
        }
    }

    fn line(&mut self, style: Style, outline: Path) {
        let stroke = Paint::stroke(style.colour, LINE_WIDTH);
        self.shape(outline, stroke.round().dashed(style.dashes));
    }

    fn reference(&mut self, reference: usize, from: [f64; 2], length: f64) {
        let mut outline = Path::default();
        outline.move_to(from);
        outline.across_to(from[0] + length);
        let stroke = Paint::stroke(REFERENCE, REFERENCE_WIDTH);
        self.shape(outline, stroke.dashed(style::reference(reference)));
    }

    fn markers(&mut self, panel: &PanelLayout, curve: &Curve, place: usize, of: usize) {
        let style = self.style(curve);
        let inside = |share: f64| (-1e-9..=1.0 + 1e-9).contains(&share);
        // Sparse markers of different curves stand at different places.
        let every = if self.figure.categories.is_empty() && curve.points.len() > MOST_MARKERS {
            curve.points.len().div_ceil(8)
        } else {
            1
        };
        let first = every * (2 * place + 1) / (2 * of.max(1));
        let mut outline = Path::default();
        for point in curve.points.iter().skip(first).step_by(every) {
            if inside(panel.x.share(point.x)) && inside(panel.y.share(point.y)) {
                outline.marker(style.marker, [panel.x(point.x), panel.y(point.y)], MARKER_RADIUS);
            }
        }
        if !outline.is_empty() {
            self.marker(style, outline);
        }
    }

    fn marker(&mut self, style: Style, outline: Path) {
        self.shape(outline, Paint::fill(style.colour, 1.0).and_stroke(PAPER, 0.5));
    }

    fn entry(&mut self, entry: &'a Entry) {
        let [x, y] = entry.at;
        match entry.key {
            Key::Reference(reference) => self.reference(reference, entry.at, SAMPLE),
            Key::Series(series) => {
                let style = style::series(self.figure.series[series].style);
                if self.figure.categories.is_empty() {
                    self.line(style, Path::through([entry.at, [x + SAMPLE, y]].into_iter()));
                }
                let mut marker = Path::default();
                marker.marker(style.marker, [x + SAMPLE / 2.0, y], MARKER_RADIUS);
                self.marker(style, marker);
            }
        }
        self.marks.push(Mark::Text(&entry.text));
    }
}

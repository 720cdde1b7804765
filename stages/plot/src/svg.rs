//! The figure as SVG.
//!
//! Every number has at most two decimals; text is drawn as outlines of the bundled font, each with its wording for
//! those who listen. Identifiers begin with the digest of the data, so that several figures can stand in one page.

use std::collections::BTreeMap;
use std::fmt::{Arguments, Write};

use provenir_drawing::font::{Font, Weight};

use crate::figure::{Curve, Figure, FigureError, Point};
use crate::layout::{LEADING, Layout, PanelLayout, TICK_LENGTH, layout};
use crate::legend::{Entry, Key, SAMPLE};
use crate::path::{Path, num};
use crate::style::{self, Style};
use crate::text::{Anchor, Text, Turn};

const INK: &str = "#222";
const GRID: &str = "#e6e6e6";
const AXIS: &str = "#555";
const REFERENCE: &str = "#444";
const LINE_WIDTH: f64 = 1.4;
const REFERENCE_WIDTH: f64 = 1.0;
const MARKER_RADIUS: f64 = 2.3;
const BAND_OPACITY: &str = "0.17";
/// Half the width of the ends of an error bar.
const CAP: f64 = 2.6;
/// A curve with more points than this has markers at some of them only.
const MOST_MARKERS: usize = 12;
/// A description longer than this is cut.
const LONGEST: usize = 2000;

impl Figure {
    /// Draws the figure as SVG.
    pub fn to_svg(&self) -> Result<String, FigureError> {
        self.check()?;
        let layout = layout(self)?;
        Ok(Writer::new(self).finish(&layout))
    }
}

/// Text for an attribute or between tags. What XML cannot hold becomes the replacement character.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (count, letter) in text.chars().enumerate() {
        if count == LONGEST {
            escaped.push('…');
            break;
        }
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            letter => escaped.push(letter),
        }
    }
    escaped
}

struct Writer<'a> {
    figure: &'a Figure,
    prefix: String,
    body: String,
    /// Outlines in use, by weight and number of the letter.
    glyphs: BTreeMap<(Weight, u16), String>,
}

impl<'a> Writer<'a> {
    fn new(figure: &'a Figure) -> Self {
        let prefix = format!("f{}", &figure.identity.data.short()[..8]);
        Self {
            figure,
            prefix,
            body: String::new(),
            glyphs: BTreeMap::new(),
        }
    }

    fn finish(mut self, layout: &Layout) -> String {
        for (index, panel) in layout.panels.iter().enumerate() {
            self.panel(index, panel);
        }
        for entry in &layout.legend.entries {
            self.entry(entry);
        }
        for text in &layout.texts {
            self.text(text);
        }
        let body = std::mem::take(&mut self.body);
        let [width, height] = layout.size.map(num);
        let prefix = self.prefix.clone();
        let figure = self.figure;
        let title = if figure.title.trim().is_empty() {
            &figure.y.label
        } else {
            &figure.title
        };
        self.line(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" \
             width=\"{width}pt\" height=\"{height}pt\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-labelledby=\"{prefix}-title {prefix}-description\">"
        ));
        self.line(format_args!(
            "<title id=\"{prefix}-title\">{}</title>",
            escape(title)
        ));
        let description = escape(&figure.description);
        self.line(format_args!(
            "<desc id=\"{prefix}-description\">{description}</desc>"
        ));
        self.line(format_args!("{}", figure.identity.svg_metadata()));
        self.line(format_args!("<defs>"));
        for (name, outline) in std::mem::take(&mut self.glyphs) {
            let id = self.glyph_id(name);
            self.line(format_args!("<path id=\"{id}\" d=\"{outline}\"/>"));
        }
        for (index, panel) in layout.panels.iter().enumerate() {
            let area = Path::rectangle(panel.area);
            let id = self.clip_id(index);
            self.line(format_args!(
                "<clipPath id=\"{id}\"><path d=\"{}\"/></clipPath>",
                area.data()
            ));
        }
        self.line(format_args!("</defs>"));
        self.line(format_args!(
            "<path d=\"M0 0H{width}V{height}H0Z\" fill=\"#fff\"/>"
        ));
        self.body.push_str(&body);
        self.line(format_args!("</svg>"));
        self.body
    }

    fn line(&mut self, text: Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(text);
        self.body.push('\n');
    }

    fn clip_id(&self, panel: usize) -> String {
        format!("{}-panel{panel}", self.prefix)
    }

    fn glyph_id(&self, (weight, glyph): (Weight, u16)) -> String {
        let weight = if weight == Weight::Bold { "bold" } else { "regular" };
        format!("{}-{weight}{glyph}", self.prefix)
    }

    fn panel(&mut self, index: usize, panel: &PanelLayout) {
        self.grid(panel);
        let clip = self.clip_id(index);
        self.line(format_args!("<g clip-path=\"url(#{clip})\">"));
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
            self.stroke(self.style(curve), &outline);
        }
        self.line(format_args!("</g>"));
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
        let grid = grid.data();
        self.line(format_args!(
            "<path d=\"{grid}\" fill=\"none\" stroke=\"{GRID}\" stroke-width=\"0.6\"/>"
        ));
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
        let axes = axes.data();
        self.line(format_args!(
            "<path d=\"{axes}\" fill=\"none\" stroke=\"{AXIS}\" stroke-width=\"0.7\"/>"
        ));
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
                let bar = bar.data();
                self.line(format_args!(
                    "<path d=\"{bar}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"0.9\"/>"
                ));
            } else if !lower.is_empty() {
                let mut outline = Path::through(upper.into_iter().chain(lower.into_iter().rev()));
                outline.close();
                let outline = outline.data();
                self.line(format_args!(
                    "<path d=\"{outline}\" fill=\"{colour}\" fill-opacity=\"{BAND_OPACITY}\"/>"
                ));
            }
        }
    }

    fn stroke(&mut self, style: Style, outline: &Path) {
        let (outline, colour) = (outline.data(), style.colour);
        let dashes = dashes(style.dashes, LINE_WIDTH);
        self.line(format_args!(
            "<path d=\"{outline}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{LINE_WIDTH}\" \
             stroke-linejoin=\"round\"{dashes}/>"
        ));
    }

    fn reference(&mut self, reference: usize, from: [f64; 2], length: f64) {
        let mut outline = Path::default();
        outline.move_to(from);
        outline.across_to(from[0] + length);
        let outline = outline.data();
        let dashes = dashes(style::reference(reference), REFERENCE_WIDTH);
        self.line(format_args!(
            "<path d=\"{outline}\" fill=\"none\" stroke=\"{REFERENCE}\" stroke-width=\"{REFERENCE_WIDTH}\"{dashes}/>"
        ));
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
        self.marks(style, &outline);
    }

    fn marks(&mut self, style: Style, outline: &Path) {
        if !outline.is_empty() {
            let (outline, colour) = (outline.data(), style.colour);
            self.line(format_args!(
                "<path d=\"{outline}\" fill=\"{colour}\" stroke=\"#fff\" stroke-width=\"0.5\"/>"
            ));
        }
    }

    fn entry(&mut self, entry: &Entry) {
        let [x, y] = entry.at;
        match entry.key {
            Key::Reference(reference) => self.reference(reference, entry.at, SAMPLE),
            Key::Series(series) => {
                let style = style::series(self.figure.series[series].style);
                if self.figure.categories.is_empty() {
                    self.stroke(style, &Path::through([entry.at, [x + SAMPLE, y]].into_iter()));
                }
                let mut marker = Path::default();
                marker.marker(style.marker, [x + SAMPLE / 2.0, y], MARKER_RADIUS);
                self.marks(style, &marker);
            }
        }
        self.text(&entry.text);
    }

    fn text(&mut self, text: &Text) {
        let font = Font::of(text.weight);
        // The quotient of a short decimal and a power of two is short, too.
        let scale = text.size / font.units();
        let full = escape(&text.full);
        self.line(format_args!(
            "<g fill=\"{INK}\" role=\"img\" aria-label=\"{full}\">"
        ));
        if text.lines.last().is_some_and(|line| line.ends_with('…')) {
            self.line(format_args!("<title>{full}</title>"));
        }
        for (index, line) in text.lines.iter().enumerate() {
            let (placed, length) = font.place(line);
            let down = index as f64 * text.size * LEADING;
            let back = match text.anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => f64::from(length) * scale / 2.0,
                Anchor::End => f64::from(length) * scale,
            };
            let [x, y] = text.at;
            let (matrix, x, y) = match text.turn {
                Turn::None => (format!("{scale} 0 0 {scale}"), x - back, y + down),
                Turn::Left => (format!("0 -{scale} {scale} 0"), x + down, y + back),
                Turn::Right => (format!("0 {scale} -{scale} 0"), x - down, y - back),
            };
            let mut letters = String::new();
            for letter in placed {
                let name = (text.weight, letter.glyph.0);
                let outline = self
                    .glyphs
                    .entry(name)
                    .or_insert_with(|| font.outline(letter.glyph));
                if !outline.is_empty() {
                    let id = self.glyph_id(name);
                    // Writing to a string cannot fail.
                    let _ = write!(letters, "<use xlink:href=\"#{id}\" x=\"{}\"/>", letter.x);
                }
            }
            let at = format!("{} {}", num(x), num(y));
            self.line(format_args!(
                "<g transform=\"matrix({matrix} {at})\">{letters}</g>"
            ));
        }
        self.line(format_args!("</g>"));
    }
}

fn dashes(pattern: &[f64], width: f64) -> String {
    if pattern.is_empty() {
        return String::new();
    }
    let lengths: Vec<String> = pattern.iter().map(|length| num(length * width)).collect();
    format!(" stroke-dasharray=\"{}\"", lengths.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(
            escape("<a b=\"c\">&\u{0}\n"),
            "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd} "
        );
        assert_eq!(escape(&"x".repeat(5000)).chars().count(), LONGEST + 1);
    }
}

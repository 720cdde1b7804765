//! Marks as the operators of a page.

use pdf_writer::types::LineJoinStyle;
use pdf_writer::{Content as Operators, Name};

use super::MARKED;
use super::letters::Letters;
use crate::layout::Layout;
use crate::marks::{INK, Mark, Paint};
use crate::path::{Path, Segment};
use crate::style::Colour;
use crate::text::{Text, Turn};

/// Where SVG cuts a pointed corner, in widths of the line.
const MITER_LIMIT: f32 = 4.0;

/// A length or a place in points, as it is written: rounded to two decimals, as in SVG.
pub(super) fn place(points: f64) -> f32 {
    (libm::rint(points * 100.0) / 100.0) as f32
}

/// The name of the state of graphics that sets an opacity.
pub(super) fn state(opacity: usize) -> String {
    format!("Opacity{opacity}")
}

/// The operators of a page that grows mark by mark.
pub(super) struct Content<'a> {
    layout: &'a Layout,
    letters: &'a [Letters],
    pub(super) operators: Operators,
    /// What the states of graphics are for.
    pub(super) opacities: Vec<f64>,
}

impl<'a> Content<'a> {
    pub(super) fn new(layout: &'a Layout, letters: &'a [Letters]) -> Self {
        Self {
            layout,
            letters,
            operators: Operators::new(),
            opacities: Vec::new(),
        }
    }

    pub(super) fn draw(mut self, marks: &[Mark<'_>]) -> Self {
        self.operators
            .begin_marked_content_with_properties(Name(b"Figure"))
            .properties()
            .identify(MARKED);
        // From the top left corner downwards, which PDF does from the bottom upwards.
        self.operators
            .transform([1.0, 0.0, 0.0, -1.0, 0.0, place(self.layout.size[1])])
            .set_miter_limit(MITER_LIMIT);
        self.fill(INK);
        for mark in marks {
            match mark {
                Mark::Clip(panel) => {
                    self.operators.save_state();
                    self.outline(&Path::rectangle(self.layout.panels[*panel].area));
                    self.operators.clip_nonzero().end_path();
                }
                Mark::Unclip => {
                    self.operators.restore_state();
                }
                Mark::Shape(outline, paint) => self.shape(outline, paint),
                Mark::Text(text) => self.text(text),
            }
        }
        self.operators.end_marked_content();
        self
    }

    fn shape(&mut self, outline: &Path, paint: &Paint) {
        if outline.is_empty() {
            return;
        }
        self.operators.save_state();
        if let Some(fill) = paint.fill {
            self.fill(fill.colour);
            if fill.opacity < 1.0 {
                let known = self
                    .opacities
                    .iter()
                    .position(|known| known.total_cmp(&fill.opacity).is_eq());
                let index = known.unwrap_or_else(|| {
                    self.opacities.push(fill.opacity);
                    self.opacities.len() - 1
                });
                self.operators.set_parameters(Name(state(index).as_bytes()));
            }
        }
        if let Some(stroke) = &paint.stroke {
            let [red, green, blue] = channels(stroke.colour);
            self.operators
                .set_stroke_rgb(red, green, blue)
                .set_line_width(place(stroke.width));
            if stroke.round {
                self.operators.set_line_join(LineJoinStyle::RoundJoin);
            }
            if !stroke.dashes.is_empty() {
                let lengths = stroke.dashes.iter().map(|length| place(*length));
                self.operators.set_dash_pattern(lengths, 0.0);
            }
        }
        self.outline(outline);
        match (&paint.fill, &paint.stroke) {
            (Some(_), Some(_)) => self.operators.fill_nonzero_and_stroke(),
            (Some(_), None) => self.operators.fill_nonzero(),
            (None, Some(_)) => self.operators.stroke(),
            (None, None) => self.operators.end_path(),
        };
        self.operators.restore_state();
    }

    fn outline(&mut self, outline: &Path) {
        let mut at = [0.0; 2];
        for segment in outline.segments() {
            match segment {
                Segment::Move(to) => {
                    at = *to;
                    self.operators.move_to(place(at[0]), place(at[1]));
                    continue;
                }
                Segment::Line(to) => at = *to,
                Segment::Across(x) => at[0] = *x,
                Segment::Along(y) => at[1] = *y,
                Segment::Curve(points) => {
                    let [[x1, y1], [x2, y2], [x3, y3]] = points.map(|point| point.map(place));
                    self.operators.cubic_to(x1, y1, x2, y2, x3, y3);
                    at = points[2];
                    continue;
                }
                Segment::Close => {
                    // An outline that goes on from here begins with a move.
                    self.operators.close_path();
                    continue;
                }
            }
            self.operators.line_to(place(at[0]), place(at[1]));
        }
    }

    fn text(&mut self, text: &Text) {
        let Some(letters) = self.letters.iter().find(|letters| letters.weight == text.weight) else {
            return;
        };
        self.operators
            .begin_text()
            .set_font(letters.name(), place(text.size));
        for line in text.placed().filter(|line| !line.letters.is_empty()) {
            let [x, y] = line.at.map(place);
            // Letters grow upwards; places do downwards.
            self.operators.set_text_matrix(match text.turn {
                Turn::None => [1.0, 0.0, 0.0, -1.0, x, y],
                Turn::Left => [0.0, -1.0, -1.0, 0.0, x, y],
                Turn::Right => [0.0, 1.0, 1.0, 0.0, x, y],
            });
            letters.show(&line, &mut self.operators);
        }
        self.operators.end_text();
    }

    fn fill(&mut self, colour: Colour) {
        let [red, green, blue] = channels(colour);
        self.operators.set_fill_rgb(red, green, blue);
    }
}

/// Red, green and blue from 0 to 1, in as many decimals as tell 256 shades apart.
fn channels(colour: Colour) -> [f32; 3] {
    colour
        .0
        .map(|channel| (libm::rint(f64::from(channel) / 255.0 * 1000.0) / 1000.0) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shade_comes_back_from_its_decimals() {
        for shade in 0..=255_u8 {
            let [red, ..] = channels(Colour([shade, 0, 0]));
            assert_eq!(libm::rintf(red * 255.0) as u8, shade);
        }
    }

    #[test]
    fn places_have_two_decimals() {
        for (points, written) in [(123.456, "123.46"), (-0.001, "-0"), (4319.994, "4319.99")] {
            assert_eq!(place(points).to_string(), written);
        }
    }
}

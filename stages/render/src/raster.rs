//! Pictures as pixels.

use provenir_drawing::font::{Font, OutlineBuilder};
use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, Transform};

use crate::outline::{Outline, Segment};
use crate::picture::{Mark, Picture, Words};
use crate::style::{Colour, PAPER};

/// Rows of pixels from the top, each 0xRRGGBB.
pub(crate) type Pixels = Vec<u32>;

/// Paints pictures, each over those before.
pub(crate) struct Canvas(Pixmap);

impl Canvas {
    /// Blank paper of at least one pixel.
    pub(crate) fn new([width, height]: [u32; 2]) -> Option<Self> {
        let mut pixels = Pixmap::new(width, height)?;
        let Colour([red, green, blue, _]) = PAPER;
        pixels.fill(Color::from_rgba8(red, green, blue, 255));
        Some(Self(pixels))
    }

    pub(crate) fn paint(&mut self, picture: &Picture) {
        for mark in &picture.0 {
            match mark {
                Mark::Fill(outline, colour) => self.fill(path(outline), *colour, true),
                Mark::Area(outline, colour) => self.fill(path(outline), *colour, false),
                Mark::Words(words) => self.fill(letters(words), words.colour, true),
            }
        }
    }

    fn fill(&mut self, path: Option<Path>, Colour([red, green, blue, opacity]): Colour, smooth: bool) {
        let Some(path) = path else { return };
        let mut paint = Paint {
            anti_alias: smooth,
            ..Paint::default()
        };
        paint.set_color_rgba8(red, green, blue, opacity);
        self.0
            .fill_path(&path, &paint, FillRule::Winding, Transform::identity(), None);
    }

    /// On opaque paper colours are what they are premultiplied.
    pub(crate) fn pixels(&self) -> Pixels {
        let colour = |pixel: &[u8]| u32::from_be_bytes([0, pixel[0], pixel[1], pixel[2]]);
        self.0.data().chunks_exact(4).map(colour).collect()
    }
}

impl Clone for Canvas {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

fn path(outline: &Outline) -> Option<Path> {
    let mut path = PathBuilder::new();
    for segment in &outline.0 {
        match segment {
            Segment::Move([x, y]) => path.move_to(*x as f32, *y as f32),
            Segment::Line([x, y]) => path.line_to(*x as f32, *y as f32),
            Segment::Arc(arc) => {
                for points in arc.curves() {
                    let [[x1, y1], [x2, y2], [x, y]] = points.map(|point| point.map(|number| number as f32));
                    path.cubic_to(x1, y1, x2, y2, x, y);
                }
            }
            Segment::Close => path.close(),
        }
    }
    path.finish()
}

fn letters(words: &Words) -> Option<Path> {
    let font = Font::of(words.weight);
    let scale = words.size / font.units();
    let mut path = PathBuilder::new();
    for letter in font.place(&words.text).0 {
        let mut outline = Letter {
            path: &mut path,
            at: [words.at[0] + f64::from(letter.x) * scale, words.at[1]],
            scale,
        };
        font.trace(letter.glyph, &mut outline);
    }
    path.finish()
}

/// A letter's outline on its way to its place.
struct Letter<'a> {
    path: &'a mut PathBuilder,
    at: [f64; 2],
    scale: f64,
}

impl Letter<'_> {
    fn place(&self, x: f32, y: f32) -> [f32; 2] {
        [
            (self.at[0] + f64::from(x) * self.scale) as f32,
            (self.at[1] - f64::from(y) * self.scale) as f32,
        ]
    }
}

impl OutlineBuilder for Letter<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let [x, y] = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let [x, y] = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ([x1, y1], [x, y]) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ([x1, y1], [x2, y2], [x, y]) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use provenir_drawing::font::Weight;

    use super::*;
    use crate::picture::Anchor;
    use crate::style::INK;

    fn painted(picture: &Picture) -> Pixels {
        let mut canvas = Canvas::new([40, 30]).unwrap();
        canvas.paint(picture);
        canvas.pixels()
    }

    #[test]
    fn shapes_cover_their_area() {
        let red = Colour::new(200, 0, 0);
        let mut picture = Picture::default();
        picture.fill(Outline::rectangle([3.0, 5.0], [10.0, 4.0]), red);
        let pixels = painted(&picture);
        for (index, pixel) in pixels.iter().enumerate() {
            let (x, y) = (index % 40, index / 40);
            let inside = (3..13).contains(&x) && (5..9).contains(&y);
            assert_eq!(*pixel, if inside { 0x00c8_0000 } else { 0x00ff_ffff }, "{x}, {y}");
        }
        let mut picture = Picture::default();
        picture.fill(Outline::circle([20.0, 15.0], 10.0), Colour::new(0, 0, 0));
        let darkness: f64 = painted(&picture)
            .iter()
            .map(|pixel| 1.0 - f64::from(pixel & 255) / 255.0)
            .sum();
        assert!((darkness - 314.16).abs() < 2.0, "{darkness}");
    }

    #[test]
    fn overlapping_parts_of_one_outline_are_filled_once() {
        let mut outline = Outline::rectangle([0.0, 0.0], [20.0, 20.0]);
        outline.append(Outline::rectangle([10.0, 0.0], [20.0, 20.0]));
        let mut picture = Picture::default();
        picture.fill(outline, Colour::new(0, 0, 0).with_opacity(51));
        let pixels = painted(&picture);
        assert_eq!(pixels[15], pixels[5]);
        assert_eq!(pixels[5], 0x00cc_cccc);
    }

    #[test]
    fn words_stand_on_their_base_line() {
        let mut picture = Picture::default();
        picture.write("HH", [20.0, 20.0], Anchor::Middle, (12.0, Weight::Bold, INK));
        let pixels = painted(&picture);
        let dark: Vec<usize> = (0..pixels.len())
            .filter(|index| pixels[*index] & 255 < 100)
            .collect();
        let rows = dark.iter().map(|index| index / 40);
        assert_eq!((rows.clone().min(), rows.max()), (Some(11), Some(19)));
        let columns = dark.iter().map(|index| index % 40);
        let (left, right) = (columns.clone().min().unwrap(), columns.max().unwrap());
        assert!((left + right + 1).abs_diff(40) <= 1, "{left} to {right}");
    }
}

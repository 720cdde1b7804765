//! Animated SVG: every frame a group that is displayed for its time (SMIL).
//!
//! Numbers have one decimal. Words are outlines of the bundled font, each letter defined once. A viewer that does not
//! animate shows the first frame.

use std::collections::BTreeMap;
use std::f64::consts::{PI, TAU};
use std::fmt::Write;

use provenir_api::FigureIdentity;
use provenir_drawing::font::{Font, Weight};

use crate::outline::{Arc, Outline, Point, Segment};
use crate::picture::{Mark, Picture, Words};
use crate::style::{Colour, PAPER};

/// Thousandths of a second, in which times are counted here.
pub(crate) const PARTS: u32 = 1000;

/// A file under way.
pub(crate) struct Svg {
    size: [u32; 2],
    title: String,
    identity: FigureIdentity,
    /// When the animation begins again.
    end: u64,
    body: String,
    glyphs: BTreeMap<(Weight, u16), String>,
}

impl Svg {
    /// A file that is played over and over, each time for so many thousandths of a second.
    pub(crate) fn new(size: [u32; 2], title: &str, end: u64, identity: FigureIdentity) -> Self {
        Self {
            size,
            title: title.to_owned(),
            identity,
            end,
            body: String::new(),
            glyphs: BTreeMap::new(),
        }
    }

    /// Appends what is always displayed.
    pub(crate) fn still(&mut self, picture: &Picture) {
        self.marks(picture);
    }

    /// Appends what is displayed from a thousandth of a second to another.
    pub(crate) fn frame(&mut self, picture: &Picture, [from, to]: [u64; 2]) {
        let share = |time: u64| {
            let text = format!("{:.6}", time as f64 / self.end as f64);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let (display, values, times) = match (from == 0, to >= self.end) {
            (true, true) => ("", "inline", "0".to_owned()),
            (true, false) => ("", "inline;none", format!("0;{}", share(to))),
            (false, true) => (" display=\"none\"", "none;inline", format!("0;{}", share(from))),
            (false, false) => (
                " display=\"none\"",
                "none;inline;none",
                format!("0;{};{}", share(from), share(to)),
            ),
        };
        let seconds = self.end as f64 / f64::from(PARTS);
        self.put(format_args!(
            "<g{display}><animate attributeName=\"display\" values=\"{values}\" keyTimes=\"{times}\" \
             dur=\"{seconds}s\" calcMode=\"discrete\" repeatCount=\"indefinite\"/>\n"
        ));
        self.marks(picture);
        self.body.push_str("</g>\n");
    }

    pub(crate) fn finish(self) -> String {
        let [width, height] = self.size;
        let Colour([red, green, blue, _]) = PAPER;
        let mut file = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n{}\n<defs>\n",
            escape(&self.title),
            self.identity.svg_metadata()
        );
        for (name, outline) in &self.glyphs {
            file.push_str(&format!("<path id=\"{}\" d=\"{outline}\"/>\n", glyph_id(*name)));
        }
        file.push_str(&format!(
            "</defs>\n<path d=\"M0 0H{width}V{height}H0Z\" fill=\"#{red:02x}{green:02x}{blue:02x}\"/>\n"
        ));
        file.push_str(&self.body);
        file.push_str("</svg>\n");
        file
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(text);
    }

    fn marks(&mut self, picture: &Picture) {
        for mark in &picture.0 {
            match mark {
                Mark::Fill(outline, colour) | Mark::Area(outline, colour) => {
                    let data = path_data(outline);
                    self.put(format_args!("<path d=\"{data}\"{}/>\n", paint(*colour)));
                }
                Mark::Words(words) => self.words(words),
            }
        }
    }

    fn words(&mut self, words: &Words) {
        let font = Font::of(words.weight);
        let scale = words.size / font.units();
        let mut letters = String::new();
        for letter in font.place(&words.text).0 {
            let name = (words.weight, letter.glyph.0);
            let outline = self
                .glyphs
                .entry(name)
                .or_insert_with(|| font.outline(letter.glyph));
            if !outline.is_empty() {
                letters.push_str(&format!(
                    "<use xlink:href=\"#{}\" x=\"{}\"/>",
                    glyph_id(name),
                    letter.x
                ));
            }
        }
        let [x, y] = words.at.map(num);
        self.put(format_args!(
            "<g transform=\"matrix({scale:.6} 0 0 {scale:.6} {x} {y})\"{}>{letters}</g>\n",
            paint(words.colour)
        ));
    }
}

fn glyph_id((weight, glyph): (Weight, u16)) -> String {
    format!("{}{glyph}", if weight == Weight::Bold { 'b' } else { 'r' })
}

fn paint(Colour([red, green, blue, opacity]): Colour) -> String {
    let opacity = match opacity {
        255 => String::new(),
        opacity => format!(" fill-opacity=\"{:.3}\"", f64::from(opacity) / 255.0),
    };
    format!(" fill=\"#{red:02x}{green:02x}{blue:02x}\"{opacity}")
}

fn path_data(outline: &Outline) -> String {
    let mut data = String::new();
    for segment in &outline.0 {
        match segment {
            Segment::Move(point) => push(&mut data, 'M', *point),
            Segment::Line(point) => push(&mut data, 'L', *point),
            Segment::Arc(arc) => {
                // An arc that ends where it began would be nothing: a circle takes two.
                if arc.sweep >= TAU {
                    push_arc(&mut data, Arc { sweep: PI, ..*arc });
                    push_arc(
                        &mut data,
                        Arc {
                            from: arc.from + PI,
                            sweep: PI,
                            ..*arc
                        },
                    );
                } else {
                    push_arc(&mut data, *arc);
                }
            }
            Segment::Close => data.push('Z'),
        }
    }
    data
}

fn push(data: &mut String, command: char, [x, y]: Point) {
    data.push(command);
    data.push_str(&num(x));
    data.push(' ');
    data.push_str(&num(y));
}

fn push_arc(data: &mut String, arc: Arc) {
    let radius = num(arc.radius);
    let large = u8::from(arc.sweep > PI);
    let [x, y] = arc.end().map(num);
    data.push_str(&format!("A{radius} {radius} 0 {large} 1 {x} {y}"));
}

/// One decimal, none where it is zero.
fn num(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// Text between tags. What XML cannot hold becomes the replacement character.
fn escape(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER.to_string(),
            letter => letter.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outlines_are_written_as_svg_reads_them() {
        assert_eq!(
            path_data(&Outline::rectangle([1.0, 2.0], [3.0, 4.56])),
            "M1 2L4 2L4 6.6L1 6.6Z"
        );
        assert_eq!(
            path_data(&Outline::circle([10.0, 10.0], 5.0)),
            "M15 10A5 5 0 0 1 5 10A5 5 0 0 1 15 10Z"
        );
        // A stadium along x: from the lower end of the first half circle round its back.
        assert_eq!(
            path_data(&Outline::hull(([10.0, 10.0], 2.0), ([20.0, 10.0], 2.0))),
            "M10 12A2 2 0 0 1 10 8L20 8A2 2 0 0 1 20 12Z"
        );
    }

    #[test]
    fn nothing_in_a_title_is_markup() {
        assert_eq!(escape("<a & b>\u{0}"), "&lt;a &amp; b&gt;\u{fffd}");
    }
}

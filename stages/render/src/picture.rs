//! A picture: what is filled and what is written, from back to front.

use provenir_drawing::font::{Font, Weight};

use crate::outline::{Outline, Point};
use crate::style::{Colour, Tone};

/// Something on a picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mark {
    Fill(Outline, Colour),
    /// Something so pale that its edges need not be smooth: that would take many bytes where it moves.
    Area(Outline, Colour),
    Words(Words),
}

/// A line of text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Words {
    pub(crate) text: String,
    /// Where the base line begins.
    pub(crate) at: Point,
    pub(crate) size: f64,
    pub(crate) weight: Weight,
    pub(crate) colour: Colour,
}

/// Which part of a text lies at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// From back to front.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Picture(pub(crate) Vec<Mark>);

impl Picture {
    pub(crate) fn fill(&mut self, outline: Outline, colour: Colour) {
        if !outline.is_empty() {
            self.0.push(Mark::Fill(outline, colour));
        }
    }

    pub(crate) fn area(&mut self, outline: Outline, colour: Colour) {
        if !outline.is_empty() {
            self.0.push(Mark::Area(outline, colour));
        }
    }

    pub(crate) fn write(
        &mut self,
        text: impl Into<String>,
        at: Point,
        anchor: Anchor,
        (size, weight, colour): (f64, Weight, Colour),
    ) {
        let text = text.into();
        let width = Font::of(weight).width(&text, size);
        let left = match anchor {
            Anchor::Start => at[0],
            Anchor::Middle => at[0] - width / 2.0,
            Anchor::End => at[0] - width,
        };
        self.0.push(Mark::Words(Words {
            text,
            at: [left, at[1]],
            size,
            weight,
            colour,
        }));
    }

    /// A capsule whose ends look like these circles: an edge, the body, and a lighter stripe where light falls from the
    /// upper left.
    pub(crate) fn capsule(&mut self, ends: [(Point, f64); 2], tone: Tone, edge: f64) {
        let grown = ends.map(|(center, radius)| (center, radius + edge));
        self.fill(Outline::hull(grown[0], grown[1]), tone.edge);
        self.fill(Outline::hull(ends[0], ends[1]), tone.body);
        let lit = ends.map(|([x, y], radius)| ([x - 0.18 * radius, y - 0.26 * radius], 0.5 * radius));
        self.fill(Outline::hull(lit[0], lit[1]), tone.light);
    }
}

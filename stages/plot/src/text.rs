//! A text at its place.

use provenir_drawing::font::{Font, Placed, Weight};

use crate::layout::LEADING;

/// Which part of each line lies at the place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Which way a text reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Left to right.
    None,
    /// From the bottom up.
    Left,
    /// From the top down.
    Right,
}

/// Lines of text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    pub(crate) lines: Vec<String>,
    /// The text before it was broken into lines and, perhaps, cut.
    pub(crate) full: String,
    /// On the base line of the first line.
    pub(crate) at: [f64; 2],
    pub(crate) size: f64,
    pub(crate) weight: Weight,
    pub(crate) anchor: Anchor,
    pub(crate) turn: Turn,
}

/// A line of a text at its place.
pub(crate) struct PlacedLine<'a> {
    pub(crate) text: &'a str,
    /// One for each character, in font units from the beginning of the line.
    pub(crate) letters: Vec<Placed>,
    /// Where it begins, on its base line.
    pub(crate) at: [f64; 2],
}

impl Text {
    pub(crate) fn new(lines: Vec<String>, full: &str, at: [f64; 2], size: f64) -> Self {
        Self {
            lines,
            full: full.to_owned(),
            at,
            size,
            weight: Weight::Regular,
            anchor: Anchor::Start,
            turn: Turn::None,
        }
    }

    pub(crate) fn bold(mut self) -> Self {
        self.weight = Weight::Bold;
        self
    }

    pub(crate) fn anchor(mut self, anchor: Anchor) -> Self {
        self.anchor = anchor;
        self
    }

    pub(crate) fn turn(mut self, turn: Turn) -> Self {
        self.turn = turn;
        self
    }

    /// Its lines, each where it begins.
    pub(crate) fn placed(&self) -> impl Iterator<Item = PlacedLine<'_>> {
        let font = Font::of(self.weight);
        let scale = self.size / font.units();
        self.lines.iter().enumerate().map(move |(index, line)| {
            let (letters, length) = font.place(line);
            let down = index as f64 * self.size * LEADING;
            let back = match self.anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => f64::from(length) * scale / 2.0,
                Anchor::End => f64::from(length) * scale,
            };
            let [x, y] = self.at;
            let at = match self.turn {
                Turn::None => [x - back, y + down],
                Turn::Left => [x + down, y + back],
                Turn::Right => [x - down, y - back],
            };
            PlacedLine {
                text: line,
                letters,
                at,
            }
        })
    }
}

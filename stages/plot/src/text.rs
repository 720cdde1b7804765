//! A text at its place.

use provenir_drawing::font::Weight;

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
}

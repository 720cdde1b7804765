//! How series look: by colour for most, by marker and dashes for those who do not see colours and for black and white.

use std::fmt;

/// How many styles differ: 7 colours, each with 4 markers and 4 patterns of dashes.
pub(crate) const COUNT: usize = 28;

/// The colours of Okabe and Ito, "Color universal design" (2008), without yellow, which is pale on white, in an order
/// that keeps neighbours far apart.
const COLOURS: [Colour; 7] = [
    Colour([0x00, 0x72, 0xb2]),
    Colour([0xd5, 0x5e, 0x00]),
    Colour([0x00, 0x9e, 0x73]),
    Colour([0xcc, 0x79, 0xa7]),
    Colour([0xe6, 0x9f, 0x00]),
    Colour([0x56, 0xb4, 0xe9]),
    Colour([0x00, 0x00, 0x00]),
];

const MARKERS: [Marker; 7] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Inverted,
    Marker::Plus,
    Marker::Cross,
];

/// In units of the line's width; empty for a line without gaps.
const DASHES: [&[f64]; 4] = [&[], &[4.5, 1.6], &[1.2, 1.4], &[6.0, 1.5, 1.2, 1.5]];

/// Reference lines are thinner and grey, and have dashes of their own.
const REFERENCE_DASHES: [&[f64]; 4] = [&[5.0, 3.0], &[1.5, 2.0], &[9.0, 3.0], &[7.0, 2.0, 1.5, 2.0]];

/// A colour of sRGB: red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) [u8; 3]);

/// As SVG writes it, with a digit for each channel where that says it all.
impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        if self.0.iter().all(|channel| channel % 0x11 == 0) {
            write!(f, "#{:x}{:x}{:x}", red / 0x11, green / 0x11, blue / 0x11)
        } else {
            write!(f, "#{red:02x}{green:02x}{blue:02x}")
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Inverted,
    Plus,
    Cross,
}

/// How a series looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Style {
    pub(crate) colour: Colour,
    pub(crate) marker: Marker,
    pub(crate) dashes: &'static [f64],
}

/// The style of a series, below [`COUNT`]. Where colours begin again, other markers go with them: points without a line between
/// show no dashes.
pub(crate) fn series(index: usize) -> Style {
    /// Markers of a colour follow each other at this distance, which takes neighbours in a legend far apart.
    const STRIDE: usize = 3;
    let round = index / COLOURS.len();
    Style {
        colour: COLOURS[index % COLOURS.len()],
        marker: MARKERS[(index + STRIDE * round) % MARKERS.len()],
        dashes: DASHES[index % DASHES.len()],
    }
}

/// The dashes of a reference line.
pub(crate) fn reference(index: usize) -> &'static [f64] {
    REFERENCE_DASHES[index % REFERENCE_DASHES.len()]
}

impl Marker {
    /// Its outline around the origin, for a circle of radius 1: corners, or the circle itself.
    pub(crate) fn corners(self) -> &'static [[f64; 2]] {
        // Areas are about equal, so that no series seems more important.
        match self {
            Self::Circle => &[],
            Self::Square => &[[-0.89, -0.89], [0.89, -0.89], [0.89, 0.89], [-0.89, 0.89]],
            Self::Triangle => &[[0.0, -1.25], [1.16, 0.82], [-1.16, 0.82]],
            Self::Diamond => &[[0.0, -1.26], [1.26, 0.0], [0.0, 1.26], [-1.26, 0.0]],
            Self::Inverted => &[[0.0, 1.25], [-1.16, -0.82], [1.16, -0.82]],
            Self::Plus => &[
                [-0.42, -1.2],
                [0.42, -1.2],
                [0.42, -0.42],
                [1.2, -0.42],
                [1.2, 0.42],
                [0.42, 0.42],
                [0.42, 1.2],
                [-0.42, 1.2],
                [-0.42, 0.42],
                [-1.2, 0.42],
                [-1.2, -0.42],
                [-0.42, -0.42],
            ],
            Self::Cross => &[
                [0.0, -0.59],
                [0.56, -1.15],
                [1.15, -0.56],
                [0.59, 0.0],
                [1.15, 0.56],
                [0.56, 1.15],
                [0.0, 0.59],
                [-0.56, 1.15],
                [-1.15, 0.56],
                [-0.59, 0.0],
                [-1.15, -0.56],
                [-0.56, -1.15],
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_written_as_svg_reads_them() {
        assert_eq!(Colour([0x00, 0x72, 0xb2]).to_string(), "#0072b2");
        assert_eq!(Colour([0xff, 0xff, 0xff]).to_string(), "#fff");
        assert_eq!(Colour([0xe6, 0xe6, 0xe6]).to_string(), "#e6e6e6");
    }

    #[test]
    fn no_two_styles_are_the_same_and_the_first_four_differ_without_colour() {
        for left in 0..COUNT {
            for right in 0..left {
                let points = |index| (series(index).colour, series(index).marker);
                assert_ne!(points(left), points(right), "{left} and {right}");
                if left < 4 {
                    assert_ne!(series(left).dashes, series(right).dashes);
                    assert_ne!(series(left).marker, series(right).marker);
                }
            }
        }
    }
}

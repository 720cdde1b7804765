//! Outlines.

use std::fmt::Write;

use crate::style::Marker;

/// A number as it is written: rounded to two decimals, without needless zeros.
pub(crate) fn num(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// A piece of an outline, from where the one before ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Segment {
    Move([f64; 2]),
    Line([f64; 2]),
    /// A line across, to a place on the horizontal axis.
    Across(f64),
    /// A line up or down, to a place on the vertical axis.
    Along(f64),
    /// A cubic curve: two handles and its end.
    Curve([[f64; 2]; 3]),
    Close,
}

/// An outline that grows piece by piece.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path(Vec<Segment>);

impl Path {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The outline as SVG path data.
    pub(crate) fn data(&self) -> String {
        let mut data = String::new();
        for segment in &self.0 {
            let (command, numbers) = match segment {
                Segment::Move(to) => ('M', &to[..]),
                Segment::Line(to) => ('L', &to[..]),
                Segment::Across(x) => ('H', std::slice::from_ref(x)),
                Segment::Along(y) => ('V', std::slice::from_ref(y)),
                Segment::Curve(points) => ('C', points.as_flattened()),
                Segment::Close => ('Z', &[][..]),
            };
            data.push(command);
            for (index, number) in numbers.iter().enumerate() {
                let gap = if index > 0 { " " } else { "" };
                // Writing to a string cannot fail.
                let _ = write!(data, "{gap}{}", num(*number));
            }
        }
        data
    }

    pub(crate) fn move_to(&mut self, at: [f64; 2]) {
        self.0.push(Segment::Move(at));
    }

    pub(crate) fn across_to(&mut self, x: f64) {
        self.0.push(Segment::Across(x));
    }

    pub(crate) fn along_to(&mut self, y: f64) {
        self.0.push(Segment::Along(y));
    }

    pub(crate) fn close(&mut self) {
        self.0.push(Segment::Close);
    }

    /// Lines through points.
    pub(crate) fn through(points: impl Iterator<Item = [f64; 2]>) -> Self {
        let corners = points.enumerate().map(|(index, point)| match index {
            0 => Segment::Move(point),
            _ => Segment::Line(point),
        });
        Self(corners.collect())
    }

    /// A rectangle from its left, top, width and height.
    pub(crate) fn rectangle([left, top, width, height]: [f64; 4]) -> Self {
        let mut path = Self::default();
        path.move_to([left, top]);
        path.across_to(left + width);
        path.along_to(top + height);
        path.across_to(left);
        path.close();
        path
    }

    /// A marker around a place. A circle is four cubic curves: SVG's own circles and arcs would be computed with
    /// functions that differ between platforms when the figure becomes pixels, and PDF has none.
    pub(crate) fn marker(&mut self, marker: Marker, [x, y]: [f64; 2], radius: f64) {
        /// The length of a handle with which a cubic curve follows a quarter of a circle.
        const HANDLE: f64 = 0.552_284_75;
        let at = |[dx, dy]: [f64; 2]| [x + dx * radius, y + dy * radius];
        let corners = marker.corners();
        self.0
            .extend(Self::through(corners.iter().map(|corner| at(*corner))).0);
        if corners.is_empty() {
            let mut from = [1.0, 0.0];
            self.move_to(at(from));
            for to in [[0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [1.0, 0.0]] {
                let leave = [from[0] + HANDLE * to[0], from[1] + HANDLE * to[1]];
                let arrive = [to[0] + HANDLE * from[0], to[1] + HANDLE * from[1]];
                self.0.push(Segment::Curve([at(leave), at(arrive), at(to)]));
                from = to;
            }
        }
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_two_decimals_and_no_needless_ones() {
        let cases = [
            (1.0, "1"),
            (0.125, "0.12"),
            (-0.001, "0"),
            (10.0, "10"),
            (1.5, "1.5"),
            (-2.25, "-2.25"),
        ];
        for (value, expected) in cases {
            assert_eq!(num(value), expected);
        }
    }

    #[test]
    fn paths_are_written_as_svg_reads_them() {
        assert_eq!(Path::rectangle([1.0, 2.0, 3.0, 4.5]).data(), "M1 2H4V6.5H1Z");
        assert_eq!(
            Path::through([[0.0, 1.0], [2.0, -3.0]].into_iter()).data(),
            "M0 1L2 -3"
        );
        let mut circle = Path::default();
        circle.marker(Marker::Circle, [0.0, 0.0], 1.0);
        assert_eq!(
            circle.data(),
            "M1 0C1 0.55 0.55 1 0 1C-0.55 1 -1 0.55 -1 0C-1 -0.55 -0.55 -1 0 -1C0.55 -1 1 -0.55 1 0Z"
        );
    }
}

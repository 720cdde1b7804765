//! Outlines as SVG path data.

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

/// Path data that grows command by command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn data(&self) -> &str {
        &self.0
    }

    pub(crate) fn move_to(&mut self, at: [f64; 2]) {
        self.push('M', &at);
    }

    /// A line across, to a place on the horizontal axis.
    pub(crate) fn across_to(&mut self, x: f64) {
        self.push('H', &[x]);
    }

    /// A line up or down, to a place on the vertical axis.
    pub(crate) fn along_to(&mut self, y: f64) {
        self.push('V', &[y]);
    }

    pub(crate) fn close(&mut self) {
        self.0.push('Z');
    }

    /// Lines through points.
    pub(crate) fn through(points: impl Iterator<Item = [f64; 2]>) -> Self {
        let mut path = Self::default();
        for (index, point) in points.enumerate() {
            path.push(if index == 0 { 'M' } else { 'L' }, &point);
        }
        path
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
    /// functions that differ between platforms when the figure becomes pixels.
    pub(crate) fn marker(&mut self, marker: Marker, [x, y]: [f64; 2], radius: f64) {
        /// The length of a handle with which a cubic curve follows a quarter of a circle.
        const HANDLE: f64 = 0.552_284_75;
        let at = |[dx, dy]: [f64; 2]| [x + dx * radius, y + dy * radius];
        let corners = marker.corners();
        for (index, corner) in corners.iter().enumerate() {
            self.push(if index == 0 { 'M' } else { 'L' }, &at(*corner));
        }
        if corners.is_empty() {
            let mut from = [1.0, 0.0];
            self.move_to(at(from));
            for to in [[0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [1.0, 0.0]] {
                let leave = [from[0] + HANDLE * to[0], from[1] + HANDLE * to[1]];
                let arrive = [to[0] + HANDLE * from[0], to[1] + HANDLE * from[1]];
                self.push('C', [at(leave), at(arrive), at(to)].as_flattened());
                from = to;
            }
        }
        self.close();
    }

    fn push(&mut self, command: char, numbers: &[f64]) {
        self.0.push(command);
        for (index, number) in numbers.iter().enumerate() {
            let gap = if index > 0 { " " } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(self.0, "{gap}{}", num(*number));
        }
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

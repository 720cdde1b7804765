//! Points of axes, numbered.

use super::axes::{AXES, Axes, AxisSet};

/// The position of a point's value on each axis; zero on axes that do not matter.
pub(super) type Point = [usize; AXES];

/// Numbers the points of some axes from 0, the last axis fastest.
pub(super) struct Layout {
    axes: Vec<(usize, usize)>,
    strides: Point,
    /// How many points there are.
    pub(super) len: usize,
}

impl Layout {
    /// The number of points must fit; [`count`] tells it beforehand.
    pub(super) fn new(set: AxisSet, axes: &Axes<'_>) -> Self {
        let axes: Vec<(usize, usize)> = set.iter().map(|axis| (axis, axes.values(axis).len())).collect();
        let mut strides = [0; AXES];
        let mut len = 1;
        for (axis, size) in axes.iter().rev() {
            strides[*axis] = len;
            len *= size;
        }
        Self { axes, strides, len }
    }

    /// How far apart the numbers of two points are that differ by one step on that axis.
    pub(super) fn stride(&self, axis: usize) -> usize {
        self.strides[axis]
    }

    /// The number of a point.
    pub(super) fn number(&self, point: &Point) -> usize {
        self.axes
            .iter()
            .map(|(axis, _)| point[*axis] * self.strides[*axis])
            .sum()
    }

    /// Every point, in order.
    pub(super) fn points(&self) -> impl Iterator<Item = Point> {
        let mut point = [0; AXES];
        (0..self.len).map(move |number| {
            if number > 0 {
                for (axis, size) in self.axes.iter().rev() {
                    point[*axis] += 1;
                    if point[*axis] < *size {
                        break;
                    }
                    point[*axis] = 0;
                }
            }
            point
        })
    }
}

/// The number of points of some axes.
pub(super) fn count(set: AxisSet, axes: &Axes<'_>) -> u64 {
    set.iter().fold(1_u64, |points, axis| {
        points.saturating_mul(axes.values(axis).len() as u64)
    })
}

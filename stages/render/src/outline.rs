//! Outlines on the picture, in pixels from its top left corner, y downwards.

use std::f64::consts::{FRAC_PI_2, TAU};

/// A place on the picture.
pub(crate) type Point = [f64; 2];

/// A piece of an outline, from where the piece before it ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Segment {
    /// Begins a closed part.
    Move(Point),
    /// A straight line.
    Line(Point),
    /// A piece of a circle.
    Arc(Arc),
    /// A straight line to where the part began.
    Close,
}

/// A piece of a circle: from an angle on, so far; angles grow from x to y, rad.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Arc {
    pub(crate) center: Point,
    pub(crate) radius: f64,
    pub(crate) from: f64,
    pub(crate) sweep: f64,
}

/// What is filled: everything that its parts wind around.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outline(pub(crate) Vec<Segment>);

impl Arc {
    pub(crate) fn at(&self, angle: f64) -> Point {
        [
            self.center[0] + self.radius * libm::cos(angle),
            self.center[1] + self.radius * libm::sin(angle),
        ]
    }

    pub(crate) fn end(&self) -> Point {
        self.at(self.from + self.sweep)
    }

    /// The same as cubic curves, a quarter of a circle at most each: two handles and the end.
    pub(crate) fn curves(&self) -> impl Iterator<Item = [Point; 3]> + use<> {
        let arc = *self;
        let count = (arc.sweep.abs() / FRAC_PI_2).ceil().max(1.0);
        let step = arc.sweep / count;
        // The length of handles with which the middle of the curve lies on the circle.
        let handle = 4.0 / 3.0 * libm::tan(step / 4.0) * arc.radius;
        (0..count as usize).map(move |index| {
            let from = arc.from + index as f64 * step;
            let to = from + step;
            let along = |point: Point, angle: f64, length: f64| {
                [
                    point[0] - length * libm::sin(angle),
                    point[1] + length * libm::cos(angle),
                ]
            };
            [
                along(arc.at(from), from, handle),
                along(arc.at(to), to, -handle),
                arc.at(to),
            ]
        })
    }
}

impl Outline {
    /// Straight lines through points, closed.
    pub(crate) fn polygon(points: impl IntoIterator<Item = Point>) -> Self {
        let mut outline = Self::default();
        for point in points {
            outline.0.push(if outline.0.is_empty() {
                Segment::Move(point)
            } else {
                Segment::Line(point)
            });
        }
        outline.0.push(Segment::Close);
        outline
    }

    pub(crate) fn rectangle([left, top]: Point, [width, height]: Point) -> Self {
        let (right, bottom) = (left + width, top + height);
        Self::polygon([[left, top], [right, top], [right, bottom], [left, bottom]])
    }

    pub(crate) fn circle(center: Point, radius: f64) -> Self {
        let arc = Arc {
            center,
            radius,
            from: 0.0,
            sweep: TAU,
        };
        Self(vec![
            Segment::Move(arc.at(0.0)),
            Segment::Arc(arc),
            Segment::Close,
        ])
    }

    /// The hull of two circles: what a capsule looks like.
    ///
    /// Where φ is the direction from the first centre to the second and d their distance, the common tangents touch both
    /// circles at φ ± arccos((r₁ − r₂) / d).
    pub(crate) fn hull((first, r1): (Point, f64), (second, r2): (Point, f64)) -> Self {
        let [dx, dy] = [second[0] - first[0], second[1] - first[1]];
        let distance = libm::hypot(dx, dy);
        if distance <= (r1 - r2).abs() {
            // One circle holds the other.
            return if r1 >= r2 {
                Self::circle(first, r1)
            } else {
                Self::circle(second, r2)
            };
        }
        let direction = libm::atan2(dy, dx);
        let touch = libm::acos(((r1 - r2) / distance).clamp(-1.0, 1.0));
        let back = Arc {
            center: first,
            radius: r1,
            from: direction + touch,
            sweep: TAU - 2.0 * touch,
        };
        let front = Arc {
            center: second,
            radius: r2,
            from: direction - touch,
            sweep: 2.0 * touch,
        };
        Self(vec![
            Segment::Move(back.at(back.from)),
            Segment::Arc(back),
            Segment::Line(front.at(front.from)),
            Segment::Arc(front),
            Segment::Close,
        ])
    }

    /// Both; what either winds around is inside.
    pub(crate) fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use proptest::prelude::*;

    use super::*;

    fn distance(left: Point, right: Point) -> f64 {
        libm::hypot(left[0] - right[0], left[1] - right[1])
    }

    /// How far a point is from the segment between two others.
    fn from_segment(point: Point, first: Point, second: Point) -> f64 {
        let along = [second[0] - first[0], second[1] - first[1]];
        let square = along[0] * along[0] + along[1] * along[1];
        let to = [point[0] - first[0], point[1] - first[1]];
        let share = ((to[0] * along[0] + to[1] * along[1]) / square).clamp(0.0, 1.0);
        distance(point, [first[0] + share * along[0], first[1] + share * along[1]])
    }

    /// Points of an outline, the curved parts in small steps.
    fn points(outline: &Outline) -> Vec<Point> {
        let mut points = Vec::new();
        for segment in &outline.0 {
            match *segment {
                Segment::Move(point) | Segment::Line(point) => points.push(point),
                Segment::Arc(arc) => {
                    points.extend((0..=64).map(|step| arc.at(arc.from + arc.sweep * f64::from(step) / 64.0)));
                }
                Segment::Close => {}
            }
        }
        points
    }

    /// By the shoelace formula.
    fn area(points: &[Point]) -> f64 {
        let next = points.iter().cycle().skip(1);
        points
            .iter()
            .zip(next)
            .map(|(a, b)| a[0] * b[1] - a[1] * b[0])
            .sum::<f64>()
            / 2.0
    }

    #[test]
    fn equal_circles_make_a_stadium() {
        let outline = Outline::hull(([10.0, 20.0], 3.0), ([40.0, 60.0], 3.0));
        let points = points(&outline);
        for point in &points {
            let off = from_segment(*point, [10.0, 20.0], [40.0, 60.0]);
            assert!((off - 3.0).abs() < 1e-9, "{point:?} is {off} away");
        }
        // 2 r d + π r², but for the chords.
        assert!((area(&points) - (2.0 * 3.0 * 50.0 + PI * 9.0)).abs() < 0.05);
    }

    #[test]
    fn a_circle_within_the_other_does_not_show() {
        let large = Outline::circle([0.0, 0.0], 5.0);
        assert_eq!(Outline::hull(([0.0, 0.0], 5.0), ([1.0, 1.0], 2.0)), large);
        assert_eq!(Outline::hull(([1.0, 1.0], 2.0), ([0.0, 0.0], 5.0)), large);
        assert_eq!(Outline::hull(([0.0, 0.0], 5.0), ([0.0, 0.0], 5.0)), large);
    }

    #[test]
    fn curves_stay_on_their_circle() {
        let arc = Arc {
            center: [7.0, -2.0],
            radius: 100.0,
            from: 0.3,
            sweep: 5.0,
        };
        let mut from = arc.at(0.3);
        for [first, second, to] in arc.curves() {
            for step in 0..=32 {
                let t = f64::from(step) / 32.0;
                let weights = [
                    (1.0 - t) * (1.0 - t) * (1.0 - t),
                    3.0 * t * (1.0 - t) * (1.0 - t),
                    3.0 * t * t * (1.0 - t),
                    t * t * t,
                ];
                let point: Point = std::array::from_fn(|axis| {
                    [from, first, second, to]
                        .iter()
                        .zip(weights)
                        .map(|(point, weight)| weight * point[axis])
                        .sum()
                });
                // The error of the approximation by quarters is below 0.03 %.
                assert!((distance(point, arc.center) - 100.0).abs() < 0.03);
            }
            from = to;
        }
        assert!(distance(from, arc.end()) < 1e-9);
    }

    proptest! {
        /// Every point of a hull lies on one of the circles or on a tangent: no circle on the segment between reaches out of it.
        #[test]
        fn a_hull_holds_every_circle_between(
            x in -50.0..50.0, y in -50.0..50.0, r1 in 0.5..20.0, r2 in 0.5..20.0, share in 0.0..1.0, angle in 0.0..TAU,
        ) {
            let outline = Outline::hull(([0.0, 0.0], r1), ([x, y], r2));
            let corners = points(&outline);
            // In a convex polygon that winds one way a point is inside where it is left of every edge.
            let radius = r1 + share * (r2 - r1);
            let point = [share * x + radius * libm::cos(angle), share * y + radius * libm::sin(angle)];
            let next = corners.iter().cycle().skip(1);
            for (a, b) in corners.iter().zip(next) {
                let side = (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0]);
                // Chords cut a little off the arcs.
                prop_assert!(side >= -0.05 * distance(*a, *b).max(1.0), "{side}");
            }
        }
    }
}

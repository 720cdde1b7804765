//! Where a picture is looked at from.

use crate::outline::Point;
use crate::vector::{Vector, cross, dot, minus, unit};

/// Looks along y at the plane of x and z, without perspective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SideCamera {
    /// The x, m, that lies at `origin`, as does the ground.
    pub(crate) x: f64,
    /// px
    pub(crate) origin: Point,
    /// px/m
    pub(crate) scale: f64,
}

impl SideCamera {
    pub(crate) fn project(&self, point: Vector) -> Point {
        [
            self.origin[0] + self.scale * (point[0] - self.x),
            self.origin[1] - self.scale * point[2],
        ]
    }
}

/// Looks at a point as an eye does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EyeCamera {
    eye: Vector,
    /// Unit vectors to the right, upwards and into the picture.
    right: Vector,
    up: Vector,
    into: Vector,
    /// Where the point that is looked at lies, px.
    middle: Point,
    /// px that 1 m takes at a distance of 1 m.
    focal: f64,
}

/// A point as the camera sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) at: Point,
    /// Distance along the line of sight, m.
    pub(crate) depth: f64,
    /// px/m at that distance.
    pub(crate) scale: f64,
}

impl EyeCamera {
    /// What is nearer than this is not drawn, m.
    pub(crate) const NEAR: f64 = 0.2;

    /// An eye at a place that looks at another, which is not straight above or below it.
    pub(crate) fn new(eye: Vector, target: Vector, middle: Point, focal: f64) -> Self {
        let into = unit(minus(target, eye));
        let right = unit(cross(into, [0.0, 0.0, 1.0]));
        Self {
            eye,
            right,
            up: cross(right, into),
            into,
            middle,
            focal,
        }
    }

    /// How far a point is along the line of sight, m.
    pub(crate) fn depth(&self, point: Vector) -> f64 {
        dot(minus(point, self.eye), self.into)
    }

    /// `None` for what is behind the eye or too near.
    pub(crate) fn see(&self, point: Vector) -> Option<Seen> {
        let from_eye = minus(point, self.eye);
        let depth = dot(from_eye, self.into);
        if depth < Self::NEAR {
            return None;
        }
        let scale = self.focal / depth;
        Some(Seen {
            at: [
                self.middle[0] + scale * dot(from_eye, self.right),
                self.middle[1] - scale * dot(from_eye, self.up),
            ],
            depth,
            scale,
        })
    }

    /// The corners of a flat polygon as far as they are in front of the eye, by clipping each edge at the nearest
    /// distance that is drawn (Sutherland and Hodgman, 1974).
    pub(crate) fn polygon(&self, corners: &[Vector]) -> Vec<Point> {
        let mut seen = Vec::with_capacity(corners.len() + 1);
        for (index, corner) in corners.iter().enumerate() {
            let before = corners[(index + corners.len() - 1) % corners.len()];
            let (from, to) = (self.depth(before) - Self::NEAR, self.depth(*corner) - Self::NEAR);
            if (from < 0.0) != (to < 0.0) {
                let crossing = crate::vector::between(before, *corner, from / (from - to));
                // The crossing lies at the limit, and a rounding before it.
                let depth = self.depth(crossing).max(Self::NEAR);
                let from_eye = minus(crossing, self.eye);
                let scale = self.focal / depth;
                seen.push([
                    self.middle[0] + scale * dot(from_eye, self.right),
                    self.middle[1] - scale * dot(from_eye, self.up),
                ]);
            }
            if to >= 0.0 {
                seen.extend(self.see(*corner).map(|seen| seen.at));
            }
        }
        seen
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "small numbers of few binary digits are exact")]
mod tests {
    use super::*;

    fn near(found: Point, expected: Point) -> bool {
        found
            .iter()
            .zip(expected)
            .all(|(found, expected)| (found - expected).abs() < 1e-9)
    }

    #[test]
    fn the_side_camera_scales_and_follows() {
        let camera = SideCamera {
            x: 3.0,
            origin: [300.0, 280.0],
            scale: 100.0,
        };
        assert_eq!(camera.project([3.0, 9.0, 0.0]), [300.0, 280.0]);
        assert_eq!(camera.project([4.0, 0.0, 1.25]), [400.0, 155.0]);
    }

    #[test]
    fn the_eye_sees_what_is_looked_at_in_the_middle_and_sizes_fall_with_distance() {
        // Along +y from 5 m away: x is to the right, z up.
        let camera = EyeCamera::new([0.0, -5.0, 1.0], [0.0, 0.0, 1.0], [320.0, 200.0], 500.0);
        let seen = camera.see([0.0, 0.0, 1.0]).unwrap();
        assert!(near(seen.at, [320.0, 200.0]));
        assert_eq!((seen.depth, seen.scale), (5.0, 100.0));
        assert!(near(camera.see([1.0, 0.0, 1.5]).unwrap().at, [420.0, 150.0]));
        assert!(near(camera.see([1.0, 5.0, 1.5]).unwrap().at, [370.0, 175.0]));
        assert_eq!(camera.see([0.0, -5.1, 1.0]), None);
        // The horizon of flat ground lies as high as the eye: in the middle here.
        assert!((camera.see([0.0, 1e9, 0.0]).unwrap().at[1] - 200.0).abs() < 1e-5);
    }

    #[test]
    fn a_slanted_view_keeps_angles_right() {
        // From the corner, 45° down: the target's axes x and y fall symmetrically to either side.
        let camera = EyeCamera::new([-3.0, -3.0, 18.0_f64.sqrt()], [0.0; 3], [0.0, 0.0], 600.0);
        let [x, y, z] =
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].map(|point| camera.see(point).unwrap());
        assert!(near(x.at, [-y.at[0], y.at[1]]) && x.at[0] > 0.0 && x.at[1] < 0.0);
        // At 6 m, sin 45° of a metre upwards comes nearer, cos 45° of it shows.
        let depth = 6.0 - 0.5_f64.sqrt();
        assert!(near(z.at, [0.0, -600.0 / depth * 0.5_f64.sqrt()]));
    }

    #[test]
    fn polygons_are_cut_where_the_eye_is() {
        let camera = EyeCamera::new([0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0], 100.0);
        let square = [
            [-1.0, -1.0, 0.0],
            [1.0, -1.0, 0.0],
            [1.0, 1.0, 0.0],
            [-1.0, 1.0, 0.0],
        ];
        let cut = camera.polygon(&square);
        // At the nearest distance, 0.2 m, a metre takes 500 px; at 1 m it takes 100.
        let expected = [[-500.0, 500.0], [500.0, 500.0], [100.0, 100.0], [-100.0, 100.0]];
        assert_eq!(cut.len(), 4);
        for corner in expected {
            assert!(
                cut.iter().any(|found| near(*found, corner)),
                "{corner:?} in {cut:?}"
            );
        }
        assert!(
            camera
                .polygon(&square.map(|[x, y, z]| [x, y - 5.0, z]))
                .is_empty()
        );
    }
}

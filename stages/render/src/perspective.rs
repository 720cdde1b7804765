//! Robots that move freely, in perspective, on a chequered ground.

use std::collections::BTreeMap;
use std::f64::consts::PI;

use provenir_drawing::font::Weight;
use provenir_sim::Capsule;

use crate::camera::EyeCamera;
use crate::film::{Film, Shown};
use crate::outline::{Outline, Point};
use crate::picture::{Anchor, Picture};
use crate::style::{Colour, EARTH, GROUND, PALE_INK, PAPER, SHADOW, Sizes, tone};
use crate::vector::{Vector, between, dot, length, minus, plus, times, unit};

/// From the robot to the eye: from behind, the right, and above, so that forward is to the right and into the picture.
const TO_EYE: Vector = [-0.42, -1.0, 0.62];
/// Distance of the eye, in reaches of the robot.
const DISTANCE: f64 = 3.4;
/// What the robot's reach takes of the picture's height.
const SHARE: f64 = 0.43;
/// The ground is seen this far around the robot, in reaches of it, and fades towards there.
const HORIZON: f64 = 4.6;
/// Steps in which it fades, and in which parts of the robot darken with distance: few, so that a picture has few colours.
const LEVELS: f64 = 4.0;
const SHADES: f64 = 3.0;
/// Height that the camera looks at, in reaches.
const TARGET_HEIGHT: f64 = 0.25;
/// Where the labels of the ground stand, in reaches to the right of the robot.
const RULER: f64 = 1.3;
/// How much darker than the nearest parts the farthest are.
const DARKEST: f64 = 0.4;
const SHADOW_OPACITY: u8 = 56;

/// A view in perspective.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Perspective {
    sizes: Sizes,
    middle: Point,
    focal: f64,
    /// How far the robot stretches from its torso, m.
    reach: f64,
    size: Point,
}

impl Perspective {
    pub(crate) fn new(film: &Film, size: Point, sizes: Sizes, top: f64) -> Self {
        let first = &film.episode.moments[0];
        let reaches = first.capsules.iter().flat_map(|capsule| {
            [capsule.from, capsule.to].map(|end| length(minus(end, first.torso)) + capsule.radius)
        });
        let reach = reaches.fold(0.1, f64::max);
        let [width, height] = size;
        // As tall as the room below the words, or as wide as a narrow picture.
        let extent = (height - top).min(0.75 * width);
        Self {
            sizes,
            middle: [width / 2.0, top + (height - top) / 2.0],
            focal: SHARE * extent * DISTANCE,
            reach,
            size,
        }
    }

    pub(crate) fn frame(&self, film: &Film, shown: &Shown, picture: &mut Picture) {
        let focus = [shown.focus[0], shown.focus[1], TARGET_HEIGHT * self.reach];
        let eye = plus(focus, times(DISTANCE * self.reach, unit(TO_EYE)));
        let camera = EyeCamera::new(eye, focus, self.middle, self.focal);
        self.ground(&camera, focus, picture);
        self.ruler(&camera, focus, picture);
        shadow(&camera, &shown.moment.capsules, picture);
        self.robot(film, shown, &camera, picture);
    }

    /// How much of the ground's colours is left at a distance from the focus, of 1.
    fn nearness(&self, [x, y]: Point, focus: Vector) -> f64 {
        let share = libm::hypot(x - focus[0], y - focus[1]) / (HORIZON * self.reach);
        (1.0 - share * share).max(0.0)
    }

    /// Every second square of a metre.
    fn ground(&self, camera: &EyeCamera, focus: Vector, picture: &mut Picture) {
        let around = |center: f64| {
            let far = HORIZON * self.reach;
            ((center - far).floor() as i64)..=((center + far).ceil() as i64)
        };
        // By colour, the palest first.
        let mut squares: BTreeMap<[u8; 4], Outline> = BTreeMap::new();
        for column in around(focus[0]) {
            for row in around(focus[1]) {
                if (column + row).rem_euclid(2) == 1 {
                    continue;
                }
                let (x, y) = (column as f64, row as f64);
                let near = self.nearness([x + 0.5, y + 0.5], focus);
                let colour = PAPER.towards(EARTH, libm::ceil(LEVELS * near) / LEVELS);
                if colour == PAPER {
                    continue;
                }
                let corners = [[x, y], [x + 1.0, y], [x + 1.0, y + 1.0], [x, y + 1.0]];
                let seen = camera.polygon(&corners.map(|[x, y]| [x, y, 0.0]));
                if seen.len() > 2 && self.is_in_picture(&seen) {
                    squares
                        .entry(colour.0)
                        .or_default()
                        .append(Outline::polygon(seen));
                }
            }
        }
        for (colour, outline) in squares.into_iter().rev() {
            picture.area(outline, Colour(colour));
        }
    }

    fn is_in_picture(&self, points: &[Point]) -> bool {
        let outside = |axis: usize| {
            points.iter().all(|point| point[axis] < 0.0)
                || points.iter().all(|point| point[axis] > self.size[axis])
        };
        !outside(0) && !outside(1)
    }

    /// A line along x beside the robot, with a tick and a label at every metre.
    fn ruler(&self, camera: &EyeCamera, focus: Vector, picture: &mut Picture) {
        let y = focus[1] - RULER * self.reach;
        let metres = (0.75 * HORIZON * self.reach).ceil() as i64;
        let middle = libm::round(focus[0]) as i64;
        let half = 0.007 * self.reach;
        let strip = |from: Point, to: Point| {
            let corners = [
                [from[0], from[1]],
                [to[0], from[1]],
                [to[0], to[1]],
                [from[0], to[1]],
            ];
            camera.polygon(&corners.map(|[x, y]| [x, y, 0.0]))
        };
        for number in middle - metres..=middle + metres {
            let x = number as f64;
            let near = self.nearness([x, y], focus);
            let pieces = [
                strip([x - half, y - half], [x + half, y + 0.1 * self.reach]),
                strip([x - 0.5, y - half], [x + 0.5, y + half]),
            ];
            let mut outline = Outline::default();
            for piece in pieces {
                if piece.len() > 2 {
                    outline.append(Outline::polygon(piece));
                }
            }
            picture.fill(outline, PAPER.towards(GROUND, near));
            let Some(seen) = camera.see([x, y, 0.0]) else {
                continue;
            };
            let Sizes { label, .. } = self.sizes;
            picture.write(
                format!("{}{} m", if number < 0 { "−" } else { "" }, number.abs()),
                [seen.at[0], seen.at[1] + 1.25 * label],
                Anchor::Middle,
                (label, Weight::Regular, PAPER.towards(PALE_INK, near)),
            );
        }
    }

    /// The parts from far to near. What of a limb lies in a ball is left out: it would show through.
    fn robot(&self, film: &Film, shown: &Shown, camera: &EyeCamera, picture: &mut Picture) {
        let capsules = &shown.moment.capsules;
        let balls: Vec<&Capsule> = capsules
            .iter()
            .filter(|capsule| length(minus(capsule.to, capsule.from)) < 1e-9)
            .collect();
        let center = camera.depth(shown.moment.torso);
        let mut parts: Vec<(f64, &Capsule, Capsule)> = capsules
            .iter()
            .filter_map(|capsule| {
                let visible = balls.iter().try_fold(*capsule, |rest, ball| {
                    if std::ptr::eq(*ball, capsule) {
                        Some(rest)
                    } else {
                        outside(rest, ball)
                    }
                })?;
                let depth = camera.depth(between(visible.from, visible.to, 0.5));
                Some((depth, capsule, visible))
            })
            .collect();
        parts.sort_by(|left, right| right.0.total_cmp(&left.0));
        for (depth, capsule, visible) in parts {
            let [Some(from), Some(to)] = [visible.from, visible.to].map(|end| camera.see(end)) else {
                continue;
            };
            let share = ((depth - center) / (1.6 * self.reach) + 0.5).clamp(0.0, 1.0);
            let dark = match film.limbs[capsule.body] {
                0 => 0.0,
                _ => DARKEST * libm::round(SHADES * share) / SHADES,
            };
            // A ball looks like a circle but for the rim of a wide view, by less than a pixel here.
            let ends = [from, to].map(|seen| (seen.at, capsule.radius * seen.scale));
            picture.capsule(ends, tone(film.limbs[capsule.body], dark), 0.8 * self.sizes.line);
        }
    }
}

/// What of a capsule's middle line lies outside a ball; `None` where nothing does.
fn outside(capsule: Capsule, ball: &Capsule) -> Option<Capsule> {
    // A little inside, so that the rounded end meets the ball.
    let radius = 0.9 * ball.radius;
    let inside = |point: Vector| length(minus(point, ball.from)) < radius;
    match (inside(capsule.from), inside(capsule.to)) {
        (false, false) => Some(capsule),
        (true, true) => None,
        (true, false) => Some(Capsule {
            from: leaving(capsule.from, capsule.to, ball.from, radius),
            ..capsule
        }),
        (false, true) => Some(Capsule {
            to: leaving(capsule.to, capsule.from, ball.from, radius),
            ..capsule
        }),
    }
}

/// Where a line from a point inside a ball leaves it: |from + t (to − from) − center| = radius, t > 0.
fn leaving(from: Vector, to: Vector, center: Vector, radius: f64) -> Vector {
    let (along, offset) = (minus(to, from), minus(from, center));
    let (a, b, c) = (
        dot(along, along),
        dot(along, offset),
        dot(offset, offset) - radius * radius,
    );
    between(from, to, (-b + (b * b - a * c).max(0.0).sqrt()) / a)
}

/// What light from straight above leaves dark.
fn shadow(camera: &EyeCamera, capsules: &[Capsule], picture: &mut Picture) {
    let mut outline = Outline::default();
    for capsule in capsules {
        let rim = stadium(capsule).map(|[x, y]| camera.see([x, y, 0.0]).map(|seen| seen.at));
        if let Some(points) = rim.collect::<Option<Vec<_>>>() {
            outline.append(Outline::polygon(points));
        }
    }
    picture.fill(outline, SHADOW.with_opacity(SHADOW_OPACITY));
}

/// The rim of a capsule seen from above, anticlockwise.
fn stadium(capsule: &Capsule) -> impl Iterator<Item = Point> + use<> {
    const PIECES: u32 = 10;
    let (from, to, radius) = (capsule.from, capsule.to, capsule.radius);
    let direction = libm::atan2(to[1] - from[1], to[0] - from[0]);
    [(from, PI / 2.0), (to, -PI / 2.0)]
        .into_iter()
        .flat_map(move |(center, start)| {
            (0..=PIECES).map(move |piece| {
                let angle = direction + start + PI * f64::from(piece) / f64::from(PIECES);
                [
                    center[0] + radius * libm::cos(angle),
                    center[1] + radius * libm::sin(angle),
                ]
            })
        })
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "small numbers of few binary digits are exact")]
mod tests {
    use super::*;

    fn capsule(from: Vector, to: Vector, radius: f64) -> Capsule {
        Capsule {
            body: 0,
            from,
            to,
            radius,
        }
    }

    #[test]
    fn limbs_begin_where_they_leave_the_ball() {
        let ball = capsule([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 0.5);
        let limb = capsule([1.0, 2.0, 3.0], [3.0, 2.0, 3.0], 0.1);
        let visible = outside(limb, &ball).unwrap();
        assert!((visible.from[0] - 1.45).abs() < 1e-12);
        assert_eq!(visible.to, limb.to);
        let turned = outside(capsule(limb.to, limb.from, 0.1), &ball).unwrap();
        assert!((turned.to[0] - 1.45).abs() < 1e-12);
        assert_eq!(
            outside(capsule([1.1, 2.0, 3.0], [1.2, 2.0, 3.0], 0.1), &ball),
            None
        );
        let apart = capsule([5.0, 0.0, 0.0], [6.0, 0.0, 0.0], 0.1);
        assert_eq!(outside(apart, &ball), Some(apart));
        // Not along a radius: the point found lies on the sphere and on the line.
        let oblique = outside(capsule([1.2, 2.1, 3.0], [2.0, 4.0, 3.0], 0.1), &ball).unwrap();
        assert!((length(minus(oblique.from, ball.from)) - 0.45).abs() < 1e-12);
        let slope = (oblique.from[1] - 2.1) / (oblique.from[0] - 1.2);
        assert!((slope - 1.9 / 0.8).abs() < 1e-9);
    }

    #[test]
    fn a_shadow_is_as_wide_and_long_as_what_throws_it() {
        let rim: Vec<Point> = stadium(&capsule([0.0, 0.0, 1.0], [2.0, 0.0, 0.2], 0.25)).collect();
        let extent = |axis: usize| {
            let values = rim.iter().map(|point| point[axis]);
            (
                values.clone().fold(f64::INFINITY, f64::min),
                values.fold(f64::NEG_INFINITY, f64::max),
            )
        };
        let near = |found: (f64, f64), low: f64, high: f64| {
            (found.0 - low).abs() < 1e-9 && (found.1 - high).abs() < 1e-9
        };
        assert!(near(extent(0), -0.25, 2.25) && near(extent(1), -0.25, 0.25));
        let next = rim.iter().cycle().skip(1);
        let area: f64 = rim
            .iter()
            .zip(next)
            .map(|(a, b)| a[0] * b[1] - a[1] * b[0])
            .sum::<f64>()
            / 2.0;
        assert!((area - (2.0 * 0.5 + PI * 0.0625)).abs() < 0.005, "{area}");
    }
}

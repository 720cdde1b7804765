//! Robots that move in a plane, from the side.

use provenir_drawing::font::Weight;

use crate::camera::SideCamera;
use crate::film::{Film, Shown};
use crate::outline::{Outline, Point};
use crate::picture::{Anchor, Picture};
use crate::style::{EARTH, GRID, GROUND, INK, PALE_INK, Sizes, tone};

/// At least so many metres of ground are seen, so that a step is seen to go forward.
const LEAST_WIDTH: f64 = 3.2;
/// Room above the highest place that the robot reaches, as a share of it.
const HEADROOM: f64 = 1.08;
/// Labels of the ground are no nearer to each other than this, in sizes of their text.
const LABEL_GAP: f64 = 4.5;
/// How far towards black limbs are: those in front, and those behind the torso.
const DARK: [f64; 2] = [0.0, 0.42];

/// A view from the side: the scale is chosen once, so that the robot stays within the picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    size: Point,
    sizes: Sizes,
    /// Where the ground is, px from the top.
    ground: f64,
    /// Where the words above end, px from the top.
    top: f64,
    /// px/m
    scale: f64,
}

impl Side {
    pub(crate) fn new(film: &Film, size: Point, sizes: Sizes, top: f64) -> Self {
        let ground = size[1] - sizes.label - 1.3 * sizes.margin;
        let heights = film.episode.moments.iter().flat_map(|moment| {
            moment
                .capsules
                .iter()
                .map(|capsule| capsule.from[2].max(capsule.to[2]) + capsule.radius)
        });
        let highest = heights.fold(0.0, f64::max);
        Self {
            size,
            sizes,
            ground,
            top,
            scale: ((ground - top) / (HEADROOM * highest)).min(size[0] / LEAST_WIDTH),
        }
    }

    pub(crate) fn frame(&self, film: &Film, shown: &Shown, picture: &mut Picture) {
        let camera = SideCamera {
            x: shown.focus[0],
            origin: [self.size[0] / 2.0, self.ground],
            scale: self.scale,
        };
        self.background(&camera, picture);
        self.robot(film, shown, &camera, picture);
    }

    /// Metres between labels of the ground: 1, 2 or 5 times a power of ten.
    fn spacing(&self) -> f64 {
        let least = LABEL_GAP * self.sizes.label / self.scale;
        let steps = [1.0, 2.0, 5.0];
        let mut decade = 1.0;
        loop {
            if let Some(step) = steps.iter().find(|step| **step * decade >= least) {
                return step * decade;
            }
            decade *= 10.0;
        }
    }

    fn background(&self, camera: &SideCamera, picture: &mut Picture) {
        let [width, height] = self.size;
        let Sizes {
            label, line, margin, ..
        } = self.sizes;
        let spacing = self.spacing();
        let half = width / 2.0 / self.scale;
        // One label beyond either side, so that none appears in the middle of its text.
        let first = ((camera.x - half) / spacing).floor() as i64;
        let last = ((camera.x + half) / spacing).ceil() as i64;
        let at = |x: f64| camera.project([x, 0.0, 0.0])[0];
        let mut grid = Outline::default();
        let mut ticks = Outline::default();
        let mut minor = Outline::default();
        for number in first..=last {
            let x = at(number as f64 * spacing);
            grid.append(Outline::rectangle(
                [x - line / 2.0, self.top],
                [line, self.ground - self.top],
            ));
            ticks.append(Outline::rectangle(
                [x - line / 2.0, self.ground],
                [line, 0.5 * margin],
            ));
            for tenth in 1..5 {
                let x = at((number as f64 + 0.2 * f64::from(tenth)) * spacing);
                minor.append(Outline::rectangle(
                    [x - line / 4.0, self.ground],
                    [line / 2.0, 0.28 * margin],
                ));
            }
        }
        picture.fill(grid, GRID);
        picture.fill(
            Outline::rectangle([0.0, self.ground], [width, height - self.ground]),
            EARTH,
        );
        picture.fill(minor, GROUND);
        picture.fill(ticks, GROUND);
        picture.fill(Outline::rectangle([0.0, self.ground], [width, line]), GROUND);
        for number in first..=last {
            let metres = number as f64 * spacing;
            let colour = if number == 0 { INK } else { PALE_INK };
            picture.write(
                format!("{}{} m", if metres < 0.0 { "−" } else { "" }, metres.abs()),
                [at(metres), self.ground + 0.6 * margin + label],
                Anchor::Middle,
                (label, Weight::Regular, colour),
            );
        }
    }

    /// Limbs behind the torso, the torso, and the first limb in front of it; of a limb, what is nearer to the torso lies
    /// above.
    fn robot(&self, film: &Film, shown: &Shown, camera: &SideCamera, picture: &mut Picture) {
        let limb_of = |body: usize| film.limbs[body];
        let last = film.limbs.iter().copied().max().unwrap_or(0);
        let order = (2..=last).rev().chain([0, 1]);
        for limb in order {
            let parts = shown
                .moment
                .capsules
                .iter()
                .filter(|capsule| limb_of(capsule.body) == limb);
            let parts: Vec<_> = parts.collect();
            for capsule in parts.into_iter().rev() {
                let radius = capsule.radius * self.scale;
                let ends = [capsule.from, capsule.to].map(|end| (camera.project(end), radius));
                picture.capsule(
                    ends,
                    tone(limb, DARK[usize::from(limb > 1)]),
                    0.8 * self.sizes.line,
                );
            }
        }
    }
}

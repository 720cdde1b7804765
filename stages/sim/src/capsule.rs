use provenir_bullet_sys::{Body, Pose, Shape};

use crate::task::Task;

/// The hull of two equal spheres, or one sphere where the ends coincide: what all robots are made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capsule {
    /// The body that it belongs to: 0 is the base, n + 1 Bullet's link n; an index of [`crate::Environment::poses`].
    pub body: usize,
    /// Centre of the one sphere, m.
    pub from: [f64; 3],
    /// Centre of the other.
    pub to: [f64; 3],
    /// Radius of both, m.
    pub radius: f64,
}

impl Capsule {
    /// The capsule in the world, where its body has this pose and its ends were given relative to the centre of mass.
    pub(crate) fn placed(self, pose: &Pose) -> Self {
        Self {
            from: pose.place(self.from),
            to: pose.place(self.to),
            ..self
        }
    }
}

impl Task {
    /// For each body (the base, then Bullet's links) the limb that it belongs to: those that hang from the torso are
    /// numbered from 1 in the order of their first links; 0 is the torso and what it hangs from.
    pub fn limbs(&self) -> Vec<usize> {
        let torso = match self.torso {
            Body::Base => 0,
            Body::Link(link) => link + 1,
        };
        let mut limbs = vec![0];
        let mut count = 0;
        for link in &self.robot.links {
            let parent = link.parent.map_or(0, |parent| parent + 1);
            limbs.push(if parent == torso {
                count += 1;
                count
            } else {
                limbs[parent]
            });
        }
        limbs
    }

    /// The robot's shapes, each relative to the centre of mass of its body, in the order of the bodies.
    pub fn capsules(&self) -> Vec<Capsule> {
        let base = (&self.robot.base.shapes, [0.0; 3]);
        let links = self.robot.links.iter().map(|link| (&link.shapes, link.center));
        std::iter::once(base)
            .chain(links)
            .enumerate()
            .flat_map(|(body, (shapes, center))| shapes.iter().map(move |shape| capsule(body, shape, center)))
            .collect()
    }
}

/// `center` leads from the joint, to which shapes are relative, to the centre of mass.
fn capsule(body: usize, shape: &Shape, center: [f64; 3]) -> Capsule {
    let from_center = |point: [f64; 3]| std::array::from_fn(|axis| point[axis] - center[axis]);
    let (from, to, radius) = match *shape {
        Shape::CapsuleBetween { from, to, radius } => (from, to, radius),
        Shape::CapsuleZ {
            center,
            angle_y,
            radius,
            half,
        } => {
            // The z axis, turned about y.
            let (sine, cosine) = (libm::sin(angle_y), libm::cos(angle_y));
            let end = |sign: f64| {
                [
                    center[0] + sign * half * sine,
                    center[1],
                    center[2] + sign * half * cosine,
                ]
            };
            (end(-1.0), end(1.0), radius)
        }
        // About the centre of mass, wherever the joint is.
        Shape::Sphere { radius } => (center, center, radius),
    };
    Capsule {
        body,
        from: from_center(from),
        to: from_center(to),
        radius,
    }
}

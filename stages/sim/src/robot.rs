//! The mechanical half of a task's file, and how it becomes links.

use provenir_bullet_sys::{Base, Body, Joint, Limits, Link, Robot, Shape};
use serde::Deserialize;

use crate::task::InvalidTask;

/// Bullet's default, which PyBullet leaves where MJCF names no geometry.
const DEFAULT_FRICTION: f64 = 0.5;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BaseSpec {
    name: String,
    position: [f64; 3],
    #[serde(default)]
    mass: f64,
    #[serde(default)]
    inertia: [f64; 3],
    #[serde(default = "default_friction")]
    friction: f64,
    #[serde(default)]
    shapes: Vec<ShapeSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BodySpec {
    name: String,
    parent: String,
    #[serde(default)]
    joints: Vec<JointSpec>,
    pivot: [f64; 3],
    center: [f64; 3],
    mass: f64,
    inertia: [f64; 3],
    #[serde(default = "default_friction")]
    friction: f64,
    #[serde(default)]
    shapes: Vec<ShapeSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JointSpec {
    name: String,
    #[serde(rename = "type")]
    motion: Motion,
    axis: [f64; 3],
    pivot: [f64; 3],
    limits: Option<[f64; 2]>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Motion {
    Revolute,
    Prismatic,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
enum ShapeSpec {
    CapsuleBetween {
        from: [f64; 3],
        to: [f64; 3],
        radius: f64,
    },
    CapsuleZ {
        center: [f64; 3],
        angle_y: f64,
        radius: f64,
        half: f64,
    },
    Sphere {
        radius: f64,
    },
}

fn default_friction() -> f64 {
    DEFAULT_FRICTION
}

/// A robot whose bodies and joints have names.
#[derive(Clone, Debug)]
pub(crate) struct NamedRobot {
    pub(crate) robot: Robot,
    /// The base first.
    bodies: Vec<(String, Body)>,
    joints: Vec<(String, usize)>,
}

impl NamedRobot {
    /// One massless link per joint, then the body, fixed to the last of them.
    ///
    /// Merging these would be the same machine and another sequence of roundings.
    pub(crate) fn assemble(base: BaseSpec, specs: Vec<BodySpec>) -> Result<Self, InvalidTask> {
        let mut bodies = vec![(base.name, Body::Base)];
        let mut joints: Vec<(String, usize)> = Vec::new();
        let mut links = Vec::new();
        for spec in specs {
            if bodies.iter().any(|(name, _)| *name == spec.name) {
                return Err(InvalidTask::Duplicate(spec.name));
            }
            let mut parent = match find(&bodies, &spec.parent)? {
                Body::Base => None,
                Body::Link(link) => Some(link),
            };
            for joint in spec.joints {
                if joints.iter().any(|(name, _)| *name == joint.name) {
                    return Err(InvalidTask::Duplicate(joint.name));
                }
                let number = links.len();
                links.push(joint.link(parent)?);
                joints.push((joint.name, number));
                parent = Some(number);
            }
            bodies.push((spec.name, Body::Link(links.len())));
            links.push(Link {
                parent,
                joint: Joint::Fixed,
                pivot: spec.pivot,
                center: spec.center,
                mass: spec.mass,
                inertia: spec.inertia,
                friction: spec.friction,
                shapes: spec.shapes.into_iter().map(Shape::from).collect(),
            });
        }
        let robot = Robot {
            base: Base {
                position: base.position,
                mass: base.mass,
                inertia: base.inertia,
                friction: base.friction,
                shapes: base.shapes.into_iter().map(Shape::from).collect(),
            },
            links,
        };
        robot.check()?;
        Ok(Self {
            robot,
            bodies,
            joints,
        })
    }

    pub(crate) fn body(&self, name: &str) -> Result<Body, InvalidTask> {
        find(&self.bodies, name)
    }

    /// The link that a joint moves.
    pub(crate) fn joint(&self, name: &str) -> Result<usize, InvalidTask> {
        find(&self.joints, name)
    }
}

impl JointSpec {
    fn link(&self, parent: Option<usize>) -> Result<Link, InvalidTask> {
        let limits = self.limits.map(|[lower, upper]| Limits { lower, upper });
        let joint = match (self.motion, limits) {
            (Motion::Revolute, limits) => Joint::Revolute {
                axis: self.axis,
                limits,
            },
            (Motion::Prismatic, None) => Joint::Prismatic { axis: self.axis },
            (Motion::Prismatic, Some(_)) => return Err(InvalidTask::PrismaticLimits(self.name.clone())),
        };
        Ok(Link {
            parent,
            joint,
            pivot: self.pivot,
            center: [0.0; 3],
            mass: 0.0,
            inertia: [0.0; 3],
            friction: DEFAULT_FRICTION,
            shapes: Vec::new(),
        })
    }
}

impl From<ShapeSpec> for Shape {
    fn from(spec: ShapeSpec) -> Self {
        match spec {
            ShapeSpec::CapsuleBetween { from, to, radius } => Self::CapsuleBetween { from, to, radius },
            ShapeSpec::CapsuleZ {
                center,
                angle_y,
                radius,
                half,
            } => Self::CapsuleZ {
                center,
                angle_y,
                radius,
                half,
            },
            ShapeSpec::Sphere { radius } => Self::Sphere { radius },
        }
    }
}

fn find<T: Copy>(named: &[(String, T)], name: &str) -> Result<T, InvalidTask> {
    let found = named.iter().find(|(known, _)| known == name);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| InvalidTask::UnknownPart(name.to_owned()))
}

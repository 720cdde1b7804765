use thiserror::Error;

/// A robot as Bullet's multi-body takes it: a base, and links in an order where parents come first.
///
/// All frames are parallel to the world's where every joint is at zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Robot {
    /// The root; of mass zero where it is fixed to the world.
    pub base: Base,
    /// Each with the joint that ties it to its parent.
    pub links: Vec<Link>,
}

/// The root of a robot.
#[derive(Clone, Debug, PartialEq)]
pub struct Base {
    /// Position in the world at reset, m.
    pub position: [f64; 3],
    /// kg; zero fixes it.
    pub mass: f64,
    /// Diagonal of the inertia, kg m².
    pub inertia: [f64; 3],
    /// Coefficient of lateral friction; that of a contact is the product of both sides'.
    pub friction: f64,
    /// Collision shapes in the base frame.
    pub shapes: Vec<Shape>,
}

/// A link and its joint.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Index of the parent link; `None` is the base.
    pub parent: Option<usize>,
    /// How it moves against its parent.
    pub joint: Joint,
    /// From the parent's centre of mass to the joint, m.
    pub pivot: [f64; 3],
    /// From the joint to the centre of mass, m.
    pub center: [f64; 3],
    /// kg.
    pub mass: f64,
    /// Diagonal of the inertia, kg m².
    pub inertia: [f64; 3],
    /// Coefficient of lateral friction.
    pub friction: f64,
    /// Collision shapes, relative to the joint.
    pub shapes: Vec<Shape>,
}

/// The joint between a link and its parent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Joint {
    /// No motion.
    Fixed,
    /// Rotation about an axis; its vector is used as it is, not normalised.
    Revolute {
        /// In the link's frame.
        axis: [f64; 3],
        /// Range that a constraint holds it to.
        limits: Option<Limits>,
    },
    /// Translation along an axis.
    Prismatic {
        /// In the link's frame.
        axis: [f64; 3],
    },
}

/// Range of a revolute joint, rad.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// A collision shape; lengths in m.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// The hull of two spheres (what PyBullet makes of a `MuJoCo` capsule given by its ends).
    CapsuleBetween {
        /// Centre of the first sphere.
        from: [f64; 3],
        /// Centre of the second sphere.
        to: [f64; 3],
        /// Radius of both.
        radius: f64,
    },
    /// A capsule along z, turned about y.
    CapsuleZ {
        /// Centre.
        center: [f64; 3],
        /// Rotation about +y, rad.
        angle_y: f64,
        /// Radius.
        radius: f64,
        /// Half the distance between the centres of its ends.
        half: f64,
    },
    /// A sphere about the origin of the frame; only as the only shape of its body.
    Sphere {
        /// Radius.
        radius: f64,
    },
}

/// Why a robot cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidRobot {
    /// More links than the shim's counters hold, or none.
    #[error("it has {0} links; between 1 and {max} are supported", max = Robot::MAX_LINKS)]
    LinkCount(usize),
    /// A parent that does not come before its child.
    #[error("link {link} has parent {parent}, which does not come before it")]
    Parent {
        /// The child.
        link: usize,
        /// The parent it names.
        parent: usize,
    },
    /// A number that is not finite, or negative where it may not be.
    #[error("{part}, {what}: not finite, or out of range")]
    Number {
        /// Link number, or the base.
        part: String,
        /// The quantity.
        what: &'static str,
    },
    /// A sphere beside other shapes.
    #[error("{0}: a sphere must be the only shape of its body")]
    Sphere(String),
}

impl Robot {
    /// The most links that a robot may have.
    pub const MAX_LINKS: usize = 1000;

    /// Checks all that the C++ side takes on trust.
    pub fn check(&self) -> Result<(), InvalidRobot> {
        if self.links.is_empty() || self.links.len() > Self::MAX_LINKS {
            return Err(InvalidRobot::LinkCount(self.links.len()));
        }
        let Base {
            position,
            mass,
            inertia,
            friction,
            shapes,
        } = &self.base;
        let base = || "the base".to_owned();
        require(finite(position), base, "position")?;
        check_matter(*mass, inertia, *friction, shapes, base)?;
        for (index, link) in self.links.iter().enumerate() {
            let part = || format!("link {index}");
            if let Some(parent) = link.parent.filter(|parent| *parent >= index) {
                return Err(InvalidRobot::Parent { link: index, parent });
            }
            require(finite(&link.pivot), part, "pivot")?;
            require(finite(&link.center), part, "center")?;
            match link.joint {
                Joint::Fixed => {}
                Joint::Prismatic { axis } => require(is_direction(&axis), part, "axis")?,
                Joint::Revolute { axis, limits } => {
                    require(is_direction(&axis), part, "axis")?;
                    if let Some(Limits { lower, upper }) = limits {
                        require(finite(&[lower, upper]) && lower < upper, part, "limits")?;
                    }
                }
            }
            check_matter(link.mass, &link.inertia, link.friction, &link.shapes, part)?;
        }
        Ok(())
    }
}

fn check_matter(
    mass: f64,
    inertia: &[f64; 3],
    friction: f64,
    shapes: &[Shape],
    part: impl Fn() -> String + Copy,
) -> Result<(), InvalidRobot> {
    require(not_negative(&[mass]), part, "mass")?;
    require(not_negative(inertia), part, "inertia")?;
    require(not_negative(&[friction]), part, "friction")?;
    require(shapes.len() <= Robot::MAX_LINKS, part, "number of shapes")?;
    for shape in shapes {
        let fits = match shape {
            Shape::CapsuleBetween { from, to, radius } => {
                finite(from) && finite(to) && finite(&[*radius]) && *radius > 0.0
            }
            Shape::CapsuleZ {
                center,
                angle_y,
                radius,
                half,
            } => finite(center) && finite(&[*angle_y, *radius, *half]) && *radius > 0.0 && *half >= 0.0,
            Shape::Sphere { radius } => radius.is_finite() && *radius > 0.0,
        };
        require(fits, part, "shape")?;
        if shapes.len() > 1 && matches!(shape, Shape::Sphere { .. }) {
            return Err(InvalidRobot::Sphere(part()));
        }
    }
    Ok(())
}

fn require(holds: bool, part: impl Fn() -> String, what: &'static str) -> Result<(), InvalidRobot> {
    if holds {
        return Ok(());
    }
    Err(InvalidRobot::Number { part: part(), what })
}

fn finite(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite())
}

fn not_negative(values: &[f64]) -> bool {
    finite(values) && values.iter().all(|value| *value >= 0.0)
}

fn is_direction(axis: &[f64; 3]) -> bool {
    finite(axis) && axis.iter().any(|component| *component != 0.0)
}

//! The C surface of `shim.cpp`: every declaration mirrors one there.

use crate::robot::{Joint, Limits, Link, Robot, Shape};

/// Opaque: owned by the C++ side.
#[repr(C)]
pub(crate) struct RawWorld {
    _opaque: [u8; 0],
}

#[repr(C)]
pub(crate) struct FlatShape {
    kind: i32,
    from: [f64; 3],
    to: [f64; 3],
    radius: f64,
    half: f64,
    angle_y: f64,
}

#[repr(C)]
pub(crate) struct FlatLink {
    joint: i32,
    parent: i32,
    has_limits: i32,
    shape_count: i32,
    axis: [f64; 3],
    pivot: [f64; 3],
    center: [f64; 3],
    inertia: [f64; 3],
    mass: f64,
    friction: f64,
    lower: f64,
    upper: f64,
}

#[expect(unsafe_code, reason = "the C surface of the shim")]
unsafe extern "C" {
    pub(crate) safe fn provenir_bullet_version() -> i32;
    pub(crate) fn provenir_bullet_create(
        links: *const FlatLink,
        count: i32,
        shapes: *const FlatShape,
    ) -> *mut RawWorld;
    pub(crate) fn provenir_bullet_destroy(world: *mut RawWorld);
    pub(crate) fn provenir_bullet_reset(world: *mut RawWorld, q: *const f64);
    pub(crate) fn provenir_bullet_step(world: *mut RawWorld, torques: *const f64);
    pub(crate) fn provenir_bullet_joints(world: *const RawWorld, q: *mut f64, qdot: *mut f64);
    pub(crate) fn provenir_bullet_positions(world: *const RawWorld, out: *mut [f64; 3]);
    pub(crate) fn provenir_bullet_pose(
        world: *const RawWorld,
        link: i32,
        position: *mut [f64; 3],
        rotation: *mut [f64; 4],
    );
    pub(crate) fn provenir_bullet_poses(world: *const RawWorld, out: *mut [f64; 7]);
    pub(crate) fn provenir_bullet_velocity(world: *const RawWorld, link: i32, out: *mut [f64; 3]);
    pub(crate) fn provenir_bullet_contacts(world: *const RawWorld, touching: *mut u8);
}

/// The base, the links, and the shapes of all of them in that order. `robot` has passed its check, which bounds the counts.
pub(crate) fn flatten(robot: &Robot) -> (Vec<FlatLink>, Vec<FlatShape>) {
    let base = Link {
        parent: None,
        joint: Joint::Fixed,
        pivot: robot.base.position,
        center: [0.0; 3],
        mass: robot.base.mass,
        inertia: robot.base.inertia,
        friction: robot.base.friction,
        shapes: robot.base.shapes.clone(),
    };
    let links: Vec<&Link> = std::iter::once(&base).chain(&robot.links).collect();
    let shapes = links.iter().flat_map(|link| link.shapes.iter().map(flat_shape));
    (
        links.iter().map(|link| flat_link(link)).collect(),
        shapes.collect(),
    )
}

fn flat_link(link: &Link) -> FlatLink {
    let (joint, axis, limits) = match link.joint {
        Joint::Fixed => (0, [0.0; 3], None),
        Joint::Revolute { axis, limits } => (1, axis, limits),
        Joint::Prismatic { axis } => (2, axis, None),
    };
    let Limits { lower, upper } = limits.unwrap_or(Limits {
        lower: 0.0,
        upper: 0.0,
    });
    FlatLink {
        joint,
        parent: link.parent.map_or(-1, index),
        has_limits: i32::from(limits.is_some()),
        shape_count: index(link.shapes.len()),
        axis,
        pivot: link.pivot,
        center: link.center,
        inertia: link.inertia,
        mass: link.mass,
        friction: link.friction,
        lower,
        upper,
    }
}

fn flat_shape(shape: &Shape) -> FlatShape {
    let none = FlatShape {
        kind: 0,
        from: [0.0; 3],
        to: [0.0; 3],
        radius: 0.0,
        half: 0.0,
        angle_y: 0.0,
    };
    match *shape {
        Shape::CapsuleBetween { from, to, radius } => FlatShape {
            kind: 0,
            from,
            to,
            radius,
            ..none
        },
        Shape::CapsuleZ {
            center,
            angle_y,
            radius,
            half,
        } => FlatShape {
            kind: 1,
            from: center,
            radius,
            half,
            angle_y,
            ..none
        },
        Shape::Sphere { radius } => FlatShape {
            kind: 2,
            radius,
            ..none
        },
    }
}

pub(crate) fn index(value: usize) -> i32 {
    i32::try_from(value).expect("a checked robot has at most a thousand links and shapes")
}

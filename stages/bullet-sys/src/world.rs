#![expect(
    unsafe_code,
    reason = "calls into the C++ shim, whose preconditions World upholds"
)]

use std::ptr::NonNull;

use crate::ffi;
use crate::robot::{InvalidRobot, Robot};

/// Seconds that [`World::step`] advances, in four equal sub-steps.
pub const STEP: f64 = 0.0165;

/// A robot on a ground plane.
///
/// Invariants: `raw` is a live world made of a robot with `links` links, owned by this value alone. Worlds share no
/// state, so that each may move to another thread (`Send`); reading uses scratch memory of the world, so that two
/// threads may not read at once (not `Sync`).
#[derive(Debug)]
pub struct World {
    raw: NonNull<ffi::RawWorld>,
    links: usize,
}

// SAFETY: a world is reached through its only owner, and nothing in the shim or in Bullet's simulation is bound to the
// thread that made it.
unsafe impl Send for World {}

/// A part of the robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The root.
    Base,
    /// The link of that index.
    Link(usize),
}

/// Where a body is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// Of the centre of mass, m.
    pub position: [f64; 3],
    /// Unit quaternion x, y, z, w.
    pub rotation: [f64; 4],
}

impl Pose {
    /// A point of the body, given relative to its centre of mass, in the world.
    pub fn place(&self, point: [f64; 3]) -> [f64; 3] {
        // p + 2 v × (v × p + s p) for a unit quaternion of vector v and scalar s.
        let [vector @ .., scalar] = self.rotation;
        let inner = cross(vector, point);
        let outer = cross(
            vector,
            std::array::from_fn(|axis| inner[axis] + scalar * point[axis]),
        );
        std::array::from_fn(|axis| self.position[axis] + point[axis] + 2.0 * outer[axis])
    }
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

impl World {
    /// A world that holds the ground and this robot, all joints at zero and at rest.
    pub fn new(robot: &Robot) -> Result<Self, InvalidRobot> {
        robot.check()?;
        let (links, shapes) = ffi::flatten(robot);
        // SAFETY: `links` holds the base and `robot.links.len()` links, `shapes` as many shapes as these announce; parents
        // precede children and all numbers are in range, which `check` has seen to. The shim copies what it keeps.
        let raw = unsafe {
            ffi::provenir_bullet_create(links.as_ptr(), ffi::index(robot.links.len()), shapes.as_ptr())
        };
        Ok(Self {
            raw: NonNull::new(raw).expect("the shim gives a world or ends the process"),
            links: robot.links.len(),
        })
    }

    /// How many links the robot has.
    pub fn links(&self) -> usize {
        self.links
    }

    /// Puts the robot at rest with these joint positions (one a link, those of fixed links unused), the base at its
    /// initial place, and forgets all contacts: what follows does not depend on what was before.
    pub fn reset(&mut self, q: &[f64]) {
        assert_eq!(q.len(), self.links);
        // SAFETY: the shim reads one number a link.
        unsafe { ffi::provenir_bullet_reset(self.raw.as_ptr(), q.as_ptr()) }
    }

    /// Advances by [`STEP`] under these joint torques or forces (one a link, those of fixed links unused).
    pub fn step(&mut self, torques: &[f64]) {
        assert_eq!(torques.len(), self.links);
        // SAFETY: the shim reads one number a link.
        unsafe { ffi::provenir_bullet_step(self.raw.as_ptr(), torques.as_ptr()) }
    }

    /// Joint positions and velocities, one a link, zero for fixed links.
    pub fn joints(&self, q: &mut [f64], qdot: &mut [f64]) {
        assert_eq!((q.len(), qdot.len()), (self.links, self.links));
        // SAFETY: the shim writes one number a link to each.
        unsafe { ffi::provenir_bullet_joints(self.raw.as_ptr(), q.as_mut_ptr(), qdot.as_mut_ptr()) }
    }

    /// Positions of the links' centres of mass, as of the last sub-step's start (see [`World::pose`]).
    pub fn positions(&self, out: &mut [[f64; 3]]) {
        assert_eq!(out.len(), self.links);
        // SAFETY: the shim writes three numbers a link.
        unsafe { ffi::provenir_bullet_positions(self.raw.as_ptr(), out.as_mut_ptr()) }
    }

    /// Pose of a body. That of the base is current; that of a link is what Bullet cached at the start of the last sub-step,
    /// which is also what PyBullet reports.
    pub fn pose(&self, body: Body) -> Pose {
        let mut pose = Pose {
            position: [0.0; 3],
            rotation: [0.0; 4],
        };
        // SAFETY: `number` is the base or a link; the shim writes three and four numbers.
        unsafe {
            ffi::provenir_bullet_pose(
                self.raw.as_ptr(),
                self.number(body),
                &raw mut pose.position,
                &raw mut pose.rotation,
            );
        }
        pose
    }

    /// Poses of the base and then of every link, all as they are now.
    ///
    /// For looking at: PyBullet's tasks are made of what [`World::pose`] gives.
    pub fn poses(&self) -> Vec<Pose> {
        let mut flat = vec![[0.0; 7]; self.links + 1];
        // SAFETY: the shim writes seven numbers for the base and for each link.
        unsafe { ffi::provenir_bullet_poses(self.raw.as_ptr(), flat.as_mut_ptr()) }
        let pose = |[x, y, z, i, j, k, w]: [f64; 7]| Pose {
            position: [x, y, z],
            rotation: [i, j, k, w],
        };
        flat.into_iter().map(pose).collect()
    }

    /// Linear velocity of a body's centre of mass, m/s in world axes; that of a link is turned there by its cached pose.
    pub fn velocity(&self, body: Body) -> [f64; 3] {
        let mut velocity = [0.0; 3];
        // SAFETY: `number` is the base or a link; the shim writes three numbers.
        unsafe {
            ffi::provenir_bullet_velocity(self.raw.as_ptr(), self.number(body), &raw mut velocity);
        }
        velocity
    }

    /// For every link 1 where it has a contact point with the ground (points up to 0.02 m away count), else 0.
    pub fn contacts(&self, touching: &mut [u8]) {
        assert_eq!(touching.len(), self.links);
        // SAFETY: the shim writes one byte a link.
        unsafe { ffi::provenir_bullet_contacts(self.raw.as_ptr(), touching.as_mut_ptr()) }
    }

    fn number(&self, body: Body) -> i32 {
        match body {
            Body::Base => -1,
            Body::Link(link) => {
                assert!(link < self.links);
                ffi::index(link)
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // SAFETY: `raw` is live, and not used after this.
        unsafe { ffi::provenir_bullet_destroy(self.raw.as_ptr()) }
    }
}

/// The version of Bullet that was compiled against, as 100 × major + minor.
pub fn bullet_version() -> u32 {
    ffi::provenir_bullet_version().unsigned_abs()
}

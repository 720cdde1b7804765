//! Bullet's multi-body dynamics for one robot on a ground plane, with PyBullet's settings.
//!
//! * [`Robot`]: what is simulated, as data (links, joints, shapes).
//! * [`World`]: the simulation, behind a safe surface.
//! * [`bullet_version`]: the version that was compiled against.
//!
//! Units are SI: m, kg, s, rad, N m. The world is stepped by [`STEP`] in four sub-steps.
//!
//! Invariant: the only unsafe code over Bullet is in `world.rs` and `ffi.rs`; both sides of the C surface (`ffi.rs`, `shim.cpp`)
//! change together.

mod ffi;
mod robot;
mod world;

pub use robot::{Base, InvalidRobot, Joint, Limits, Link, Robot, Shape};
pub use world::{Body, Pose, STEP, World, bullet_version};

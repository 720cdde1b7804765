//! PyBullet's locomotion tasks on Bullet itself: observations, rewards and ends of episodes bit for bit those of
//! PyBullet 3.2.7's `pybullet_envs`, at several times its speed.
//!
//! * [`Task`]: a robot and what is asked of it, as data; [`Task::named`] knows those that are built in.
//! * [`Environment`]: one running episode of a task.
//! * [`Lanes`]: environments stepped together, by one thread or several, their observations gathered into one batch.
//! * [`Rollouts`]: many episodes, in batches and threads; what an [`Episode`] holds depends on its seed and the actor only.
//! * [`Capsule`]: a shape of a robot, to be drawn.
//! * [`trial_seed`]: the seeds of the episodes that policies are judged by.
//! * [`Task::fits`]: whether a policy is one for this task.
//!
//! A further robot is a file in `robots/` and a line in `registry.rs`.
//!
//! Differences from PyBullet, on purpose: the position mean always counts the floor (PyBullet leaves it out in the very
//! first reset of an environment object, so that the first reward of its first episode is off); actions are single precision, so that the energy terms are averaged in
//! single precision as PyBullet does for a policy that acts in it; an action that is not finite is an error, not an assertion.
//!
//! Invariant: nothing here is random but the initial joint angles, which a stream of `provenir-random` draws from the
//! episode's seed.

mod capsule;
mod crew;
mod environment;
mod fits;
mod lanes;
mod numpy;
mod registry;
mod robot;
mod rollout;
mod task;
mod trial;

pub use capsule::Capsule;
pub use environment::{EPISODE_STEPS, Environment, SimError, Step};
pub use lanes::{LaneError, Lanes};
pub use provenir_bullet_sys::{Pose, STEP};
pub use registry::{NAMES, UnknownTask};
pub use rollout::{Episode, Rollouts, Transitions};
pub use task::{InvalidTask, Task};
pub use trial::trial_seed;

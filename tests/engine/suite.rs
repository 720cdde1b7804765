//! The engine seen from outside: the command as it ships, with kinds that need neither LibTorch nor Bullet.
//!
//! * `context`: a folder, a store, a scrubbed environment, and what a run said.
//! * `reuse`: nothing is computed twice, and everything that must be is.
//! * `publish`: named copies.
//! * `failures`: what fails is told, and spares what does not depend on it.
//! * `faults`: kills, full disks, stores that cannot be written to.
//! * `sharing`: several processes on one store.
//! * `determinism`: the same results whatever the order, the folder, and the number of workers.

#![expect(clippy::unwrap_used, clippy::format_collect, reason = "tests")]

mod context;
mod determinism;
mod failures;
mod faults;
mod publish;
mod reuse;
mod sharing;

//! The engine seen from outside: the command as it ships, with kinds that need neither LibTorch nor Bullet.
//!
//! * `context`: a folder, a store, a scrubbed environment, and what a run said.
//! * `reuse`: nothing is computed twice, and everything that must be is.
//! * `publish`: named copies.
//! * `failures`: what fails is told, and spares what does not depend on it.
//! * `faults`: kills, full disks, stores that cannot be written to.
//! * `sharing`: several processes on one store.
//! * `determinism`: the same results whatever the order, the folder, and the number of workers.
//! * `commands`: what the other commands print.
//! * `policies`: policies of any file, shown and exported.

#![expect(
    clippy::unwrap_used,
    reason = "what fails in a helper fails the test that called it, as in the test itself"
)]

mod commands;
mod context;
mod determinism;
mod failures;
mod faults;
mod policies;
mod publish;
mod reuse;
mod sharing;

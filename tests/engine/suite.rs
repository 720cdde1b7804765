//! The engine seen from outside: the command as it ships, with kinds that need neither LibTorch nor Bullet.
//!
//! * `context`: a folder, a store, a scrubbed environment, and what a run said.
//! * `behaviour`: what a change makes run again, a row of the table each.
//! * `reuse`: nothing is computed twice, and everything that must be is.
//! * `publish`: named copies.
//! * `failures`: what fails is told, and spares what does not depend on it.
//! * `hostile`: stores made to harm; `clock`: a clock that jumps.
//! * `faults`: kills, full disks, stores that cannot be written to.
//! * `kernel`: system calls that fail, or are the last of their process, as they are told to.
//! * `soak`: faults at every point of a commit, and at random ones.
//! * `sharing`: several processes on one store.
//! * `determinism`: the same results whatever the order, the folder, and the number of workers.
//! * `telling`: what a person reads of a run, and of what was meant by a word on the command line.
//! * `commands`: what the other commands print.
//! * `explaining`: why cells run.
//! * `tracing`: where results come from.
//! * `history`: runs, listed and compared.
//! * `records`: which run is the last, and records that cannot be understood.
//! * `auditing`: what is computed again comes out the same, or is told.
//! * `attempts`: time limits, retries, strict platforms.
//! * `keeping`: what is damaged is found; what nothing needs goes, and nothing else.
//! * `odd_places`: folders, links and floods where files and words belong; files that are damaged in part.
//! * `past_sources`: what was computed from files that are gone.
//! * `policies`: policies of any file, shown and exported.
//! * `exporting`: where results come from, in the formats of the standards; `exported` holds them against the store.
//! * `render`: animations by one command.
//! * `programs`: any program as a stage.

#![expect(
    clippy::unwrap_used,
    reason = "what fails in a helper fails the test that called it, as in the test itself"
)]
#![expect(
    clippy::print_stderr,
    reason = "what is skipped is told, and what was being tried where that fails"
)]

mod alone;
mod attempts;
mod auditing;
mod behaviour;
mod clock;
mod commands;
mod context;
mod determinism;
mod explaining;
mod exported;
mod exporting;
mod failures;
mod faults;
mod groups;
mod history;
mod hostile;
mod keeping;
mod kernel;
mod odd_places;
mod past_sources;
mod policies;
mod programs;
mod publish;
mod records;
mod render;
mod reuse;
mod sharing;
mod soak;
mod telling;
mod tracing;

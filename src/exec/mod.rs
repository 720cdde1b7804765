//! Execution: which cells have to run, and getting them run.
//!
//! * [`Survey`]: where every cell of a plan stands, without running anything.
//! * [`run`]: gets a plan done, cells side by side in worker processes, and publishes.
//! * [`differences`]: in what two actions differ, field by field.
//! * [`Event`]: what happens meanwhile; a [`Subscriber`] shows or records it.
//!
//! Invariant: nothing here prints, and nothing but the scheduler decides.

mod attempts;
mod budget;
mod cells;
mod committer;
mod difference;
mod ending;
mod event;
mod groups;
mod interrupt;
mod jobs;
mod listen;
mod losses;
mod pace;
mod resolve;
mod scheduler;
mod state;
mod survey;
mod worker;

pub use budget::{cores, memory};
pub use difference::{Absent, Difference, FileVersion, differences, value_differences};
pub(crate) use difference::{changed_inputs, cut_apart};
pub use event::{CellRef, Event, Failure, NthAttempt, Subscriber, Summary};
pub use interrupt::INTERRUPTED;
pub use scheduler::{Options, RunOutcome, run};
pub use survey::{Due, Standing, Survey};
pub use worker::{WorkerError, WorkerProgram, greeting};

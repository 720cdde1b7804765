//! Records: what happened in each run, kept beside the artifacts.
//!
//! ```text
//! runs-v1/
//!   20251128-015212.345-7k3f/ one folder for each run that executed something
//!     run.json                what was asked for, by what, where: the resolved manifest, versions, host, git
//!     records.jsonl           one line for each cell executed; one that sums up those reused
//!     events.jsonl            everything that happened, with times; no line for a cell reused
//!     logs/                   what cells said, a file each, where they said anything
//!     outcome.json            how it ended; missing while it runs, and for ever if it was killed
//!   noop.jsonl                one line for each run that executed nothing
//! ```
//!
//! * [`Recorder`] writes a run while it happens: a subscriber of the engine's events.
//! * [`RunStore`] reads them again.

mod git;
mod id;
mod model;
mod read;
mod recorder;

pub use git::Git;
pub use id::RunId;
pub use model::{FORMAT, Host, OutcomeFile, Program, Record, RunFile};
pub use read::{Execution, RunStore, StoredRun};
pub use recorder::{Recorder, Request};

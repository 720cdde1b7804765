//! Records: what happened in each run, kept beside the artifacts.
//!
//! ```text
//! runs-v1/
//!   20251128-015212.345-7k3f/ one folder for each run that executed something
//!     run.json                what was asked for, by what, where: the resolved manifest, versions, host, git
//!     records.jsonl           one line for each cell executed; one or two that sum up those reused
//!     events.jsonl            everything that happened, with times; no line for a cell reused
//!     logs/                   what cells said, a file each, where they said anything
//!     outcome.json            how it ended; missing while it runs, and for ever if it was killed
//!     annotation.json         tags, a note, a pin: what people add
//!   noop.jsonl                one line for each run that executed nothing
//! ```
//!
//! * [`Recorder`] writes a run while it happens: a subscriber of the engine's events.
//! * [`RunStore`] reads them again; [`History`] reads all of them together.

mod annotation;
mod git;
mod history;
mod id;
mod model;
mod read;
mod recorder;

pub use annotation::Annotation;
pub use git::Git;
pub use history::{History, PastRun};
pub use id::RunId;
pub use model::{Executed, FORMAT, Host, OutcomeFile, Program, Record, RunFile};
pub use read::{Execution, RunStore, StoredRun};
pub use recorder::{Recorder, Request};

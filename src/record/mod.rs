//! Records: what happened in each run, kept beside the artifacts.
//!
//! ```text
//! runs-v1/
//!   20251128-015212.345-7k3f/ one folder for each run that executed something, or found what the one before did not have
//!     run.json                what was asked for, by what, where: the resolved manifest, versions, host, git
//!     records.jsonl           one line for each cell executed; one or two that sum up those reused
//!     events.jsonl            everything that happened, with times; no line for a cell reused
//!     logs/                   what cells said, a file each, where they said anything
//!     outcome.json            how it ended; missing while it runs, and for ever if it was killed
//!     annotation.json         tags, a note, a pin: what people add
//!   noop.jsonl                one line for each run that executed nothing and found what the latest of its manifest had
//!   gc.jsonl                  what each collection removed, and each verification took out because it was damaged
//! ```
//!
//! * [`Recorder`] writes a run while it happens: a subscriber of the engine's events.
//! * [`RunStore`] reads them again, and knows which run is the latest; [`History`] reads all of them together.
//!
//! A run whose files cannot be understood, or were written by a newer version, costs its own history alone: what reads
//! all runs goes on without it, and names it ([`FlawedRun`]).

mod annotation;
mod cells;
mod collected;
mod git;
mod history;
mod id;
mod latest;
mod model;
mod read;
mod recorder;

pub use annotation::Annotation;
pub use cells::{Cells, PlacedCell};
pub use collected::{Damaged, Removals};
pub use git::Git;
pub use history::{Failed, History, PastRun};
pub use id::RunId;
pub use latest::Latest;
pub use model::{
    Executed, FORMAT, Host, OutcomeFile, Program, PublishedCopy, Record, RunFile, Wire, is_render,
};
pub use read::{Execution, FlawedRun, RunStore, StoredRun};
pub(crate) use recorder::CellLog;
pub use recorder::{Recorder, Request};

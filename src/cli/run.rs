use std::collections::BTreeSet;
use std::time::Instant;

use provenir_api::Resources;

use super::arguments::RunArguments;
use super::error::{CommandError, Exit};
use super::terminal::say;
use super::{Edition, session};
use crate::clock;
use crate::display::{self, Display, Mode};
use crate::exec::{self, Event, Options, Subscriber, Survey};
use crate::plan::{CellIndex, Plan};
use crate::record::{Program, Recorder, Request, RunId, RunStore};
use crate::store::{Store, StoreError};

/// How a plan is carried out.
#[derive(Debug, Default)]
pub(super) struct Manner {
    /// Cells that are executed although the store has their results.
    pub(super) force: BTreeSet<CellIndex>,
    /// Processor cores that cells may occupy together; all, where absent.
    pub(super) jobs: Option<u32>,
    /// How it is shown.
    pub(super) mode: Mode,
}

/// `run`.
pub(super) fn run(edition: &Edition, arguments: &RunArguments) -> Result<Exit, CommandError> {
    let began = clock::instant();
    let plan = session::plan(edition, &arguments.manifest)?;
    let force = session::select(&plan, &arguments.force)?;
    let store = session::create(&arguments.manifest, &plan)?;
    let mode = match (arguments.json, arguments.quiet) {
        (true, _) => Mode::Json,
        (_, true) => Mode::Quiet,
        _ => Mode::Auto,
    };
    let manner = Manner {
        force,
        jobs: arguments.jobs,
        mode,
    };
    carry_out(edition, &plan, &store, manner, began)
}

/// Gets a plan done: shows and records it.
pub(super) fn carry_out(
    edition: &Edition,
    plan: &Plan,
    store: &Store,
    manner: Manner,
    began: Instant,
) -> Result<Exit, CommandError> {
    let id = RunId::after(RunStore::new(store.layout()).newest()?.as_ref());
    let options = Options {
        resources: Resources {
            cores: manner.jobs.unwrap_or_else(exec::cores),
            memory: exec::memory(),
        },
        force: manner.force,
        worker: session::worker(edition)?,
        logs: Recorder::logs(store.layout(), &id),
        command: std::env::args_os()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect(),
        began,
    };
    let request = Request {
        id,
        command: options.command.clone(),
        program: program(),
    };
    let mut both = Both {
        display: Display::new(plan, manner.mode),
        recorder: Recorder::new(store, plan, request),
    };
    let survey = Survey::take(plan, store, &options.force)?;
    let outcome = exec::run(survey, plan, store, &options, &mut both);
    if let Some(error) = both.recorder.unnoted() {
        say(&format!(
            "warning: the store cannot be written to, so that nothing of this run is recorded there: {error}"
        ));
    } else if let Some(error) = &outcome.unnoted {
        say(&format!(
            "warning: what was published is in its place, but the store could not note that: {error}"
        ));
    }
    if let Some(failure) = &outcome.unrecorded {
        say(&display::failed("the end of the run is not recorded", failure));
    }
    // The run is over and recorded; whoever reads the events cannot know that from them.
    match both.display.unwritten() {
        Some(error) => Err(error.into()),
        None => Ok(Exit::of(&outcome.summary)),
    }
}

/// This program.
pub(super) fn program() -> Program {
    Program {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: provenir_build_id::BUILD.to_owned(),
    }
}

/// Display and records; the record comes first, so that what is shown is on its way to the disk.
struct Both<'a> {
    display: Display<'a>,
    recorder: Recorder<'a>,
}

impl Subscriber for Both<'_> {
    fn on(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        let recorded = self.recorder.on(event);
        self.display.on(event)?;
        recorded
    }
}

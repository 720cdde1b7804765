//! What a person sees while a run works: bars on a terminal, plain lines in a pipe, events as JSON Lines for programs.
//!
//! Three renderers of the same events. The engine never prints; nothing here decides anything.
//!
//! * `sentence`: what an event says, in words.
//! * `repeats`: what need not be said again.
//! * `pace`: how far a cell is, and how long the rest takes.
//! * `bars`, `lines`, `json`: where and how it is said.

mod bars;
mod json;
mod lines;
mod pace;
mod repeats;
mod sentence;

use std::io::{self, IsTerminal};

pub(crate) use crate::number::grouped;
pub(crate) use sentence::{counts, duration, failed};

use crate::exec::{Event, Subscriber};
use crate::plan::Plan;
use crate::store::StoreError;

/// How a run is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Bars where standard error is a terminal, lines where it is not.
    #[default]
    Auto,
    /// The same, without the list of published files, for a command that prints them itself.
    Unlisted,
    /// Failures and warnings only.
    Quiet,
    /// Events on standard output, a line each.
    Json,
}

/// Shows a run.
pub struct Display<'a> {
    form: Form<'a>,
    /// Whether published files are named at the end.
    lists: bool,
}

enum Form<'a> {
    /// On a terminal.
    Bars(bars::Bars<'a>),
    /// In a pipe.
    Lines(lines::Lines<'a>),
    /// For a program.
    Json(json::Json),
}

impl<'a> Display<'a> {
    /// A display for a run of a plan.
    pub fn new(plan: &'a Plan, mode: Mode) -> Self {
        let form = match mode {
            Mode::Json => Form::Json(json::Json::new()),
            Mode::Quiet => Form::Lines(lines::Lines::new(plan, true)),
            Mode::Auto | Mode::Unlisted if std::io::stderr().is_terminal() => {
                Form::Bars(bars::Bars::new(plan))
            }
            Mode::Auto | Mode::Unlisted => Form::Lines(lines::Lines::new(plan, false)),
        };
        Self {
            form,
            lists: mode != Mode::Unlisted,
        }
    }

    /// Why events could not be written to standard output, where they were asked for.
    pub fn unwritten(&mut self) -> Option<io::Error> {
        match &mut self.form {
            Form::Json(json) => json.failure(),
            Form::Bars(_) | Form::Lines(_) => None,
        }
    }
}

impl Subscriber for Display<'_> {
    fn on(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        let ended;
        let event = match event {
            Event::RunFinished { summary, .. } if !self.lists => {
                ended = Event::RunFinished {
                    summary,
                    published: &[],
                };
                &ended
            }
            event => event,
        };
        match &mut self.form {
            Form::Bars(bars) => bars.on(event),
            Form::Lines(lines) => lines.on(event),
            Form::Json(json) => json.on(event),
        }
        Ok(())
    }
}

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;

use super::sentence::{ending, grouped, progress, sentence, urgent};
use crate::clock;
use crate::exec::Event;
use crate::plan::{CellIndex, Plan};
use crate::store::Outcome;

/// A running cell's progress is told this often at most.
const INTERVAL: Duration = Duration::from_secs(10);
/// So many lines about single cells are told in a second at most.
const RATE: usize = 20;

/// Plain lines on standard error.
pub struct Lines<'a> {
    plan: &'a Plan,
    updated: Vec<Utf8PathBuf>,
    quiet: bool,
    told: BTreeMap<CellIndex, Instant>,
    done: usize,
    /// When the current second began, and how many lines were told or withheld in it.
    second: Instant,
    count: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(plan: &'a Plan, quiet: bool) -> Self {
        Self {
            plan,
            updated: Vec::new(),
            quiet,
            told: BTreeMap::new(),
            done: 0,
            second: clock::instant(),
            count: 0,
        }
    }

    pub(super) fn on(&mut self, event: &Event<'_>) {
        if let Event::Published { path, .. } = event {
            self.updated.push((*path).to_owned());
        }
        if let Event::RunFinished { summary } = event {
            if !self.quiet || summary.is_incomplete() {
                say(&ending(summary, self.plan, &self.updated));
            }
            return;
        }
        if let Some(told) = urgent(event) {
            say(&told);
            return;
        }
        match event {
            Event::CellReused { .. } => self.done += 1,
            _ if self.quiet => {}
            Event::CellStarted { cell, .. } => {
                self.told.insert(cell.index, clock::instant());
                self.routine(&format!("started {cell}"));
            }
            Event::CellFinished { cell, outcome, .. } => {
                self.done += 1;
                self.told.remove(&cell.index);
                if let Some(told) = sentence(event) {
                    match outcome {
                        Outcome::New | Outcome::Same => self.routine(&told),
                        Outcome::Diverged { .. } | Outcome::Replaced { .. } => say(&told),
                    }
                }
            }
            Event::CellProgress {
                cell,
                progress: report,
            } => {
                let due = self
                    .told
                    .get(&cell.index)
                    .is_none_or(|told| told.elapsed() >= INTERVAL);
                if due {
                    self.told.insert(cell.index, clock::instant());
                    say(&format!("{cell}: {}", progress(report)));
                }
            }
            _ => {
                if let Some(told) = sentence(event) {
                    say(&told);
                }
            }
        }
    }

    /// Tells what happens to every cell, unless that happens too often for anyone to read.
    fn routine(&mut self, text: &str) {
        if self.second.elapsed() >= Duration::from_secs(1) {
            if self.count > RATE {
                say(&format!(
                    "… {} of {} cells done",
                    grouped(self.done),
                    grouped(self.plan.cells.len())
                ));
            }
            self.second = clock::instant();
            self.count = 0;
        }
        self.count += 1;
        if self.count <= RATE {
            say(text);
        }
    }
}

fn say(text: &str) {
    // Standard error that cannot be written to is no reason to stop computing.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

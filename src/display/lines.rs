use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use super::sentence::{ending, progress, sentence, urgent};
use crate::clock;
use crate::exec::Event;
use crate::plan::{CellIndex, Plan};

/// A running cell's progress is told this often at most.
const INTERVAL: Duration = Duration::from_secs(10);

/// Plain lines on standard error.
pub struct Lines<'a> {
    plan: &'a Plan,
    quiet: bool,
    told: BTreeMap<CellIndex, Instant>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(plan: &'a Plan, quiet: bool) -> Self {
        Self {
            plan,
            quiet,
            told: BTreeMap::new(),
        }
    }

    pub(super) fn on(&mut self, event: &Event<'_>) {
        match event {
            Event::RunFinished { summary } if !self.quiet || !summary.is_noop() => {
                say(&ending(summary, self.plan));
            }
            Event::CellStarted { cell, .. } if !self.quiet => {
                self.told.insert(cell.index, clock::instant());
                say(&format!("started {cell}"));
            }
            Event::CellProgress {
                cell,
                progress: report,
            } if !self.quiet => {
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
                let told = if self.quiet {
                    urgent(event, self.plan)
                } else {
                    sentence(event, self.plan)
                };
                if let Some(told) = told {
                    say(&told);
                }
            }
        }
    }
}

fn say(text: &str) {
    // Standard error that cannot be written to is no reason to stop computing.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

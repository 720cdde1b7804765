use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::pace::Pace;
use super::repeats::Repeats;
use super::sentence::{ending, sentence};
use crate::exec::Event;
use crate::manifest::visible;
use crate::plan::{CellIndex, Plan};

/// The most running cells that have a line: groups are larger than a terminal.
const SHOWN: usize = 12;

/// A bar for the run and a line for each running cell, on standard error.
pub(super) struct Bars<'a> {
    plan: &'a Plan,
    repeats: Repeats,
    screen: MultiProgress,
    run: ProgressBar,
    cells: BTreeMap<CellIndex, Line>,
}

/// What is seen of a running cell.
struct Line {
    bar: ProgressBar,
    pace: Pace,
}

impl<'a> Bars<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        // Fifteen frames a second are smooth, and cost nothing beside training.
        let screen = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(15));
        Self {
            plan,
            repeats: Repeats::default(),
            screen,
            run: ProgressBar::hidden(),
            cells: BTreeMap::new(),
        }
    }

    /// Shows how many of the cells are done.
    fn begin(&mut self, event: &Event<'_>, cells: usize, cached: usize) {
        let bar = ProgressBar::new(cells as u64)
            .with_style(style("{elapsed_precise} [{bar:30}] {pos}/{len} cells"));
        self.run = self.screen.add(bar);
        self.run.set_position(cached as u64);
        self.run.enable_steady_tick(Duration::from_secs(1));
        if let Some(told) = sentence(event) {
            self.say(&told);
        }
    }

    pub(super) fn on(&mut self, event: &Event<'_>) {
        if self.repeats.hides(event) {
            self.over(event);
            return;
        }
        match event {
            Event::RunStarted { cells, cached, .. } if cached < cells => self.begin(event, *cells, *cached),
            Event::AuditStarted { cells } => self.begin(event, *cells, 0),
            Event::CellStarted { cell, together, .. } => {
                // Executed again, after its worker ended.
                self.take_away(cell.index);
                if self.cells.len() >= SHOWN {
                    return;
                }
                let company = match together {
                    1 => String::new(),
                    count => format!(" (one of {count} together)"),
                };
                let bar = ProgressBar::no_length()
                    .with_style(style("  {spinner} {prefix}  {wide_msg}"))
                    .with_prefix(format!("{cell}{company}"));
                let bar = self.screen.insert_before(&self.run, bar);
                bar.enable_steady_tick(Duration::from_millis(250));
                self.cells.insert(
                    cell.index,
                    Line {
                        bar,
                        pace: Pace::default(),
                    },
                );
            }
            Event::CellProgress {
                cell,
                progress: report,
            } => {
                if let Some(line) = self.cells.get_mut(&cell.index) {
                    line.bar.set_message(line.pace.tell(report));
                }
            }
            Event::RunFinished { summary, published } => {
                self.run.finish_and_clear();
                let _ = self.screen.clear();
                for told in self.repeats.rest(self.plan, false) {
                    self.say(&told);
                }
                self.say(&ending(summary, published));
            }
            _ => {
                self.over(event);
                if let Some(told) = sentence(event) {
                    self.say(&told);
                }
            }
        }
    }

    /// Takes a cell's line away and moves the run's bar on, where an event ends a cell.
    fn over(&mut self, event: &Event<'_>) {
        let cell = match event {
            Event::CellFinished { cell, .. }
            | Event::CellFailed { cell, .. }
            | Event::CellBlocked { cell, .. }
            | Event::CellCancelled { cell, .. } => {
                self.run.inc(1);
                cell
            }
            Event::CellRetried { cell, .. } => cell,
            // The other cell was done, and is not any more.
            Event::CellLost { .. } => {
                self.run.dec(1);
                return;
            }
            Event::CellRepairing { reader, .. } => {
                self.run.dec(1);
                reader
            }
            _ => return,
        };
        self.take_away(cell.index);
    }

    fn take_away(&mut self, cell: CellIndex) {
        if let Some(Line { bar, .. }) = self.cells.remove(&cell) {
            bar.finish_and_clear();
            self.screen.remove(&bar);
        }
    }

    fn say(&self, text: &str) {
        // `println` does nothing where the target is not drawn to; a terminal is what this display was made for.
        self.screen.suspend(|| {
            use std::io::Write;
            // What programs and libraries say must not steer the terminal.
            let _ = writeln!(std::io::stderr().lock(), "{}", visible(text));
        });
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

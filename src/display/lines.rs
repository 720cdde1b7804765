use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write;
use std::time::{Duration, Instant};

use super::pace::Pace;
use super::repeats::Repeats;
use super::sentence::{ending, sentence, urgent};
use crate::clock;
use crate::exec::{CellRef, Event};
use crate::manifest::visible;
use crate::number::grouped;
use crate::plan::{CellIndex, Plan};

/// A running cell's progress is told this often at most.
const INTERVAL: Duration = Duration::from_secs(10);
/// So many lines about single cells are told in a second at most.
const RATE: usize = 20;

/// Plain lines on standard error.
pub(super) struct Lines<'a> {
    plan: &'a Plan,
    repeats: Repeats,
    quiet: bool,
    told: BTreeMap<CellIndex, Instant>,
    /// How fast running cells get on.
    paces: BTreeMap<CellIndex, Pace>,
    done: usize,
    /// By worker, the cells that it has begun and that are not over, in that order. A worker begins the next while the
    /// last is still being committed; a person is told of one after the other.
    begun: BTreeMap<u32, VecDeque<CellIndex>>,
    /// What is told of those when their turn comes.
    held: BTreeMap<CellIndex, Vec<String>>,
    /// The cells of which it was told that they were started, and not yet that they are over.
    open: BTreeSet<CellIndex>,
    /// Whether nothing more is said to start.
    stopping: bool,
    /// When the current second began, and how many lines were told or withheld in it.
    second: Instant,
    count: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(plan: &'a Plan, quiet: bool) -> Self {
        Self {
            plan,
            repeats: Repeats::default(),
            quiet,
            told: BTreeMap::new(),
            paces: BTreeMap::new(),
            done: 0,
            begun: BTreeMap::new(),
            held: BTreeMap::new(),
            open: BTreeSet::new(),
            stopping: false,
            second: clock::instant(),
            count: 0,
        }
    }

    pub(super) fn on(&mut self, event: &Event<'_>) {
        let over = match event {
            Event::CellFinished { cell, .. }
            | Event::CellFailed { cell, .. }
            | Event::CellRetried { cell, .. }
            | Event::CellCancelled { cell, .. }
            | Event::CellRepairing { reader: cell, .. } => Some(cell.index),
            _ => None,
        };
        if let Some(cell) = over {
            self.release(cell);
        }
        if !self.repeats.hides(event) {
            self.tell(event);
        } else if let Event::CellFailed { cell, .. } = event
            && self.open.contains(&cell.index)
        {
            say(&format!("failed: {cell}, as the run stops"));
        }
        if let Some(cell) = over {
            self.over(cell);
        }
    }

    fn tell(&mut self, event: &Event<'_>) {
        if let Event::Interrupted | Event::RunHalted { .. } = event {
            self.stopping = true;
        }
        if let Event::RunFinished { summary, published } = event {
            for told in self.repeats.rest(self.plan, self.quiet) {
                say(&told);
            }
            if !self.quiet || summary.is_incomplete() {
                say(&ending(summary, published));
            }
            return;
        }
        if let Some(told) = urgent(event) {
            match event {
                Event::CellLog { cell, .. } if self.held.contains_key(&cell.index) => {
                    self.held.entry(cell.index).or_default().push(told);
                }
                _ => say(&told),
            }
            return;
        }
        match event {
            Event::CellReused { .. } => {
                self.done += 1;
                if let Some(told) = sentence(event).filter(|_| !self.quiet) {
                    say(&told);
                }
            }
            _ if self.quiet => {}
            Event::CellLog { cell, .. } if self.held.contains_key(&cell.index) => {
                let told = sentence(event);
                self.held.entry(cell.index).or_default().extend(told);
            }
            Event::CellStarted { cell, worker, .. } => {
                self.told.insert(cell.index, clock::instant());
                // Executed again, after its worker ended.
                self.paces.remove(&cell.index);
                let begun = self.begun.entry(*worker).or_default();
                begun.push_back(cell.index);
                if begun.len() == 1 {
                    self.start(*cell);
                } else {
                    self.held.insert(cell.index, Vec::new());
                }
            }
            Event::CellFinished { cell, .. } => {
                self.done += 1;
                let must = urgent(event).is_some() || self.open.contains(&cell.index);
                if let Some(told) = sentence(event) {
                    if must {
                        say(&told);
                    } else {
                        self.routine(&told);
                    }
                }
            }
            Event::CellProgress {
                cell,
                progress: report,
            } => {
                let pace = self.paces.entry(cell.index).or_default();
                pace.note(report);
                let due = self
                    .told
                    .get(&cell.index)
                    .is_none_or(|told| told.elapsed() >= INTERVAL);
                if due && !self.held.contains_key(&cell.index) {
                    self.told.insert(cell.index, clock::instant());
                    say(&format!("{cell}: {}", pace.tell(report)));
                }
            }
            _ => {
                if let Event::CellRepairing { .. } | Event::CellLost { .. } = event {
                    self.done = self.done.saturating_sub(1);
                }
                if let Some(told) = sentence(event) {
                    say(&told);
                }
            }
        }
    }

    /// A cell is over: the one that its worker has begun meanwhile can be told.
    fn over(&mut self, cell: CellIndex) {
        self.told.remove(&cell);
        self.paces.remove(&cell);
        self.open.remove(&cell);
        let has_it = |begun: &VecDeque<CellIndex>| begun.iter().position(|begun| *begun == cell);
        let mut next = None;
        for begun in self.begun.values_mut() {
            if let Some(position) = has_it(begun) {
                begun.remove(position);
                next = begun.front().copied().filter(|_| position == 0);
            }
        }
        if let Some(index) = next {
            let cell = CellRef {
                plan: self.plan,
                index,
            };
            if !self.stopping {
                self.start(cell);
            }
            self.release(index);
        }
    }

    /// Tells that a cell was started; its end is told then, too.
    fn start(&mut self, cell: CellRef<'_>) {
        if self.routine(&format!("started {cell}")) {
            self.open.insert(cell.index);
        }
    }

    /// Tells what was held back of a cell.
    fn release(&mut self, cell: CellIndex) {
        for line in self.held.remove(&cell).unwrap_or_default() {
            say(&line);
        }
    }

    /// Tells what happens to every cell, unless that happens too often for anyone to read; says whether it did.
    fn routine(&mut self, text: &str) -> bool {
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
        let is_told = self.count <= RATE;
        if is_told {
            say(text);
        }
        is_told
    }
}

fn say(text: &str) {
    // Standard error that cannot be written to is no reason to stop computing.
    // What programs say, and what foreign files hold, must not steer a terminal that shows this now or later.
    let _ = writeln!(std::io::stderr().lock(), "{}", visible(text));
}

use std::collections::BTreeMap;

use camino::Utf8Path;
use provenir_api::protocol::Level;

use crate::exec::{CellRef, Event, Subscriber};
use crate::plan::CellIndex;
use crate::record::CellLog;
use crate::store::StoreError;

/// Notes why cells fail, and writes their logs where those stay, on the way to whoever shows what happens.
pub(super) struct Listener<'s> {
    subscriber: &'s mut dyn Subscriber,
    failures: BTreeMap<String, String>,
    /// How many cells are computed again, until that was said.
    cells: Option<usize>,
    /// The logs of cells that run; `None` where none are kept, and none may be named.
    logs: Option<BTreeMap<CellIndex, CellLog>>,
}

impl<'s> Listener<'s> {
    pub(super) fn new(subscriber: &'s mut dyn Subscriber, cells: usize, keeps_logs: bool) -> Self {
        Self {
            subscriber,
            cells: Some(cells),
            failures: BTreeMap::new(),
            logs: keeps_logs.then(BTreeMap::new),
        }
    }

    /// Why cells failed since this was last asked, by name.
    pub(super) fn take_failures(&mut self) -> BTreeMap<String, String> {
        std::mem::take(&mut self.failures)
    }

    fn write(&mut self, event: &Event<'_>) -> std::io::Result<()> {
        let Some(logs) = &mut self.logs else { return Ok(()) };
        let mut say = |cell: &CellRef<'_>, level, message: &str| match logs.get_mut(&cell.index) {
            Some(log) => log.say(level, message),
            None => Ok(()),
        };
        match event {
            Event::CellLog { cell, level, message } => say(cell, *level, message),
            Event::CellStarted { cell, log, .. } => {
                logs.insert(cell.index, CellLog::new(log));
                Ok(())
            }
            Event::WorkerLost {
                cell,
                reason,
                tail,
                log: Some(log),
                ..
            } => {
                let mut lost = CellLog::new(log);
                lost.say(
                    Level::Warning,
                    &format!("the worker that was starting for it {reason}"),
                )?;
                lost.say(Level::Info, &tail.join("\n"))?;
                logs.insert(cell.index, lost);
                Ok(())
            }
            Event::CellFinished { cell, .. }
            | Event::CellFailed { cell, .. }
            | Event::CellRetried { cell, .. }
            | Event::CellCancelled { cell, .. } => match logs.remove(&cell.index) {
                Some(log) => log.finish().map(drop),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Passes an event on: as of an audit, and without the places of logs that nobody will find.
    fn pass(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        let nowhere: Option<&Utf8Path> = None;
        match event {
            // One audit, however many runs it takes.
            Event::RunStarted { .. } => match self.cells.take() {
                Some(cells) => self.subscriber.on(&Event::AuditStarted { cells }),
                None => Ok(()),
            },
            Event::CellFailed {
                cell,
                key,
                action,
                failure,
                seconds,
                ..
            } if self.logs.is_none() => self.subscriber.on(&Event::CellFailed {
                cell: *cell,
                key: *key,
                action: *action,
                failure,
                seconds: *seconds,
                log: nowhere,
            }),
            Event::WorkerLost {
                worker,
                pid,
                cell,
                key,
                reason,
                tail,
                again,
                ..
            } if self.logs.is_none() => self.subscriber.on(&Event::WorkerLost {
                worker: *worker,
                pid: *pid,
                cell: *cell,
                key: *key,
                reason,
                tail,
                log: nowhere,
                again: *again,
            }),
            event => self.subscriber.on(event),
        }
    }
}

impl Subscriber for Listener<'_> {
    fn on(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        if let Event::CellFailed { cell, failure, .. } = event {
            self.failures.insert(cell.to_string(), failure.message.clone());
        }
        self.write(event)
            .map_err(StoreError::io("cannot write the log of a cell"))?;
        self.pass(event)
    }
}

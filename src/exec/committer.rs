//! Commits what workers finished, on a thread of its own. While one batch waits for the disk the next gathers, so that
//! many small cells share the waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use camino::Utf8PathBuf;
use provenir_api::port::OutputPort;
use provenir_api::protocol::OutputArtifact;

use super::state::Signal;
use crate::clock;
use crate::plan::CellIndex;
use crate::store::{Action, Commit, Staged, Store, StoreError};

/// Most cells in a batch: a crash in the middle of a batch loses no more than these.
const MOST: usize = 256;
/// How often the index is written.
const INDEX_INTERVAL: Duration = Duration::from_secs(2);

/// A cell that a worker finished.
pub(super) struct Finished {
    pub(super) cell: CellIndex,
    pub(super) action: Action,
    pub(super) ports: Arc<[OutputPort]>,
    pub(super) outputs: Vec<OutputArtifact>,
    /// Whether anything that it took was not repeatable.
    pub(super) volatile: bool,
    pub(super) scratch: Utf8PathBuf,
    pub(super) platform: BTreeMap<String, String>,
}

/// Commits until nothing more comes.
pub(super) fn commit_all(store: &Store, finished: &Receiver<Finished>, engine: &SyncSender<Signal>) {
    let mut last = clock::instant();
    while let Ok(first) = finished.recv() {
        let batch = std::iter::once(first).chain(finished.try_iter().take(MOST - 1));
        for (cell, result) in commit(store, batch) {
            if engine.send(Signal::Committed(cell, result)).is_err() {
                return;
            }
        }
        if last.elapsed() > INDEX_INTERVAL {
            store.flush();
            last = clock::instant();
        }
    }
}

type Committed = (CellIndex, Result<Commit, StoreError>);

fn commit(store: &Store, batch: impl Iterator<Item = Finished>) -> Vec<Committed> {
    let mut results = Vec::new();
    let mut cells = Vec::new();
    let mut staged = Vec::new();
    let mut scratches = Vec::new();
    for Finished {
        cell,
        action,
        ports,
        outputs,
        volatile,
        scratch,
        platform,
    } in batch
    {
        match Staged::check(action, &ports, &outputs, volatile, &scratch, platform) {
            Ok(checked) => {
                cells.push(cell);
                staged.push(checked);
            }
            Err(error) => results.push((cell, Err(error))),
        }
        scratches.push(scratch);
    }
    results.extend(cells.into_iter().zip(store.commit(staged)));
    for scratch in scratches {
        // What cannot be removed now goes with the workspace.
        fs_err::remove_dir_all(scratch).ok();
    }
    results
}

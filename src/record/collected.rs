//! What collections removed: a file of lines beside the runs, so that a result that is gone can be told apart from one that
//! was lost.

use std::collections::BTreeMap;
use std::io;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::read::{RunStore, each_line};
use super::recorder::line;
use crate::clock;
use crate::store::{ActionKey, StoreError, append_lines};

/// So many results are in a line.
const RESULTS: usize = 1000;

/// A line of `gc.jsonl`.
#[derive(Serialize, Deserialize)]
struct Collected {
    time: Timestamp,
    results: Vec<ActionKey>,
}

impl RunStore {
    /// Notes results that a collection removed just now.
    pub fn note_collected(&self, results: &[ActionKey]) -> Result<(), StoreError> {
        let note = || -> io::Result<()> {
            let time = clock::now();
            let mut lines = Vec::new();
            for results in results.chunks(RESULTS) {
                let results = results.to_vec();
                lines.extend(line(&Collected { time, results })?);
            }
            if !lines.is_empty() {
                let path = self.collections();
                fs_err::create_dir_all(path.parent().unwrap_or(&path))?;
                append_lines(&path, &lines)?;
            }
            Ok(())
        };
        note().map_err(StoreError::io("cannot note what was removed"))
    }

    /// When collections removed the result of each action. Lines that cannot be understood are passed over: they explain
    /// nothing, and nothing else depends on them.
    pub fn collected(&self) -> Result<BTreeMap<ActionKey, Vec<Timestamp>>, StoreError> {
        let mut times: BTreeMap<ActionKey, Vec<Timestamp>> = BTreeMap::new();
        each_line(&self.collections(), |line| {
            if let Ok(Collected { time, results }) = serde_json::from_slice(line) {
                for key in results {
                    times.entry(key).or_default().push(time);
                }
            }
            Ok(())
        })?;
        Ok(times)
    }
}

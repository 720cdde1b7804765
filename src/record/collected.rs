//! What commands took out of the store: a file of lines beside the runs, so that a result that is gone can be told apart from
//! one that was lost.

use std::collections::BTreeMap;
use std::io;

use jiff::Timestamp;
use provenir_api::Digest;
use serde::{Deserialize, Serialize};

use super::read::{RunStore, each_line};
use super::recorder::line;
use crate::clock;
use crate::store::{ActionKey, StoreError, append_lines};

/// So many results or objects are in a line.
const LENGTH: usize = 1000;

/// A line of `gc.jsonl`.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    /// Results that a collection removed.
    Collected {
        time: Timestamp,
        results: Vec<ActionKey>,
    },
    /// What a verification took out. Earlier versions, which do not know such lines, pass them over.
    Discarded { time: Timestamp, damaged: Damaged },
}

/// Objects whose bytes were not those that were stored, and results that could not be understood.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Damaged {
    /// Objects.
    pub objects: Vec<Digest>,
    /// Results.
    pub results: Vec<ActionKey>,
}

/// When commands took out what is gone: a list of times for each, in no order.
#[derive(Debug, Default)]
pub struct Removals {
    /// Results that collections removed.
    pub collected: BTreeMap<ActionKey, Vec<Timestamp>>,
    /// Damaged results that verifications took out.
    pub results: BTreeMap<ActionKey, Vec<Timestamp>>,
    /// Damaged objects that verifications took out.
    pub objects: BTreeMap<Digest, Vec<Timestamp>>,
}

impl RunStore {
    /// Notes results that a collection removed just now.
    pub fn note_collected(&self, results: &[ActionKey]) -> Result<(), StoreError> {
        let time = clock::now();
        let lines = results.chunks(LENGTH).map(|results| Line::Collected {
            time,
            results: results.to_vec(),
        });
        self.note(lines)
    }

    /// Notes what a verification took out just now.
    pub fn note_discarded(&self, damaged: &Damaged) -> Result<(), StoreError> {
        let time = clock::now();
        let objects = damaged.objects.chunks(LENGTH).map(|objects| Damaged {
            objects: objects.to_vec(),
            results: Vec::new(),
        });
        let results = damaged.results.chunks(LENGTH).map(|results| Damaged {
            objects: Vec::new(),
            results: results.to_vec(),
        });
        self.note(
            objects
                .chain(results)
                .map(|damaged| Line::Discarded { time, damaged }),
        )
    }

    fn note(&self, noted: impl Iterator<Item = Line>) -> Result<(), StoreError> {
        let note = || -> io::Result<()> {
            let mut lines = Vec::new();
            for noted in noted {
                lines.extend(line(&noted)?);
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

    /// When commands took out what is gone. Lines that cannot be understood are passed over: they explain nothing, and nothing
    /// else depends on them.
    pub fn removals(&self) -> Result<Removals, StoreError> {
        let mut removals = Removals::default();
        each_line(&self.collections(), |line| {
            match serde_json::from_slice(line) {
                Ok(Line::Collected { time, results }) => {
                    for key in results {
                        removals.collected.entry(key).or_default().push(time);
                    }
                }
                Ok(Line::Discarded { time, damaged }) => {
                    for key in damaged.results {
                        removals.results.entry(key).or_default().push(time);
                    }
                    for object in damaged.objects {
                        removals.objects.entry(object).or_default().push(time);
                    }
                }
                Err(_) => {}
            }
            Ok(())
        })?;
        Ok(removals)
    }
}

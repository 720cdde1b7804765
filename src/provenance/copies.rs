//! Which named copies an export tells of.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use crate::lineage::Graph;
use crate::record::PastRun;
use crate::store::{ActionKey, Publication, Remains};

/// A named copy of what an action gave.
pub(super) struct Copy {
    /// The cell that it was published for.
    pub(super) cell: String,
    /// Its output.
    pub(super) port: String,
    /// Where, absolute.
    pub(super) path: Utf8PathBuf,
}

/// Copies by action.
pub(super) type Copies = BTreeMap<ActionKey, Vec<Copy>>;

/// Those that a run had in their places when it ended. What else has the same results was published by other runs.
///
/// Earlier records, and those of runs that were killed, do not tell: then what was published last for the run's own cells from
/// its manifest counts.
pub(super) fn of_run(graph: &Graph, run: &PastRun) -> Copies {
    let keys: BTreeMap<&str, ActionKey> = run.results().collect();
    let recorded = run
        .outcome
        .as_ref()
        .and_then(|outcome| outcome.published.as_ref());
    let mut copies = Copies::new();
    if let (Some(published), Some(folder)) = (recorded, run.manifest().and_then(Utf8Path::parent)) {
        for copy in published {
            if let Some(key) = keys.get(copy.cell.as_str()) {
                copies.entry(*key).or_default().push(Copy {
                    cell: copy.cell.clone(),
                    port: copy.port.clone(),
                    path: folder.join(&copy.path),
                });
            }
        }
        return copies;
    }
    for (cell, key) in keys {
        let notes = graph.publications(&key).iter();
        let own = notes.filter(|note| {
            let manifest = note.manifest.as_deref();
            note.cell == cell && manifest.is_none_or(|manifest| Some(manifest) == run.manifest())
        });
        copies.entry(key).or_default().extend(own.map(noted));
    }
    copies
}

/// Those of these actions that are there now as they were published, whoever did.
pub(super) fn there<'a>(graph: &Graph, keys: impl Iterator<Item = &'a ActionKey>) -> Copies {
    keys.map(|key| {
        let notes = graph.publications(key).iter();
        let there = notes.filter(|note| note.remains() == Remains::Unaltered);
        (*key, there.map(noted).collect())
    })
    .collect()
}

fn noted(note: &Publication) -> Copy {
    Copy {
        cell: note.cell.clone(),
        port: note.port.clone(),
        path: note.path.clone(),
    }
}

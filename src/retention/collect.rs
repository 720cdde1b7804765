use std::collections::BTreeSet;

use camino::Utf8Path;
use provenir_api::Digest;

use super::reach::Survey;
use crate::record::RunStore;
use crate::store::{Catalogue, Remover, Store, StoreError, sweep};

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Results.
    pub results: usize,
    /// Objects.
    pub objects: usize,
    /// Bytes of objects, results, checkpoints and temporary files.
    pub bytes: u64,
    /// What was found to be in use meanwhile, and stays.
    pub spared: usize,
}

/// Removes what a survey found unwanted, and notes which results. Results go before their objects, so that at every moment what has a result has
/// its objects. What other processes begin to use meanwhile stays: an action that is being executed keeps its
/// result, an object that is named by then, or touched, stays.
pub fn collect(store: &Store, survey: &Survey) -> Result<Removed, StoreError> {
    let mut remover = Remover::new(store);
    let mut removed = Removed::default();
    let mut gone = Vec::new();
    let mut remove = || -> Result<(), StoreError> {
        for unwanted in &survey.results {
            let files = unwanted.files.iter();
            let files: Vec<(&Utf8Path, u64)> =
                files.map(|(path, written)| (path.as_ref(), *written)).collect();
            if remover.result(&unwanted.key, &files)? {
                gone.push(unwanted.key);
                removed.bytes += unwanted.own_bytes;
            } else {
                removed.spared += 1;
            }
        }
        Ok(())
    };
    let done = remove();
    removed.results = gone.len();
    let runs = RunStore::new(store.layout());
    let noted = runs.note_collected(&gone);
    done?;
    let named: BTreeSet<Digest> = Catalogue::read(store.layout())?
        .all()
        .flat_map(|stored| stored.result.outputs.iter().map(|artifact| artifact.object))
        .collect();
    for listed in &survey.objects {
        if !named.contains(&listed.object) && remover.object(listed)? {
            removed.objects += 1;
            removed.bytes += listed.size();
        } else {
            removed.spared += 1;
        }
    }
    for partial in &survey.partials {
        if remover.partial(&partial.key)? {
            removed.bytes += partial.size;
        } else {
            removed.spared += 1;
        }
    }
    sweep(store.layout())?;
    // On a full disk there is room now.
    noted.or_else(|_| runs.note_collected(&gone))?;
    removed.bytes += survey.abandoned.bytes;
    Ok(removed)
}

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;

use provenir_api::Digest;
use rayon::prelude::*;

use super::catalogue::{Catalogue, StoredObject, Unreadable, entries, objects};
use super::hash::is_object;
use super::lookup::stat;
use super::{ActionKey, Store, StoreError};
use super::{pin, publish};

/// What is to be verified.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Objects.
    pub objects: BTreeSet<Digest>,
    /// Results, with the objects that they name.
    pub results: BTreeSet<ActionKey>,
}

/// What a store was found to hold.
#[derive(Debug, Default)]
pub struct Verification {
    /// Objects that were read.
    pub objects: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Results that were read.
    pub results: usize,
    /// Objects whose bytes are not those of their name, and the actions that gave them.
    pub damaged: BTreeMap<Digest, Vec<ActionKey>>,
    /// Objects that a result names and that are not there, and the actions that gave them.
    pub missing: BTreeMap<Digest, Vec<ActionKey>>,
    /// Objects that are not there and that nothing computes again, and the actions that gave them: none but second results name
    /// them, which were kept for comparison, or what they were made from is gone, as an earlier measurement is.
    pub gone: BTreeMap<Digest, Vec<ActionKey>>,
    /// Of the damaged objects, those that none but second results name.
    pub damaged_seconds: BTreeSet<Digest>,
    /// Files that cannot be read or understood.
    pub unreadable: Vec<Unreadable>,
    /// Pins and notes of published copies that cannot be read or understood.
    pub notes: Vec<Unreadable>,
    /// Objects that no result names, and their length.
    pub orphaned: Vec<(Digest, u64)>,
}

impl Verification {
    /// Whether something is wrong: what no result names is not.
    pub fn is_bad(&self) -> bool {
        let flaws = [
            self.damaged.len(),
            self.missing.len(),
            self.unreadable.len(),
            self.notes.len(),
        ];
        flaws != [0; 4]
    }
}

/// What reading an object came to.
enum Reading {
    Intact(u64),
    Damaged(u64),
    /// Another process took it away meanwhile.
    Gone,
    Failed(String),
}

impl Store {
    /// Reads every object and every result, or those in the scope, on all processor cores. Changes nothing.
    pub fn verify(&self, scope: Option<&Scope>) -> Result<Verification, StoreError> {
        // Objects get their names before the result that names them: listed in this order, what is being committed
        // is not taken for missing.
        let (mut found, strays) = objects(self.layout())?;
        let catalogue = Catalogue::read(self.layout())?;
        let mut verification = Verification {
            unreadable: catalogue.unreadable.clone(),
            ..Verification::default()
        };
        if scope.is_some() {
            verification.unreadable.clear();
        }
        let mut named: BTreeMap<Digest, Vec<ActionKey>> = BTreeMap::new();
        for stored in catalogue.all() {
            if let Some(scope) = scope
                && !scope.results.contains(&stored.result.key)
            {
                continue;
            }
            verification.results += 1;
            for artifact in &stored.result.outputs {
                named.entry(artifact.object).or_default().push(stored.result.key);
            }
        }
        if let Some(scope) = scope {
            found.retain(|stored| {
                scope.objects.contains(&stored.object) || named.contains_key(&stored.object)
            });
            for object in &scope.objects {
                named.entry(*object).or_default();
            }
            // Of a result that cannot be read nothing is known but that.
            for key in &scope.results {
                let path = self.layout().result(key);
                let unread = catalogue.unreadable.iter().filter(|found| found.path == path);
                verification.unreadable.extend(unread.cloned());
            }
            add_producers(&catalogue, scope, &mut named);
        } else {
            verification.unreadable.extend(strays);
            verification.notes = self.unreadable_notes()?;
        }
        let lengths = catalogue.lengths();
        let read = |stored: &StoredObject| read(stored, lengths.get(&stored.object).copied());
        let readings: Vec<Reading> = found.par_iter().map(read).collect();
        let mut present = BTreeSet::new();
        for (stored, reading) in found.iter().zip(readings) {
            let (size, is_damaged) = match reading {
                Reading::Gone => continue,
                Reading::Failed(reason) => {
                    present.insert(stored.object);
                    verification.unreadable.push(Unreadable {
                        path: stored.path.clone(),
                        key: None,
                        reason,
                    });
                    continue;
                }
                Reading::Intact(size) => (size, false),
                Reading::Damaged(size) => (size, true),
            };
            present.insert(stored.object);
            verification.objects += 1;
            verification.bytes += size;
            match named.get(&stored.object) {
                makers if is_damaged => {
                    let makers = makers.cloned().unwrap_or_default();
                    verification.damaged.insert(stored.object, makers);
                }
                None => verification.orphaned.push((stored.object, size)),
                Some(_) => {}
            }
        }
        verification
            .unreadable
            .extend(wrong_lengths(&catalogue, scope, &found, &verification));
        let results = catalogue.results.values();
        let of_results: BTreeSet<Digest> = results
            .flat_map(|stored| stored.result.outputs.iter().map(|artifact| artifact.object))
            .collect();
        let seconds = catalogue.divergences.iter();
        let of_seconds: BTreeSet<Digest> = seconds
            .flat_map(|stored| stored.result.outputs.iter().map(|artifact| artifact.object))
            .filter(|object| !of_results.contains(object))
            .collect();
        let is_second = |object: &Digest| of_seconds.contains(object);
        let damaged = verification.damaged.keys().copied();
        verification.damaged_seconds = damaged.filter(is_second).collect();
        for (object, makers) in named {
            if present.contains(&object) || stat(&self.layout().object(&object))?.is_some() {
                continue;
            }
            verification.missing.insert(object, makers);
        }
        let obtainable = if verification.missing.is_empty() {
            BTreeSet::new()
        } else {
            obtainable(&catalogue, &present)
        };
        let (missing, gone) = std::mem::take(&mut verification.missing)
            .into_iter()
            .partition(|(object, _)| !is_second(object) && obtainable.contains(object));
        (verification.missing, verification.gone) = (missing, gone);
        Ok(verification)
    }
}

/// The objects that are there, or that computing actions again gives.
fn obtainable(catalogue: &Catalogue, present: &BTreeSet<Digest>) -> BTreeSet<Digest> {
    let mut objects = present.clone();
    let mut contents: BTreeSet<Digest> = BTreeSet::new();
    let mut waiting: Vec<_> = catalogue.results.values().map(|stored| &stored.result).collect();
    for artifact in catalogue.all().flat_map(|stored| &stored.result.outputs) {
        if present.contains(&artifact.object) {
            contents.insert(artifact.content);
        }
    }
    loop {
        let before = waiting.len();
        waiting.retain(|result| {
            let inputs = &result.action.inputs;
            let can_run = inputs.iter().all(|input| contents.contains(&input.content));
            if can_run {
                // What is volatile comes out otherwise; its own action is executed all the same.
                let again = result.outputs.iter().filter(|artifact| !artifact.volatile);
                contents.extend(again.map(|artifact| artifact.content));
                objects.extend(result.outputs.iter().map(|artifact| artifact.object));
            }
            !can_run
        });
        if waiting.len() == before {
            return objects;
        }
    }
}

impl Store {
    /// Pins and notes of published copies that cannot be read or understood.
    fn unreadable_notes(&self) -> Result<Vec<Unreadable>, StoreError> {
        let pins = entries(&self.layout().pins())?.into_iter().map(|path| {
            let flaw = pin::read(&path).err();
            (path, flaw)
        });
        let published = entries(&self.layout().published())?.into_iter().map(|path| {
            let flaw = publish::read(self.layout(), path.clone()).err();
            (path, flaw)
        });
        let flawed = pins.chain(published).filter_map(|(path, flaw)| {
            let reason = match flaw? {
                StoreError::Malformed { reason, .. } => reason,
                other => other.to_string(),
            };
            Some(Unreadable {
                path,
                key: None,
                reason,
            })
        });
        Ok(flawed.collect())
    }
}

/// Adds the actions that give the objects of a scope, so that it can be said whose they are.
fn add_producers(catalogue: &Catalogue, scope: &Scope, named: &mut BTreeMap<Digest, Vec<ActionKey>>) {
    for stored in catalogue.all() {
        for artifact in &stored.result.outputs {
            if scope.objects.contains(&artifact.object)
                && let Some(makers) = named.get_mut(&artifact.object)
                && !makers.contains(&stored.result.key)
            {
                makers.push(stored.result.key);
            }
        }
    }
}

/// Results that are wrong about the length of an object that is as it was stored.
fn wrong_lengths(
    catalogue: &Catalogue,
    scope: Option<&Scope>,
    found: &[StoredObject],
    verification: &Verification,
) -> Vec<Unreadable> {
    let sizes: BTreeMap<Digest, u64> = found
        .iter()
        .map(|stored| (stored.object, stored.size()))
        .collect();
    let mut wrong = Vec::new();
    for stored in catalogue.all() {
        if scope.is_some_and(|scope| !scope.results.contains(&stored.result.key)) {
            continue;
        }
        let artifacts = stored.result.outputs.iter();
        let mut differing = artifacts.filter(|artifact| {
            let size = sizes.get(&artifact.object);
            size.is_some_and(|size| *size != artifact.size)
                && !verification.damaged.contains_key(&artifact.object)
        });
        if let Some(artifact) = differing.next() {
            wrong.push(Unreadable {
                path: stored.path.clone(),
                key: Some(stored.result.key),
                reason: format!(
                    "it says that output {} has {} bytes, and its object has {}",
                    artifact.port, artifact.size, sizes[&artifact.object]
                ),
            });
        }
    }
    wrong
}

fn read(stored: &StoredObject, length: Option<u64>) -> Reading {
    match is_object(&stored.path, &stored.object, length) {
        Ok(true) => Reading::Intact(stored.size()),
        Ok(false) => Reading::Damaged(stored.size()),
        Err(error) if error.kind() == ErrorKind::NotFound => Reading::Gone,
        Err(error) => Reading::Failed(error.to_string()),
    }
}

//! Claims: which process executes which action at this moment.
//!
//! A claim is a file that only one process can create, so that an action does not run twice while its owner lives; who
//! comes second waits for the result. An owner renews its claims by touching them. A claim is void when its owner
//! is dead, or, where that cannot be seen from here, when it was not renewed for a whole lease as measured by the
//! observer's own clock.
//!
//! Correctness does not rest on claims: results are committed under names that are given once, whoever computed them.
//! A claim that is wrongly thought void costs a double run.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::durable::{displace_folder, rename_new, touch};
use super::owner::{Liveness, Owner};
use super::{ActionKey, Layout, Store, StoreError, regular};
use crate::clock;

/// A claim on which nothing was heard for this long, by an owner that cannot be seen, is void.
pub const LEASE: Duration = Duration::from_mins(1);
/// How often an owner renews its claims.
pub const RENEWAL: Duration = Duration::from_secs(10);

/// Longest claim file that is read.
const LONGEST: u64 = 4096;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    owner: Owner,
    /// Tells two claims of one owner apart.
    nonce: String,
}

/// A right to execute an action; given up when dropped.
#[derive(Debug)]
pub struct Claim {
    path: Utf8PathBuf,
    content: Content,
}

/// The answer to a request for a claim.
#[derive(Debug)]
pub enum Claimed {
    /// It is ours.
    Ours(Claim),
    /// Another process has it.
    Theirs(Owner),
}

/// Requests claims, and remembers for how long those of others did not move.
pub struct Claims<'a> {
    store: &'a Store,
    folder: Utf8PathBuf,
    lease: Duration,
    observed: BTreeMap<ActionKey, Observation>,
}

#[derive(Debug)]
struct Observation {
    content: Content,
    modified: (i64, i64),
    since: Instant,
}

impl<'a> Claims<'a> {
    /// Claims of a store.
    pub fn new(store: &'a Store) -> Self {
        Self::with_lease(store, LEASE)
    }

    fn with_lease(store: &'a Store, lease: Duration) -> Self {
        Self {
            store,
            folder: store.layout().claims(),
            lease,
            observed: BTreeMap::new(),
        }
    }

    /// Requests the claim on an action; does not wait.
    pub fn request(&mut self, key: &ActionKey) -> Result<Claimed, StoreError> {
        let failed = || StoreError::io("cannot claim a cell");
        let path = self.folder.join(key.hex());
        let unnamed = self.store.workspace()?.file();
        let content = Content {
            owner: Owner::current().clone(),
            nonce: unnamed.file_name().unwrap_or_default().to_owned(),
        };
        let bytes = serde_json::to_vec(&content).map_err(|error| failed()(error.into()))?;
        fs_err::create_dir_all(&self.folder).map_err(failed())?;
        fs_err::write(&unnamed, bytes).map_err(failed())?;
        // Each turn ends with a claim or removes a void one; contenders can only make it turn as often as there are
        // contenders.
        let answer = loop {
            match rename_new(&unnamed, &path) {
                Ok(true) => {
                    self.observed.remove(key);
                    return Ok(Claimed::Ours(Claim { path, content }));
                }
                Ok(false) => {}
                Err(error) => break Err(failed()(error)),
            }
            match self.judge(key, &path) {
                Ok(Some(owner)) => break Ok(Claimed::Theirs(owner)),
                Ok(None) => {}
                Err(error) => break Err(error),
            }
        };
        remove_if_there(&unnamed).map_err(failed())?;
        answer
    }

    /// Removes the claims of dead owners, so that they do not pile up where nobody asks for their actions again.
    pub fn sweep(&mut self) -> Result<(), StoreError> {
        let failed = || StoreError::io("cannot clear away old claims");
        regular::refuse_link(&self.folder)?;
        for (name, path) in entries(&self.folder).map_err(failed())? {
            if let Ok(key) = name.parse::<ActionKey>() {
                self.judge(&key, &path)?;
            } else if is_marker(&name)
                && marker_owner(&path).is_none_or(|owner| owner.liveness() == Liveness::Dead)
            {
                remove_if_there(&path).map_err(failed())?;
            }
        }
        Ok(())
    }

    /// The owner of a claim that stands; `None` where the claim is gone, perhaps because it was void and removed here.
    fn judge(&mut self, key: &ActionKey, path: &Utf8Path) -> Result<Option<Owner>, StoreError> {
        let Some((content, modified)) = read(path).map_err(StoreError::io("cannot read a claim"))? else {
            return Ok(None);
        };
        let void = match content.as_ref().map(|content| content.owner.liveness()) {
            Some(Liveness::Alive) => false,
            Some(Liveness::Dead) => true,
            // A file that is no claim is one to nobody here: it is given the same time as an owner that cannot be seen.
            Some(Liveness::Unknown) | None => self.is_overdue(key, content.as_ref(), modified),
        };
        if void {
            self.observed.remove(key);
            self.remove(path, content.as_ref())?;
            return Ok(None);
        }
        Ok(Some(
            content.map_or_else(Owner::unreadable, |content| content.owner),
        ))
    }

    fn is_overdue(&mut self, key: &ActionKey, content: Option<&Content>, modified: (i64, i64)) -> bool {
        let content = content.cloned().unwrap_or_else(|| Content {
            owner: Owner::unreadable(),
            nonce: String::new(),
        });
        match self.observed.get(key) {
            Some(seen) if seen.content == content && seen.modified == modified => {
                seen.since.elapsed() > self.lease
            }
            _ => {
                self.observed.insert(
                    *key,
                    Observation {
                        content,
                        modified,
                        since: clock::instant(),
                    },
                );
                false
            }
        }
    }

    /// Removes a void claim. Who finds it void at the same time must not remove the claim that comes after it, so that
    /// only the holder of a marker for this very claim removes it, and only while it is still there.
    fn remove(&self, path: &Utf8Path, judged: Option<&Content>) -> Result<(), StoreError> {
        let failed = || StoreError::io("cannot remove a void claim");
        let nonce = judged.map_or("unreadable", |content| content.nonce.as_str());
        let marker = Utf8PathBuf::from(format!("{path}.{nonce}"));
        let unnamed = self.store.workspace()?.file();
        let bytes = serde_json::to_vec(Owner::current()).map_err(|error| failed()(error.into()))?;
        fs_err::write(&unnamed, bytes).map_err(failed())?;
        if !rename_new(&unnamed, &marker).map_err(failed())? {
            fs_err::remove_file(unnamed).map_err(failed())?;
            if marker_owner(&marker).is_none_or(|holder| holder.liveness() != Liveness::Alive) {
                remove_if_there(&marker).map_err(failed())?;
            }
            return Ok(());
        }
        let found = read(path).map_err(failed())?.map(|(content, _)| content);
        if found.as_ref().is_some_and(|found| found.as_ref() == judged)
            && !displace_folder(path).map_err(failed())?
        {
            remove_if_there(path).map_err(failed())?;
        }
        remove_if_there(&marker).map_err(failed())
    }
}

/// Whether a file is named as a marker is: by the key and the nonce of the claim that it is for.
fn is_marker(name: &str) -> bool {
    name.split_once('.')
        .is_some_and(|(key, nonce)| key.parse::<ActionKey>().is_ok() && !nonce.is_empty())
}

fn marker_owner(marker: &Utf8Path) -> Option<Owner> {
    match regular::read(marker, LONGEST) {
        Ok(regular::Content::Bytes(bytes)) => serde_json::from_slice(&bytes).ok(),
        _ => None,
    }
}

/// Names and paths of the files in the folder of claims.
fn entries(folder: &Utf8Path) -> std::io::Result<Vec<(String, Utf8PathBuf)>> {
    let entries = match fs_err::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        if let Ok(name) = entry?.file_name().into_string() {
            let path = folder.join(&name);
            found.push((name, path));
        }
    }
    Ok(found)
}

fn remove_if_there(path: &Utf8Path) -> std::io::Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Claim {
    /// Says that the owner still lives.
    pub fn renew(&self) -> Result<(), StoreError> {
        touch(&self.path).map_err(StoreError::io("cannot renew a claim"))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Where it was taken from us because we were thought dead, the claim there is another's. A claim that cannot
        // be removed is void as soon as this process has ended.
        if let Ok(Some((Some(content), _))) = read(&self.path)
            && content == self.content
        {
            fs_err::remove_file(&self.path).ok();
        }
    }
}

/// Claims of a store that stand at this moment, by action: for people, not for decisions.
pub fn standing(layout: &Layout) -> Result<Vec<(ActionKey, Owner)>, StoreError> {
    let failed = || StoreError::io("cannot read the claims");
    let mut standing = Vec::new();
    for (name, path) in entries(&layout.claims()).map_err(failed())? {
        if let Ok(key) = name.parse::<ActionKey>()
            && let Some((Some(content), _)) = read(&path).map_err(failed())?
            && content.owner.liveness() != Liveness::Dead
        {
            standing.push((key, content.owner));
        }
    }
    standing.sort_by_key(|(key, _)| *key);
    Ok(standing)
}

/// A claim file's content, where it is one, and when it was last renewed; `None` where there is no file.
#[expect(
    clippy::type_complexity,
    reason = "absence, unreadable content and time are three different things"
)]
fn read(path: &Utf8Path) -> std::io::Result<Option<(Option<Content>, (i64, i64))>> {
    use std::os::unix::fs::MetadataExt;

    // Links are not followed: one that leads nowhere is in the way of a claim all the same.
    let metadata = match fs_err::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let modified = (metadata.mtime(), metadata.mtime_nsec());
    if !metadata.is_file() {
        return Ok(Some((None, modified)));
    }
    match regular::read(path, LONGEST)? {
        regular::Content::Absent => Ok(None),
        regular::Content::Unfit(_) => Ok(Some((None, modified))),
        regular::Content::Bytes(bytes) => {
            let content = serde_json::from_slice::<Content>(&bytes).ok();
            // It becomes part of a file's name.
            let plain = |content: &Content| {
                !content.nonce.is_empty()
                    && content
                        .nonce
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            };
            Ok(Some((content.filter(plain), modified)))
        }
    }
}

#[cfg(test)]
mod tests;

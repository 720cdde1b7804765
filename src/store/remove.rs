//! Taking results, objects and checkpoints out of the store, beside processes that use it.

use std::io::ErrorKind;

use camino::Utf8Path;

use super::catalogue::{StoredObject, entries};
use super::claim::{Claimed, Claims};
use super::durable::rename_new;
use super::hash::is_object;
use super::lookup::stat;
use super::stamp::Stamp;
use super::{ActionKey, ActionResult, Layout, Store, StoreError};

/// A claim on every action that is removed would be a file each: one `Claims` serves them all.
pub struct Remover<'a> {
    store: &'a Store,
    claims: Claims<'a>,
}

/// Checkpoints of an action that was interrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The action.
    pub key: ActionKey,
    /// Their bytes.
    pub size: u64,
    /// When the last of them was written, in nanoseconds since the epoch.
    pub modified: u64,
}

impl<'a> Remover<'a> {
    /// Removes from a store.
    pub fn new(store: &'a Store) -> Self {
        Self {
            store,
            claims: Claims::new(store),
        }
    }

    /// Removes what an action gave, second results included, but not the objects: files, and when each was written. While
    /// another process executes the action, and where it was executed since, it is left as it is. Says whether it was removed.
    pub fn result(&mut self, key: &ActionKey, files: &[(&Utf8Path, u64)]) -> Result<bool, StoreError> {
        let Claimed::Ours(_claim) = self.claims.request(key)? else {
            return Ok(false);
        };
        for (path, written) in files {
            if stat(path)?.is_some_and(|now| now.modified != *written) {
                return Ok(false);
            }
        }
        for (path, _) in files {
            remove_file(path)?;
        }
        Ok(true)
    }

    /// Removes a file that should hold a result of an action and cannot be understood, or is wrong about its objects, unless another process executes the
    /// action, or has replaced the file meanwhile. Says whether it was removed.
    pub fn unreadable(&mut self, key: &ActionKey, path: &Utf8Path) -> Result<bool, StoreError> {
        let Claimed::Ours(_claim) = self.claims.request(key)? else {
            return Ok(false);
        };
        match ActionResult::read(path, key) {
            Err(StoreError::Malformed { .. }) => {
                remove_file(path)?;
                Ok(true)
            }
            Ok(Some(result)) if self.is_wrong(&result)? => {
                remove_file(path)?;
                Ok(true)
            }
            other => other.map(|_| false),
        }
    }

    /// Whether a result says another length of an object that is as it was stored.
    fn is_wrong(&self, result: &ActionResult) -> Result<bool, StoreError> {
        for artifact in &result.outputs {
            let path = self.store.layout().object(&artifact.object);
            let differs = stat(&path)?.is_some_and(|found| found.size != artifact.size);
            let failed = StoreError::io("cannot read an object");
            if differs && is_object(&path, &artifact.object, Some(artifact.size)).map_err(failed)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes an object, unless it was stored again or found to be wanted since it was listed: a commit that finds an
    /// object there touches it. It is taken out of its place first and looked at then, so that no commit can come in
    /// between. Says whether it was removed.
    pub fn object(&mut self, listed: &StoredObject) -> Result<bool, StoreError> {
        let failed = || StoreError::io("cannot remove an object");
        let aside = self.store.workspace()?.file();
        match fs_err::rename(&listed.path, &aside) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            other => other.map_err(failed())?,
        }
        let now = Stamp::of(&fs_err::symlink_metadata(&aside).map_err(failed())?);
        if now.modified != listed.stamp.modified || now.inode != listed.stamp.inode {
            // Where it was stored once more meanwhile, that one is as good.
            rename_new(&aside, &listed.path).map_err(failed())?;
            remove_file(&aside)?;
            return Ok(false);
        }
        remove_file(&aside)?;
        Ok(true)
    }

    /// Removes the checkpoints of an action, unless another process executes it. Says whether they were removed.
    pub fn partial(&mut self, key: &ActionKey) -> Result<bool, StoreError> {
        let Claimed::Ours(_claim) = self.claims.request(key)? else {
            return Ok(false);
        };
        match fs_err::remove_dir_all(self.store.layout().partial(key)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::io("cannot remove checkpoints")(error)),
        }
    }
}

/// Every action with checkpoints, by key.
pub fn partials(layout: &Layout) -> Result<Vec<Partial>, StoreError> {
    let failed = || StoreError::io("cannot read the checkpoints");
    let mut found = Vec::new();
    for folder in entries(&layout.partials())? {
        let Some(key) = folder.file_name().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let mut partial = Partial {
            key,
            size: 0,
            modified: 0,
        };
        for path in std::iter::once(folder.clone()).chain(entries(&folder)?) {
            match fs_err::symlink_metadata(&path) {
                Ok(metadata) => {
                    let stamp = Stamp::of(&metadata);
                    partial.modified = partial.modified.max(stamp.modified);
                    partial.size += if metadata.is_file() { stamp.size } else { 0 };
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(failed()(error)),
            }
        }
        found.push(partial);
    }
    found.sort_by_key(|partial| partial.key);
    Ok(found)
}

fn remove_file(path: &Utf8Path) -> Result<(), StoreError> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(StoreError::io("cannot remove a file of the store")(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use provenir_api::Digest;

    use super::super::durable::touch;
    use super::super::result::tests::action;
    use super::*;

    /// An object that was stored an hour ago, as it is listed.
    fn listed(store: &Store, bytes: &[u8]) -> StoredObject {
        let path = store.layout().object(&Digest::of(bytes));
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, bytes).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test needs an old file")]
        let time = SystemTime::now() - Duration::from_hours(1);
        let file = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
        file.into_file().set_modified(time).unwrap();
        let mut objects = store.objects().unwrap().into_iter();
        objects.find(|found| found.path == path).unwrap()
    }

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap().join("cache");
        (folder, Store::create(root).unwrap())
    }

    #[test]
    fn an_object_goes_unless_it_was_touched_or_stored_again_since_it_was_listed() {
        let (_folder, store) = store();
        let mut remover = Remover::new(&store);
        let plain = listed(&store, b"plain");
        assert!(remover.object(&plain).unwrap());
        assert!(!plain.path.exists());
        assert!(!remover.object(&plain).unwrap(), "it is gone");
        let touched = listed(&store, b"touched");
        touch(&touched.path).unwrap();
        assert!(!remover.object(&touched).unwrap());
        assert_eq!(fs_err::read(&touched.path).unwrap(), b"touched");
        let stored = listed(&store, b"stored");
        fs_err::remove_file(&stored.path).unwrap();
        fs_err::write(&stored.path, b"stored").unwrap();
        assert!(!remover.object(&stored).unwrap());
        assert_eq!(fs_err::read(&stored.path).unwrap(), b"stored");
    }

    #[test]
    fn what_somebody_executes_stays() {
        let (_folder, store) = store();
        let key = action(1).key();
        let result = store.layout().result(&key);
        let checkpoint = store.layout().partial(&key).join("checkpoint");
        for path in [&result, &checkpoint] {
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "x").unwrap();
        }
        let written = stat(&result).unwrap().unwrap().modified;
        let mut remover = Remover::new(&store);
        let claim = Claims::new(&store).request(&key).unwrap();
        assert!(matches!(claim, Claimed::Ours(_)));
        assert!(!remover.result(&key, &[(&result, written)]).unwrap() && result.exists());
        assert!(!remover.partial(&key).unwrap() && checkpoint.exists());
        drop(claim);
        // What was written since is another.
        assert!(!remover.result(&key, &[(&result, written + 1)]).unwrap() && result.exists());
        assert!(remover.result(&key, &[(&result, written)]).unwrap() && !result.exists());
        assert_eq!(partials(store.layout()).unwrap()[0].size, 1);
        assert!(remover.partial(&key).unwrap() && !checkpoint.exists());
        assert_eq!(fs_err::read_dir(store.layout().claims()).unwrap().count(), 0);
    }
}

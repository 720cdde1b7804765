use camino::Utf8Path;
use provenir_api::Digest;

use super::hash::hash_file;
use super::stamp::Stamp;
use super::{Store, StoreError};

impl Store {
    /// The digest of a source file's bytes: remembered where its stamp is the one seen last, and never remembered of a
    /// file that is young enough to be written to unseen.
    pub fn source(&self, path: &Utf8Path) -> Result<Digest, StoreError> {
        let failed = || StoreError::io("cannot read a source file");
        let stamp = Stamp::of(&fs_err::metadata(path).map_err(failed())?);
        if let Some((remembered, digest)) = self.index().source(path)
            && remembered == stamp
        {
            return Ok(digest);
        }
        let (digest, _) = hash_file(path).map_err(failed())?;
        let after = Stamp::of(&fs_err::metadata(path).map_err(failed())?);
        if after == stamp && stamp.is_settled() {
            self.index().remember_source(path, stamp, digest);
        }
        Ok(digest)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn set_age(path: &Utf8Path, age: Duration) {
        #[expect(clippy::disallowed_methods, reason = "the test needs an old file")]
        let time = SystemTime::now() - age;
        fs_err::OpenOptions::new()
            .write(true)
            .open(path)
            .unwrap()
            .into_file()
            .set_modified(time)
            .unwrap();
    }

    #[test]
    fn a_change_is_seen_even_where_size_and_time_are_equal() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let store = Store::create(root.join("cache")).unwrap();
        let path = root.join("source");
        for text in ["one", "two", "three"] {
            fs_err::write(&path, text).unwrap();
            set_age(&path, Duration::from_secs(100));
            assert_eq!(store.source(&path).unwrap(), Digest::of(text.as_bytes()));
            store.flush();
        }
    }
}

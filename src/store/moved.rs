//! Paths that were noted before a project was moved together with its store.

use camino::{Utf8Path, Utf8PathBuf};

use super::Layout;

impl Layout {
    /// The folder that a store lies in, absolute and through no link: the project's, as a rule.
    pub fn surroundings(&self) -> Option<Utf8PathBuf> {
        let root = camino::absolute_utf8(self.root()).ok()?;
        let folder = root.parent()?;
        Some(folder.canonicalize_utf8().unwrap_or_else(|_| folder.to_owned()))
    }

    /// What a path is now that was noted while the store lay in the folder `then`: where nothing is there any more, and
    /// something is in the same place seen from the store, that.
    pub fn moved(&self, path: Utf8PathBuf, then: Option<&Utf8Path>) -> Utf8PathBuf {
        let Some((then, now)) = then.zip(self.surroundings()) else {
            return path;
        };
        if then == now || path.exists() {
            return path;
        }
        match path.strip_prefix(then) {
            Ok(rest) if now.join(rest).exists() => now.join(rest),
            _ => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moved_with_the_store_is_found_and_nothing_else_is_taken_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let now = Utf8Path::from_path(folder.path())
            .unwrap()
            .canonicalize_utf8()
            .unwrap();
        let layout = Layout::new(now.join("cache"));
        fs_err::write(now.join("there"), "").unwrap();
        let moved = |path: &str| layout.moved(path.into(), Some(Utf8Path::new("/no/such/place")));
        assert_eq!(moved("/no/such/place/there"), now.join("there"));
        for unmoved in ["/no/such/place/absent", "/no/such/other/there", "/"] {
            assert_eq!(moved(unmoved), unmoved);
        }
        let here = now.join("there");
        assert_eq!(layout.moved(here.clone(), Some(Utf8Path::new("/"))), here);
        assert_eq!(
            layout.moved("/no/such/place/there".into(), None),
            "/no/such/place/there"
        );
    }
}

use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;

use super::durable::unique;
use super::{ActionKey, StoreError};

/// First line of every file that marks a folder as a cache, by convention (<https://bford.info/cachedir/>).
const SIGNATURE: &str = "Signature: 8a477f597d28d172789f06886806bc55";
/// The line that tells our cache folders from those of other programs.
const OURS: &str = "# This is the store of Provenir, a pipeline engine.";

/// Its name.
const TAG: &str = "CACHEDIR.TAG";

const CACHEDIR_TAG: &str = include_str!("../../cache/CACHEDIR.TAG");
const README: &str = include_str!("../../cache/README.md");
const GITIGNORE: &str = include_str!("../../cache/.gitignore");

/// A kind of file in the store, with the version of its format.
struct Bucket {
    name: &'static str,
    version: u32,
}

const OBJECTS: Bucket = Bucket {
    name: "objects",
    version: 1,
};
const RESULTS: Bucket = Bucket {
    name: "results",
    version: 1,
};
const PARTIAL: Bucket = Bucket {
    name: "partial",
    version: 1,
};
const RUNS: Bucket = Bucket {
    name: "runs",
    version: 1,
};
const CLAIMS: Bucket = Bucket {
    name: "claims",
    version: 1,
};
const PUBLISHED: Bucket = Bucket {
    name: "published",
    version: 1,
};
const PINS: Bucket = Bucket {
    name: "pins",
    version: 1,
};
const INDEX: Bucket = Bucket {
    name: "index",
    version: 1,
};

const BUCKETS: [Bucket; 8] = [OBJECTS, RESULTS, PARTIAL, RUNS, CLAIMS, PUBLISHED, PINS, INDEX];

impl Bucket {
    fn folder(&self) -> String {
        format!("{}-v{}", self.name, self.version)
    }
}

/// The folders and files of a store, by name. Nothing here reads or writes an artifact.
#[derive(Clone, Debug)]
pub struct Layout {
    root: Utf8PathBuf,
    objects: Utf8PathBuf,
    results: Utf8PathBuf,
}

impl Layout {
    /// The layout below a folder, which need not exist.
    pub fn new(root: impl Into<Utf8PathBuf>) -> Self {
        let root = root.into();
        Self {
            objects: root.join(OBJECTS.folder()),
            results: root.join(RESULTS.folder()),
            root,
        }
    }

    /// The nearest folder named `cache` that carries our tag, from `folder` upwards.
    pub fn find(folder: &Utf8Path) -> Option<Utf8PathBuf> {
        folder
            .ancestors()
            .map(|ancestor| ancestor.join("cache"))
            .find(|candidate| is_ours(candidate))
    }

    /// Makes the folder with the files that say what it is, where they are not there yet. A folder with other things in
    /// it is left alone: it would disappear from git with all that it holds.
    pub fn create(&self) -> Result<(), StoreError> {
        let failed = || StoreError::io("cannot create the store");
        if is_ours(&self.root) {
            return Ok(());
        }
        fs_err::create_dir_all(&self.root).map_err(failed())?;
        self.refuse_foreign()?;
        // From here on it is known as a store, whatever happens: see `is_folder_of_ours`. No file is ever there in part, and the tag,
        // which says that all is done, comes last.
        fs_err::create_dir_all(&self.objects).map_err(failed())?;
        fs_err::create_dir_all(self.tmp()).map_err(failed())?;
        for (name, text) in [
            ("README.md", README),
            (".gitignore", GITIGNORE),
            (TAG, CACHEDIR_TAG),
        ] {
            let path = self.root.join(name);
            let kept = name != TAG && fs_err::metadata(&path).is_ok_and(|found| found.len() > 0);
            if !kept {
                let written = unique(&self.tmp());
                fs_err::write(&written, text).map_err(failed())?;
                fs_err::rename(written, path).map_err(failed())?;
            }
        }
        Ok(())
    }

    /// That the folder, which is there, is a store or may become one, because it holds nothing else; writes nothing.
    pub fn refuse_foreign(&self) -> Result<(), StoreError> {
        if is_ours(&self.root) {
            return Ok(());
        }
        let failed = || StoreError::io("cannot read the store");
        let mut holds_others = false;
        for entry in fs_err::read_dir(&self.root).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            if is_folder_of_ours(&entry.file_name().to_string_lossy(), &entry.file_type()) {
                return Ok(());
            }
            // An index is derived data, and says nothing of what lies beside it.
            holds_others |= entry.path() != self.index();
        }
        if holds_others {
            return Err(StoreError::NotAStore {
                path: self.root.clone(),
            });
        }
        Ok(())
    }

    /// Whether the folder is one that a store was made in.
    pub fn is_store(&self) -> bool {
        let mut entries = self.root.read_dir_utf8().into_iter().flatten().flatten();
        is_ours(&self.root) || entries.any(|entry| is_folder_of_ours(entry.file_name(), &entry.file_type()))
    }

    /// Folders of the store that a newer version of Provenir wrote beside ours.
    pub fn newer(&self) -> Result<Vec<String>, StoreError> {
        let entries = match fs_err::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io("cannot read the store")(error)),
        };
        let mut newer = Vec::new();
        for entry in entries {
            let name = entry
                .map_err(StoreError::io("cannot read the store"))?
                .file_name();
            let Some(name) = name.to_str() else { continue };
            let stem = name.split('.').next().unwrap_or(name);
            if let Some((bucket, version)) = stem.rsplit_once("-v")
                && let Some(known) = BUCKETS.iter().find(|known| known.name == bucket)
                && version
                    .parse::<u32>()
                    .is_ok_and(|version| version > known.version)
            {
                newer.push(name.to_owned());
            }
        }
        newer.sort();
        Ok(newer)
    }

    /// The store's folder.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// Where an object's bytes are, or would be.
    pub fn object(&self, digest: &Digest) -> Utf8PathBuf {
        sharded(&self.objects, &digest.hex(), "")
    }

    /// Where the result of an action is, or would be.
    pub fn result(&self, key: &ActionKey) -> Utf8PathBuf {
        sharded(&self.results, &key.hex(), ".json")
    }

    /// Where a second, different result of an action is kept; named by its own digest.
    pub fn divergence(&self, key: &ActionKey, result: &Digest) -> Utf8PathBuf {
        sharded(
            &self.results,
            &key.hex(),
            &format!(".{}.divergence.json", result.short()),
        )
    }

    /// All objects.
    pub fn objects(&self) -> &Utf8Path {
        &self.objects
    }

    /// All results.
    pub fn results(&self) -> &Utf8Path {
        &self.results
    }

    /// Checkpoints of an action that runs or was interrupted.
    pub fn partial(&self, key: &ActionKey) -> Utf8PathBuf {
        self.partials().join(key.hex())
    }

    /// Checkpoints of all actions.
    pub fn partials(&self) -> Utf8PathBuf {
        self.root.join(PARTIAL.folder())
    }

    /// Records of runs.
    pub fn runs(&self) -> Utf8PathBuf {
        self.root.join(RUNS.folder())
    }

    /// Who executes which action.
    pub fn claims(&self) -> Utf8PathBuf {
        self.root.join(CLAIMS.folder())
    }

    /// What was published where.
    pub fn published(&self) -> Utf8PathBuf {
        self.root.join(PUBLISHED.folder())
    }

    /// Results that a person wants kept.
    pub fn pins(&self) -> Utf8PathBuf {
        self.root.join(PINS.folder())
    }

    /// Where files are written before they get their names.
    pub fn tmp(&self) -> Utf8PathBuf {
        self.root.join("tmp")
    }

    /// The index.
    pub fn index(&self) -> Utf8PathBuf {
        self.root.join(format!("{}.sqlite", INDEX.folder()))
    }
}

fn sharded(folder: &Utf8Path, hex: &str, suffix: &str) -> Utf8PathBuf {
    let mut path = String::with_capacity(folder.as_str().len() + hex.len() + suffix.len() + 5);
    for part in [folder.as_str(), "/", &hex[..2], "/", hex, suffix] {
        path.push_str(part);
    }
    path.into()
}

/// Whether an entry of a folder is a folder that only stores have. The index is none: it may have been written into a folder
/// of somebody else's.
fn is_folder_of_ours(name: &str, kind: &std::io::Result<std::fs::FileType>) -> bool {
    kind.as_ref().is_ok_and(std::fs::FileType::is_dir) && BUCKETS.iter().any(|bucket| bucket.folder() == name)
}

fn is_ours(folder: &Utf8Path) -> bool {
    const LONGEST: u64 = 4096;
    let path = folder.join(TAG);
    // A hostile tag may be a device or endless; only a short regular file is read.
    let short = fs_err::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= LONGEST);
    short
        && fs_err::read_to_string(&path)
            .is_ok_and(|text| text.starts_with(SIGNATURE) && text.lines().any(|line| line.trim_end() == OURS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_tag_is_found_upwards_and_a_foreign_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let nested = root.join("a/b");
        fs_err::create_dir_all(nested.join("cache")).unwrap();
        fs_err::write(nested.join("cache/CACHEDIR.TAG"), format!("{SIGNATURE}\n")).unwrap();
        assert_eq!(Layout::find(&nested), None);
        Layout::new(root.join("cache")).create().unwrap();
        assert_eq!(Layout::find(&nested), Some(root.join("cache")));
    }

    #[test]
    fn a_folder_with_other_things_in_it_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs_err::write(root.join("thesis.tex"), "").unwrap();
        assert!(matches!(
            Layout::new(root).create(),
            Err(StoreError::NotAStore { .. })
        ));
        assert_eq!(fs_err::read_dir(root).unwrap().count(), 1);
        // An index that was once written beside them does not make them ours.
        fs_err::write(root.join("index-v1.sqlite"), "").unwrap();
        assert!(matches!(
            Layout::new(root).create(),
            Err(StoreError::NotAStore { .. })
        ));
        assert!(!Layout::new(root).is_store());
        // A store that lost its tag is still one.
        fs_err::create_dir(root.join("objects-v1")).unwrap();
        Layout::new(root).create().unwrap();
        assert!(root.join("CACHEDIR.TAG").is_file());
    }

    #[test]
    fn a_store_that_was_begun_and_not_finished_is_finished() {
        for begun in [
            &[][..],
            &["objects-v1"],
            &["objects-v1", "tmp", "README.md", "CACHEDIR.TAG"],
        ] {
            let folder = tempfile::tempdir().unwrap();
            let root = Utf8Path::from_path(folder.path()).unwrap();
            for name in begun {
                if name.contains(char::is_uppercase) {
                    fs_err::write(root.join(name), "").unwrap();
                } else {
                    fs_err::create_dir(root.join(name)).unwrap();
                }
            }
            Layout::new(root).create().unwrap();
            assert!(is_ours(root));
            assert_eq!(fs_err::read_to_string(root.join("README.md")).unwrap(), README);
            assert_eq!(fs_err::read_dir(root.join("tmp")).unwrap().count(), 0);
        }
    }

    #[test]
    fn only_newer_versions_are_newer() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for name in [
            "objects-v1",
            "objects-v2",
            "index-v12.sqlite",
            "other-v9",
            "results-vx",
        ] {
            fs_err::create_dir(root.join(name)).unwrap();
        }
        assert_eq!(
            Layout::new(root).newer().unwrap(),
            ["index-v12.sqlite", "objects-v2"]
        );
        assert!(Layout::new(root.join("absent")).newer().unwrap().is_empty());
    }
}

//! Files outside the store that parameters name.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use fs_err as fs;
use provenir_api::{Digest, Problem, Source, schema};
use provenir_table::FILE_LIMIT;

use crate::number::grouped_u64;

/// What source files held that may not be there any more, by absolute path without `.` and `..`.
pub type RememberedSources = BTreeMap<Utf8PathBuf, Digest>;

/// What was found out about source files; each is looked at once.
pub(super) struct SourceFiles<'a> {
    folder: Utf8PathBuf,
    /// Files that need not be there.
    remembered: &'a RememberedSources,
    seen: BTreeMap<Utf8PathBuf, Option<(String, Option<String>)>>,
    /// The files that are not there and need not be.
    gone: RememberedSources,
}

impl<'a> SourceFiles<'a> {
    /// Source paths are relative to `folder`.
    pub(super) fn new(folder: &Utf8Path, remembered: &'a RememberedSources) -> Self {
        Self {
            folder: folder.to_owned(),
            remembered,
            seen: BTreeMap::new(),
            gone: RememberedSources::new(),
        }
    }

    /// Why the file cannot be read, if so.
    pub(super) fn problem(&mut self, source: &Source) -> Option<Problem> {
        if !self.seen.contains_key(&source.path) {
            let found = self.examine(&source.path);
            self.seen.insert(source.path.clone(), found);
        }
        let (message, help) = self.seen[&source.path].as_ref()?;
        let mut problem = Problem::new(source.pointer.clone(), message.clone());
        problem.help.clone_from(help);
        Some(problem)
    }

    fn examine(&mut self, path: &Utf8Path) -> Option<(String, Option<String>)> {
        let full = normal(&self.folder.join(path));
        if let Some(content) = self.remembered.get(&full)
            && matches!(fs::metadata(&full), Err(error) if error.kind() == io::ErrorKind::NotFound)
        {
            self.gone.insert(full, *content);
            return None;
        }
        examine(&self.folder, path)
    }

    /// The files that are not there, with what they held.
    pub(super) fn gone(self) -> RememberedSources {
        self.gone
    }

    /// Every source file that was named, absolute, without `.` and `..`.
    pub(super) fn paths(&self) -> impl Iterator<Item = Utf8PathBuf> {
        self.seen.keys().map(|path| normal(&self.folder.join(path)))
    }
}

fn examine(folder: &Utf8Path, path: &Utf8Path) -> Option<(String, Option<String>)> {
    if path.as_str().is_empty() {
        return Some(("the path of a file must not be empty".to_owned(), None));
    }
    let full = folder.join(path);
    match fs::metadata(&full) {
        Ok(metadata) if metadata.is_file() && metadata.len() > FILE_LIMIT => Some((
            format!(
                "`{path}` holds {} bytes; at most {} are read",
                grouped_u64(metadata.len()),
                grouped_u64(FILE_LIMIT)
            ),
            None,
        )),
        Ok(metadata) if metadata.is_file() => None,
        Ok(metadata) if metadata.is_dir() => Some((
            format!("`{path}` is a folder, not a file"),
            Some(format!("looked at {}", normal(&full))),
        )),
        Ok(_) => Some((format!("`{path}` is not a file"), None)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let near = neighbour(&full).map(|name| format!("did you mean `{}`?", path.with_file_name(name)));
            let looked = format!("looked for {}", normal(&full));
            Some((format!("there is no file `{path}`"), Some(near.unwrap_or(looked))))
        }
        Err(error) => Some((format!("`{path}` cannot be read: {}", cause(&error)), None)),
    }
}

/// The file beside a missing one whose name is most like it: the same name with another extension, or a name like it
/// with the same extension.
pub(crate) fn neighbour(path: &Utf8Path) -> Option<String> {
    const LOOKED_AT: usize = 1000;
    let folder = path.parent().filter(|folder| !folder.as_str().is_empty());
    let entries = fs::read_dir(folder.unwrap_or(Utf8Path::new("."))).ok()?;
    let mut names: Vec<Utf8PathBuf> = entries
        .take(LOOKED_AT)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .map(Utf8PathBuf::from)
        // A link to nothing is there, and is no file.
        .filter(|name| Some(name.as_str()) != path.file_name())
        .collect();
    names.sort();
    let stem = path.file_stem()?;
    let same_stem = names.iter().find(|name| name.file_stem() == Some(stem));
    let alike = || {
        let same_extension = names.iter().filter(|name| name.extension() == path.extension());
        let near = schema::nearest(stem, same_extension.clone().filter_map(|name| name.file_stem()))?;
        same_extension
            .into_iter()
            .find(|name| name.file_stem() == Some(near))
    };
    same_stem.or_else(alike).map(|name| name.as_str().to_owned())
}

/// What the operating system said, without the path that the message names already.
pub(crate) fn cause(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(
        || error.to_string(),
        |code| io::Error::from_raw_os_error(code).to_string(),
    )
}

/// A path without `.` and, where something stands before them, `..`; by its text alone.
pub(crate) fn normal(path: &Utf8Path) -> Utf8PathBuf {
    let mut normal = Utf8PathBuf::new();
    for component in path.components() {
        match (component, normal.components().next_back()) {
            (Utf8Component::CurDir, _) | (Utf8Component::ParentDir, Some(Utf8Component::RootDir)) => {}
            (Utf8Component::ParentDir, Some(Utf8Component::Normal(_))) => {
                normal.pop();
            }
            (other, _) => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_has_a_name_that_may_have_been_meant() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for name in ["hopper.parquet", "expert.zip", "ant.parquet", "notes.txt"] {
            fs::write(root.join(name), "").unwrap();
        }
        for (missing, expected) in [
            ("hoper.parquet", Some("hopper.parquet")),
            ("expert.parquet", Some("expert.zip")),
            ("walker2d.parquet", None),
            ("note.parquet", None),
            ("pipeline.toml", None),
        ] {
            assert_eq!(neighbour(&root.join(missing)).as_deref(), expected, "{missing}");
        }
    }

    #[test]
    fn paths_are_put_in_normal_form_by_their_text() {
        for (path, expected) in [
            ("/a/./b/../c", "/a/c"),
            ("/../a", "/a"),
            ("../../a/b/..", "../../a"),
            ("a/../../b", "../b"),
        ] {
            assert_eq!(normal(Utf8Path::new(path)), expected);
        }
    }
}

use std::io::{self, ErrorKind, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use serde::{Deserialize, Serialize};

use super::catalogue::entries;
use super::durable::{rename_new, replace, unique};
use super::hash::hash_file;
use super::owner::{Liveness, Owner};
use super::regular::{self, Content};
use super::stamp::Stamp;
use super::{ActionKey, Artifact, Layout, Store, StoreError, pin};

/// What the names of copies begin with that are not complete.
const HIDDEN: &str = ".provenir-";
/// Format of a publication file. 1 - the first.
const FORMAT: u32 = 1;
/// Longest publication file that is read.
const LONGEST: u64 = 64 << 10;

/// What the store knows of a published copy. It is a root for what must be kept, and tells a copy that was altered
/// from a file that was never ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    format: u32,
    /// The copy, absolute.
    pub path: Utf8PathBuf,
    /// The object that was copied.
    pub object: Digest,
    /// Digest of its values.
    pub content: Digest,
    /// The action that gave it.
    pub key: ActionKey,
    /// The cell that gave it, as the manifest named it.
    pub cell: String,
    /// Its output port.
    pub port: String,
    /// The manifest that asked for it, absolute; not noted by the first versions.
    #[serde(default)]
    pub manifest: Option<Utf8PathBuf>,
    /// The command line that did.
    #[serde(default)]
    pub command: Vec<String>,
    /// The folder that the store lay in when this was noted; not noted by the first versions.
    #[serde(default)]
    surroundings: Option<Utf8PathBuf>,
    /// The copy as it was left.
    stamp: Stamp,
}

/// What has become of a published copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remains {
    /// It is there, with the bytes that were published.
    Unaltered,
    /// Something else is there.
    Altered,
    /// Nothing is there.
    Gone,
}

impl Publication {
    /// Looks what has become of the copy. It is read only where it is not as it was left.
    pub fn remains(&self) -> Remains {
        let Ok(metadata) = fs_err::symlink_metadata(&self.path) else {
            return Remains::Gone;
        };
        let is_it = Stamp::of(&metadata) == self.stamp
            || metadata.is_file() && hash_file(&self.path).is_ok_and(|(found, _)| found == self.object);
        if is_it {
            Remains::Unaltered
        } else {
            Remains::Altered
        }
    }
}

/// Who publishes.
#[derive(Clone, Copy, Debug)]
pub struct Publisher<'a> {
    /// The action that gave the artifact.
    pub key: ActionKey,
    /// The cell, as the manifest names it.
    pub cell: &'a str,
    /// The manifest, absolute.
    pub manifest: &'a Utf8Path,
    /// The command line.
    pub command: &'a [String],
}

/// What was done for a published copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Copied {
    /// Nothing: it is there and as it was left.
    Unchanged,
    /// It was not there before.
    New,
    /// It shows a newer result than before.
    Updated,
    /// It was missing.
    RestoredMissing,
    /// Somebody had altered it; the altered file is kept under another name.
    RestoredAltered,
    /// Somebody else's file was there, which is kept under another name.
    Displaced,
}

/// A copy that is in its place.
#[derive(Debug)]
pub struct Published {
    /// What was done for it.
    pub copied: Copied,
    /// Where a file is kept that was there and is not ours as it was made.
    pub kept: Option<Utf8PathBuf>,
    /// Another manifest, still there, whose copy was in this place until now, and will be again when it runs.
    pub taken_from: Option<Utf8PathBuf>,
    /// Why the store could not note it; the copy is there all the same.
    pub unnoted: Option<StoreError>,
}

/// What is to be done for a copy.
struct Assessed {
    copied: Copied,
    /// Whether what is there must not be lost.
    keep: bool,
    memo: Option<Publication>,
    /// What the copy looks like, where it is right and the note of it is not.
    unnoted: Option<Stamp>,
}

impl Store {
    /// Whether a newer version of Provenir wrote a pin or a note of a published copy.
    pub fn is_newer_note(&self, file: &Utf8Path) -> bool {
        let flaw = if file.starts_with(self.layout().pins()) {
            pin::read(file).err()
        } else {
            read(self.layout(), file.to_owned()).err()
        };
        matches!(flaw, Some(StoreError::Newer { .. }))
    }

    /// What [`Store::publish`] would do for the copy at `path` (absolute) of an artifact. It reads what that reads, and
    /// changes nothing.
    pub fn assess_copy(&self, path: &Utf8Path, artifact: &Artifact) -> Result<Copied, StoreError> {
        Ok(self.assess(path, artifact)?.copied)
    }

    /// Makes the file at `path` (absolute) a copy of an artifact. Reads neither where both are as they were left. A
    /// file there whose bytes this store does not have is never overwritten: it is kept beside the copy.
    pub fn publish(
        &self,
        path: &Utf8Path,
        artifact: &Artifact,
        publisher: Publisher<'_>,
    ) -> Result<Published, StoreError> {
        let failed = |error| StoreError::publish(path, error);
        let Assessed {
            copied,
            keep,
            memo,
            unnoted,
        } = self.assess(path, artifact)?;
        if copied == Copied::Unchanged {
            return Ok(Published {
                copied,
                kept: None,
                taken_from: None,
                unnoted: unnoted.and_then(|stamp| self.remember(path, artifact, publisher, stamp).err()),
            });
        }
        let kept = if keep {
            Some(set_aside(path).map_err(failed)?)
        } else {
            None
        };
        self.copy(path, artifact)?;
        let stamp = Stamp::of(&fs_err::symlink_metadata(path).map_err(failed)?);
        let other = memo.and_then(|memo| memo.manifest);
        Ok(Published {
            copied,
            kept,
            taken_from: other
                .filter(|other| copied == Copied::Updated && other != publisher.manifest && other.is_file()),
            unnoted: self.remember(path, artifact, publisher, stamp).err(),
        })
    }

    fn assess(&self, path: &Utf8Path, artifact: &Artifact) -> Result<Assessed, StoreError> {
        let failed = |error| StoreError::publish(path, error);
        let memo = self.publication(path)?;
        let current = match fs_err::symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(StoreError::FolderInTheWay {
                    path: path.to_owned(),
                });
            }
            Ok(metadata) => Some((Stamp::of(&metadata), metadata.is_file())),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let same_object = memo.as_ref().is_some_and(|memo| memo.object == artifact.object);
        let mut unnoted = None;
        let (copied, keep) = match (&memo, current) {
            (None, None) => (Copied::New, false),
            (Some(_), None) => (Copied::RestoredMissing, false),
            (Some(memo), Some((stamp, _))) if memo.stamp == stamp => {
                if same_object {
                    (Copied::Unchanged, false)
                } else {
                    (Copied::Updated, !self.has_bytes(&memo.object))
                }
            }
            // A link, a pipe or the like: not even opened.
            (_, Some((_, false))) => (Copied::Displaced, true),
            (memo, Some((stamp, true))) => {
                let (found, _) = hash_file(path).map_err(failed)?;
                let left_so = memo.as_ref().is_some_and(|memo| memo.object == found);
                if found == artifact.object {
                    unnoted = Some(stamp);
                    (Copied::Unchanged, false)
                } else if left_so || self.has_bytes(&found) {
                    (Copied::Updated, !self.has_bytes(&found))
                } else if same_object {
                    (Copied::RestoredAltered, true)
                } else {
                    (Copied::Displaced, true)
                }
            }
        };
        Ok(Assessed {
            copied,
            keep,
            memo,
            unnoted,
        })
    }

    /// Removes the copies that processes of this host began in a folder before they were killed. They are hidden, and harm
    /// nobody, so that one that cannot be removed is left.
    pub fn remove_unfinished_copies(folder: &Utf8Path) {
        for path in entries(folder).unwrap_or_default() {
            let owner = path.file_name().and_then(|name| name.strip_prefix(HIDDEN));
            let owner = owner.and_then(Owner::tagged);
            if owner.is_some_and(|owner| owner.liveness() == Liveness::Dead) {
                fs_err::remove_file(path).ok();
            }
        }
    }

    /// Whether nothing is lost with a file of these bytes: the store has them. A figure or a table that it does not have may be
    /// all that is left of hours of work, whoever made it.
    pub fn has_bytes(&self, found: &Digest) -> bool {
        self.layout().object(found).is_file()
    }

    /// What is known of the copy at a path.
    pub fn publication(&self, path: &Utf8Path) -> Result<Option<Publication>, StoreError> {
        for file in [self.publication_file(path), self.old_publication_file(path)] {
            let found = lenient(read(self.layout(), file))?;
            if let Some(found) = found.filter(|publication| self.is_of(publication, path)) {
                return Ok(Some(Publication {
                    path: path.to_owned(),
                    ..found
                }));
            }
        }
        Ok(None)
    }

    /// Whether a note is of the copy at a path: also where the project was moved, and the copy is neither here nor there.
    fn is_of(&self, publication: &Publication, path: &Utf8Path) -> bool {
        let place = |path: &Utf8Path, surroundings: Option<&Utf8Path>| {
            Some(path.strip_prefix(surroundings?).ok()?.to_owned())
        };
        let then = place(&publication.path, publication.surroundings.as_deref());
        publication.path == path
            || then.is_some()
                && then == place(path, self.layout().surroundings().as_deref())
                && !publication.path.exists()
    }

    /// What is known of every copy, by path, whether the copy is still there or not. What cannot be understood is passed
    /// over.
    pub fn publications(&self) -> Result<Vec<Publication>, StoreError> {
        self.all_publications(|file| lenient(read(self.layout(), file)))
    }

    /// As [`Self::publications`]; what cannot be understood is an error, for what must not overlook a copy.
    pub fn publications_complete(&self) -> Result<Vec<Publication>, StoreError> {
        self.all_publications(|file| read(self.layout(), file))
    }

    fn all_publications(
        &self,
        read: impl Fn(Utf8PathBuf) -> Result<Option<Publication>, StoreError>,
    ) -> Result<Vec<Publication>, StoreError> {
        let mut found = Vec::new();
        for file in entries(&self.layout().published())? {
            found.extend(read(file)?);
        }
        found.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(found)
    }

    /// Where the note of a copy is: named after the copy's place seen from the store, so that it is found where both were moved.
    fn publication_file(&self, path: &Utf8Path) -> Utf8PathBuf {
        let surroundings = self.layout().surroundings();
        let relative = surroundings.and_then(|folder| path.strip_prefix(folder).ok());
        self.note_named(relative.unwrap_or(path))
    }

    /// Where earlier versions had it.
    fn old_publication_file(&self, path: &Utf8Path) -> Utf8PathBuf {
        self.note_named(path)
    }

    fn note_named(&self, path: &Utf8Path) -> Utf8PathBuf {
        let name = Digest::of(path.as_str().as_bytes()).hex();
        self.layout().published().join(format!("{}.json", &name[..32]))
    }

    fn remember(
        &self,
        path: &Utf8Path,
        artifact: &Artifact,
        publisher: Publisher<'_>,
        stamp: Stamp,
    ) -> Result<(), StoreError> {
        let failed = || StoreError::io("cannot note what was published");
        let publication = Publication {
            format: FORMAT,
            path: path.to_owned(),
            object: artifact.object,
            content: artifact.content,
            key: publisher.key,
            cell: publisher.cell.to_owned(),
            port: artifact.port.clone(),
            manifest: Some(publisher.manifest.to_owned()),
            command: publisher.command.to_vec(),
            surroundings: self.layout().surroundings(),
            stamp,
        };
        let bytes = serde_json::to_vec_pretty(&publication).map_err(|error| failed()(error.into()))?;
        fs_err::create_dir_all(self.layout().published()).map_err(failed())?;
        let file = self.publication_file(path);
        replace(&self.workspace()?.file(), &file, &bytes).map_err(failed())?;
        let old = self.old_publication_file(path);
        if old != file && old.exists() {
            fs_err::remove_file(old).map_err(failed())?;
        }
        Ok(())
    }

    /// Copies an object, verified on the way, and puts the copy in place at once.
    fn copy(&self, path: &Utf8Path, artifact: &Artifact) -> Result<(), StoreError> {
        let failed = |error| StoreError::publish(path, error);
        let folder = path.parent().unwrap_or(path);
        fs_err::create_dir_all(folder).map_err(failed)?;
        let hidden = hidden(folder);
        let object = self.layout().object(&artifact.object);
        let copied = copy_verified(&object, &hidden);
        let published = match copied {
            Ok(found) if found == artifact.object => fs_err::rename(&hidden, path).map_err(failed),
            Ok(_) => Err(StoreError::Damaged {
                object: artifact.object,
                path: object,
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(StoreError::Missing {
                object: artifact.object,
                path: object,
            }),
            Err(error) => Err(failed(error)),
        };
        if published.is_err() {
            fs_err::remove_file(&hidden).ok();
        }
        published
    }
}

/// What a publication file says; `None` where it is gone or damaged.
/// A note that is damaged is written again; until then the copy's bytes decide whose it is.
fn lenient(read: Result<Option<Publication>, StoreError>) -> Result<Option<Publication>, StoreError> {
    match read {
        Err(StoreError::Malformed { .. }) => Ok(None),
        other => other,
    }
}

/// Reads a note; `None` where there is none.
pub(super) fn read(layout: &Layout, file: Utf8PathBuf) -> Result<Option<Publication>, StoreError> {
    let failed = || StoreError::io("cannot read what was published");
    let malformed = |reason: &dyn ToString| StoreError::malformed(&file, "note of a published copy", reason);
    let bytes = match regular::read(&file, LONGEST).map_err(failed())? {
        Content::Absent => return Ok(None),
        Content::Unfit(why) => return Err(malformed(&format!("it {why}"))),
        Content::Bytes(bytes) => bytes,
    };
    let found: Publication = serde_json::from_slice(&bytes).map_err(|error| malformed(&error))?;
    if found.format > FORMAT {
        return Err(StoreError::Newer {
            path: file,
            found: found.format,
            known: FORMAT,
        });
    }
    let then = found.surroundings.as_deref();
    Ok(Some(Publication {
        path: layout.moved(found.path, then),
        manifest: found.manifest.map(|manifest| layout.moved(manifest, then)),
        ..found
    }))
}

/// A name for a file that is being written, which nobody takes for a figure.
fn hidden(folder: &Utf8Path) -> Utf8PathBuf {
    let unnamed = unique(folder);
    folder.join(format!("{HIDDEN}{}", unnamed.file_name().unwrap_or_default()))
}

/// Gives a file another name in its folder, and returns that. Where the same bytes are kept there already, the file is
/// left for the copy to replace.
fn set_aside(path: &Utf8Path) -> io::Result<Utf8PathBuf> {
    let is_file = |path: &Utf8Path| fs_err::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut number = 1;
    loop {
        let suffix = if number == 1 {
            String::new()
        } else {
            format!("-{number}")
        };
        let aside = Utf8PathBuf::from(format!("{path}.orig{suffix}"));
        if rename_new(path, &aside)? {
            return Ok(aside);
        }
        if is_file(path) && is_file(&aside) && hash_file(path)? == hash_file(&aside)? {
            return Ok(aside);
        }
        number += 1;
    }
}

/// Copies a file, sharing its blocks where the file system can, and digests the copy.
pub(crate) fn copy_verified(from: &Utf8Path, to: &Utf8Path) -> io::Result<Digest> {
    let mut source = regular::open(from)?;
    let mut copy = fs_err::OpenOptions::new().write(true).create_new(true).open(to)?;
    if rustix::fs::ioctl_ficlone(&copy, &source).is_ok() {
        copy.sync_data()?;
        return Ok(hash_file(to)?.0);
    }
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match source.read(&mut buffer)? {
            0 => break,
            read => {
                hasher.update(&buffer[..read]);
                copy.write_all(&buffer[..read])?;
            }
        }
    }
    copy.sync_data()?;
    Ok(hasher.finalize().into())
}

#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use serde::{Deserialize, Serialize};

use super::durable::{rename_new, replace, unique};
use super::hash::hash_file;
use super::stamp::Stamp;
use super::{ActionKey, Artifact, Store, StoreError};

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
    /// The copy as it was left.
    stamp: Stamp,
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
    /// Somebody had altered it.
    RestoredAltered,
    /// Somebody else's file was there, which is kept under another name.
    Displaced,
}

impl Store {
    /// Makes the file at `path` (absolute) a copy of an artifact. Reads neither where both are as they were left. A
    /// file there that Provenir did not write is never overwritten: it is kept beside the copy, under the name that is
    /// returned.
    pub fn publish(
        &self,
        path: &Utf8Path,
        artifact: &Artifact,
        key: ActionKey,
        cell: &str,
    ) -> Result<(Copied, Option<Utf8PathBuf>), StoreError> {
        let failed = || StoreError::io("cannot publish");
        let memo = self.publication(path)?;
        let current = match fs_err::symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(StoreError::FolderInTheWay {
                    path: path.to_owned(),
                });
            }
            Ok(metadata) => Some((Stamp::of(&metadata), metadata.is_file())),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed()(error)),
        };
        let same_object = memo.as_ref().is_some_and(|memo| memo.object == artifact.object);
        let copied = match (&memo, current) {
            (None, None) => Copied::New,
            (Some(_), None) if same_object => Copied::RestoredMissing,
            (Some(_), None) => Copied::Updated,
            (Some(memo), Some((stamp, _))) if memo.stamp == stamp => {
                if same_object {
                    return Ok((Copied::Unchanged, None));
                }
                Copied::Updated
            }
            // A link, a pipe or the like: not even opened.
            (_, Some((_, false))) => Copied::Displaced,
            (memo, Some((stamp, true))) => {
                let (found, _) = hash_file(path).map_err(failed())?;
                if found == artifact.object {
                    self.remember(path, artifact, key, cell, stamp)?;
                    return Ok((Copied::Unchanged, None));
                }
                match memo {
                    Some(_) if same_object => Copied::RestoredAltered,
                    Some(_) => Copied::Updated,
                    // Nothing is remembered of it, but its bytes are those of an artifact: a copy that was moved here.
                    None if self.layout().object(&found).exists() => Copied::Updated,
                    None => Copied::Displaced,
                }
            }
        };
        let kept = match copied {
            Copied::Displaced => Some(set_aside(path).map_err(failed())?),
            _ => None,
        };
        self.copy(path, artifact)?;
        let stamp = Stamp::of(&fs_err::symlink_metadata(path).map_err(failed())?);
        self.remember(path, artifact, key, cell, stamp)?;
        Ok((copied, kept))
    }

    /// What is known of the copy at a path.
    pub fn publication(&self, path: &Utf8Path) -> Result<Option<Publication>, StoreError> {
        let file = self.publication_file(path);
        let failed = || StoreError::io("cannot read what was published");
        match fs_err::metadata(&file) {
            Ok(metadata) if metadata.len() <= LONGEST => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed()(error)),
        }
        let bytes = fs_err::read(&file).map_err(failed())?;
        // A file that is damaged is written again; until then the copy's bytes decide whose it is.
        let publication: Option<Publication> = serde_json::from_slice(&bytes).ok();
        if let Some(newer) = publication
            .as_ref()
            .filter(|publication| publication.format > FORMAT)
        {
            return Err(StoreError::Newer {
                path: file,
                found: newer.format,
                known: FORMAT,
            });
        }
        Ok(publication.filter(|publication| publication.path == path))
    }

    fn publication_file(&self, path: &Utf8Path) -> Utf8PathBuf {
        let name = Digest::of(path.as_str().as_bytes()).hex();
        self.layout().published().join(format!("{}.json", &name[..32]))
    }

    fn remember(
        &self,
        path: &Utf8Path,
        artifact: &Artifact,
        key: ActionKey,
        cell: &str,
        stamp: Stamp,
    ) -> Result<(), StoreError> {
        let failed = || StoreError::io("cannot note what was published");
        let publication = Publication {
            format: FORMAT,
            path: path.to_owned(),
            object: artifact.object,
            content: artifact.content,
            key,
            cell: cell.to_owned(),
            port: artifact.port.clone(),
            stamp,
        };
        let bytes = serde_json::to_vec_pretty(&publication).map_err(|error| failed()(error.into()))?;
        fs_err::create_dir_all(self.layout().published()).map_err(failed())?;
        replace(&self.workspace()?.file(), &self.publication_file(path), &bytes).map_err(failed())
    }

    /// Copies an object, verified on the way, and puts the copy in place at once.
    fn copy(&self, path: &Utf8Path, artifact: &Artifact) -> Result<(), StoreError> {
        let failed = || StoreError::io("cannot publish");
        let folder = path.parent().unwrap_or(path);
        fs_err::create_dir_all(folder).map_err(failed())?;
        let unnamed = unique(folder);
        let hidden = folder.join(format!(".provenir-{}", unnamed.file_name().unwrap_or_default()));
        let copied = copy_verified(&self.layout().object(&artifact.object), &hidden);
        let published = match copied {
            Ok(found) if found == artifact.object => fs_err::rename(&hidden, path).map_err(failed()),
            Ok(_) => Err(StoreError::Damaged {
                object: artifact.object,
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(StoreError::Missing {
                object: artifact.object,
            }),
            Err(error) => Err(failed()(error)),
        };
        if published.is_err() {
            fs_err::remove_file(&hidden).ok();
        }
        published
    }
}

/// Gives a file another name in its folder, and returns that.
fn set_aside(path: &Utf8Path) -> io::Result<Utf8PathBuf> {
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
        number += 1;
    }
}

/// Copies a file, sharing its blocks where the file system can, and digests the copy.
fn copy_verified(from: &Utf8Path, to: &Utf8Path) -> io::Result<Digest> {
    let mut source = fs_err::File::open(from)?;
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

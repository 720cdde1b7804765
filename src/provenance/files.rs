use std::io::{self, ErrorKind, Read, Write};

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use rayon::prelude::*;
use sha2::{Digest as _, Sha256};

use super::model::{Artifact, File, Provenance};
use crate::store::{Layout, StoreError};

/// Read, hashed and written at a time.
const BUFFER: usize = 1 << 20;

/// What reading a file gave.
struct Reading {
    blake3: Digest,
    sha256: [u8; 32],
    size: u64,
}

impl File {
    /// A file of these bytes.
    pub(super) fn of(bytes: &[u8], extension: &str, place: impl Into<Utf8PathBuf>) -> Self {
        Self {
            blake3: Digest::of(bytes),
            sha256: Some(Sha256::digest(bytes).into()),
            size: Some(bytes.len() as u64),
            extension: extension.to_owned(),
            place: place.into(),
        }
    }

    fn found(&mut self, read: &Reading) {
        self.sha256 = Some(read.sha256);
        self.size = Some(read.size);
    }
}

impl Provenance {
    /// Reads every artifact and every source once, takes their SHA-256, and, where a folder is given, copies them to their
    /// places below it. What is not there, and a source that has changed, stays without SHA-256. An artifact whose bytes are not
    /// those that were stored is an error.
    pub fn read_files(&mut self, layout: &Layout, into: Option<&Utf8Path>) -> Result<(), StoreError> {
        let artifacts = self
            .artifacts
            .par_iter_mut()
            .map(|artifact| artifact.read(layout, into));
        artifacts.collect::<Result<(), StoreError>>()?;
        let sources = self.sources.par_iter_mut().map(|source| {
            let Some(path) = &source.path else { return Ok(()) };
            let failed = || StoreError::io("cannot export a source file");
            let Some(read) = take(path, &source.file, into).map_err(failed())? else {
                return Ok(());
            };
            if read.blake3 == source.file.blake3 {
                source.file.found(&read);
            } else if let Some(folder) = into {
                fs_err::remove_file(folder.join(&source.file.place)).map_err(failed())?;
            }
            Ok(())
        });
        sources.collect()
    }
}

impl Artifact {
    fn read(&mut self, layout: &Layout, into: Option<&Utf8Path>) -> Result<(), StoreError> {
        let failed = || StoreError::io("cannot export an artifact");
        let object = layout.object(&self.file.blake3);
        let read = match take(&object, &self.file, into).map_err(failed())? {
            Some(read) if read.blake3 == self.file.blake3 => Some(read),
            Some(_) => {
                return Err(StoreError::Damaged {
                    object: self.file.blake3,
                    path: object,
                });
            }
            None => self.read_elsewhere(into).map_err(failed())?,
        };
        let Some(read) = read else { return Ok(()) };
        for copy in &mut self.copies {
            if let Some(folder) = into {
                let place = folder.join(&copy.file.place);
                let copied = fs_err::create_dir_all(place.parent().unwrap_or(folder))
                    .and_then(|()| fs_err::copy(folder.join(&self.file.place), place));
                copied.map_err(failed())?;
            }
            copy.file.found(&read);
        }
        self.file.found(&read);
        Ok(())
    }

    /// Reads the first of its copies that has its bytes.
    fn read_elsewhere(&self, into: Option<&Utf8Path>) -> io::Result<Option<Reading>> {
        for path in &self.elsewhere {
            let Some(read) = take(path, &self.file, into)? else {
                continue;
            };
            if read.blake3 == self.file.blake3 {
                return Ok(Some(read));
            }
            if let Some(folder) = into {
                fs_err::remove_file(folder.join(&self.file.place))?;
            }
        }
        Ok(None)
    }
}

/// Reads a file, and copies it to its place where a folder is given; `None` where there is no such file.
fn take(path: &Utf8Path, file: &File, into: Option<&Utf8Path>) -> io::Result<Option<Reading>> {
    match fs_err::metadata(path) {
        // A pipe or the like is not even opened.
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    }
    let mut copy = match into {
        Some(folder) => {
            let place = folder.join(&file.place);
            if let Some(parent) = place.parent() {
                fs_err::create_dir_all(parent)?;
            }
            Some(fs_err::File::create(place)?)
        }
        None => None,
    };
    let mut from = fs_err::File::open(path)?;
    let (mut blake3, mut sha256, mut size) = (blake3::Hasher::new(), Sha256::new(), 0);
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        blake3.update(&buffer[..count]);
        sha256.update(&buffer[..count]);
        if let Some(copy) = &mut copy {
            copy.write_all(&buffer[..count])?;
        }
        size += count as u64;
    }
    Ok(Some(Reading {
        blake3: blake3.finalize().into(),
        sha256: sha256.finalize().into(),
        size,
    }))
}

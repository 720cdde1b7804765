use std::io::ErrorKind;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::catalogue::entries;
use super::durable::{touch, unique};
use super::owner::{Liveness, Owner};
use super::regular::{self, Content};
use super::stamp::Stamp;
use super::{Layout, StoreError};
use crate::clock;

/// A folder below `tmp/` that belongs to this process: everything that is written waits there for its name. It is
/// removed when dropped, and by any later run where the process did not come to that.
#[derive(Debug)]
pub struct Workspace {
    path: Utf8PathBuf,
}

/// What nobody is known to own is removed at this age.
const OLD: Duration = Duration::from_hours(24);

const OWNER: &str = "owner.json";
/// Longest such file that is read.
const LONGEST: u64 = 64 << 10;

impl Workspace {
    /// Makes a workspace.
    pub fn create(layout: &Layout) -> Result<Self, StoreError> {
        let failed = || StoreError::io("cannot make a folder for temporary files");
        fs_err::create_dir_all(layout.tmp()).map_err(failed())?;
        let path = unique(&layout.tmp());
        fs_err::create_dir(&path).map_err(failed())?;
        let bytes = serde_json::to_vec(Owner::current()).map_err(|error| failed()(error.into()))?;
        fs_err::write(path.join(OWNER), bytes).map_err(failed())?;
        Ok(Self { path })
    }

    /// Says that the owner still lives, to those who cannot see it.
    pub fn renew(&self) -> Result<(), StoreError> {
        touch(&self.path).map_err(StoreError::io("cannot renew the folder for temporary files"))
    }

    /// A name for a new file.
    pub fn file(&self) -> Utf8PathBuf {
        unique(&self.path)
    }

    /// A new, empty folder.
    pub fn folder(&self) -> Result<Utf8PathBuf, StoreError> {
        let folder = unique(&self.path);
        fs_err::create_dir(&folder).map_err(StoreError::io("cannot make a folder for a cell's outputs"))?;
        Ok(folder)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What is left is removed by the next run.
        fs_err::remove_dir_all(&self.path).ok();
    }
}

/// Removes what dead processes left below `tmp/`.
pub fn sweep(layout: &Layout) -> Result<(), StoreError> {
    let failed = || StoreError::io("cannot clear away temporary files");
    regular::refuse_link(&layout.tmp())?;
    for path in entries(&layout.tmp())? {
        if is_abandoned(&path) {
            let removed = if path.is_dir() {
                fs_err::remove_dir_all(&path)
            } else {
                fs_err::remove_file(&path)
            };
            match removed {
                Ok(()) => {}
                // Another process sweeps, too; or a worker that has not yet noticed that its command was killed still writes there,
                // so that the next run sweeps again.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {}
                Err(error) => return Err(failed()(error)),
            }
        }
    }
    Ok(())
}

/// What dead processes left below `tmp/`: what [`sweep`] would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abandoned {
    /// Files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Counts what dead processes left below `tmp/`.
pub fn abandoned(layout: &Layout) -> Result<Abandoned, StoreError> {
    let mut abandoned = Abandoned::default();
    let mut found = entries(&layout.tmp())?;
    found.retain(|path| is_abandoned(path));
    while let Some(path) = found.pop() {
        match fs_err::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => found.extend(entries(&path)?),
            Ok(metadata) => {
                abandoned.files += 1;
                abandoned.bytes += metadata.len();
            }
            // Somebody else sweeps.
            Err(_) => {}
        }
    }
    Ok(abandoned)
}

/// Whether the owner of something below `tmp/` is dead; where that cannot be seen from here, its age decides.
fn is_abandoned(path: &Utf8Path) -> bool {
    let Ok(metadata) = fs_err::symlink_metadata(path) else {
        return false;
    };
    // The name is there from the first instant on; the file inside also tells of other containers and boots of this host.
    let owner = path.file_name().and_then(Owner::tagged).or_else(|| {
        match regular::read(&path.join(OWNER), LONGEST) {
            Ok(Content::Bytes(bytes)) => serde_json::from_slice(&bytes).ok(),
            _ => None,
        }
    });
    match owner.map(|owner| owner.liveness()) {
        Some(Liveness::Alive) => return false,
        Some(Liveness::Dead) => return true,
        Some(Liveness::Unknown) | None => {}
    }
    clock::age(i128::from(Stamp::of(&metadata).modified)) > OLD
}

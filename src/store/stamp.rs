use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock;

/// What tells whether a file is still the one that was seen: where all of it is equal, its bytes are taken to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    pub(crate) inode: u64,
    /// Nanoseconds since the epoch, modulo 2^64.
    pub(crate) modified: u64,
    /// When the inode changed, likewise; it moves with every write, rename and change of permissions.
    pub(crate) changed: u64,
}

impl Stamp {
    /// A file this young could still be written to without its time stamps moving.
    const SETTLED: Duration = Duration::from_secs(2);

    pub(crate) fn of(metadata: &std::fs::Metadata) -> Self {
        Self {
            size: metadata.size(),
            inode: metadata.ino(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether the stamp may be trusted to move with the next write.
    pub(crate) fn is_settled(&self) -> bool {
        let last = self.modified.max(self.changed);
        clock::age(i128::from(last)) > Self::SETTLED
    }
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> u64 {
    (seconds as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(nanoseconds as u64)
}

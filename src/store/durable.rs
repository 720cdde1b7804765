//! Writes that survive a power cut, and names that are given once.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, CWD, RenameFlags, Timespec, Timestamps, UTIME_NOW, utimensat};
use rustix::io::Errno;

use super::owner::Owner;
use super::regular;
use crate::clock;

/// From this many files on, one `syncfs` costs less than an `fsync` each (measured on ext4: 0.1 to 0.2 ms a file
/// against about 1 ms).
const MANY: usize = 8;

/// Makes files and folders durable. `root` is any open-able path of the file system that they all are on.
pub(super) fn sync(root: &Utf8Path, files: &[&Utf8Path], folders: &BTreeSet<Utf8PathBuf>) -> io::Result<()> {
    if files.len() + folders.len() > MANY {
        // Since Linux 5.8 this reports a failed write of any of them.
        return Ok(rustix::fs::syncfs(fs_err::File::open(root)?)?);
    }
    let folders = folders.iter().map(Utf8PathBuf::as_path);
    for path in files.iter().copied().chain(folders) {
        fs_err::File::open(path)?.sync_all()?;
    }
    Ok(())
}

/// Gives a file its name unless the name is taken; says whether it did. A file that did not get its name stays where
/// it was.
pub(super) fn rename_new(from: &Utf8Path, to: &Utf8Path) -> io::Result<bool> {
    match rustix::fs::renameat_with(
        CWD,
        from.as_std_path(),
        CWD,
        to.as_std_path(),
        RenameFlags::NOREPLACE,
    ) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        // File systems without that flag (NFS among them) have hard links, which never replace either.
        Err(Errno::INVAL | Errno::NOSYS) => match fs_err::hard_link(from, to) {
            Ok(()) => {
                fs_err::remove_file(from)?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        },
        Err(error) => Err(io::Error::new(
            io::Error::from(error).kind(),
            format!("failed to rename `{from}` to `{to}`: {}", io::Error::from(error)),
        )),
    }
}

/// Gives a folder that lies where a file of the store belongs another name beside it; says whether there was one.
pub(super) fn displace_folder(path: &Utf8Path) -> io::Result<bool> {
    if !fs_err::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        return Ok(false);
    }
    for number in 1_u32.. {
        if rename_new(path, &Utf8PathBuf::from(format!("{path}.displaced-{number}")))? {
            break;
        }
    }
    Ok(true)
}

/// Makes a folder and those above it, and adds to `made` the folders whose entries must be synced for it to last.
pub(super) fn make_folder(folder: &Utf8Path, made: &mut BTreeSet<Utf8PathBuf>) -> io::Result<()> {
    match fs_err::create_dir(folder) {
        Ok(()) => {
            if let Some(parent) = folder.parent() {
                made.insert(parent.to_owned());
            }
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(parent) = folder.parent() else {
                return Err(error);
            };
            make_folder(parent, made)?;
            make_folder(folder, made)
        }
        Err(error) => Err(error),
    }
}

/// Writes a small file under a name that may be taken, atomically: readers see the old content or the new. `unnamed` is
/// a new file of a workspace.
pub(crate) fn replace(unnamed: &Utf8Path, path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    let written = write_new(unnamed, bytes)
        .and_then(|()| displace_folder(path))
        .and_then(|_| fs_err::rename(unnamed, path));
    if written.is_err() {
        // The error that matters is the one of the write.
        fs_err::remove_file(unnamed).ok();
    }
    written
}

/// Appends lines, in one write, to a file that other processes append to as well; makes it where it is missing. What a
/// process that was killed wrote of a line is ended first, so that it does not spoil the next.
pub(crate) fn append_lines(path: &Utf8Path, lines: &[u8]) -> io::Result<fs_err::File> {
    displace_folder(path)?;
    let mut file = regular::append(path)?;
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last == [b'\n'] {
        file.write_all(lines)?;
    } else {
        file.write_all(&[b"\n", lines].concat())?;
    }
    Ok(file)
}

/// Writes a file that must not exist yet, and makes its bytes durable.
fn write_new(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_data()
}

/// Sets a file's times to now; of a link, its own.
pub(super) fn touch(path: &Utf8Path) -> io::Result<()> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    Ok(utimensat(
        CWD,
        path.as_std_path(),
        &times,
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

/// A name in a folder that no other file has; it tells its owner.
pub(super) fn unique(folder: &Utf8Path) -> Utf8PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    folder.join(format!(
        "{}-{}-{count}",
        Owner::current().tag(),
        clock::now().as_nanosecond()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_not_complete_spoils_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("lines");
        append_lines(&path, b"one\n").unwrap();
        append_lines(&path, b"tw").unwrap();
        append_lines(&path, b"three\nfour\n").unwrap();
        append_lines(&path, b"five\n").unwrap();
        let text = fs_err::read_to_string(path).unwrap();
        assert_eq!(text, "one\ntw\nthree\nfour\nfive\n");
    }

    #[test]
    fn a_name_is_given_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let (first, second, name) = (root.join("first"), root.join("second"), root.join("name"));
        fs_err::write(&first, "1").unwrap();
        fs_err::write(&second, "2").unwrap();
        assert!(rename_new(&first, &name).unwrap());
        assert!(!rename_new(&second, &name).unwrap());
        assert_eq!(fs_err::read_to_string(&name).unwrap(), "1");
        assert!(!first.exists() && second.exists());
        assert!(rename_new(&root.join("absent"), &root.join("other")).is_err());
    }
}

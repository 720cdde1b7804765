//! Opening files of a store, whatever lies under their names.
//!
//! A store may come from somebody else. A pipe where a file is expected would be waited for, a link to a device may never
//! end: only regular files are read, and of those no more than is expected.

use std::io::{self, ErrorKind, Read};

use camino::Utf8Path;
use fs_err::File;
use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::OFlags;

use super::StoreError;

/// What lies under a name.
pub(crate) enum Content {
    /// Nothing.
    Absent,
    /// Something that is not a file of the expected length: why, in words that go on after "it".
    Unfit(String),
    /// A file's bytes.
    Bytes(Vec<u8>),
}

/// Opens a regular file; anything else is an error of the kind `InvalidInput`.
pub(crate) fn open(path: &Utf8Path) -> io::Result<File> {
    // Without waiting for the other end of a pipe. It changes nothing for a regular file.
    let file = fs_err::OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(|error| match fs_err::metadata(path) {
            // A socket cannot even be opened.
            Ok(found) if !found.is_file() => irregular(path),
            // A link that leads in a circle, say.
            Err(_)
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied)
                    && fs_err::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) =>
            {
                irregular(path)
            }
            _ => error,
        })?;
    only_regular(file, path)
}

/// Opens a regular file to write behind what it holds; makes it where it is missing. A link is not followed: what is appended
/// belongs to the store.
pub(crate) fn append(path: &Utf8Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = fs_err::OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    only_regular(file, path)
}

fn only_regular(file: File, path: &Utf8Path) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(irregular(path))
    }
}

fn irregular(path: &Utf8Path) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("`{path}` is not a regular file"))
}

/// Refuses a link where a folder is expected whose content is cleared away: it leads out of the store.
pub(crate) fn refuse_link(folder: &Utf8Path) -> Result<(), StoreError> {
    match fs_err::symlink_metadata(folder) {
        Ok(found) if found.is_symlink() => Err(StoreError::malformed(
            folder,
            "folder of a store",
            &"it is a link to another place, in which nothing may be cleared away",
        )),
        _ => Ok(()),
    }
}

/// Whether [`open`] refused what is there.
pub(crate) fn is_irregular(error: &io::Error) -> bool {
    error.kind() == ErrorKind::InvalidInput
}

/// Reads a regular file of at most `longest` bytes.
pub(crate) fn read(path: &Utf8Path, longest: u64) -> io::Result<Content> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Content::Absent),
        Err(error) if is_irregular(&error) => {
            return Ok(Content::Unfit("is not a regular file".to_owned()));
        }
        Err(error) => return Err(error),
    };
    let size = file.metadata()?.len();
    if size > longest {
        return Ok(Content::Unfit(format!("holds {size} bytes")));
    }
    let mut bytes = Vec::new();
    // It may grow.
    file.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        return Ok(Content::Unfit(format!("holds more than {longest} bytes")));
    }
    Ok(Content::Bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_regular_files_are_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let [file, pipe, endless, socket] = ["file", "pipe", "endless", "socket"].map(|name| root.join(name));
        fs_err::write(&file, "text").unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(matches!(read(&file, 4).unwrap(), Content::Bytes(bytes) if bytes == b"text"));
        assert!(matches!(read(&file, 3).unwrap(), Content::Unfit(why) if why == "holds 4 bytes"));
        assert!(matches!(read(&root.join("absent"), 9).unwrap(), Content::Absent));
        let link = root.join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for other in [pipe.as_path(), &endless, &socket, &link, root] {
            assert!(append(other).is_err(), "{other}");
        }
        append(&file).unwrap().write_all(b"s").unwrap();
        assert_eq!(fs_err::read(&file).unwrap(), b"texts");
        for other in [pipe.as_path(), &endless, &socket, root] {
            assert!(
                matches!(read(other, 1000).unwrap(), Content::Unfit(why) if why == "is not a regular file"),
                "{other}"
            );
        }
    }
}

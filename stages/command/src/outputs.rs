use std::io::{self, Read};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err::File;
use provenir_api::Kind;
use provenir_api::port::{Content, OutputPort};
use provenir_api::schema::list;
use provenir_execution::{Context, Failure, Outputs};
use provenir_kinds::command::{Command, CommandParameters};
use provenir_table::{FILE_LIMIT, TableError, parse};
use rustix::fs::{Mode, OFlags, open};

use crate::folder::Folder;

/// How many undeclared files are named.
const NAMED: usize = 5;

/// What the program gave: every output, or why it is none. Files that nobody declared are told.
pub(crate) fn take(
    parameters: &CommandParameters,
    folder: &Folder,
    context: &Context<'_>,
) -> Result<Outputs, Failure> {
    let (undeclared, is_cut) = folder.undeclared(parameters);
    let ports = serde_json::to_value(parameters)
        .map(|parameters| Command::ports(&parameters, &[]).outputs)
        .map_err(|error| Failure::bug(error.to_string()))?;
    let mut outputs = Outputs::new();
    for port in ports {
        let path: Utf8PathBuf = parameters
            .outputs
            .get(port.name)
            .ok_or_else(|| Failure::bug(format!("an output `{}` that is not declared", port.name)))?
            .path(port.name)
            .into();
        let file = opened(&path, &port, folder).map_err(|failure| hinted(failure, &undeclared))?;
        outputs = match &port.content {
            Content::Table(schema) => {
                let table = read(&path, &file)
                    .and_then(|bytes| Ok(parse(&path, bytes)?))
                    .and_then(|table| Ok(table.conform(schema)?))
                    .map_err(|failure| of_output(&port, &failure))?;
                outputs.table(port.name, table)
            }
            _ => outputs.open_file(port.name, file),
        };
    }
    if !undeclared.is_empty() {
        let shown = list(undeclared.iter().take(NAMED).map(String::as_str));
        let more = match (undeclared.len().saturating_sub(NAMED), is_cut) {
            (0, false) => String::new(),
            (count, false) => format!(" and {count} more"),
            (_, true) => " and many more".to_owned(),
        };
        context.warn(format!(
            "the program left files that no output declares, and that are not kept: {shown}{more}; what is not wanted belongs to $TMPDIR"
        ));
    }
    Ok(outputs)
}

/// The file of an output: one that is there, and a file, wherever its path leads.
fn opened(path: &Utf8Path, port: &OutputPort, folder: &Folder) -> Result<File, Failure> {
    let wrong = |reason: String| Failure::stage(format!("the output `{}` {reason}", port.name));
    let mut place = folder.work.clone();
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        place.push(part);
        let is_last = parts.peek().is_none();
        let found = match fs_err::symlink_metadata(&place) {
            Ok(found) => found.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(wrong(format!("is missing: the program wrote no file `{path}`")));
            }
            Err(error) => return Err(Failure::environment(format!("cannot read an output: {error}"))),
        };
        let shown = place.strip_prefix(&folder.work).unwrap_or(path);
        if found.is_symlink() {
            return Err(wrong(format!("is no file: `{shown}` is a symbolic link"))
                .help("write a file, or copy it there"));
        }
        if is_last && found.is_dir() {
            return Err(wrong(format!("is no file: `{shown}` is a folder"))
                .help("an output is one file; an archive (`tar`, `zip`) can hold a folder"));
        }
        if is_last && !found.is_file() {
            return Err(wrong(format!(
                "is no file: `{shown}` is a pipe, a socket or a device"
            )));
        }
        if !is_last && !found.is_dir() {
            return Err(wrong(format!("is missing: `{shown}` is no folder")));
        }
    }
    // What is there now may not be what was looked at: it is neither followed nor waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let unreadable = |error: io::Error| wrong(format!("cannot be read: `{path}`: {error}"));
    let opened = open(place.as_std_path(), flags, Mode::empty()).map_err(|error| unreadable(error.into()))?;
    let file = File::from_parts(opened.into(), path);
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(wrong("is no file".to_owned()));
    }
    if metadata.len() > FILE_LIMIT {
        return Err(wrong(format!(
            "is too large: `{path}` holds {} bytes, and at most {FILE_LIMIT} are kept",
            metadata.len()
        )));
    }
    Ok(file)
}

fn read(path: &Utf8Path, file: &File) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = file.take(FILE_LIMIT + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::environment(format!("cannot read an output: {error}")))?;
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(TableError::TooLarge {
            path: path.to_owned(),
        }
        .into());
    }
    Ok(bytes)
}

/// What is wrong with a table, said of its output.
fn of_output(port: &OutputPort, failure: &Failure) -> Failure {
    let told = format!("the output `{}` is not what is declared: {failure}", port.name);
    let told = match failure.blame() {
        provenir_api::protocol::Blame::Environment => return failure.clone(),
        _ => Failure::stage(told),
    };
    if failure.to_string().contains("`__index_level_") {
        return told
            .help("pandas writes its index as a column: `to_parquet(path, index=False)` leaves it out");
    }
    told
}

/// The failure, with the undeclared files that the program wrote: one of them may be what was meant.
fn hinted(failure: Failure, undeclared: &[String]) -> Failure {
    match undeclared {
        [] => failure,
        some => {
            let shown = list(some.iter().take(NAMED).map(String::as_str));
            failure.help(format!("what it wrote: {shown}"))
        }
    }
}

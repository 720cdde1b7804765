use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use camino::Utf8Path;
use provenir_execution::{Context, Failure};
use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::folder::Folder;

/// No path is longer, in bytes.
const PATH_LENGTH: usize = 4096;
/// How often a program that runs is looked at: at first, and at last.
const WAITS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// Runs a program to its end. `Ok(Err(…))` where it ended otherwise than well.
pub(crate) fn run(
    argv: &[String],
    variables: &BTreeMap<String, OsString>,
    folder: &Folder,
    context: &Context<'_>,
) -> Result<Result<(), Failure>, Failure> {
    let (program, arguments) = argv
        .split_first()
        .ok_or_else(|| Failure::bug("a command without a program"))?;
    let path = find(program, variables)?;
    context.info(format!("runs {}", path.display()));
    let mut command = Command::new(&path);
    command
        .arg0(program)
        .args(arguments)
        .current_dir(&folder.work)
        .env_clear()
        .envs(variables)
        .stdin(Stdio::null())
        // A worker's standard output is where its standard error is: the cell's log.
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit());
    let child = command
        .spawn()
        .map_err(|error| not_started(program, &folder.work.as_std_path().join(&path), &error))?;
    let status = wait(child, context)?;
    Ok(if status.success() {
        Ok(())
    } else {
        Err(ended(program, status))
    })
}

/// Waits for the program; kills it where the cell is to stop.
fn wait(mut child: Child, context: &Context<'_>) -> Result<ExitStatus, Failure> {
    let [mut pause, longest] = WAITS;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(error) => {
                return Err(Failure::environment(format!(
                    "cannot wait for the program: {error}"
                )));
            }
        }
        if let Err(cancelled) = context.check_cancelled() {
            // It may have ended at this moment.
            child.kill().ok();
            child.wait().ok();
            return Err(cancelled);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(longest);
    }
}

/// Where the program is: on its search path, in its folder, or where its absolute path says.
fn find(program: &str, variables: &BTreeMap<String, OsString>) -> Result<PathBuf, Failure> {
    if program.contains('/') {
        // A relative path stays one: it is what a script is told of itself, which must not depend on where the folder is.
        return Ok(program.into());
    }
    let search = variables.get("PATH").cloned().unwrap_or_default();
    let is_program = |path: &PathBuf| {
        fs_err::metadata(path).is_ok_and(|found| found.is_file()) && access(path, Access::EXEC_OK).is_ok()
    };
    let mut places = std::env::split_paths(&search).filter(|place| place.is_absolute());
    places
        .find_map(|place| Some(place.join(program)).filter(is_program))
        .ok_or_else(|| {
            Failure::environment(format!("there is no program `{program}` on the search path")).help(format!(
                "install it, or add its folder to PATH: it was looked for in {}",
                search.to_string_lossy()
            ))
        })
}

fn not_started(program: &str, path: &Path, error: &io::Error) -> Failure {
    let message = |reason: &str| format!("`{program}` cannot be started: {reason}");
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR) => match interpreter(path) {
            Some(interpreter) => Failure::environment(message(&format!(
                "its first line asks for `{interpreter}`, which is not there"
            )))
            .help("install that, or name the interpreter in `argv`: `[\"python3\", \"script.py\", …]`"),
            None => Failure::environment(message("there is no such file")),
        },
        Some(Errno::NOEXEC) => Failure::stage(message("it is neither a program of this machine nor a script"))
            .help("the first line of a script is `#!/usr/bin/env python3` or the like; or name the interpreter in `argv`"),
        Some(Errno::ACCESS | Errno::PERM) => {
            Failure::environment(message("it must not be executed (permission denied)"))
        }
        Some(Errno::TOOBIG) => Failure::stage(message("its arguments and its environment are too long together")),
        _ => Failure::environment(message(&error.to_string())),
    }
}

/// What the first line of a script asks for.
fn interpreter(path: &Path) -> Option<String> {
    const LONGEST: u64 = 256;
    let file = fs_err::File::open(path).ok()?;
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, LONGEST), &mut bytes).ok()?;
    let line = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line).into_owned();
    // A line that ends in a carriage return asks for a program of that name.
    let name = line.trim_matches([' ', '\t']).split([' ', '\t']).next()?;
    Some(name.escape_debug().to_string())
}

/// How the program ended, where that was not well.
fn ended(program: &str, status: ExitStatus) -> Failure {
    const KILL: i32 = 9;
    Failure::stage(match (status.code(), status.signal()) {
        (Some(code), _) => format!("`{program}` ended with exit code {code}"),
        (None, Some(KILL)) => format!("`{program}` was killed (signal 9), perhaps because memory ran out"),
        (None, Some(signal)) => format!("`{program}` crashed (signal {signal}{})", named(signal)),
        (None, None) => format!("`{program}` ended without an exit code"),
    })
}

fn named(signal: i32) -> &'static str {
    match signal {
        2 => ", interrupt",
        4 => ", illegal instruction",
        6 => ", abort",
        7 => ", bus error",
        8 => ", arithmetic error",
        11 => ", segmentation fault",
        13 => ", broken pipe",
        15 => ", terminated",
        _ => "",
    }
}

/// The failure, with an argument that looks like a file which is not there: the likeliest reason. What it was to make is none.
pub(crate) fn with_advice(failure: Failure, argv: &[String], outputs: &[String], folder: &Folder) -> Failure {
    let is_file = |argument: &&String| {
        let path = Utf8Path::new(argument);
        let has_extension = path.extension().is_some_and(|end| {
            end.len() <= 8
                && end.starts_with(|first: char| first.is_ascii_alphabetic())
                && end.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        path.is_relative() && has_extension && !argument.contains([' ', '\n', '='])
    };
    let absent = |argument: &&String| !outputs.contains(argument) && !folder.work.join(argument).exists();
    // The program itself was found.
    match argv.iter().skip(1).filter(is_file).find(absent) {
        Some(argument) => {
            let name = Utf8Path::new(argument).file_name().unwrap_or(argument);
            failure.help(format!(
                "`{argument}` is not in the folder that it ran in; a file that it needs is declared: `files = {{ \"{name}\" = \"{argument}\" }}`"
            ))
        }
        None => failure,
    }
}

/// Warns of arguments that name files elsewhere: no edit of those is noticed.
pub(crate) fn warn_of_outsiders(argv: &[String], context: &Context<'_>) {
    for argument in argv.iter().skip(1) {
        let path = argument
            .split_once('=')
            .map_or(argument.as_str(), |(_, value)| value);
        let is_elsewhere = path.starts_with('/') && !path.starts_with("/dev/");
        if is_elsewhere && path.len() < PATH_LENGTH && Path::new(path).is_file() {
            context.warn(format!(
                "`{path}` is not declared in `files`: nothing runs again when it changes"
            ));
        }
    }
}

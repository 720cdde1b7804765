use std::fmt::Write;
use std::io::ErrorKind;

use rustix::fs::{Access, access};

use super::arguments::StoreArguments;
use super::error::{CommandError, Exit};
use super::measure::{bytes, count};
use super::{Edition, environment, session, terminal};
use crate::exec;
use crate::manifest::visible;
use crate::record::Host;
use crate::store::{FULL, Layout, Store, StoreError, Workspace};

/// `doctor`: every check is made, whatever the others say.
pub(super) fn doctor(edition: &Edition, arguments: &StoreArguments) -> Result<Exit, CommandError> {
    let mut report = Report::default();
    let host = Host::current();
    report.good(&format!(
        "provenir {}, build {}",
        env!("CARGO_PKG_VERSION"),
        provenir_build_id::BUILD
    ));
    report.good(&format!(
        "{} on {}, {}, {} of memory",
        host.system,
        host.architecture,
        count(host.cores as usize, "core"),
        bytes(host.memory << 20)
    ));
    check_worker(edition, &mut report)?;
    let root = environment::store(arguments.cache.as_deref(), &environment::working_folder()?)?;
    check_store(&Layout::new(&root), &mut report);
    // Names of files in the folder are anybody's.
    terminal::print(&visible(&report.text))?;
    Ok(if report.is_bad {
        Exit::Environment
    } else {
        Exit::Done
    })
}

#[derive(Default)]
struct Report {
    text: String,
    is_bad: bool,
}

impl Report {
    fn good(&mut self, line: &str) {
        let _ = writeln!(self.text, "ok    {line}");
    }

    fn bad(&mut self, line: &str, help: Option<&str>) {
        self.is_bad = true;
        let _ = writeln!(self.text, "error {line}");
        if let Some(help) = help {
            let _ = writeln!(self.text, "      help: {help}");
        }
    }

    fn more(&mut self, line: &str) {
        let _ = writeln!(self.text, "      {line}");
    }
}

fn check_worker(edition: &Edition, report: &mut Report) -> Result<(), CommandError> {
    let program = session::worker(edition)?;
    match exec::greeting(&program) {
        Ok(hello) => {
            report.good(&format!("worker {}, of the same build", program.path));
            for (name, value) in hello.platform {
                report.more(&format!("{name}: {value}"));
            }
            let known = edition.registry();
            let lacking: Vec<&str> = known
                .names()
                .filter(|name| hello.kinds.iter().all(|kind| kind != name))
                .collect();
            if !lacking.is_empty() {
                report.bad(
                    &format!("the worker does not execute {}", lacking.join(", ")),
                    None,
                );
            }
        }
        Err(error) => report.bad(&error.to_string(), Some(error.help())),
    }
    Ok(())
}

fn check_store(layout: &Layout, report: &mut Report) {
    let root = layout.root();
    if matches!(fs_err::symlink_metadata(root), Err(error) if error.kind() == ErrorKind::NotFound) {
        report.good(&format!("store {root}: will be made by the first run"));
        return;
    }
    // What a run would say. A folder that is no store yet is only looked at.
    let told = if layout.is_store() {
        Workspace::create(layout).map(|_| "can be written to")
    } else {
        layout
            .refuse_foreign()
            .and_then(|()| {
                access(root.as_std_path(), Access::WRITE_OK | Access::EXEC_OK)
                    .map_err(|error| StoreError::io("cannot create the store")(error.into()))
            })
            .map(|()| "is empty, and will be made a store by the first run")
    };
    match told {
        Ok(told) => report.good(&format!("store {root}: {told}")),
        Err(error) => report.bad(&format!("store {root}: {error}"), error.help()),
    }
    if layout.is_store() {
        check_files(layout, report);
    }
    match rustix::fs::statvfs(root.as_std_path()) {
        Ok(space) => {
            const LITTLE: u64 = 1 << 30;
            let free = space.f_bavail.saturating_mul(space.f_frsize);
            let told = format!("{} free on the store's disk", bytes(free));
            if free < LITTLE {
                report.bad(&told, Some(FULL));
            } else {
                report.good(&told);
            }
        }
        Err(error) => report.bad(&format!("cannot ask for the free space of {root}: {error}"), None),
    }
}

fn check_files(layout: &Layout, report: &mut Report) {
    match layout.newer() {
        Ok(newer) if newer.is_empty() => {}
        Ok(newer) => report.more(&format!("not seen by this version: {}", newer.join(", "))),
        Err(error) => report.bad(&error.to_string(), error.help()),
    }
    let (available, path) = Store::open(layout.root()).index_state();
    if available {
        report.good(&format!("index {path}"));
    } else {
        report.bad(
            &format!("index {path}: cannot be used; everything works without it, more slowly"),
            Some("delete it: it is made anew"),
        );
    }
}

//! The command line: reads what is asked, hands it to the engine, and tells what came of it.
//!
//! A module a command. Data goes to standard output, everything else to standard error; the exit code says whose turn
//! it is.

mod arguments;
mod audit;
mod describe;
mod digest;
mod doctor;
mod environment;
mod error;
mod export;
mod gc;
mod init;
mod lineage;
mod log;
mod measure;
mod pin;
mod plan;
mod policy;
mod reference;
mod render;
mod run;
mod runs;
mod selector;
mod session;
mod show;
mod standing;
mod status;
mod terminal;
mod verify;
mod why;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use provenir_api::AnyKind;
use signal_hook::consts::SIGXFSZ;

use arguments::{Arguments, Command};
use error::{CommandError, Exit};

use crate::manifest::language_schema;
use crate::registry::Registry;

/// What distinguishes one executable made of this library from another.
pub struct Edition {
    /// The kinds that manifests may name.
    pub kinds: fn() -> Vec<Box<dyn AnyKind>>,
    /// Name of the worker's executable, which lies beside this one.
    pub worker: &'static str,
}

impl Edition {
    fn registry(&self) -> Registry {
        Registry::new((self.kinds)())
    }
}

/// The whole command.
pub fn main(edition: &Edition) -> ExitCode {
    survive_limits();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(mut error) => {
            arguments::advise(&mut error);
            // Help and version are data that was asked for; everything else is a wrong request.
            let exit = if error.use_stderr() {
                Exit::Request
            } else {
                Exit::Done
            };
            let _ = error.print();
            return exit.into();
        }
    };
    let exit = match catch_unwind(AssertUnwindSafe(|| execute(edition, &arguments.command))) {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => terminal::explain(&error, matches!(arguments.command, Command::Run(_))),
        Err(_) => {
            terminal::say(
                "error: this is a bug of Provenir\n  help: please report it with the lines above; what was finished is kept",
            );
            Exit::Bug
        }
    };
    exit.into()
}

/// Makes a write beyond the limit on the size of files fail, as one to a full disk does, instead of ending the process without
/// a word. A handler and not `SIG_IGN`: workers and their programs get the default back when they are executed (execve(2)).
fn survive_limits() {
    // Where it cannot be had, the signal does what it always does.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).ok();
}

fn execute(edition: &Edition, command: &Command) -> Result<Exit, CommandError> {
    match command {
        Command::Run(arguments) => run::run(edition, arguments),
        Command::Plan(arguments) => plan::plan(edition, arguments),
        Command::Why(arguments) => why::why(edition, arguments),
        Command::Lineage(arguments) => lineage::lineage(edition, arguments),
        Command::Status(arguments) => status::status(edition, arguments),
        Command::Show(arguments) => show::show(edition, arguments),
        Command::Render(arguments) => render::render(edition, arguments),
        Command::Export(arguments) => export::export(edition, arguments),
        Command::Path(arguments) => show::path(edition, arguments),
        Command::Log(arguments) => log::log(edition, arguments),
        Command::Runs(arguments) => runs::runs(arguments),
        Command::Diff(arguments) => runs::diff(edition, arguments),
        Command::Audit(arguments) => audit::audit(edition, arguments),
        Command::Verify(arguments) => verify::verify(arguments),
        Command::Gc(arguments) => gc::gc(arguments),
        Command::Pin(arguments) => pin::pin(edition, arguments),
        Command::Unpin(arguments) => pin::unpin(arguments),
        Command::Schema => {
            let schema = language_schema(&edition.registry());
            let text = serde_json::to_string_pretty(&schema).map_err(std::io::Error::from)?;
            terminal::print(&format!("{text}\n"))?;
            Ok(Exit::Done)
        }
        Command::Init(arguments) => init::init(&arguments.folder),
        Command::Doctor(arguments) => doctor::doctor(edition, arguments),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "provenir", &mut script);
            terminal::print(&String::from_utf8_lossy(&script))?;
            Ok(Exit::Done)
        }
    }
}

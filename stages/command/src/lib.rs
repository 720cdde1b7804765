//! Execution of `command`: any program, in any language, as a stage.
//!
//! * `folder`: the private folder that a program runs in, and what it finds there.
//! * `environment`: the variables that it is given.
//! * `program`: the program itself: found, started, waited for, and ended with all that it started.
//! * `outputs`: what it left behind, taken for artifacts or refused.
//!
//! A program sees copies of its inputs and files, never the store's own; what it writes is copied before it is kept, after
//! everything that it started has ended. Its standard output and standard error are the cell's log.
//!
//! This is no sandbox: a program can read and write whatever the person who runs the pipeline can. What it is *given* is only
//! what the manifest declares, so that what was not declared is noticed.

mod environment;
mod folder;
mod outputs;
mod program;

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use provenir_execution::{Context, Execution, Failure, Inputs, Outputs};
use provenir_kinds::command::{Argument, Command, CommandParameters, Place, fill};

use folder::Folder;

/// Runs programs.
pub struct CommandExecution;

impl Execution for CommandExecution {
    type Kind = Command;
    const TAKES_FILES: bool = true;

    fn execute(
        &self,
        parameters: &CommandParameters,
        inputs: &Inputs,
        context: &Context<'_>,
    ) -> Result<Outputs, Failure> {
        let folder = Folder::prepare(parameters, inputs, context)?;
        let filled = |argument: &Argument| filled(argument, parameters, &folder.inputs);
        let argv: Vec<String> = parameters.argv.iter().map(filled).collect();
        let own: BTreeMap<&str, String> = parameters
            .environment
            .iter()
            .map(|(name, value)| (name.as_str(), filled(value)))
            .collect();
        let variables = environment::variables(&own, &parameters.inherit, &folder, context);
        program::warn_of_outsiders(&argv, context);
        let ended = program::run(&argv, &variables, &folder, context);
        // Whatever it started may go on writing.
        context.end_processes();
        end_the_last_line();
        if let Err(failure) = ended? {
            let outputs = parameters.outputs.iter();
            let outputs: Vec<String> = outputs.map(|(name, options)| options.path(name)).collect();
            return Err(program::with_advice(failure, &argv, &outputs, &folder));
        }
        outputs::take(parameters, &folder, context)
    }
}

/// Ends the line that the program may have left without an end, which would go into the log of the cell after this one. Empty
/// lines are in no log.
fn end_the_last_line() {
    // Where nobody listens there is no log.
    io::stderr().write_all(b"\n").ok();
}

/// An argument as the program gets it.
fn filled(argument: &Argument, parameters: &CommandParameters, inputs: &BTreeMap<String, String>) -> String {
    fill(&argument.0.to_string(), |place| match place {
        Place::Input(name) => inputs.get(name).cloned().unwrap_or_default(),
        Place::Output(name) => parameters
            .outputs
            .get(name)
            .map(|options| options.path(name))
            .unwrap_or_default(),
        Place::Value(name) => parameters
            .values
            .get(name)
            .map(|value| value.0.to_string())
            .unwrap_or_default(),
    })
}

//! `command`: any program, in any language, as a stage.
//!
//! * `parameters`: what a manifest says of a stage.
//! * `placeholder`: `{input.NAME}`, `{output.NAME}` and `{value.NAME}` in arguments.
//! * `columns`: the types of columns, as they are written.
//! * `folder`: paths in the folder that a program runs in.
//! * `problems`: what is wrong with parameters that are each in range.
//!
//! The ports of such a stage are its own: whatever its manifest wires are its inputs, and `outputs` declares the rest.

mod columns;
mod folder;
mod parameters;
mod placeholder;
mod problems;

pub use folder::INPUTS;
pub use parameters::{Agreement, Argument, CommandParameters, InputOptions, OutputOptions};
pub use placeholder::{Place, fill};

use provenir_api::port::{
    Arity, Column, Content, InputPort, OutputPort, Ports, TableSchema, declared_name, is_name,
};
use provenir_api::{Determinism, Kind, Problem, Revision};
use serde::Deserialize;
use serde_json::Value;

use crate::machinery::TABLE;

/// The declaration of `command`.
pub struct Command;

impl Kind for Command {
    type Parameters = CommandParameters;
    const NAME: &'static str = "command";
    const SUMMARY: &'static str =
        "Runs a program, in any language, which reads its inputs from files and writes its outputs to files.";
    const REVISIONS: &'static [Revision] = &[
        Revision {
            part: "command",
            number: 1,
        },
        TABLE,
    ];
    const DETERMINISM: Determinism = Determinism::Platform;
    const DECLARES_PORTS: bool = true;

    fn inputs() -> Vec<InputPort> {
        Vec::new()
    }

    fn outputs() -> Vec<OutputPort> {
        Vec::new()
    }

    fn ports(parameters: &Value, wired: &[&str]) -> Ports {
        Ports {
            inputs: wired.iter().filter_map(|name| input(parameters, name)).collect(),
            outputs: parameters
                .get("outputs")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .filter_map(|(name, options)| output(name, options))
                .collect(),
        }
    }

    fn determinism(parameters: &CommandParameters) -> Determinism {
        match parameters.determinism {
            Agreement::Platform => Determinism::Platform,
            Agreement::Exact => Determinism::Exact,
        }
    }

    fn check(parameters: &CommandParameters, wired: &[(&str, TableSchema)]) -> Vec<Problem> {
        problems::of_inputs(parameters, wired)
    }
}

/// The port of an input, where its name can be one.
fn input(parameters: &Value, name: &str) -> Option<InputPort> {
    let options = parameters
        .pointer(&provenir_api::schema::join("/inputs", name))
        .and_then(|options| InputOptions::deserialize(options).ok())
        .unwrap_or_default();
    let content = match (options.schema(), options.many) {
        (Some(schema), _) => Content::Table(schema),
        (None, true) => Content::Table(TableSchema::any()),
        (None, false) => Content::Any,
    };
    Some(InputPort {
        name: declared_name(name)?,
        doc: "A table or file that the program takes; `inputs` of its parameters says what it expects.",
        arity: if options.many { Arity::Many } else { Arity::One },
        required: false,
        content,
    })
}

/// The port of an output, as far as its options can be understood.
fn output(name: &str, options: &Value) -> Option<OutputPort> {
    let options = OutputOptions::deserialize(options).ok()?;
    let content = match &options.columns {
        Some(columns) => {
            let known = columns
                .iter()
                .filter_map(|(name, written)| Some((name.clone(), columns::parse(written).ok()?)));
            let columns: Vec<Column> = known.map(|(name, column)| Column { name, ..column }).collect();
            Content::Table(TableSchema {
                columns,
                open: options.open,
            })
        }
        None => Content::File(folder::extension(options.file.as_deref()?)?.to_owned()),
    };
    Some(OutputPort {
        name: declared_name(name)?,
        doc: "A table or file that the program gives; `outputs` of its parameters says which.",
        content,
        volatile: options.volatile,
    })
}

/// What is wrong with a name that a manifest gives to an input, an output or a value.
fn misnamed(name: &str) -> Option<&'static str> {
    (!is_name(name))
        .then_some("a name is letters, digits, `_` and `-`, a letter or `_` first, at most 64 in all")
}

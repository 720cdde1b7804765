use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::port::TableSchema;
use provenir_api::schema::{join, list, nearest};
use provenir_api::{Label, Problem};

use super::folder::{INPUTS, below, extension};
use super::placeholder::{Meant, Piece, Place, pieces};
use super::{Argument, CommandParameters, OutputOptions, columns, misnamed};

/// What is wrong with parameters by themselves.
pub(super) fn of_parameters(parameters: &CommandParameters) -> Vec<Problem> {
    let mut problems = Vec::new();
    program(parameters, &mut problems);
    places(parameters, &mut problems);
    for (name, options) in &parameters.outputs {
        output(name, options, &mut problems);
    }
    for (name, options) in &parameters.inputs {
        for (column, written) in &options.columns {
            let pointer = join(&join(&join("/inputs", name), "columns"), column);
            column_type(pointer, written, &mut problems);
        }
    }
    if parameters.outputs.is_empty() {
        problems.push(
            Problem::new("/outputs", "a stage gives something: it needs an output")
                .help("`params.outputs.NAME = { columns = { … } }` for a table, `{ file = \"NAME.EXTENSION\" }` for another file"),
        );
    }
    for name in parameters.values.keys() {
        if let Some(rule) = misnamed(name) {
            problems.push(wrong_key(
                join("/values", name),
                format!("`{name}` cannot name a value"),
                rule,
            ));
        }
    }
    variables(parameters, &mut problems);
    for (pointer, text) in texts(parameters) {
        placeholders(parameters, &pointer, text, &mut problems);
    }
    problems
}

/// What is wrong with what parameters say of inputs, given what is wired.
pub(super) fn of_inputs(parameters: &CommandParameters, wired: &[(&str, TableSchema)]) -> Vec<Problem> {
    let known = || {
        let mut names: Vec<&str> = wired.iter().map(|(name, _)| *name).collect();
        names.dedup();
        names
    };
    let unwired = |name: &str| wired.iter().all(|(wired, _)| *wired != name);
    let help = |name: &str| match (nearest(name, known()), known().is_empty()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, true) => format!("nothing is wired: `inputs = {{ {name} = \"STAGE\" }}`"),
        (None, false) => format!("its inputs are {}", list(known())),
    };
    let mut problems = Vec::new();
    for name in parameters.inputs.keys().filter(|name| unwired(name)) {
        let message = format!("the stage has no input `{name}`");
        problems.push(wrong_key(join("/inputs", name), message, help(name)));
    }
    for (pointer, text) in texts(parameters) {
        for piece in pieces(text) {
            if let Piece::Place(Place::Input(name)) = piece
                && unwired(name)
            {
                let message = format!("the stage has no input `{name}`");
                problems.push(Problem::new(pointer.clone(), message).help(help(name)));
            }
        }
    }
    problems
}

fn wrong_key(pointer: String, message: String, help: impl Into<String>) -> Problem {
    let mut problem = Problem::new(pointer, message).help(help);
    problem.key = true;
    problem
}

/// Arguments and variables that are texts, with their pointers.
fn texts(parameters: &CommandParameters) -> impl Iterator<Item = (String, &str)> {
    let arguments = parameters
        .argv
        .iter()
        .enumerate()
        .map(|(index, argument)| (format!("/argv/{index}"), argument));
    let variables = parameters
        .environment
        .iter()
        .map(|(name, argument)| (join("/environment", name), argument));
    arguments
        .chain(variables)
        .filter_map(|(pointer, argument)| match &argument.0 {
            Label::Text(text) => Some((pointer, text.as_str())),
            _ => None,
        })
}

/// The program: where it will be looked for.
fn program(parameters: &CommandParameters, problems: &mut Vec<Problem>) {
    let Some(Argument(Label::Text(program))) = parameters.argv.first() else {
        if !parameters.argv.is_empty() {
            problems.push(Problem::new(
                "/argv/0",
                "the first argument is the program, a text",
            ));
        }
        return;
    };
    let declared = |path: &Utf8Path| {
        let mut names = parameters.files.keys();
        names.any(|name| below(name).is_ok_and(|name| name == path))
    };
    if program.trim().is_empty() {
        problems.push(Problem::new("/argv/0", "the program must not be empty"));
    } else if program.contains(char::is_whitespace) && parameters.argv.len() == 1 && !program.contains('{') {
        let parts = program.split_whitespace().map(|part| format!("\"{part}\""));
        problems.push(
            Problem::new(
                "/argv/0",
                "no shell splits this into words: it is taken for the name of one program",
            )
            .help(format!(
                "write `argv = [{}]`",
                parts.collect::<Vec<_>>().join(", ")
            )),
        );
    } else if !program.contains('/') {
        if declared(Utf8Path::new(program)) {
            problems.push(
                Problem::new(
                    "/argv/0",
                    format!("`{program}` would be looked for on the search path"),
                )
                .help(format!(
                    "write `./{program}`: that is the file that `files` declares"
                )),
            );
        }
    } else if !program.starts_with('/') && !program.contains('{') {
        match below(program) {
            Ok(path) if !declared(&path) => {
                let name = path.file_name().unwrap_or_default();
                problems.push(
                    Problem::new(
                        "/argv/0",
                        format!("`{program}` is not in the folder that the program runs in"),
                    )
                    .help(format!(
                        "declare it: `files = {{ \"{name}\" = \"{program}\" }}`, and write `\"./{name}\"` here"
                    )),
                );
            }
            Ok(_) => {}
            Err(message) => problems
                .push(Problem::new("/argv/0", message).help(
                    "`files = { \"NAME\" = \"PATH FROM THE MANIFEST\" }` brings it there, as `./NAME`",
                )),
        }
    }
    for (pointer, text) in texts(parameters) {
        if text.contains('\0') {
            problems.push(Problem::new(
                pointer,
                "no program can be given the character U+0000",
            ));
        }
    }
}

/// Files and outputs: paths in the folder, each of its own.
fn places(parameters: &CommandParameters, problems: &mut Vec<Problem>) {
    let files = parameters
        .files
        .keys()
        .map(|name| (join("/files", name), name.clone(), true));
    let outputs = parameters
        .outputs
        .iter()
        .filter(|(name, _)| misnamed(name).is_none())
        .map(|(name, options)| match &options.file {
            Some(file) => (join(&join("/outputs", name), "file"), file.clone(), false),
            None => (join("/outputs", name), options.path(name), false),
        });
    let mut taken: BTreeMap<Utf8PathBuf, String> = BTreeMap::new();
    for (pointer, written, key) in files.chain(outputs) {
        let problem = |message: String| Problem {
            key,
            ..Problem::new(pointer.clone(), message)
        };
        let path = match below(&written) {
            Ok(path) => path,
            Err(message) => {
                let help = if key {
                    "the key is the name that the file gets there; the value is where it is, seen from the manifest"
                } else {
                    "the program writes it there, and Provenir takes it from there"
                };
                problems.push(problem(message).help(help));
                continue;
            }
        };
        if path.starts_with(INPUTS) {
            problems.push(problem(format!(
                "`{INPUTS}` holds the inputs: nothing else goes there"
            )));
            continue;
        }
        let other = taken
            .iter()
            .find(|(other, _)| path.starts_with(other) || other.starts_with(&path));
        if let Some((other, place)) = other {
            let message = if *other == path {
                format!("`{path}` is the path of two files")
            } else {
                let (file, folder) = if path.starts_with(other) {
                    (other, &path)
                } else {
                    (&path, other)
                };
                format!("`{file}` would be a file, and the folder of `{folder}`")
            };
            problems.push(problem(message).beside([place.as_str()]));
            continue;
        }
        taken.insert(path, pointer);
    }
}

fn output(name: &str, options: &OutputOptions, problems: &mut Vec<Problem>) {
    let pointer = join("/outputs", name);
    if let Some(rule) = misnamed(name) {
        problems.push(wrong_key(
            pointer,
            format!("`{name}` cannot name an output"),
            rule,
        ));
        return;
    }
    let at = |field: &str| join(&pointer, field);
    let is_parquet = |file: &str| extension(file).is_some_and(|end| end.eq_ignore_ascii_case("parquet"));
    match (&options.columns, &options.file) {
        (None, None) => problems.push(
            Problem::new(pointer.clone(), "neither `columns` nor `file` says what it is").help(
                "a table: `{ columns = { NAME = \"f64\" } }`; another file: `{ file = \"NAME.EXTENSION\" }`",
            ),
        ),
        (None, Some(file)) if is_parquet(file) => problems.push(
            Problem::new(at("file"), "the columns of a table must be declared")
                .help("`columns = { NAME = \"f64\" }`; with `open = true` it may have others beside them"),
        ),
        (None, Some(file)) if extension(file).is_none() && below(file).is_ok() => problems.push(
            Problem::new(at("file"), format!("`{file}` has no extension to be kept with")).help(
                "let it end in `.` and at most 16 letters and digits, which say what it is: `.json`, `.pt`",
            ),
        ),
        (None, Some(_)) if options.open => {
            problems.push(Problem::new(
                at("open"),
                "only a table, which has `columns`, can be open",
            ));
        }
        (Some(_), Some(file)) if !is_parquet(file) => problems.push(
            Problem::new(
                at("file"),
                format!("`{file}` has columns, and is no Parquet file"),
            )
            .help("let it end in `.parquet`, or leave `columns` out"),
        ),
        (Some(columns), _) if columns.is_empty() && !options.open => problems.push(
            Problem::new(at("columns"), "a table has a column")
                .help("declare the columns, or say `open = true` where any will do"),
        ),
        _ => {}
    }
    for (column, written) in options.columns.iter().flatten() {
        column_type(join(&at("columns"), column), written, problems);
    }
}

fn column_type(pointer: String, written: &str, problems: &mut Vec<Problem>) {
    if let Err(advice) = columns::parse(written) {
        problems.push(Problem::new(pointer, format!("there is no column type `{written}`")).help(advice));
    }
}

/// Names of variables.
fn variables(parameters: &CommandParameters, problems: &mut Vec<Problem>) {
    const HELP: &str = "a name is letters, digits and `_`, no digit first";
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    for name in parameters.environment.keys().filter(|name| !is_name(name)) {
        let message = format!("`{name}` cannot name a variable");
        problems.push(wrong_key(join("/environment", name), message, HELP));
    }
    for (index, name) in parameters.inherit.iter().enumerate() {
        let pointer = format!("/inherit/{index}");
        if !is_name(name) {
            let help = match name
                .strip_prefix('$')
                .or_else(|| name.split_once('=').map(|(name, _)| name))
            {
                Some(plain) if is_name(plain) && name.contains('=') => {
                    format!("`inherit` takes names; a value goes into `environment = {{ {plain} = \"…\" }}`")
                }
                Some(plain) if is_name(plain) => format!("write \"{plain}\""),
                _ => HELP.to_owned(),
            };
            problems.push(Problem::new(pointer, format!("`{name}` cannot name a variable")).help(help));
        } else if parameters.environment.contains_key(name) {
            problems.push(
                Problem::new(pointer, format!("`{name}` is given by `environment`, too")).beside([join(
                    "/environment",
                    name,
                )
                .as_str()]),
            );
        }
    }
}

/// Placeholders of outputs and values, and what only looks like a placeholder.
fn placeholders(parameters: &CommandParameters, pointer: &str, text: &str, problems: &mut Vec<Problem>) {
    for piece in pieces(text) {
        let (message, help) = match piece {
            Piece::Place(Place::Output(name)) if !parameters.outputs.contains_key(name) => {
                let known = || parameters.outputs.keys().map(String::as_str);
                (
                    format!("the stage has no output `{name}`"),
                    near(
                        name,
                        known(),
                        &format!("declare it: `params.outputs.{name} = {{ … }}`"),
                    ),
                )
            }
            Piece::Place(Place::Value(name)) if !parameters.values.contains_key(name) => {
                let known = || parameters.values.keys().map(String::as_str);
                (
                    format!("the stage has no value `{name}`"),
                    near(name, known(), &format!("declare it: `params.values.{name} = …`")),
                )
            }
            Piece::Wrong(whole, meant) => {
                let meant = match meant {
                    Meant::Other(head, name) => format!("did you mean `{{{head}.{name}}}`?"),
                    Meant::Named(head) => format!("write which: `{{{head}.NAME}}`."),
                    Meant::File => "files are in the folder that the program runs in: write the name that `files` gives it.".to_owned(),
                    Meant::Wildcard(axis) => format!("the value of an axis is written `${{{axis}}}`."),
                };
                (
                    format!("`{whole}` is no placeholder"),
                    format!("{meant} For the characters themselves write `{{{whole}}}`"),
                )
            }
            _ => continue,
        };
        problems.push(Problem::new(pointer, message).help(help));
    }
}

fn near<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone, otherwise: &str) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.clone().next().is_none() => otherwise.to_owned(),
        None => format!("known here: {}; or {otherwise}", list(known)),
    }
}

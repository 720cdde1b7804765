use std::borrow::Cow;
use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use provenir_api::port::{Column, TableSchema};
use provenir_api::{Label, Parameters, Problem, SourceFile};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{columns, folder, problems};

/// Parameters of `command`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandParameters {
    /// The program and its arguments; no shell reads them (`["sh", "-c", "…"]` asks for one). A program without `/` is looked
    /// for on the search path, a relative path in the folder that it runs in. `{input.NAME}`, `{output.NAME}` and `{value.NAME}`
    /// stand for the path of an input, the path that an output is expected at, and a value; `{{input.NAME}}` for the characters
    /// themselves.
    #[schemars(length(min = 1))]
    pub argv: Vec<Argument>,
    /// Files that the program needs, itself if it is a script: their path in the folder that it runs in, and their path as it is
    /// seen from the manifest. They are copied there before it starts, and their content is part of what identifies a result: an
    /// edited script runs again, one that lies elsewhere does not. Any of them can be executed.
    #[serde(default)]
    pub files: BTreeMap<String, SourceFile>,
    /// What is said of inputs, by name, beside what `inputs` of the stage wires.
    #[serde(default)]
    pub inputs: BTreeMap<String, InputOptions>,
    /// What the program gives, by name: at least one. Where there are several, other stages name one as `STAGE.NAME`.
    pub outputs: BTreeMap<String, OutputOptions>,
    /// Values for `{value.NAME}`, so that overrides, profiles and `--set` can change one without writing all arguments again.
    #[serde(default)]
    pub values: BTreeMap<String, Argument>,
    /// Variables of the program's environment. Placeholders are filled in as in arguments.
    #[serde(default)]
    pub environment: BTreeMap<String, Argument>,
    /// Names of variables that the program is given as they are where `provenir` was called, beside `PATH`. Their values are not
    /// part of what identifies a result: nothing runs again because one has changed.
    #[serde(default)]
    pub inherit: Vec<String>,
    /// What `audit` holds the program to. It is not part of what identifies a result; an output that is never the same twice is
    /// `volatile`.
    #[serde(default)]
    pub determinism: Agreement,
}

/// An argument: a text, or a number or truth value written as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Argument(pub Label);

impl JsonSchema for Argument {
    fn schema_name() -> Cow<'static, str> {
        "Argument".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// What is said of an input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputOptions {
    /// Columns that a table must have, by name, with their types as in `outputs`. Whether it has them is known before anything
    /// runs.
    #[serde(default)]
    pub columns: BTreeMap<String, String>,
    /// Whether it takes any number of tables, which the program finds as one, with the axes that are gathered and `source` (where
    /// each row comes from) as further columns.
    #[serde(default)]
    pub many: bool,
}

impl InputOptions {
    /// The columns that are asked for, where any are; those whose types can be understood.
    pub(super) fn schema(&self) -> Option<TableSchema> {
        if self.columns.is_empty() {
            return None;
        }
        let known = self
            .columns
            .iter()
            .filter_map(|(name, written)| Some((name, columns::parse(written).ok()?)));
        let columns = known
            .map(|(name, column)| Column {
                name: name.clone(),
                ..column
            })
            .collect();
        Some(TableSchema::new(columns))
    }
}

/// What is declared of an output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputOptions {
    /// The file that the program writes, as a path in the folder that it runs in; of a table, `NAME.parquet` where absent. What
    /// is no table is kept as it is, with the extension that it has here.
    #[serde(default)]
    pub file: Option<String>,
    /// The columns of a table, by name, and their types: `bool`, `u32`, `u64`, `i64`, `f32`, `f64`, `text`, `list of …` and
    /// `fixed-size list of …` these; `f64?` where values may be missing. The program writes Parquet, and what does not have
    /// these columns is refused.
    #[serde(default)]
    pub columns: Option<BTreeMap<String, String>>,
    /// Whether a table may have further columns.
    #[serde(default)]
    pub open: bool,
    /// Whether it is never the same twice, as seconds on a clock are: it is kept and found again, and `audit` leaves it out, with
    /// whatever is made of it.
    #[serde(default)]
    pub volatile: bool,
}

impl OutputOptions {
    /// The path at which the output of this name is expected, in the folder that the program runs in.
    pub fn path(&self, name: &str) -> String {
        let written = self.file.clone().unwrap_or_else(|| format!("{name}.parquet"));
        folder::below(&written).map_or(written, Utf8PathBuf::into_string)
    }
}

/// How far executions of a program agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// To the bit on one machine; another processor may round otherwise, as libraries for numbers do.
    #[default]
    Platform,
    /// To the bit everywhere.
    Exact,
}

impl Parameters for CommandParameters {
    fn problems(&self) -> Vec<Problem> {
        problems::of_parameters(self)
    }

    fn irrelevant(&self) -> Vec<&'static str> {
        vec!["/determinism"]
    }
}

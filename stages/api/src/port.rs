//! Ports: the named inputs and outputs of a kind, and what passes through them.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::Label;

/// The ports of a stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ports {
    /// Its inputs; names are unique.
    pub inputs: Vec<InputPort>,
    /// Its outputs; names are unique.
    pub outputs: Vec<OutputPort>,
}

/// How many artifacts an input takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arity {
    /// Exactly one artifact: the consumer varies over the producer's axes.
    One,
    /// Any number of artifacts: axes that only the producer has are gathered.
    Many,
}

/// What passes through a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// An Arrow table, stored as Parquet.
    Table(TableSchema),
    /// A file of the given extension (without the dot), stored as it is.
    File(String),
    /// A file of one of the given extensions, stored as it is; which, the execution says.
    FileOf(Vec<String>),
    /// Whatever an output gives; only an input can be of this content.
    Any,
}

/// An input of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputPort {
    /// Name, as written in a manifest's `inputs`.
    pub name: &'static str,
    /// One sentence for people.
    pub doc: &'static str,
    /// One artifact or many.
    pub arity: Arity,
    /// Whether a stage must wire it.
    pub required: bool,
    /// What it accepts: a table must have at least these columns.
    pub content: Content,
}

/// An output of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputPort {
    /// Name, as written after the dot in `stage.port`.
    pub name: &'static str,
    /// One sentence for people.
    pub doc: &'static str,
    /// What it gives.
    pub content: Content,
    /// True but not repeatable (wall-clock times): kept, recorded, and left out of reproducibility checks.
    pub volatile: bool,
}

/// The columns that a table has, or must have at least.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableSchema {
    /// In order.
    pub columns: Vec<Column>,
    /// Whether an output may carry further columns that are known only when it is made.
    pub open: bool,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Type of its values.
    pub kind: ColumnType,
    /// Whether a value may be missing.
    pub nullable: bool,
    /// Physical unit of its values, where they have one (`s`, `rad`, `N m`).
    pub unit: Option<String>,
    /// The values that it may have, where they are known before the table is made: those of an axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<BTreeSet<Label>>,
    /// Values beside those that it has in other runs: those of an axis that a profile or the command line replaces. Naming one
    /// is no mistake.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub elsewhere: BTreeSet<Label>,
}

/// The types that tables are made of; `table` maps them to Arrow's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColumnType {
    /// Truth value.
    Bool,
    /// Unsigned integer of 32 bits.
    UInt32,
    /// Unsigned integer of 64 bits.
    UInt64,
    /// Signed integer of 64 bits.
    Int64,
    /// IEEE single.
    Float32,
    /// IEEE double.
    Float64,
    /// UTF-8 text.
    Utf8,
    /// Lists of one length per table (observations, actions); the length belongs to the table, not to the port.
    FixedList(Box<ColumnType>),
    /// Lists of any length (tensor values).
    List(Box<ColumnType>),
}

impl Column {
    /// A column without nulls and without unit.
    pub fn new(name: &str, kind: ColumnType) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            nullable: false,
            unit: None,
            values: None,
            elsewhere: BTreeSet::new(),
        }
    }

    /// The same column with a physical unit.
    #[must_use]
    pub fn unit(mut self, unit: &str) -> Self {
        self.unit = Some(unit.to_owned());
        self
    }

    /// The same column, which has these values and no others.
    #[must_use]
    pub fn values(mut self, values: impl IntoIterator<Item = Label>) -> Self {
        self.values = Some(values.into_iter().collect());
        self
    }

    /// The same column, which has these values, too, in other runs.
    #[must_use]
    pub fn elsewhere(mut self, values: impl IntoIterator<Item = Label>) -> Self {
        self.elsewhere = values.into_iter().collect();
        self
    }

    /// The same column, whose values may be missing.
    #[must_use]
    pub fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }
}

impl TableSchema {
    /// A schema of exactly these columns.
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, open: false }
    }

    /// Any table.
    pub fn any() -> Self {
        Self {
            columns: Vec::new(),
            open: true,
        }
    }

    /// The same columns, and possibly others.
    #[must_use]
    pub fn open(mut self) -> Self {
        self.open = true;
        self
    }

    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Why a table of this schema cannot serve where `wanted` is asked for: a sentence for each column that is
    /// missing, of another type, or nullable where nulls are not accepted. Empty where it can.
    pub fn mismatches(&self, wanted: &Self) -> Vec<String> {
        let mut mismatches = Vec::new();
        for column in &wanted.columns {
            match self.column(&column.name) {
                None if self.open => {}
                None => mismatches.push(format!("it has no column `{}`", column.name)),
                Some(found) if found.kind != column.kind => mismatches.push(format!(
                    "its column `{}` is {}, not {}",
                    column.name, found.kind, column.kind
                )),
                Some(found) if found.nullable && !column.nullable => {
                    mismatches.push(format!("its column `{}` may hold missing values", column.name));
                }
                Some(_) => {}
            }
        }
        mismatches
    }
}

impl std::fmt::Display for ColumnType {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool => formatter.write_str("bool"),
            Self::UInt32 => formatter.write_str("u32"),
            Self::UInt64 => formatter.write_str("u64"),
            Self::Int64 => formatter.write_str("i64"),
            Self::Float32 => formatter.write_str("f32"),
            Self::Float64 => formatter.write_str("f64"),
            Self::Utf8 => formatter.write_str("text"),
            Self::FixedList(item) => write!(formatter, "fixed-size list of {item}"),
            Self::List(item) => write!(formatter, "list of {item}"),
        }
    }
}

/// The type of a written name: what [`Display`](std::fmt::Display) writes.
impl FromStr for ColumnType {
    type Err = UnknownType;

    fn from_str(text: &str) -> Result<Self, UnknownType> {
        if let Some(scalar) = Self::SCALARS.iter().find(|scalar| scalar.to_string() == text) {
            return Ok(scalar.clone());
        }
        let (list, item): (fn(Box<Self>) -> Self, &str) = match text.split_once("list of ") {
            Some(("", item)) => (Self::List, item),
            Some(("fixed-size ", item)) => (Self::FixedList, item),
            _ => return Err(UnknownType),
        };
        // Tables hold no lists of lists.
        let scalar = Self::SCALARS.iter().find(|scalar| scalar.to_string() == item);
        scalar
            .map(|scalar| list(Box::new(scalar.clone())))
            .ok_or(UnknownType)
    }
}

/// A text names no type that tables are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownType;

impl ColumnType {
    /// The types that are no lists.
    pub const SCALARS: [Self; 7] = [
        Self::Bool,
        Self::UInt32,
        Self::UInt64,
        Self::Int64,
        Self::Float32,
        Self::Float64,
        Self::Utf8,
    ];
}

/// Whether a text can name a port that a manifest declares: letters, digits, `_` and `-`, not beginning with a digit or `-`.
pub fn is_name(text: &str) -> bool {
    const LONGEST: usize = 64;
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    begins
        && text.len() <= LONGEST
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The name of a port that a manifest declares, kept for as long as the process lives, as the names in declarations are.
/// Nothing where it [cannot be one](is_name). Each is kept once: the names that manifests hold are short and few.
pub fn declared_name(text: &str) -> Option<&'static str> {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    if !is_name(text) {
        return None;
    }
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = names.get(text) {
        return Some(name);
    }
    let name: &'static str = Box::leak(text.to_owned().into_boxed_str());
    names.insert(name);
    Some(name)
}

impl Content {
    /// Why an output of this content cannot feed an input of `wanted`; empty where it can.
    pub fn mismatches(&self, wanted: &Self) -> Vec<String> {
        match (self, wanted) {
            (_, Self::Any) => Vec::new(),
            (Self::Table(have), Self::Table(wanted)) => have.mismatches(wanted),
            (have, Self::Table(_)) => vec![format!("it is a {} file, not a table", have.named())],
            (Self::Table(_), wanted) => vec![format!("it is a table, not a {} file", wanted.named())],
            (have, wanted) if have.extensions().iter().all(|extension| wanted.admits(extension)) => {
                Vec::new()
            }
            (have, wanted) => vec![format!(
                "it is a {} file, not a {} file",
                have.named(),
                wanted.named()
            )],
        }
    }

    /// The extensions that the stored file may have, without the dot.
    pub fn extensions(&self) -> Vec<&str> {
        match self {
            Self::Table(_) => vec!["parquet"],
            Self::File(extension) => vec![extension],
            Self::FileOf(extensions) => extensions.iter().map(String::as_str).collect(),
            Self::Any => Vec::new(),
        }
    }

    /// Whether the stored file may have that extension.
    pub fn admits(&self, extension: &str) -> bool {
        self.extensions().contains(&extension)
    }

    /// The extensions, for people: `.gif or .svg`.
    pub fn named(&self) -> String {
        self.extensions()
            .iter()
            .map(|extension| format!(".{extension}"))
            .collect::<Vec<_>>()
            .join(" or ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_may_ask_for_fewer_columns_and_names_each_that_does_not_fit() {
        let have = TableSchema::new(vec![
            Column::new("a", ColumnType::UInt64),
            Column::new("b", ColumnType::Float32).nullable(),
        ]);
        assert!(
            have.mismatches(&TableSchema::new(vec![Column::new("a", ColumnType::UInt64)]))
                .is_empty()
        );
        let wanted = TableSchema::new(vec![
            Column::new("a", ColumnType::Utf8),
            Column::new("b", ColumnType::Float32),
            Column::new("c", ColumnType::Bool),
        ]);
        assert_eq!(
            have.mismatches(&wanted),
            [
                "its column `a` is u64, not text",
                "its column `b` may hold missing values",
                "it has no column `c`"
            ]
        );
        assert!(TableSchema::any().mismatches(&wanted).is_empty());
    }

    #[test]
    fn a_type_is_read_as_it_is_shown() {
        let list = |item: &ColumnType| Box::new(item.clone());
        for scalar in ColumnType::SCALARS {
            let all = [
                scalar.clone(),
                ColumnType::List(list(&scalar)),
                ColumnType::FixedList(list(&scalar)),
            ];
            for column in all {
                assert_eq!(column.to_string().parse(), Ok(column));
            }
        }
        for unknown in [
            "",
            "float",
            "list of",
            "list of list of f32",
            "fixed-size f32",
            "f32 ",
        ] {
            assert_eq!(unknown.parse::<ColumnType>(), Err(UnknownType), "{unknown}");
        }
    }

    #[test]
    fn names_that_a_manifest_declares_are_kept_once() {
        let first = declared_name("table").unwrap();
        let again = ["ta", "ble"].concat();
        assert!(std::ptr::eq(first, declared_name(&again).unwrap()));
        for bad in ["", "../a", "a b", "1a", "-a", "\u{430}"] {
            assert_eq!(declared_name(bad), None, "{bad}");
        }
        assert_eq!(declared_name(&"a".repeat(65)), None);
    }

    #[test]
    fn an_input_of_any_content_takes_tables_and_files() {
        assert!(
            Content::Table(TableSchema::any())
                .mismatches(&Content::Any)
                .is_empty()
        );
        assert!(
            Content::File("pt".to_owned())
                .mismatches(&Content::Any)
                .is_empty()
        );
    }
}

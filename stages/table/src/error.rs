use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use provenir_api::schema::{list, nearest};

use crate::{FILE_LIMIT, Table};

/// Why a table could not be read, written, made or used.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The system could not read or write; the message names operation and path.
    #[error("{source}")]
    Io {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The bytes are not those that were written.
    #[error("`{path}` is damaged: its bytes digest to {found}, not to {expected}")]
    Damaged {
        /// The file.
        path: Utf8PathBuf,
        /// What its bytes must digest to.
        expected: Digest,
        /// What they do digest to.
        found: Digest,
    },
    /// The values are not those that the file says it was written with.
    #[error(
        "`{path}` is damaged: its values digest to {found}, and it was written with values that digest to {expected}; take another copy of it"
    )]
    Altered {
        /// The file.
        path: Utf8PathBuf,
        /// The content digest that the file holds.
        expected: Digest,
        /// [`Table::content`] of what was read.
        found: Digest,
    },
    /// The file is larger than what is read into memory.
    #[error("`{path}` is longer than {FILE_LIMIT} bytes, the most that is read")]
    TooLarge {
        /// The file.
        path: Utf8PathBuf,
    },
    /// The bytes are not a table.
    #[error("`{path}` cannot be read as a Parquet table: {reason}")]
    Unreadable {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A column that is not there.
    #[error("the table has no column `{column}`: {hint}")]
    NoColumn {
        /// The column asked for.
        column: String,
        /// The nearest one, or all there are.
        hint: String,
    },
    /// A column of another type than asked for.
    #[error("column `{column}` is {found}, not {expected}")]
    WrongType {
        /// The column.
        column: String,
        /// The type it was asked for.
        expected: String,
        /// The type it has.
        found: String,
    },
    /// A column with nulls where none are accepted.
    #[error("column `{column}` lacks {count} of its values")]
    Missing {
        /// The column.
        column: String,
        /// How many values are missing.
        count: usize,
    },
    /// A column of a type that tables are not made of.
    #[error(
        "column `{column}` is of the Arrow type {found}: tables are made of bool, u32, u64, i64, f32, f64, text, and lists of these without missing items"
    )]
    Unsupported {
        /// The column.
        column: String,
        /// Its type.
        found: String,
    },
    /// The table is not what is asked for.
    #[error("the table does not fit: {}", mismatches.join("; "))]
    Schema {
        /// A sentence for each column that does not fit.
        mismatches: Vec<String>,
    },
    /// Metadata that is missing or says something impossible.
    #[error("the table's metadata `{key}` {problem}")]
    Metadata {
        /// The key.
        key: String,
        /// What is wrong with it, as the end of a sentence.
        problem: String,
    },
    /// Columns or values that do not make a table.
    #[error("{0}")]
    Invalid(String),
}

impl TableError {
    pub(crate) fn io(path: &Utf8Path, source: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn no_column(table: &Table, column: &str) -> Self {
        let schema = table.batch().schema_ref();
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        Self::NoColumn {
            column: column.to_owned(),
            hint: match nearest(column, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has {}", list(names())),
            },
        }
    }
}

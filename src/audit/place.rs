use std::fmt;

use serde::{Deserialize, Serialize};

/// Characters of a value that are told.
const WIDTH: usize = 60;

/// The first place at which two artifacts differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "place", rename_all = "kebab-case")]
pub enum Place {
    /// The tables have other columns.
    Columns {
        /// Before: name and type of each.
        old: Vec<String>,
        /// Now.
        new: Vec<String>,
    },
    /// They have another number of rows.
    Rows {
        /// Before.
        old: usize,
        /// Now.
        new: usize,
    },
    /// A value.
    Value {
        /// The column.
        column: String,
        /// The row, counted from 0.
        row: usize,
        /// The item of a list, counted from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<usize>,
        /// Before.
        old: String,
        /// Now.
        new: String,
        /// What the row's tensor is called, where the table is one of tensors.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tensor: Option<String>,
        /// The largest difference of numbers in the whole table, each relative to the greatest magnitude of its column, or of
        /// its list; absent where something other than numbers differs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        largest: Option<f64>,
    },
    /// The metadata of the table.
    Metadata {
        /// The key.
        key: String,
        /// Before.
        old: Option<String>,
        /// Now.
        new: Option<String>,
    },
    /// A byte of a file.
    Byte {
        /// Counted from 0.
        offset: u64,
    },
    /// Something that none of these shows, such as a unit, or a whole number beyond 2^53.
    Elsewhere,
}

impl Place {
    /// The largest relative difference, where two tables differ in numbers alone.
    pub fn largest(&self) -> Option<f64> {
        match self {
            Self::Value { largest, .. } => *largest,
            _ => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Columns { old, new } => write!(
                formatter,
                "columns {} became {}",
                cut(&old.join(", ")),
                cut(&new.join(", "))
            ),
            Self::Rows { old, new } => write!(formatter, "{old} rows became {new}"),
            Self::Value {
                column,
                row,
                item,
                old,
                new,
                tensor,
                largest,
            } => {
                write!(formatter, "column {column}, row {row}")?;
                if let Some(item) = item {
                    write!(formatter, ", item {item}")?;
                }
                formatter.write_str(" (counted from 0")?;
                if let Some(tensor) = tensor {
                    write!(formatter, "; tensor {}", cut(tensor))?;
                }
                formatter.write_str(")")?;
                write!(formatter, ": {} became {}", cut(old), cut(new))?;
                match largest {
                    Some(largest) => write!(
                        formatter,
                        " (numbers differ by at most {largest:.1e} of the greatest magnitude in their column or list)"
                    ),
                    None => Ok(()),
                }
            }
            Self::Metadata { key, old, new } => {
                let told = |value: &Option<String>| cut(value.as_deref().unwrap_or("none"));
                write!(formatter, "metadata {key}: {} became {}", told(old), told(new))
            }
            Self::Byte { offset } => write!(formatter, "byte {offset} (counted from 0)"),
            Self::Elsewhere => formatter.write_str("a unit, or a whole number beyond 2^53"),
        }
    }
}

/// Cut to a width, with nothing in it that a terminal would obey.
fn cut(text: &str) -> String {
    let clean = text
        .chars()
        .map(|symbol| if symbol.is_control() { '\u{fffd}' } else { symbol });
    let mut cut: String = clean.clone().take(WIDTH).collect();
    if clean.count() > WIDTH {
        cut.push('…');
    }
    cut
}

//! What `show` says of an artifact: columns with their ranges, metadata, the first rows.

use std::collections::BTreeMap;
use std::fmt::Write;

use provenir_api::port::ColumnType;
use provenir_table::{Table, TableError};
use serde_json::{Value, json};

/// Rows that are shown.
const ROWS: usize = 5;
/// Characters of a value that are shown.
const WIDTH: usize = 28;

/// A table in words.
pub(super) fn describe(table: &Table) -> Result<String, TableError> {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let (rows, columns) = (table.rows(), table.schema().columns.len());
    let mut text = format!(
        "{rows} row{}, {columns} column{}\n",
        plural(rows),
        plural(columns)
    );
    let mut grid = vec![
        ["column", "type", "unit", "missing", "min", "mean", "max"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut values: Vec<(String, Vec<String>)> = Vec::new();
    for column in &table.schema().columns {
        let Column {
            values: shown,
            missing,
            range,
        } = Column::read(table, &column.name, &column.kind)?;
        let kind = match &column.kind {
            ColumnType::FixedList(item) => format!(
                "{item} × {}",
                table
                    .column_fixed_list_f32(&column.name)
                    .map_or(0, |(width, _)| width)
            ),
            other => other.to_string(),
        };
        let [least, mean, most] = range.map_or_else(
            || [const { String::new() }; 3],
            |[least, mean, most]| [number(least), number(mean), number(most)],
        );
        let missing = if missing == 0 {
            String::new()
        } else {
            missing.to_string()
        };
        let unit = column.unit.clone().unwrap_or_default();
        grid.push(vec![column.name.clone(), kind, unit, missing, least, mean, most]);
        values.push((column.name.clone(), shown));
    }
    text.push('\n');
    text.push_str(&aligned(&grid));
    if !table.metadata().is_empty() {
        text.push_str("\nmetadata\n");
        for (key, value) in table.metadata() {
            let _ = writeln!(text, "  {key} = {}", cut(value, 100));
        }
    }
    let shown = ROWS.min(table.rows());
    if shown > 0 {
        let _ = writeln!(text, "\nfirst {shown} of {} rows", table.rows());
        let mut grid = vec![values.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()];
        grid.extend((0..shown).map(|row| values.iter().map(|(_, column)| column[row].clone()).collect()));
        text.push_str(&aligned(&grid));
    }
    Ok(text)
}

/// A table as JSON: columns with their ranges, metadata; `null` is what a column does not have.
pub(super) fn json(table: &Table) -> Result<Value, TableError> {
    let mut columns = Vec::new();
    for column in &table.schema().columns {
        let Column { missing, range, .. } = Column::read(table, &column.name, &column.kind)?;
        columns.push(json!({
            "name": column.name,
            "type": column.kind.to_string(),
            "unit": column.unit,
            "missing": missing,
            "min": range.map(|[least, _, _]| least),
            "mean": range.map(|[_, mean, _]| mean),
            "max": range.map(|[_, _, most]| most),
        }));
    }
    let metadata = table.metadata().iter();
    let metadata: BTreeMap<&String, &String> = metadata.collect();
    Ok(json!({
        "kind": "table",
        "rows": table.rows(),
        "columns": columns,
        "metadata": metadata,
        "content": table.content().to_string(),
    }))
}

/// Names of a table's number columns, and the mean of each; `None` where it has no value.
pub(super) fn means(table: &Table) -> Result<Vec<(String, Option<f64>)>, TableError> {
    let mut means = Vec::new();
    for column in &table.schema().columns {
        if matches!(
            column.kind,
            ColumnType::Bool | ColumnType::Utf8 | ColumnType::List(_) | ColumnType::FixedList(_)
        ) {
            continue;
        }
        let found = Column::read(table, &column.name, &column.kind)?;
        means.push((column.name.clone(), found.range.map(|[_, mean, _]| mean)));
    }
    Ok(means)
}

/// A column's first values as text, the number of missing ones, and least, mean and most where they are numbers.
struct Column {
    values: Vec<String>,
    missing: usize,
    range: Option<[f64; 3]>,
}

impl Column {
    fn read(table: &Table, name: &str, kind: &ColumnType) -> Result<Self, TableError> {
        let first = ROWS.min(table.rows());
        Ok(match kind {
            ColumnType::Bool => {
                let values = table.column_bool(name)?;
                Self {
                    values: values[..first].iter().map(ToString::to_string).collect(),
                    missing: 0,
                    range: range(values.iter().map(|value| f64::from(u8::from(*value)))),
                }
            }
            ColumnType::Utf8 => {
                let values = table.optional_utf8(name)?;
                Self {
                    values: values[..first]
                        .iter()
                        .map(|value| value.map_or_else(String::new, |value| cut(value, WIDTH)))
                        .collect(),
                    missing: values.iter().filter(|value| value.is_none()).count(),
                    range: None,
                }
            }
            ColumnType::FixedList(_) => {
                let (width, values) = table.column_fixed_list_f32(name)?;
                Self {
                    values: values.chunks(width.max(1)).take(first).map(list).collect(),
                    missing: 0,
                    range: range(values.iter().map(|value| f64::from(*value))),
                }
            }
            ColumnType::List(item) if **item == ColumnType::UInt32 => {
                let lists = table.column_list_u32(name)?;
                Self {
                    values: lists[..first].iter().map(|list| format!("{list:?}")).collect(),
                    missing: 0,
                    range: None,
                }
            }
            ColumnType::List(item) => {
                let lists: Vec<Option<Vec<f32>>> = if **item == ColumnType::Float64 {
                    let lists = table.optional_list_f64(name)?;
                    lists
                        .into_iter()
                        .map(|list| Some(list?.iter().map(|value| *value as f32).collect()))
                        .collect()
                } else {
                    table
                        .optional_list_f32(name)?
                        .into_iter()
                        .map(|list| list.map(<[f32]>::to_vec))
                        .collect()
                };
                Self {
                    values: lists[..first]
                        .iter()
                        .map(|values| values.as_deref().map_or_else(String::new, list))
                        .collect(),
                    missing: lists.iter().filter(|list| list.is_none()).count(),
                    range: range(lists.iter().flatten().flatten().map(|value| f64::from(*value))),
                }
            }
            _ => {
                let values = table.column_numbers(name)?;
                Self {
                    values: values[..first]
                        .iter()
                        .map(|value| value.map_or_else(String::new, number))
                        .collect(),
                    missing: values.iter().filter(|value| value.is_none()).count(),
                    range: range(values.into_iter().flatten()),
                }
            }
        })
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<[f64; 3]> {
    let (mut least, mut most, mut sum, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0_u64);
    for value in values {
        least = least.min(value);
        most = most.max(value);
        sum += value;
        count += 1;
    }
    (count > 0).then(|| [least, sum / count as f64, most])
}

/// Whole numbers as they are, others to six significant digits.
pub(super) fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value}");
    }
    let magnitude = value.abs().log10().floor();
    if (-5.0..6.0).contains(&magnitude) {
        let text = format!("{value:.*}", (5.0 - magnitude).clamp(0.0, 10.0) as usize);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{value:.5e}")
    }
}

fn list(values: &[f32]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = values
        .iter()
        .take(SHOWN)
        .map(|value| format!("{value:.3}"))
        .collect();
    let rest = if values.len() > SHOWN { ", …" } else { "" };
    format!("[{}{rest}]", shown.join(", "))
}

/// Cut to a width, with nothing in it that a terminal would obey.
pub(super) fn cut(text: &str, width: usize) -> String {
    let clean: String = text
        .chars()
        .map(|symbol| if symbol.is_control() { '\u{fffd}' } else { symbol })
        .collect();
    if clean.chars().count() <= width {
        return clean;
    }
    clean.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Columns two spaces apart, each as wide as its widest value.
fn aligned(grid: &[Vec<String>]) -> String {
    let columns = grid.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            grid.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or_default()
        })
        .collect();
    let mut text = String::new();
    for row in grid {
        let mut line = String::new();
        for (value, width) in row.iter().zip(&widths) {
            let _ = write!(line, "  {value:width$}");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use provenir_table::TableBuilder;

    use super::*;

    #[test]
    fn a_table_is_told_with_ranges_missing_values_and_first_rows() {
        let table = TableBuilder::new()
            .u64("sample", (0..7).collect())
            .fixed_list_f32("action", 2, (0..14).map(|value| value as f32 / 2.0).collect())
            .optional_f64("loss", vec![Some(0.5), None, Some(1.5), None, None, None, None])
            .utf8("method", ["bc"; 7])
            .metadata("environment", "hopper\u{1b}[31m")
            .build()
            .unwrap();
        let text = describe(&table).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "7 rows, 4 columns");
        assert!(
            lines
                .iter()
                .any(|line| line.split_whitespace().eq(["sample", "u64", "0", "3", "6"])),
            "{text}"
        );
        assert!(
            lines.iter().any(|line| line
                .split_whitespace()
                .eq(["action", "f32", "×", "2", "0", "3.25", "6.5"])),
            "{text}"
        );
        assert!(
            lines.iter().any(|line| line
                .split_whitespace()
                .eq(["loss", "f64", "5", "0.5", "1", "1.5"])),
            "{text}"
        );
        assert!(text.contains("environment = hopper\u{fffd}[31m"), "{text}");
        assert!(text.contains("first 5 of 7 rows"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn an_empty_table_has_no_ranges_and_no_rows() {
        let table = TableBuilder::new().f64("value", vec![]).build().unwrap();
        assert_eq!(describe(&table).unwrap().lines().next(), Some("0 rows, 1 column"));
    }

    #[test]
    fn numbers_are_kept_to_what_matters() {
        assert_eq!(
            [1.0, 0.1, 2_442.123_456, 1.0 / 3.0, 1e-9].map(number),
            ["1", "0.1", "2442.12", "0.333333", "1.00000e-9"]
        );
    }
}

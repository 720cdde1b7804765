//! The columns of what arrives: those of the tables, the labels of gathered axes, and where a table comes from.
//!
//! A label hides a column of its name, and both hide nothing else: a table that lacks a column has it empty.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use provenir_api::Label;
use provenir_api::port::{Column, ColumnType, TableSchema};
use provenir_execution::{Failure, Input};
use provenir_kinds::plot::SOURCE;

/// A column of labels over the rows of one table.
pub(crate) enum Factor {
    /// The same in every row.
    Constant(Option<Label>),
    Rows(Vec<Option<Label>>),
}

impl Factor {
    pub(crate) fn get(&self, row: usize) -> Option<&Label> {
        match self {
            Self::Constant(label) => label.as_ref(),
            Self::Rows(labels) => labels[row].as_ref(),
        }
    }
}

/// The schema of what arrives as one table.
pub(crate) fn schema(input: &Input) -> TableSchema {
    let labels = input.labels.iter().map(|(name, label)| {
        let kind = match label {
            Label::Bool(_) => ColumnType::Bool,
            Label::Integer(_) => ColumnType::Int64,
            Label::Float(_) => ColumnType::Float64,
            Label::Text(_) => ColumnType::Utf8,
        };
        Column::new(name, kind)
    });
    let mut columns: Vec<Column> = labels.collect();
    let hidden = |column: &Column| input.labels.contains_key(&column.name);
    columns.extend(
        input
            .table
            .schema()
            .columns
            .into_iter()
            .filter(|column| !hidden(column)),
    );
    TableSchema::new(columns)
}

pub(crate) fn has(input: &Input, name: &str) -> bool {
    input.labels.contains_key(name) || name == SOURCE || input.table.has_column(name)
}

/// Whether a column holds texts.
pub(crate) fn is_text(input: &Input, name: &str) -> bool {
    if let Some(label) = input.labels.get(name) {
        return matches!(label, Label::Text(_));
    }
    let schema = input.table.schema();
    schema
        .column(name)
        .is_some_and(|column| column.kind == ColumnType::Utf8)
}

/// A column as numbers, NaN where a value is missing; truth values are 0 and 1. Single floats become the doubles of the same
/// shortest decimal, so that 0.1 is 0.1 wherever it comes from, where `decimal` asks for it.
pub(crate) fn numbers(input: &Input, name: &str, decimal: bool) -> Result<Vec<f64>, Failure> {
    let rows = input.table.rows();
    if let Some(label) = input.labels.get(name) {
        let value = match label {
            Label::Bool(value) => Some(f64::from(u8::from(*value))),
            label => label.as_number(),
        };
        let value = value.ok_or_else(|| {
            Failure::stage(format!(
                "`{name}` must be a number; it is `{label}` in `{}`",
                input.source
            ))
        })?;
        return Ok(vec![value; rows]);
    }
    let Some(column) = input.table.batch().column_by_name(name) else {
        return Ok(vec![f64::NAN; rows]);
    };
    if let Some(values) = column.as_boolean_opt() {
        let number = |value: Option<bool>| value.map_or(f64::NAN, |value| f64::from(u8::from(value)));
        return Ok(values.iter().map(number).collect());
    }
    if let (true, Some(values)) = (decimal, column.as_primitive_opt::<Float32Type>()) {
        return Ok(values
            .iter()
            .map(|value| value.map_or(f64::NAN, shortest))
            .collect());
    }
    let values = input.table.column_numbers(name)?;
    Ok(values
        .into_iter()
        .map(|value| value.unwrap_or(f64::NAN))
        .collect())
}

/// A column as labels; NaN is a missing value.
pub(crate) fn factor(input: &Input, name: &str) -> Result<Factor, Failure> {
    if let Some(label) = input.labels.get(name) {
        return Ok(Factor::Constant(Some(label.clone())));
    }
    if name == SOURCE {
        return Ok(Factor::Constant(Some(Label::Text(input.source.clone()))));
    }
    let table = &input.table;
    let Some(kind) = table.schema().column(name).map(|column| column.kind.clone()) else {
        return Ok(Factor::Constant(None));
    };
    let array = || table.batch().column_by_name(name);
    Ok(Factor::Rows(match kind {
        ColumnType::Bool => {
            let values = array().into_iter().flat_map(|array| array.as_boolean().iter());
            values.map(|value| value.map(Label::Bool)).collect()
        }
        ColumnType::Utf8 => {
            let values = table.optional_utf8(name)?.into_iter();
            values
                .map(|value| value.map(|text| Label::Text(text.to_owned())))
                .collect()
        }
        ColumnType::Int64 => table
            .optional_i64(name)?
            .into_iter()
            .map(|value| value.map(Label::Integer))
            .collect(),
        ColumnType::UInt64 => {
            let label = |value: u64| {
                i64::try_from(value).map_or_else(
                    |_| Label::number(value as f64),
                    |value| Some(Label::Integer(value)),
                )
            };
            table
                .optional_u64(name)?
                .into_iter()
                .map(|value| value.and_then(label))
                .collect()
        }
        _ => numbers(input, name, true)?
            .into_iter()
            .map(Label::number)
            .collect(),
    }))
}

fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::NAN)
}

/// A label as people read it.
pub(crate) fn shown(label: &Label) -> Cow<'_, str> {
    match label {
        Label::Text(text) => text.into(),
        label => label.to_string().into(),
    }
}

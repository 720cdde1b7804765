//! Schemas of the tables that pass between the built-in kinds.

use provenir_api::port::{Column, ColumnType, Content, TableSchema};

/// Observations or actions.
pub(crate) fn floats() -> ColumnType {
    ColumnType::FixedList(Box::new(ColumnType::Float32))
}

/// Demonstrations: one row per transition, the observation before and the action taken.
pub fn demonstrations() -> Content {
    Content::Table(TableSchema::new(vec![
        Column::new("sample", ColumnType::UInt64),
        Column::new("episode", ColumnType::UInt32),
        Column::new("step", ColumnType::UInt32),
        Column::new("observation", floats()),
        Column::new("action", floats()),
        Column::new("reward", ColumnType::Float32),
        Column::new("terminated", ColumnType::Bool),
        Column::new("truncated", ColumnType::Bool),
    ]))
}

/// Episodes of demonstrations: one row each.
pub fn episodes() -> Content {
    Content::Table(TableSchema::new(vec![
        Column::new("episode", ColumnType::UInt32),
        Column::new("return", ColumnType::Float64),
        Column::new("length", ColumnType::UInt32).unit("steps"),
        Column::new("terminated", ColumnType::Bool),
        Column::new("truncated", ColumnType::Bool),
        Column::new("recorded", ColumnType::UInt32).unit("steps"),
    ]))
}

/// A policy: one row per tensor and checkpoint; exactly one of `values` and `values64` is set.
pub fn policy() -> Content {
    let list = |item| ColumnType::List(Box::new(item));
    Content::Table(TableSchema::new(vec![
        Column::new("checkpoint", ColumnType::UInt32),
        Column::new("name", ColumnType::Utf8),
        Column::new("shape", list(ColumnType::UInt32)),
        Column::new("values", list(ColumnType::Float32)).nullable(),
        Column::new("values64", list(ColumnType::Float64)).nullable(),
    ]))
}

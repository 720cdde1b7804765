//! What arrives at a stage's ports: the producers' columns, with gathered axes as further columns.

use std::collections::BTreeMap;

use provenir_api::Label;
use provenir_api::port::{Arity, Column, ColumnType, Content, TableSchema};

use super::axes::{Axes, AxisSet};
use super::graph::Graph;
use crate::manifest::{AxisValue, Report};

/// The column that says which member of a union a row comes from.
const SOURCE: &str = "source";

/// The schema at each wired port that takes tables, by port in the kind's order. `gathered` gives the axes gathered
/// over each wire. Members of a union whose columns disagree, and axes that a column is in the way of, are reported.
pub(super) fn arriving(
    graph: &Graph<'_>,
    stage: usize,
    gathered: &[AxisSet],
    axes: &Axes<'_>,
    report: &mut Report,
) -> Vec<(&'static str, TableSchema)> {
    let node = &graph.nodes[stage];
    let Some(kind) = &node.kind else { return Vec::new() };
    let mut arriving = Vec::new();
    for (position, port) in kind.inputs.iter().enumerate() {
        if !matches!(port.content, Content::Table(_)) {
            continue;
        }
        let mut members = Vec::new();
        for (wire, gathered) in node.wires.iter().zip(gathered).filter(|(wire, _)| wire.port == position) {
            let Some(produced) = graph.nodes[wire.producer].kind.as_ref().map(|kind| &kind.outputs[wire.output]) else {
                continue;
            };
            let Content::Table(columns) = &produced.content else {
                continue;
            };
            let mut columns = columns.clone();
            if port.arity == Arity::Many {
                for axis in gathered.iter() {
                    let name = axes.name(axis);
                    if columns.column(name).is_some() {
                        report
                            .error(
                                wire.item.span,
                                format!(
                                    "the axis `{name}` becomes a column here, and `{}.{}` has a column of that name",
                                    graph.nodes[wire.producer].name, produced.name
                                ),
                            )
                            .label(axes.key(axis), "the axis")
                            .help("rename the axis");
                        continue;
                    }
                    columns.columns.push(Column::new(name, label_type(axes.values(axis))));
                }
            }
            members.push((wire, columns));
        }
        let Some((first, mut united)) = members.first().cloned() else {
            continue;
        };
        for (wire, columns) in &members[1..] {
            for (name, have, other) in unite(&mut united, columns) {
                report
                    .error(
                        wire.item.span,
                        format!("the tables cannot be united: column `{name}` is {other} here and {have} before"),
                    )
                    .label(first.item.span, "united with this");
            }
        }
        if members.len() > 1 && united.column(SOURCE).is_none() {
            united.columns.push(Column::new(SOURCE, ColumnType::Utf8));
        }
        arriving.push((port.name, united));
    }
    arriving
}

/// Adds the columns of another member; gives those that disagree, with both types.
fn unite(united: &mut TableSchema, other: &TableSchema) -> Vec<(String, ColumnType, ColumnType)> {
    let mut disagreements = Vec::new();
    united.open |= other.open;
    for column in &mut united.columns {
        match other.column(&column.name) {
            // Rows of the other member have no value.
            None => column.nullable = true,
            Some(found) => {
                column.nullable |= found.nullable;
                if found.kind != column.kind {
                    if is_number(&found.kind) && is_number(&column.kind) {
                        column.kind = ColumnType::Float64;
                    } else {
                        disagreements.push((column.name.clone(), column.kind.clone(), found.kind.clone()));
                    }
                }
            }
        }
    }
    let present: BTreeMap<String, ()> = united.columns.iter().map(|column| (column.name.clone(), ())).collect();
    for column in &other.columns {
        if !present.contains_key(&column.name) {
            united.columns.push(column.clone().nullable());
        }
    }
    disagreements
}

fn is_number(kind: &ColumnType) -> bool {
    matches!(
        kind,
        ColumnType::UInt32 | ColumnType::UInt64 | ColumnType::Int64 | ColumnType::Float32 | ColumnType::Float64
    )
}

/// The type of a column that holds the labels of an axis.
pub(super) fn label_type(values: &[AxisValue]) -> ColumnType {
    let all = |test: fn(&Label) -> bool| values.iter().all(|value| test(&value.label));
    if all(|label| matches!(label, Label::Integer(_))) {
        ColumnType::Int64
    } else if all(|label| label.as_number().is_some()) {
        ColumnType::Float64
    } else if all(|label| matches!(label, Label::Bool(_))) {
        ColumnType::Bool
    } else {
        ColumnType::Utf8
    }
}

//! What arrives at a stage's ports: the producers' columns, with gathered axes and the source as further columns.

use provenir_api::Label;
use provenir_api::port::{Arity, Column, ColumnType, Content, TableSchema};

use super::axes::{Axes, AxisSet};
use super::graph::Graph;
use crate::manifest::{AxisValue, Report};

/// The column of a union that tells its members apart.
const SOURCE: &str = "source";

/// The schema of each producer's tables at each port that takes tables: by port in the kind's order, one for each
/// member of a union. A file at a port that takes anything has no columns. `gathered` gives the axes gathered over each wire. An axis that a column is in the way of is
/// reported.
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
    for (wire, gathered) in node.wires.iter().zip(gathered) {
        let port = &kind.inputs[wire.port];
        let producer = &graph.nodes[wire.producer];
        let Some(produced) = producer.kind.as_ref().map(|kind| &kind.outputs[wire.output]) else {
            continue;
        };
        let mut columns = match (&port.content, &produced.content) {
            (Content::Table(_) | Content::Any, Content::Table(columns)) => columns.clone(),
            (Content::Any, _) => {
                arriving.push((port.name, TableSchema::default()));
                continue;
            }
            _ => continue,
        };
        if port.arity == Arity::Many {
            if columns.column(SOURCE).is_none() {
                let source = Label::Text(wire.source.to_string());
                columns
                    .columns
                    .push(Column::new(SOURCE, ColumnType::Utf8).values([source]));
            }
            for axis in gathered.iter() {
                let name = axes.name(axis);
                if columns.column(name).is_none() {
                    let column = Column::new(name, label_type(axes.values(axis)));
                    let column = column.values(axes.labels(axis)).elsewhere(axes.inactive(axis));
                    columns.columns.push(column);
                    continue;
                }
                let message = format!(
                    "the axis `{name}` becomes a column here, and `{}.{}` has a column of that name",
                    producer.name, produced.name
                );
                report
                    .error(wire.item.span, message)
                    .label(axes.key(axis), "the axis")
                    .help("rename the axis");
            }
        }
        arriving.push((port.name, columns));
    }
    arriving
}

/// The type of a column that holds the labels of an axis.
fn label_type(values: &[AxisValue]) -> ColumnType {
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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Field, Metadata, Schema};
use arrow_select::concat::concat_batches;
use provenir_api::Label;

use crate::{Table, TableError};

/// The column that says where a row comes from.
const SOURCE: &str = "source";

/// A table among those that are united.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// What its rows get as further columns.
    pub labels: &'a BTreeMap<String, Label>,
    /// Where it comes from.
    pub source: &'a str,
    /// The table.
    pub table: &'a Table,
}

/// One table of the rows of all, in this order: with their labels as further columns, by name, and `source` where no table has a
/// column of that name. A label that not all have is missing from the rows of the others. Tables have the same columns, in any
/// order; the first one's counts. Metadata that all agree in stays.
pub fn unite(members: &[Member<'_>]) -> Result<Table, TableError> {
    let Some(first) = members.first() else {
        return Err(TableError::Invalid("there is no table to unite".to_owned()));
    };
    let axes: BTreeSet<&str> = members
        .iter()
        .flat_map(|member| member.labels.keys().map(String::as_str))
        .collect();
    let mut fields: Vec<Field> = first
        .table
        .batch()
        .schema_ref()
        .fields()
        .iter()
        .map(|field| field.as_ref().clone())
        .collect();
    for member in members {
        same_columns(first, member)?;
        for field in &mut fields {
            let other = member
                .table
                .batch()
                .schema_ref()
                .field_with_name(field.name())
                .is_ok_and(Field::is_nullable);
            field.set_nullable(field.is_nullable() || other);
        }
    }
    let has_source = fields.iter().any(|field| field.name() == SOURCE);
    let mut batches = Vec::with_capacity(members.len());
    let mut further = Vec::new();
    if !has_source {
        further.push((
            SOURCE,
            texts(members.iter().map(|member| member.source.to_owned())),
        ));
    }
    for axis in axes {
        if fields.iter().any(|field| field.name() == axis) {
            return Err(TableError::Invalid(format!(
                "the axis `{axis}` becomes a column, and the tables have a column of that name"
            )));
        }
        let labels: Vec<Option<&Label>> = members.iter().map(|member| member.labels.get(axis)).collect();
        further.push((axis, column(&labels)));
    }
    for (name, values) in &further {
        fields.push(Field::new(
            *name,
            values.data_type().clone(),
            values.null_count() > 0,
        ));
    }
    let schema = Arc::new(Schema::new_with_metadata(fields, common_metadata(members)));
    for (index, member) in members.iter().enumerate() {
        let batch = member.table.batch();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let repeated = || {
                let (_, values) = further.iter().find(|(name, _)| name == field.name())?;
                let indices = arrow_array::UInt64Array::from_value(index as u64, batch.num_rows());
                arrow_select::take::take(values, &indices, None).ok()
            };
            let values = batch.column_by_name(field.name()).cloned().or_else(repeated);
            columns.push(values.ok_or_else(|| TableError::no_column(member.table, field.name()))?);
        }
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
            .map_err(|error| TableError::Invalid(error.to_string()))?;
        batches.push(batch);
    }
    let united = concat_batches(&schema, &batches).map_err(|error| TableError::Invalid(error.to_string()))?;
    Table::new(&united)
}

/// Fails where two tables do not have the same columns.
fn same_columns(first: &Member<'_>, other: &Member<'_>) -> Result<(), TableError> {
    let columns = |member: &Member<'_>| -> BTreeMap<String, String> {
        let fields = member.table.batch().schema_ref().fields().iter();
        fields
            .map(|field| (field.name().clone(), field.data_type().to_string()))
            .collect()
    };
    let (wanted, found) = (columns(first), columns(other));
    let mut differing = wanted
        .keys()
        .chain(found.keys())
        .filter(|name| wanted.get(*name) != found.get(*name));
    let Some(name) = differing.next() else {
        return Ok(());
    };
    let told = |columns: &BTreeMap<String, String>| match columns.get(name) {
        Some(kind) => format!("is {kind}"),
        None => "is absent".to_owned(),
    };
    Err(TableError::Invalid(format!(
        "the tables cannot be united: column `{name}` {} in {} and {} in {}",
        told(&wanted),
        shown(first),
        told(&found),
        shown(other)
    )))
}

fn shown(member: &Member<'_>) -> String {
    let labels: Vec<String> = member
        .labels
        .iter()
        .map(|(axis, label)| format!("{axis}={label}"))
        .collect();
    if labels.is_empty() {
        format!("`{}`", member.source)
    } else {
        format!("`{}[{}]`", member.source, labels.join(", "))
    }
}

fn common_metadata(members: &[Member<'_>]) -> Metadata {
    let mut common = members
        .first()
        .map(|member| member.table.metadata().clone())
        .unwrap_or_default();
    for member in members {
        let own = member.table.metadata();
        let lost: Vec<String> = common
            .iter()
            .filter(|(key, value)| own.get(key.as_str()) != Some(*value))
            .map(|(key, _)| key.clone())
            .collect();
        for key in lost {
            common.remove(key.as_str());
        }
    }
    common
}

/// Labels as a column, of the type that holds them all.
fn column(labels: &[Option<&Label>]) -> ArrayRef {
    let all = |test: fn(&Label) -> bool| labels.iter().flatten().all(|label| test(label));
    if all(|label| matches!(label, Label::Integer(_))) {
        let numbers = labels.iter().map(|label| match label {
            Some(Label::Integer(number)) => Some(*number),
            _ => None,
        });
        Arc::new(numbers.collect::<Int64Array>())
    } else if all(|label| label.as_number().is_some()) {
        let numbers = labels.iter().map(|label| label.and_then(Label::as_number));
        Arc::new(numbers.collect::<Float64Array>())
    } else if all(|label| matches!(label, Label::Bool(_))) {
        let truths = labels
            .iter()
            .map(|label| label.map(|label| matches!(label, Label::Bool(true))));
        Arc::new(truths.collect::<BooleanArray>())
    } else {
        let texts = labels.iter().map(|label| label.map(ToString::to_string));
        Arc::new(texts.collect::<StringArray>())
    }
}

fn texts(texts: impl Iterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(texts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableBuilder;

    fn labels(epsilon: f64, name: &str) -> BTreeMap<String, Label> {
        BTreeMap::from([
            ("epsilon".to_owned(), Label::number(epsilon).unwrap()),
            ("name".to_owned(), Label::Text(name.to_owned())),
        ])
    }

    #[test]
    fn rows_of_all_tables_stand_beside_their_labels() {
        let one = TableBuilder::new()
            .f64("a", vec![1.0, 2.0])
            .u32("b", vec![1, 2])
            .metadata("environment", "ant")
            .metadata("n", "1")
            .build()
            .unwrap();
        // Other order, and values that may be missing.
        let two = TableBuilder::new()
            .optional_u32("b", vec![None])
            .f64("a", vec![3.0])
            .metadata("environment", "ant")
            .metadata("n", "2")
            .build()
            .unwrap();
        let (first, second) = (labels(0.0, "x"), labels(0.5, "y"));
        let member = |labels, table| Member {
            labels,
            source: "reward",
            table,
        };
        let united = unite(&[member(&first, &one), member(&second, &two)]).unwrap();
        let expected = TableBuilder::new()
            .f64("a", vec![1.0, 2.0, 3.0])
            .optional_u32("b", vec![Some(1), Some(2), None])
            .utf8("source", ["reward", "reward", "reward"])
            .f64("epsilon", vec![0.0, 0.0, 0.5])
            .utf8("name", ["x", "x", "y"])
            .metadata("environment", "ant")
            .build()
            .unwrap();
        assert_eq!(united, expected);
    }

    #[test]
    fn a_label_that_not_all_have_is_missing_from_the_others() {
        let table = TableBuilder::new().f64("a", vec![1.0]).build().unwrap();
        let (with, without) = (
            BTreeMap::from([("n".to_owned(), Label::Integer(3))]),
            BTreeMap::new(),
        );
        let members = [
            Member {
                labels: &with,
                source: "x",
                table: &table,
            },
            Member {
                labels: &without,
                source: "y",
                table: &table,
            },
        ];
        let expected = TableBuilder::new()
            .f64("a", vec![1.0, 1.0])
            .utf8("source", ["x", "y"])
            .optional_i64("n", vec![Some(3), None])
            .build()
            .unwrap();
        assert_eq!(unite(&members).unwrap(), expected);
    }

    #[test]
    fn tables_that_differ_or_have_an_axis_for_a_column_are_refused() {
        let none = BTreeMap::new();
        let one = TableBuilder::new().f64("a", vec![1.0]).build().unwrap();
        let two = TableBuilder::new().f32("a", vec![1.0]).build().unwrap();
        let members = [
            Member {
                labels: &none,
                source: "x",
                table: &one,
            },
            Member {
                labels: &none,
                source: "y",
                table: &two,
            },
        ];
        assert_eq!(
            unite(&members).unwrap_err().to_string(),
            "the tables cannot be united: column `a` is Float64 in `x` and is Float32 in `y`"
        );
        let labels = BTreeMap::from([("a".to_owned(), Label::Bool(true))]);
        let members = [Member {
            labels: &labels,
            source: "x",
            table: &one,
        }];
        assert!(
            unite(&members)
                .unwrap_err()
                .to_string()
                .contains("the axis `a` becomes a column")
        );
        assert!(unite(&[]).is_err());
    }
}

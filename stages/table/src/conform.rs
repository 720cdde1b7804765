use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, ListArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use provenir_api::port::{Column, ColumnType, TableSchema};

use crate::normal::item;
use crate::table::column_type;
use crate::{Table, TableError};

impl Table {
    /// The same table with the columns that are declared, and no others unless the declaration is open: what another program
    /// wrote, as what it was asked for. Lists of one length become fixed-size lists where those are declared, since few
    /// programs write these; and a column of which no value is missing, and none may be, says so. Columns keep their order.
    pub fn conform(&self, declared: &TableSchema) -> Result<Self, TableError> {
        let schema = self.batch().schema();
        let mut mismatches = Vec::new();
        let mut fields: Vec<Field> = Vec::with_capacity(schema.fields().len());
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
        for (field, values) in schema.fields().iter().zip(self.batch().columns()) {
            let fitted = match declared.column(field.name()) {
                Some(wanted) => fitted(field, values, wanted),
                None if declared.open => Ok((field.as_ref().clone(), values.clone())),
                None => Err(format!(
                    "it has a column `{}`, which is not declared",
                    field.name()
                )),
            };
            match fitted {
                Ok((field, values)) => {
                    fields.push(field);
                    columns.push(values);
                }
                Err(mismatch) => mismatches.push(mismatch),
            }
        }
        for wanted in &declared.columns {
            if schema.field_with_name(&wanted.name).is_err() {
                mismatches.push(format!("it has no column `{}`", wanted.name));
            }
        }
        if !mismatches.is_empty() {
            return Err(TableError::Schema { mismatches });
        }
        let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
        let batch = RecordBatch::try_new(Arc::new(schema), columns)
            .map_err(|error| TableError::Invalid(error.to_string()))?;
        Self::new(&batch)
    }
}

/// A column as it is declared, or what is wrong with it.
fn fitted(field: &Field, values: &ArrayRef, wanted: &Column) -> Result<(Field, ArrayRef), String> {
    let name = field.name();
    let found = column_type(field.data_type());
    let fits = match (&found, &wanted.kind) {
        (Some(ColumnType::List(item)), ColumnType::FixedList(wanted)) => item == wanted,
        (found, wanted) => found.as_ref() == Some(wanted),
    };
    if !fits {
        let found = found.map_or_else(|| field.data_type().to_string(), |found| found.to_string());
        return Err(format!("its column `{name}` is {found}, not {}", wanted.kind));
    }
    if !wanted.nullable && values.null_count() > 0 {
        return Err(format!(
            "its column `{name}` lacks {} of its {} values",
            values.null_count(),
            values.len()
        ));
    }
    let values = match (&wanted.kind, field.data_type()) {
        (ColumnType::FixedList(_), DataType::List(_)) => Arc::new(fixed(name, values.as_list())?) as ArrayRef,
        _ => values.clone(),
    };
    let field =
        Field::new(name, values.data_type().clone(), wanted.nullable).with_metadata(field.metadata().clone());
    Ok((field, values))
}

/// Lists of one length.
fn fixed(name: &str, lists: &ListArray) -> Result<FixedSizeListArray, String> {
    if lists.null_count() > 0 {
        return Err(format!(
            "its column `{name}` lacks {} of its lists",
            lists.null_count()
        ));
    }
    let mut lengths = lists.offsets().windows(2).map(|pair| pair[1] - pair[0]);
    let Some(width) = lengths.next() else {
        return Err(format!(
            "its column `{name}` has no row that says how long its lists are"
        ));
    };
    if let Some((row, other)) = lengths.enumerate().find(|(_, length)| *length != width) {
        return Err(format!(
            "the lists of its column `{name}` differ in length: row 0 has {width} items, row {} has {other}",
            row + 1
        ));
    }
    let (first, last) = (lists.offsets()[0], lists.offsets()[lists.len()]);
    let values = lists.values().slice(first as usize, (last - first) as usize);
    FixedSizeListArray::try_new(item(values.data_type().clone()), width, values, None)
        .ok()
        .filter(|_| width > 0)
        .ok_or_else(|| format!("the lists of its column `{name}` are empty"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableBuilder;

    fn refused(table: &Table, declared: &TableSchema) -> Vec<String> {
        match table.conform(declared) {
            Err(TableError::Schema { mismatches }) => mismatches,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_table_is_what_was_declared_or_each_difference_is_named() {
        let table = TableBuilder::new()
            .optional_f64("a", vec![Some(1.0), Some(2.0)])
            .optional_u32("b", vec![Some(1), None])
            .i64("c", vec![1, 2])
            .build()
            .unwrap();
        let declared = TableSchema::new(vec![
            Column::new("a", ColumnType::Float64),
            Column::new("b", ColumnType::UInt32).nullable(),
            Column::new("c", ColumnType::Int64),
        ]);
        let found = table.conform(&declared).unwrap();
        assert!(found.schema().mismatches(&declared).is_empty());
        // The same as one that said from the start that nothing is missing.
        let plain = TableBuilder::new()
            .f64("a", vec![1.0, 2.0])
            .optional_u32("b", vec![Some(1), None])
            .i64("c", vec![1, 2])
            .build()
            .unwrap();
        assert_eq!(found, plain);
        let other = TableSchema::new(vec![
            Column::new("a", ColumnType::Float32),
            Column::new("b", ColumnType::UInt32),
            Column::new("d", ColumnType::Utf8),
        ]);
        assert_eq!(
            refused(&table, &other),
            [
                "its column `a` is f64, not f32",
                "its column `b` lacks 1 of its 2 values",
                "it has a column `c`, which is not declared",
                "it has no column `d`",
            ]
        );
        assert!(table.conform(&TableSchema::any()).is_ok());
    }

    #[test]
    fn lists_of_one_length_are_fixed_size_lists_where_those_are_declared() {
        let kind = ColumnType::FixedList(Box::new(ColumnType::Float32));
        let declared = TableSchema::new(vec![Column::new("x", kind)]);
        let lists =
            |lists: Vec<Option<Vec<f32>>>| TableBuilder::new().optional_list_f32("x", lists).build().unwrap();
        let found = lists(vec![Some(vec![1.0, 2.0]), Some(vec![3.0, 4.0])])
            .conform(&declared)
            .unwrap();
        let fixed = TableBuilder::new()
            .fixed_list_f32("x", 2, vec![1.0, 2.0, 3.0, 4.0])
            .build()
            .unwrap();
        assert_eq!(found, fixed);
        // Of a part of a table, too.
        let part = lists(vec![Some(vec![0.0]), Some(vec![1.0, 2.0]), Some(vec![3.0, 4.0])]);
        let part = Table::new(&part.batch().slice(1, 2)).unwrap();
        assert_eq!(part.conform(&declared).unwrap(), fixed);
        for (rows, message) in [
            (
                vec![Some(vec![1.0]), Some(vec![1.0, 2.0])],
                "the lists of its column `x` differ in length: row 0 has 1 items, row 1 has 2",
            ),
            (vec![Some(Vec::new())], "the lists of its column `x` are empty"),
            (
                vec![Some(vec![1.0]), None],
                "its column `x` lacks 1 of its 2 values",
            ),
            (
                Vec::new(),
                "its column `x` has no row that says how long its lists are",
            ),
        ] {
            assert_eq!(refused(&lists(rows), &declared), [message]);
        }
    }
}

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use arrow_array::{Array, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Metadata, Schema};
use provenir_api::Digest;
use provenir_api::port::{Column, ColumnType, TableSchema};

use crate::{TableError, content, normal};

/// The key of a column's physical unit in its field metadata.
pub const UNIT: &str = "unit";

/// An immutable table: one record batch, with metadata of the table and of its columns. Cheap to clone.
///
/// Invariant: column names are unique; every column is of a type that [`ColumnType`] names, and no list has missing
/// items. Wider or narrower cousins of those types (what pandas, Polars and others write) were converted on the way
/// in, without loss.
#[derive(Clone, Debug)]
pub struct Table {
    batch: RecordBatch,
    content: OnceLock<Digest>,
}

impl Table {
    /// Whether both have the same columns in memory, as a clone has: sure where it holds, and found out at once.
    #[must_use]
    pub fn is_clone_of(&self, other: &Self) -> bool {
        let mut columns = self.batch.columns().iter().zip(other.batch.columns());
        Arc::ptr_eq(self.batch.schema_ref(), other.batch.schema_ref())
            && columns.all(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// Takes a record batch; columns of related types are converted without loss.
    pub fn new(batch: &RecordBatch) -> Result<Self, TableError> {
        if batch.num_columns() == 0 {
            return Err(TableError::Invalid("a table needs a column".to_owned()));
        }
        let mut names = BTreeSet::new();
        let mut fields = Vec::with_capacity(batch.num_columns());
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            if !names.insert(field.name()) {
                return Err(TableError::Invalid(format!(
                    "two columns are named `{}`",
                    field.name()
                )));
            }
            let (field, column) = normal::column(field, column)?;
            fields.push(field);
            columns.push(column);
        }
        let schema = Schema::new_with_metadata(fields, normal::metadata(batch.schema_ref().metadata()));
        let batch = RecordBatch::try_new(Arc::new(schema), columns)
            .map_err(|error| TableError::Invalid(error.to_string()))?;
        Ok(Self {
            batch,
            content: OnceLock::new(),
        })
    }

    /// The record batch.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// Metadata of the table, sorted by key.
    pub fn metadata(&self) -> &Metadata {
        self.batch.schema_ref().metadata()
    }

    /// The same values with this metadata instead.
    #[must_use]
    pub fn with_metadata(&self, metadata: &Metadata) -> Self {
        let mut batch = self.batch.clone();
        *batch.schema_metadata_mut() = normal::metadata(metadata);
        Self {
            batch,
            content: OnceLock::new(),
        }
    }

    /// Digest of schema, metadata and values, computed once; independent of encoding, batches and missing values'
    /// hidden contents, with all NaNs alike.
    pub fn content(&self) -> Digest {
        *self.content.get_or_init(|| content::digest(&self.batch))
    }

    /// The columns as the contract names them.
    pub fn schema(&self) -> TableSchema {
        TableSchema::new(
            self.fields()
                .map(|field| column(field, field.is_nullable()))
                .collect(),
        )
    }

    /// Whether this table can serve where `wanted` is asked for. A column that may hold missing values but holds none
    /// is one that holds none.
    pub fn matches(&self, wanted: &TableSchema) -> Result<(), TableError> {
        let columns = self.fields().zip(self.batch.columns());
        let found = columns
            .map(|(field, values)| column(field, values.null_count() > 0))
            .collect();
        let mismatches = TableSchema::new(found).mismatches(wanted);
        if mismatches.is_empty() {
            Ok(())
        } else {
            Err(TableError::Schema { mismatches })
        }
    }

    /// The rows at these indices, in this order, with the same metadata.
    pub fn select(&self, rows: &[usize]) -> Result<Self, TableError> {
        let count = self.rows();
        if let Some(row) = rows.iter().find(|row| **row >= count) {
            return Err(TableError::Invalid(format!(
                "there is no row {row} in a table of {count}"
            )));
        }
        let indices = UInt64Array::from_iter_values(rows.iter().map(|row| *row as u64));
        let batch = arrow_select::take::take_record_batch(&self.batch, &indices)
            .map_err(|error| TableError::Invalid(error.to_string()))?;
        Ok(Self {
            batch,
            content: OnceLock::new(),
        })
    }

    fn fields(&self) -> impl Iterator<Item = &Field> {
        self.batch.schema_ref().fields().iter().map(AsRef::as_ref)
    }
}

/// Tables are equal where their content is: schema, metadata and values, all NaNs alike.
impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.content() == other.content()
    }
}

impl Eq for Table {}

fn column(field: &Field, nullable: bool) -> Column {
    // By the invariant of `Table`, every column has such a type.
    let kind = column_type(field.data_type())
        .unwrap_or_else(|| unreachable!("a table with a column of type {}", field.data_type()));
    Column {
        nullable,
        unit: field.metadata().get(UNIT).cloned(),
        ..Column::new(field.name(), kind)
    }
}

/// The contract's name of a type in its normal form.
pub(crate) fn column_type(data_type: &DataType) -> Option<ColumnType> {
    Some(match data_type {
        DataType::Boolean => ColumnType::Bool,
        DataType::UInt32 => ColumnType::UInt32,
        DataType::UInt64 => ColumnType::UInt64,
        DataType::Int64 => ColumnType::Int64,
        DataType::Float32 => ColumnType::Float32,
        DataType::Float64 => ColumnType::Float64,
        DataType::Utf8 => ColumnType::Utf8,
        DataType::FixedSizeList(item, _) => ColumnType::FixedList(Box::new(column_type(item.data_type())?)),
        DataType::List(item) => ColumnType::List(Box::new(column_type(item.data_type())?)),
        _ => return None,
    })
}

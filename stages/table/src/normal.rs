//! The normal form of columns: the types that tables are made of, and their lossless cousins converted to them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, ListArray};
use arrow_cast::cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, Metadata};

use crate::TableError;

/// The name that the Parquet specification gives to the items of a list.
const ITEM: &str = "element";

/// Metadata keys with which other programs describe their own encoding of a table; they say nothing about its values.
const FOREIGN: [&str; 3] = ["ARROW:schema", "PARQUET:field_id", "pandas"];

/// The metadata key under which a file holds the content digest of its table, in hexadecimal digits.
pub(crate) const CONTENT: &str = "provenir.content";

/// Metadata without what describes an encoding.
pub(crate) fn metadata(metadata: &Metadata) -> Metadata {
    let mut metadata = metadata.clone();
    for key in FOREIGN.into_iter().chain([CONTENT]) {
        metadata.remove(key);
    }
    metadata
}

/// The field of a list's items.
pub(crate) fn item(data_type: DataType) -> FieldRef {
    Arc::new(Field::new(ITEM, data_type, false))
}

/// A column in its normal form.
pub(crate) fn column(field: &Field, column: &ArrayRef) -> Result<(Field, ArrayRef), TableError> {
    let unsupported = || TableError::Unsupported {
        column: field.name().clone(),
        found: field.data_type().to_string(),
    };
    let mut nullable = field.is_nullable();
    let values: ArrayRef = match field.data_type() {
        DataType::FixedSizeList(_, width) => {
            // A null row would need items that mean nothing; a table says with a column of its own what is absent.
            if column.null_count() > 0 {
                return Err(TableError::Missing {
                    column: field.name().clone(),
                    count: column.null_count(),
                });
            }
            nullable = false;
            let values = items(column.as_fixed_size_list().values()).ok_or_else(unsupported)?;
            if *width <= 0 {
                return Err(unsupported());
            }
            Arc::new(
                FixedSizeListArray::try_new(item(values.data_type().clone()), *width, values, None)
                    .map_err(|_| unsupported())?,
            )
        }
        DataType::List(_) => Arc::new(list(column.as_list()).ok_or_else(unsupported)?),
        DataType::LargeList(inner) => {
            let narrow = convert(column, &DataType::List(inner.clone())).ok_or_else(unsupported)?;
            Arc::new(list(narrow.as_list()).ok_or_else(unsupported)?)
        }
        _ => scalars(column).ok_or_else(unsupported)?,
    };
    let normal = Field::new(field.name(), values.data_type().clone(), nullable)
        .with_metadata(metadata(field.metadata()));
    Ok((normal, values))
}

fn list(list: &ListArray) -> Option<ListArray> {
    let values = items(list.values())?;
    ListArray::try_new(
        item(values.data_type().clone()),
        list.offsets().clone(),
        values,
        list.nulls().cloned(),
    )
    .ok()
}

fn items(values: &ArrayRef) -> Option<ArrayRef> {
    scalars(values).filter(|values| values.null_count() == 0)
}

fn scalars(values: &ArrayRef) -> Option<ArrayRef> {
    let wanted = scalar(values.data_type())?;
    if *values.data_type() == wanted {
        Some(values.clone())
    } else {
        convert(values, &wanted)
    }
}

/// The normal form of a scalar type, where it has one that holds all its values.
fn scalar(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::Boolean
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8 => data_type.clone(),
        DataType::UInt8 | DataType::UInt16 => DataType::UInt32,
        DataType::Int8 | DataType::Int16 | DataType::Int32 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => scalar(values)?,
        _ => return None,
    })
}

fn convert(values: &ArrayRef, wanted: &DataType) -> Option<ArrayRef> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(values, wanted, &options).ok()
}

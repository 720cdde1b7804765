use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ListArray, PrimitiveArray};
use provenir_api::port::ColumnType;

use crate::table::column_type;
use crate::{Table, TableError};

/// A column of fixed-size lists: their width, and the items of all rows one after another.
pub type Float32Rows<'a> = (usize, &'a [f32]);

macro_rules! number_columns {
    ($($column:ident, $optional:ident, $native:ty, $arrow:ty, $kind:ident;)*) => {$(
        #[doc = concat!("The values of a column of ", stringify!($native), " without missing values.")]
        pub fn $column(&self, name: &str) -> Result<&[$native], TableError> {
            Ok(self.complete(name, &ColumnType::$kind)?.as_primitive::<$arrow>().values())
        }

        #[doc = concat!("The values of a column of ", stringify!($native), ", some of which may be missing.")]
        pub fn $optional(&self, name: &str) -> Result<Vec<Option<$native>>, TableError> {
            Ok(self.typed(name, &ColumnType::$kind)?.as_primitive::<$arrow>().iter().collect())
        }
    )*};
}

/// Columns by name. Each fails where there is no such column, where it is of another type, and, unless it gives
/// options, where values are missing.
impl Table {
    number_columns! {
        column_u32, optional_u32, u32, UInt32Type, UInt32;
        column_u64, optional_u64, u64, UInt64Type, UInt64;
        column_i64, optional_i64, i64, Int64Type, Int64;
        column_f32, optional_f32, f32, Float32Type, Float32;
        column_f64, optional_f64, f64, Float64Type, Float64;
    }

    /// Whether there is a column of that name.
    pub fn has_column(&self, name: &str) -> bool {
        self.batch().column_by_name(name).is_some()
    }

    /// The physical unit of a column, where it has one.
    pub fn unit(&self, name: &str) -> Option<&str> {
        let field = self.batch().schema_ref().field_with_name(name).ok()?;
        field.metadata().get(crate::UNIT).map(String::as_str)
    }

    /// The values of a column of truth values.
    pub fn column_bool(&self, name: &str) -> Result<Vec<bool>, TableError> {
        Ok(self
            .complete(name, &ColumnType::Bool)?
            .as_boolean()
            .values()
            .iter()
            .collect())
    }

    /// The values of a column of texts.
    pub fn column_utf8(&self, name: &str) -> Result<Vec<&str>, TableError> {
        let values = self.complete(name, &ColumnType::Utf8)?.as_string::<i32>();
        Ok((0..values.len()).map(|row| values.value(row)).collect())
    }

    /// The values of a column of texts, some of which may be missing.
    pub fn optional_utf8(&self, name: &str) -> Result<Vec<Option<&str>>, TableError> {
        Ok(self
            .typed(name, &ColumnType::Utf8)?
            .as_string::<i32>()
            .iter()
            .collect())
    }

    /// The values of a column of any numeric type, as doubles: integers beyond 2^53 are rounded.
    pub fn column_numbers(&self, name: &str) -> Result<Vec<Option<f64>>, TableError> {
        let column = self.column(name)?;
        Ok(match kind(column) {
            ColumnType::UInt32 => numbers(column.as_primitive::<UInt32Type>(), f64::from),
            ColumnType::UInt64 => numbers(column.as_primitive::<UInt64Type>(), |value| value as f64),
            ColumnType::Int64 => numbers(column.as_primitive::<Int64Type>(), |value| value as f64),
            ColumnType::Float32 => numbers(column.as_primitive::<Float32Type>(), f64::from),
            ColumnType::Float64 => numbers(column.as_primitive::<Float64Type>(), |value| value),
            found => {
                return Err(TableError::WrongType {
                    column: name.to_owned(),
                    expected: "a number".to_owned(),
                    found: found.to_string(),
                });
            }
        })
    }

    /// A column of fixed-size lists of f32.
    pub fn column_fixed_list_f32(&self, name: &str) -> Result<Float32Rows<'_>, TableError> {
        let kind = ColumnType::FixedList(Box::new(ColumnType::Float32));
        let lists = self.complete(name, &kind)?.as_fixed_size_list();
        let width = usize::try_from(lists.value_length()).unwrap_or_default();
        Ok((width, lists.values().as_primitive::<Float32Type>().values()))
    }

    /// A column of lists of u32.
    pub fn column_list_u32(&self, name: &str) -> Result<Vec<&[u32]>, TableError> {
        let lists = self.complete(name, &ColumnType::List(Box::new(ColumnType::UInt32)))?;
        Ok(slices::<UInt32Type>(lists.as_list())
            .into_iter()
            .flatten()
            .collect())
    }

    /// A column of lists of f32, some of which may be missing.
    pub fn optional_list_f32(&self, name: &str) -> Result<Vec<Option<&[f32]>>, TableError> {
        let lists = self.typed(name, &ColumnType::List(Box::new(ColumnType::Float32)))?;
        Ok(slices::<Float32Type>(lists.as_list()))
    }

    /// A column of lists of f64, some of which may be missing.
    pub fn optional_list_f64(&self, name: &str) -> Result<Vec<Option<&[f64]>>, TableError> {
        let lists = self.typed(name, &ColumnType::List(Box::new(ColumnType::Float64)))?;
        Ok(slices::<Float64Type>(lists.as_list()))
    }

    fn column(&self, name: &str) -> Result<&ArrayRef, TableError> {
        self.batch()
            .column_by_name(name)
            .ok_or_else(|| TableError::no_column(self, name))
    }

    fn typed(&self, name: &str, expected: &ColumnType) -> Result<&ArrayRef, TableError> {
        let column = self.column(name)?;
        let found = kind(column);
        if found == *expected {
            Ok(column)
        } else {
            Err(TableError::WrongType {
                column: name.to_owned(),
                expected: expected.to_string(),
                found: found.to_string(),
            })
        }
    }

    fn complete(&self, name: &str, expected: &ColumnType) -> Result<&ArrayRef, TableError> {
        let column = self.typed(name, expected)?;
        match column.null_count() {
            0 => Ok(column),
            count => Err(TableError::Missing {
                column: name.to_owned(),
                count,
            }),
        }
    }
}

fn kind(column: &ArrayRef) -> ColumnType {
    column_type(column.data_type())
        .unwrap_or_else(|| unreachable!("a table with a column of type {}", column.data_type()))
}

fn numbers<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    convert: impl Fn(T::Native) -> f64,
) -> Vec<Option<f64>> {
    values.iter().map(|value| value.map(&convert)).collect()
}

fn slices<T: ArrowPrimitiveType>(lists: &ListArray) -> Vec<Option<&[T::Native]>> {
    let values: &[T::Native] = lists.values().as_primitive::<T>().values();
    let bounds = lists.offsets().windows(2);
    bounds
        .enumerate()
        .map(|(row, bounds)| {
            lists
                .is_valid(row)
                .then(|| &values[bounds[0] as usize..bounds[1] as usize])
        })
        .collect()
}

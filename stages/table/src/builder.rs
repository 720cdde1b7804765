use std::sync::Arc;

use arrow_array::types::{Float32Type, Float64Type, UInt32Type};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeListArray, Float32Array, Float64Array, Int64Array,
    ListArray, PrimitiveArray, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, Metadata, Schema};

use crate::normal::item;
use crate::{Matrix, Table, TableError, UNIT};

/// Makes a [`Table`] from vectors, column by column.
///
/// ```
/// use provenir_table::TableBuilder;
///
/// let table = TableBuilder::new()
///     .u32("episode", vec![0, 0, 1])
///     .f64("length", vec![0.1, 0.2, 0.1])
///     .unit("m")
///     .metadata("environment", "hopper")
///     .build()?;
/// assert_eq!(table.rows(), 3);
/// assert_eq!(table.unit("length"), Some("m"));
/// # Ok::<(), provenir_table::TableError>(())
/// ```
#[derive(Debug, Default)]
pub struct TableBuilder {
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
    metadata: Metadata,
    problem: Option<TableError>,
}

macro_rules! columns {
    ($($column:ident, $optional:ident, $native:ty, $array:ty;)*) => {$(
        #[doc = concat!("A column of ", stringify!($native), ".")]
        #[must_use]
        pub fn $column(self, name: &str, values: Vec<$native>) -> Self {
            self.column(name, false, Arc::new(<$array>::from(values)))
        }

        #[doc = concat!("A column of ", stringify!($native), " whose values may be missing.")]
        #[must_use]
        pub fn $optional(self, name: &str, values: Vec<Option<$native>>) -> Self {
            self.column(name, true, Arc::new(<$array>::from(values)))
        }
    )*};
}

impl TableBuilder {
    /// No columns yet.
    pub fn new() -> Self {
        Self::default()
    }

    columns! {
        bool, optional_bool, bool, BooleanArray;
        u32, optional_u32, u32, UInt32Array;
        u64, optional_u64, u64, UInt64Array;
        i64, optional_i64, i64, Int64Array;
        f32, optional_f32, f32, Float32Array;
        f64, optional_f64, f64, Float64Array;
    }

    /// A column of texts.
    #[must_use]
    pub fn utf8<S: AsRef<str>>(self, name: &str, values: impl IntoIterator<Item = S>) -> Self {
        let values: StringArray = values.into_iter().map(Some).collect();
        self.column(name, false, Arc::new(values))
    }

    /// A column of texts that may be missing.
    #[must_use]
    pub fn optional_utf8<S: AsRef<str>>(
        self,
        name: &str,
        values: impl IntoIterator<Item = Option<S>>,
    ) -> Self {
        let values: StringArray = values.into_iter().collect();
        self.column(name, true, Arc::new(values))
    }

    /// A column of fixed-size lists: one for each row of the matrix.
    #[must_use]
    pub fn matrix(self, name: &str, matrix: Matrix) -> Self {
        let width = matrix.width();
        self.fixed_list_f32(name, width, matrix.into_values())
    }

    /// A column of lists of one width, at least 1, given one after another.
    #[must_use]
    pub fn fixed_list_f32(mut self, name: &str, width: usize, values: Vec<f32>) -> Self {
        let columns = i32::try_from(width).ok().filter(|width| *width > 0);
        let lists = columns
            .filter(|_| values.len().is_multiple_of(width))
            .and_then(|columns| {
                let values = Arc::new(Float32Array::from(values));
                FixedSizeListArray::try_new(item(arrow_schema::DataType::Float32), columns, values, None).ok()
            });
        let Some(lists) = lists else {
            self.fail(format!(
                "the values of column `{name}` do not make lists of width {width}"
            ));
            return self;
        };
        self.column(name, false, Arc::new(lists))
    }

    /// A column of lists of u32.
    #[must_use]
    pub fn list_u32(self, name: &str, lists: Vec<Vec<u32>>) -> Self {
        let lists = lists.into_iter().map(Some).collect();
        self.lists::<UInt32Type>(name, false, lists)
    }

    /// A column of lists of f32 that may be missing.
    #[must_use]
    pub fn optional_list_f32(self, name: &str, lists: Vec<Option<Vec<f32>>>) -> Self {
        self.lists::<Float32Type>(name, true, lists)
    }

    /// A column of lists of f64 that may be missing.
    #[must_use]
    pub fn optional_list_f64(self, name: &str, lists: Vec<Option<Vec<f64>>>) -> Self {
        self.lists::<Float64Type>(name, true, lists)
    }

    /// The physical unit of the column added last.
    #[must_use]
    pub fn unit(mut self, unit: &str) -> Self {
        match self.fields.pop() {
            Some(field) => {
                let metadata = field.metadata().clone().with(UNIT, unit);
                self.fields.push(field.with_metadata(metadata));
            }
            None => self.fail(format!("the unit `{unit}` has no column before it")),
        }
        self
    }

    /// An entry of the table's metadata; a later one of the same key replaces it.
    #[must_use]
    pub fn metadata(mut self, key: &str, value: &str) -> Self {
        self.metadata.insert(key, value);
        self
    }

    /// The table; fails where columns differ in length or share a name, and where a column was impossible.
    pub fn build(self) -> Result<Table, TableError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let lengths = || {
            self.fields
                .iter()
                .zip(&self.columns)
                .map(|(field, column)| (field.name(), column.len()))
        };
        if let Some((first, rows)) = lengths().next()
            && let Some((name, found)) = lengths().find(|(_, length)| *length != rows)
        {
            return Err(TableError::Invalid(format!(
                "column `{name}` has {found} rows where `{first}` has {rows}"
            )));
        }
        if self.columns.is_empty() {
            return Err(TableError::Invalid("a table needs a column".to_owned()));
        }
        let schema = Schema::new_with_metadata(self.fields, self.metadata);
        let batch = RecordBatch::try_new(Arc::new(schema), self.columns)
            .map_err(|error| TableError::Invalid(error.to_string()))?;
        Table::new(&batch)
    }

    fn lists<T: ArrowPrimitiveType>(
        mut self,
        name: &str,
        nullable: bool,
        lists: Vec<Option<Vec<T::Native>>>,
    ) -> Self {
        let total: usize = lists.iter().flatten().map(Vec::len).sum();
        if i32::try_from(total).is_err() {
            self.fail(format!(
                "the lists of column `{name}` hold more than {} items",
                i32::MAX
            ));
            return self;
        }
        let valid: NullBuffer = lists.iter().map(Option::is_some).collect();
        let offsets = OffsetBuffer::from_lengths(lists.iter().map(|list| list.as_ref().map_or(0, Vec::len)));
        let values = PrimitiveArray::<T>::from_iter_values(lists.into_iter().flatten().flatten());
        match ListArray::try_new(item(T::DATA_TYPE), offsets, Arc::new(values), Some(valid)) {
            Ok(lists) => self.column(name, nullable, Arc::new(lists)),
            Err(error) => {
                self.fail(format!("column `{name}`: {error}"));
                self
            }
        }
    }

    fn column(mut self, name: &str, nullable: bool, values: ArrayRef) -> Self {
        self.fields
            .push(Field::new(name, values.data_type().clone(), nullable));
        self.columns.push(values);
        self
    }

    fn fail(&mut self, message: String) {
        self.problem.get_or_insert(TableError::Invalid(message));
    }
}

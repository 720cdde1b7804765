use std::error::Error;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use camino::Utf8Path;
use fs_err::File;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Type;
use parquet::file::metadata::{FileMetaData, ParquetMetaData};
use provenir_api::Digest;

use crate::normal::CONTENT;
use crate::write::CREATED_BY;
use crate::{Table, TableError, footer};

/// The longest file that is read into memory, in bytes.
pub const FILE_LIMIT: u64 = 4 << 30;

/// The most memory that a table may claim, in bytes, by its own footer.
pub const MEMORY_LIMIT: u64 = 16 << 30;

/// Rows decoded at once: bounds what a false row count can reserve.
const BATCH_ROWS: usize = 1 << 20;

/// Reads a Parquet table. With `expected`, its bytes must digest to that.
pub fn read(path: &Utf8Path, expected: Option<Digest>) -> Result<Table, TableError> {
    let bytes = read_bytes(path)?;
    let Some(expected) = expected else {
        return parse(path, bytes);
    };
    let found = Digest::of(&bytes);
    if found != expected {
        return Err(TableError::Damaged {
            path: path.to_owned(),
            expected,
            found,
        });
    }
    Ok(understand(path, bytes)?.table)
}

/// A table from the bytes of a Parquet file; `path` is for messages. Where the file holds the content digest of its table, as
/// those that [`write()`](crate::write()) makes do, its values must digest to that.
pub fn parse(path: &Utf8Path, bytes: Vec<u8>) -> Result<Table, TableError> {
    let Understood { table, content } = understand(path, bytes)?;
    match content {
        Some(expected) if expected != table.content() => Err(TableError::Altered {
            path: path.to_owned(),
            expected,
            found: table.content(),
        }),
        _ => Ok(table),
    }
}

/// What a file holds.
struct Understood {
    table: Table,
    /// The content digest that the file was written with.
    content: Option<Digest>,
}

fn understand(path: &Utf8Path, bytes: Vec<u8>) -> Result<Understood, TableError> {
    let unreadable = |reason: String| TableError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    let footer = footer::check(&bytes).map_err(unreadable)?;
    // Looked for in the bytes, because damage may hide the entry that says so.
    let ours = footer
        .windows(CREATED_BY.len())
        .any(|window| window == CREATED_BY.as_bytes());
    // The Parquet library answers most malformed files with errors, and some with panics.
    let (batch, content) = catch_unwind(AssertUnwindSafe(|| decode(&bytes.into(), ours)))
        .unwrap_or_else(|_| Err("its pages are malformed".to_owned()))
        .map_err(unreadable)?;
    let table = Table::new(&batch).map_err(|error| unreadable(error.to_string()))?;
    Ok(Understood { table, content })
}

fn read_bytes(path: &Utf8Path) -> Result<Vec<u8>, TableError> {
    let io = |error| TableError::io(path, error);
    let file = File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    let too_large = || TableError::TooLarge {
        path: path.to_owned(),
    };
    if size > FILE_LIMIT {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(size as usize);
    // The file may grow, or not have a size to begin with.
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(too_large());
    }
    Ok(bytes)
}

fn decode(bytes: &Bytes, ours: bool) -> Result<(RecordBatch, Option<Digest>), String> {
    let malformed =
        |what: &'static str| move |error: &dyn Error| format!("its {what} are malformed ({error})");
    let (footer, pages) = (malformed("metadata"), malformed("pages"));
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).map_err(|error| footer(&error))?;
    let rows = claimed_rows(builder.metadata())?;
    // Another program may have kept our metadata beside values of its own.
    let content = ours
        .then(|| recorded_content(builder.metadata().file_metadata()))
        .transpose()?;
    crate::pages::check(bytes, builder.metadata())?;
    let schema = builder.schema().clone();
    let reader = builder
        .with_batch_size(rows.clamp(1, BATCH_ROWS))
        .build()
        .map_err(|error| footer(&error))?;
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().map_err(|error| pages(&error))?;
    let batch = match <[RecordBatch; 1]>::try_from(batches) {
        Ok([batch]) => batch,
        Err(batches) => concat_batches(&schema, &batches).map_err(|error| error.to_string())?,
    };
    if batch.num_rows() != rows {
        return Err(format!("it claims {rows} rows and holds {}", batch.num_rows()));
    }
    // Batches carry the schema of the columns; the table's metadata is the reader's.
    let batch = batch.with_schema(schema).map_err(|error| error.to_string())?;
    Ok((batch, content))
}

/// The content digest that a file of ours holds.
fn recorded_content(file: &FileMetaData) -> Result<Digest, String> {
    let entries = file.key_value_metadata().into_iter().flatten();
    let mut recorded = entries.filter(|entry| entry.key == CONTENT);
    let value = recorded.next().and_then(|entry| entry.value.as_deref());
    value
        .filter(|_| recorded.next().is_none())
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| {
            format!("it does not hold the digest of its content (`{CONTENT}`): the file is damaged")
        })
}

/// The number of rows, where everything that the footer claims fits the limits.
fn claimed_rows(metadata: &ParquetMetaData) -> Result<usize, String> {
    let mut memory = 0_u64;
    let mut rows = 0_i64;
    for group in metadata.row_groups() {
        rows = rows
            .checked_add(group.num_rows())
            .ok_or("it claims too many rows")?;
        for column in group.columns() {
            let width = match column.column_type() {
                Type::BOOLEAN => 1,
                Type::INT32 | Type::FLOAT => 4,
                _ => 16,
            };
            let values =
                u64::try_from(column.num_values()).map_err(|_| "it claims a negative number of values")?;
            let encoded =
                u64::try_from(column.uncompressed_size()).map_err(|_| "it claims a negative size")?;
            memory = memory
                .saturating_add(values.saturating_mul(width))
                .saturating_add(encoded);
        }
    }
    if memory > MEMORY_LIMIT {
        return Err(format!(
            "it claims {memory} bytes of memory; at most {MEMORY_LIMIT} are given"
        ));
    }
    if metadata.file_metadata().num_rows() != rows {
        return Err("its row groups do not add up to its rows".to_owned());
    }
    usize::try_from(rows).map_err(|_| "it claims a negative number of rows".to_owned())
}

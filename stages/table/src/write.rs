use std::io::{self, BufWriter, Read, Write};

use arrow_schema::Schema;
use camino::Utf8Path;
use fs_err::File;
use fs_err::os::unix::fs::OpenOptionsExt;
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::basic::{Compression, Encoding, Type, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use provenir_api::Digest;

use crate::content::FileContent;
use crate::normal::CONTENT;
use crate::{FILE_LIMIT, Table, TableError, file_content};

/// How many bytes are copied at a time.
const COPIED: usize = 1 << 20;

/// Who wrote a file, as its footer says. The second format holds its table's content digest, so that a reader that knows nothing
/// but the file can tell whether it is as it was written. (What another program makes of such a table names that program.)
pub(crate) const CREATED_BY: &str = "provenir table v2";

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// BLAKE3 of the bytes.
    pub object: Digest,
    /// Digest of the values: [`Table::content`], or [`file_content`].
    pub content: Digest,
    /// Length in bytes.
    pub size: u64,
    /// Number of rows, for a table.
    pub rows: Option<u64>,
}

/// Writes a table as Parquet, hashed while it is written. The bytes depend on the table alone (and on the versions of
/// the Parquet and Zstandard libraries).
///
/// The file is complete but not synced when this returns; what an error leaves behind is no table.
pub fn write(path: &Utf8Path, table: &Table) -> Result<Written, TableError> {
    let mut file = HashingFile::create(path)?;
    if let Err(error) = encode(&mut file, table) {
        return Err(match file.failed.take() {
            Some(source) => TableError::io(path, source),
            None => TableError::Invalid(format!("the table cannot be written as Parquet: {error}")),
        });
    }
    file.finish(path, table.content(), Some(table.rows() as u64))
}

/// Writes bytes as they are, hashed while they are written; not synced.
pub fn write_file(path: &Utf8Path, bytes: &[u8]) -> Result<Written, TableError> {
    let mut file = HashingFile::create(path)?;
    if let Err(error) = file.write_all(bytes) {
        return Err(TableError::io(path, file.failed.take().unwrap_or(error)));
    }
    file.finish(path, file_content(bytes), None)
}

/// Writes what is in an open file, from where it stands, hashed while it is written; not synced. More than
/// [`FILE_LIMIT`] bytes are refused, however many the file claims.
pub fn write_from(path: &Utf8Path, mut from: &File) -> Result<Written, TableError> {
    let source = Utf8Path::from_path(from.path()).unwrap_or(path);
    let mut file = HashingFile::create(path)?;
    let mut content = FileContent::default();
    let mut buffer = vec![0; COPIED];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(TableError::io(source, error)),
        };
        if file.size + count as u64 > FILE_LIMIT {
            return Err(TableError::TooLarge {
                path: source.to_owned(),
            });
        }
        content.update(&buffer[..count]);
        if let Err(error) = file.write_all(&buffer[..count]) {
            return Err(TableError::io(path, file.failed.take().unwrap_or(error)));
        }
    }
    file.finish(path, content.finish(), None)
}

/// Copies a file whose bytes must digest to `expected` to a new file, which is read-only. The bytes are verified while they are
/// copied: what an error leaves behind is no copy.
pub fn copy_verified(from: &Utf8Path, expected: Digest, to: &Utf8Path) -> Result<(), TableError> {
    let mut source = File::open(from).map_err(|error| TableError::io(from, error))?;
    let failed = |error| TableError::io(to, error);
    let mut options = fs_err::OpenOptions::new();
    options.write(true).create_new(true).mode(0o444);
    let mut copy = options.open(to).map_err(failed)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; COPIED];
    loop {
        let count = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(TableError::io(from, error)),
        };
        hasher.update(&buffer[..count]);
        copy.write_all(&buffer[..count]).map_err(failed)?;
    }
    let found = hasher.finalize().into();
    if found != expected {
        return Err(TableError::Damaged {
            path: from.to_owned(),
            expected,
            found,
        });
    }
    Ok(())
}

fn encode(file: &mut HashingFile, table: &Table) -> Result<(), ParquetError> {
    let batch = table.batch();
    let properties = profile(&batch.schema(), table)?;
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties))?;
    writer.write(batch)?;
    writer.close()?;
    Ok(())
}

/// The one profile in which tables are written. Whoever changes it changes object digests, and no key.
fn profile(schema: &Schema, table: &Table) -> Result<WriterProperties, ParquetError> {
    // In the file's own list of keys and values, where every reader finds it; Arrow's schema, which the writer adds,
    // holds it again for those that read only that.
    let metadata = table.metadata().iter();
    let metadata = metadata
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .chain([KeyValue::new(CONTENT.to_owned(), table.content().hex())])
        .collect();
    let mut properties = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_max_row_group_row_count(Some(128 * 1024))
        .set_max_row_group_bytes(None)
        .set_data_page_size_limit(1024 * 1024)
        .set_data_page_row_count_limit(20_000)
        .set_dictionary_page_size_limit(1024 * 1024)
        .set_write_batch_size(1024)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_statistics_truncate_length(Some(64))
        .set_dictionary_enabled(false)
        .set_key_value_metadata(Some(metadata));
    for leaf in ArrowSchemaConverter::new().convert(schema)?.columns() {
        let path = leaf.path().clone();
        properties = match leaf.physical_type() {
            // Counters and the like cost next to nothing as differences; the bytes of floats compress best apart.
            Type::INT32 | Type::INT64 => properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Type::FLOAT | Type::DOUBLE => properties.set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT),
            Type::BYTE_ARRAY => properties.set_column_dictionary_enabled(path, true),
            Type::BOOLEAN | Type::INT96 | Type::FIXED_LEN_BYTE_ARRAY => properties,
        };
    }
    Ok(properties.build())
}

/// Hashes and counts what it passes on to a file.
struct HashingFile {
    hasher: blake3::Hasher,
    size: u64,
    file: BufWriter<File>,
    /// The first error, which names the path; libraries between here and the caller may reword it.
    failed: Option<io::Error>,
}

impl HashingFile {
    fn create(path: &Utf8Path) -> Result<Self, TableError> {
        let file = File::create(path).map_err(|error| TableError::io(path, error))?;
        Ok(Self {
            hasher: blake3::Hasher::new(),
            size: 0,
            file: BufWriter::with_capacity(256 * 1024, file),
            failed: None,
        })
    }

    fn finish(mut self, path: &Utf8Path, content: Digest, rows: Option<u64>) -> Result<Written, TableError> {
        self.file.flush().map_err(|error| TableError::io(path, error))?;
        Ok(Written {
            object: self.hasher.finalize().into(),
            content,
            size: self.size,
            rows,
        })
    }

    fn keep<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let again = io::Error::from(error.kind());
            self.failed.get_or_insert(error);
            again
        })
    }
}

impl Write for HashingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.file.write(bytes);
        let count = self.keep(result)?;
        self.hasher.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.file.flush();
        self.keep(result)
    }
}

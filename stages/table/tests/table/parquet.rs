//! Parquet files: what was written is read, and nothing else is.

use std::sync::Arc;

use crate::support::{self, Folder};
use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, Encoding};
use ::parquet::file::properties::{WriterProperties, WriterVersion};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int32Array, LargeStringArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use camino::Utf8Path;
use proptest::prelude::*;
use provenir_api::Digest;
use provenir_table::{Table, TableBuilder, TableError, file_content, parse, read, write, write_file};

fn read_back(folder: &Folder, table: &Table) -> Table {
    let path = folder.join("table.parquet");
    let written = write(&path, table).unwrap();
    let bytes = fs_err::read(&path).unwrap();
    assert_eq!(written.object, Digest::of(&bytes));
    assert_eq!(written.size, bytes.len() as u64);
    assert_eq!(written.content, table.content());
    assert_eq!(written.rows, Some(table.rows() as u64));
    let again = read(&path, Some(written.object)).unwrap();
    assert_eq!(again.batch(), table.batch());
    assert_eq!(again.content(), table.content());
    again
}

/// Read by `scripts/check_parquet.py` as well, which knows what must be in it.
#[test]
fn a_table_comes_back_as_it_was() {
    let folder = Folder::new();
    let table = support::sample(1000);
    let again = read_back(&folder, &table);
    assert_eq!(again.schema(), table.schema());
    assert_eq!(again.metadata(), table.metadata());
    assert_eq!(again.unit("observation"), Some("m"));
    write(
        &Utf8Path::new(env!("CARGO_TARGET_TMPDIR")).join("sample.parquet"),
        &table,
    )
    .unwrap();
    read_back(&folder, &support::sample(0));
}

#[test]
fn row_groups_and_pages_are_joined() {
    let folder = Folder::new();
    let rows = 300_000;
    let table = TableBuilder::new()
        .u64("sample", (0..rows).collect())
        .fixed_list_f32("x", 2, (0..2 * rows).map(|value| value as f32).collect())
        .list_u32(
            "tensor",
            (0..rows)
                .map(|row| vec![row as u32; usize::from(row == 7) * 400_000])
                .collect(),
        )
        .build()
        .unwrap();
    read_back(&folder, &table);
    let file = fs_err::read(folder.join("table.parquet")).unwrap();
    let reader = SerializedFileReader::new(bytes::Bytes::from(file)).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 3);
}

/// The bytes of one small table, recorded on x86-64 Linux with parquet 60.1.0 and Zstandard 1.5.7. A new version of either may
/// move it, which moves no key; anything else that moves it makes files depend on something they must not depend on.
#[test]
fn bytes_are_reproducible() {
    let folder = Folder::new();
    let path = folder.join("table.parquet");
    let digest = |table: &Table| write(&path, table).unwrap().object;
    let here = digest(&support::sample(100));
    let elsewhere = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| support::sample(100))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert!(elsewhere.iter().all(|table| digest(table) == here));
    // Sliced out of a larger table, with other buffers and offsets.
    let slice = Table::new(&support::sample(300).batch().slice(0, 100)).unwrap();
    assert_eq!(digest(&slice), here);
    assert_eq!(
        here.hex(),
        "1694c8e681a83789ff6e9772a861191b42a48694f533146cb9e5a30ddf02b63c"
    );
}

#[test]
fn the_file_says_who_made_it_and_no_more() {
    let folder = Folder::new();
    let path = folder.join("table.parquet");
    write(&path, &support::sample(10)).unwrap();
    let reader = SerializedFileReader::new(bytes::Bytes::from(fs_err::read(&path).unwrap())).unwrap();
    let file = reader.metadata().file_metadata();
    assert_eq!(file.created_by(), Some("provenir table v2"));
    let entries = file.key_value_metadata().unwrap();
    let keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(
        keys,
        ["environment", "expert", "provenir.content", "ARROW:schema"]
    );
    assert_eq!(entries[2].value, Some(support::sample(10).content().hex()));
}

#[test]
fn a_changed_file_is_damaged_and_a_wrong_one_unreadable() {
    let folder = Folder::new();
    let path = folder.join("table.parquet");
    let written = write(&path, &support::sample(10)).unwrap();
    let other = Digest::of(b"other");
    match read(&path, Some(other)).unwrap_err() {
        TableError::Damaged {
            path: at,
            expected,
            found,
        } => {
            assert_eq!((at, expected, found), (path.clone(), other, written.object));
        }
        error => panic!("{error}"),
    }
    fs_err::write(&path, b"a,b\n1,2\n").unwrap();
    let message = read(&path, None).unwrap_err().to_string();
    assert!(
        message.contains("table.parquet") && message.contains("does not begin as a Parquet file"),
        "{message}"
    );
    let message = read(&folder.join("nothing.parquet"), None)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("nothing.parquet") && message.contains("No such file"),
        "{message}"
    );
}

/// Another program may keep our metadata beside values of its own, and a table does not carry the digest of the file that it
/// was read from.
#[test]
fn the_recorded_content_binds_only_files_of_ours() {
    let mut metadata = support::sample(5).metadata().clone();
    metadata.insert("provenir.content".to_owned(), Digest::of(b"other").hex());
    let mut schema = support::sample(5).batch().schema().as_ref().clone();
    schema.metadata = metadata;
    let columns = support::sample(5).batch().columns().to_vec();
    let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let table = parse(Utf8Path::new("theirs.parquet"), bytes).unwrap();
    assert_eq!(table, support::sample(5));
    assert_eq!(table.metadata(), support::sample(5).metadata());
}

#[test]
fn files_that_are_no_tables_are_hashed_too() {
    let folder = Folder::new();
    let path = folder.join("figure.svg");
    let written = write_file(&path, b"<svg/>").unwrap();
    assert_eq!(fs_err::read(&path).unwrap(), b"<svg/>");
    assert_eq!(written.object, Digest::of(b"<svg/>"));
    assert_eq!(written.content, file_content(b"<svg/>"));
    assert_eq!((written.size, written.rows), (6, None));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let table = support::sample(10_000);
    let full = Utf8Path::new("/dev/full");
    for error in [
        write(full, &table).unwrap_err(),
        write_file(full, &vec![0; 1 << 20]).unwrap_err(),
    ] {
        let message = error.to_string();
        assert!(
            message.contains("/dev/full") && message.contains("No space left"),
            "{message}"
        );
        assert!(matches!(error, TableError::Io { .. }));
    }
}

/// What pandas or Polars would write: everything nullable, wide texts, narrow integers, other names of list items.
#[test]
fn tables_of_other_programs_are_understood() {
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let lists = FixedSizeListArray::new(
        item.clone(),
        2,
        Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0, 4.0])),
        None,
    );
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("method", Arc::new(LargeStringArray::from(vec!["bc", "rbc"]))),
        ("seed", Arc::new(Int32Array::from(vec![1, 2]))),
        ("observation", Arc::new(lists)),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
        .collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let mut bytes = Vec::new();
    let properties = WriterProperties::builder()
        .set_created_by("somebody".to_owned())
        .build();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let table = parse(Utf8Path::new("theirs.parquet"), bytes).unwrap();
    assert_eq!(table.column_utf8("method").unwrap(), ["bc", "rbc"]);
    assert_eq!(table.column_i64("seed").unwrap(), [1, 2]);
    assert_eq!(
        table.column_fixed_list_f32("observation").unwrap(),
        (2, &[1.0, 2.0, 3.0, 4.0][..])
    );
    assert_eq!(Table::new(table.batch()).unwrap(), table);
}

/// A table that another program wrote with a compression of its own.
fn theirs(table: &Table, compression: Compression) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(false)
        .build();
    let batch = table.batch();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// pyarrow and pandas write Snappy unless they are told otherwise.
#[test]
fn compressions_of_other_programs_are_read() {
    let table = support::sample(3000);
    let plain = theirs(&table, Compression::UNCOMPRESSED);
    for compression in [Compression::SNAPPY, Compression::LZ4_RAW] {
        let bytes = theirs(&table, compression);
        assert!(bytes.len() < plain.len(), "{compression}");
        let again = parse(Utf8Path::new("theirs.parquet"), bytes).unwrap();
        assert_eq!(again.content(), table.content(), "{compression}");
    }
    assert_eq!(
        parse(Utf8Path::new("theirs.parquet"), plain).unwrap().content(),
        table.content()
    );
}

/// A table of one column, `value`, that is the same in a hundred rows.
fn constant() -> Table {
    TableBuilder::new().f64("value", vec![1.5; 100]).build().unwrap()
}

#[test]
fn compressions_that_cannot_be_bounded_are_named() {
    let mut bytes = theirs(&constant(), Compression::UNCOMPRESSED);
    // `ColumnMetaData`: the last name of the path, then field 4, the codec; 2, as a zigzag number, is gzip.
    let place = bytes
        .windows(8)
        .rposition(|window| window == b"value\x15\x00\x16")
        .unwrap();
    bytes[place + 6] = 4;
    let message = parse(Utf8Path::new("theirs.parquet"), bytes)
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        "`theirs.parquet` cannot be read as a Parquet table: its column `value` is compressed with GZIP, which is not read: \
         write it with Snappy, Zstandard, LZ4 (raw) or no compression"
    );
}

/// Found by fuzzing: in such a page the number of its values, for which the library makes room, is what the page says.
#[test]
fn encodings_that_cannot_be_bounded_are_named() {
    let table = TableBuilder::new()
        .utf8("name", ["a", "ab", "abc"])
        .u32("count", vec![1, 2, 3])
        .build()
        .unwrap();
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let written = |column: &str, encoding: Encoding| {
            let properties = WriterProperties::builder()
                .set_writer_version(version)
                .set_dictionary_enabled(false)
                .set_encoding(Encoding::PLAIN)
                .set_column_encoding(column.into(), encoding)
                .build();
            let batch = table.batch();
            let mut bytes = Vec::new();
            let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
            writer.write(batch).unwrap();
            writer.close().unwrap();
            parse(Utf8Path::new("theirs.parquet"), bytes)
        };
        for encoding in [Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY] {
            assert_eq!(
                written("name", encoding).unwrap_err().to_string(),
                format!(
                    "`theirs.parquet` cannot be read as a Parquet table: its column `name` is encoded with {encoding}, which is \
                     not read: write it with plain or dictionary encoding"
                )
            );
        }
        for encoding in [Encoding::DELTA_BINARY_PACKED, Encoding::BYTE_STREAM_SPLIT] {
            assert_eq!(written("count", encoding).unwrap().content(), table.content());
        }
    }
}

/// The library makes room for what a page's header claims before it looks into the page.
#[test]
fn pages_that_claim_more_than_they_can_hold_are_refused() {
    for compression in [
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::UNCOMPRESSED,
    ] {
        let mut bytes = theirs(&constant(), compression);
        assert!(parse(Utf8Path::new("theirs.parquet"), bytes.clone()).is_ok());
        // `PageHeader` of the first page: type, then field 2, the size before compression, a zigzag number of two bytes.
        assert_eq!(bytes[4..7], [0x15, 0x00, 0x15]);
        assert!(bytes[7] & 0x80 != 0 && bytes[8] & 0x80 == 0);
        bytes[7..9].copy_from_slice(&[0xfe, 0x7f]);
        let message = parse(Utf8Path::new("theirs.parquet"), bytes)
            .unwrap_err()
            .to_string();
        let expected = "a page of column `value` claims 8191 bytes, more than its ";
        assert!(
            message.contains(expected) || compression == Compression::LZ4_RAW,
            "{message}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_table_comes_back(
        rows in prop::collection::vec(
            (any::<u64>(), any::<u32>(), any::<i64>(), any::<u32>(), any::<Option<u64>>(), any::<bool>(),
             any::<Option<String>>(), prop::collection::vec(any::<u32>(), 0..4), any::<Option<[bool; 2]>>()),
            0..60,
        ),
        width in 1_usize..4,
        metadata in prop::collection::btree_map("[a-z]{1,6}", any::<String>(), 0..4),
    ) {
        let mut builder = TableBuilder::new()
            .u64("a", rows.iter().map(|row| row.0).collect())
            .u32("b", rows.iter().map(|row| row.1).collect())
            .i64("c", rows.iter().map(|row| row.2).collect())
            .fixed_list_f32("d", width, rows.iter().flat_map(|row| vec![f32::from_bits(row.3); width]).collect())
            .optional_f64("e", rows.iter().map(|row| row.4.map(f64::from_bits)).collect())
            .bool("f", rows.iter().map(|row| row.5).collect())
            .optional_utf8("g", rows.iter().map(|row| row.6.clone()))
            .list_u32("h", rows.iter().map(|row| row.7.clone()).collect())
            .optional_list_f32("i", rows.iter().map(|row| row.8.map(|list| list.map(f32::from).to_vec())).collect());
        for (key, value) in &metadata {
            builder = builder.metadata(key, value);
        }
        let table = builder.build().unwrap();
        let folder = Folder::new();
        let path = folder.join("table.parquet");
        let written = write(&path, &table).unwrap();
        let again = read(&path, Some(written.object)).unwrap();
        prop_assert_eq!(again.content(), table.content());
        prop_assert_eq!(again.schema(), table.schema());
        prop_assert_eq!(again.metadata(), table.metadata());
        // To the bit, payloads of NaN included, which the content digest takes as one.
        let bits = |table: &Table| -> Vec<u32> {
            table.column_fixed_list_f32("d").unwrap().1.iter().map(|value| value.to_bits()).collect()
        };
        prop_assert_eq!(bits(&again), bits(&table));
    }
}

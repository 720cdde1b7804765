//! The content digest: BLAKE3 in a domain of its own over
//!
//! ```text
//! number of rows, number of columns, metadata of the table,
//! for each column:  name, type, whether it may hold missing values, metadata of the column,
//!                   values
//! ```
//!
//! | part | encoding |
//! |---|---|
//! | number, length | u64, little-endian |
//! | text | length, UTF-8 |
//! | metadata | number of entries, then key and value of each, sorted by key |
//! | type | one letter; a fixed-size list adds its width and the letter of its items, a list that of its items |
//! | validity, of columns that may hold missing values | one bit a row |
//! | bool | one bit a value |
//! | integer, float | little-endian; every NaN as the quiet one without payload; `-0.0` is not `0.0` |
//! | text column | length of each row, then the text of all |
//! | fixed-size list | the items of all rows |
//! | list | length of each row, then the items of each |
//!
//! Bits are packed from the lowest up and padded with zeros to whole bytes. A missing value counts as 0, false or an
//! empty text or list. Counts precede what they count, so that the encoding is self-delimiting.
//!
//! What does not enter: how rows are cut into batches, offsets, padding, values under a null, names of list items,
//! and everything about Parquet.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, BooleanArray, ListArray, RecordBatch, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Metadata};
use blake3::Hasher;
use provenir_api::Digest;

const TABLE: &str = "provenir table v1 content";
const FILE: &str = "provenir file v1 content";

/// The content digest of a file that is no table: BLAKE3 of its bytes in a domain of its own.
pub fn file_content(bytes: &[u8]) -> Digest {
    let mut content = FileContent::default();
    content.update(bytes);
    content.finish()
}

/// [`file_content`] of bytes that come one after another.
pub(crate) struct FileContent(Hasher);

impl Default for FileContent {
    fn default() -> Self {
        Self(Hasher::new_derive_key(FILE))
    }
}

impl FileContent {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Digest {
        self.0.finalize().into()
    }
}

pub(crate) fn digest(batch: &RecordBatch) -> Digest {
    let mut encoder = Encoder(Hasher::new_derive_key(TABLE));
    encoder.count(batch.num_rows());
    encoder.count(batch.num_columns());
    encoder.metadata(batch.schema_ref().metadata());
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        encoder.text(field.name());
        encoder.data_type(field.data_type());
        encoder.byte(u8::from(field.is_nullable()));
        encoder.metadata(field.metadata());
        if field.is_nullable() {
            let valid = |row| column.is_valid(row);
            encoder.bits((0..column.len()).map(valid));
        }
        encoder.values(column.as_ref());
    }
    encoder.0.finalize().into()
}

struct Encoder(Hasher);

impl Encoder {
    fn byte(&mut self, byte: u8) {
        self.0.update(&[byte]);
    }

    fn count(&mut self, count: usize) {
        self.0.update(&(count as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.update(text.as_bytes());
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.count(metadata.len());
        for (key, value) in metadata {
            self.text(key);
            self.text(value);
        }
    }

    fn data_type(&mut self, data_type: &DataType) {
        match data_type {
            DataType::Boolean => self.byte(b'b'),
            DataType::UInt32 => self.byte(b'u'),
            DataType::UInt64 => self.byte(b'U'),
            DataType::Int64 => self.byte(b'I'),
            DataType::Float32 => self.byte(b'f'),
            DataType::Float64 => self.byte(b'F'),
            DataType::Utf8 => self.byte(b's'),
            DataType::FixedSizeList(item, width) => {
                self.byte(b'w');
                self.count(usize::try_from(*width).unwrap_or_default());
                self.data_type(item.data_type());
            }
            DataType::List(item) => {
                self.byte(b'l');
                self.data_type(item.data_type());
            }
            other => unreachable!("a table with a column of type {other}"),
        }
    }

    fn values(&mut self, values: &dyn Array) {
        let nulls = values.nulls();
        match values.data_type() {
            DataType::Boolean => self.booleans(values.as_boolean()),
            DataType::UInt32 => self.numbers(values.as_primitive::<UInt32Type>().values(), nulls),
            DataType::UInt64 => self.numbers(values.as_primitive::<UInt64Type>().values(), nulls),
            DataType::Int64 => self.numbers(values.as_primitive::<Int64Type>().values(), nulls),
            DataType::Float32 => self.numbers(values.as_primitive::<Float32Type>().values(), nulls),
            DataType::Float64 => self.numbers(values.as_primitive::<Float64Type>().values(), nulls),
            DataType::Utf8 => self.texts(values.as_string()),
            DataType::FixedSizeList(..) => self.values(values.as_fixed_size_list().values().as_ref()),
            DataType::List(_) => self.lists(values.as_list()),
            other => unreachable!("a table with a column of type {other}"),
        }
    }

    fn booleans(&mut self, values: &BooleanArray) {
        self.bits(values.iter().map(|value| value == Some(true)));
    }

    fn bits(&mut self, mut bits: impl Iterator<Item = bool>) {
        let mut bytes = Buffer::new(&mut self.0);
        let mut next = || {
            let mut byte = u8::from(bits.next()?);
            for place in 1..8 {
                byte |= u8::from(bits.next().unwrap_or(false)) << place;
            }
            Some(byte)
        };
        while let Some(byte) = next() {
            bytes.push([byte]);
        }
    }

    fn numbers<T: Number<N>, const N: usize>(&mut self, values: &[T], nulls: Option<&NullBuffer>) {
        let mut bytes = Buffer::new(&mut self.0);
        match nulls {
            None => values.iter().for_each(|value| bytes.push(value.canonical())),
            Some(nulls) => {
                for (value, valid) in values.iter().zip(nulls) {
                    bytes.push(if valid { value.canonical() } else { [0; N] });
                }
            }
        }
    }

    fn texts(&mut self, values: &StringArray) {
        values
            .iter()
            .for_each(|value| self.count(value.map_or(0, str::len)));
        for value in values.iter().flatten() {
            self.0.update(value.as_bytes());
        }
    }

    fn lists(&mut self, lists: &ListArray) {
        lists
            .iter()
            .for_each(|list| self.count(list.map_or(0, |list| list.len())));
        for list in lists.iter().flatten() {
            self.values(list.as_ref());
        }
    }
}

/// Gathers small pieces, so that BLAKE3 sees blocks that it can vectorise over.
struct Buffer<'a> {
    hasher: &'a mut Hasher,
    bytes: Vec<u8>,
}

const BLOCK: usize = 64 * 1024;

impl<'a> Buffer<'a> {
    fn new(hasher: &'a mut Hasher) -> Self {
        Self {
            hasher,
            bytes: Vec::with_capacity(BLOCK),
        }
    }

    fn push<const N: usize>(&mut self, piece: [u8; N]) {
        if self.bytes.len() + N > BLOCK {
            self.hasher.update(&self.bytes);
            self.bytes.clear();
        }
        self.bytes.extend_from_slice(&piece);
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        self.hasher.update(&self.bytes);
    }
}

trait Number<const N: usize>: Copy {
    fn canonical(self) -> [u8; N];
}

impl Number<4> for u32 {
    fn canonical(self) -> [u8; 4] {
        self.to_le_bytes()
    }
}

impl Number<8> for u64 {
    fn canonical(self) -> [u8; 8] {
        self.to_le_bytes()
    }
}

impl Number<8> for i64 {
    fn canonical(self) -> [u8; 8] {
        self.to_le_bytes()
    }
}

impl Number<4> for f32 {
    fn canonical(self) -> [u8; 4] {
        if self.is_nan() {
            0x7fc0_0000_u32
        } else {
            self.to_bits()
        }
        .to_le_bytes()
    }
}

impl Number<8> for f64 {
    fn canonical(self) -> [u8; 8] {
        if self.is_nan() {
            0x7ff8_0000_0000_0000_u64
        } else {
            self.to_bits()
        }
        .to_le_bytes()
    }
}

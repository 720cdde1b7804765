//! A look at the headers of a file's pages before the library decompresses them.
//!
//! The library makes room for as many bytes as a page's header claims, and the decompressors that are let in write no more
//! than that. So what has to be bounded is the claims: of all pages together, and of a page beside its length. Two encodings make
//! further claims inside a page, where nothing bounds them: they are not let in.
//!
//! `PageHeader` is a struct of the Thrift compact protocol: field 1 is the type, field 2 the size of the page as it was before
//! compression, field 3 its size in the file, both without the header, field 4 the CRC-32 of the page as it is in the file, where its
//! writer gave one; fields 5, 7 and 8 are the headers of a data page, a dictionary page and a data page of version 2, whose
//! encoding is field 2, 2 and 4 (Apache Parquet, `parquet.thrift`).

use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

use crate::MEMORY_LIMIT;
use crate::thrift::{Reader, kind};

/// Checks the pages of a file; the error is a reason for people.
pub(crate) fn check(file: &[u8], metadata: &ParquetMetaData) -> Result<(), String> {
    let mut memory = 0_u64;
    for column in metadata.row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let growth = growth(column)?;
        let mut chunk = bytes(file, column)?;
        while !chunk.is_empty() {
            let (page, rest) = Page::read(chunk)?;
            chunk = rest;
            if page.checksums.is_some_and(|(written, found)| written != found) {
                return Err(format!(
                    "a page of column `{}` does not have the checksum that it was written with: the file is damaged",
                    column.column_path().string()
                ));
            }
            if let Some(name) = unbounded(&page.encodings) {
                return Err(format!(
                    "its column `{}` is encoded with {name}, which is not read: write it with plain or dictionary encoding",
                    column.column_path().string()
                ));
            }
            let possible = u64::from(page.compressed).saturating_mul(growth);
            if u64::from(page.uncompressed) > possible {
                return Err(format!(
                    "a page of column `{}` claims {} bytes, more than its {} can hold",
                    column.column_path().string(),
                    page.uncompressed,
                    page.compressed
                ));
            }
            memory = memory.saturating_add(page.uncompressed.into());
            if memory > MEMORY_LIMIT {
                return Err(format!(
                    "its pages claim more than {MEMORY_LIMIT} bytes of memory, the most that is given"
                ));
            }
        }
    }
    Ok(())
}

/// The name of an encoding whose pages begin with the number of their values, for which the library makes room before it has seen
/// any (Apache Parquet, `Encodings.md`: delta-length byte array and delta strings).
fn unbounded(encodings: &[i64]) -> Option<&'static str> {
    encodings.iter().find_map(|encoding| match encoding {
        6 => Some("DELTA_LENGTH_BYTE_ARRAY"),
        7 => Some("DELTA_BYTE_ARRAY"),
        _ => None,
    })
}

/// How many bytes a byte of a compressed page stands for at most; an error for a compression whose decompressor would go on
/// beyond what a page claims.
fn growth(column: &ColumnChunkMetaData) -> Result<u64, String> {
    /// For compressions whose decompressor touches only the memory that it fills.
    const ANY: u64 = 1 << 31;
    match column.compression() {
        Compression::UNCOMPRESSED => Ok(1),
        // A copy of 64 bytes takes 3 (Snappy, `format_description.txt`, section 2.2).
        Compression::SNAPPY => Ok(22),
        // Every further byte of a length adds up to 255 (LZ4, `lz4_Block_format.md`).
        Compression::LZ4_RAW => Ok(256),
        Compression::ZSTD(_) => Ok(ANY),
        other => {
            let name = other.to_string();
            Err(format!(
                "its column `{}` is compressed with {}, which is not read: write it with Snappy, Zstandard, LZ4 (raw) or no compression",
                column.column_path().string(),
                name.split('(').next().unwrap_or(&name)
            ))
        }
    }
}

/// The bytes of a column chunk: where the library looks for its pages.
fn bytes<'a>(file: &'a [u8], column: &ColumnChunkMetaData) -> Result<&'a [u8], String> {
    let start = column
        .dictionary_page_offset()
        .unwrap_or_else(|| column.data_page_offset());
    let (Ok(start), Ok(length)) = (usize::try_from(start), usize::try_from(column.compressed_size())) else {
        return Err(format!(
            "its column `{}` claims a negative place or size",
            column.column_path().string()
        ));
    };
    start
        .checked_add(length)
        .and_then(|end| file.get(start..end))
        .ok_or_else(|| {
            format!(
                "its column `{}` lies outside the file",
                column.column_path().string()
            )
        })
}

struct Page {
    /// Bytes after decompression.
    uncompressed: u32,
    /// Bytes in the file.
    compressed: u32,
    /// CRC-32 of these bytes, as the header says and as they are, where the header says one.
    checksums: Option<(u32, u32)>,
    /// By number; a header that is well formed has one.
    encodings: Vec<i64>,
}

impl Page {
    /// The page at the beginning of a chunk, and what follows it.
    fn read(chunk: &[u8]) -> Result<(Self, &[u8]), String> {
        let mut reader = Reader::new("page header", chunk);
        let (mut uncompressed, mut compressed, mut checksum) = (None, None, None);
        let mut encodings = Vec::new();
        let mut id = 0;
        while let Some(kind) = reader.field(&mut id)? {
            match (id, kind) {
                (2, kind::I32) => uncompressed = Some(reader.zigzag()?),
                (3, kind::I32) => compressed = Some(reader.zigzag()?),
                (4, kind::I32) => checksum = Some(reader.zigzag()?),
                (5 | 7, kind::STRUCT) => encodings.extend(encoding(&mut reader, 2)?),
                (8, kind::STRUCT) => encodings.extend(encoding(&mut reader, 4)?),
                _ => reader.skip(kind)?,
            }
        }
        let size = |size: Option<i64>| {
            size.and_then(|size| i32::try_from(size).ok())
                .and_then(|size| u32::try_from(size).ok())
                .ok_or("its page header lacks a size")
        };
        let compressed = size(compressed)?;
        let start = chunk.len() - reader.left();
        let (bytes, rest) = chunk[start..]
            .split_at_checked(compressed as usize)
            .ok_or("a page is longer than its column")?;
        let checksums = match checksum.map(i32::try_from) {
            None => None,
            Some(Ok(written)) => Some((written.cast_unsigned(), crc32fast::hash(bytes))),
            Some(Err(_)) => return Err("its page header holds a checksum of more than 32 bits".to_owned()),
        };
        let page = Self {
            uncompressed: size(uncompressed)?,
            compressed,
            checksums,
            encodings,
        };
        Ok((page, rest))
    }
}

/// The encodings that a header of one kind of page names in the field of that number.
fn encoding(reader: &mut Reader<'_>, number: i64) -> Result<Vec<i64>, String> {
    let mut found = Vec::new();
    let mut id = 0;
    while let Some(kind) = reader.field(&mut id)? {
        if (id, kind) == (number, kind::I32) {
            found.push(reader.zigzag()?);
        } else {
            reader.skip(kind)?;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::Page;

    fn varint(mut value: u32, bytes: &mut Vec<u8>) {
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    }

    /// CRC-32 of "123456789" (ISO-HDLC, the check value of the catalogue of CRC algorithms).
    const CHECK: u32 = 0xcbf4_3926;

    /// A page of the bytes "123456789" whose header claims this checksum.
    fn page(checksum: u32) -> Vec<u8> {
        let zigzag = |value: u32| (value << 1) ^ (value.cast_signed() >> 31).cast_unsigned();
        let mut bytes = Vec::new();
        for value in [0, 9, 9, checksum] {
            bytes.push(0x15);
            varint(zigzag(value), &mut bytes);
        }
        bytes.push(0);
        bytes.extend(b"123456789");
        bytes
    }

    #[test]
    fn checksums_are_those_of_the_specification() {
        let bytes = page(CHECK);
        let (page, rest) = Page::read(&bytes).unwrap();
        assert_eq!(page.checksums, Some((CHECK, CHECK)));
        assert!(rest.is_empty());
    }

    #[test]
    fn other_bytes_have_another_checksum() {
        let mut bytes = page(CHECK);
        *bytes.last_mut().unwrap() ^= 1;
        let (written, found) = Page::read(&bytes).unwrap().0.checksums.unwrap();
        assert_eq!(written, CHECK);
        assert_ne!(found, CHECK);
    }
}

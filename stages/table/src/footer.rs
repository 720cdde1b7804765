//! A first look at a Parquet footer: that its schema is flat enough for the library's recursive reader.
//!
//! `FileMetaData` is a struct of the Thrift compact protocol; its field 2 lists the nodes of the schema tree depth
//! first, each with its number of children in field 5 (Apache Parquet, `parquet.thrift`).

use crate::thrift::{Reader, kind};

const MAGIC: &[u8; 4] = b"PAR1";
/// A table's own schemas are at most 4 deep (root, list, its repeated group, item).
const DEPTH_LIMIT: usize = 16;
const NODE_LIMIT: usize = 16 * 1024;

/// The footer of a file, checked; the error is a reason for people.
pub(crate) fn check(file: &[u8]) -> Result<&[u8], String> {
    if file.is_empty() {
        return Err("it is empty".to_owned());
    }
    if file.len() < 12 || !file.starts_with(MAGIC) {
        return Err("it does not begin as a Parquet file".to_owned());
    }
    let Some((rest, end)) = file
        .split_last_chunk::<8>()
        .filter(|(_, end)| end.ends_with(MAGIC))
    else {
        return Err("it does not end as a Parquet file: it may have been cut short".to_owned());
    };
    let length = u32::from_le_bytes([end[0], end[1], end[2], end[3]]) as usize;
    let start = rest
        .len()
        .checked_sub(length)
        .filter(|start| *start >= MAGIC.len());
    let start = start.ok_or_else(|| format!("its footer claims {length} bytes, more than it holds"))?;
    let footer = &rest[start..];
    Footer(Reader::new("footer", footer)).file_metadata()?;
    Ok(footer)
}

struct Footer<'a>(Reader<'a>);

impl Footer<'_> {
    fn file_metadata(&mut self) -> Result<(), String> {
        let mut id = 0;
        while let Some(kind) = self.0.field(&mut id)? {
            if id == 2 && kind == kind::LIST {
                self.schema()?;
            } else {
                self.0.skip(kind)?;
            }
        }
        Ok(())
    }

    fn schema(&mut self) -> Result<(), String> {
        let (count, kind) = self.0.list()?;
        if kind != kind::STRUCT {
            return Err("its schema is malformed".to_owned());
        }
        if count > NODE_LIMIT {
            return Err(format!("its schema has {count} nodes, more than {NODE_LIMIT}"));
        }
        // How many children each open node still waits for.
        let mut open: Vec<i64> = Vec::new();
        for _ in 0..count {
            let children = self.schema_element()?;
            if let Some(waiting) = open.last_mut() {
                *waiting -= 1;
            }
            open.push(children);
            if open.len() > DEPTH_LIMIT {
                return Err(format!("its schema is nested more than {DEPTH_LIMIT} deep"));
            }
            while open.last().is_some_and(|waiting| *waiting <= 0) {
                open.pop();
            }
        }
        Ok(())
    }

    fn schema_element(&mut self) -> Result<i64, String> {
        let mut children = 0;
        let mut id = 0;
        while let Some(kind) = self.0.field(&mut id)? {
            if id == 5 && kind == kind::I32 {
                children = self.0.zigzag()?;
            } else {
                self.0.skip(kind)?;
            }
        }
        Ok(children)
    }
}

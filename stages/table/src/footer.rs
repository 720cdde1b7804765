//! A first look at a Parquet footer: that its schema is flat enough for the library's recursive reader.
//!
//! `FileMetaData` is a struct of the Thrift compact protocol; its field 2 lists the nodes of the schema tree depth
//! first, each with its number of children in field 5 (Apache Parquet, `parquet.thrift`; Apache Thrift, "Thrift
//! compact protocol encoding").

const MAGIC: &[u8; 4] = b"PAR1";
/// A table's own schemas are at most 4 deep (root, list, its repeated group, item).
const DEPTH_LIMIT: usize = 16;
const NODE_LIMIT: usize = 16 * 1024;
const SKIP_DEPTH_LIMIT: u32 = 16;

/// Checks the footer of a file; the error is a reason for people.
pub(crate) fn check(file: &[u8]) -> Result<(), String> {
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
    Reader(&rest[start..]).file_metadata()
}

/// Types of the compact protocol.
mod kind {
    pub(super) const STOP: u8 = 0;
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const MAP: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn file_metadata(&mut self) -> Result<(), String> {
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            if id == 2 && kind == kind::LIST {
                self.schema()?;
            } else {
                self.skip(kind, SKIP_DEPTH_LIMIT)?;
            }
        }
        Ok(())
    }

    fn schema(&mut self) -> Result<(), String> {
        let (count, kind) = self.list()?;
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
        while let Some(kind) = self.field(&mut id)? {
            if id == 5 && kind == kind::I32 {
                children = self.zigzag()?;
            } else {
                self.skip(kind, SKIP_DEPTH_LIMIT)?;
            }
        }
        Ok(children)
    }

    /// The kind of the next field, whose number replaces that of the one before; `None` at the end of the struct.
    fn field(&mut self, id: &mut i64) -> Result<Option<u8>, String> {
        let header = self.byte()?;
        if header == kind::STOP {
            return Ok(None);
        }
        *id = match header >> 4 {
            0 => self.zigzag()?,
            step => *id + i64::from(step),
        };
        Ok(Some(header & 0x0f))
    }

    fn list(&mut self) -> Result<(usize, u8), String> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => usize::try_from(self.varint()?).map_err(|_| cut())?,
            count => usize::from(count),
        };
        Ok((count, header & 0x0f))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), String> {
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| "its footer is nested too deeply".to_owned())?;
        match kind {
            kind::TRUE | kind::FALSE => Ok(()),
            kind::BYTE => self.take(1),
            kind::I16 | kind::I32 | kind::I64 => self.varint().map(|_| ()),
            kind::DOUBLE => self.take(8),
            kind::BINARY => {
                let length = usize::try_from(self.varint()?).map_err(|_| cut())?;
                self.take(length)
            }
            kind::LIST | kind::SET => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.skip_item(kind, depth))
            }
            kind::MAP => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.skip_item(kinds >> 4, depth)?;
                    self.skip_item(kinds & 0x0f, depth)
                })
            }
            kind::STRUCT => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth)?;
                }
                Ok(())
            }
            other => Err(format!("its footer holds a field of the unknown type {other}")),
        }
    }

    /// An item of a collection: unlike a field, a truth value takes a byte, so that every item takes at least one.
    fn skip_item(&mut self, kind: u8, depth: u32) -> Result<(), String> {
        if matches!(kind, kind::TRUE | kind::FALSE) {
            self.take(1)
        } else {
            self.skip(kind, depth)
        }
    }

    fn take(&mut self, count: usize) -> Result<(), String> {
        self.0 = self.0.get(count..).ok_or_else(cut)?;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, String> {
        let (first, rest) = self.0.split_first().ok_or_else(cut)?;
        self.0 = rest;
        Ok(*first)
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for place in 0..10 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("its footer holds a number of more than 64 bits".to_owned())
    }

    fn zigzag(&mut self) -> Result<i64, String> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}

fn cut() -> String {
    "its footer is cut short".to_owned()
}

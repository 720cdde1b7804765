//! The Thrift compact protocol, as far as Parquet uses it (Apache Thrift, "Thrift compact protocol encoding").

/// Deepest nesting that is passed over.
const SKIP_DEPTH_LIMIT: u32 = 16;

/// Types of the compact protocol.
pub(crate) mod kind {
    pub(crate) const STOP: u8 = 0;
    pub(crate) const TRUE: u8 = 1;
    pub(crate) const FALSE: u8 = 2;
    pub(crate) const BYTE: u8 = 3;
    pub(crate) const I16: u8 = 4;
    pub(crate) const I32: u8 = 5;
    pub(crate) const I64: u8 = 6;
    pub(crate) const DOUBLE: u8 = 7;
    pub(crate) const BINARY: u8 = 8;
    pub(crate) const LIST: u8 = 9;
    pub(crate) const SET: u8 = 10;
    pub(crate) const MAP: u8 = 11;
    pub(crate) const STRUCT: u8 = 12;
}

/// Reads one structure.
pub(crate) struct Reader<'a> {
    /// What is read, for messages.
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { what, rest: bytes }
    }

    /// How many bytes have not been read.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The kind of the next field, whose number replaces that of the one before; `None` at the end of the struct.
    pub(crate) fn field(&mut self, id: &mut i64) -> Result<Option<u8>, String> {
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

    pub(crate) fn list(&mut self) -> Result<(usize, u8), String> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => usize::try_from(self.varint()?).map_err(|_| self.cut())?,
            count => usize::from(count),
        };
        Ok((count, header & 0x0f))
    }

    /// Passes over a value.
    pub(crate) fn skip(&mut self, kind: u8) -> Result<(), String> {
        self.skip_below(kind, SKIP_DEPTH_LIMIT)
    }

    fn skip_below(&mut self, kind: u8, depth: u32) -> Result<(), String> {
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| format!("its {} is nested too deeply", self.what))?;
        match kind {
            kind::TRUE | kind::FALSE => Ok(()),
            kind::BYTE => self.take(1),
            kind::I16 | kind::I32 | kind::I64 => self.varint().map(|_| ()),
            kind::DOUBLE => self.take(8),
            kind::BINARY => {
                let length = usize::try_from(self.varint()?).map_err(|_| self.cut())?;
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
                    self.skip_below(kind, depth)?;
                }
                Ok(())
            }
            other => Err(format!(
                "its {} holds a field of the unknown type {other}",
                self.what
            )),
        }
    }

    /// An item of a collection: unlike a field, a truth value takes a byte, so that every item takes at least one.
    fn skip_item(&mut self, kind: u8, depth: u32) -> Result<(), String> {
        if matches!(kind, kind::TRUE | kind::FALSE) {
            self.take(1)
        } else {
            self.skip_below(kind, depth)
        }
    }

    fn take(&mut self, count: usize) -> Result<(), String> {
        self.rest = self.rest.get(count..).ok_or_else(|| self.cut())?;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, String> {
        let (first, rest) = self.rest.split_first().ok_or_else(|| self.cut())?;
        self.rest = rest;
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
        Err(format!("its {} holds a number of more than 64 bits", self.what))
    }

    pub(crate) fn zigzag(&mut self) -> Result<i64, String> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn cut(&self) -> String {
        format!("its {} is cut short", self.what)
    }
}

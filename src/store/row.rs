use std::sync::Arc;

use provenir_api::Digest;

use super::Artifact;
use super::stamp::Stamp;

/// What the index remembers of a result: the stamps of its files, and its outputs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// Of the result file.
    pub(super) result: Stamp,
    /// Of each output's object.
    pub(super) objects: Vec<Stamp>,
    pub(super) outputs: Arc<[Artifact]>,
}

impl Row {
    /// Fields of fixed width, little-endian; texts with their length before them.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + 192 * self.outputs.len());
        put_stamp(&mut bytes, &self.result);
        put_number(&mut bytes, self.outputs.len() as u64);
        for (artifact, stamp) in self.outputs.iter().zip(&self.objects) {
            put_text(&mut bytes, &artifact.port);
            put_text(&mut bytes, &artifact.extension);
            bytes.extend_from_slice(artifact.content.bytes());
            bytes.extend_from_slice(artifact.object.bytes());
            put_number(&mut bytes, artifact.size);
            put_number(&mut bytes, u64::from(artifact.rows.is_some()));
            put_number(&mut bytes, artifact.rows.unwrap_or_default());
            put_number(&mut bytes, u64::from(artifact.volatile));
            put_stamp(&mut bytes, stamp);
        }
        bytes
    }

    /// `None` where the bytes are not a row.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let result = reader.stamp()?;
        let count = usize::try_from(reader.number()?).ok()?;
        // Each output takes more than a hundred bytes: a count that is not true must not reserve memory.
        if count > bytes.len() / 100 {
            return None;
        }
        let mut objects = Vec::with_capacity(count);
        let mut outputs = Vec::with_capacity(count);
        for _ in 0..count {
            let port = reader.text()?;
            let extension = reader.text()?;
            let content = reader.digest()?;
            let object = reader.digest()?;
            let size = reader.number()?;
            let has_rows = reader.number()? != 0;
            let rows = reader.number()?;
            let volatile = reader.number()? != 0;
            outputs.push(Artifact {
                port,
                content,
                object,
                size,
                rows: has_rows.then_some(rows),
                extension,
                volatile,
            });
            objects.push(reader.stamp()?);
        }
        reader.0.is_empty().then(|| Self {
            result,
            objects,
            outputs: outputs.into(),
        })
    }
}

fn put_number(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_number(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

fn put_stamp(bytes: &mut Vec<u8>, stamp: &Stamp) {
    for number in [stamp.size, stamp.inode, stamp.modified, stamp.changed] {
        put_number(bytes, number);
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn digest(&mut self) -> Option<Digest> {
        let bytes: [u8; 32] = self.take(32)?.try_into().ok()?;
        Some(bytes.into())
    }

    fn stamp(&mut self) -> Option<Stamp> {
        Some(Stamp {
            size: self.number()?,
            inode: self.number()?,
            modified: self.number()?,
            changed: self.number()?,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::result::tests::artifact;
    use super::*;

    pub(crate) fn row(outputs: Vec<Artifact>) -> Row {
        let stamp = |number| Stamp {
            size: number,
            inode: number + 1,
            modified: number + 2,
            changed: number + 3,
        };
        Row {
            result: stamp(10),
            objects: (0..outputs.len() as u64).map(stamp).collect(),
            outputs: outputs.into(),
        }
    }

    #[test]
    fn rows_survive_and_nothing_else_is_taken_for_one() {
        let mut table = artifact("table", b"b");
        table.rows = Some(3);
        table.volatile = true;
        let row = row(vec![artifact("out", b"a"), table]);
        let bytes = row.encode();
        assert_eq!(Row::decode(&bytes), Some(row));
        for length in 0..bytes.len() {
            assert_eq!(Row::decode(&bytes[..length]), None);
        }
        let mut absurd = bytes.clone();
        absurd[32..40].fill(0xff);
        assert_eq!(Row::decode(&absurd), None);
        assert_eq!(Row::decode(&[bytes, vec![0]].concat()), None);
    }
}

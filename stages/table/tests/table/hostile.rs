//! Files that are cut short, altered, or made to harm: an error or the same table, never a panic.

use crate::support::{self, Folder};
use camino::Utf8Path;
use provenir_table::{Table, TableError, parse, write};

fn bytes(table: &Table) -> Vec<u8> {
    let folder = Folder::new();
    let path = folder.join("table.parquet");
    write(&path, table).unwrap();
    fs_err::read(path).unwrap()
}

fn attempt(bytes: &[u8]) -> Result<Table, TableError> {
    parse(Utf8Path::new("hostile.parquet"), bytes.to_vec())
}

#[test]
fn every_prefix_is_refused() {
    let whole = bytes(&support::sample(20));
    assert!(attempt(&whole).is_ok());
    for length in 0..whole.len() {
        let error = attempt(&whole[..length]).unwrap_err();
        assert!(
            matches!(error, TableError::Unreadable { .. }),
            "{length}: {error}"
        );
    }
}

/// The file holds the digest of its content: what it says otherwise (sizes, statistics, who wrote it) may change unnoticed,
/// its table may not.
#[test]
fn no_altered_byte_gives_another_table() {
    let table = support::sample(5);
    let whole = bytes(&table);
    let (mut refused, mut told) = (0, 0);
    for place in 0..whole.len() {
        for change in [1 << (place % 8), 0x80, 0xff] {
            let mut altered = whole.clone();
            altered[place] ^= change;
            match attempt(&altered) {
                Ok(read) => assert_eq!(read, table, "byte {place}, changed by {change}"),
                Err(error) => {
                    refused += 1;
                    told += usize::from(matches!(error, TableError::Altered { .. }));
                }
            }
        }
    }
    assert!(refused > whole.len());
    assert!(told > 0);
}

/// A footer of the Thrift compact protocol: version 1, and a schema of `depth` groups of one child each.
fn nested(depth: usize) -> Vec<u8> {
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc];
    let mut count = depth;
    while count >= 0x80 {
        footer.push(count as u8 | 0x80);
        count >>= 7;
    }
    footer.push(count as u8);
    for level in 0..depth {
        // Repetition (field 3), name (field 4), number of children (field 5).
        footer.extend([0x35, 0x00, 0x18, 0x01, b'n']);
        if level + 1 < depth {
            footer.extend([0x15, 0x02]);
        }
        footer.push(0);
    }
    // Rows (field 3), row groups (field 4).
    footer.extend([0x16, 0x00, 0x19, 0x0c, 0x00]);
    let mut file = b"PAR1".to_vec();
    file.extend(&footer);
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend(b"PAR1");
    file
}

/// The library's schema reader is recursive: 100,000 levels would overflow its stack, which nothing can catch.
#[test]
fn deep_schemas_are_refused_before_they_are_walked() {
    for depth in [17, 1000, 16_000] {
        let message = attempt(&nested(depth)).unwrap_err().to_string();
        assert!(message.contains("nested more than 16 deep"), "{message}");
    }
    let message = attempt(&nested(100_000)).unwrap_err().to_string();
    assert!(message.contains("100000 nodes"), "{message}");
}

#[test]
fn footers_that_lie_about_their_length_are_refused() {
    for length in [0, 13, u32::MAX] {
        let mut file = b"PAR1aaaaaaaaaaaa".to_vec();
        file.extend(length.to_le_bytes());
        file.extend(b"PAR1");
        assert!(
            matches!(attempt(&file), Err(TableError::Unreadable { .. })),
            "{length}"
        );
    }
}

/// Structs in structs, and lists that claim more items than bytes.
#[test]
fn footers_made_to_exhaust_a_reader_are_refused() {
    for footer in [vec![0x1c; 100_000], vec![0x19; 100_000], {
        let mut claim = vec![0x19, 0xf5];
        claim.extend([0xff; 8]);
        claim.push(0x01);
        claim
    }] {
        let mut file = b"PAR1".to_vec();
        file.extend(&footer);
        file.extend((footer.len() as u32).to_le_bytes());
        file.extend(b"PAR1");
        assert!(matches!(attempt(&file), Err(TableError::Unreadable { .. })));
    }
}

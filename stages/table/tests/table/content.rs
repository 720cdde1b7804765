//! The content digest: what it is, what it is made of, and what it ignores.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Float32Array, Float64Array, Int32Array,
    LargeStringArray, ListArray, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Metadata, Schema};
use arrow_select::concat::concat_batches;
use proptest::prelude::*;
use provenir_api::Digest;
use provenir_table::{Table, TableBuilder, TableError, file_content};

use crate::support;

fn one(name: &str, nullable: bool, column: ArrayRef) -> Table {
    let field = Field::new(name, column.data_type().clone(), nullable);
    Table::new(&RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column]).unwrap()).unwrap()
}

/// The encoding written out by hand from the table at the head of `content.rs`.
#[test]
fn digest_is_that_of_the_documented_encoding() {
    let table = TableBuilder::new()
        .optional_u32("n", vec![Some(7), None, Some(9)])
        .unit("s")
        .fixed_list_f32("x", 2, vec![1.0, -0.0, f32::NAN, 2.0, 3.0, 4.0])
        .utf8("t", ["a", "", "bc"])
        .bool("b", vec![true, false, true])
        .optional_list_f64("l", vec![Some(vec![0.5]), None, Some(vec![])])
        .metadata("z", "1")
        .metadata("a", "2")
        .build()
        .unwrap();

    let mut bytes: Vec<u8> = Vec::new();
    let count = |bytes: &mut Vec<u8>, count: u64| bytes.extend(count.to_le_bytes());
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    };
    count(&mut bytes, 3);
    count(&mut bytes, 5);
    count(&mut bytes, 2);
    for part in ["a", "2", "z", "1"] {
        text(&mut bytes, part);
    }

    text(&mut bytes, "n");
    bytes.extend(b"u\x01");
    count(&mut bytes, 1);
    text(&mut bytes, "unit");
    text(&mut bytes, "s");
    bytes.push(0b101);
    for value in [7_u32, 0, 9] {
        bytes.extend(value.to_le_bytes());
    }

    text(&mut bytes, "x");
    bytes.push(b'w');
    count(&mut bytes, 2);
    bytes.extend(b"f\x00");
    count(&mut bytes, 0);
    for bits in [
        0x3f80_0000_u32,
        0x8000_0000,
        0x7fc0_0000,
        0x4000_0000,
        0x4040_0000,
        0x4080_0000,
    ] {
        bytes.extend(bits.to_le_bytes());
    }

    text(&mut bytes, "t");
    bytes.extend(b"s\x00");
    count(&mut bytes, 0);
    for length in [1, 0, 2] {
        count(&mut bytes, length);
    }
    bytes.extend(b"abc");

    text(&mut bytes, "b");
    bytes.extend(b"b\x00");
    count(&mut bytes, 0);
    bytes.push(0b101);

    text(&mut bytes, "l");
    bytes.extend(b"lF\x01");
    count(&mut bytes, 0);
    bytes.push(0b101);
    for length in [1, 0, 0] {
        count(&mut bytes, length);
    }
    bytes.extend(0.5_f64.to_le_bytes());

    let expected = blake3::derive_key("provenir table v1 content", &bytes);
    assert_eq!(table.content(), Digest::from(expected));
    assert_eq!(
        file_content(b"svg"),
        Digest::from(blake3::derive_key("provenir file v1 content", b"svg"))
    );
}

#[test]
fn every_nan_is_one_and_zeros_are_two() {
    let float = |bits: u32| {
        one(
            "x",
            false,
            Arc::new(Float32Array::from(vec![f32::from_bits(bits)])),
        )
    };
    assert_eq!(float(0x7fc0_0000), float(0xffc0_0001));
    assert_eq!(float(0x7fc0_0000), float(0x7f80_0001));
    assert_ne!(float(0x7fc0_0000), float(0x7f80_0000));
    assert_ne!(float(0), float(0x8000_0000));
    let double = |bits: u64| {
        one(
            "x",
            false,
            Arc::new(Float64Array::from(vec![f64::from_bits(bits)])),
        )
    };
    assert_eq!(double(0x7ff8_0000_0000_0000), double(0xfff0_0000_0000_0001));
    assert_ne!(double(0), double(1 << 63));
}

#[test]
fn what_lies_under_a_null_is_ignored() {
    let valid = NullBuffer::from(vec![true, false]);
    let numbers = |hidden| {
        let values = ScalarBuffer::from(vec![1, hidden]);
        one("x", true, Arc::new(UInt64Array::new(values, Some(valid.clone()))))
    };
    assert_eq!(numbers(0), numbers(77));
    let texts = |hidden: &str| {
        let (offsets, values, _) = StringArray::from(vec!["a", hidden]).into_parts();
        one(
            "x",
            true,
            Arc::new(StringArray::new(offsets, values, Some(valid.clone()))),
        )
    };
    assert_eq!(texts(""), texts("hidden"));
    let booleans = |hidden| {
        let values = vec![true, hidden].into();
        one(
            "x",
            true,
            Arc::new(BooleanArray::new(values, Some(valid.clone()))),
        )
    };
    assert_eq!(booleans(false), booleans(true));
    let lists = |hidden: usize| {
        let item = Arc::new(Field::new("anything", DataType::Float32, true));
        let values = Arc::new(Float32Array::from(vec![1.0; 2 + hidden]));
        let offsets = OffsetBuffer::from_lengths([2, hidden]);
        one(
            "x",
            true,
            Arc::new(ListArray::new(item, offsets, values, Some(valid.clone()))),
        )
    };
    assert_eq!(lists(0), lists(3));
}

#[test]
fn cousins_of_a_type_become_that_type() {
    let text = one("x", false, Arc::new(StringArray::from(vec!["a", "b", "a"])));
    assert_eq!(
        text,
        one("x", false, Arc::new(LargeStringArray::from(vec!["a", "b", "a"])))
    );
    let keys = Int32Array::from(vec![0, 1, 0]);
    let dictionary = DictionaryArray::new(keys, Arc::new(StringArray::from(vec!["a", "b"])));
    assert_eq!(text, one("x", false, Arc::new(dictionary)));
    let whole = TableBuilder::new().i64("x", vec![-1, 2]).build().unwrap();
    assert_eq!(whole, one("x", false, Arc::new(Int32Array::from(vec![-1, 2]))));
}

#[test]
fn what_other_programs_say_about_their_encoding_is_dropped() {
    let column: ArrayRef = Arc::new(UInt32Array::from(vec![1]));
    let field = Field::new("x", DataType::UInt32, false);
    let told = field
        .clone()
        .with_metadata(Metadata::new().with("PARQUET:field_id", "1"));
    let schema = Schema::new_with_metadata(
        vec![told],
        Metadata::new().with("ARROW:schema", "…").with("pandas", "{}"),
    );
    let table = Table::new(&RecordBatch::try_new(Arc::new(schema), vec![column.clone()]).unwrap()).unwrap();
    assert_eq!(table, one("x", false, column));
}

#[test]
fn a_table_refuses_what_it_cannot_hold() {
    let refused = |column: ArrayRef| {
        let field = Field::new("x", column.data_type().clone(), true);
        Table::new(&RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column]).unwrap())
            .unwrap_err()
    };
    let nulls: ArrayRef = Arc::new(arrow_array::NullArray::new(1));
    assert!(matches!(refused(nulls), TableError::Unsupported { .. }));
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let holes = Arc::new(Float32Array::from(vec![Some(1.0), None]));
    let lists = ListArray::new(item.clone(), OffsetBuffer::from_lengths([2]), holes, None);
    assert!(matches!(refused(Arc::new(lists)), TableError::Unsupported { .. }));
    let values = Arc::new(Float32Array::from(vec![1.0, 2.0]));
    let row = FixedSizeListArray::new(item, 2, values, Some(NullBuffer::from(vec![false])));
    assert!(matches!(
        refused(Arc::new(row)),
        TableError::Missing { count: 1, .. }
    ));

    let double = TableBuilder::new().u32("x", vec![1]).u32("x", vec![1]).build();
    assert_eq!(double.unwrap_err().to_string(), "two columns are named `x`");
    let uneven = TableBuilder::new().u32("x", vec![1]).u32("y", vec![]).build();
    assert_eq!(
        uneven.unwrap_err().to_string(),
        "column `y` has 0 rows where `x` has 1"
    );
    assert!(TableBuilder::new().build().is_err());
    assert!(
        TableBuilder::new()
            .fixed_list_f32("x", 0, vec![])
            .build()
            .is_err()
    );
    assert!(
        TableBuilder::new()
            .fixed_list_f32("x", 2, vec![1.0])
            .build()
            .is_err()
    );
}

/// One field changed at a time, in every way that a table can differ.
#[test]
fn every_part_of_a_table_enters() {
    fn base() -> TableBuilder {
        TableBuilder::new().metadata("k", "v").u32("a", vec![1, 2])
    }
    let builders = [
        TableBuilder::new().u32("a", vec![1, 2]),
        base(),
        base().metadata("k", "w"),
        base().metadata("kv", ""),
        base().unit("s"),
        base().unit("m"),
        base().u32("b", vec![1, 2]),
        TableBuilder::new().metadata("k", "v").u32("b", vec![1, 2]),
        TableBuilder::new().metadata("k", "v").u32("a", vec![2, 1]),
        TableBuilder::new().metadata("k", "v").u32("a", vec![1]),
        TableBuilder::new().metadata("k", "v").u32("a", vec![]),
        TableBuilder::new().metadata("k", "v").u64("a", vec![1, 2]),
        TableBuilder::new().metadata("k", "v").i64("a", vec![1, 2]),
        TableBuilder::new()
            .metadata("k", "v")
            .optional_u32("a", vec![Some(1), Some(2)]),
        TableBuilder::new()
            .metadata("k", "v")
            .optional_u32("a", vec![Some(1), None]),
        TableBuilder::new()
            .metadata("k", "v")
            .optional_u32("a", vec![Some(1), Some(0)]),
        TableBuilder::new()
            .metadata("k", "v")
            .list_u32("a", vec![vec![1], vec![2]]),
        TableBuilder::new()
            .metadata("k", "v")
            .list_u32("a", vec![vec![1, 2], vec![]]),
        TableBuilder::new()
            .metadata("k", "v")
            .fixed_list_f32("a", 1, vec![1.0, 2.0, 3.0, 4.0]),
        TableBuilder::new()
            .metadata("k", "v")
            .fixed_list_f32("a", 2, vec![1.0, 2.0, 3.0, 4.0]),
        TableBuilder::new().metadata("k", "v").utf8("a", ["ab", "c"]),
        TableBuilder::new().metadata("k", "v").utf8("a", ["a", "bc"]),
        TableBuilder::new()
            .metadata("k", "v")
            .bool("a", vec![true, false]),
    ];
    let tables: Vec<Table> = builders
        .into_iter()
        .map(|builder| builder.build().unwrap())
        .collect();
    for (index, left) in tables.iter().enumerate() {
        for (earlier, right) in tables[..index].iter().enumerate() {
            assert_ne!(left.content(), right.content(), "{index} and {earlier}");
        }
    }
}

proptest! {
    #[test]
    fn batches_and_slices_are_immaterial(rows in 1_u32..80, cuts in prop::collection::vec(0_usize..80, 0..4)) {
        let whole = support::sample(rows);
        let rows = rows as usize;
        let mut bounds: Vec<usize> = cuts.into_iter().map(|cut| cut.min(rows)).chain([0, rows]).collect();
        bounds.sort_unstable();
        let parts: Vec<RecordBatch> =
            bounds.windows(2).map(|bounds| whole.batch().slice(bounds[0], bounds[1] - bounds[0])).collect();
        let again = concat_batches(&whole.batch().schema(), &parts).unwrap();
        prop_assert_eq!(Table::new(&again).unwrap().content(), whole.content());

        // A slice keeps its parent's buffers; a selection of the same rows owns new ones.
        let (from, to) = (bounds[0], bounds[1]);
        let slice = Table::new(&whole.batch().slice(from, to - from)).unwrap();
        let selection = whole.select(&(from..to).collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(slice.content(), selection.content());
        prop_assert_eq!(slice.column_fixed_list_f32("observation").unwrap(), selection.column_fixed_list_f32("observation").unwrap());
        prop_assert_eq!(slice.column_list_u32("shape").unwrap(), selection.column_list_u32("shape").unwrap());
        prop_assert_eq!(slice.optional_list_f32("values").unwrap(), selection.optional_list_f32("values").unwrap());
    }

    #[test]
    fn one_value_changed_anywhere_changes_the_digest(
        values in prop::collection::vec(any::<u32>(), 1..200), at: prop::sample::Index, bit in 0..32_u32,
    ) {
        let digest = |values: &[u32]| {
            let floats: Vec<f32> = values.iter().map(|bits| f32::from_bits(*bits)).collect();
            let (table, floats) = (TableBuilder::new().u32("x", values.to_vec()), TableBuilder::new().f32("x", floats));
            (table.build().unwrap().content(), floats.build().unwrap().content())
        };
        let mut changed = values.clone();
        let index = at.index(values.len());
        changed[index] ^= 1 << bit;
        let ((whole, float), (other_whole, other_float)) = (digest(&values), digest(&changed));
        prop_assert_ne!(whole, other_whole);
        let both_nan = f32::from_bits(values[index]).is_nan() && f32::from_bits(changed[index]).is_nan();
        prop_assert_eq!(float == other_float, both_nan);
    }
}

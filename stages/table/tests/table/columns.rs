//! Columns by name, schemas, and demonstrations.

use std::collections::BTreeMap;

use crate::support::{self, Folder};
use proptest::prelude::*;
use provenir_api::port::{Column, ColumnType, TableSchema};
use provenir_table::demonstrations::{About, Demonstrations};
use provenir_table::{Matrix, Table, TableBuilder, TableError, read, write};

#[test]
fn columns_come_as_their_type_or_say_what_is_wrong() {
    let table = support::sample(6);
    assert_eq!(table.column_u64("sample").unwrap()[5], (1 << 40) + 5);
    assert_eq!(table.column_u32("episode").unwrap(), [0; 6]);
    assert_eq!(table.column_i64("offset").unwrap(), [5, 4, 3, 2, 1, 0]);
    assert_eq!(
        table.column_f32("reward").unwrap(),
        [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]
    );
    assert_eq!(
        table.column_f64("return").unwrap()[3].to_bits(),
        1.0_f64.to_bits()
    );
    assert_eq!(table.column_bool("terminated").unwrap(), [false; 6]);
    assert_eq!(
        table.column_utf8("method").unwrap()[..3],
        ["bc", "rbc", "noisy-bc"]
    );
    assert_eq!(table.optional_f64("loss").unwrap()[..2], [None, Some(0.125)]);
    assert_eq!(
        table.optional_utf8("note").unwrap()[..2],
        [Some("r\u{f6}w 0"), None]
    );
    assert_eq!(
        table.column_list_u32("shape").unwrap()[2..5],
        [&[0, 1][..], &[0, 1, 2], &[]]
    );
    assert_eq!(
        table.optional_list_f32("values").unwrap()[..3],
        [None, Some(&[1.0][..]), Some(&[2.0; 2])]
    );
    assert_eq!(table.column_numbers("loss").unwrap()[..2], [None, Some(0.125)]);
    assert_eq!(
        table.column_numbers("sample").unwrap()[1],
        Some(1_099_511_627_777.0)
    );

    let message = |error: TableError| error.to_string();
    assert_eq!(
        message(table.column_f32("rewards").unwrap_err()),
        "the table has no column `rewards`: did you mean `reward`?"
    );
    assert_eq!(
        message(table.column_f32("return").unwrap_err()),
        "column `return` is f64, not f32"
    );
    assert_eq!(
        message(table.column_f64("loss").unwrap_err()),
        "column `loss` lacks 2 of its values"
    );
    assert_eq!(
        message(table.column_numbers("method").unwrap_err()),
        "column `method` is text, not a number"
    );
    assert_eq!(
        message(table.column_fixed_list_f32("shape").unwrap_err()),
        "column `shape` is list of u32, not fixed-size list of f32"
    );
}

fn floats() -> ColumnType {
    ColumnType::FixedList(Box::new(ColumnType::Float32))
}

fn demonstrations_schema() -> TableSchema {
    TableSchema::new(vec![
        Column::new("sample", ColumnType::UInt64),
        Column::new("episode", ColumnType::UInt32),
        Column::new("step", ColumnType::UInt32),
        Column::new("observation", floats()),
        Column::new("action", floats()),
        Column::new("reward", ColumnType::Float32),
        Column::new("terminated", ColumnType::Bool),
        Column::new("truncated", ColumnType::Bool),
    ])
}

fn demonstrations(rows: u32) -> Demonstrations {
    Demonstrations {
        sample: (0..u64::from(rows)).collect(),
        episode: (0..rows).map(|row| row / 7).collect(),
        step: (0..rows).map(|row| row % 7).collect(),
        observation: Matrix::new(3, (0..3 * rows).map(|value| value as f32).collect()).unwrap(),
        action: Matrix::new(2, (0..2 * rows).map(|value| -(value as f32)).collect()).unwrap(),
        reward: (0..rows).map(|row| row as f32 / 3.0).collect(),
        terminated: (0..rows).map(|row| row % 7 == 6).collect(),
        truncated: (0..rows).map(|row| row + 1 == rows).collect(),
        about: About {
            environment: "hopper".to_owned(),
            time_feature: true,
            expert: "a test".to_owned(),
            notes: BTreeMap::from([("kept".to_owned(), "yes".to_owned())]),
        },
    }
}

#[test]
fn demonstrations_are_the_table_that_the_contract_names() {
    let table = demonstrations(20).into_table().unwrap();
    assert_eq!(table.schema(), demonstrations_schema());
    table.matches(&demonstrations_schema()).unwrap();
    assert_eq!(table.metadata().get("environment").unwrap(), "hopper");
    assert_eq!(table.metadata().get("time_feature").unwrap(), "true");
    assert_eq!(table.metadata().get("kept").unwrap(), "yes");

    let folder = Folder::new();
    let path = folder.join("demos.parquet");
    let written = write(&path, &table).unwrap();
    let again = read(&path, Some(written.object)).unwrap();
    assert_eq!(Demonstrations::from_table(&again).unwrap(), demonstrations(20));
}

#[test]
fn a_wrong_schema_names_its_columns() {
    let table = TableBuilder::new()
        .u32("sample", vec![1])
        .u32("episode", vec![0])
        .optional_u32("step", vec![None])
        .build()
        .unwrap();
    let TableError::Schema { mismatches } = table.matches(&demonstrations_schema()).unwrap_err() else {
        panic!("another error");
    };
    assert_eq!(mismatches[0], "its column `sample` is u32, not u64");
    assert_eq!(mismatches[1], "its column `step` may hold missing values");
    assert_eq!(mismatches[2], "it has no column `observation`");
    assert_eq!(mismatches.len(), 7);

    // A column that may lack values but lacks none will do: other programs declare every column so.
    let wanted = TableSchema::new(vec![Column::new("x", ColumnType::UInt32)]);
    let nullable = |value| {
        TableBuilder::new()
            .optional_u32("x", vec![value])
            .build()
            .unwrap()
    };
    nullable(Some(1)).matches(&wanted).unwrap();
    assert!(nullable(None).matches(&wanted).is_err());
}

fn with(change: impl FnOnce(&mut Demonstrations)) -> Result<Table, TableError> {
    let mut demonstrations = demonstrations(20);
    change(&mut demonstrations);
    demonstrations.into_table()
}

#[test]
fn impossible_demonstrations_are_refused() {
    assert!(with(|demos| demos.reward.truncate(3)).is_err());
    let broken = |change: fn(&mut Demonstrations)| {
        Demonstrations::from_table(&with(change).unwrap())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        broken(|demos| demos.action.row_mut(4)[1] = f32::NAN),
        "column `action` holds NaN in row 4, which is not a finite number"
    );
    assert_eq!(
        broken(|demos| demos.reward[2] = f32::INFINITY),
        "column `reward` holds inf in row 2, which is not a finite number"
    );
    let bare = with(|_| ()).unwrap();
    let without = |key: &str| {
        let mut metadata = bare.metadata().clone();
        metadata.remove(key);
        Demonstrations::from_table(&bare.with_metadata(&metadata))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        without("environment"),
        "the table's metadata `environment` is missing"
    );
    assert_eq!(
        without("time_feature"),
        "the table's metadata `time_feature` is missing"
    );
    let odd = bare.with_metadata(&bare.metadata().clone().with("time_feature", "yes"));
    assert_eq!(
        Demonstrations::from_table(&odd).unwrap_err().to_string(),
        "the table's metadata `time_feature` is `true` or `false`, not `yes`"
    );
}

proptest! {
    #[test]
    fn selecting_before_and_after_becoming_a_table_is_the_same(
        rows in prop::collection::vec(0_usize..20, 0..30),
    ) {
        let table = demonstrations(20).into_table().unwrap();
        let first = demonstrations(20).select(&rows).into_table().unwrap();
        let second = table.select(&rows).unwrap();
        prop_assert_eq!(first.content(), second.content());
        prop_assert!(table.select(&[20]).is_err());
    }
}

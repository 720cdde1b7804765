//! A Parquet file: an error, or a table that is the same when it is written and read again.

#![no_main]

use camino::Utf8Path;
use libfuzzer_sys::fuzz_target;
use provenir_fuzz::{harness, seeds};
use provenir_policy::PolicySet;
use provenir_table::demonstrations::Demonstrations;
use provenir_table::{Table, parse, write};

fuzz_target!(
    init: harness::begin(seeds::tables),
    |data: &[u8]| harness::examine(|| {
        match parse(Utf8Path::new("fuzz.parquet"), data.to_vec()) {
            Ok(table) => check(&table),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    })
);

fn check(table: &Table) {
    let content = table.content();
    assert!(table.matches(&table.schema()).is_ok());
    let path = harness::folder().join("again.parquet");
    let written = write(&path, table).expect("what was read can be written");
    assert_eq!(written.content, content);
    let again = fs_err::read(&path).expect("the file is there");
    let again = parse(&path, again).expect("what was written can be read");
    assert_eq!(&again, table);
    if table.rows() > 0 {
        assert_eq!(table.select(&[0]).expect("there is a first row").rows(), 1);
    }
    if let Ok(demonstrations) = Demonstrations::from_table(table) {
        assert_eq!(demonstrations.rows(), table.rows());
        let again = demonstrations
            .clone()
            .into_table()
            .expect("demonstrations are a table");
        assert_eq!(
            Demonstrations::from_table(&again).expect("and are read as such"),
            demonstrations
        );
    }
    if let Ok(policies) = PolicySet::from_table(table) {
        let again = policies.to_table().expect("policies are a table");
        let again = PolicySet::from_table(&again).expect("and are read as such");
        assert_eq!(again.checkpoints(), policies.checkpoints());
        act(&policies);
    }
}

/// A policy that exists can act.
fn act(policies: &PolicySet) {
    let policy = policies.last();
    if policy.parameter_count() < 1 << 16 {
        let observation = vec![0.5; policy.observation_width()];
        let mut action = vec![0.0; policy.action_width()];
        policy.actor().act(&observation, &mut action);
    }
}

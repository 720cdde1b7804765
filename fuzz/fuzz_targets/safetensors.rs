//! A policy as safetensors, as a file or as header and data: an error, or policies that are the same when they are written
//! and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use provenir_fuzz::{harness, sections, seeds};
use provenir_policy::PolicySet;

fuzz_target!(
    init: harness::begin(seeds::safetensors),
    |data: &[u8]| harness::examine(|| {
        let file = match &sections(data)[..] {
            [header, data, ..] => [&(header.len() as u64).to_le_bytes()[..], header, data].concat(),
            _ => data.to_vec(),
        };
        match PolicySet::from_safetensors(&file) {
            Ok(policies) => {
                let written = policies.to_safetensors();
                let again = PolicySet::from_safetensors(&written).expect("what was written can be read");
                assert_eq!(again.checkpoints(), policies.checkpoints());
                assert_eq!(again.to_safetensors(), written);
                let table = policies.to_table().expect("policies are a table");
                let table = PolicySet::from_table(&table).expect("and are read as such");
                assert_eq!(table.checkpoints(), policies.checkpoints());
            }
            Err(error) => {
                let told = error.to_string();
                assert!(!told.is_empty() && !told.contains(char::is_control), "{told:?}");
            }
        }
    })
);

//! A figure from anywhere: whether it says where it comes from, and whether that was altered.

#![no_main]

use libfuzzer_sys::fuzz_target;
use provenir_api::FigureIdentity;
use provenir_fuzz::{harness, seeds};

const SEAL: &[u8] = b"provenir-seal";

fuzz_target!(
    init: harness::begin(seeds::figures),
    |data: &[u8]| harness::examine(|| {
        let identity = FigureIdentity::read(data);
        let is_unaltered = FigureIdentity::is_unaltered(data);
        assert!(identity.is_some() || !is_unaltered);
        let sealed = FigureIdentity::seal(data.to_vec());
        if identity.is_some() {
            assert_eq!(FigureIdentity::read(&sealed), identity);
            // A file that is sealed already, rightly or wrongly, is none that we would seal.
            let has_seal = data.windows(SEAL.len()).any(|window| window == SEAL);
            assert!(has_seal || FigureIdentity::is_unaltered(&sealed));
        }
    })
);

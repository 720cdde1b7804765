//! A manifest, what it extends and the options of the command line, as text: a plan or a list of problems, which can be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use provenir_fuzz::manifests::{Request, check, check_shown};
use provenir_fuzz::{harness, sections, seeds};

fuzz_target!(
    init: harness::begin(seeds::manifests),
    |data: &[u8]| harness::examine(|| {
        if let Some(found) = Request::of(&sections(data)).load() {
            check(&found);
            if let Err(problems) = &found {
                check_shown(problems);
            }
        }
    })
);

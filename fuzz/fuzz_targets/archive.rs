//! A Stable-Baselines3 archive, as a file or as parts whose checksums are right: an error, or a policy that survives a file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use provenir_fuzz::archives::Agent;
use provenir_fuzz::{harness, sections, seeds};
use provenir_policy::{Activation, PolicySet};
use provenir_stable_baselines::read;

fuzz_target!(
    init: harness::begin(seeds::agents),
    |data: &[u8]| harness::examine(|| {
        let agent = Agent::of(&sections(data));
        for activation in [None, Some(Activation::Tanh)] {
            let found = read(&provenir_stable_baselines::Agent {
                archive: &agent.archive,
                statistics: agent.statistics.as_deref(),
                activation,
                environment: "hopper",
                time_feature: false,
            });
            match found {
                Ok(policy) => {
                    let set = PolicySet::single(policy);
                    let again = PolicySet::from_safetensors(&set.to_safetensors()).expect("what was written can be read");
                    assert_eq!(again.checkpoints(), set.checkpoints());
                }
                Err(error) => {
                    let told = error.to_string();
                    assert!(!told.is_empty() && !told.contains(char::is_control), "{told:?}");
                }
            }
        }
    })
);

//! Memory that runs out: a stand-in for a device that fills up.

use std::cell::Cell as Slot;

use provenir_nn::NnError;
use tch::TchError;

use super::group::{Member, contents, together};
use super::*;

thread_local! {
    /// How many policies there is memory for after how many epochs, in trainings of this thread.
    static ROOM: Slot<Option<(usize, u64)>> = const { Slot::new(None) };
}

/// Fails, in the words of LibTorch, where so many policies after so many epochs take more memory than there is.
pub(crate) fn allocate(policies: usize, epochs: u64) -> Result<(), NnError> {
    match ROOM.get() {
        Some((most, from)) if policies > most && epochs >= from => Err(NnError::Torch(TchError::Torch(
            "CUDA out of memory. Tried to allocate 2.00 GiB.\nException raised from malloc".to_owned(),
        ))),
        _ => Ok(()),
    }
}

fn within<T>(room: (usize, u64), train: impl FnOnce() -> T) -> T {
    ROOM.set(Some(room));
    let result = train();
    ROOM.set(None);
    result
}

#[test]
fn a_group_that_memory_does_not_suffice_for_goes_on_in_halves_from_where_it_was() {
    for parameters in [
        parameters!({ "method": "bc", "hidden": [12], "epochs": 6, "batch": 32 }),
        parameters!({ "method": "noisy-bc", "hidden": [12], "epochs": 6, "batch": 32, "noisy_bc": { "rounds": 2 } }),
    ] {
        let member = |seed: u64| Member::new(&parameters, seed, 120);
        for from in [0, 3] {
            let members: Vec<Member> = (0..5).map(member).collect();
            let results = within((2, from), || together(&members.iter().collect::<Vec<_>>()));
            for (seed, result) in (0..).zip(&results) {
                let alone = together(&[&member(seed)]);
                assert_eq!(
                    contents(result.as_ref().unwrap()),
                    contents(alone[0].as_ref().unwrap()),
                    "{seed}"
                );
            }
            // 5 are 2 and 3, which are 1 and 2.
            let told: Vec<Vec<String>> = members.iter().map(|member| member.listener.warnings()).collect();
            let halves = [
                (0, vec!["5 policies", "going on with 2"]),
                (2, vec!["5 policies", "going on with 3"]),
                (3, vec!["3 policies", "going on with 2"]),
            ];
            for (seed, words) in halves {
                let told = told[seed]
                    .iter()
                    .find(|told| words.iter().all(|word| told.contains(word)))
                    .unwrap();
                assert!(told.contains("CUDA out of memory. Tried to allocate"), "{told}");
                assert!(!told.contains("Exception raised"), "{told}");
            }
            assert_eq!(told.iter().map(Vec::len).sum::<usize>(), 4);
            for member in &members {
                let said = member.listener.said.lock().unwrap();
                let goes_on = said
                    .iter()
                    .any(|(_, said)| said == "continuing an earlier attempt after 3 of 6 epochs");
                assert_eq!(goes_on, from == 3);
            }
        }
    }
}

#[test]
fn a_policy_that_memory_does_not_suffice_for_alone_fails_and_says_what_to_do() {
    let parameters = parameters!({ "method": "bc", "hidden": [12], "epochs": 2, "batch": 32 });
    let members: Vec<Member> = (0..2).map(|seed| Member::new(&parameters, seed, 60)).collect();
    for result in within((0, 0), || together(&members.iter().collect::<Vec<_>>())) {
        let failure = result.unwrap_err();
        assert_eq!(failure.blame(), provenir_api::protocol::Blame::Environment);
        assert!(failure.to_string().contains("out of memory"), "{failure}");
    }
}

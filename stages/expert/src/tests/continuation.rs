use provenir_policy::About;
use provenir_sim::Task;

use super::*;
use crate::checkpoint::HEAD;
use crate::run::Training;

/// Trains for some rounds, leaves checkpoints after those listed, and is gone without a word.
fn attempt(folder: &Folder, parameters: &ExpertParameters, rounds: u64, saves: &[u64]) {
    let listener = Listener::default();
    let context = Context::new(&listener, &listener.cancelled, folder.path());
    let about = About {
        environment: "hopper".to_owned(),
        time_feature: parameters.time_feature,
        method: parameters.algorithm.name().to_owned(),
        ..About::default()
    };
    let task = Task::named("hopper").unwrap();
    let mut training = Training::new(parameters, task, about, tch::Device::Cpu, &context)
        .unwrap()
        .resume()
        .unwrap();
    while training.rounds_done() < rounds {
        training.step().unwrap();
        if saves.contains(&training.rounds_done()) {
            training.save().unwrap();
        }
    }
}

/// Trains to the end from what is in the folder.
fn end(folder: &Folder, parameters: &ExpertParameters) -> (Outputs, Listener) {
    let listener = Listener::default();
    let outputs = train_in(folder, parameters, &listener).unwrap();
    (outputs, listener)
}

/// All that a training can be: with a buffer that is soon full, with everything that has a state.
fn variants() -> Vec<ExpertParameters> {
    vec![
        parameters!({ "buffer": 170, "evaluate_every": 100, "candidates": 3, "candidate_episodes": 3 }),
        parameters!({ "algorithm": "tqc", "schedule": "linear", "decay_from": 0.3, "policy_delay": 2, "keep": "last" }),
        parameters!({ "time_feature": true, "environments": 7, "steps_per_update": 4, "temperature": 0.1 }),
        parameters!({ "algorithm": "tqc", "normalised_critics": true, "policy_delay": 3 }),
        parameters!({ "gsde": { "enabled": true, "resample": 5 } }),
    ]
}

#[test]
fn a_training_that_ends_anywhere_goes_on_to_the_same_result() {
    for parameters in variants() {
        let whole = content(&train(&parameters));
        let rounds = parameters.steps.div_ceil(u64::from(parameters.environments));
        // Before learning starts; soon after; twice in one attempt; just before the end; one after another.
        let attempts: [&[(u64, &[u64])]; 5] = [
            &[(9, &[5])],
            &[(rounds / 2, &[rounds / 4])],
            &[(rounds - 2, &[rounds / 3, rounds / 2])],
            &[(rounds, &[rounds - 1])],
            &[(4, &[3]), (rounds / 3, &[20, 40]), (rounds / 2, &[rounds / 2])],
        ];
        for attempts in attempts {
            let folder = Folder::new();
            for (rounds, saves) in attempts {
                attempt(&folder, &parameters, *rounds, saves);
            }
            let (outputs, listener) = end(&folder, &parameters);
            assert!(listener.heard("continuing an earlier attempt"), "{attempts:?}");
            assert_eq!(content(&outputs), whole, "{attempts:?} of {parameters:?}");
            let timing = outputs.get_table("timing").unwrap();
            let seconds = timing.column_f64("seconds").unwrap().to_vec();
            assert!(seconds.is_sorted() && seconds[0] > 0.0, "{seconds:?}");
        }
    }
}

#[test]
fn an_attempt_that_ends_between_transitions_and_head_has_no_effect() {
    let parameters = parameters!({ "buffer": 170 });
    let whole = content(&train(&parameters));
    let folder = Folder::new();
    attempt(&folder, &parameters, 60, &[40, 60]);
    let head = fs_err::read(folder.path().join(HEAD)).unwrap();
    attempt(&folder, &parameters, 90, &[90]);
    // The head before; the transitions of the one after, cut and longer ones alike.
    fs_err::write(folder.path().join(HEAD), &head).unwrap();
    let later = folder.path().join("replay-180");
    let bytes = fs_err::read(&later).unwrap();
    for torn in [&bytes[..bytes.len() / 2], &[&bytes[..], &bytes[..]].concat()] {
        fs_err::write(&later, torn).unwrap();
        fs_err::write(folder.path().join(HEAD), &head).unwrap();
        attempt(&folder, &parameters, 100, &[95]);
    }
    let (outputs, listener) = end(&folder, &parameters);
    assert!(listener.heard("continuing an earlier attempt after 285 of 600 steps"));
    assert_eq!(content(&outputs), whole);
}

#[test]
fn transitions_that_are_no_longer_held_make_room_on_the_disk() {
    let parameters = parameters!({ "buffer": 170 });
    let folder = Folder::new();
    let saves: Vec<u64> = (1..=19).map(|save| save * 10).collect();
    attempt(&folder, &parameters, 190, &saves);
    let mut names: Vec<String> = fs_err::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    // 570 transitions, the last 170 are held: number 400 is in the part that begins with 390.
    let expected = ["390", "420", "450", "480", "510", "540"].map(|first| format!("replay-{first}"));
    assert_eq!(names[..6], expected);
    assert_eq!(names[6..], [HEAD]);
}

#[test]
fn a_checkpoint_that_cannot_be_used_is_told_and_not_used() {
    let parameters = parameters!({ "buffer": 170 });
    let whole = content(&train(&parameters));
    let damage = |name: &str, damage: &dyn Fn(&mut Vec<u8>)| {
        let folder = Folder::new();
        attempt(&folder, &parameters, 80, &[40, 80]);
        let path = folder.path().join(name);
        let mut bytes = fs_err::read(&path).unwrap();
        damage(&mut bytes);
        fs_err::write(&path, bytes).unwrap();
        let (outputs, listener) = end(&folder, &parameters);
        assert_eq!(listener.warnings().len(), 1, "{name}: {:?}", listener.warnings());
        assert!(listener.warnings()[0].contains("starting from the beginning"));
        assert_eq!(content(&outputs), whole, "{name}");
    };
    damage(HEAD, &|bytes| bytes.truncate(bytes.len() / 2));
    damage(HEAD, &|bytes| bytes.clear());
    damage(HEAD, &|bytes| bytes[30] ^= 1);
    damage("replay-0", &|bytes| bytes.truncate(bytes.len() - 1));
    damage("replay-120", &|bytes| bytes[7] ^= 128);

    // Of another training.
    let folder = Folder::new();
    for other in [
        parameters!({ "environments": 5 }),
        parameters!({ "hidden": [12, 11] }),
        parameters!({ "steps_per_update": 2 }),
        parameters!({ "time_feature": true }),
        parameters!({ "seed": 6 }),
    ] {
        attempt(&folder, &other, 60, &[60]);
        let (outputs, listener) = end(&folder, &parameters);
        assert_eq!(
            listener.warnings().len(),
            1,
            "{other:?}: {:?}",
            listener.warnings()
        );
        assert_eq!(content(&outputs), whole);
    }
}

#[test]
fn a_training_that_is_asked_to_stop_leaves_a_checkpoint() {
    let parameters = parameters!({});
    let whole = content(&train(&parameters));
    let folder = Folder::new();
    let listener = Listener {
        stop_at: Some("after 402 steps"),
        ..Listener::default()
    };
    let failure = train_in(&folder, &parameters, &listener).unwrap_err();
    assert_eq!(failure.blame(), provenir_api::protocol::Blame::Cancelled);
    let (outputs, listener) = end(&folder, &parameters);
    assert!(listener.heard("continuing an earlier attempt after 402 of 600 steps"));
    assert_eq!(content(&outputs), whole);
}

#[test]
fn cores_change_nothing() {
    let parameters = parameters!({});
    let one = content(&train(&parameters));
    for cores in [2, 3] {
        let (folder, listener) = (Folder::new(), Listener::default());
        let context = Context::new(&listener, &listener.cancelled, folder.path()).with_cores(cores);
        assert_eq!(
            content(&execute(&parameters, &context, NEVER).unwrap()),
            one,
            "{cores}"
        );
    }
}

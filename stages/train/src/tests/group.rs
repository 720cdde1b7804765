//! Cells that are executed together.

use camino::Utf8Path;

use super::company::every_method;
use super::*;

/// A cell and where it keeps its checkpoints. Its robot follows from its seed, so that a group is of several.
pub(super) struct Member {
    parameters: TrainParameters,
    inputs: Inputs,
    folder: tempfile::TempDir,
    pub(super) listener: Listener,
}

impl Member {
    pub(super) fn new(parameters: &TrainParameters, seed: u64, rows: usize) -> Self {
        Self::learning_from(parameters, seed, lesson(seed, rows))
    }

    fn learning_from(parameters: &TrainParameters, seed: u64, inputs: Inputs) -> Self {
        Self {
            parameters: TrainParameters {
                seed,
                learning_rate: 1e-3 * (1 + seed) as f64,
                ..parameters.clone()
            },
            inputs,
            folder: tempfile::tempdir().unwrap(),
            listener: Listener::default(),
        }
    }
}

/// What there is to learn from of a robot that follows from the seed.
fn lesson(seed: u64, rows: usize) -> Inputs {
    let demos = with_outliers(demonstrations_of_robot(seed, rows, seed), rows / 10);
    let validation = demonstrations_of_robot(seed, 40, 100 + seed)
        .into_table()
        .unwrap();
    inputs(&demos).with_table("validation", validation)
}

pub(super) fn together(members: &[&Member]) -> Vec<Result<Outputs, Failure>> {
    // The request to stop is everybody's: here it is the first one's.
    let cancelled = &members[0].listener.cancelled;
    let contexts: Vec<Context<'_>> = members
        .iter()
        .map(|member| {
            let partial = Utf8Path::from_path(member.folder.path()).unwrap();
            Context::new(&member.listener, cancelled, partial)
        })
        .collect();
    let cells: Vec<Cell<'_, TrainParameters>> = members
        .iter()
        .zip(&contexts)
        .map(|(member, context)| Cell {
            parameters: &member.parameters,
            inputs: &member.inputs,
            context,
        })
        .collect();
    train_all(&cells, Duration::ZERO)
}

/// Digests of all that is repeatable.
pub(super) fn contents(outputs: &Outputs) -> Vec<provenir_api::Digest> {
    ["policy", "history", "trust"]
        .map(|port| outputs.get_table(port).unwrap().content())
        .to_vec()
}

#[test]
fn a_cell_gives_the_same_alone_among_others_and_in_another_order() {
    for (name, parameters) in every_method() {
        let member = |seed: u64| Member::new(&parameters, seed, 120);
        let alone: Vec<_> = (0..7)
            .map(|seed| contents(together(&[&member(seed)])[0].as_ref().unwrap()))
            .collect();
        for order in [vec![0, 1], vec![6, 5, 4, 3, 2, 1, 0], vec![3, 0, 5]] {
            let members: Vec<Member> = order.iter().map(|seed| member(*seed)).collect();
            let results = together(&members.iter().collect::<Vec<_>>());
            for (seed, result) in order.iter().zip(&results) {
                assert_eq!(
                    contents(result.as_ref().unwrap()),
                    alone[*seed as usize],
                    "{name}: {seed} among {order:?}"
                );
            }
            // All robots in one training.
            let told = format!("one of {} policies that are trained together", order.len());
            for member in &members {
                let said = member.listener.said.lock().unwrap();
                assert!(said.iter().any(|(_, said)| *said == told), "{name}: {said:?}");
            }
        }
    }
}

#[test]
fn cells_that_learn_from_the_same_tables_give_what_each_gives_alone() {
    let mixed = of_every_rule()
        .into_iter()
        .map(|member| member.parameters)
        .collect();
    let of_one_method = every_method()
        .into_iter()
        .map(|(_, parameters)| vec![parameters; 5]);
    for parameters in of_one_method.chain([mixed]) {
        let each = || {
            (0..)
                .zip(&parameters)
                .map(|(seed, parameters)| (seed, seed % 2, parameters))
        };
        let alone: Vec<_> = each()
            .map(|(seed, data, parameters)| {
                let member = Member::learning_from(parameters, seed, lesson(data, 120));
                contents(together(&[&member])[0].as_ref().unwrap())
            })
            .collect();
        // A clone is the same tables.
        let lessons = [lesson(0, 120), lesson(1, 120)];
        let members: Vec<Member> = each()
            .map(|(seed, data, parameters)| {
                Member::learning_from(parameters, seed, lessons[data as usize].clone())
            })
            .collect();
        let results = together(&members.iter().collect::<Vec<_>>());
        for ((result, alone), member) in results.iter().zip(&alone).zip(&members) {
            assert_eq!(
                contents(result.as_ref().unwrap()),
                *alone,
                "{:?}",
                member.parameters
            );
        }
    }
}

/// Members of one training, each by a rule of its own; what they have in common is that of the first.
fn of_every_rule() -> Vec<Member> {
    let mut rules = every_method();
    rules.retain(|(_, parameters)| parameters.method.is_rule());
    assert!(rules.len() > 7);
    let common = rules[0].1.clone();
    (0..)
        .zip(&rules)
        .map(|(seed, (_, parameters))| {
            let parameters = TrainParameters {
                schedule: common.schedule,
                weight_decay: common.weight_decay,
                ..parameters.clone()
            };
            Member::new(&parameters, seed, 120)
        })
        .collect()
}

#[test]
fn a_cell_gives_the_same_alone_and_among_those_of_other_methods() {
    let count = of_every_rule().len();
    let alone: Vec<_> = of_every_rule()
        .iter()
        .map(|member| contents(together(&[member])[0].as_ref().unwrap()))
        .collect();
    let all: Vec<usize> = (0..count).collect();
    // Different methods with different robots stand in every place.
    let turned = |by: usize, step: usize| -> Vec<usize> {
        (0..count).map(|place| (by + place * step) % count).collect()
    };
    for order in [
        all.clone(),
        all.iter().rev().copied().collect(),
        turned(4, 5),
        turned(7, 1)[..7].to_vec(),
        vec![2, 0],
        vec![3, 2],
    ] {
        let members = of_every_rule();
        let chosen: Vec<&Member> = order.iter().map(|place| &members[*place]).collect();
        let results = together(&chosen);
        let told = format!("one of {} policies that are trained together", order.len());
        for (place, result) in order.iter().zip(&results) {
            let member = &members[*place];
            let name = member.parameters.method.name();
            assert_eq!(
                contents(result.as_ref().unwrap()),
                alone[*place],
                "{name}: {place} among {order:?}"
            );
            let said = member.listener.said.lock().unwrap();
            assert!(said.iter().any(|(_, said)| *said == told), "{name}: {said:?}");
        }
    }
}

#[test]
fn cells_of_different_methods_go_on_in_other_company() {
    let alone: Vec<_> = of_every_rule()
        .iter()
        .map(|member| contents(together(&[member])[0].as_ref().unwrap()))
        .collect();
    let members = of_every_rule();
    let (left, right): (Vec<&Member>, Vec<&Member>) = (
        members.iter().step_by(2).collect(),
        members.iter().skip(1).step_by(2).collect(),
    );
    stop(&left, 22);
    stop(&right, 22);
    // Those that stopped after equally many epochs go on together.
    let results = together(&members.iter().rev().collect::<Vec<_>>());
    for (place, result) in results.iter().rev().enumerate() {
        assert_eq!(contents(result.as_ref().unwrap()), alone[place], "{place}");
    }
}

/// Trains until so many steps were reported, or until the end, where that came first.
fn stop(stopped: &[&Member], steps: u64) {
    *stopped[0].listener.stop_after.lock().unwrap() = Some(steps);
    for result in together(stopped) {
        // Reports are rationed by time: it may have come to its end before it heard of it.
        if let Err(failure) = result {
            assert_eq!(failure.to_string(), "cancelled");
        }
    }
    *stopped[0].listener.stop_after.lock().unwrap() = None;
    stopped[0].listener.cancelled.store(false, Ordering::Relaxed);
}

#[test]
fn policies_that_are_trained_together_have_the_widths_of_their_robots() {
    let parameters = parameters!({ "method": "bc", "hidden": [12], "epochs": 2, "batch": 32 });
    let members: Vec<Member> = (0..3).map(|seed| Member::new(&parameters, seed, 120)).collect();
    let results = together(&members.iter().collect::<Vec<_>>());
    for (result, expected) in results.iter().zip([(16, 3), (3, 2), (29, 8)]) {
        let policies = policies(result.as_ref().unwrap());
        let layers = policies.last().layers();
        let (first, last) = (&layers[0], &layers[layers.len() - 1]);
        assert_eq!((first.inputs(), last.outputs()), expected);
    }
}

#[test]
fn cells_with_other_numbers_of_samples_do_not_hinder_each_other() {
    let parameters = parameters!({ "method": "bc", "hidden": [12], "epochs": 3, "batch": 32 });
    let rows = [100, 50, 100, 70];
    let member = |place: usize| Member::new(&parameters, place as u64, rows[place]);
    let members: Vec<Member> = (0..4).map(member).collect();
    let results = together(&members.iter().collect::<Vec<_>>());
    for (place, result) in results.iter().enumerate() {
        let alone = together(&[&member(place)]);
        assert_eq!(
            contents(result.as_ref().unwrap()),
            contents(alone[0].as_ref().unwrap()),
            "{place}"
        );
    }
}

#[test]
fn a_cell_goes_on_among_others_where_it_stopped_alone_and_alone_where_it_stopped_among_others() {
    for (name, parameters) in every_method() {
        let member = |seed: u64| Member::new(&parameters, seed, 120);
        let undisturbed: Vec<_> = (0..3)
            .map(|seed| contents(together(&[&member(seed)])[0].as_ref().unwrap()))
            .collect();
        let members: Vec<Member> = (0..3).map(member).collect();
        stop(&[&members[0], &members[1]], 12);
        stop(&[&members[2]], 22);
        let results = together(&[&members[2], &members[0], &members[1]]);
        for (seed, result) in [2_usize, 0, 1].into_iter().zip(&results) {
            assert_eq!(
                contents(result.as_ref().unwrap()),
                undisturbed[seed],
                "{name}: {seed}"
            );
        }
        stop(&[&members[0], &members[1]], 22);
        for seed in [1_usize, 0] {
            let result = together(&[&members[seed]]);
            assert_eq!(
                contents(result[0].as_ref().unwrap()),
                undisturbed[seed],
                "{name}: {seed}"
            );
        }
    }
}

#[test]
fn a_loss_that_is_not_finite_stops_its_own_cell_and_no_other() {
    let parameters = parameters!({
        "method": "bc", "hidden": [12], "epochs": 6, "batch": 32, "gradient_clip": 0.0,
    });
    let member = |seed: u64| Member::new(&parameters, seed, 100);
    let mut members: Vec<Member> = (0..3).map(member).collect();
    // Finite in single precision, and its square is not.
    let mut demos = demonstrations(100, 1);
    demos.action.row_mut(50)[0] = 1e30;
    members[1].inputs =
        inputs(&demos).with_table("validation", demonstrations(40, 101).into_table().unwrap());
    let results = together(&members.iter().collect::<Vec<_>>());
    let failure = results[1].as_ref().unwrap_err();
    assert!(failure.to_string().contains("in epoch 1 is inf"), "{failure}");
    for seed in [0, 2] {
        let alone = together(&[&member(seed)]);
        assert_eq!(
            contents(results[seed as usize].as_ref().unwrap()),
            contents(alone[0].as_ref().unwrap()),
            "{seed}"
        );
    }
}

#[test]
fn a_cell_that_cannot_begin_leaves_the_others_alone() {
    // No action of the second lies within the bound.
    let parameters = parameters!({
        "method": "range-filter", "hidden": [12], "epochs": 2, "batch": 32, "range_filter": { "bound": 0.95 },
    });
    let mut members: Vec<Member> = (0..3).map(|seed| Member::new(&parameters, seed, 100)).collect();
    let mut demos = demonstrations(100, 1);
    for row in 0..100 {
        demos.action.row_mut(row)[0] = 0.99;
    }
    members[1].inputs =
        inputs(&demos).with_table("validation", demonstrations(40, 101).into_table().unwrap());
    let results = together(&members.iter().collect::<Vec<_>>());
    assert!(results[0].is_ok() && results[2].is_ok());
    let failure = results[1].as_ref().unwrap_err();
    assert!(failure.to_string().contains("no action lies within"), "{failure}");
}

#[test]
fn where_all_losses_are_not_finite_each_cell_is_told_once() {
    let parameters = parameters!({
        "method": "bc", "hidden": [12], "epochs": 6, "batch": 32, "gradient_clip": 0.0,
    });
    let members: Vec<Member> = (0..4)
        .map(|seed| {
            let mut demos = demonstrations(100, seed);
            demos.action.row_mut(50)[0] = 1e30;
            Member {
                inputs: inputs(&demos),
                ..Member::new(&parameters, seed, 100)
            }
        })
        .collect();
    for result in together(&members.iter().collect::<Vec<_>>()) {
        assert!(result.unwrap_err().to_string().contains("in epoch 1 is"));
    }
    for member in &members {
        assert_eq!(member.listener.warnings(), [""; 0]);
    }
}

//! `split` from outside: tables in, tables out.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use provenir_api::protocol::{Level, Progress};
use provenir_execution::{Context, Execution, Failure, Inputs, Outputs, Reporter};
use provenir_kinds::split::SplitParameters;
use provenir_split::SplitExecution;
use provenir_table::Matrix;
use provenir_table::demonstrations::{About, Demonstrations};

#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl Reporter for Warnings {
    fn progress(&self, _: Progress) {}
    fn log(&self, level: Level, message: &str) {
        if level == Level::Warning {
            self.0.lock().unwrap().push(message.to_owned());
        }
    }
}

/// Episodes of these lengths, numbered 0, 10, 20, …; every second one ends by its own rules, the others are cut.
fn demonstrations(lengths: &[usize]) -> Demonstrations {
    let rows: Vec<(u32, usize, usize)> = (0..)
        .zip(lengths)
        .flat_map(|(episode, length)| (0..*length).map(move |step| (episode, step, *length)))
        .collect();
    let numbers: Vec<f32> = (0..rows.len()).map(|row| row as f32).collect();
    let ends = |cut: bool| {
        rows.iter()
            .map(|(episode, step, length)| step + 1 == *length && (episode % 2 == 1) == cut)
            .collect()
    };
    Demonstrations {
        sample: (0..rows.len() as u64).map(|row| row * 3 + 100).collect(),
        episode: rows.iter().map(|(episode, ..)| episode * 10).collect(),
        step: rows.iter().map(|(_, step, _)| *step as u32).collect(),
        observation: Matrix::new(1, numbers.clone()).unwrap(),
        action: Matrix::new(1, numbers.clone()).unwrap(),
        reward: numbers,
        terminated: ends(false),
        truncated: ends(true),
        about: About {
            environment: "hopper".to_owned(),
            ..About::default()
        },
    }
}

fn parameters(validation: f64, samples: Option<u64>, seed: u64) -> SplitParameters {
    SplitParameters {
        validation,
        samples,
        seed,
    }
}

fn outputs(demos: &Demonstrations, parameters: &SplitParameters) -> (Result<Outputs, Failure>, Vec<String>) {
    let (warnings, cancelled) = (Warnings::default(), AtomicBool::new(false));
    let context = Context::new(&warnings, &cancelled, "unused");
    let inputs = Inputs::new().with_table("demos", demos.clone().into_table().unwrap());
    let outputs = SplitExecution.execute(parameters, &inputs, &context);
    drop(context);
    (outputs, warnings.0.into_inner().unwrap())
}

/// The training and the validation set.
fn split(demos: &Demonstrations, parameters: &SplitParameters) -> (Demonstrations, Demonstrations) {
    let outputs = outputs(demos, parameters).0.unwrap();
    let set = |port| Demonstrations::from_table(outputs.get_table(port).unwrap()).unwrap();
    (set("train"), set("validation"))
}

fn episodes(demos: &Demonstrations) -> BTreeSet<u32> {
    demos.episode.iter().copied().collect()
}

/// Content digests of the two outputs, the same on every platform. One that differs means that results changed: raise
/// the revision of `split`, `random` or `table`.
#[test]
fn outputs_are_the_recorded_ones() {
    let demos = demonstrations(&[20, 3, 50, 7, 1, 30, 12]);
    let outputs = outputs(&demos, &parameters(0.2, Some(60), 9)).0.unwrap();
    let digests = ["train", "validation"].map(|port| outputs.get_table(port).unwrap().content().hex());
    assert_eq!(
        digests,
        [
            "8eb5959a94bde4301082303fea03408d2d95a146593f7e680caef19ae353859d",
            "e4c4681f0b85512638ce9ad2fa101f98c429446df357312d51f8b9d5a017cc0d",
        ]
    );
}

#[test]
fn more_than_there_is_is_refused_with_the_numbers() {
    let demos = demonstrations(&[10; 10]);
    let failure = outputs(&demos, &parameters(0.2, Some(81), 0)).0.unwrap_err();
    assert_eq!(
        failure.to_string(),
        "81 training samples are asked for; of 100 demonstrated, 80 are left after validation"
    );
    assert_eq!(split(&demos, &parameters(0.2, Some(80), 0)).0.rows(), 80);
}

#[test]
fn a_validation_set_that_no_whole_episode_fits_is_empty_and_said_to_be() {
    let demos = demonstrations(&[10, 10]);
    let (result, warnings) = outputs(&demos, &parameters(0.1, None, 0));
    assert_eq!(result.unwrap().get_table("validation").unwrap().rows(), 0);
    assert_eq!(warnings.len(), 1);
    assert_eq!(outputs(&demos, &parameters(0.0, None, 0)).1, [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sets_share_no_episode_and_hold_whole_ones_but_for_one_cut(
        lengths in prop::collection::vec(1..12_usize, 1..20),
        validation in 0.0..=0.9,
        samples: prop::sample::Index,
        seed: u64,
    ) {
        let demos = demonstrations(&lengths);
        let (all, held) = split(&demos, &parameters(validation, None, seed));
        prop_assert_eq!(all.rows() + held.rows(), demos.rows());
        prop_assert!(episodes(&all).is_disjoint(&episodes(&held)));
        // No episode could be added or removed and bring the count nearer, but one is always left for training.
        let longest = *lengths.iter().max().unwrap() as f64;
        let distance = (held.rows() as f64 - validation * demos.rows() as f64).abs();
        prop_assert!(distance <= longest / 2.0 || episodes(&all).len() == 1);
        prop_assert!(all.rows() > 0);
        let count = samples.index(all.rows()) + 1;
        let (train, again) = split(&demos, &parameters(validation, Some(count as u64), seed));
        prop_assert_eq!(&again, &held);
        prop_assert_eq!(train.rows(), count);
        prop_assert!(train.sample.is_sorted() && held.sample.is_sorted());
        let mut cut = 0;
        for row in 0..count {
            let source = demos.sample.iter().position(|sample| *sample == train.sample[row]).unwrap();
            prop_assert_eq!(train.step[row] as usize, (0..row).filter(|other| train.episode[*other] == train.episode[row]).count());
            prop_assert_eq!(train.action.row(row), demos.action.row(source));
            prop_assert_eq!(train.terminated[row], demos.terminated[source]);
            let last = train.episode.get(row + 1) != Some(&train.episode[row]);
            if train.truncated[row] != demos.truncated[source] {
                prop_assert!(last && train.truncated[row]);
                cut += 1;
            }
            if last {
                prop_assert!(train.terminated[row] != train.truncated[row], "an episode ends in one way");
            }
        }
        prop_assert!(cut <= 1);
    }

    #[test]
    fn training_sets_are_nested_in_their_size(
        lengths in prop::collection::vec(1..12_usize, 1..20),
        few: prop::sample::Index,
        many: prop::sample::Index,
        seed: u64,
    ) {
        let demos = demonstrations(&lengths);
        let (few, many) = (few.index(demos.rows()) + 1, many.index(demos.rows()) + 1);
        let set = |count: usize| -> BTreeSet<u64> {
            split(&demos, &parameters(0.0, Some(count as u64), seed)).0.sample.into_iter().collect()
        };
        prop_assert!(set(few.min(many)).is_subset(&set(few.max(many))));
    }

    #[test]
    fn a_larger_validation_share_adds_episodes(
        lengths in prop::collection::vec(1..12_usize, 1..20),
        small in 0.0..=0.9,
        large in 0.0..=0.9,
        seed: u64,
    ) {
        let demos = demonstrations(&lengths);
        let held = |share| episodes(&split(&demos, &parameters(share, None, seed)).1);
        prop_assert!(held(f64::min(small, large)).is_subset(&held(f64::max(small, large))));
    }
}

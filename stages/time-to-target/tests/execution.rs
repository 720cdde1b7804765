//! `time-to-target` from outside: tables in, tables out.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use provenir_api::Kind;
use provenir_api::port::Content;
use provenir_api::protocol::{Failed, Level, Progress};
use provenir_execution::{Context, Execution, Failure, Inputs, Outputs, Reporter};
use provenir_kinds::time_to_target::{TimeToTarget, TimeToTargetParameters};
use provenir_table::{Table, TableBuilder};
use provenir_time_to_target::TimeToTargetExecution;

struct Silent;

impl Reporter for Silent {
    fn progress(&self, _: Progress) {}
    fn log(&self, _: Level, _: &str) {}
}

/// Rows of checkpoint, trial, return and share.
type Trials<'a> = &'a [(u32, u32, f64, Option<f64>)];

fn trials(rows: Trials<'_>) -> Table {
    TableBuilder::new()
        .u32("checkpoint", rows.iter().map(|row| row.0).collect())
        .u32("trial", rows.iter().map(|row| row.1).collect())
        .f64("return", rows.iter().map(|row| row.2).collect())
        .optional_f64("share", rows.iter().map(|row| row.3).collect())
        .build()
        .unwrap()
}

fn timing(rows: &[(u32, f64)]) -> Table {
    TableBuilder::new()
        .u32("epoch", rows.iter().map(|row| row.0).collect())
        .f64("seconds", rows.iter().map(|row| row.1).collect())
        .unit("s")
        .build()
        .unwrap()
}

fn run(share: f64, rows: Trials<'_>, seconds: &[(u32, f64)]) -> Result<Outputs, Failure> {
    let cancelled = AtomicBool::new(false);
    let context = Context::new(&Silent, &cancelled, "unused");
    let inputs = Inputs::new()
        .with_table("trials", trials(rows))
        .with_table("timing", timing(seconds));
    TimeToTargetExecution.execute(&TimeToTargetParameters { share }, &inputs, &context)
}

fn refused(rows: Trials<'_>, seconds: &[(u32, f64)]) -> (String, String) {
    let failed = Failed::from(run(0.95, rows, seconds).unwrap_err());
    (failed.message, failed.help.unwrap_or_default())
}

fn numbers(outputs: &Outputs, port: &str, column: &str) -> Vec<Option<f64>> {
    outputs.get_table(port).unwrap().column_numbers(column).unwrap()
}

/// Two trials of four checkpoints: mean shares 0.5, 1, 0.9 and 1.
const ROWS: Trials<'_> = &[
    (6, 0, 110.0, Some(1.125)),
    (2, 0, 25.0, Some(0.25)),
    (2, 1, 75.0, Some(0.75)),
    (4, 1, 90.0, Some(0.875)),
    (4, 0, 110.0, Some(1.125)),
    (6, 1, 70.0, Some(0.675)),
    (8, 0, 100.0, Some(1.0)),
    (8, 1, 100.0, Some(1.0)),
];

const SECONDS: &[(u32, f64)] = &[
    (1, 0.5),
    (2, 1.0),
    (3, 1.75),
    (4, 2.5),
    (5, 3.0),
    (6, 4.0),
    (7, 4.5),
    (8, 6.0),
];

#[test]
fn the_first_checkpoint_at_the_target_counts_and_nothing_between() {
    for share in [0.5001, 0.95, 1.0] {
        let outputs = run(share, ROWS, SECONDS).unwrap();
        assert_eq!(numbers(&outputs, "time", "epochs"), [Some(4.0)], "{share}");
    }
    let outputs = run(0.95, ROWS, SECONDS).unwrap();
    for declared in TimeToTarget::outputs() {
        let schema = outputs.get_table(declared.name).unwrap().schema();
        assert_eq!(Content::Table(schema), declared.content);
    }
    let time = |column: &str| numbers(&outputs, "time", column);
    assert_eq!(
        outputs.get_table("time").unwrap().column_bool("reached").unwrap(),
        [true]
    );
    assert_eq!(
        (time("epochs"), time("seconds")),
        (vec![Some(4.0)], vec![Some(2.5)])
    );
    assert_eq!(
        (time("target"), time("best_share")),
        (vec![Some(0.95)], vec![Some(1.0)])
    );
    assert_eq!(
        (time("trained_epochs"), time("trained_seconds")),
        (vec![Some(8.0)], vec![Some(6.0)])
    );
}

#[test]
fn a_target_that_no_checkpoint_reaches_has_no_time() {
    let outputs = run(1.001, ROWS, SECONDS).unwrap();
    assert_eq!(
        outputs.get_table("time").unwrap().column_bool("reached").unwrap(),
        [false]
    );
    for column in ["epochs", "seconds"] {
        assert_eq!(numbers(&outputs, "time", column), [None], "{column}");
    }
    assert_eq!(numbers(&outputs, "time", "best_share"), [Some(1.0)]);
    assert_eq!(numbers(&outputs, "time", "trained_seconds"), [Some(6.0)]);
}

#[test]
fn the_curve_has_every_trial_with_its_seconds_in_order() {
    let outputs = run(0.95, ROWS, SECONDS).unwrap();
    let curve = |column: &str| -> Vec<f64> {
        numbers(&outputs, "curve", column)
            .into_iter()
            .map(Option::unwrap)
            .collect()
    };
    assert_eq!(curve("epoch"), [2.0, 2.0, 4.0, 4.0, 6.0, 6.0, 8.0, 8.0]);
    assert_eq!(curve("seconds"), [1.0, 1.0, 2.5, 2.5, 4.0, 4.0, 6.0, 6.0]);
    assert_eq!(curve("trial"), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
    assert_eq!(
        curve("return"),
        [25.0, 75.0, 110.0, 90.0, 110.0, 70.0, 100.0, 100.0]
    );
    assert_eq!(curve("share"), [0.25, 0.75, 1.125, 0.875, 1.125, 0.675, 1.0, 1.0]);
}

#[test]
fn before_the_first_epoch_no_time_has_passed() {
    let outputs = run(
        0.5,
        &[(0, 0, 9.0, Some(0.9)), (1, 0, 1.0, Some(0.1))],
        &[(1, 3.0)],
    )
    .unwrap();
    assert_eq!(numbers(&outputs, "time", "seconds"), [Some(0.0)]);
    assert_eq!(numbers(&outputs, "time", "epochs"), [Some(0.0)]);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let trial = (2, 0, 1.0, Some(0.5));
    let (message, help) = refused(&[trial], &[(1, 0.5)]);
    assert_eq!(
        message,
        "the policy has a checkpoint after 2 epochs, and the input `timing` says nothing of that epoch"
    );
    assert_eq!(help, "wire `trials` and `timing` from one training");
    for share in [None, Some(f64::NAN)] {
        let (message, help) = refused(&[trial, (2, 1, 1.0, share)], &[(2, 0.5)]);
        assert_eq!(
            message,
            "trial 1 of the checkpoint after 2 epochs has no share of an expert's return"
        );
        assert_eq!(
            help,
            "wire episodes of the expert to `expert` of the `evaluate` stage"
        );
    }
    let said = |rows: Trials<'_>, seconds: &[(u32, f64)]| refused(rows, seconds).0;
    assert_eq!(said(&[], &[(1, 0.5)]), "the input `trials` holds no trial");
    assert_eq!(
        said(&[trial, (1, 0, 1.0, Some(0.5)), trial], &[(1, 0.5), (2, 0.75)]),
        "trial 0 of the checkpoint after 2 epochs is there twice"
    );
    for (seconds, what) in [
        (&[][..], "there is no epoch"),
        (&[(1, 1.0), (1, 1.0)], "epoch 1 is there twice"),
        (&[(1, f64::NAN)], "epoch 1 ends after NaN seconds"),
        (&[(1, -1.0)], "epoch 1 ends after -1 seconds"),
        (
            &[(2, 1.5), (1, 2.0)],
            "epoch 2 ends after 1.5 seconds, an earlier one after 2",
        ),
    ] {
        assert_eq!(
            said(&[trial], seconds),
            format!("the input `timing` is not that of a training: {what}")
        );
    }
}

proptest! {
    /// Against the obvious way: for every epoch in turn, its trials are looked for and averaged.
    #[test]
    fn the_join_is_that_of_a_search(
        mut rows in prop::collection::btree_map((1_u32..12, 0_u32..4), (-50.0_f64..50.0, -1.0_f64..2.0), 1..30)
            .prop_map(|rows| rows.into_iter().collect::<Vec<_>>())
            .prop_shuffle(),
        steps in prop::collection::vec(0.0_f64..3.0, 12),
        share in 0.01_f64..1.5,
    ) {
        let mut seconds = Vec::new();
        for (epoch, step) in steps.iter().enumerate() {
            seconds.push((epoch as u32 + 1, seconds.last().map_or(0.0, |(_, last)| *last) + step));
        }
        let given: Vec<_> = rows
            .iter()
            .map(|((epoch, trial), (earned, share))| (*epoch, *trial, *earned, Some(*share)))
            .collect();
        let outputs = run(share, &given, &seconds).unwrap();
        rows.sort_by_key(|(key, _)| *key);
        let mut expected = None;
        for (epoch, at) in &seconds {
            let here: Vec<f64> = rows.iter().filter(|((of, _), _)| of == epoch).map(|(_, (_, share))| *share).collect();
            let mean = here.iter().sum::<f64>() / here.len() as f64;
            if !here.is_empty() && mean >= share && expected.is_none() {
                expected = Some((*epoch, *at));
            }
        }
        prop_assert_eq!(numbers(&outputs, "time", "epochs"), [expected.map(|(epoch, _)| f64::from(epoch))]);
        prop_assert_eq!(numbers(&outputs, "time", "seconds"), [expected.map(|(_, at)| at)]);
        let curve: Vec<_> = rows
            .iter()
            .map(|((epoch, _), (_, share))| (Some(f64::from(*epoch)), Some(seconds[*epoch as usize - 1].1), Some(*share)))
            .collect();
        let found: Vec<_> = numbers(&outputs, "curve", "epoch")
            .into_iter()
            .zip(numbers(&outputs, "curve", "seconds"))
            .zip(numbers(&outputs, "curve", "share"))
            .map(|((epoch, at), share)| (epoch, at, share))
            .collect();
        prop_assert_eq!(found, curve);
    }
}

//! `corrupt` from outside: tables in, tables out.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod support;

use proptest::prelude::*;
use provenir_kinds::corrupt::{CorruptParameters, Outlier, Placement};
use provenir_table::demonstrations::Demonstrations;
use support::{corrupt, demonstrations, results};

/// Outlier model, share and seed.
fn parameters(outlier: Outlier, fraction: f64, seed: u64) -> CorruptParameters {
    CorruptParameters {
        outlier,
        fraction,
        placement: Placement::Sample,
        constant: 1.0,
        noise: 0.5,
        delay: 5,
        sensors: 0.5,
        seed,
    }
}

include!("reference.in");

/// The constants were recorded by `reference.py`, which shares no code with this project.
#[test]
fn choice_and_outliers_equal_an_independent_implementation() {
    let run = |outlier, fraction| {
        results(&corrupt(demonstrations(1000..1012), &parameters(outlier, fraction, 7)).unwrap())
    };
    for (outlier, expected) in [
        (Outlier::Boundary, BOUNDARY),
        (Outlier::BoundaryOneSign, BOUNDARY_ONE_SIGN),
        (Outlier::Uniform, UNIFORM),
        (Outlier::Gaussian, GAUSSIAN),
    ] {
        let (demos, mask) = run(outlier, 0.25);
        let marked: Vec<usize> = (0..mask.len()).filter(|row| mask[*row]).collect();
        assert!(marked.iter().map(|row| demos.sample[*row]).eq(CHOSEN));
        assert!(
            marked.iter().map(|row| demos.action.row(*row)).eq(expected),
            "{outlier:?}"
        );
    }
    let before = demonstrations(1000..1012);
    let (permuted, _) = run(Outlier::Permuted, 0.25);
    let (blind, _) = run(Outlier::DeadSensors, 0.25);
    for (sample, source) in CHOSEN.into_iter().zip(PERMUTED) {
        let [row, source] = [sample, source].map(|sample| (sample - 1000) as usize);
        assert_eq!(permuted.action.row(row), before.action.row(source));
        for (entry, value) in blind.observation.row(row).iter().enumerate() {
            assert_eq!(*value == 0.0, DEAD.contains(&entry));
        }
    }
    for count in 1..=EPISODES.len() {
        let chosen = &EPISODES[..count];
        // One more sample than the episodes before hold.
        let samples = 1 + before
            .episode
            .iter()
            .filter(|episode| chosen[..count - 1].contains(*episode))
            .count();
        let parameters = CorruptParameters {
            placement: Placement::Episode,
            ..parameters(Outlier::Boundary, samples as f64 / 12.0, 7)
        };
        let (_, mask) = results(&corrupt(before.clone(), &parameters).unwrap());
        assert!(
            mask.iter()
                .zip(&before.episode)
                .all(|(marked, episode)| *marked == chosen.contains(episode))
        );
    }
}

/// Content digests of the three outputs, the same on every platform. One that differs means that results changed: raise
/// the revision of `corrupt`, `random` or `table`.
#[test]
fn outputs_are_the_recorded_ones() {
    let outputs = corrupt(demonstrations(0..500), &parameters(Outlier::Uniform, 0.2, 1)).unwrap();
    let digests = ["demos", "mask", "clean"].map(|port| outputs.get_table(port).unwrap().content().hex());
    assert_eq!(
        digests,
        [
            "bfcaffb7b38303df7d4a17585b8635fd86977e2ccb6483eb3493bcebce3e84fe",
            "58a328f65ad4c60a7c08332d70bebbd385d53944acfa290eb6492947f8938675",
            "335a2a6237bc33b539df452ff6fbc5d4eb7201adf7728eac8187a63978953552",
        ]
    );
}

#[test]
fn a_sample_that_occurs_twice_is_refused() {
    let mut demos = demonstrations(0..10);
    demos.sample[7] = 3;
    let failure = corrupt(demos, &parameters(Outlier::Boundary, 0.1, 0)).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "the demonstrations hold the sample 3 twice; a sample's number is its identity"
    );
}

#[test]
fn nothing_of_no_samples_is_nothing() {
    let outputs = corrupt(demonstrations(0..0), &parameters(Outlier::Boundary, 1.0, 0)).unwrap();
    assert_eq!(results(&outputs).0, demonstrations(0..0));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_actions_of_exactly_the_marked_samples_change(
        boundary: bool,
        fraction in 0.0..=1.0,
        seed: u64,
        start in 0..1_u64 << 60,
        count in 0..60_u64,
    ) {
        let before = demonstrations(start..start + count);
        let outlier = if boundary { Outlier::Boundary } else { Outlier::Uniform };
        let outputs = corrupt(before.clone(), &parameters(outlier, fraction, seed)).unwrap();
        let (after, mask) = results(&outputs);
        let marked = mask.iter().filter(|marked| **marked).count();
        prop_assert!((marked as f64 - fraction * count as f64).abs() <= 0.5);
        for (row, marked) in mask.iter().enumerate() {
            let action = after.action.row(row);
            if !marked {
                prop_assert_eq!(action, before.action.row(row));
            } else if boundary {
                prop_assert!(action.iter().all(|value| [-1.0, 1.0].contains(value)));
            } else {
                prop_assert!(action != before.action.row(row) && action.iter().all(|value| value.abs() <= 1.0));
            }
        }
        let clean = outputs.get_table("clean").unwrap();
        prop_assert_eq!(clean.column_u64("sample").unwrap(), &before.sample[..]);
        prop_assert_eq!(clean.column_fixed_list_f32("clean_action").unwrap(), (2, before.action.values()));
        prop_assert_eq!(Demonstrations { action: before.action.clone(), ..after }, before);
    }

    #[test]
    fn a_larger_share_adds_samples_and_keeps_outliers(seed: u64, small in 0.0..=1.0, large in 0.0..=1.0) {
        let (small, large) = if small < large { (small, large) } else { (large, small) };
        let run = |fraction| {
            results(&corrupt(demonstrations(0..50), &parameters(Outlier::Uniform, fraction, seed)).unwrap())
        };
        let ((few, few_mask), (many, many_mask)) = (run(small), run(large));
        for row in (0..50).filter(|row| few_mask[*row]) {
            prop_assert!(many_mask[row]);
            prop_assert_eq!(few.action.row(row), many.action.row(row));
        }
    }
}

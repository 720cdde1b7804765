//! Every outlier model against what its documentation says.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod support;

use proptest::prelude::*;
use provenir_execution::{Failure, Inputs, Outputs};
use provenir_kinds::corrupt::{CorruptParameters, Outlier, Placement};
use provenir_random::Stream;
use provenir_table::Matrix;
use provenir_table::demonstrations::Demonstrations;
use support::{corrupt, demonstrations, results, run};

const ALL: [Outlier; 12] = [
    Outlier::Boundary,
    Outlier::BoundaryOneSign,
    Outlier::Constant,
    Outlier::RangeBoundary,
    Outlier::Uniform,
    Outlier::Gaussian,
    Outlier::SignFlip,
    Outlier::Permuted,
    Outlier::Delayed,
    Outlier::ObservationNoise,
    Outlier::DeadSensors,
    Outlier::WeakerPolicy,
];

fn parameters(outlier: Outlier, fraction: f64) -> CorruptParameters {
    CorruptParameters {
        outlier,
        fraction,
        placement: if outlier == Outlier::WeakerPolicy {
            Placement::Episode
        } else {
            Placement::Sample
        },
        constant: -0.25,
        noise: 0.5,
        delay: 2,
        sensors: 0.5,
        seed: 11,
    }
}

/// Demonstrations without structure: episodes of five steps, observations of four entries, actions of two.
fn random(count: u64) -> Demonstrations {
    let mut draws = Stream::new(1, "demonstrations");
    let mut matrix = |width: usize, scale: f64| {
        let values = (0..count as usize * width).map(|_| (scale * draws.normal()) as f32);
        Matrix::new(width, values.collect()).unwrap()
    };
    Demonstrations {
        observation: matrix(4, 3.0),
        action: matrix(2, 0.3),
        ..demonstrations(0..count)
    }
}

/// What a weaker policy did in episodes of the given lengths; its numbers are found nowhere else.
fn weaker(lengths: &[usize]) -> Demonstrations {
    let count: usize = lengths.iter().sum();
    let numbers = || (0..count).map(|row| 1000.0 + row as f32);
    let ends: Vec<usize> = lengths
        .iter()
        .scan(0, |end, length| {
            *end += length;
            Some(*end - 1)
        })
        .collect();
    let episodes = lengths.iter().enumerate();
    let whole = demonstrations(0..count as u64);
    Demonstrations {
        episode: episodes
            .flat_map(|(episode, length)| vec![episode as u32; *length])
            .collect(),
        step: lengths.iter().flat_map(|length| 0..*length as u32).collect(),
        observation: Matrix::new(4, numbers().flat_map(|number| [number; 4]).collect()).unwrap(),
        action: Matrix::new(2, numbers().flat_map(|number| [number; 2]).collect()).unwrap(),
        reward: numbers().collect(),
        terminated: (0..count).map(|row| ends.contains(&row)).collect(),
        truncated: vec![false; count],
        ..whole
    }
}

fn spoil(before: &Demonstrations, parameters: &CorruptParameters) -> Outputs {
    if parameters.outlier == Outlier::WeakerPolicy {
        spoil_by(before, &weaker(&[3, 9, 4]), parameters).unwrap()
    } else {
        corrupt(before.clone(), parameters).unwrap()
    }
}

fn spoil_by(
    before: &Demonstrations,
    weaker: &Demonstrations,
    parameters: &CorruptParameters,
) -> Result<Outputs, Failure> {
    let inputs = Inputs::new()
        .with_table("demos", before.clone().into_table()?)
        .with_table("weaker", weaker.clone().into_table()?);
    run(&inputs, parameters)
}

/// The demonstrations before and after, and the rows that are marked.
fn spoilt(outlier: Outlier, count: u64, fraction: f64) -> (Demonstrations, Demonstrations, Vec<usize>) {
    let before = random(count);
    let (after, mask) = results(&spoil(&before, &parameters(outlier, fraction)));
    let marked = (0..mask.len()).filter(|row| mask[*row]).collect();
    (before, after, marked)
}

/// Content digests of demonstrations, mask and clean values, the same on every platform. One that differs means that results
/// changed: raise the revision of `corrupt`, `random` or `table`.
#[test]
fn outputs_are_the_recorded_ones() {
    let found: Vec<String> = ALL
        .into_iter()
        .map(|outlier| {
            let outputs = spoil(&random(200), &parameters(outlier, 0.2));
            let digests = ["demos", "mask", "clean"]
                .map(|port| outputs.get_table(port).unwrap().content().hex()[..16].to_owned());
            format!("{outlier:?} {}", digests.join(" "))
        })
        .collect();
    let recorded: Vec<&str> = include_str!("models.txt").lines().collect();
    assert_eq!(found, recorded, "{found:#?}");
}

#[test]
fn what_was_there_before_is_kept_and_nothing_unmarked_changes() {
    for outlier in ALL {
        let before = random(103);
        let outputs = spoil(&before, &parameters(outlier, 0.3));
        let (after, mask) = results(&outputs);
        for row in (0..103).filter(|row| !mask[*row]) {
            assert_eq!(after.action.row(row), before.action.row(row), "{outlier:?}");
            assert_eq!(
                after.observation.row(row),
                before.observation.row(row),
                "{outlier:?}"
            );
        }
        if outlier != Outlier::WeakerPolicy {
            assert_eq!(mask.iter().filter(|marked| **marked).count(), 31, "{outlier:?}");
        }
        let clean = outputs.get_table("clean").unwrap();
        let rows = clean.column_fixed_list_f32("clean_action").unwrap();
        assert_eq!(rows, (2, before.action.values()), "{outlier:?}");
        assert_eq!(
            clean.has_column("clean_observation"),
            outlier.changes_observations(),
            "{outlier:?}"
        );
        if outlier.changes_observations() {
            let rows = clean.column_fixed_list_f32("clean_observation").unwrap();
            assert_eq!(rows, (4, before.observation.values()), "{outlier:?}");
        } else {
            assert_eq!(after.observation, before.observation, "{outlier:?}");
        }
        assert_eq!(
            (&after.sample, &after.episode, &after.step, &after.about),
            (&before.sample, &before.episode, &before.step, &before.about)
        );
    }
}

#[test]
fn models_that_draw_nothing_are_their_formula() {
    let (before, after, marked) = spoilt(Outlier::SignFlip, 100, 0.5);
    for row in &marked {
        let flipped = before.action.row(*row).iter().map(|value| -value);
        assert!(flipped.eq(after.action.row(*row).iter().copied()));
    }
    let (_, after, marked) = spoilt(Outlier::Constant, 100, 0.5);
    assert!(marked.iter().all(|row| after.action.row(*row) == [-0.25, -0.25]));
    let (before, after, marked) = spoilt(Outlier::Delayed, 98, 0.7);
    for row in &marked {
        // Five steps an episode, two late.
        let first = row - row % 5;
        let source = row.saturating_sub(2).max(first);
        assert_eq!(after.action.row(*row), before.action.row(source));
    }
    assert!(marked.iter().any(|row| row % 5 == 1) && marked.iter().any(|row| row % 5 == 4));
}

#[test]
fn boundaries_are_fair_and_of_one_sign_or_of_the_range() {
    let (_, after, marked) = spoilt(Outlier::BoundaryOneSign, 20_000, 0.5);
    let positive = marked
        .iter()
        .filter(|row| after.action.row(**row)[0] > 0.0)
        .count();
    // 10,000 fair draws have a standard deviation of 50.
    assert!(positive.abs_diff(5000) < 300, "{positive}");
    assert!(
        marked
            .iter()
            .all(|row| matches!(after.action.row(*row), [a, b] if a.to_bits() == b.to_bits() && a.abs().to_bits() == 1.0_f32.to_bits()))
    );

    let (before, after, marked) = spoilt(Outlier::RangeBoundary, 20_000, 0.5);
    let mut corners = [0_u32; 4];
    for dimension in 0..2 {
        let column = || before.action.iter().map(|row| row[dimension]);
        let (least, largest) = (
            column().fold(f32::INFINITY, f32::min),
            column().fold(f32::NEG_INFINITY, f32::max),
        );
        for row in &marked {
            assert!([least, largest].contains(&after.action.row(*row)[dimension]));
        }
    }
    for row in &marked {
        let side = |dimension: usize| usize::from(after.action.row(*row)[dimension] > 0.0);
        corners[side(0) + 2 * side(1)] += 1;
    }
    // Each of four is expected 2500 times, with a standard deviation of 43.
    assert!(
        corners.iter().all(|count| count.abs_diff(2500) < 260),
        "{corners:?}"
    );
}

/// Mean and variance of numbers, and how far they may be from those of so many standard normal ones: six standard errors.
fn assert_standard_normal(numbers: &[f64]) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let square = numbers.iter().map(|number| number * number).sum::<f64>() / count;
    assert!(mean.abs() < 6.0 / count.sqrt(), "{mean}");
    assert!((square - 1.0).abs() < 6.0 * (2.0 / count).sqrt(), "{square}");
}

#[test]
fn noise_is_normal_in_the_units_that_are_said() {
    let (before, after, marked) = spoilt(Outlier::Gaussian, 20_000, 0.5);
    for dimension in 0..2 {
        let value = |demos: &Demonstrations, row: usize| f64::from(demos.action.row(row)[dimension]);
        let noise = marked
            .iter()
            .map(|row| (value(&after, *row) - value(&before, *row)) / 0.5);
        assert_standard_normal(&noise.collect::<Vec<_>>());
    }
    let (before, after, marked) = spoilt(Outlier::ObservationNoise, 20_000, 0.5);
    for entry in 0..4 {
        let value = |demos: &Demonstrations, row: usize| f64::from(demos.observation.row(row)[entry]);
        let count = before.rows() as f64;
        let mean = (0..before.rows()).map(|row| value(&before, row)).sum::<f64>() / count;
        let variance = (0..before.rows())
            .map(|row| (value(&before, row) - mean) * (value(&before, row) - mean))
            .sum::<f64>()
            / count;
        let noise = marked
            .iter()
            .map(|row| (value(&after, *row) - value(&before, *row)) / (0.5 * variance.sqrt()));
        assert_standard_normal(&noise.collect::<Vec<_>>());
    }
    assert_eq!(after.action, before.action);
}

#[test]
fn dead_sensors_are_the_same_for_all_and_time_goes_on() {
    for time_feature in [false, true] {
        let mut before = random(200);
        before.about.time_feature = time_feature;
        // Half of the three or four entries that are measured.
        for (sensors, dead) in [(0.5, 2), (1.0, if time_feature { 3 } else { 4 }), (1e-9, 1)] {
            let parameters = CorruptParameters {
                sensors,
                ..parameters(Outlier::DeadSensors, 0.5)
            };
            let (after, mask) = results(&spoil(&before, &parameters));
            let marked: Vec<usize> = (0..200).filter(|row| mask[*row]).collect();
            let killed: Vec<usize> = (0..4)
                .filter(|entry| {
                    marked
                        .iter()
                        .all(|row| after.observation.row(*row)[*entry] == 0.0)
                })
                .collect();
            assert_eq!(killed.len(), dead);
            assert!(!time_feature || !killed.contains(&3));
            for row in marked {
                for entry in (0..4).filter(|entry| !killed.contains(entry)) {
                    let values = [&after, &before].map(|demos| demos.observation.row(row)[entry].to_bits());
                    assert_eq!(values[0], values[1]);
                }
            }
        }
        let noisy = results(&spoil(&before, &parameters(Outlier::ObservationNoise, 1.0))).0;
        let last = |demos: &Demonstrations, row: usize| demos.observation.row(row)[3].to_bits();
        let moved = (0..200).any(|row| last(&noisy, row) != last(&before, row));
        assert_eq!(moved, !time_feature);
    }
}

#[test]
fn sensors_that_vary_die_before_those_that_do_not() {
    for seed in 0..10 {
        let mut before = random(200);
        for row in 0..200 {
            before.observation.row_mut(row)[1] = 0.5;
            before.observation.row_mut(row)[2] = -2.0;
        }
        for sensors in [0.5, 0.75] {
            let parameters = CorruptParameters {
                sensors,
                seed,
                ..parameters(Outlier::DeadSensors, 1.0)
            };
            let (after, _) = results(&spoil(&before, &parameters));
            let dead = |entry: &usize| (0..200).all(|row| after.observation.row(row)[*entry] == 0.0);
            let killed: Vec<usize> = (0..4).filter(dead).collect();
            assert_eq!(killed.len(), (4.0 * sensors) as usize);
            assert!(killed.contains(&0) && killed.contains(&3), "{killed:?}");
        }
    }
}

/// Rows of actions, sorted.
fn sorted(demos: &Demonstrations, rows: &[usize]) -> Vec<Vec<u32>> {
    let mut found: Vec<Vec<u32>> = rows
        .iter()
        .map(|row| {
            demos
                .action
                .row(*row)
                .iter()
                .map(|value| value.to_bits())
                .collect()
        })
        .collect();
    found.sort();
    found
}

#[test]
fn permuted_actions_are_the_same_actions_elsewhere() {
    let (before, after, marked) = spoilt(Outlier::Permuted, 400, 0.25);
    assert_eq!(sorted(&after, &marked), sorted(&before, &marked));
    assert!(
        marked
            .iter()
            .all(|row| after.action.row(*row) != before.action.row(*row))
    );
    // One cycle: following the actions from any sample leads through all of them.
    let source = |row: usize| {
        let action = after.action.row(row);
        let found = marked.iter().find(|other| before.action.row(**other) == action);
        *found.unwrap()
    };
    let mut row = marked[0];
    for _ in 1..marked.len() {
        row = source(row);
        assert_ne!(row, marked[0]);
    }
    assert_eq!(source(row), marked[0]);
    // A larger share moves one of those actions.
    let (_, more, _) = spoilt(Outlier::Permuted, 400, 0.5);
    let moved = marked
        .iter()
        .filter(|row| more.action.row(**row) != after.action.row(**row));
    assert_eq!(moved.count(), 1);
    let (before, after, marked) = spoilt(Outlier::Permuted, 4, 0.25);
    assert_eq!((after, marked.len()), (before, 1));
}

#[test]
fn weaker_episodes_follow_one_another_and_the_last_is_cut() {
    let before = random(20);
    let source = weaker(&[3, 9, 4]);
    let after = |fraction| {
        let parameters = parameters(Outlier::WeakerPolicy, fraction);
        results(&spoil_by(&before, &source, &parameters).unwrap())
    };
    let (whole, mask) = after(1.0);
    assert!(mask.iter().all(|marked| *marked));
    for episode in 0..4_usize {
        let rows: Vec<usize> = (5 * episode..5 * episode + 5).collect();
        // The weaker policy's rows by the number that they hold.
        let from: Vec<usize> = rows
            .iter()
            .map(|row| whole.reward[*row] as usize - 1000)
            .collect();
        let ends = [2, 11, 15];
        let mut seen = Vec::new();
        for (position, from) in from.iter().enumerate() {
            let row = rows[position];
            assert_eq!(whole.action.row(row), source.action.row(*from));
            assert_eq!(whole.observation.row(row), source.observation.row(*from));
            assert_eq!(whole.terminated[row], ends.contains(from));
            assert_eq!(whole.truncated[row], position == 4 && !ends.contains(from));
            let begins = position == 0 || whole.terminated[row - 1];
            assert_eq!(begins, [0, 3, 12].contains(from), "{from}");
            if begins {
                assert!(!seen.contains(from));
                seen.push(*from);
            } else {
                assert_eq!(whole.reward[row - 1] as usize - 1000, from - 1);
            }
        }
    }
    let (some, mask) = after(0.3);
    assert_eq!(mask.iter().filter(|marked| **marked).count(), 10);
    for row in (0..20).filter(|row| mask[*row]) {
        assert_eq!(some.action.row(row), whole.action.row(row));
    }
    // One short episode fills as much as there is.
    let again = spoil_by(&before, &weaker(&[2]), &parameters(Outlier::WeakerPolicy, 0.1)).unwrap();
    let (again, mask) = results(&again);
    let first = (0..20).find(|row| mask[*row]).unwrap();
    assert_eq!(
        again.reward[first..first + 5],
        [1000.0, 1001.0, 1000.0, 1001.0, 1000.0]
    );
    assert_eq!(
        again.truncated[first..first + 5],
        [false, false, false, false, true]
    );
}

#[test]
fn demonstrations_of_another_kind_are_no_weaker_ones() {
    let refused = |change: fn(&mut Demonstrations)| {
        let mut source = weaker(&[3]);
        change(&mut source);
        let parameters = parameters(Outlier::WeakerPolicy, 0.5);
        spoil_by(&random(10), &source, &parameters)
            .unwrap_err()
            .to_string()
    };
    for (found, expected) in [
        (
            refused(|source| source.about.environment = "ant".to_owned()),
            "are of the environment `ant`, not `hopper`",
        ),
        (
            refused(|source| source.about.time_feature = true),
            "are with the time feature, those to corrupt without it",
        ),
        (
            refused(|source| source.observation = Matrix::new(1, vec![0.0; 3]).unwrap()),
            "have observations of 1 entries, those to corrupt of 4",
        ),
        (
            refused(|source| source.action = Matrix::new(1, vec![0.0; 3]).unwrap()),
            "have actions of 1 entries, those to corrupt of 2",
        ),
        (refused(|source| *source = source.select(&[])), "are empty"),
    ] {
        assert_eq!(
            found,
            format!("the demonstrations of the weaker policy {expected}")
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_larger_share_keeps_outliers_and_the_order_of_rows_does_not_matter(
        outlier in prop::sample::select(ALL.to_vec()),
        placement in prop::sample::select(vec![Placement::Sample, Placement::Episode, Placement::Rare]),
        seed: u64,
        small in 0.0..=1.0,
        large in 0.0..=1.0,
        shift in 0..60_usize,
    ) {
        let (small, large) = if small < large { (small, large) } else { (large, small) };
        let before = random(60);
        let run = |demos: &Demonstrations, fraction| {
            let placement = if outlier == Outlier::WeakerPolicy { Placement::Episode } else { placement };
            results(&spoil(demos, &CorruptParameters { placement, seed, ..parameters(outlier, fraction) }))
        };
        let ((few, few_mask), (many, many_mask)) = (run(&before, small), run(&before, large));
        for row in (0..60).filter(|row| few_mask[*row]) {
            prop_assert!(many_mask[row]);
            if outlier != Outlier::Permuted {
                prop_assert_eq!(few.action.row(row), many.action.row(row));
                prop_assert_eq!(few.observation.row(row), many.observation.row(row));
            }
        }
        let mut order: Vec<usize> = (0..60).collect();
        order.rotate_left(shift);
        let (rotated, mask) = run(&before.select(&order), small);
        prop_assert_eq!(rotated, few.select(&order));
        prop_assert_eq!(mask, order.iter().map(|row| few_mask[*row]).collect::<Vec<_>>());
    }
}

//! The tasks against trajectories recorded from PyBullet 3.2.7 by `scripts/record_pybullet.py`.

mod support;

use provenir_sim::{Environment, NAMES, Task};
use support::Row;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

/// Each with the number of its steps, in four episodes. A change of anything that matters shows within fifty.
const FIXTURES: [(&str, usize); NAMES.len()] = [
    ("hopper", 800),
    ("walker2d", 200),
    ("half-cheetah", 200),
    ("ant", 200),
];

/// Every fixture, with a name and an environment to make.
fn for_each(check: impl Fn(&str, Vec<Row>, &dyn Fn() -> Environment)) {
    for (name, steps) in FIXTURES {
        let task = Task::named(name).expect("the fixture is of a built-in task");
        let rows = support::read(&format!("{FOLDER}/{name}.csv")).expect("the fixture reads");
        assert_eq!(rows.len(), steps + 4, "{name}: rows, of which four are resets");
        check(name, rows, &|| Environment::new(task, false));
    }
}

#[test]
fn ten_steps_agree_with_pybullet_on_every_processor() {
    for_each(|name, rows, make| {
        let found = support::replay(&rows, 10, false, make).unwrap();
        assert!(
            found.worst_joint < 1e-9 && found.worst_reward < 1e-9,
            "{name}: {found:?}"
        );
        // Single precision, of values up to 5.
        assert!(
            found.worst_observation < 5e-7 && found.ends == 0,
            "{name}: {found:?}"
        );
    });
}

#[test]
fn every_step_is_pybullet_s_to_the_bit_in_a_used_world_and_in_new_ones() {
    if !has_fma() {
        println!("SKIPPED: this processor has no FMA, with which the fixtures were recorded");
        return;
    }
    for_each(|name, rows, make| {
        for fresh in [false, true] {
            let found = support::replay(&rows, u32::MAX, fresh, make).unwrap();
            assert_eq!(found.steps + 4, rows.len());
            assert!(found.is_exact(), "{name}, fresh worlds {fresh}: {found:?}");
        }
    });
}

/// The C library's sine and cosine take another path without it, with other last bits.
#[cfg(target_arch = "x86_64")]
fn has_fma() -> bool {
    std::is_x86_feature_detected!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_fma() -> bool {
    false
}

#[test]
fn the_comparison_notices_a_changed_bit() {
    for_each(|name, mut rows, make| {
        let angle = &mut rows[0].joints[3].1;
        *angle = f64::from_bits(angle.to_bits() + 1);
        let found = support::replay(&rows, 200, false, make).unwrap();
        assert!(!found.is_exact() && found.worst_joint > 0.0, "{name}: {found:?}");
    });
}

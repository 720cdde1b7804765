//! A clock that jumps: every run is recorded, none hides another's results, and nothing is lost or computed twice.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::context::{CHAIN, Context, Outcome, finish};

/// The library that stands before the C library's clock.
fn library() -> &'static PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("clock.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/engine/clock.c");
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(source)
            .status();
        assert!(
            status.unwrap().success(),
            "the linker that Rust needs is a C compiler"
        );
        library
    })
}

/// A command at a time of day.
fn at(context: &Context, seconds: i64, arguments: &[&str]) -> Outcome {
    let mut command = context.command(arguments);
    command
        .env("LD_PRELOAD", library())
        .env("PROVENIR_TEST_TIME", seconds.to_string());
    finish(&mut command)
}

const YEAR_2020: i64 = 1_577_836_800;
const YEAR_2040: i64 = 2_208_988_800;
const YEAR_9999: i64 = 253_370_764_800;
/// Beyond what a timestamp holds.
const YEAR_30000: i64 = 884_541_340_800;

fn value(number: usize) -> String {
    format!("stages.second.params.value={number}")
}

#[test]
fn every_run_is_recorded_whatever_the_clock_says() {
    let context = Context::new(CHAIN);
    let times = [
        YEAR_2040, YEAR_2020, YEAR_9999, YEAR_2020, YEAR_30000, 0, YEAR_2040,
    ];
    for (number, time) in times.into_iter().enumerate() {
        let outcome = at(&context, time, &["run", "--json", "--set", &value(number)]).assert_code(0);
        let ran = outcome.cells("cell-finished").len();
        // Only what depends on the value.
        assert_eq!(ran, if number == 0 { 7 } else { 4 }, "{time}");
        assert!(context.runs().len() > number, "{time}");
        // What was computed is found again, at whatever time.
        for again in [time, YEAR_2020, YEAR_9999] {
            let outcome = at(&context, again, &["run", "--json", "--set", &value(number)]).assert_code(0);
            assert_eq!(outcome.cells("cell-finished"), [""; 0], "{time} {again}");
        }
    }
    for time in [YEAR_2020, YEAR_9999, YEAR_30000] {
        for command in [
            &["runs"][..],
            &["status"],
            &["why", "total"],
            &["lineage", "total"],
            &["verify"],
            &["plan"],
            &["gc"],
        ] {
            let outcome = at(&context, time, command).assert_code(0);
            assert!(
                !outcome.stderr.contains("warning"),
                "{time} {command:?}: {outcome:#?}"
            );
        }
    }
    context.check_store();
}

#[test]
fn a_collection_under_a_clock_that_jumped_keeps_what_runs_need() {
    let context = Context::new(CHAIN);
    at(&context, YEAR_9999, &["run"]).assert_code(0);
    at(&context, YEAR_2020, &["run", "--set", &value(2)]).assert_code(0);
    let before = context.results();
    for time in [YEAR_2020, YEAR_2040, YEAR_9999, YEAR_30000, 0] {
        at(&context, time, &["gc", "--yes"]).assert_code(0);
        assert_eq!(context.results(), before, "{time}");
    }
    context.check_store();
    // Both are still there.
    assert_eq!(context.executed(&[]), [""; 0]);
    assert_eq!(context.executed(&["--set", &value(2)]), [""; 0]);
}

/// A source that was written while the clock stood in the future is read each time, and never taken for an older one.
#[test]
fn a_source_from_the_future_is_not_remembered_wrongly() {
    let context = Context::new(
        "format = 1\npipeline.name = \"p\"\nstages.s = { kind = \"noop\", params = { file = \"data.txt\" } }\n",
    );
    let sum = |context: &Context| {
        let shown = context.run(&["show", "s", "--json"]).assert_code(0).stdout;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        shown["content"].clone()
    };
    let mut seen = Vec::new();
    for (text, time) in [
        ("1", YEAR_2040),
        ("22", YEAR_2020),
        ("333", YEAR_9999),
        ("4444", YEAR_2020),
    ] {
        context.write("data.txt", text);
        at(&context, time, &["run"]).assert_code(0);
        let content = sum(&context);
        assert!(!seen.contains(&content), "{text}");
        seen.push(content);
    }
}

/// Runs are in the order in which they were, also when a clock that stood in the future is set right.
#[test]
fn the_last_run_is_the_last_one_whatever_the_clock_says() {
    let context = Context::new(CHAIN);
    let last = || {
        let told = context.run(&["runs", "--json"]).assert_code(0).stdout;
        let runs: Value = serde_json::from_str(&told).unwrap();
        runs[0]["command"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (number, time) in [YEAR_2040, YEAR_2020, YEAR_2040 - 1, 0].into_iter().enumerate() {
        at(&context, time, &["run", "--set", &value(number + 1)]).assert_code(0);
        assert_eq!(last(), value(number + 1));
        let why = context
            .run(&["why", "total", "--set", &value(7)])
            .assert_code(0)
            .stdout;
        assert!(why.contains(&format!("value {}.0 → 7.0", number + 1)), "{why}");
    }
    // One that repeats an earlier one is the last, too.
    at(&context, YEAR_2020, &["run", "--set", &value(4)]).assert_code(0);
    let told = context.run(&["status"]).assert_code(0).stdout;
    assert!(told.contains("run again with nothing to do"), "{told}");
}

//! Faults at every point at which something is committed, and at random ones. Whatever happens, the store verifies, the next
//! run completes, and its results are those of a run that nothing disturbed.
//!
//! `make soak` has the last of these tests go on for much longer: `PROVENIR_SOAK` is how often a process is killed at least,
//! `PROVENIR_SOAK_SEED` where the random numbers begin.

use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;

use crate::context::{Context, Outcome, files, finish};
use crate::determinism::Draw;
use crate::kernel::{Call, Conditions, Fault, Kernel, What, kernel};

const NOTHING: [&str; 0] = [];

/// Every kind of write there is: objects, results, checkpoints, records, logs, claims, copies, notes of them, the index.
const SMALL: &str = r#"
format = 1
pipeline.name = "small"
axes.a = [1, 2]
stages.first = { kind = "noop", params = { value = "${a}" } }
stages.nap = { kind = "sleep", inputs = { one = "first" }, params = { seconds = 0.01 } }
stages.said = { kind = "chatter", inputs = { one = "nap" }, params = { text = "words" } }
stages.total = { kind = "noop", inputs = { many = "said" }, publish = { sum = "out/total.parquet" } }
"#;

/// Many cells at once, so that they are committed in batches.
const WIDE: &str = r#"
format = 1
pipeline.name = "wide"
axes.a = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
stages.first = { kind = "noop", params = { value = "${a}" } }
stages.total = { kind = "noop", inputs = { many = "first" }, publish = { sum = "out/total.parquet" } }
"#;

/// Places that a path leads to, the special before the general.
const PLACES: [&str; 17] = [
    "/objects-v1",
    "/results-v1",
    "/records.jsonl",
    "/events.jsonl",
    "/run.json",
    "/outcome.json",
    "/logs",
    "/runs-v1",
    "/claims-v1",
    "/published-v1",
    "/partial-v1",
    "/index-v1.sqlite-journal",
    "/index-v1.sqlite",
    "/cache/tmp",
    "/out",
    "/CACHEDIR.TAG",
    "/cache",
];

/// Points of a commit that must be among those that are disturbed.
const COMMIT_POINTS: [(&str, &str); 15] = [
    // A worker has written an output: it is not yet durable, not yet an object; its object has no result yet.
    ("write", "/cache/tmp"),
    ("sync", "/cache/tmp"),
    ("rename", "/objects-v1"),
    ("sync", "/objects-v1"),
    ("rename", "/results-v1"),
    ("sync", "/results-v1"),
    ("write", "/index-v1.sqlite"),
    ("sync", "/index-v1.sqlite"),
    ("remove", "/index-v1.sqlite-journal"),
    ("write", "/out"),
    ("rename", "/out"),
    ("rename", "/published-v1"),
    ("write", "/records.jsonl"),
    ("rename", "/run.json"),
    ("rename", "/outcome.json"),
];

/// A pipeline and what it gives.
struct Undisturbed {
    pipeline: &'static str,
    results: BTreeMap<String, String>,
    published: Vec<u8>,
    calls: Vec<Call>,
}

impl Undisturbed {
    fn new(kernel: Kernel, pipeline: &'static str) -> Self {
        let context = Context::new(pipeline);
        let mut command = context.command(&["run", "--jobs", "2"]);
        let watch = kernel.impose(&context, &mut command, &Conditions::default());
        finish(&mut command).assert_code(0);
        context.check_store();
        Self {
            pipeline,
            results: context.results(),
            published: context.read("out/total.parquet"),
            calls: watch.calls(),
        }
    }

    /// By operation and place, which of the calls of that operation whose path holds that place are there.
    fn points(&self) -> BTreeMap<(String, &'static str), Vec<u64>> {
        let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let mut points: BTreeMap<(String, &'static str), Vec<u64>> = BTreeMap::new();
        for call in &self.calls {
            let mut is_first = true;
            for place in PLACES.iter().filter(|place| call.path.contains(**place)) {
                let number = counts.entry((call.operation.as_str(), place)).or_default();
                *number += 1;
                if is_first {
                    let point = (call.operation.clone(), *place);
                    points.entry(point).or_default().push(*number);
                    is_first = false;
                }
            }
        }
        points
    }
}

/// Prints what was being tried, where that fails.
struct Trying(String);

impl Drop for Trying {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("while trying: {}", self.0);
        }
    }
}

/// How often something went wrong.
#[derive(Debug, Default)]
struct Tally {
    runs: usize,
    kills: usize,
    errors: usize,
    /// Faults that the run was over before.
    missed: usize,
}

/// Runs with a fault, and holds what that leaves behind against what must be.
fn disturb(kernel: Kernel, context: &Context, undisturbed: &Undisturbed, fault: &Fault, tally: &mut Tally) {
    let mut command = context.command(&["run", "--jobs", "2"]);
    let conditions = Conditions {
        fault: Some(fault.clone()),
        ..Conditions::default()
    };
    let watch = kernel.impose(context, &mut command, &conditions);
    let outcome = finish(&mut command);
    let has_failed = watch.has_failed(fault);
    tally.runs += 1;
    match fault.what {
        _ if !has_failed => tally.missed += 1,
        What::Kill => tally.kills += 1,
        What::Once(_) | What::FromThenOn(_) => tally.errors += 1,
    }
    match outcome.code {
        // The command itself was killed.
        None => assert!(has_failed && fault.what == What::Kill, "{outcome:#?}"),
        Some(0) => {
            assert_eq!(context.results(), undisturbed.results, "{outcome:#?}");
            assert_eq!(context.read("out/total.parquet"), undisturbed.published);
            // What hinders nothing, such as that a copy, which is in its place, could not be noted, is a warning all the same.
            if watch.failed(fault).iter().any(|call| !may_be_silent(call)) {
                assert_reason(fault, &outcome);
            }
        }
        Some(code) => {
            assert!(has_failed && matches!(code, 1 | 3), "{outcome:#?}");
            assert_reason(fault, &outcome);
        }
    }
    assert!(!outcome.stderr.contains("panicked"), "{outcome:#?}");
    // What has a final name is whole.
    for path in files(&context.path("cache/objects-v1")) {
        let digest = provenir_api::Digest::of(&fs_err::read(&path).unwrap());
        assert_eq!(digest.hex(), path.file_name().unwrap());
    }
    for (name, result) in context.results() {
        assert_eq!(undisturbed.results.get(&name), Some(&result));
    }
    for path in files(&context.path("out")) {
        let is_final = !path.file_name().unwrap().starts_with('.');
        assert!(!is_final || fs_err::read(&path).unwrap() == undisturbed.published);
    }
}

/// Whether a run may succeed, without a word, although this call failed: what is derived, and what is only cleared away.
fn may_be_silent(call: &Call) -> bool {
    let is_clearing = matches!(call.operation.as_str(), "remove" | "times");
    // SQLite syncs the folder that its journal is in.
    let is_index =
        call.path.contains("/index-v1") || (call.operation == "sync" && call.path.ends_with("/cache"));
    is_clearing || is_index || call.path.contains("/claims-v1")
}

/// An error is told with the system's own words for it.
fn assert_reason(fault: &Fault, outcome: &Outcome) {
    let (What::Once(error) | What::FromThenOn(error)) = fault.what else {
        return;
    };
    let text = std::io::Error::from_raw_os_error(error.raw_os_error()).to_string();
    let words = text.split(" (os error").next().unwrap();
    assert!(
        outcome.stderr.contains(words),
        "`{words}` is not told: {outcome:#?}"
    );
}

/// The store is a store, and the next run makes good what is missing.
fn recovers(context: &Context, undisturbed: &Undisturbed) {
    let verified = context.run(&["verify"]);
    // Where nothing was begun, there is no store.
    if context.path("cache/CACHEDIR.TAG").exists() {
        assert_eq!(verified.code, Some(0), "{verified:#?}");
        for command in [["runs"], ["status"]] {
            let outcome = context.run(&command).assert_code(0);
            assert!(!outcome.stderr.contains("cannot be understood"), "{outcome:#?}");
        }
    }
    context.run(&["run", "--jobs", "2"]).assert_code(0);
    assert_eq!(context.results(), undisturbed.results);
    assert_eq!(context.read("out/total.parquet"), undisturbed.published);
    assert_eq!(context.executed(&[]), NOTHING);
    // A run that executes something clears away what others left.
    assert_eq!(context.executed(&["--force", "total"]), ["total"]);
    context.check_store();
    assert_eq!(
        files(&context.path("out")).len(),
        1,
        "left behind beside the copy"
    );
    let verified = context.run(&["verify"]).assert_code(0);
    assert!(verified.stdout.contains("nothing is wrong"), "{verified:#?}");
}

fn try_one(kernel: Kernel, undisturbed: &Undisturbed, fault: &Fault, tally: &mut Tally) {
    let _trying = Trying(format!("{fault:?}"));
    let context = Context::new(undisturbed.pipeline);
    disturb(kernel, &context, undisturbed, fault, tally);
    recovers(&context, undisturbed);
}

/// The points of a pipeline, and at each of them the first call, or the last.
fn at_every_point(undisturbed: &Undisturbed, mut what: impl FnMut(usize) -> What) -> Vec<Fault> {
    let points = undisturbed.points();
    let fault =
        |(index, ((operation, part), numbers)): (usize, (&(String, &'static str), &Vec<u64>))| Fault {
            operation: operation.clone(),
            part: (*part).to_owned(),
            number: if index % 2 == 0 {
                numbers[0]
            } else {
                numbers[numbers.len() - 1]
            },
            what: what(index),
        };
    points.iter().enumerate().map(fault).collect()
}

#[test]
fn every_commit_point_is_disturbed() {
    let Some(kernel) = kernel() else { return };
    let points = Undisturbed::new(kernel, SMALL).points();
    let found: BTreeSet<(&str, &str)> = points
        .keys()
        .map(|(operation, place)| (operation.as_str(), *place))
        .collect();
    for point in COMMIT_POINTS {
        assert!(found.contains(&point), "{point:?} is not among {found:?}");
    }
    let batched = Undisturbed::new(kernel, WIDE).points();
    let has_batch = batched.keys().any(|(operation, _)| operation == "sync-all");
    assert!(has_batch, "{batched:?}");
}

#[test]
fn a_kill_at_any_commit_point_loses_nothing_that_was_done() {
    let Some(kernel) = kernel() else { return };
    let undisturbed = Undisturbed::new(kernel, SMALL);
    let mut tally = Tally::default();
    for fault in at_every_point(&undisturbed, |_| What::Kill) {
        try_one(kernel, &undisturbed, &fault, &mut tally);
    }
    eprintln!("kills at commit points: {tally:?}");
    assert!(tally.kills > tally.runs / 2, "{tally:?}");
}

#[test]
fn an_error_at_any_commit_point_is_told_and_loses_nothing_that_was_done() {
    let Some(kernel) = kernel() else { return };
    let undisturbed = Undisturbed::new(kernel, SMALL);
    let mut tally = Tally::default();
    let errors = [
        What::FromThenOn(Errno::NOSPC),
        What::Once(Errno::IO),
        What::FromThenOn(Errno::ROFS),
        What::Once(Errno::NOSPC),
        What::FromThenOn(Errno::IO),
    ];
    let mut faults = at_every_point(&undisturbed, |index| errors[index % errors.len()]);
    // A disk that is full for a moment only: what is written after that follows a line that was written in part.
    for part in ["/records.jsonl", "/events.jsonl"] {
        faults.push(Fault {
            operation: "write".to_owned(),
            part: part.to_owned(),
            number: 2,
            what: What::Once(Errno::NOSPC),
        });
    }
    for fault in faults {
        try_one(kernel, &undisturbed, &fault, &mut tally);
    }
    eprintln!("errors at commit points: {tally:?}");
    assert!(tally.errors > tally.runs / 2, "{tally:?}");
}

/// What the soak was asked for on the command line.
#[expect(
    clippy::disallowed_methods,
    reason = "`make soak` says how long it takes and where it begins"
)]
fn asked(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => text.parse().expect("a whole number"),
        _ => otherwise,
    }
}

/// Whether this is `make soak`.
pub(crate) fn is_long() -> bool {
    asked("PROVENIR_SOAK", 0) > 0
}

#[test]
fn random_faults_one_after_the_other_lose_nothing_that_was_done() {
    let Some(kernel) = kernel() else { return };
    let (wanted, seed) = (asked("PROVENIR_SOAK", 10), asked("PROVENIR_SOAK_SEED", 1));
    let pipelines = [SMALL, WIDE].map(|pipeline| Undisturbed::new(kernel, pipeline));
    let mut tally = Tally::default();
    let mut rounds = 0;
    while (tally.kills as u64) < wanted {
        // Each round begins anew, so that one can be repeated alone.
        let mut draw = Draw(seed.wrapping_add(rounds).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        rounds += 1;
        let undisturbed = &pipelines[usize::from(draw.below(4) == 0)];
        let context = Context::new(undisturbed.pipeline);
        for _ in 0..=draw.below(3) {
            let what = match draw.below(10) {
                0 => What::Once(Errno::IO),
                1 => What::FromThenOn(Errno::IO),
                2 => What::Once(Errno::NOSPC),
                3 => What::FromThenOn(Errno::NOSPC),
                4 => What::FromThenOn(Errno::ROFS),
                _ => What::Kill,
            };
            let fault = Fault {
                operation: "*".to_owned(),
                part: "*".to_owned(),
                number: 1 + draw.below(undisturbed.calls.len() as u64),
                what,
            };
            let _trying = Trying(format!("PROVENIR_SOAK_SEED={}, {fault:?}", seed + rounds - 1));
            disturb(kernel, &context, undisturbed, &fault, &mut tally);
        }
        let _trying = Trying(format!("PROVENIR_SOAK_SEED={}", seed + rounds - 1));
        recovers(&context, undisturbed);
        if rounds.is_multiple_of(50) {
            eprintln!("soak: {rounds} rounds, {tally:?}");
        }
    }
    eprintln!("soak: seed {seed}, {rounds} rounds, {tally:?}");
}

/// A power cut loses what was written and not synced, and names of files whose folder was not synced. So each thing has to be
/// durable before what relies on it is given a name.
#[test]
fn nothing_is_relied_on_before_it_is_durable() {
    let Some(kernel) = kernel() else { return };
    for pipeline in [SMALL, WIDE] {
        let undisturbed = Undisturbed::new(kernel, pipeline);
        let mut written: BTreeSet<&str> = BTreeSet::new();
        let mut entries: BTreeSet<&str> = BTreeSet::new();
        let folder = |path: &'static str| path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let calls: &'static [Call] = undisturbed.calls.clone().leak();
        let mut named = 0;
        for call in calls.iter().filter(|call| call.result >= 0) {
            match call.operation.as_str() {
                "write" | "truncate" => {
                    written.insert(&call.path);
                }
                "sync" => {
                    written.remove(call.path.as_str());
                    entries.remove(call.path.as_str());
                }
                "sync-all" => {
                    written.clear();
                    entries.clear();
                }
                "folder" => {
                    entries.insert(folder(&call.path));
                }
                "rename" | "link" => {
                    let from = call.from.as_deref().unwrap();
                    for place in [
                        "/objects-v1/",
                        "/results-v1/",
                        "/out/",
                        "/published-v1/",
                        "/runs-v1/",
                    ] {
                        if call.path.contains(place) {
                            named += 1;
                            assert!(!written.contains(from), "{call:?} is not durable");
                        }
                    }
                    if call.path.contains("/results-v1/") {
                        let open = entries.iter().find(|folder| folder.contains("/objects-v1"));
                        assert_eq!(open, None, "objects may vanish, {call:?} would not");
                    }
                    entries.insert(folder(&call.path));
                }
                _ => {}
            }
        }
        assert!(named > 10, "{calls:?}");
        let open = entries.iter().find(|folder| folder.contains("/results-v1"));
        assert_eq!(open, None, "results that were reported may vanish");
    }
}

/// A collection that is stopped anywhere removes nothing that is wanted.
#[test]
fn a_collection_that_is_killed_removes_nothing_that_is_wanted() {
    let Some(kernel) = kernel() else { return };
    let collect = ["gc", "--yes", "--keep-runs", "1", "--grace", "0"];
    let prepared = || {
        let context = Context::new(SMALL);
        context.executed(&["--set", "stages.first.params.value=7"]);
        context.executed(&[]);
        context
    };
    let context = prepared();
    let mut command = context.command(&collect);
    let watch = kernel.impose(&context, &mut command, &Conditions::default());
    finish(&mut command).assert_code(0);
    let calls = watch.calls().len() as u64;
    let wanted = context.results();
    assert!(calls > 10, "{calls}");
    for number in (1..=calls).step_by(5) {
        let fault = Fault {
            operation: "*".to_owned(),
            part: "*".to_owned(),
            number,
            what: What::Kill,
        };
        let _trying = Trying(format!("{fault:?}"));
        let context = prepared();
        let mut command = context.command(&collect);
        let conditions = Conditions {
            fault: Some(fault),
            ..Conditions::default()
        };
        kernel.impose(&context, &mut command, &conditions);
        finish(&mut command);
        context.run(&["verify"]).assert_code(0);
        assert_eq!(context.executed(&[]), NOTHING);
        context.run(&collect).assert_code(0);
        assert_eq!(context.results(), wanted);
        assert_eq!(context.executed(&[]), NOTHING);
        context.executed(&["--force", "total"]);
        context.check_store();
    }
}

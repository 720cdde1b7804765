use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use rustix::process::Signal;

use crate::context::{COMMAND, Context, Outcome, Running};
use crate::kernel::{Conditions, Kernel, Locks, kernel};
use crate::soak;

const SLOW: &str = r#"
format = 1
pipeline.name = "slow"
axes.a = [1, 2, 3, 4]
stages.nap = { kind = "sleep", params = { seconds = 0.4, value = "${a}" } }
stages.after = { kind = "noop", inputs = { one = "nap" } }
stages.total = { kind = "noop", inputs = { many = "after" } }
"#;

#[test]
fn processes_that_share_a_store_share_the_work() {
    let context = Context::new(SLOW);
    let mut first = context.start(&["--jobs", "2"]);
    first.wait_for("cell-started", "");
    let others: Vec<_> = (0..3).map(|_| context.start(&["--jobs", "2"])).collect();
    let mut executed = Vec::new();
    for running in std::iter::once(first).chain(others) {
        let outcome = running.finish().assert_code(0);
        executed.extend(outcome.cells("cell-finished"));
        let summary = &outcome.event("run-finished")["summary"];
        assert_eq!(
            summary["ran"].as_u64().unwrap() + summary["reused"].as_u64().unwrap(),
            9
        );
    }
    executed.sort();
    let mut once = executed.clone();
    once.dedup();
    assert_eq!(executed, once, "something ran twice");
    assert_eq!(executed.len(), 9);
    context.check_store();
}

#[test]
fn a_dead_owner_holds_nobody_up() {
    let context = Context::new(SLOW);
    let mut first = context.start(&["--jobs", "1"]);
    first.wait_for("cell-started", "nap[a=1]");
    let mut second = context.start(&["--jobs", "1", "--only", "nap", "--axis", "a=1"]);
    second.wait_for("cell-awaited", "nap[a=1]");
    first.signal(Signal::KILL);
    let outcome = second.finish().assert_code(0);
    assert_eq!(outcome.cells("cell-finished"), ["nap[a=1]"]);
    first.finish();
}

/// A manifest that has cells in common with others of its kind, under names of its own.
fn overlapping(first: usize) -> String {
    format!(
        r#"
        format = 1
        pipeline.name = "overlapping-{first}"
        axes.a = [{first}, {}, {}]
        stages.nap-{first} = {{ kind = "sleep", params = {{ seconds = 0.15, value = "${{a}}" }} }}
        stages.after-{first} = {{ kind = "noop", inputs = {{ one = "nap-{first}" }} }}
        stages.total-{first} = {{ kind = "noop", inputs = {{ many = "after-{first}" }}, publish = {{ sum = "out/{first}.parquet" }} }}
        "#,
        first + 1,
        first + 2,
    )
}

/// Processes that begin at the same time in one folder, and whether the first of them is killed in the middle.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    processes: usize,
    /// How many different manifests they work on.
    manifests: usize,
    kills: bool,
}

const CROWDS: [Crowd; 4] = [
    Crowd {
        processes: 2,
        manifests: 1,
        kills: true,
    },
    Crowd {
        processes: 4,
        manifests: 3,
        kills: false,
    },
    Crowd {
        processes: 8,
        manifests: 1,
        kills: true,
    },
    Crowd {
        processes: 8,
        manifests: 3,
        kills: true,
    },
];

/// How often each action was begun.
fn begun(outcome: &Outcome) -> BTreeMap<String, usize> {
    let mut begun = BTreeMap::new();
    for event in outcome.events() {
        if event["event"] == "cell-started" {
            *begun
                .entry(event["key"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
    }
    begun
}

/// No action is executed by two processes unless one of them is dead; nobody fails; what comes out is what one process alone
/// gives.
fn work_together(crowd: Crowd, conditions: Option<(Kernel, &Conditions)>) {
    let manifests: Vec<String> = (0..crowd.manifests)
        .map(|first| format!("{first}.toml"))
        .collect();
    let context = Context::new("");
    let alone = Context::new("");
    for (first, manifest) in manifests.iter().enumerate() {
        context.write(manifest, &overlapping(first));
        alone.write(manifest, &overlapping(first));
        alone.executed(&[manifest]);
    }
    let start = |manifest: &str| {
        let mut command = context.command(&["run", "--json", "--jobs", "2", manifest]);
        if let Some((kernel, conditions)) = conditions {
            kernel.impose(&context, &mut command, conditions);
        }
        Running::start(&mut command)
    };
    let mut first = start(&manifests[0]);
    if crowd.kills {
        first.wait_for("cell-started", "");
    }
    let others: Vec<Running> = (1..crowd.processes)
        .map(|number| start(&manifests[number % crowd.manifests]))
        .collect();
    if crowd.kills {
        first.signal(Signal::KILL);
    }
    // All at once: one whose output nobody reads would stand still.
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let all = std::iter::once(first).chain(others);
        let reading: Vec<_> = all.map(|running| scope.spawn(move || running.finish())).collect();
        reading.into_iter().map(|reader| reader.join().unwrap()).collect()
    });

    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for (number, outcome) in outcomes.iter().enumerate() {
        if number == 0 && crowd.kills {
            continue;
        }
        assert_eq!(outcome.code, Some(0), "{crowd:?} {number}: {outcome:#?}");
        assert_eq!(outcome.stderr, "", "{crowd:?} {number}");
        for (key, count) in begun(outcome) {
            *times.entry(key).or_default() += count;
        }
    }
    let twice: Vec<_> = times.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "{crowd:?}: {twice:?}\n{outcomes:#?}");
    let mut all: BTreeSet<String> = times.into_keys().collect();
    if crowd.kills {
        all.extend(begun(&outcomes[0]).into_keys());
    }
    assert_eq!(context.results(), alone.results(), "{crowd:?}");
    assert_eq!(
        all.len(),
        context.results().len(),
        "{crowd:?}: somebody executed each of them"
    );
    for first in 0..crowd.manifests {
        let copy = format!("out/{first}.parquet");
        assert_eq!(context.read(&copy), alone.read(&copy));
    }
    for manifest in &manifests {
        assert_eq!(context.executed(&[manifest]), [""; 0]);
    }
    context.run(&["verify"]).assert_code(0);
    // What the dead left goes with the next run that executes something.
    context.executed(&[&manifests[0], "--force", "total-0"]);
    context.check_store();
}

#[test]
fn a_crowd_executes_each_action_once() {
    for crowd in CROWDS {
        work_together(crowd, None);
    }
}

/// As on NFS without a lock service: locks fail, and no rename says that it does not replace.
#[test]
fn a_crowd_executes_each_action_once_where_files_cannot_be_locked() {
    let Some(kernel) = kernel() else { return };
    let conditions = Conditions {
        locks: Locks::Refused,
        renames_replace: true,
        ..Conditions::default()
    };
    for crowd in CROWDS {
        work_together(crowd, Some((kernel, &conditions)));
    }
}

/// As on a file system that is mounted with `nolock`: everybody gets every lock.
#[test]
fn a_crowd_executes_each_action_once_where_locks_mean_nothing() {
    let Some(kernel) = kernel() else { return };
    let conditions = Conditions {
        locks: Locks::Pretended,
        ..Conditions::default()
    };
    for crowd in CROWDS {
        work_together(crowd, Some((kernel, &conditions)));
    }
}

/// A run in a process-id namespace and with a host name of its own, as in a container; `None` where there is no way to make
/// one.
fn contained(context: &Context, host: &str, arguments: &[&str]) -> Option<Command> {
    let mut options = vec!["--pid", "--fork", "--kill-child", "--mount-proc", "--uts"];
    if !crate::context::is_root() {
        options.push("--map-root-user");
    }
    let shell = "[ -z \"$1\" ] || hostname \"$1\"; shift; exec \"$@\"";
    let inside = |program: &[&str]| {
        let all = [&options[..], &["sh", "-c", shell, "sh", host], program].concat();
        context.program("unshare", &all)
    };
    let works = inside(&["true"]).output();
    if !works.is_ok_and(|works| works.status.success()) {
        eprintln!("SKIPPED: no way to make a process-id namespace (unshare)");
        return None;
    }
    Some(inside(
        &[&[COMMAND, "run", "--json", "--jobs", "2"], arguments].concat(),
    ))
}

#[test]
fn an_owner_in_another_container_is_waited_for() {
    for host in ["", "elsewhere"] {
        for inside_first in [true, false] {
            let context = Context::new(SLOW);
            let Some(mut inside) = contained(&context, host, &[]) else {
                return;
            };
            let mut outside = context.command(&["run", "--json", "--jobs", "2"]);
            let (first, second) = if inside_first {
                (&mut inside, &mut outside)
            } else {
                (&mut outside, &mut inside)
            };
            let mut first = Running::start(first);
            first.wait_for("cell-started", "");
            let second = Running::start(second).finish().assert_code(0);
            let first = first.finish().assert_code(0);
            let mut executed = first.cells("cell-finished");
            executed.extend(second.cells("cell-finished"));
            executed.sort();
            let count = executed.len();
            executed.dedup();
            assert_eq!((executed.len(), count), (9, 9), "{executed:?}");
            context.check_store();
        }
    }
}

/// Whether it is dead cannot be seen from here, so that a whole lease has to pass: a minute, in `make soak` alone.
#[test]
fn a_dead_owner_in_another_container_holds_nobody_up_for_longer_than_its_lease() {
    if !soak::is_long() {
        return;
    }
    std::thread::scope(|scope| {
        for host in ["", "elsewhere"] {
            scope.spawn(move || {
                let context = Context::new(SLOW);
                let Some(mut inside) = contained(&context, host, &[]) else {
                    return;
                };
                let mut first = Running::start(&mut inside);
                first.wait_for("cell-started", "nap[a=1]");
                first.signal(Signal::KILL);
                first.finish();
                let outcome = context.events(&[]).assert_code(0);
                assert_eq!(outcome.cells("cell-finished").len(), 9);
                assert!(!outcome.cells("cell-awaited").is_empty());
            });
        }
    });
}

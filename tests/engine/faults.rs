use std::os::unix::fs::PermissionsExt;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::context::{
    CHAIN, COMMAND, Context, eventually, files, finish, is_alive, is_root, without_checksum,
};
use crate::kernel::{Conditions, Fault, What, kernel};

const SLOW: &str = r#"
format = 1
pipeline.name = "slow"
axes.a = [1, 2, 3]
stages.quick = { kind = "noop", params = { value = "${a}" } }
stages.nap = { kind = "sleep", inputs = { one = "quick" }, params = { seconds = 0.5 } }
stages.total = { kind = "noop", inputs = { many = "nap" } }
"#;

fn undisturbed(manifest: &str) -> Context {
    let context = Context::new(manifest);
    context.executed(&[]);
    context
}

#[test]
fn a_killed_command_leaves_no_worker_and_a_store_that_goes_on() {
    let context = Context::new(SLOW);
    let mut running = context.start(&["--jobs", "2"]);
    running.wait_for("cell-progress", "nap[a=1]");
    let workers = running.workers();
    assert!(!workers.is_empty() && workers.iter().all(|pid| is_alive(*pid)));
    running.signal(Signal::KILL);
    running.finish();
    eventually("the end of its workers", || {
        !workers.iter().any(|pid| is_alive(*pid))
    });

    let finished = context.events(&[]).assert_code(0);
    assert!(
        finished.cells("cell-reused").contains(&"quick[a=1]".to_owned()),
        "what was finished is kept"
    );
    assert_eq!(context.results(), undisturbed(SLOW).results());
    context.check_store();
}

/// Kills at many moments, so that some fall between the steps of a commit.
#[test]
fn kills_at_any_moment_lose_only_what_was_not_finished() {
    let context = Context::new(CHAIN);
    let undisturbed = undisturbed(CHAIN).results();
    for delay in 0..40 {
        let running = context.start(&["--jobs", "2"]);
        std::thread::sleep(std::time::Duration::from_millis(delay * 2));
        running.signal(Signal::KILL);
        running.finish();
        for path in files(&context.path("cache/objects-v1")) {
            let digest = provenir_api::Digest::of(&fs_err::read(&path).unwrap());
            assert_eq!(digest.hex(), path.file_name().unwrap());
        }
        for (name, result) in context.results() {
            assert_eq!(undisturbed.get(&name), Some(&result));
        }
    }
    context.run(&["run"]).assert_code(0);
    // Nothing that the killed ones left is needed, and a run that executes something clears it away.
    context.executed(&["--force", "total"]);
    assert_eq!(context.results(), undisturbed);
    context.check_store();
}

/// The worker of a killed command ends when it notices that; what it writes until then is in nobody's way.
#[test]
fn folders_that_a_dying_worker_still_writes_to_stop_nobody() {
    let Some(kernel) = kernel() else { return };
    for part in ["/cache/tmp", "/partial-v1"] {
        let context = Context::new(SLOW);
        let mut running = context.start(&["--jobs", "1"]);
        running.wait_for("cell-progress", "nap[a=1]");
        running.signal(Signal::KILL);
        running.finish();
        let mut command = context.command(&["run", "--json"]);
        let fault = Fault {
            operation: "remove".to_owned(),
            part: part.to_owned(),
            number: 1,
            what: What::FromThenOn(Errno::NOTEMPTY),
        };
        let conditions = Conditions {
            fault: Some(fault.clone()),
            ..Conditions::default()
        };
        let watch = kernel.impose(&context, &mut command, &conditions);
        finish(&mut command).assert_code(0);
        assert!(watch.has_failed(&fault));
        assert_eq!(context.results(), undisturbed(SLOW).results());
    }
}

#[test]
fn a_killed_worker_is_a_failed_cell_that_the_next_run_makes_good() {
    let context = Context::new(SLOW);
    let mut running = context.start(&["--jobs", "1"]);
    running.wait_for("cell-progress", "nap[a=2]");
    let worker = i32::try_from(running.workers()[0]).unwrap();
    kill_process(Pid::from_raw(worker).unwrap(), Signal::KILL).unwrap();
    let outcome = running.finish().assert_code(1);
    let failure = &outcome.event("cell-failed")["failure"]["message"];
    assert_eq!(
        failure,
        "its worker was killed (signal 9), perhaps because memory ran out"
    );
    assert_eq!(outcome.cells("cell-failed"), ["nap[a=2]"]);
    assert_eq!(outcome.cells("cell-blocked"), ["total"]);
    assert_eq!(context.executed(&[]), ["nap[a=2]", "total"]);
    assert_eq!(context.results(), undisturbed(SLOW).results());
    context.check_store();
}

#[test]
fn an_interrupt_stops_what_runs_and_keeps_what_is_finished() {
    for signal in [Signal::INT, Signal::TERM] {
        let context = Context::new(SLOW);
        let mut running = context.start(&["--jobs", "1"]);
        running.wait_for("cell-progress", "nap[a=2]");
        running.signal(signal);
        let outcome = running.finish().assert_code(130);
        assert_eq!(outcome.cells("cell-cancelled"), ["nap[a=2]", "nap[a=3]", "total"]);
        assert_eq!(outcome.event("run-finished")["summary"]["interrupted"], true);
        context.check_store();
        let partials = files(&context.path("cache/partial-v1"));
        assert_eq!(partials.len(), 1, "its checkpoint is kept: {partials:?}");
        assert_eq!(context.executed(&[]), ["nap[a=2]", "nap[a=3]", "total"]);
        assert_eq!(files(&context.path("cache/partial-v1")), [""; 0]);
    }
}

#[test]
fn a_second_interrupt_ends_everything_at_once() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "deaf"
        stages.nap = { kind = "sleep", params = { seconds = 600, deaf = true } }
        "#,
    );
    let mut running = context.start(&[]);
    running.wait_for("cell-progress", "nap");
    let workers = running.workers();
    running.signal(Signal::INT);
    running.wait_for("interrupted", "");
    // Later than what is the same request still.
    std::thread::sleep(std::time::Duration::from_millis(700));
    running.signal(Signal::INT);
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(130));
    eventually("the end of its workers", || {
        !workers.iter().any(|pid| is_alive(*pid))
    });
}

/// `timeout` sends a signal to the command and then to its whole group, which is one request.
#[test]
fn two_signals_at_once_are_one_request() {
    let context = Context::new(SLOW);
    let outcome = finish(&mut context.program(
        "timeout",
        &[
            "--signal=TERM",
            "1",
            COMMAND,
            "run",
            "--json",
            "--set",
            "stages.nap.params.seconds=20",
        ],
    ));
    let events = outcome.events();
    assert!(
        events.iter().any(|event| event["event"] == "interrupted"),
        "{outcome:#?}"
    );
    assert_eq!(outcome.event("run-finished")["summary"]["interrupted"], true);
    assert_eq!(files(&context.path("cache/claims-v1")), [""; 0]);
    let told = context.run(&["runs"]).assert_code(0).stdout;
    assert!(told.contains("interrupted"), "{told}");
}

/// A limit on the size of files makes writes fail, and does not end the command without a word.
#[test]
fn a_limit_on_the_size_of_files_is_told() {
    let limited = |context: &Context, blocks: &str| {
        let script = "ulimit -f \"$1\"; shift; exec \"$@\"";
        finish(&mut context.program("/bin/sh", &["-c", script, "sh", blocks, COMMAND, "run"]))
    };
    let context = Context::new(CHAIN);
    let outcome = limited(&context, "1").assert_code(3);
    assert!(outcome.stderr.contains("File too large"), "{outcome:#?}");
    assert!(outcome.stderr.contains("ulimit -f"), "{outcome:#?}");
    // Wherever the limit strikes, the command itself ends in order and says what happened.
    for blocks in ["2", "4", "8"] {
        let outcome = limited(&context, blocks);
        assert!(matches!(outcome.code, Some(0 | 1 | 3)), "{blocks}: {outcome:#?}");
        assert!(
            outcome.code == Some(0) || outcome.stderr.contains("error: "),
            "{blocks}: {outcome:#?}"
        );
    }
    context.run(&["run"]).assert_code(0);
    context.check_store();
}

/// What it executes is under the limit as it would be without Provenir, also where Provenir itself was told to ignore it.
#[test]
fn programs_have_the_default_for_files_that_are_too_large() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "limit"
        [stages.state]
        kind = "command"
        publish = { state = "state.txt" }
        [stages.state.params]
        argv = ["sh", "-c", "grep SigIgn /proc/self/status > $0", "{output.state}"]
        outputs.state.file = "state.txt"
        "#,
    );
    let script = "trap '' 25; exec \"$@\"";
    finish(&mut context.program("/bin/sh", &["-c", script, "sh", COMMAND, "run"])).assert_code(0);
    let state = String::from_utf8(context.read("state.txt")).unwrap();
    let ignored = state.split_whitespace().last().unwrap();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    assert_eq!(ignored & 1 << 24, 0, "{state}");
}

/// Events that cannot be written are told, and the run counts all the same; a reader that has enough is none.
#[test]
fn events_that_cannot_be_written_are_told() {
    let context = Context::new(CHAIN);
    let to = |target: &str| {
        let script = format!("exec \"$@\" {target}");
        finish(&mut context.program("/bin/sh", &["-c", &script, "sh", COMMAND, "run", "--json"]))
    };
    let outcome = to("> /dev/full").assert_code(3);
    assert!(
        outcome
            .stderr
            .contains("error: cannot write to standard output: No space left"),
        "{outcome:#?}"
    );
    context.check_store();
    assert_eq!(context.executed(&[]), [""; 0]);
    let told = context.run(&["runs"]).assert_code(0).stdout;
    assert!(
        told.contains(" done ") && !told.contains("no end recorded"),
        "{told}"
    );
    to("| true").assert_code(0);
}

/// Runs the command as somebody who may not write everywhere.
fn as_nobody(context: &Context, arguments: &[&str]) -> Option<crate::context::Outcome> {
    if !is_root() {
        return Some(context.run(arguments));
    }
    let drop = ["--reuid=65534", "--regid=65534", "--clear-groups", COMMAND];
    let probe = context
        .program("setpriv", &[&drop[..], &["--version"]].concat())
        .output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        return None;
    }
    Some(finish(
        &mut context.program("setpriv", &[&drop[..], arguments].concat()),
    ))
}

#[test]
fn a_store_that_cannot_be_written_to_is_told_and_can_be_read() {
    let context = Context::new(CHAIN);
    context.executed(&["--only", "second"]);
    let everything = |mode: u32| set_mode(&context.folder, mode);
    everything(0o555);
    let noop = as_nobody(&context, &["run", "--only", "second"]);
    let outcome = as_nobody(&context, &["run"]);
    let plan = as_nobody(&context, &["plan"]);
    everything(0o755);
    let (Some(noop), Some(outcome), Some(plan)) = (noop, outcome, plan) else {
        eprintln!("SKIPPED: no way to become somebody who may not write (setpriv)");
        return;
    };
    noop.assert_code(0);
    plan.assert_code(0);
    let outcome = outcome.assert_code(3);
    assert!(outcome.stderr.contains("Permission denied"), "{outcome:#?}");
    assert!(outcome.stderr.contains("make the store writable"), "{outcome:#?}");
    assert_eq!(context.executed(&[]), ["total"]);
    context.check_store();
}

/// What took hours to find out is told, even where it cannot be written down.
#[test]
fn an_audit_of_a_store_that_cannot_be_written_to_tells_what_it_found() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let scratch = context.path("scratch");
    fs_err::create_dir(&scratch).unwrap();
    set_mode(&context.folder, 0o555);
    set_mode(&scratch, 0o777);
    let arguments = ["audit", "--all", "--quiet", "--scratch", "scratch/audit"];
    let outcome = as_nobody(&context, &arguments);
    let without = as_nobody(&context, &arguments[..3]);
    set_mode(&context.folder, 0o755);
    let (Some(outcome), Some(without)) = (outcome, without) else {
        eprintln!("SKIPPED: no way to become somebody who may not write (setpriv)");
        return;
    };
    let told = without.assert_code(3).stderr;
    assert!(
        told.contains("Permission denied")
            && told.contains("help: name a folder elsewhere")
            && told.contains("(--scratch FOLDER)"),
        "{told}"
    );
    let outcome = outcome.assert_code(3);
    assert!(
        outcome.stdout.starts_with("7 of 7 cells reproduced") && outcome.stdout.contains("; not recorded\n"),
        "{outcome:#?}"
    );
    assert!(outcome.stderr.contains("cannot record the audit"), "{outcome:#?}");
}

#[test]
fn a_store_that_may_not_be_read_is_not_said_to_be_missing() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let own = |mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        let permissions = std::fs::Permissions::from_mode(mode);
        fs_err::set_permissions(context.path("cache"), permissions).unwrap();
    };
    own(0o000);
    let outcome = as_nobody(&context, &["verify"]);
    own(0o755);
    let Some(outcome) = outcome else {
        eprintln!("SKIPPED: no way to become somebody who may not read (setpriv)");
        return;
    };
    let told = outcome.assert_code(3).stderr;
    assert!(
        told.contains("Permission denied") && told.contains("make the store readable"),
        "{told}"
    );
}

#[test]
fn a_working_folder_that_is_gone_is_called_that() {
    let context = Context::new(CHAIN);
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"";
    let arguments = ["-c", script, "sh", COMMAND, "run", "../pipeline.toml"];
    let told = finish(&mut context.program("/bin/sh", &arguments)).stderr;
    assert!(
        told.contains("cannot find the working folder") && !told.contains("UTF-8"),
        "{told}"
    );
}

/// Takes the right to write from every folder below one, or gives it back.
fn set_mode(folder: &camino::Utf8Path, mode: u32) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir_utf8().unwrap() {
            let path = entry.unwrap().into_path();
            if path.is_dir() {
                folders.push(path);
            }
        }
        fs_err::set_permissions(&folder, PermissionsExt::from_mode(mode)).unwrap();
    }
}

#[test]
fn a_store_that_can_only_be_read_publishes() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let published = context.read("out/total.parquet");
    fs_err::set_permissions(context.path("out"), PermissionsExt::from_mode(0o777)).unwrap();
    set_mode(&context.path("cache"), 0o555);
    for altered in [false, true] {
        fs_err::remove_file(context.path("out/total.parquet")).unwrap();
        if altered {
            context.write("out/total.parquet", "altered");
        }
        let Some(outcome) = as_nobody(&context, &["run"]) else {
            set_mode(&context.path("cache"), 0o755);
            eprintln!("SKIPPED: no way to become somebody who may not write (setpriv)");
            return;
        };
        let outcome = outcome.assert_code(0);
        assert_eq!(context.read("out/total.parquet"), published);
        let warnings = outcome
            .stderr
            .lines()
            .filter(|line| line.starts_with("warning: the store"));
        assert_eq!(warnings.count(), 1, "{outcome:#?}");
        assert!(
            outcome.stderr.contains("nothing of this run is recorded"),
            "{outcome:#?}"
        );
    }
    set_mode(&context.path("cache"), 0o755);
}

#[test]
fn a_folder_that_cannot_be_published_to_is_not_the_store() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    fs_err::remove_file(context.path("out/total.parquet")).unwrap();
    set_mode(&context.path("cache"), 0o777);
    fs_err::set_permissions(context.path("out"), PermissionsExt::from_mode(0o555)).unwrap();
    for path in files(&context.path("cache")) {
        if !path.as_str().contains("objects-v1") {
            fs_err::set_permissions(path, PermissionsExt::from_mode(0o666)).unwrap();
        }
    }
    let outcome = as_nobody(&context, &["run"]);
    fs_err::set_permissions(context.path("out"), PermissionsExt::from_mode(0o755)).unwrap();
    let Some(outcome) = outcome else {
        eprintln!("SKIPPED: no way to become somebody who may not write (setpriv)");
        return;
    };
    let outcome = outcome.assert_code(3);
    assert_eq!(
        outcome.stderr.matches("cannot publish").count(),
        1,
        "{outcome:#?}"
    );
    assert!(
        outcome.stderr.contains("help: make that folder writable"),
        "{outcome:#?}"
    );
    assert!(!outcome.stderr.contains("store"), "{outcome:#?}");
}

#[test]
fn every_cell_is_counted_once_although_it_runs_again() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let object = context.object("first[a=1]");
    let stamp = fs_err::metadata(&object).unwrap().modified().unwrap();
    let mut bytes = fs_err::read(&object).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    crate::context::overwrite(&object, &bytes);
    std::fs::File::options()
        .write(true)
        .open(&object)
        .unwrap()
        .set_modified(stamp)
        .unwrap();
    // Nothing is remembered of the file, so that only reading it shows the damage.
    for path in files(&context.path("cache")) {
        if path.as_str().contains("index-v1") {
            fs_err::remove_file(path).unwrap();
        }
    }
    let outcome = context.events(&["--force", "second[a=1]"]).assert_code(0);
    assert_eq!(outcome.cells("cell-repairing"), ["first[a=1]"]);
    let summary = &outcome.event("run-finished")["summary"];
    assert_eq!(
        (&summary["ran"], &summary["reused"]),
        (&2.into(), &5.into()),
        "{summary}"
    );
    let records = fs_err::read_to_string(context.runs().last().unwrap().join("records.jsonl")).unwrap();
    let records: Vec<serde_json::Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let executed: Vec<&serde_json::Value> = records
        .iter()
        .filter(|record| record["record"] == "executed")
        .map(|record| &record["cell"])
        .collect();
    assert_eq!(executed, ["first[a=1]", "second[a=1]"]);
    let reused = records.iter().filter(|record| record["record"] == "reused");
    let reused = reused.flat_map(|record| record["cells"].as_array().unwrap());
    let only_reused = reused.filter(|cell| !executed.contains(&&cell[0]));
    assert_eq!(only_reused.count(), 5, "what ran after all was relied on before");
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "full"
        axes.a = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]
        axes.b = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        stages.many = { kind = "noop", params = { value = "${a}" }, over = ["b"] }
        stages.more = { kind = "noop", inputs = { one = "many" }, params = { value = "${b}" } }
        "#,
    );
    let small = context.path("small");
    fs_err::create_dir(&small).unwrap();
    let mounted = context
        .program(
            "mount",
            &["-t", "tmpfs", "-o", "size=640k", "tmpfs", small.as_str()],
        )
        .output();
    if !mounted.is_ok_and(|mounted| mounted.status.success()) {
        eprintln!("SKIPPED: no way to make a small disk (mount -t tmpfs)");
        return;
    }
    let outcome = context.events(&["--cache", "small/cache"]);
    let grown = context
        .program("mount", &["-o", "remount,size=64m", small.as_str()])
        .output();
    let again = context.events(&["--cache", "small/cache"]);
    let moved = finish(&mut context.program("cp", &["-r", "small/cache", "cache"]));
    context.program("umount", &[small.as_str()]).output().unwrap();

    let outcome = outcome.assert_code(3);
    let halted = &outcome.event("run-finished")["summary"]["halted"];
    assert!(
        halted["message"].as_str().unwrap().contains("No space left"),
        "{halted}"
    );
    assert!(
        ["free some space", "`provenir gc`", "`--cache FOLDER`"]
            .iter()
            .all(|help| halted["help"].as_str().unwrap().contains(help)),
        "{halted}"
    );
    let finished = outcome.cells("cell-finished").len();
    assert!(grown.unwrap().status.success());
    let again = again.assert_code(0);
    assert_eq!(
        finished + again.cells("cell-finished").len(),
        20 + 200,
        "what was finished is kept"
    );
    assert_eq!(moved.code, Some(0));
    context.check_store();
}

#[test]
fn what_a_newer_version_wrote_is_named_and_left_alone() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.write("cache/results-v2/x", "");
    let outcome = context.run(&["run"]).assert_code(0);
    assert!(
        outcome
            .stderr
            .starts_with("warning: a newer version of Provenir has written to this store"),
        "{outcome:#?}"
    );
    for path in files(&context.path("cache/results-v1")) {
        let text = without_checksum(&fs_err::read_to_string(&path).unwrap());
        fs_err::write(&path, text.replace("\"format\": 1", "\"format\": 2")).unwrap();
    }
    let outcome = context.run(&["run"]).assert_code(3);
    assert!(
        outcome
            .stderr
            .contains("has format 2; this version of Provenir reads up to 1"),
        "{outcome:#?}"
    );
}

use crate::context::{CHAIN, COMMAND, Context, finish, install};

#[test]
fn what_fails_blocks_only_what_needs_it() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "failing"
        stages.bad = { kind = "fail", params = { message = "no such luck" } }
        stages.needs-bad = { kind = "noop", inputs = { one = "bad" }, params = { value = 1 } }
        stages.needs-that = { kind = "noop", inputs = { one = "needs-bad" }, params = { value = 2 } }
        stages.good = { kind = "sleep", params = { seconds = 0.1 } }
        stages.needs-good = { kind = "noop", inputs = { one = "good" } }
        "#,
    );
    let outcome = context.events(&[]).assert_code(1);
    assert_eq!(outcome.cells("cell-failed"), ["bad"]);
    assert_eq!(outcome.cells("cell-blocked"), ["needs-bad", "needs-that"]);
    assert_eq!(outcome.cells("cell-finished"), ["good", "needs-good"]);
    let outcome = context.run(&["run"]).assert_code(1);
    insta::assert_snapshot!(context.filtered(&outcome.stderr), @r"
    failing: 5 cells, 2 up to date
    started bad
    error: bad failed after [TIME]: no such luck
      help: this stage exists to fail
      stage: pipeline.toml:4
      log: cache/runs-v1/[RUN]/logs/00000-bad.log
    blocked: needs-bad needs bad, which failed
    blocked: needs-that needs bad, which failed
    0 cells executed, 2 reused, 1 failed, 2 blocked in [TIME]
    ");
    let outcome = context.run(&["log", "bad"]).assert_code(0);
    assert!(outcome.stdout.ends_with("about to fail\n"), "{outcome:#?}");
    assert_eq!(
        context.executed(&["--set", "stages.bad.params.fails=false"]),
        ["bad", "needs-bad", "needs-that"]
    );
    context.check_store();
}

#[test]
fn a_worker_that_dies_is_a_failed_cell_with_its_last_words() {
    for (how, message) in [
        ("abort", "its worker crashed (signal 6, abort)"),
        ("exit", "its worker ended with exit code 7"),
    ] {
        let context = Context::new(&format!(
            r#"
            format = 1
            pipeline.name = "dying"
            stages.dies = {{ kind = "crash", params = {{ how = "{how}" }} }}
            stages.good = {{ kind = "sleep", params = {{ seconds = 0.1 }} }}
            "#,
        ));
        let outcome = context.events(&["--jobs", "2"]).assert_code(1);
        let failed = outcome.event("cell-failed");
        assert_eq!(failed["failure"]["message"], message);
        assert_eq!(failed["failure"]["tail"][0], "last words");
        assert_eq!(outcome.cells("cell-finished"), ["good"]);
        assert!(
            context
                .run(&["log", "dies"])
                .assert_code(0)
                .stdout
                .contains("last words")
        );
        context.check_store();
    }
}

#[test]
fn after_a_crash_other_cells_get_another_worker() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "dying"
        axes.a = [1, 2, 3]
        stages.dies = { kind = "crash", params = { how = "abort" } }
        stages.good = { kind = "noop", params = { value = "${a}" } }
        "#,
    );
    let outcome = context.events(&["--jobs", "1"]).assert_code(1);
    assert_eq!(outcome.cells("cell-finished").len(), 3);
}

#[test]
fn a_panic_is_our_bug() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "panicking"
        stages.dies = { kind = "crash", params = { how = "panic" } }
        "#,
    );
    let outcome = context.events(&[]).assert_code(4);
    let message = outcome.event("cell-failed")["failure"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(message.contains("a panic on purpose"), "{message}");
    // In no company it is its own fault, and nothing would come of a second time.
    let log = context.run(&["log", "dies"]).assert_code(0).stdout;
    assert_eq!(log.matches("last words").count(), 1, "{log}");
}

#[test]
fn what_libraries_print_reaches_the_log_and_not_the_protocol() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "talking"
        stages.talk = { kind = "chatter", params = { text = "{\"done\": {}}" } }
        "#,
    );
    let outcome = context.run(&["run"]).assert_code(0);
    assert!(
        outcome
            .stderr
            .contains(r#"warning: talk: as a warning: {"done": {}}"#),
        "{outcome:#?}"
    );
    assert!(!outcome.stderr.contains("in the log"), "{outcome:#?}");
    let log = context.run(&["log", "talk"]).assert_code(0).stdout;
    for line in [
        "on standard output",
        "on standard error",
        "in the log",
        "warning: as a warning",
    ] {
        assert!(log.contains(line), "{log}");
    }
}

#[test]
fn what_a_failure_blocks_is_told_by_stage_and_counted() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "blocking"
        axes.a = [1, 2, 3, 4, 5]
        stages.bad = { kind = "fail", params = { message = "no luck ${a}" } }
        stages.next = { kind = "noop", inputs = { one = "bad" } }
        stages.total = { kind = "noop", inputs = { many = "next" } }
        "#,
    );
    let outcome = context.events(&[]).assert_code(1);
    assert_eq!(
        outcome.cells("cell-blocked").len(),
        6,
        "programs are told of each"
    );
    let outcome = context.run(&["run", "--jobs", "1"]).assert_code(1);
    let blocked: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("blocked"))
        .collect();
    insta::assert_debug_snapshot!(blocked, @r#"
    [
        "blocked: 5 cells of next need bad[a=1], bad[a=2], bad[a=3] or 2 more, which failed",
        "blocked: total needs bad[a=1], which failed",
    ]
    "#);
    let last = outcome.stderr.lines().last().unwrap();
    assert!(
        last.starts_with("0 cells executed, 5 failed, 6 blocked in "),
        "{last}"
    );
}

/// A folder with the command and, in the worker's place, a script.
fn with_worker(context: &Context, script: &str) -> String {
    let command = context.path("bin/provenir");
    context.write("bin/script", script);
    install(
        &context.path("bin/script"),
        &context.path("bin/provenir-noop-worker"),
    );
    install(COMMAND.as_ref(), &command);
    command.into_string()
}

const ONE: &str = "format = 1\npipeline.name = \"one\"\nstages.only = { kind = \"noop\" }\n";

#[test]
fn a_worker_of_another_build_is_refused() {
    let context = Context::new(ONE);
    let hello = r#"{"hello":{"protocol":1,"build":"another","kinds":["noop"],"platform":{}}}"#;
    let command = with_worker(&context, &format!("#!/bin/sh\necho '{hello}'\ncat > /dev/null\n"));
    let outcome = finish(&mut context.program(&command, &["run", "--quiet"])).assert_code(3);
    let text = context
        .filtered(&outcome.stderr)
        .replace(provenir_build_id::BUILD, "[BUILD]");
    insta::assert_snapshot!(text, @r"
    error: the run stops: the worker `[FOLDER]/bin/provenir-noop-worker` is of another build: build another, protocol 1, while this command is build [DIGEST], protocol 3
      help: build both together: `make build`
    0 cells executed, 1 not run in [TIME]
    ");
}

#[test]
fn what_stops_a_run_is_told_first_and_what_follows_is_counted() {
    let context = Context::new(CHAIN);
    let command = with_worker(&context, "#!/bin/sh\nexit 127\n");
    let outcome = finish(&mut context.program(&command, &["run"])).assert_code(3);
    insta::assert_snapshot!(context.filtered(&outcome.stderr), @r"
    chain: 7 cells, 0 up to date
    error: the run stops: the worker `[FOLDER]/bin/provenir-noop-worker` could not start: it ended with exit code 127
      help: `provenir doctor` says what it lacks
    0 cells executed, 7 not run in [TIME]
    ");
}

#[test]
fn a_warning_that_many_cells_give_is_told_once_and_counted() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "talking"
        axes.a = [1, 2, 3]
        stages.other = { kind = "noop", params = { value = "${a}" } }
        stages.talk = { kind = "chatter", inputs = { one = "other" }, params = { text = "mind the gap" } }
        "#,
    );
    context.write(
        "one.toml",
        &String::from_utf8(context.read("pipeline.toml"))
            .unwrap()
            .replace("\"mind the gap\"", "\"mind the gap ${a}\""),
    );
    let outcome = context.run(&["run", "one.toml", "--jobs", "1"]).assert_code(0);
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    for cell in ["talk[a=1]", "talk[a=2]", "talk[a=3]"] {
        let started = lines
            .iter()
            .position(|line| *line == format!("started {cell}"))
            .unwrap();
        assert!(
            lines[started + 1].starts_with(&format!("warning: {cell}: as a")),
            "{outcome:#?}"
        );
        assert!(
            lines[started + 2].starts_with(&format!("finished {cell}")),
            "{outcome:#?}"
        );
    }
    let outcome = context
        .run(&["run", "--jobs", "1", "--force", "talk"])
        .assert_code(0);
    let warnings: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("warning"))
        .collect();
    insta::assert_debug_snapshot!(warnings, @r#"
    [
        "warning: talk[a=1]: as a warning: mind the gap",
        "warning: 2 more cells: as a warning: mind the gap",
    ]
    "#);
}

#[test]
fn with_one_worker_cells_are_told_one_after_the_other() {
    let context = Context::new(CHAIN);
    let outcome = context.run(&["run", "--jobs", "1"]).assert_code(0);
    let told: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("started") || line.starts_with("finished"))
        .collect();
    assert_eq!(told.len(), 14, "{outcome:#?}");
    for pair in told.chunks(2) {
        let cell = pair[0].strip_prefix("started ").unwrap();
        assert!(pair[1].starts_with(&format!("finished {cell} in")), "{told:#?}");
    }
}

#[test]
fn a_worker_that_cannot_load_says_why() {
    let context = Context::new(ONE);
    let command = with_worker(
        &context,
        "#!/bin/sh\necho 'libtorch_cpu.so: cannot open shared object file' >&2\nexit 127\n",
    );
    let outcome = finish(&mut context.program(&command, &["run", "--quiet"])).assert_code(3);
    assert!(
        outcome
            .stderr
            .contains("could not start: it ended with exit code 127"),
        "{outcome:#?}"
    );
    assert!(
        outcome
            .stderr
            .contains("libtorch_cpu.so: cannot open shared object file"),
        "{outcome:#?}"
    );
}

/// The worker as it is, after the first `deaths` that were started have been killed.
fn with_dying_worker(context: &Context, deaths: usize) -> String {
    let worker = COMMAND.to_owned() + "-worker";
    let script = format!(
        r#"#!/bin/sh
for number in $(seq {deaths}); do
    if mkdir "{}/death-$number" 2> /dev/null; then
        echo "still loading" >&2
        kill -9 $$
    fi
done
exec {worker}
"#,
        context.folder
    );
    with_worker(context, &script)
}

#[test]
fn a_worker_that_is_killed_while_it_starts_is_replaced() {
    let context = Context::new(CHAIN);
    let command = with_dying_worker(&context, 1);
    let outcome = finish(&mut context.program(&command, &["run", "--jobs", "1"])).assert_code(0);
    let said: String = outcome
        .stderr
        .lines()
        .take(3)
        .fold(String::new(), |said, line| said + line + "\n");
    insta::assert_snapshot!(context.filtered(&said), @r"
    chain: 7 cells, 0 up to date
    warning: the worker that was starting for first[a=1] was killed (signal 9), perhaps because memory ran out; another one is started (log: cache/runs-v1/[RUN]/logs/00000-first[a=1].log)
    started first[a=1]
    ");
    let log = context.run(&["log", "first[a=1]"]).assert_code(0).stdout;
    assert!(
        log.contains(
            "the worker that was starting for it was killed (signal 9), perhaps because memory ran out"
        ) && log.contains("still loading"),
        "{log}"
    );
    assert_eq!(context.executed(&[]), [""; 0]);
    context.check_store();
}

#[test]
fn a_cell_that_no_worker_can_be_started_for_fails_alone() {
    let context = Context::new(CHAIN);
    let command = with_dying_worker(&context, 2);
    let outcome = finish(&mut context.program(&command, &["run", "--jobs", "1", "--json"])).assert_code(3);
    assert_eq!(outcome.cells("worker-lost"), ["first[a=1]", "first[a=1]"]);
    assert_eq!(outcome.cells("cell-failed"), ["first[a=1]"]);
    assert_eq!(outcome.cells("cell-blocked"), ["second[a=1]", "total"]);
    assert_eq!(
        outcome.cells("cell-finished"),
        ["first[a=2]", "first[a=3]", "second[a=2]", "second[a=3]"]
    );
    let failed = outcome.event("cell-failed");
    assert_eq!(
        failed["failure"]["message"],
        "two workers that were starting for it ended, one after the other; the second was killed (signal 9), perhaps because memory ran out"
    );
    assert_eq!(failed["failure"]["tail"], serde_json::json!(["still loading"]));
    let log = fs_err::read_to_string(failed["log"].as_str().unwrap()).unwrap();
    assert_eq!(log.matches("still loading").count(), 2, "{log}");
    assert_eq!(
        context.executed(&[]),
        ["first[a=1]", "second[a=1]", "total"],
        "with workers that start, what failed is made good"
    );
    context.check_store();
}

#[test]
fn where_worker_after_worker_is_killed_the_run_stops() {
    let context = Context::new(CHAIN);
    let command = with_dying_worker(&context, 1000);
    let outcome = finish(&mut context.program(&command, &["run", "--jobs", "1", "--json"])).assert_code(3);
    assert_eq!(outcome.cells("cell-failed"), ["first[a=1]", "first[a=2]"]);
    let halted = &outcome.event("run-halted")["failure"]["message"];
    assert!(
        halted
            .as_str()
            .unwrap()
            .contains("could not start: it was killed (signal 9), perhaps because memory ran out"),
        "{halted}"
    );
}

#[test]
fn a_worker_that_is_not_there_is_told() {
    let context = Context::new(ONE);
    let command = with_worker(&context, "");
    fs_err::remove_file(context.path("bin/provenir-noop-worker")).unwrap();
    let outcome = finish(&mut context.program(&command, &["run", "--quiet"])).assert_code(3);
    assert!(outcome.stderr.contains("cannot start the worker"), "{outcome:#?}");
}

#[test]
fn a_worker_that_talks_nonsense_fails_its_cell_and_no_more() {
    let context = Context::new(ONE);
    let hello = format!(
        r#"{{"hello":{{"protocol":{},"build":"{}","kinds":["noop"],"accelerated":false,"platform":{{}}}}}}"#,
        provenir_api::protocol::PROTOCOL,
        provenir_build_id::BUILD
    );
    let command = with_worker(
        &context,
        &format!("#!/bin/sh\necho '{hello}'\nread line\necho nonsense\nsleep 60\n"),
    );
    let outcome = finish(&mut context.program(&command, &["run", "--quiet"])).assert_code(1);
    assert!(outcome.stderr.contains("cannot be understood"), "{outcome:#?}");
}

#[test]
fn wrong_requests_have_an_exit_code_of_their_own() {
    let context = Context::new(ONE);
    for arguments in [
        &["run", "--no-such-option"][..],
        &["run", "absent.toml"],
        &["run", "--jobs", "0"],
        &["run", "--force", "absent"],
        &["run", "--force", "only[a=1]"],
        &["run", "--set", "stages.only.params.values=1"],
        &["show", "only.absent"],
        &["show", "only"],
        &["log", "only"],
        &["path", "no/such/file"],
    ] {
        let outcome = context.run(arguments).assert_code(2);
        assert!(
            outcome.stderr.starts_with("error") || outcome.stderr.contains('×'),
            "{outcome:#?}"
        );
        assert_eq!(outcome.stdout, "");
    }
}

#[test]
fn the_log_of_a_running_cell_can_be_read() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "talking"
        stages.talk = { kind = "chatter", params = { text = "hello" } }
        stages.nap = { kind = "sleep", inputs = { one = "talk" }, params = { seconds = 600 } }
        "#,
    );
    let mut running = context.start(&[]);
    running.wait_for("cell-progress", "nap");
    let outcome = context.run(&["log", "talk"]).assert_code(0);
    assert!(outcome.stdout.contains("in the log: hello"), "{outcome:#?}");
    let outcome = context.run(&["log", "nap"]).assert_code(0);
    assert!(
        outcome.stderr.contains("`nap` said nothing in run"),
        "{outcome:#?}"
    );
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.finish().code, Some(130));
}

use crate::context::{CHAIN, Context};

#[test]
fn a_cell_that_fails_is_tried_as_often_as_its_stage_allows() {
    let manifest = |retries: u32| {
        format!(
            r#"
            format = 1
            pipeline.name = "flaky"
            stages.flaky = {{ kind = "flaky", params = {{ failures = 2 }}, retries = {retries} }}
            stages.after = {{ kind = "noop", inputs = {{ one = "flaky" }} }}
            "#
        )
    };
    let context = Context::new(&manifest(1));
    let outcome = context.events(&[]).assert_code(1);
    assert_eq!(outcome.cells("cell-retried"), ["flaky"]);
    assert_eq!(outcome.cells("cell-failed"), ["flaky"]);
    assert_eq!(outcome.cells("cell-blocked"), ["after"]);

    // The last error says which attempt it was of, too, then and later.
    let context = Context::new(&manifest(1));
    let outcome = context.run(&["run"]).assert_code(1);
    insta::assert_snapshot!(context.filtered(&outcome.stderr), @r"
    flaky: 2 cells, 0 up to date
    started flaky
    warning: flaky failed after [TIME] (attempt 1 of 2) and is executed once more: not yet
    started flaky
    error: flaky failed after [TIME] (attempt 2 of 2): not yet
      stage: pipeline.toml:4
      log: cache/runs-v1/[RUN]/logs/00000-flaky.log
    blocked: after needs flaky, which failed
    0 cells executed, 1 failed, 1 blocked in [TIME]
    ");
    let log = context.run(&["log", "flaky"]).assert_code(0).stderr;
    assert!(log.contains(" (attempt 2 of 2): not yet\n"), "{log}");
    let why = context.run(&["why", "flaky"]).assert_code(0).stdout;
    assert!(why.contains(" (attempt 2 of 2): not yet"), "{why}");
    // Where there is one only, there is nothing to count.
    let context = Context::new(&manifest(0));
    let told = context.run(&["run"]).assert_code(1).stderr;
    assert!(!told.contains("attempt"), "{told}");

    let context = Context::new(&manifest(2));
    let outcome = context.run(&["run"]).assert_code(0);
    insta::assert_snapshot!(context.filtered(&outcome.stderr), @r"
    flaky: 2 cells, 0 up to date
    started flaky
    warning: flaky failed after [TIME] (attempt 1 of 3) and is executed once more: not yet
    started flaky
    warning: flaky failed after [TIME] (attempt 2 of 3) and is executed once more: not yet
    started flaky
    finished flaky in [TIME]
    started after
    finished after in [TIME]
    2 cells executed in [TIME]
    ");
    let log = context.run(&["log", "flaky"]).assert_code(0).stdout;
    assert!(
        log.contains("attempt 1 fails") && log.contains("attempt 2 fails"),
        "{log}"
    );
    let said: Vec<&str> = log.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    attempt 1 fails
    ── attempt 2 of 3; attempt 1 failed: not yet ──
    attempt 2 fails
    ── attempt 3 of 3; attempt 2 failed: not yet ──
    ");
    // Neither is in the key.
    context.write(
        "pipeline.toml",
        &manifest(0).replace("retries = 0", "timeout = \"1h\""),
    );
    assert_eq!(context.executed(&[]), [""; 0]);
    context.check_store();
}

#[test]
fn a_cell_that_takes_too_long_is_stopped_and_the_others_go_on() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "napping"
        stages.nap = { kind = "sleep", params = { seconds = 600, deaf = true }, timeout = 1 }
        stages.after = { kind = "noop", inputs = { one = "nap" } }
        stages.good = { kind = "sleep", params = { seconds = 2 }, timeout = "1h" }
        "#,
    );
    let outcome = context.events(&["--jobs", "2"]).assert_code(1);
    assert_eq!(outcome.cells("cell-failed"), ["nap"]);
    assert_eq!(outcome.cells("cell-finished"), ["good"]);
    let failure = &outcome.event("cell-failed")["failure"];
    assert_eq!(failure["message"], "it ran longer than its time limit of 1 s");
    assert_eq!(
        failure["help"],
        "raise `timeout` of stage `nap` if it needs longer"
    );
    context.check_store();
}

#[test]
fn limits_are_checked_with_the_manifest() {
    let context = Context::new(&CHAIN.replace(
        "[stages.second]",
        "[stages.second]\ntimeout = \"soon\"\nretries = -1",
    ));
    let said = context.run(&["plan"]).assert_code(2).stderr;
    assert!(
        said.contains("`timeout` must be a time from one second to a year"),
        "{said}"
    );
    assert!(
        said.contains("`retries` must be a whole number from 0 to 100"),
        "{said}"
    );
    assert!(said.contains("2 problems in the manifest"), "{said}");
}

#[test]
fn with_a_strict_platform_results_of_another_are_not_taken() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    assert_eq!(context.executed(&["--strict-platform"]).len(), 7);
    assert_eq!(context.executed(&["--strict-platform"]), [""; 0]);
    assert_eq!(context.executed(&[]), [""; 0]);
    let other = Context::new(CHAIN);
    other.executed(&[]);
    let told = other.run(&["plan", "--strict-platform"]).assert_code(0).stdout;
    assert!(
        told.contains("first, all 3 cells: platform any → system=linux"),
        "{told}"
    );
    let strict = context
        .results()
        .into_values()
        .filter(|text| text.contains("\"platform\": \"system=linux\""));
    assert_eq!(strict.count(), 7);
}

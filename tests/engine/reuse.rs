use crate::context::{CHAIN, CHAIN_CELLS, COMMAND, Context, TIMES, finish, install, overwrite};

const NOTHING: [&str; 0] = [];

#[test]
fn nothing_is_executed_twice_and_a_second_run_leaves_one_line() {
    let context = Context::new(CHAIN);
    assert_eq!(context.executed(&[]), CHAIN_CELLS);
    assert_eq!((context.runs().len(), context.noops()), (1, 0));
    let before = context.results();
    assert_eq!(context.executed(&[]), NOTHING);
    assert_eq!((context.runs().len(), context.noops()), (1, 1));
    assert_eq!(context.results(), before);
    context.check_store();
}

#[test]
fn a_run_with_nothing_to_do_needs_neither_worker_nor_git() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let alone = context.path("bin/provenir");
    fs_err::create_dir(alone.parent().unwrap()).unwrap();
    install(COMMAND.as_ref(), &alone);
    let outcome = finish(context.program(alone.as_str(), &["run"]).env("PATH", "/nowhere"));
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    insta::assert_snapshot!(context.filtered(&outcome.stderr), @r"
    nothing to run: 7 cells up to date ([TIME])
    published:
      out/total.parquet
    ");
    assert_eq!(outcome.stdout, "");
    assert_eq!(context.noops(), 1);
}

#[test]
fn a_slice_of_an_axis_runs_what_gathers_it_and_its_order_does_not_count() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    assert_eq!(context.executed(&["--axis", "a=3,1"]), ["total"]);
    assert_eq!(context.executed(&["--axis", "a=3,2,1"]), NOTHING);
    context.write("pipeline.toml", &CHAIN.replace("[1, 2, 3]", "[3.0, 1e0, 2]"));
    assert_eq!(context.executed(&[]), NOTHING);
}

#[test]
fn what_a_stage_occupies_is_not_what_it_gives() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let given = "params = { value = 0.5 }";
    assert!(CHAIN.contains(given));
    let occupying = CHAIN.replace(given, "params = { value = 0.5 }\nresources = { cores = 2 }");
    context.write("pipeline.toml", &occupying);
    assert_eq!(context.executed(&[]), NOTHING);
}

#[test]
fn two_cells_that_are_one_action_run_once() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "twins"
        axes.a = [1, 2]
        stages.one = { kind = "sleep", params = { seconds = 0.1 } }
        stages.two = { kind = "sleep", params = { seconds = 0.1 }, over = ["a"] }
        stages.end = { kind = "noop", inputs = { many = ["one", "two"] } }
        "#,
    );
    let outcome = context.events(&["--jobs", "4"]).assert_code(0);
    assert_eq!(outcome.cells("cell-finished"), ["end", "one"]);
    assert_eq!(outcome.cells("cell-reused"), ["two[a=1]", "two[a=2]"]);
}

#[test]
fn a_source_file_counts_by_its_content() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "source"
        stages.read = { kind = "noop", params = { file = "data.txt" } }
        "#,
    );
    context.write("data.txt", "one");
    assert_eq!(context.executed(&[]), ["read"]);
    context.write("data.txt", "one");
    assert_eq!(context.executed(&[]), NOTHING);
    context.write("data.txt", "two");
    assert_eq!(context.executed(&[]), ["read"]);
    context.write("data.txt", "one");
    assert_eq!(context.executed(&[]), NOTHING);
    context.write("moved/copy.txt", "two");
    assert_eq!(
        context.executed(&["--set", "stages.read.params.file=\"moved/copy.txt\""]),
        NOTHING
    );
}

/// Where the index cannot tell that an object was touched, the cell that reads it does.
#[test]
fn damage_that_only_a_reader_can_see_is_repaired() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let object = context.object("second[a=2]");
    let mut bytes = fs_err::read(&object).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    overwrite(&object, &bytes);
    fs_err::remove_file(context.path("cache/index-v1.sqlite")).unwrap();
    let outcome = context
        .events(&["--set", "stages.total.params.value=1"])
        .assert_code(0);
    assert_eq!(outcome.cells("cell-repairing"), ["second[a=2]"]);
    assert_eq!(outcome.cells("cell-finished"), ["second[a=2]", "total"]);
    context.check_store();
}

#[test]
fn without_its_index_a_store_is_as_good() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let index = context.path("cache/index-v1.sqlite");
    fs_err::remove_file(&index).unwrap();
    assert_eq!(context.executed(&[]), NOTHING);
    fs_err::write(&index, "this is no database").unwrap();
    assert_eq!(context.executed(&[]), NOTHING);
    fs_err::remove_file(&index).unwrap();
    fs_err::create_dir(&index).unwrap();
    assert_eq!(context.executed(&[]), NOTHING);
}

#[test]
fn a_result_that_cannot_be_read_is_computed_again() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let before = context.results();
    for path in crate::context::files(&context.path("cache/results-v1")) {
        fs_err::write(path, "{").unwrap();
    }
    let plan = context.run(&["plan"]).assert_code(0).stdout;
    assert!(
        plan.contains("first, all 3 cells: its result in the store cannot be read"),
        "{plan}"
    );
    assert_eq!(context.executed(&[]), CHAIN_CELLS);
    assert_eq!(context.results(), before);
    context.check_store();
}

#[test]
fn a_store_that_was_copied_is_a_store() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let copied = finish(
        context
            .program("cp", &["-r", "cache", "copy"])
            .env("PATH", "/usr/bin:/bin"),
    );
    assert_eq!(copied.code, Some(0));
    assert_eq!(context.executed(&["--cache", "copy"]), NOTHING);
}

#[test]
fn forced_cells_run_and_agree_with_what_is_there() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let before = context.results();
    assert_eq!(context.executed(&["--force", "first[a=2]"]), ["first[a=2]"]);
    assert_eq!(
        context.executed(&["--force", "second", "--force", "total"]).len(),
        4
    );
    assert_eq!(context.results(), before);
    context.check_store();
}

#[test]
fn times_are_kept_but_do_not_diverge() {
    let context = Context::new(TIMES);
    context.executed(&[]);
    let volatile = context
        .results()
        .values()
        .filter(|result| result.contains("\"volatile\": true"))
        .count();
    assert_eq!(
        volatile, 2,
        "what lies downstream of a time is as little repeatable"
    );
    let outcome = context.events(&["--force", "time"]).assert_code(0);
    assert_eq!(outcome.event("run-finished")["summary"]["diverged"], 0);
    assert_eq!(outcome.cells("cell-finished"), ["time"]);
    // The first measurement counts, and is of the run that made it; the other is kept beside it.
    let runs = context.runs();
    let names: Vec<&str> = runs.iter().map(|run| run.file_name().unwrap()).collect();
    let [first, second] = names[..] else {
        panic!("{names:?}")
    };
    let why = context.run(&["why", "time"]).assert_code(0).stdout;
    let other = format!("  run {second} (");
    let (_, other) = why.split_once(&other).unwrap();
    let (_, other) = other
        .split_once(") gave another measurement for output sum, object ")
        .unwrap();
    let (object, rest) = other.split_once(';').unwrap();
    assert_eq!(rest, " it is kept beside the one that counts\n");
    assert!(why.contains(&format!("is up to date: run {first} ")), "{why}");
    let lineage = context.run(&["lineage", "time"]).assert_code(0).stdout;
    assert!(
        lineage.contains(&format!("computed by run {first} ")),
        "{lineage}"
    );
    context.run(&["gc", "--yes", "--grace", "0"]).assert_code(0);
    context.run(&["show", object]).assert_code(0);
    let told = context.run(&["lineage", object]).assert_code(0).stdout;
    assert!(
        told.starts_with(&format!("run {second} (")) && told.contains("\ntime: clock"),
        "{told}"
    );
    let diff = context.run(&["diff", first, second]).assert_code(0).stdout;
    assert!(diff.contains("time: sum differs"), "{diff}");
    assert_eq!(context.executed(&[]), [""; 0]);
    context.check_store();
}

#[test]
fn only_a_stage_and_what_it_needs() {
    let context = Context::new(CHAIN);
    assert_eq!(context.executed(&["--only", "first"]), CHAIN_CELLS[..3]);
    assert_eq!(context.executed(&["--only", "second"]), CHAIN_CELLS[3..6]);
}

#[test]
fn a_measurement_that_was_lost_is_not_replaced_without_a_word() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "times"
        stages.time = { kind = "clock", publish = { sum = "out/time.parquet" } }
        "#,
    );
    context.executed(&[]);
    let first = context.read("out/time.parquet");
    let object = context.object("time");
    fs_err::remove_file(&object).unwrap();
    let told = context.run(&["run"]).assert_code(0).stderr;
    assert!(
        told.contains("warning: the store has lost artifacts of time; what it measured now takes the place of what it had measured (output `sum`)"),
        "{told}"
    );
    assert!(
        told.contains("warning: updated `out/time.parquet`, whose earlier bytes the store has lost; the file that was there is kept as `out/time.parquet.orig`"),
        "{told}"
    );
    assert_eq!(context.read("out/time.parquet.orig"), first);
    let why = context.run(&["why", "time"]).assert_code(0).stdout;
    assert!(why.contains("it is not in the store any more"), "{why}");
    // Nothing is wrong with what counts; what was lost is told.
    let verified = context.run(&["verify"]).assert_code(0).stdout;
    insta::assert_snapshot!(context.filtered(&verified), @r"
    store cache: read 1 object (478 bytes) and 2 results
    1 published file outside it: not read (`provenir verify FILE` looks at one, `provenir plan` at those of a manifest)

    gone: nothing computes them again, because they are second results, or made from what is gone, too; nothing that counts needs them
      object [DIGEST], of time

    nothing is wrong
    ");
    assert_eq!(context.executed(&[]), [""; 0]);
}

/// Only the output that was lost is new; what the first execution measured counts, and is its.
#[test]
fn a_repeatable_output_that_was_lost_costs_no_measurement() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "mixed"
        [stages.c]
        kind = "command"
        params.argv = ["sh", "-c", "date +%s.%N > {output.v}; echo fix > {output.r}"]
        params.outputs.v = { file = "v.txt", volatile = true }
        params.outputs.r = { file = "r.txt" }
        publish = { v = "v.txt" }
        "#,
    );
    context.executed(&[]);
    let first = context.read("v.txt");
    let run = context.runs()[0].file_name().unwrap().to_owned();
    fs_err::remove_file(context.object("c.r")).unwrap();
    assert_eq!(context.executed(&[]), ["c"]);
    assert_eq!(context.read("v.txt"), first);
    let lineage = context.run(&["lineage", "v.txt"]).assert_code(0).stdout;
    assert!(
        lineage.contains(&format!("computed by run {run} "))
            && lineage.contains(" gave another measurement for output v, object "),
        "{lineage}"
    );
    let verified = context.run(&["verify"]).assert_code(0).stdout;
    assert!(!verified.contains("orphaned"), "{verified}");
}

//! What a person reads of a run, and of what was meant by a word on the command line.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::context::{CHAIN, Context, files, finish};

/// The files that a run lists at its end.
fn listed(told: &str) -> Vec<&str> {
    let Some((_, list)) = told.split_once("published:\n") else {
        return Vec::new();
    };
    list.lines().map(str::trim).collect()
}

const COPIES: &str = r#"
format = 1
pipeline.name = "copies"
stages.first = { kind = "noop", publish = { sum = "out/first.parquet" } }
stages.second = { kind = "noop", params = { value = 1 }, publish = { sum = "out/second.parquet" } }
stages.third = { kind = "noop", params = { value = 2 }, publish = { sum = "out/third.parquet" } }
stages.bad = { kind = "flaky", params = { failures = 1 } }
"#;

#[test]
fn the_list_of_published_files_holds_what_is_in_place_and_nothing_else() {
    let context = Context::new(COPIES);
    fs_err::create_dir_all(context.path("out/second.parquet/inside")).unwrap();
    let told = |arguments: &[&str], code| context.run(arguments).assert_code(code).stderr;
    let good = ["run", "--only", "first", "--only", "second", "--only", "third"];
    // New, failed, new.
    assert_eq!(
        listed(&told(&good, 3)),
        ["out/first.parquet", "out/third.parquet"]
    );
    // Restored, failed, unchanged; where nothing is to run and where a cell fails.
    fs_err::remove_file(context.path("out/first.parquet")).unwrap();
    let said = told(&good, 3);
    assert!(said.contains("restored `out/first.parquet`"), "{said}");
    assert_eq!(listed(&said), ["out/first.parquet", "out/third.parquet"]);
    fs_err::remove_file(context.path("out/first.parquet")).unwrap();
    let said = told(&["run", "--force", "third"], 3);
    assert!(said.contains("1 failed"), "{said}");
    assert_eq!(listed(&said), ["out/first.parquet", "out/third.parquet"]);
    // All unchanged.
    fs_err::remove_dir_all(context.path("out/second.parquet")).unwrap();
    told(&good, 0);
    assert_eq!(
        listed(&told(&good, 0)),
        ["out/first.parquet", "out/second.parquet", "out/third.parquet"]
    );
}

#[test]
fn once_a_run_stops_nothing_is_said_to_start() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "teams"
        axes.a = [1, 2, 3, 4, 5, 6, 7, 8]
        stages.member = { kind = "team", params = { value = "${a}", team = "x", seconds = 600 } }
        stages.total = { kind = "noop", inputs = { many = "member" } }
        "#,
    );
    let mut child = context
        .command(&["run", "--jobs", "1"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("started") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "nothing was started");
    }
    let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    let (_, after) = rest.split_once("stopping").unwrap();
    assert!(!after.contains("started"), "{rest}");
    assert_eq!(after.matches("stopped: member").count(), 6, "{rest}");
}

#[test]
fn every_cell_that_is_said_to_start_is_said_to_end() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "many"
        axes.a = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
        axes.b = [1, 2, 3, 4]
        stages.one = { kind = "noop", params = { value = "${a}" } }
        stages.two = { kind = "noop", over = ["b"], inputs = { one = "one" }, params = { value = "${b}" } }
        "#,
    );
    let outcome = context.run(&["run", "--jobs", "3"]).assert_code(0);
    let begun: Vec<&str> = outcome
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("started "))
        .collect();
    assert!(!begun.is_empty(), "{outcome:#?}");
    for cell in begun {
        assert!(
            outcome.stderr.contains(&format!("\nfinished {cell} in ")),
            "{cell}: {outcome:#?}"
        );
    }
}

#[test]
fn a_cell_that_was_waited_for_is_said_to_arrive() {
    let context = Context::new(
        "format = 1\npipeline.name = \"slow\"\nstages.nap = { kind = \"sleep\", params = { seconds = 1.5 } }\n",
    );
    let mut first = context.start(&[]);
    first.wait_for("cell-started", "nap");
    let second = context.run(&["run"]).assert_code(0);
    first.finish().assert_code(0);
    let (_, after) = second.stderr.split_once("waiting for nap").unwrap();
    assert!(after.contains("\narrived: nap\n"), "{second:#?}");
}

#[test]
fn the_log_of_a_cell_that_failed_without_a_word_says_why() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "mute"
        stages.mute = { kind = "sleep", params = { seconds = 600, deaf = true }, timeout = 1 }
        "#,
    );
    let failed = context.events(&[]).assert_code(1);
    let message = failed.event("cell-failed")["failure"]["message"].clone();
    let said = context.run(&["log", "mute"]).assert_code(0).stderr;
    assert!(said.contains(message.as_str().unwrap()), "{said}");
    assert!(said.contains("help: raise `timeout` of stage `mute`"), "{said}");
    assert!(!said.contains("said nothing"), "{said}");
    let quick = ["--set", "stages.mute.params.seconds=0"];
    context.executed(&quick);
    let said = context
        .run(&[&["log", "mute"], &quick[..]].concat())
        .assert_code(0)
        .stderr;
    assert!(said.contains("`mute` said nothing"), "{said}");
}

#[test]
fn a_damaged_result_is_told_before_it_is_computed_again() {
    for cut in [true, false] {
        let context =
            Context::new("format = 1\npipeline.name = \"one\"\nstages.only = { kind = \"noop\" }\n");
        context.executed(&[]);
        let [path] = &files(&context.path("cache/results-v1"))[..] else {
            panic!("one cell, one result");
        };
        let whole = fs_err::read(path).unwrap();
        crate::context::overwrite(path, if cut { &whole[..whole.len() / 2] } else { b"" });
        let told = context.run(&["run"]).assert_code(0).stderr;
        assert!(
            told.contains("warning: the result of only in the store cannot be read: `cache/results-v1/"),
            "{told}"
        );
        assert!(told.contains("1 cell executed"), "{told}");
        assert_eq!(fs_err::read(path).unwrap(), whole);
        let told = context.run(&["run"]).assert_code(0).stderr;
        assert!(!told.contains("warning"), "{told}");
    }
}

#[test]
fn a_value_of_an_axis_may_be_a_path() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "paths"
        axes.f = ["data/one.txt", "data/two.txt"]
        stages.read = { kind = "noop", params = { file = "${f}" } }
        "#,
    );
    context.write("data/one.txt", "1");
    context.write("data/two.txt", "22");
    context.executed(&[]);
    let cell = "read[f=data/one.txt]";
    for arguments in [
        &["show", cell][..],
        &["path", "read[f=data/two.txt].sum"],
        &["log", cell],
        &["why", cell],
        &["pin", cell],
        &["run", "--force", cell],
    ] {
        context.run(arguments).assert_code(0);
    }
}

#[test]
fn what_is_no_cell_is_called_what_it_is() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let said = |arguments: &[&str]| context.filtered(&context.run(arguments).assert_code(2).stderr);
    insta::assert_snapshot!(said(&["log", "out/total.parquet"]), @r"
    error: `out/total.parquet` is a file; a cell is wanted
      help: `provenir lineage out/total.parquet` names the cell that made it
    ");
    insta::assert_snapshot!(said(&["why", "out/none.parquet"]), @"error: there is no file `out/none.parquet`, and a cell is wanted");
    insta::assert_snapshot!(said(&["log", "total.sum"]), @r"
    error: `total.sum` names an output; a cell is wanted
      help: leave `.sum` out
    ");
    insta::assert_snapshot!(said(&["show", "second.sun[a=1]"]), @r"
    error: `second.sun[a=1]`: the output goes after the bracket
      help: write `second[a=1].sum`
    ");
    insta::assert_snapshot!(said(&["path", "second.entropy[a=1]"]), @r"
    error: `second.entropy[a=1]`: the output goes after the bracket
      help: write `second[a=1].OUTPUT`; it has `sum`
    ");
    // The name of a file is a stage's as well: where a cell is wanted the stage is meant.
    context.write("total", "");
    context.run(&["log", "total"]).assert_code(0);
}

#[test]
fn an_option_of_another_command_is_called_that() {
    let context = Context::new(CHAIN);
    let said = |arguments: &[&str]| {
        let told = context.run(arguments).assert_code(2).stderr;
        let (first, _) = told.split_once("\n\nUsage").unwrap();
        first.to_owned()
    };
    insta::assert_snapshot!(said(&["plan", "--jobs", "2"]), @r"
    error: unexpected argument '--jobs' found

      tip: `--jobs` belongs to `run`, `audit`
    ");
    insta::assert_snapshot!(said(&["plan", "-j", "2"]), @r"
    error: unexpected argument '-j' found

      tip: `-j` belongs to `run`, `audit`
    ");
    insta::assert_snapshot!(said(&["run", "--nothing-has-it"]), @"error: unexpected argument '--nothing-has-it' found");
}

#[test]
fn what_init_says_can_be_pasted() {
    let context = Context::new(CHAIN);
    for folder in ["a b c", "-x", "it's", "ünï"] {
        let outcome = context.run(&["init", "--", folder]).assert_code(0);
        let (_, commands) = outcome.stderr.split_once("next: ").unwrap();
        let (_, plan) = commands.split_once("`provenir ").unwrap();
        let (plan, _) = plan.split_once('`').unwrap();
        // Without an expert a plan says that it is missing: the manifest was found.
        let command = format!("{} {plan}", crate::context::COMMAND);
        let planned = finish(&mut context.program("sh", &["-c", &command]));
        assert!(!planned.stderr.contains("there is no file"), "{planned:#?}");
        assert!(!planned.stderr.contains("unexpected argument"), "{planned:#?}");
    }
    let manifest = String::from_utf8(context.read("ünï/pipeline.toml")).unwrap();
    assert!(manifest.contains("name = \"pipeline\""), "{manifest}");
    context.write("f", "");
    let said = context.run(&["init", "f"]).assert_code(2).stderr;
    assert!(said.starts_with("error: `f` is a file\n"), "{said}");
    let said = context.run(&["init", "f/below"]).assert_code(2).stderr;
    assert!(said.starts_with("error: `f` is a file\n"), "{said}");
}

#[test]
fn values_that_hold_what_separates_values_can_be_named() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "odd"
        axes.k = ["a, b", "c]d", "e=f", "say \"no\"", "plain"]
        stages.t = { kind = "noop", params = { value = 1 } }
        stages.u = { kind = "noop", inputs = { one = "t" } }
        "#,
    );
    context.write(
        "pipeline.toml",
        &String::from_utf8(context.read("pipeline.toml"))
            .unwrap()
            .replace("params = { value = 1 }", "over = [\"k\"]"),
    );
    context.executed(&[]);
    // Every name that the program prints is one that it takes.
    for value in ["\"a, b\"", "\"c]d\"", "\"e=f\"", "\"say \\\"no\\\"\"", "plain"] {
        let cell = format!("t[k={value}]");
        let told = context.run(&["why", &cell]).assert_code(0).stdout;
        assert!(told.starts_with(&format!("{cell}\n")), "{told}");
        context.run(&["path", &cell]).assert_code(0);
        context.run(&["lineage", &format!("{cell}.sum")]).assert_code(0);
    }
    let told = context.run(&["why", "t[k=\"a, b]"]).assert_code(2).stderr;
    assert!(told.contains("a quote is not closed"), "{told}");
}

#[test]
fn runs_are_told_apart_by_what_differs() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.executed(&["--set", "stages.second.params.value=2"]);
    let told = context.run(&["runs"]).assert_code(0).stdout;
    let lines: Vec<&str> = told.lines().collect();
    assert!(
        lines[0].contains("options") && !lines[0].contains("manifest") && !lines[0].contains("host"),
        "{told}"
    );
    assert!(lines[1].contains("--set stages.second.params.value=2"), "{told}");
    assert!(!lines[2].contains("--set"), "{told}");
    context.write(
        "other.toml",
        &CHAIN.replace("\"chain\"", "\"other\"").replace("0.5", "0.25"),
    );
    finish(&mut context.command(&["run", "other.toml"])).assert_code(0);
    let told = context.run(&["runs"]).assert_code(0).stdout;
    assert!(
        told.contains("other.toml") && told.contains("pipeline.toml"),
        "{told}"
    );
    // The one that is exported where none is named, with what it was of.
    let told = context
        .run(&["export", "--format", "ro-crate", "--out", "crate"])
        .assert_code(0)
        .stderr;
    assert!(
        told.contains("the last of `pipeline.toml` with `--set stages.second.params.value=2`: done"),
        "{told}"
    );
}

#[test]
fn cells_that_failed_are_counted_and_logs_are_told_apart() {
    let context = Context::new(COPIES);
    context.run(&["run"]).assert_code(1);
    let told = context.run(&["status"]).assert_code(0).stdout;
    let bad = told
        .lines()
        .find(|line| line.trim_start().starts_with("bad"))
        .unwrap();
    assert!(
        told.contains("failed") && bad.split_whitespace().eq(["bad", "1", "0", "1"]),
        "{told}"
    );
    context.executed(&[]);
    let told = context.run(&["status"]).assert_code(0).stdout;
    assert!(
        !told.lines().take(4).any(|line| line.contains("failed")),
        "{told}"
    );
    let context = Context::new(
        "format = 1\npipeline.name = \"same\"\nstages.a = { kind = \"noop\" }\nstages.b = { kind = \"noop\" }\n",
    );
    context.executed(&[]);
    let told = |cell: &str| context.run(&["log", cell]).assert_code(0).stderr;
    let both = [told("a"), told("b")];
    let same = both
        .iter()
        .filter(|told| told.contains("is the same action as"))
        .count();
    assert_eq!(same, 1, "{both:?}");
}

use serde_json::{Value, json};

use crate::context::{CHAIN, CHAIN_CELLS, Context, TIMES, eventually, files};

fn audit(context: &Context, arguments: &[&str], code: i32) -> Value {
    let outcome = context
        .run(&[&["audit", "--json"], arguments].concat())
        .assert_code(code);
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// Cells by verdict.
fn with(found: &Value, verdict: &str) -> Vec<String> {
    let cells = found["cells"].as_array().unwrap().iter();
    let cells = cells.filter(|cell| cell["verdict"] == verdict);
    cells
        .map(|cell| cell["cell"].as_str().unwrap().to_owned())
        .collect()
}

/// Puts another table into the place of what a cell gave, as a computation that is not repeatable would have.
fn forge(context: &Context, cell: &str, by: &str) {
    let (old, new) = (context.object(cell), context.object(by));
    let (old, new) = (old.file_name().unwrap(), new.file_name().unwrap());
    let result = |object: &str| {
        let mut results = context.results().into_iter();
        results.find(|(_, text)| text.contains(object)).unwrap()
    };
    let (name, text) = result(old);
    let (mut forged, other): (Value, Value) = (
        serde_json::from_str(&text).unwrap(),
        serde_json::from_str(&result(new).1).unwrap(),
    );
    forged["outputs"] = other["outputs"].clone();
    forged.as_object_mut().unwrap().remove("checksum");
    let path = files(&context.path("cache/results-v1"))
        .into_iter()
        .find(|path| path.file_name() == Some(name.as_str()));
    fs_err::write(path.unwrap(), serde_json::to_vec_pretty(&forged).unwrap()).unwrap();
}

#[test]
fn what_is_repeatable_is_reproduced_and_that_is_recorded() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let before = (context.results(), files(&context.path("cache/objects-v1")));
    let found = audit(&context, &["--all"], 0);
    assert_eq!(with(&found, "reproduced"), CHAIN_CELLS);
    assert_eq!(
        (context.results(), files(&context.path("cache/objects-v1"))),
        before
    );
    let recorded = fs_err::read_to_string(context.path("cache/runs-v1/audits.jsonl")).unwrap();
    let lines: Vec<Value> = recorded
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 7);
    assert_eq!(
        (&lines[0]["cell"], &lines[0]["verdict"], &lines[0]["build"]),
        (
            &json!("first[a=1]"),
            &json!("reproduced"),
            &json!(provenir_build_id::BUILD)
        )
    );
    let head = context.run(&["audit", "--all"]).assert_code(0).stderr;
    assert!(head.starts_with("auditing 7 cells\n"), "{head}");
    let told = context.run(&["audit", "--all", "--quiet"]).assert_code(0);
    assert!(
        told.stdout.starts_with("7 of 7 cells reproduced (provenir "),
        "{told:#?}"
    );
    assert!(told.stdout.ends_with("; recorded in the store\n"), "{told:#?}");
    assert_eq!(told.stderr, "");
    assert_eq!(context.executed(&[]), [""; 0]);
    context.check_store();
}

#[test]
fn of_a_sample_nothing_else_is_computed_again() {
    let context = Context::new(
        "format = 1\npipeline.name = \"chain\"\nstages.a = { kind = \"noop\", params = { value = 1 } }\nstages.b = { kind = \"noop\", inputs = { one = \"a\" }, params = { value = 2 } }\nstages.c = { kind = \"noop\", inputs = { one = \"b\" }, params = { value = 3 } }\n",
    );
    context.executed(&[]);
    let mut sampled = std::collections::BTreeSet::new();
    for seed in 0..8 {
        let outcome = context
            .run(&["audit", "--sample", "1", "--seed", &seed.to_string()])
            .assert_code(0);
        assert!(outcome.stderr.starts_with("auditing 1 cell\n"), "{outcome:#?}");
        let started = outcome
            .stderr
            .lines()
            .filter_map(|line| line.strip_prefix("started "));
        let started: Vec<String> = started.map(str::to_owned).collect();
        assert_eq!(started.len(), 1, "{outcome:#?}");
        sampled.extend(started);
    }
    assert!(sampled.len() > 1, "{sampled:?}");
    context.run(&["verify"]).assert_code(0);
    context.check_store();
}

#[test]
fn a_chain_and_a_sample_are_audited_on_their_own() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let chain = audit(&context, &["--cell", "second[a=2]"], 0);
    assert_eq!(with(&chain, "reproduced"), ["first[a=2]", "second[a=2]"]);
    let sample = with(&audit(&context, &["--sample", "3"], 0), "reproduced");
    assert_eq!(sample.len(), 3);
    assert_eq!(
        with(&audit(&context, &["--sample", "3"], 0), "reproduced"),
        sample
    );
    let others: Vec<_> = (1..20)
        .map(|seed| {
            with(
                &audit(&context, &["--sample", "3", "--seed", &seed.to_string()], 0),
                "reproduced",
            )
        })
        .collect();
    assert!(others.iter().any(|other| *other != sample));
    assert_eq!(
        with(&audit(&context, &["--sample", "100"], 0), "reproduced").len(),
        7
    );
}

#[test]
fn what_comes_out_differently_is_told_to_the_row() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    forge(&context, "second[a=2]", "second[a=1]");
    // What takes it follows from it.
    context.executed(&[]);
    let outcome = context
        .run(&["audit", "--cell", "total", "--quiet"])
        .assert_code(1);
    let told: Vec<&str> = outcome.stdout.lines().collect();
    assert!(
        told[0].starts_with("5 of 7 cells reproduced, 1 not reproduced, 1 not comparable (provenir "),
        "{outcome:#?}"
    );
    assert_eq!(
        told[2],
        "  not comparable, because what they take came out differently or failed: total"
    );
    assert_eq!(
        told[1],
        "  second[a=2]: output sum differs: column value, row 0 (counted from 0): 1.5 became 2.5 (numbers differ by at most 4.0e-1 of the greatest magnitude in their column or list)"
    );
    let found = audit(&context, &["--sample", "100"], 1);
    assert_eq!(with(&found, "differs"), ["second[a=2]"]);
    // A run that was told to compute it again keeps the second result beside the first, and an audit lists it.
    context.events(&["--force", "second[a=2]"]).assert_code(0);
    let found = audit(&context, &["--cell", "second[a=2]"], 1);
    let run = context.runs().pop().unwrap();
    let records = fs_err::read_to_string(run.join("records.jsonl")).unwrap();
    let record: Value = records
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|record| record["record"] == "executed")
        .unwrap();
    assert_eq!(
        found["divergences"],
        json!([{
            "cell": "second[a=2]",
            "output": "sum",
            "run": run.file_name().unwrap(),
            "time": record["started"],
            "host": rustix::system::uname().nodename().to_string_lossy(),
            "platform": { "system": "linux" },
        }])
    );
    assert_eq!(found["other_divergences"], 0);
    let said = |cell: &str, code| {
        let outcome = context.run(&["audit", "--quiet", "--cell", cell]);
        outcome.assert_code(code).stdout
    };
    let told = said("second[a=2]", 1);
    let line = format!(
        "\nthe store keeps second, different results of what was audited\n  second[a=2]: output sum, given by run {} (",
        run.file_name().unwrap()
    );
    assert!(told.contains(&line), "{told}");
    // Those of other cells are counted.
    let found = audit(&context, &["--cell", "first"], 0);
    assert_eq!(
        (&found["divergences"], &found["other_divergences"]),
        (&json!([]), &json!(1))
    );
    let told = said("first", 0);
    assert!(
        told.ends_with(
            "\nof cells that were not audited, the store keeps 1 second, different result; `provenir why CELL` tells of those of a cell\n"
        ),
        "{told}"
    );
    let told = "a second, different result";
    for command in ["why", "lineage"] {
        let outcome = context.run(&[command, "second[a=2]"]).assert_code(0);
        assert!(outcome.stdout.contains(told), "{outcome:#?}");
    }
    let lineage = context.run(&["lineage", "second[a=2]"]).assert_code(0).stdout;
    assert!(
        lineage.contains("not reproduced (output sum: column value, row 0 (counted from 0): 1.5 became 2.5 "),
        "{lineage}"
    );
    let lineage = context.run(&["lineage", "second[a=1]"]).assert_code(0).stdout;
    assert!(
        lineage.contains("\nreproduced 2 times, last by provenir "),
        "{lineage}"
    );
}

#[test]
fn another_platform_is_held_to_the_tolerance_that_is_given() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "platforms"
        stages.local = { kind = "team", params = { value = 1.5, team = "" } }
        stages.near = { kind = "team", params = { value = 1.501, team = "" } }
        stages.exact = { kind = "noop", params = { value = 1.5 } }
        "#,
    );
    context.executed(&[]);
    for cell in ["local", "exact"] {
        forge(&context, cell, "near");
    }
    let verdicts = |arguments: &[&str], code: i32| {
        let found = audit(&context, &[&["--all"], arguments].concat(), code);
        let cells = found["cells"].as_array().unwrap().iter();
        cells
            .map(|cell| {
                (
                    cell["cell"].as_str().unwrap().to_owned(),
                    cell["verdict"].as_str().unwrap().to_owned(),
                )
            })
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    // On the platform of the result, a tolerance is none.
    assert_eq!(verdicts(&["--tolerance", "0.5"], 1)["local"], "differs");
    let said = |cell: &str, code| {
        let outcome = context.run(&["audit", "--cell", cell, "--tolerance", "0.5"]);
        outcome.assert_code(code).stdout
    };
    let local = said("local", 1);
    assert!(
        local.contains("; the tolerance does not apply: it is for results of another platform, and this one is of the same\n"),
        "{local}"
    );
    let exact = said("exact", 1);
    assert!(
        exact.contains("; the tolerance does not apply: this kind gives the same on every platform\n"),
        "{exact}"
    );
    for path in files(&context.path("cache/results-v1")) {
        let text = fs_err::read_to_string(&path).unwrap();
        let mut result: Value = serde_json::from_str(&text.replace("linux", "another")).unwrap();
        result.as_object_mut().unwrap().remove("checksum");
        fs_err::write(&path, result.to_string()).unwrap();
    }
    let found = verdicts(&[], 1);
    assert_eq!(
        (&*found["local"], &*found["exact"]),
        ("other-platform", "differs")
    );
    let found = verdicts(&["--tolerance", "0.001"], 1);
    assert_eq!(
        (&*found["local"], &*found["exact"]),
        ("within-tolerance", "differs")
    );
    assert_eq!(verdicts(&["--tolerance", "0.0006"], 1)["local"], "differs");
    let told = context
        .run(&["audit", "--cell", "local", "--tolerance", "0.001"])
        .assert_code(0);
    assert!(
        told.stdout
            .contains("local: differs by at most 6.7e-4 (tolerance 1.0e-3) from what another platform gave"),
        "{told:#?}"
    );
}

#[test]
fn what_is_not_repeatable_is_not_held_against_it() {
    let context = Context::new(TIMES);
    context.executed(&[]);
    let found = audit(&context, &["--all"], 0);
    assert_eq!(with(&found, "volatile"), ["time"]);
    // What is made from it is held against what it was made from, and not against another measurement.
    assert_eq!(with(&found, "reproduced"), ["after"]);
    let told = context.run(&["audit", "--all", "--quiet"]).assert_code(0).stdout;
    assert!(
        told.starts_with("1 of 2 cells reproduced, 1 not compared (provenir "),
        "{told}"
    );
    assert!(
        told.ends_with("\n  not compared, because they are volatile: time\n"),
        "{told}"
    );
    let found = audit(&context, &["--sample", "2"], 0);
    assert_eq!(with(&found, "reproduced"), ["after"]);
    let only = ["--only", "time", "--cache", "only"];
    context.run(&[&["run"], &only[..]].concat()).assert_code(0);
    let refused = context
        .run(&[&["audit", "--sample", "2"], &only[..]].concat())
        .assert_code(2)
        .stderr;
    insta::assert_snapshot!(refused, @"error: nothing of what the store has could be compared: its one result is volatile");
    // A sample has other things to pick.
    let manifest = String::from_utf8(context.read("pipeline.toml")).unwrap();
    context.write(
        "pipeline.toml",
        &format!("{manifest}\nstages.plain = {{ kind = \"noop\" }}\n"),
    );
    context.executed(&[]);
    for seed in ["0", "1", "2", "3", "4"] {
        let found = audit(&context, &["--sample", "1", "--seed", seed], 0);
        assert!(
            ["plain", "after"].contains(&with(&found, "reproduced")[0].as_str()),
            "{found}"
        );
        assert_eq!(found["not_comparable"], json!(["time"]));
    }
}

#[test]
fn outputs_that_are_not_compared_beside_others_are_named() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "mixed"
        [stages.run]
        kind = "command"
        [stages.run.params]
        argv = ["sh", "-c", "echo 1 > a.txt; date +%N > b.txt"]
        outputs.stable.file = "a.txt"
        outputs.timing = { file = "b.txt", volatile = true }
        "#,
    );
    context.executed(&[]);
    let found = audit(&context, &["--all"], 0);
    assert_eq!(with(&found, "reproduced"), ["run"]);
    assert_eq!(found["cells"][0]["not_compared"], json!(["timing"]));
    let told = context.run(&["audit", "--all", "--quiet"]).assert_code(0).stdout;
    assert!(
        told.ends_with("\n  outputs that were not compared, because they are volatile: run.timing\n"),
        "{told}"
    );
}

#[test]
fn an_interrupted_audit_says_what_it_did_not_come_to() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "interrupted"
        stages.quick = { kind = "noop" }
        stages.slow = { kind = "sleep", params = { seconds = 3 }, inputs = { one = "quick" } }
        "#,
    );
    context.executed(&[]);
    let mut command = context.command(&["audit", "--all", "--quiet", "--scratch", "scratch"]);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null());
    let running = command.spawn().unwrap();
    eventually("the first of two cells", || {
        files(&context.path("scratch/store/results-v1")).len() == 1
    });
    let process = rustix::process::Pid::from_raw(running.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.starts_with("1 of 2 cells reproduced, 1 not reached (provenir "),
        "{told}"
    );
    assert!(
        told.ends_with("\n  not reached, because the audit was interrupted: slow\n"),
        "{told}"
    );
}

#[test]
fn what_is_left_out_is_named() {
    let context = Context::new(CHAIN);
    context.executed(&["--axis", "a=1,2"]);
    let axis = ["--axis", "a=1,2,4"];
    let told = |arguments: &[&str]| {
        let outcome = context.run(&[&["audit", "--quiet"], arguments, &axis].concat());
        outcome.assert_code(0).stdout
    };
    let all = told(&["--all"]);
    assert!(
        all.starts_with("4 of 4 cells reproduced, 3 without a result (provenir "),
        "{all}"
    );
    assert!(
        all.ends_with("\n  without a result in the store: first[a=4], second[a=4], total\n"),
        "{all}"
    );
    let sample = told(&["--sample", "1"]);
    assert!(
        sample.starts_with("1 of 1 cell reproduced, 3 without a result, 3 not in the sample (provenir "),
        "{sample}"
    );
    let found = audit(&context, &[&["--sample", "1"], &axis[..]].concat(), 0);
    let mut cells = with(&found, "reproduced");
    for left_out in ["not_sampled", "without_result"] {
        let names = found[left_out].as_array().unwrap().iter();
        cells.extend(names.map(|name| name.as_str().unwrap().to_owned()));
    }
    cells.sort();
    assert_eq!(
        cells,
        [
            "first[a=1]",
            "first[a=2]",
            "first[a=4]",
            "second[a=1]",
            "second[a=2]",
            "second[a=4]",
            "total"
        ]
    );
    let help = context.run(&["audit", "--help"]).assert_code(0).stdout;
    assert!(help.contains("<--cell <CELL>|--sample <N>|--all>"), "{help}");
}

#[test]
fn what_was_named_and_not_audited_is_no_success() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    fs_err::remove_file(context.object("second[a=2]")).unwrap();
    let arguments = ["audit", "--quiet", "--cell", "second[a=1]", "--cell", "total"];
    let told = context.run(&arguments).assert_code(1).stdout;
    assert!(
        told.contains("\n  total could not be computed again: the artifact of second[a=2] is missing\n"),
        "{told}"
    );
    let found = audit(&context, &["--cell", "first[a=1]", "--cell", "second[a=2]"], 1);
    assert_eq!(
        found["not_audited"],
        json!([{ "cell": "second[a=2]", "reason": "the artifact of second[a=2] is missing" }])
    );
    // What was not named is only counted.
    assert_eq!(audit(&context, &["--all"], 1)["not_audited"], json!([]));
    context.run(&["audit", "--sample", "0"]).assert_code(2);
    context.run(&["runs", "--limit", "0"]).assert_code(2);
}

/// A cell has its result although what it was made from is gone; that is not a cell that was never computed.
#[test]
fn what_lost_its_inputs_is_not_called_without_a_result() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    fs_err::remove_file(context.object("first[a=2]")).unwrap();
    let axis = ["--axis", "a=1,2,4"];
    let told = |arguments: &[&str]| {
        let outcome = context.run(&[&["audit", "--quiet"], arguments, &axis].concat());
        outcome.stdout
    };
    let all = told(&["--all"]);
    assert!(
        all.starts_with("2 of 2 cells reproduced, 3 not computed again, 2 without a result (provenir "),
        "{all}"
    );
    assert!(
        all.ends_with(
            "\n  not computed again, because the artifact of first[a=2] is missing: first[a=2], second[a=2], total\
             \n  without a result in the store: first[a=4], second[a=4]\n"
        ),
        "{all}"
    );
    let named = told(&["--cell", "second[a=1]", "--cell", "total"]);
    assert!(
        named.contains("\n  total could not be computed again: the artifact of first[a=2] is missing\n")
            && named.contains("\n  not computed again, because the artifact of first[a=2] is missing: first[a=2], second[a=2]\n"),
        "{named}"
    );
    let found = audit(&context, &[&["--all"], &axis[..]].concat(), 1);
    assert_eq!(found["without_result"], json!(["first[a=4]", "second[a=4]"]));
    assert_eq!(
        found["lost"][1],
        json!({ "cell": "second[a=2]", "reason": "the artifact of first[a=2] is missing" })
    );
    // With nothing else to compute, too.
    let nothing = audit(&context, &["--cell", "first[a=2]"], 1);
    assert_eq!(
        (&nothing["cells"], &nothing["not_audited"][0]["reason"]),
        (&json!([]), &json!("the artifact of first[a=2] is missing"))
    );
}

/// Cells that are one action are computed once, and that is one time.
#[test]
fn an_audit_of_cells_that_are_one_action_counts_once() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "alike"
        stages.one = { kind = "noop", params = { value = 7 } }
        stages.other = { kind = "noop", params = { value = 7 } }
        "#,
    );
    context.executed(&[]);
    let lineage = || context.run(&["lineage", "one"]).assert_code(0).stdout;
    let found = audit(&context, &["--all"], 0);
    assert_eq!(with(&found, "reproduced"), ["one", "other"]);
    assert!(lineage().contains("\nreproduced by provenir "), "{}", lineage());
    audit(&context, &["--all"], 0);
    assert!(
        lineage().contains("\nreproduced 2 times, last by provenir "),
        "{}",
        lineage()
    );
}

#[test]
fn what_fails_now_is_told() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "flaky"
        stages.flaky = { kind = "flaky", params = { failures = 1 }, retries = 1 }
        stages.after = { kind = "noop", inputs = { one = "flaky" } }
        "#,
    );
    context.executed(&[]);
    context.write(
        "pipeline.toml",
        &String::from_utf8(context.read("pipeline.toml"))
            .unwrap()
            .replace(", retries = 1", ""),
    );
    let found = audit(&context, &["--all"], 1);
    assert_eq!(with(&found, "failed"), ["flaky"]);
    assert_eq!(with(&found, "blocked"), ["after"]);
    // Lineage tells it, equal verdicts in one line.
    let lineage = || context.run(&["lineage", "flaky"]).assert_code(0).stdout;
    let failed = "\nfailed when it was computed again (";
    assert!(
        lineage().contains(failed) && !lineage().contains(" times, last by "),
        "{}",
        lineage()
    );
    audit(&context, &["--cell", "flaky"], 1);
    assert_eq!(lineage().matches(failed).count(), 1, "{}", lineage());
    assert!(
        lineage().contains(") 2 times, last by provenir "),
        "{}",
        lineage()
    );
}

#[test]
fn the_log_of_what_fails_is_where_it_is_told_to_be() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "logs"
        [stages.run]
        kind = "command"
        [stages.run.params]
        argv = ["sh", "-c", 'echo telling; test ! -e "$HOME/broken" && echo 1 > out.txt']
        inherit = ["HOME"]
        outputs.out.file = "out.txt"
        "#,
    );
    context.executed(&[]);
    context.write("broken", "");
    let told = context.run(&["audit", "--all"]).assert_code(1).stderr;
    assert!(
        told.contains("the last lines of its log:\n  | telling\n") && !told.contains("\n  log: "),
        "{told}"
    );
    let told = context
        .run(&["audit", "--all", "--scratch", "kept"])
        .assert_code(1)
        .stderr;
    let log = told
        .lines()
        .find_map(|line| line.strip_prefix("  log: "))
        .unwrap();
    assert!(log.starts_with("kept/logs/"), "{told}");
    let log = String::from_utf8(context.read(log)).unwrap();
    assert!(log.contains(" telling\n"), "{log}");
}

#[test]
fn an_audit_of_nothing_says_what_to_ask_for() {
    let context = Context::new(CHAIN);
    let said = |arguments: &[&str]| context.filtered(&context.run(arguments).assert_code(2).stderr);
    insta::assert_snapshot!(said(&["audit", "--all"]), @r"
    error: there is no store `cache`
      help: `provenir run` makes one; `--cache` or PROVENIR_CACHE names another
    ");
    assert!(!context.path("cache").exists(), "asking makes none");
    context.executed(&["--axis", "a=9"]);
    insta::assert_snapshot!(said(&["audit"]), @r"
    error: what is to be computed again?
      help: name a cell (--cell, with all that it was computed from), a number of cells (--sample N), or --all: 7 cells that took [TIME] of work
    ");
    insta::assert_snapshot!(said(&["audit", "--all"]), @r"
    error: the store has no result to compute again
      help: `provenir run` computes what the manifest describes; an audit computes that once more and compares
    ");
    context.executed(&[]);
    let said = said(&["audit"]);
    assert!(
        said.starts_with("error: what is to be computed again?\n  help: name a cell (--cell, "),
        "{said}"
    );
    context.write("taken/file", "");
    let outcome = context
        .run(&["audit", "--all", "--scratch", "taken"])
        .assert_code(2);
    assert!(
        outcome.stderr.contains("the folder `taken` is not empty"),
        "{outcome:#?}"
    );
    context
        .run(&["audit", "--all", "--scratch", "kept"])
        .assert_code(0);
    assert_eq!(files(&context.path("kept/store/results-v1")).len(), 7);
}

/// Who looks at a figure hears what an audit found of what it was made from.
#[test]
fn what_was_not_reproduced_upstream_is_told_below() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "doubt"
        [stages.given]
        kind = "command"
        params.argv = ["sh", "-c", "(echo a; date +%N) > {output.o}"]
        params.outputs.o = { file = "o.txt" }
        [stages.drawn]
        kind = "command"
        inputs = { o = "given" }
        params.argv = ["sh", "-c", "head -1 {input.o} > {output.x}"]
        params.outputs.x = { file = "x.txt" }
        publish = { x = "x.txt" }
        "#,
    );
    context.executed(&[]);
    let lineage = |what: &str| context.run(&["lineage", what]).assert_code(0).stdout;
    let doubt = "of what it was made from, an audit found\n  given: not reproduced (output o: ";
    assert!(!lineage("x.txt").contains(doubt));
    context.run(&["audit", "--all", "--quiet"]).assert_code(1);
    assert!(lineage("x.txt").contains(doubt), "{}", lineage("x.txt"));
    // What it prints of an artifact leads back to it.
    let told = lineage("drawn");
    let (_, content) = told.split_once(", content ").unwrap();
    let (content, _) = content.split_once(',').unwrap();
    assert!(
        lineage(content).starts_with("drawn: command"),
        "{}",
        lineage(content)
    );
}

use serde_json::{Value, json};

use crate::context::{CHAIN, Context};

fn listed(context: &Context, arguments: &[&str]) -> Vec<Value> {
    let outcome = context
        .run(&[&["runs", "--json"], arguments].concat())
        .assert_code(0);
    serde_json::from_str(&outcome.stdout).unwrap()
}

fn git(context: &Context, arguments: &[&str]) {
    let identity = ["-c", "user.name=x", "-c", "user.email=x@example.invalid"];
    let status = context.program("git", &[&identity, arguments].concat()).status();
    assert!(status.unwrap().success());
}

#[test]
fn runs_are_listed_tagged_noted_and_found_again() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.executed(&["--set", "stages.second.params.value=0.75"]);
    context.write(
        "failing.toml",
        "format = 1\npipeline.name = \"failing\"\nstages.bad = { kind = \"fail\", params = { message = \"no luck\" } }\n",
    );
    context.run(&["run", "failing.toml"]).assert_code(1);
    let runs = context.runs();
    let names: Vec<&str> = runs.iter().map(|run| run.file_name().unwrap()).collect();
    let all = listed(&context, &[]);
    let found: Vec<&str> = all.iter().map(|run| run["run"].as_str().unwrap()).collect();
    assert_eq!(found, [names[2], names[1], names[0]], "the latest comes first");
    let states: Vec<&str> = all.iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["failed in part", "done", "done"]);
    assert_eq!(all[1]["summary"]["ran"], 4);

    let said = context
        .run(&["runs", "tag", names[0], "paper", "v1"])
        .assert_code(0)
        .stderr;
    assert_eq!(said, format!("run {}, tagged paper, v1\n", names[0]));
    let said = context
        .run(&["runs", "note", "paper", "as submitted"])
        .assert_code(0)
        .stderr;
    assert_eq!(
        said,
        format!("run {}, tagged paper, v1: as submitted\n", names[0])
    );
    let tagged = listed(&context, &["--tag", "paper"]);
    assert_eq!(tagged.len(), 1);
    assert_eq!(
        (&tagged[0]["run"], &tagged[0]["note"]),
        (&json!(names[0]), &json!("as submitted"))
    );
    assert_eq!(listed(&context, &["--failed"]).len(), 1);
    assert_eq!(listed(&context, &["--pipeline", "chain"]).len(), 2);
    assert_eq!(listed(&context, &["--manifest", "failing.toml"]).len(), 1);
    assert_eq!(listed(&context, &["-n", "1"])[0]["run"], names[2]);
    let table = context.run(&["runs"]).assert_code(0).stdout;
    assert!(
        table.lines().nth(3).unwrap().ends_with("paper, v1  as submitted"),
        "{table}"
    );
    context
        .run(&["runs", "tag", "paper", "v1", "--remove"])
        .assert_code(0);
    assert!(listed(&context, &["--tag", "v1"]).is_empty());

    let said = |arguments: &[&str]| context.filtered(&context.run(arguments).assert_code(2).stderr);
    insta::assert_snapshot!(said(&["runs", "tag", "absent", "x"]), @r"
    error: no recorded run of the store `cache` answers to `absent`
      help: `provenir runs` lists them; a run is named by the beginning of its name, its last four characters, a tag, or `last`
    ");
    insta::assert_snapshot!(said(&["runs", "tag", "last", "last"]), @r"
    error: `last` cannot be a tag
      help: a tag is letters, digits, `-`, `_` and `.`, at most 64 bytes, and not `last`
    ");
    assert!(said(&["runs", "note", "20", "x"]).starts_with("error: `20` means 3 runs; name one\n"));
}

#[test]
fn a_dirty_repository_is_shown_as_dirty_with_the_hash_of_what_differs() {
    let context = Context::new(CHAIN);
    git(&context, &["init", "--quiet"]);
    git(&context, &["add", "pipeline.toml"]);
    git(&context, &["commit", "--quiet", "-m", "x"]);
    context.executed(&[]);
    let mut diffs = Vec::new();
    for text in ["one", "two", "one"] {
        context.write("pipeline.toml", &format!("{CHAIN}\n# {text}\n"));
        context.executed(&["--force", "total"]);
        let run = &listed(&context, &["-n", "1"])[0];
        assert_eq!(run["git"]["dirty"], true);
        diffs.push(run["git"]["diff"].as_str().unwrap().to_owned());
    }
    assert_ne!(diffs[0], diffs[1]);
    assert_eq!(diffs[0], diffs[2]);
    let runs = listed(&context, &[]);
    assert_eq!(
        runs[3]["git"],
        json!({ "commit": runs[0]["git"]["commit"], "dirty": false })
    );
    let table = context.run(&["runs"]).assert_code(0).stdout;
    assert!(
        table.contains(&format!(", dirty (diff {})", &diffs[0][..12])),
        "{table}"
    );
}

#[test]
fn two_runs_are_compared_from_the_manifest_to_the_numbers() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.executed(&["--axis", "a=1,2", "--set", "stages.second.params.value=0.75"]);
    let runs = context.runs();
    let (old, new) = (runs[0].file_name().unwrap(), runs[1].file_name().unwrap());
    let told = context.run(&["diff", old, new]).assert_code(0).stdout;
    let told = context
        .filtered(&told)
        .replace(old, "[OLD]")
        .replace(new, "[NEW]");
    insta::assert_snapshot!(told, @r"
    from run [OLD] to run [NEW]

    manifest
      axes.a [1,2,3] → [1,2]
      stages.second.params.value 0.5 → 0.75

    environment
      arguments
        run --json
        → run --json --axis a=1,2 --set stages.second.params.value=0.75

    artifacts: 2 cells the same in both
      first[a=3]: only in the first
      second[a=1]: sum differs (value 0.5 → 0.75)
      second[a=2]: sum differs (value 0.5 → 0.75)
      second[a=3]: only in the first
      total: sum differs (input many changed (2 artifacts), no longer collects a=3)

    metrics (means of columns)
      cell             column  before  after  change
      second[a=1].sum  value   1.5     1.75   +0.25
      second[a=2].sum  value   2.5     2.75   +0.25
      total.sum        value   7.5     4.5    -3
    ");
    let outcome = context.run(&["diff", old, old, "--json"]).assert_code(0);
    let same: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(
        (&same["same"], &same["cells"], &same["manifest"]),
        (&json!(7), &json!({}), &json!([]))
    );
}

#[test]
fn what_a_run_has_no_result_of_is_told_with_the_reason() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "failing"
        stages.may = { kind = "fail", params = { message = "no luck", fails = false } }
        stages.after = { kind = "noop", inputs = { one = "may" }, params = { value = 1 } }
        stages.aside = { kind = "noop", params = { value = 7 } }
        "#,
    );
    context.executed(&[]);
    context
        .run(&["run", "--quiet", "--set", "stages.may.params.fails=true"])
        .assert_code(1);
    context.executed(&["--only", "aside", "--force", "aside"]);
    let names: Vec<String> = context
        .runs()
        .iter()
        .map(|run| run.file_name().unwrap().to_owned())
        .collect();
    let diff = |old: usize, new: usize| {
        let outcome = context.run(&["diff", &names[old], &names[new]]).assert_code(0);
        let (_, artifacts) = outcome.stdout.split_once("\nartifacts: ").unwrap();
        artifacts.to_owned()
    };
    insta::assert_snapshot!(diff(0, 1), @r"
    1 cell the same in both
      may: failed in the second: no luck
      after: did not run in the second, because may, which it needs, failed there
    ");
    insta::assert_snapshot!(diff(1, 0), @r"
    1 cell the same in both
      may: failed in the first: no luck
      after: did not run in the first, because may, which it needs, failed there
    ");
    insta::assert_snapshot!(diff(0, 2), @r"
    1 cell the same in both
      may: only in the first
      after: only in the first
    ");
}

#[test]
fn what_an_interrupted_run_did_not_come_to_is_told_as_such() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "interrupted"
        stages.slow = { kind = "sleep", params = { seconds = 0 } }
        stages.after = { kind = "noop", inputs = { one = "slow" }, params = { value = 1 } }
        "#,
    );
    context.executed(&[]);
    let mut running = context.start(&["--set", "stages.slow.params.seconds=600"]);
    running.wait_for("cell-started", "slow");
    running.signal(rustix::process::Signal::INT);
    running.finish();
    let runs = listed(&context, &[]);
    let told = context.run(&["diff", runs[1]["run"].as_str().unwrap(), "last"]);
    let (_, told) = told.stdout.split_once("\nartifacts: ").unwrap();
    insta::assert_snapshot!(told, @r"
    0 cells the same in both
      slow: was not finished in the second, which stopped before
      after: was not finished in the second, which stopped before
    ");
}

#[test]
fn metrics_of_tables_that_are_gone_are_missed_aloud() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let gone = context.object("second[a=2]");
    context.executed(&["--set", "stages.second.params.value=0.75"]);
    fs_err::remove_file(gone).unwrap();
    let runs = context.runs();
    let (old, new) = (runs[0].file_name().unwrap(), runs[1].file_name().unwrap());
    let told = context.run(&["diff", old, new]).assert_code(0).stdout;
    let (_, told) = told.split_once("\nmetrics (means of columns)\n").unwrap();
    insta::assert_snapshot!(told, @r"
      cell             column  before  after  change
      second[a=1].sum  value   1.5     1.75   +0.25
      second[a=3].sum  value   3.5     3.75   +0.25
      total.sum        value   7.5     8.25   +0.75

    metrics that are not compared
      second[a=2].sum, because it is not in the store any more
    ");
    let outcome = context.run(&["diff", old, new, "--json"]).assert_code(0);
    let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(
        found["not_compared"],
        json!([{ "cell": "second[a=2]", "output": "sum", "reason": "it is not in the store any more" }])
    );
}

/// A file that was never added to the repository is in no commit, which says nothing of it.
#[test]
fn files_that_the_repository_does_not_hold_are_named_beside_the_commit() {
    let context = Context::new(
        r#"
        format = 1
        extends = "base/common.toml"
        axes.name = ["a", "b", "kept"]
        [stages.read]
        kind = "noop"
        params = { file = "data/${name}.txt" }
        [stages.elsewhere]
        kind = "noop"
        params = { file = "/etc/passwd" }
        "#,
    );
    for name in ["a", "b", "kept"] {
        context.write(&format!("data/{name}.txt"), name);
    }
    context.write("base/common.toml", "format = 1\nextends = \"../root.toml\"\n");
    context.write("root.toml", "format = 1\npipeline.name = \"files\"\n");
    context.write(".gitignore", "data/b.txt\n");
    git(&context, &["init", "--quiet"]);
    git(&context, &["add", "data/kept.txt", "root.toml", ".gitignore"]);
    git(&context, &["commit", "--quiet", "-m", "x"]);
    context.executed(&[]);
    let untracked = || listed(&context, &["-n", "1"])[0]["git"]["untracked"].clone();
    assert_eq!(
        untracked(),
        json!(["pipeline.toml", "base/common.toml", "data/a.txt", "data/b.txt"])
    );
    let table = context.run(&["runs"]).assert_code(0).stdout;
    assert!(table.contains(", untracked: pipeline.toml and 3 more"), "{table}");
    let export = context
        .run(&["export", "--format", "in-toto", "--out", "-"])
        .assert_code(0)
        .stdout;
    assert!(export.contains("\"data/b.txt\""), "{export}");
    git(&context, &["add", "--force", "pipeline.toml", "base", "data"]);
    git(&context, &["commit", "--quiet", "-m", "y"]);
    context.executed(&["--force", "read"]);
    assert_eq!(untracked(), Value::Null);
    let runs = listed(&context, &[]);
    let names = [1, 0].map(|run: usize| runs[run]["run"].as_str().unwrap());
    let told = context.run(&["diff", names[0], names[1]]).assert_code(0).stdout;
    assert!(
        told.contains(", untracked: pipeline.toml and 3 more\n    → "),
        "{told}"
    );
}

/// What a later run gave beside the result that counts is nothing that earlier runs had.
#[test]
fn a_divergence_is_of_its_own_run_alone() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "diverging"
        [stages.random]
        kind = "command"
        params = { argv = ["sh", "-c", "date +%s%N > out.txt"], outputs.out.file = "out.txt" }
        [stages.other]
        kind = "noop"
        params = { value = 1 }
        "#,
    );
    context.executed(&[]);
    context.executed(&["--set", "stages.other.params.value=2"]);
    let runs = context.runs();
    let names: Vec<String> = runs
        .iter()
        .map(|run| run.file_name().unwrap().to_owned())
        .collect();
    let diff = |old: &str, new: &str| context.run(&["diff", old, new]).assert_code(0).stdout;
    let before = diff(&names[0], &names[1]);
    assert!(before.contains("artifacts: 1 cell the same in both"), "{before}");
    context.executed(&["--force", "random"]);
    assert_eq!(diff(&names[0], &names[1]), before);
    let last = context.runs().last().unwrap().file_name().unwrap().to_owned();
    let diverged = diff(&names[0], &last);
    assert!(diverged.contains("random: out differs"), "{diverged}");
}

#[test]
fn renamed_stages_are_paired_and_runs_that_executed_nothing_have_no_platform() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.write("pipeline.toml", &CHAIN.replace("first", "begin"));
    assert_eq!(context.executed(&[]), [""; 0]);
    let names: Vec<String> = context
        .runs()
        .iter()
        .map(|run| run.file_name().unwrap().to_owned())
        .collect();
    let outcome = context.run(&["diff", &names[0], &names[1]]).assert_code(0);
    let told = &outcome.stdout;
    for a in 1..=3 {
        let line = format!("  begin[a={a}]: the same as `first[a={a}]`, which it was named before\n");
        assert!(told.contains(&line), "{told}");
    }
    assert!(
        told.contains("\nartifacts: 7 cells the same in both, 3 of them under another name\n"),
        "{told}"
    );
    assert!(
        !told.contains("only in the") && !told.contains("platform"),
        "{told}"
    );
}

/// A cell that failed has an action, too, by which it is known under another name.
#[test]
fn cells_that_failed_are_paired_when_they_are_renamed() {
    let manifest = |name: &str, fails: bool, more: &str| {
        format!(
            "format = 1\npipeline.name = \"failing\"\nstages.steady = {{ kind = \"noop\" }}\n\
             stages.{name} = {{ kind = \"fail\", params = {{ message = \"no luck\", fails = {fails} }} }}\n{more}"
        )
    };
    let context = Context::new(&manifest("before", true, ""));
    context.run(&["run", "--quiet"]).assert_code(1);
    context.write("pipeline.toml", &manifest("after", true, ""));
    context.run(&["run", "--quiet"]).assert_code(1);
    let another = "stages.another = { kind = \"fail\", params = { message = \"nor here\" } }\n";
    context.write("pipeline.toml", &manifest("after", false, another));
    context.run(&["run", "--quiet"]).assert_code(1);
    let names: Vec<String> = context
        .runs()
        .iter()
        .map(|run| run.file_name().unwrap().to_owned())
        .collect();
    let diff = |old: usize, new: usize| {
        let outcome = context.run(&["diff", &names[old], &names[new]]).assert_code(0);
        let (_, artifacts) = outcome.stdout.split_once("\nartifacts: ").unwrap();
        artifacts.to_owned()
    };
    insta::assert_snapshot!(diff(0, 1), @r"
    1 cell the same in both
      after: the same action as `before`, which it was named before, failed in both: no luck
    ");
    insta::assert_snapshot!(diff(1, 2), @r"
    1 cell the same in both
      after: failed in the first: no luck
      another: only in the second, where it failed: nor here
    ");
    insta::assert_snapshot!(diff(2, 0), @r"
    1 cell the same in both
      after: only in the first
      another: only in the first, where it failed: nor here
      before: only in the second, where it failed: no luck
    ");
    let outcome = context
        .run(&["diff", &names[0], &names[1], "--json"])
        .assert_code(0);
    let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(
        found["cells"]["after"],
        json!({ "change": "unfinished", "run": "both", "reason": "failed", "message": "no luck", "old": "before" })
    );
}

/// Nothing is wrong with a measurement that comes out otherwise.
#[test]
fn what_was_measured_again_is_not_called_unrepeatable() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "measured"
        [stages.timed]
        kind = "command"
        params = { argv = ["sh", "-c", "date +%s%N > out.txt"], outputs.out = { file = "out.txt", volatile = true } }
        "#,
    );
    context.executed(&[]);
    context.executed(&["--force", "timed"]);
    let runs = context.runs();
    let names: Vec<&str> = runs.iter().map(|run| run.file_name().unwrap()).collect();
    let told = context.run(&["diff", names[0], names[1]]).assert_code(0).stdout;
    assert!(
        told.ends_with(
            "\n  timed: out differs (the same action; it is volatile, as a measured time, and was measured again)\n"
        ),
        "{told}"
    );
}

#[test]
fn a_killed_run_is_listed_with_what_its_records_tell() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "killed"
        stages.quick = { kind = "noop" }
        stages.slow = { kind = "sleep", params = { seconds = 600 }, inputs = { one = "quick" } }
        "#,
    );
    let mut running = context.start(&[]);
    running.wait_for("cell-started", "slow");
    running.signal(rustix::process::Signal::KILL);
    running.finish();
    let run = &listed(&context, &[])[0];
    assert_eq!(run["state"], "no end recorded: killed, or the disk failed");
    assert_eq!(
        (&run["summary"], &run["so_far"]["ran"]),
        (&Value::Null, &json!(1))
    );
    assert!(run["so_far"]["seconds"].as_f64().unwrap() > 0.0, "{run}");
    let table = context.run(&["runs"]).assert_code(0).stdout;
    assert!(table.contains("1 cell executed"), "{table}");
    assert!(table.lines().next().unwrap().contains("time"), "{table}");
    let none = context.run(&["runs", "--pipeline", "x"]).assert_code(0).stderr;
    assert_eq!(
        none,
        "no such run is recorded; one that finds nothing to do leaves no record of its own\n"
    );
}

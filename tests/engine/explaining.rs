use serde_json::Value;

use crate::context::{CHAIN, Context, TIMES, eventually};

/// What a command says, with runs and times taken out.
fn said(context: &Context, arguments: &[&str]) -> String {
    let outcome = context.run(arguments).assert_code(0);
    let mut text = context.filtered(&outcome.stdout);
    for (number, run) in context.runs().iter().enumerate() {
        text = text.replace(run.file_name().unwrap(), &format!("[RUN {}]", number + 1));
    }
    let mut parts = text.split(" (20");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    without_times(&plain)
}

fn without_times(text: &str) -> String {
    let mut parts = text.split(" on 20");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(" on [TIME]");
        plain.push_str(part.split_once(" UTC").map_or(part, |(_, rest)| rest));
    }
    plain
}

const HALF: [&str; 2] = ["--set", "stages.second.params.value=0.75"];

#[test]
fn a_cell_that_never_ran_says_so() {
    let context = Context::new(CHAIN);
    insta::assert_snapshot!(said(&context, &["why", "first"]), @r"
    first[a=1], first[a=2], first[a=3] (3 cells), each
      has to run, because no run has finished it yet
    ");
    insta::assert_snapshot!(said(&context, &["why", "total"]), @r"
    total
      whether it has to run is known only when these have run:
        first[a=1], first[a=2], first[a=3]: has to run, because no run has finished it yet
    ");
}

#[test]
fn what_changed_is_told_before_it_runs() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    insta::assert_snapshot!(said(&context, &[&["why", "second[a=2]"], &HALF[..]].concat()), @r"
    second[a=2]
      has to run, because this changed since run [RUN 1]:
        value 0.5 → 0.75
    ");
    let set = [
        "--set",
        "stages.first.params.value=7",
        "--set",
        "stages.total.params.value=1",
    ];
    insta::assert_snapshot!(said(&context, &[&["why", "total"], &set[..]].concat()), @r"
    total
      of its own, this changed since run [RUN 1]:
        value 0.0, the default → 1.0
      whether it has to run is known only when these have run:
        first[a=1]: has to run, because this changed since run [RUN 1]:
          value 1.0 → 7.0
        first[a=2]: has to run, because this changed since run [RUN 1]:
          value 2.0 → 7.0
        first[a=3]: has to run, because this changed since run [RUN 1]:
          value 3.0 → 7.0
    ");
}

#[test]
fn a_cell_of_a_new_axis_value_is_held_against_the_nearest_of_its_kind() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let told = said(&context, &["why", "first[a=4]", "--axis", "a=1,2,3,4"]);
    assert!(
        told.starts_with(
            "first[a=4]\n  has to run, because no run has finished it yet; the nearest that did run is `"
        ),
        "{told}"
    );
    assert!(told.ends_with(" → 4.0\n"), "{told}");
}

#[test]
fn what_changed_is_told_long_after_back_to_the_root() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.executed(&HALF);
    context.executed(&HALF);
    insta::assert_snapshot!(said(&context, &[&["why", "total"], &HALF[..]].concat()), @r"
    total
      is up to date: run [RUN 2] computed it
      it ran then, because this had changed since run [RUN 1]:
        input many changed (3 artifacts)
          from second[a=1], second[a=2], second[a=3], because this changed:
            value 0.5 → 0.75
      root cause:
        value 0.5 → 0.75, in second[a=1], second[a=2], second[a=3]
    ");
    insta::assert_snapshot!(said(&context, &["why", "total"]), @r"
    total
      is up to date: run [RUN 1] computed it
      it ran then, because no earlier run had it
    ");
}

#[test]
fn cells_that_became_one_action_are_told_apart_by_what_they_were() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let set = ["--axis", "a=1,2", "--set", "stages.first.params.value=9"];
    context.executed(&set);
    insta::assert_snapshot!(said(&context, &[&["why", "second[a=2]"], &set[..]].concat()), @r"
    second[a=2]
      is up to date: run [RUN 2] computed it as `second[a=1]`
      it ran then, because this had changed since run [RUN 1]:
        input one changed
          from first[a=2], because this changed:
            value 2.0 → 9.0
      root cause:
        value 2.0 → 9.0, in first[a=2]
    ");
    let total = said(&context, &[&["why", "total"], &set[..]].concat());
    for root in [
        "value 1.0 → 9.0, in first[a=1]\n",
        "value 2.0 → 9.0, in first[a=2]\n",
    ] {
        assert!(total.contains(root), "{total}");
    }
}

#[test]
fn what_was_collected_is_still_known() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.executed(&HALF);
    context
        .run(&["gc", "--yes", "--keep-runs", "1", "--grace", "0"])
        .assert_code(0);
    let expected = "
    why
      second, all 3 cells: value 0.75 → 0.5; `provenir gc` removed an earlier result of the same on [TIME]
      total: depends on what `second` gives
    ";
    let told = without_times(&context.run(&["plan"]).assert_code(0).stdout);
    let reasons: Vec<&str> = told
        .split("\nwhy\n")
        .nth(1)
        .unwrap()
        .lines()
        .map(str::trim)
        .collect();
    assert_eq!(
        reasons,
        expected
            .lines()
            .map(str::trim)
            .filter(|line| !["", "why"].contains(line))
            .collect::<Vec<_>>()
    );
    // `total` was published, and what it was made from was not: the third run computes that again.
    context.executed(&[]);
    fs_err::remove_dir_all(context.path("out")).unwrap();
    context
        .run(&["gc", "--yes", "--keep-runs", "0", "--grace", "0"])
        .assert_code(0);
    insta::assert_snapshot!(said(&context, &["why", "first[a=1]"]), @r"
    first[a=1]
      has to run, because its result, which run [RUN 3] had, is no longer in the store: `provenir gc` removed it on [TIME]
    ");
    fs_err::remove_file(context.path("cache/index-v1.sqlite")).unwrap();
    let told = without_times(&context.run(&["plan"]).assert_code(0).stdout);
    assert!(
        told.contains(
            "first, all 3 cells: its result is no longer in the store: `provenir gc` removed it on [TIME]"
        ),
        "{told}"
    );
    // Long after, too; and what was not collected is not put down to a collection.
    context.executed(&[]);
    insta::assert_snapshot!(said(&context, &["why", "first[a=1]"]), @r"
    first[a=1]
      is up to date: run [RUN 4] computed it
      it ran then, because its result, which run [RUN 3] had, was no longer in the store: `provenir gc` had removed it on [TIME]
    ");
    fs_err::remove_dir_all(context.path("cache/results-v1")).unwrap();
    fs_err::remove_file(context.path("cache/index-v1.sqlite")).unwrap();
    insta::assert_snapshot!(said(&context, &["why", "first[a=1]"]), @r"
    first[a=1]
      has to run, because its result, which run [RUN 4] had, is no longer in the store; no record says what removed it
    ");
    let told = context.run(&["plan"]).assert_code(0).stdout;
    assert!(
        told.contains("its result is no longer in the store; no record says what removed it"),
        "{told}"
    );
}

#[test]
fn a_changed_file_is_told_with_its_path_and_its_content() {
    let context = Context::new(&CHAIN.replace(
        "params = { value = 0.5 }",
        "params = { value = 0.5, file = \"data.txt\" }",
    ));
    context.write("data.txt", "one");
    context.write("other.txt", "three");
    context.executed(&[]);
    context.write("data.txt", "three");
    let digest = |text: &str| provenir_api::Digest::of(text.as_bytes()).short();
    let changed = format!(
        "file: the content of `data.txt` changed, {} → {}",
        digest("one"),
        digest("three")
    );
    let raw = |arguments: &[&str]| context.run(arguments).assert_code(0).stdout;
    for told in [raw(&["plan"]), raw(&["why", "second[a=1]"])] {
        assert!(told.contains(&changed), "{told}");
    }
    let set = ["--set", "stages.second.params.file='other.txt'"];
    let told = raw(&[&["why", "second[a=1]"], &set[..]].concat());
    let renamed = format!(
        "file: `data.txt` (content {}) → `other.txt` (content {})",
        digest("one"),
        digest("three")
    );
    assert!(told.contains(&renamed), "{told}");
    // And downstream, long after.
    context.executed(&[]);
    let told = raw(&["why", "total"]);
    assert_eq!(told.matches(&changed).count(), 2, "{told}");
    let why: Value = serde_json::from_str(&raw(&["why", "second[a=1]", "--json"])).unwrap();
    assert_eq!(
        why[0]["changes"][0]["source"]["new"],
        serde_json::json!({
            "content": provenir_api::Digest::of(b"three").hex(),
            "path": "data.txt",
        })
    );
}

#[test]
fn what_was_lost_is_named() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    fs_err::remove_file(context.object("first[a=1]")).unwrap();
    insta::assert_snapshot!(said(&context, &["why", "first[a=1]"]), @r"
    first[a=1]
      has to run, because its artifact [DIGEST] is not in the store any more
    ");
    context.executed(&["--force", "first[a=2]"]);
    insta::assert_snapshot!(said(&context, &["why", "first[a=2]"]), @r"
    first[a=2]
      is up to date: run [RUN 2] computed it
      it ran then although it was the same action in run [RUN 1], because that was asked for (--force)
    ");
    insta::assert_snapshot!(said(&context, &["why", "first[a=1]"]), @r"
    first[a=1]
      is up to date: run [RUN 2] computed it
      it ran then, because its artifact [DIGEST] was not in the store any more; run [RUN 1] had it
    ");
    fs_err::remove_dir_all(context.path("cache/runs-v1")).unwrap();
    insta::assert_snapshot!(said(&context, &["why", "first[a=2]"]), @r"
    first[a=2]
      is up to date; no run recorded here computed it: its result was brought here, or the record was removed
    ");
}

#[test]
fn what_was_damaged_and_made_again_is_told_as_that() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.executed(&HALF);
    let object = context.object("first[a=2]");
    crate::context::overwrite(&object, b"damaged");
    insta::assert_snapshot!(said(&context, &["why", "first[a=2]"]), @r"
    first[a=2]
      has to run, because its artifact [DIGEST] is damaged: its bytes are not those that were stored
    ");
    assert_eq!(context.executed(&[]), ["first[a=2]"]);
    insta::assert_snapshot!(said(&context, &["why", "first[a=2]"]), @r"
    first[a=2]
      is up to date: run [RUN 3] computed it
      it ran then, because its artifact [DIGEST] was damaged (its bytes were not those that had been stored); run [RUN 2] had it
    ");
    let found: Value = serde_json::from_str(
        &context
            .run(&["why", "first[a=2]", "--json"])
            .assert_code(0)
            .stdout,
    )
    .unwrap();
    assert_eq!(
        found[0]["reason"],
        serde_json::json!({ "damaged": object.file_name().unwrap() })
    );
    // What a cell finds damaged when it reads it.
    let object = context.object("first[a=3]");
    let stamp = fs_err::metadata(&object).unwrap().modified().unwrap();
    let mut bytes = fs_err::read(&object).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    crate::context::overwrite(&object, &bytes);
    let file = fs_err::OpenOptions::new().write(true).open(&object).unwrap();
    file.into_file().set_modified(stamp).unwrap();
    fs_err::remove_file(context.path("cache/index-v1.sqlite")).unwrap();
    let forced = ["--force", "second[a=3]"];
    assert_eq!(context.executed(&forced), ["first[a=3]", "second[a=3]"]);
    let told = said(&context, &["why", "first[a=3]"]);
    assert!(told.contains("was damaged (its bytes were not those"), "{told}");
    // A record that does not say why is told as one.
    for run in context.runs() {
        let path = run.join("records.jsonl");
        let records = fs_err::read_to_string(&path).unwrap();
        let stripped: Vec<String> = records
            .lines()
            .map(|line| {
                let mut record: Value = serde_json::from_str(line).unwrap();
                record.as_object_mut().unwrap().remove("reason");
                record.to_string() + "\n"
            })
            .collect();
        fs_err::write(&path, stripped.concat()).unwrap();
    }
    let told = said(&context, &["why", "first[a=3]"]);
    assert!(
        told.contains("it was forced, or its result had been lost; the record does not say which"),
        "{told}"
    );
}

#[test]
fn what_follows_a_measurement_that_was_repeated_blames_nobody() {
    let context = Context::new(TIMES);
    context.executed(&[]);
    fs_err::remove_file(context.object("time")).unwrap();
    assert_eq!(context.executed(&[]), ["after", "time"]);
    let told = said(&context, &["why", "after"]);
    assert!(
        told.contains("from time, which was measured again, because its artifact [DIGEST] was not in the store any more\n"),
        "{told}"
    );
}

#[test]
fn a_result_of_another_manifest_is_told_as_that() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let renamed = CHAIN
        .replace("[stages.second]", "[stages.renamed]")
        .replace("many = \"second\"", "many = \"renamed\"");
    context.write("other.toml", &renamed);
    insta::assert_snapshot!(said(&context, &["why", "renamed[a=1]", "other.toml"]), @r"
    renamed[a=1]
      is up to date: run [RUN 1] computed it as `second[a=1]`
      it ran then, because no earlier run had it
    ");
}

#[test]
fn programs_read_reasons_as_json() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let outcome = context
        .run(&[&["why", "second[a=1]", "--json"], &HALF[..]].concat())
        .assert_code(0);
    let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(found[0]["cell"], "second[a=1]");
    assert_eq!(found[0]["reason"], "changed");
    assert_eq!(
        found[0]["changes"][0]["parameter"],
        serde_json::json!({ "pointer": "/value", "old": 0.5, "new": 0.75 })
    );
}

#[test]
fn asking_why_of_nothing_is_a_wrong_request() {
    let context = Context::new(CHAIN);
    for (cell, message) in [("absent", "there is no stage"), ("total.sum", "names an output")] {
        let outcome = context.run(&["why", cell]).assert_code(2);
        assert!(outcome.stderr.contains(message), "{outcome:#?}");
    }
}

#[test]
fn what_is_collected_no_more_is_named_against_the_latest_run() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.executed(&["--axis", "a=1,2"]);
    // The latest run found everything, and had all three again.
    context.executed(&[]);
    insta::assert_snapshot!(said(&context, &["why", "total", "--axis", "a=1,3,4"]), @r"
    total
      of its own, this changed since run [RUN 3]:
        input many also collects a=4, no longer collects a=2
      whether it has to run is known only when these have run:
        first[a=4]: has to run, because no run has finished it yet; the nearest that did run is `first[a=1]` of run [RUN 3], from which this differs:
          value 1.0 → 4.0
    ");
    insta::assert_snapshot!(said(&context, &["why", "total", "--axis", "a=1,3"]), @r"
    total
      has to run, because this changed since run [RUN 3]:
        input many no longer collects a=2
    ");
}

/// With 0, `passed` gives what `base` gave.
const PASSED_ON: &str = r#"
format = 1

[pipeline]
name = "passed-on"

[axes]
more = [0, 1]

[stages.base]
kind = "noop"
params = { value = 5 }

[stages.passed]
kind = "noop"
inputs = { one = "base" }
params = { value = "${more}" }

[stages.last]
kind = "noop"
inputs = { one = "passed" }
"#;

#[test]
fn a_stage_that_passes_values_on_is_not_taken_for_the_one_that_made_them() {
    let context = Context::new(PASSED_ON);
    context.executed(&[]);
    context.executed(&["--only", "passed", "--axis", "more=0,1,2"]);
    insta::assert_snapshot!(said(&context, &["why", "last[more=2]", "--axis", "more=0,1,2"]), @r"
    last[more=2]
      has to run, because no run has finished it yet; the nearest that did run is `last[more=0]` of run [RUN 1], from which this differs:
        input one changed
          from passed[more=0] → passed[more=2], because this changed:
            value 0.0, the default → 2.0
      root cause:
        value 0.0, the default → 2.0, in passed[more=2]
    ");
    context.executed(&["--only", "base", "--set", "stages.base.params.value=9"]);
    insta::assert_snapshot!(said(&context, &["why", "passed[more=0]", "--set", "stages.base.params.value=9"]), @r"
    passed[more=0]
      has to run, because this changed since run [RUN 2] with `--axis more=0,1,2 --only passed`:
        input one changed
          from base, because this changed:
            value 5.0 → 9.0
      root cause:
        value 5.0 → 9.0, in base
    ");
}

#[test]
fn what_was_had_last_counts_whoever_computed_it() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.executed(&HALF);
    // Executes nothing, and is what cells were last all the same.
    assert!(context.executed(&[]).is_empty());
    let set = ["--set", "stages.second.params.value=0.9"];
    let told = context.run(&[&["plan"], &set[..]].concat()).assert_code(0).stdout;
    assert!(
        told.contains("value 0.5 → 0.9") && !told.contains("0.75"),
        "{told}"
    );
    let told = said(&context, &[&["why", "second[a=1]"], &set[..]].concat());
    assert!(
        told.contains("value 0.5 → 0.9") && !told.contains("0.75"),
        "{told}"
    );
}

#[test]
fn attempts_that_were_not_finished_are_told() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "failing"
        stages.bad = { kind = "fail", params = { message = "no such luck" } }
        stages.good = { kind = "noop" }
        "#,
    );
    context.run(&["run"]).assert_code(1);
    let told = said(&context, &["why", "bad"]);
    insta::assert_snapshot!(told, @r"
    bad
      has to run, because no run has finished it yet
      an earlier attempt failed in run [RUN 1]: no such luck
    ");
    let told = said(&context, &["plan"]);
    assert!(
        told.contains("failed in run [RUN 1]: no such luck") && !told.contains("never run"),
        "{told}"
    );
    // What a killed attempt leaves.
    let why = context.run(&["why", "bad", "--json"]).assert_code(0).stdout;
    let why: Value = serde_json::from_str(&why).unwrap();
    let key = why[0]["key"].as_str().unwrap();
    context.write(&format!("cache/partial-v1/{key}/checkpoint"), "half of it");
    let told = said(&context, &["why", "bad"]);
    assert!(told.contains("goes on from a checkpoint"), "{told}");
}

#[test]
fn cells_that_were_one_action_are_held_against_what_each_was_itself() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "alike"
        axes.k = [0, 1]
        stages.t = { kind = "noop", params = { file = "d-${k}.txt" } }
        stages.u = { kind = "noop", inputs = { one = "t" } }
        "#,
    );
    context.write("d-0.txt", "same");
    context.write("d-1.txt", "same");
    context.executed(&[]);
    context.write("d-1.txt", "another");
    let changed = "the content of `d-1.txt` changed";
    let why = || said(&context, &["why", "t[k=1]"]);
    assert!(why().contains(changed), "{}", why());
    let plan = said(&context, &["plan"]);
    assert!(plan.contains(changed) && !plan.contains("d-0.txt"), "{plan}");
    context.executed(&[]);
    for cell in ["t[k=1]", "u[k=1]"] {
        let why = said(&context, &["why", cell]);
        assert!(why.contains(changed) && !why.contains("k=0"), "{why}");
    }
    let runs: Vec<String> = context
        .runs()
        .iter()
        .map(|run| run.file_name().unwrap().to_owned())
        .collect();
    let diff = context.run(&["diff", &runs[0], &runs[1]]).assert_code(0).stdout;
    assert!(diff.contains(changed) && !diff.contains("d-0.txt"), "{diff}");
}

/// Branches that gave equal things before are not taken for each other.
#[test]
fn a_branch_is_held_against_itself_where_others_gave_the_same() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "branches"
        axes.kind = ["noise", "swap"]
        stages.train = { kind = "noop", inputs = { one = "corrupt" } }
        [stages.corrupt]
        kind = "noop"
        [[stages.corrupt.override]]
        where = { kind = "noise" }
        params = { value = 1 }
        [[stages.corrupt.override]]
        where = { kind = "swap" }
        params = { value = 1 }
        "#,
    );
    context.executed(&[]);
    let manifest = String::from_utf8(context.read("pipeline.toml")).unwrap();
    let (head, tail) = manifest.rsplit_once("value = 1").unwrap();
    context.write("pipeline.toml", &format!("{head}value = 2{tail}"));
    context.executed(&[]);
    let why = said(&context, &["why", "train[kind=swap]"]);
    assert!(
        why.contains("from corrupt[kind=swap], because this changed:\n        value 1.0 → 2.0")
            && !why.contains("noise"),
        "{why}"
    );
}

#[test]
fn the_nearest_of_its_kind_is_told_long_after_too() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let axis = ["--axis", "a=1,2,3,4"];
    let before = said(&context, &[&["why", "first[a=4]"], &axis[..]].concat());
    assert!(
        before.contains("the nearest that did run is `first[a=1]` of run [RUN 1], from which this differs"),
        "{before}"
    );
    context.executed(&axis);
    context.executed(&["--axis", "a=4,5"]);
    let after = said(&context, &[&["why", "first[a=4]"], &axis[..]].concat());
    assert!(
        after.contains("the nearest that had run was `first[a=1]` of run [RUN 1], from which this differed")
            && after.contains("value 1.0 → 4.0"),
        "{after}"
    );
}

/// Stages `s0` to `s7` that differ in one value, and one that takes them all.
fn many(value: impl Fn(usize) -> f64) -> String {
    let mut text = "format = 1\npipeline.name = \"many\"\n".to_owned();
    for number in 0..8 {
        let value = value(number);
        text.push_str(&format!(
            "stages.s{number} = {{ kind = \"noop\", params = {{ value = {value:?} }} }}\n"
        ));
    }
    text + "stages.top = { kind = \"noop\", inputs = { many = [\"s0\", \"s1\", \"s2\", \"s3\", \"s4\", \"s5\", \"s6\", \"s7\"] } }\n"
}

#[test]
fn no_cause_is_left_out_before_and_after() {
    let context = Context::new(&many(|number| number as f64 + 0.5));
    context.executed(&[]);
    context.write("pipeline.toml", &many(|number| number as f64 + 10.5));
    let before = said(&context, &["why", "top"]);
    context.executed(&[]);
    let after = said(&context, &["why", "top"]);
    let root = after.split("root cause:").nth(1).unwrap();
    for number in 0..8 {
        let cause = format!("value {number}.5 → {}.5", number + 10);
        assert!(before.contains(&cause), "{before}");
        assert!(root.contains(&format!("{cause}, in s{number}")), "{after}");
    }
    let json = context.run(&["why", "top", "--json"]).assert_code(0).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["changes"][0]["upstream"].as_array().unwrap().len(), 8);
}

#[test]
fn what_is_reached_in_two_ways_has_one_cause() {
    let diamond = |value: f64| {
        format!(
            r#"
            format = 1
            pipeline.name = "diamond"
            stages.src = {{ kind = "noop", params = {{ value = {value:?} }} }}
            stages.mid = {{ kind = "noop", inputs = {{ one = "src" }} }}
            stages.side = {{ kind = "noop", inputs = {{ one = "mid" }}, params = {{ value = 2 }} }}
            stages.top = {{ kind = "noop", inputs = {{ many = ["side", "mid"] }} }}
            "#
        )
    };
    let context = Context::new(&diamond(1.0));
    context.executed(&[]);
    context.write("pipeline.toml", &diamond(9.0));
    context.executed(&[]);
    let why = said(&context, &["why", "top"]);
    let root = why.split("root cause:\n").nth(1).unwrap();
    assert_eq!(root, "    value 1.0 → 9.0, in src\n", "{why}");
    assert!(why.contains("as told above"), "{why}");
}

#[test]
fn another_name_or_another_origin_is_told_as_that() {
    let manifest = |inputs: &str| {
        format!(
            r#"
            format = 1
            pipeline.name = "names"
            stages.m = {{ kind = "noop", params = {{ value = 1 }} }}
            stages.u = {{ kind = "noop", params = {{ value = 7 }} }}
            stages.t = {{ kind = "noop", inputs = {{ {inputs} }} }}
            stages.after = {{ kind = "noop", inputs = {{ one = "t" }}, params = {{ value = 3 }} }}
            "#
        )
    };
    let context = Context::new(&manifest("many = [\"m\", \"u\"]"));
    context.executed(&[]);
    context.write("pipeline.toml", &manifest("many = [\"m\"]"));
    let why = said(&context, &["why", "t"]);
    assert!(
        why.contains("input many no longer collects u, m is called many now\n"),
        "{why}"
    );
    let context = Context::new(&manifest("one = \"m\""));
    context.executed(&[]);
    context.write("pipeline.toml", &manifest("one = \"u\""));
    context.executed(&[]);
    let why = said(&context, &["why", "after"]);
    let root = why.split("root cause:\n").nth(1).unwrap();
    assert_eq!(root, "    input one comes from u instead of m, in t\n", "{why}");
}

#[test]
fn a_cell_that_failed_is_held_against_what_it_was_then() {
    let manifest = |fails: &str| {
        format!(
            "format = 1\npipeline.name = \"mended\"\nstages.bad = {{ kind = \"fail\", params = {{ fails = {fails}, message = \"boom\" }} }}\n"
        )
    };
    let context = Context::new(&manifest("true"));
    context.run(&["run"]).assert_code(1);
    context.write("pipeline.toml", &manifest("false"));
    let plan = said(&context, &["plan"]);
    assert!(
        plan.contains("failed in run [RUN 1]; since then fails true"),
        "{plan}"
    );
    let why = said(&context, &["why", "bad"]);
    assert!(
        why.contains("it failed in run [RUN 1], since which this changed:"),
        "{why}"
    );
    assert!(why.contains("fails true"), "{why}");
    context.executed(&[]);
    let why = said(&context, &["why", "bad"]);
    assert!(
        why.contains("it had failed in run [RUN 1], since which this had changed:"),
        "{why}"
    );
}

#[test]
fn an_action_that_another_cell_was_is_not_told_as_new() {
    let manifest = |stage: &str| {
        format!(
            "format = 1\npipeline.name = \"two\"\naxes.x = [1, 2]\nstages.{stage} = {{ kind = \"noop\", params = {{ value = \"${{x}}\" }} }}\n"
        )
    };
    let context = Context::new(&manifest("c"));
    context.executed(&[]);
    context.write("two.toml", &manifest("d"));
    assert_eq!(context.executed(&["two.toml", "--force", "d[x=1]"]), ["d[x=1]"]);
    insta::assert_snapshot!(said(&context, &["why", "d[x=1]", "two.toml"]), @r"
    d[x=1]
      is up to date: run [RUN 2] computed it
      it ran then although it was the same action in run [RUN 1], as `c[x=1]`, because that was asked for (--force)
    ");
    // Nor is it after a collection.
    context.write("pipeline.toml", &manifest("e"));
    context
        .run(&["gc", "--yes", "--keep-runs", "0", "--grace", "0"])
        .assert_code(0);
    fs_err::remove_file(context.path("two.toml")).unwrap();
    insta::assert_snapshot!(without_times(&said(&context, &["why", "e[x=2]"])), @r"
    e[x=2]
      has to run, because its result, which run [RUN 2] had, as `d[x=2]`, is no longer in the store: `provenir gc` removed it on [TIME]
    ");
    let plan = without_times(&context.run(&["plan"]).assert_code(0).stdout);
    assert!(
        plan.contains("its result is no longer in the store: `provenir gc` removed it"),
        "{plan}"
    );
    assert_eq!(context.executed(&[]).len(), 2);
    insta::assert_snapshot!(without_times(&said(&context, &["why", "e[x=2]"])), @r"
    e[x=2]
      is up to date: run [RUN 3] computed it
      it ran then, because its result, which run [RUN 2] had, as `d[x=2]`, was no longer in the store: `provenir gc` had removed it on [TIME]
    ");
}

#[test]
fn a_renamed_stage_is_no_cause() {
    let manifest = |name: &str, value: u8| {
        format!(
            "format = 1\npipeline.name = \"renamed\"\nstages.{name} = {{ kind = \"noop\", params = {{ value = {value} }} }}\nstages.fit = {{ kind = \"noop\", inputs = {{ one = \"{name}\" }} }}\nstages.figure = {{ kind = \"noop\", inputs = {{ one = \"fit\" }}, params = {{ value = 1 }} }}\n"
        )
    };
    let context = Context::new(&manifest("prep", 1));
    context.executed(&[]);
    context.write("pipeline.toml", &manifest("clean", 2));
    context.executed(&[]);
    insta::assert_snapshot!(said(&context, &["why", "figure"]), @r"
    figure
      is up to date: run [RUN 2] computed it
      it ran then, because this had changed since run [RUN 1]:
        input one changed
          from fit, because this changed:
            input one changed
              from prep → clean, because this changed:
                value 1.0 → 2.0
      root cause:
        value 1.0 → 2.0, in clean
    ");
}

#[test]
fn options_of_the_run_that_is_compared_with_are_named() {
    let context = Context::new(CHAIN);
    context.executed(&HALF);
    let why = said(&context, &["why", "second[a=1]"]);
    assert!(
        why.contains("this changed since run [RUN 1] with `--set stages.second.params.value=0.75`:\n"),
        "{why}"
    );
    let other = ["why", "second[a=1]", "--set", "stages.second.params.value=0.9"];
    let why = said(&context, &other);
    assert!(why.contains("run [RUN 1] with `--set"), "{why}");
    let why = said(&context, &[&["why", "second[a=1]"][..], &HALF].concat());
    assert!(!why.contains("--set"), "{why}");
}

#[test]
fn an_attempt_that_was_cut_short_is_told() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "napping"
        stages.nap = { kind = "sleep", params = { seconds = 600 } }
        "#,
    );
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::KILL] {
        let mut running = context.start(&[]);
        running.wait_for("cell-progress", "nap");
        running.signal(signal);
        running.finish();
        eventually("the end of the run", || {
            let plan = context.run(&["plan"]).assert_code(0).stdout;
            let run = context.runs().last().unwrap().file_name().unwrap().to_owned();
            plan.contains(&format!("nap: was cut short in run {run}\n"))
        });
        let why = context.run(&["why", "nap"]).assert_code(0).stdout;
        assert!(
            why.contains("  an earlier attempt was cut short in run "),
            "{why}"
        );
    }
    // Nothing is known of how long a run took that was killed before any cell ended.
    let table = context.run(&["runs", "-n", "1"]).assert_code(0).stdout;
    assert!(!table.contains("0.00 s"), "{table}");
}

#[test]
fn what_took_the_place_of_what_was_lost_is_told_as_that() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "random"
        [stages.random]
        kind = "command"
        params = { argv = ["sh", "-c", "date +%s%N > out.txt"], outputs.out.file = "out.txt" }
        "#,
    );
    context.executed(&[]);
    fs_err::remove_file(context.object("random.out")).unwrap();
    assert_eq!(context.executed(&[]), ["random"]);
    let why = said(&context, &["why", "random"]);
    assert!(
        why.contains("run [RUN 1] gave another result for output out, object [DIGEST]; it is not in the store any more\n"),
        "{why}"
    );
    // Nothing computes that again, and nothing need.
    let verified = context.run(&["verify"]).assert_code(0).stdout;
    assert!(verified.ends_with("nothing is wrong\n"), "{verified}");
}

/// Of what differs as little, the same cell of another manifest comes first.
#[test]
fn the_nearest_is_the_cell_of_the_same_name() {
    let manifest = |name: &str, w: u8| {
        format!(
            r#"
            format = 1
            pipeline.name = "{name}"
            axes.r = ["h", "w"]
            stages.src = {{ kind = "noop", params = {{ value = 3 }}, override = [{{ where = {{ r = "w" }}, params = {{ value = {w} }} }}], over = ["r"] }}
            stages.fin = {{ kind = "noop", inputs = {{ one = "src" }}, params = {{ value = 1 }} }}
            "#
        )
    };
    let context = Context::new(&manifest("one", 2));
    context.executed(&[]);
    context.write(
        "later.toml",
        &manifest("two", 2).replace("value = 3", "value = 4"),
    );
    context.executed(&["later.toml"]);
    context.write("child.toml", &manifest("three", 1));
    context.executed(&["child.toml"]);
    let why = said(&context, &["why", "fin[r=w]", "child.toml"]);
    assert!(
        why.contains("the nearest that had run was `fin[r=w]` of run ")
            && why.ends_with("  root cause:\n    value 2.0 → 1.0, in src[r=w]\n"),
        "{why}"
    );
}

#[test]
fn causes_that_are_too_far_up_are_told_as_that() {
    let length = 300;
    let mut manifest =
        "format = 1\npipeline.name = \"deep\"\nstages.s0 = { kind = \"noop\", params = { value = 1 } }\n"
            .to_owned();
    for number in 1..length {
        manifest += &format!(
            "stages.s{number} = {{ kind = \"noop\", inputs = {{ one = \"s{}\" }}, params = {{ value = 1 }} }}\n",
            number - 1
        );
    }
    let context = Context::new(&manifest);
    context.executed(&[]);
    let set = ["--set", "stages.s0.params.value=1.5"];
    context.executed(&set);
    let root = |cell: &str| {
        let why = said(&context, &[&["why", cell][..], &set].concat());
        why.split("root cause:\n").nth(1).unwrap().to_owned()
    };
    assert_eq!(root("s200"), "    value 1.0 → 1.5, in s0\n");
    assert_eq!(
        root("s299"),
        "    input one changed, the causes of which are too far up: `provenir why s43` goes on from there, in s43\n"
    );
}

/// A result gets its name before its record is written.
#[test]
fn what_a_killed_run_could_not_record_is_known_from_its_events() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let run = context.runs().remove(0);
    fs_err::remove_file(run.join("outcome.json")).unwrap();
    let records = fs_err::read_to_string(run.join("records.jsonl")).unwrap();
    let (first, _) = records.split_once('\n').unwrap();
    fs_err::write(run.join("records.jsonl"), format!("{first}\n")).unwrap();
    for cell in ["first[a=2]", "total"] {
        let why = said(&context, &["why", cell]);
        assert!(why.contains("is up to date: run [RUN 1] computed it\n"), "{why}");
        let lineage = context.run(&["lineage", cell]).assert_code(0).stdout;
        assert!(
            lineage.contains(&format!("computed by run {} on ", run.file_name().unwrap()))
                && !lineage.contains("computed elsewhere"),
            "{lineage}"
        );
    }
    // What came from elsewhere it did not compute: nothing says that it began that.
    let events = fs_err::read_to_string(run.join("events.jsonl")).unwrap();
    let others: Vec<&str> = events
        .lines()
        .filter(|line| !(line.contains("cell-started") && line.contains("\"total\"")))
        .collect();
    fs_err::write(run.join("events.jsonl"), others.join("\n") + "\n").unwrap();
    let why = said(&context, &["why", "total"]);
    assert!(why.contains("no run recorded here computed it"), "{why}");
    // Where that cannot be understood, this run is left out, and nothing else.
    context.executed(&HALF);
    fs_err::write(run.join("events.jsonl"), "{\n").unwrap();
    for arguments in [
        &["why", "total"][..],
        &["lineage", "second[a=1]"],
        &["runs"],
        &["plan"],
    ] {
        let outcome = context.run(arguments).assert_code(0);
        assert!(!outcome.stdout.is_empty(), "{outcome:#?}");
    }
    let told = context.run(&["why", "total"]).assert_code(0).stderr;
    assert!(
        told.contains("the record of a run cannot be understood and is left out"),
        "{told}"
    );
}

use serde_json::{Value, json};

use crate::context::{CHAIN, Context, Outcome, files};

const NOTHING: [&str; 0] = [];
const OTHER: [&str; 2] = ["--set", "stages.second.params.value=0.75"];

fn list(context: &Context, arguments: &[&str]) -> Vec<Value> {
    let outcome = context.run(arguments).assert_code(0);
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// What is written over a file of a run, and how that is told.
const FLAWS: [(&str, &str, &str); 6] = [
    (
        "run.json",
        "{\"format\": 1, \"id\"",
        "is not a record of a run: EOF",
    ),
    ("run.json", "", "is not a record of a run: EOF"),
    (
        "run.json",
        "{\"format\": 2}",
        "was written by a newer version of Provenir (format 2; this one reads up to 1)",
    ),
    ("outcome.json", "\u{1}garbage", "is not a record of a run's end: "),
    (
        "annotation.json",
        "[]",
        "is not a record of a run's tags and notes: ",
    ),
    (
        "records.jsonl",
        "{\"record\": \"exec\n",
        "is not a list of a run's records: ",
    ),
];

#[test]
fn a_record_that_cannot_be_understood_costs_the_history_of_its_run_alone() {
    for (file, text, told) in FLAWS {
        let context = Context::new(CHAIN);
        context.executed(&[]);
        context.executed(&OTHER);
        let runs = context.runs();
        let [flawed, good] = [0, 1].map(|place: usize| runs[place].file_name().unwrap());
        fs_err::write(runs[0].join(file), text).unwrap();
        let warned = |outcome: &Outcome| {
            let warnings = outcome.stderr.matches("warning:").count();
            assert_eq!(warnings, 1, "{file}: {outcome:#?}");
            for part in [&format!("cache/runs-v1/{flawed}: `{file}` {told}"), "help: "] {
                assert!(outcome.stderr.contains(part), "{file}: {outcome:#?}");
            }
        };
        // What is not read is not missed: a list needs no records of cells.
        let listed = context.run(&["runs"]).assert_code(0);
        let is_listed = file == "records.jsonl";
        if !is_listed {
            warned(&listed);
        }
        assert!(
            listed.stdout.contains(good) && listed.stdout.contains(flawed) == is_listed,
            "{listed:#?}"
        );
        for command in [
            &[&["why", "total"][..], &OTHER[..]].concat()[..],
            &["lineage", "first[a=1]"],
            &["diff", good, good],
            &["verify", "--json", "out/total.parquet"],
            &["plan", "--set", "stages.second.params.value=0.8"],
            &["status"],
            &["log", "total"],
            &["show", "first[a=1]"],
        ] {
            let outcome = context.run(command);
            assert!(outcome.stderr.matches("warning:").count() <= 1, "{outcome:#?}");
            match command[0] {
                "why" | "lineage" | "diff" => warned(&outcome.assert_code(0)),
                // What it did not find may be in what was left out.
                "log" => assert!(matches!(outcome.code, Some(0 | 2)), "{outcome:#?}"),
                _ => assert_eq!(outcome.code, Some(0), "{outcome:#?}"),
            }
        }
        // What is named must be understood.
        for command in [
            &["runs", "tag", flawed, "paper"][..],
            &["runs", "note", flawed, "text"],
            &["diff", flawed, good],
            &["pin", flawed],
        ] {
            let outcome = context.run(command).assert_code(3);
            assert!(
                outcome.stderr.contains(&format!("{flawed}/{file}")),
                "{outcome:#?}"
            );
            assert!(outcome.stderr.contains("help: "), "{outcome:#?}");
        }
        // What it stands for must not be lost.
        let before = context.results();
        context
            .run(&["gc", "--yes", "--keep-runs", "0", "--grace", "0"])
            .assert_code(3);
        assert_eq!(context.results(), before);
        let outcome = context.run(&["verify", "--json"]).assert_code(1);
        let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(found["records"][0]["run"], flawed);
        assert_eq!(found["records"][0]["newer"], told.contains("newer"));
        let words = context.run(&["verify"]).assert_code(1).stdout;
        assert!(
            words.contains(&format!("  cache/runs-v1/{flawed}: `{file}` {told}")),
            "{words}"
        );
        assert!(!words.contains("nothing is wrong"), "{words}");
        assert_eq!(context.executed(&OTHER), NOTHING);
        fs_err::remove_dir_all(&runs[0]).unwrap();
        context.run(&["verify"]).assert_code(0);
    }
}

#[test]
fn what_was_published_and_cannot_be_read_keeps_everything() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let note = files(&context.path("cache/published-v1")).remove(0);
    fs_err::write(&note, "{").unwrap();
    let before = context.results();
    let said = context
        .run(&["gc", "--yes", "--keep-runs", "0", "--grace", "0"])
        .assert_code(3)
        .stderr;
    assert!(said.contains("is not a note of a published copy"), "{said}");
    assert_eq!(context.results(), before);
    context.run(&["lineage", "out/total.parquet"]).assert_code(0);
    context.executed(&[]);
    context.run(&["gc"]).assert_code(0);
}

#[test]
fn a_result_that_cannot_be_read_is_told_and_discarded() {
    let context = Context::new(CHAIN);
    context.executed(&["--axis", "a=9"]);
    let unneeded: Vec<String> = context.results().into_keys().collect();
    context.executed(&[]);
    let results = files(&context.path("cache/results-v1"));
    let path = |name: &str| {
        results
            .iter()
            .find(|path| path.file_name() == Some(name))
            .unwrap()
    };
    let needed = results
        .iter()
        .find(|path| !unneeded.iter().any(|name| path.file_name() == Some(name)))
        .unwrap();
    for path in [path(&unneeded[0]), needed] {
        fs_err::write(path, "{\"format\": 1").unwrap();
    }
    let told = context.run(&["verify"]).assert_code(1).stdout;
    assert!(
        told.contains(
            "next: `provenir verify --discard` takes the results that cannot be read out of the store"
        ),
        "{told}"
    );
    assert!(told.contains(", the result of "), "{told}");
    context.run(&["verify", "--discard"]).assert_code(1);
    assert!(!path(&unneeded[0]).exists() && !needed.exists());
    // Their objects are orphans now, which is nothing wrong.
    context.run(&["verify"]).assert_code(0);
    assert_eq!(context.executed(&[]).len(), 1);
    context.run(&["verify"]).assert_code(0);
}

#[test]
fn a_repeated_run_is_the_last_and_a_render_is_not() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.write(
        "other.toml",
        &CHAIN.replace("\"chain\"", "\"other\"").replace("0.5", "0.6"),
    );
    context.executed(&["other.toml"]);
    let names: Vec<String> = context
        .runs()
        .iter()
        .map(|run| run.file_name().unwrap().to_owned())
        .collect();
    let last = || {
        let said = context.run(&["runs", "note", "last", "x"]).assert_code(0).stderr;
        said.split([' ', ':']).nth(1).unwrap().to_owned()
    };
    assert_eq!(last(), names[1]);
    assert_eq!(context.executed(&[]), NOTHING);
    assert_eq!(
        context.runs().len(),
        2,
        "it leaves a line, because it found what was there"
    );
    assert_eq!(last(), names[0]);
    let status = context.run(&["status"]).assert_code(0).stdout;
    assert!(
        status.contains(&format!("\nlast run {} of `pipeline.toml`: done, 2", names[0]))
            && status.contains("\n  run again with nothing to do, 2"),
        "{status}"
    );
    let archive = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../stages/stable-baselines/tests/fixtures/hopper-time"
    );
    let render = [
        "render",
        &format!("{archive}.zip"),
        "--env",
        "hopper",
        "--normalization",
        &format!("{archive}.pkl"),
        "--time-feature",
        "--out",
        "a.gif",
    ];
    context.run(&render).assert_code(0);
    assert_eq!(context.runs().len(), 3);
    assert_eq!(last(), names[0]);
    // Where there is nothing else, it is.
    for run in &context.runs()[..2] {
        fs_err::remove_dir_all(run).unwrap();
    }
    assert_eq!(last(), context.runs()[0].file_name().unwrap());
}

#[test]
fn a_run_that_finds_what_the_one_before_did_not_have_is_recorded() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.executed(&OTHER);
    assert_eq!(context.executed(&[]), NOTHING);
    let runs = context.runs();
    assert_eq!((runs.len(), context.noops()), (3, 0));
    let listed = list(&context, &["runs", "--json", "-n", "1"]);
    assert_eq!(
        (&listed[0]["state"], &listed[0]["summary"]["reused"]),
        (&json!("done"), &json!(7))
    );
    let before = runs[1].file_name().unwrap();
    let told = context.run(&["diff", before, "last"]).assert_code(0).stdout;
    assert!(told.contains("stages.second.params.value 0.75 → 0.5"), "{told}");
    assert!(told.contains("total.sum        value   8.25"), "{told}");
    assert_eq!(context.executed(&[]), NOTHING);
    assert_eq!((context.runs().len(), context.noops()), (3, 1));
    // Its results are those of a recent run.
    let kept = context
        .run(&["gc", "--keep-runs", "1", "--grace", "0"])
        .assert_code(0);
    assert!(kept.stdout.contains("last used by run"), "{kept:#?}");
    context
        .run(&["gc", "--yes", "--keep-runs", "1", "--grace", "0"])
        .assert_code(0);
    assert_eq!(context.executed(&[]), NOTHING);
}

#[test]
fn status_names_the_manifest_and_its_options() {
    let context = Context::new(CHAIN);
    context.executed(&["--axis", "a=1,2", "--set", "stages.second.params.value=1"]);
    context.write("other.toml", &CHAIN.replace("\"chain\"", "\"other\""));
    let status = |arguments: &[&str]| {
        let outcome = context.run(&[&["status"], arguments].concat()).assert_code(0);
        let lines: Vec<String> = outcome.stdout.lines().map(str::to_owned).collect();
        let last = lines.iter().find(|line| line.starts_with("last run")).unwrap();
        (
            lines[0].clone(),
            last[31..].split(": ").next().unwrap().to_owned(),
        )
    };
    let last = " of `pipeline.toml` with `--axis a=1,2 --set stages.second.params.value=1`";
    let (first, found) = status(&["pipeline.toml", "--axis", "a=1,2"]);
    assert_eq!(
        first,
        "chain (pipeline.toml with `--axis a=1,2`): 2 of 5 cells up to date"
    );
    assert_eq!(found.trim_start_matches(|letter| letter != ' '), last);
    let (first, found) = status(&["other.toml"]);
    assert_eq!(first, "other (other.toml): 2 of 7 cells up to date");
    assert_eq!(found.trim_start_matches(|letter| letter != ' '), last);
}

#[test]
fn metrics_stand_in_the_order_of_the_plan() {
    let context = Context::new(&CHAIN.replace("a = [1, 2, 3]", "a = [10, 2, 1]"));
    context.executed(&[]);
    context.executed(&["--axis", "a=10,2,1,3", "--set", "stages.second.params.value=0.75"]);
    let runs = context.runs();
    let [old, new] = [0, 1].map(|place: usize| runs[place].file_name().unwrap());
    let plan = list(&context, &["plan", "--json", "--axis", "a=10,2,1,3"]);
    let order: Vec<&str> = plan.iter().map(|cell| cell["cell"].as_str().unwrap()).collect();
    let told = context.run(&["diff", old, new]).assert_code(0).stdout;
    let listed: Vec<&str> = told
        .split("\nmetrics (means of columns)\n")
        .nth(1)
        .unwrap()
        .lines()
        .skip(1)
        .map(|line| line.trim_start().split(".sum").next().unwrap())
        .collect();
    let expected: Vec<&str> = order
        .iter()
        .copied()
        .filter(|cell| !cell.starts_with("first") && !cell.contains("a=3"))
        .collect();
    assert_eq!(listed, expected);
    let numbers: Vec<&str> = expected[..3].to_vec();
    assert!(
        numbers == ["second[a=1]", "second[a=2]", "second[a=10]"]
            || numbers == ["second[a=10]", "second[a=2]", "second[a=1]"],
        "{numbers:?}"
    );
}

#[test]
fn what_a_comparison_leaves_out_is_counted_with_how_to_see_it() {
    let values: Vec<String> = (0..60).map(|value| value.to_string()).collect();
    let context = Context::new(&CHAIN.replace("[1, 2, 3]", &format!("[{}]", values.join(", "))));
    context.executed(&[]);
    context.executed(&OTHER);
    let runs = context.runs();
    let [old, new] = [0, 1].map(|place: usize| runs[place].file_name().unwrap());
    let told = context.run(&["diff", old, new]).assert_code(0).stdout;
    assert_eq!(
        told.matches("\n  and 11 more; `--all` shows them\n").count(),
        2,
        "{told}"
    );
    let all = context.run(&["diff", old, new, "--all"]).assert_code(0).stdout;
    assert!(!all.contains("more;"), "{all}");
    assert_eq!(all.matches("second[a=59]").count(), 2, "{all}");
}

#[test]
fn programs_read_plans() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let arguments = [
        "plan",
        "--json",
        "--axis",
        "a=1,2",
        "--set",
        "stages.second.params.value=1",
    ];
    let plan = list(&context, &arguments);
    assert_eq!(plan, list(&context, &arguments));
    let states: Vec<(&str, &str)> = plan
        .iter()
        .map(|cell| (cell["cell"].as_str().unwrap(), cell["state"].as_str().unwrap()))
        .collect();
    assert_eq!(
        states,
        [
            ("first[a=1]", "up-to-date"),
            ("first[a=2]", "up-to-date"),
            ("second[a=1]", "to-run"),
            ("second[a=2]", "to-run"),
            ("total", "unknown"),
        ]
    );
    let key = plan[2]["key"].as_str().unwrap();
    assert_eq!(key.len(), 64);
    assert_eq!(
        plan[2],
        json!({
            "cell": "second[a=1]", "stage": "second", "point": { "a": 1 }, "state": "to-run", "key": key,
            "reason": "value 0.5 → 1.0", "waits_for": null, "own_change": null, "publish": [],
        })
    );
    assert_eq!(plan[0]["reason"], Value::Null);
    assert_eq!(
        plan[4],
        json!({
            "cell": "total", "stage": "total", "point": {}, "state": "unknown", "key": null,
            "reason": null, "waits_for": "second[a=1]", "own_change": "input many no longer collects a=3",
            "publish": [{
                "port": "sum", "path": context.path("out/total.parquet"), "state": null, "problem": null,
            }],
        })
    );
    assert_eq!(
        context.run(&["lineage", "total", "--json"]).assert_code(0).stdout,
        context
            .run(&["lineage", "total", "--format", "json"])
            .assert_code(0)
            .stdout
    );
}

#[test]
fn a_pipe_gets_all_parameters() {
    let text = "word ".repeat(80);
    let context = Context::new(&format!(
        "format = 1\npipeline.name = \"talk\"\nstages.talk = {{ kind = \"chatter\", params = {{ text = \"{text}\" }} }}\n\
         stages.next = {{ kind = \"noop\", inputs = {{ one = \"talk\" }} }}\n"
    ));
    context.executed(&[]);
    for cell in ["talk", "next"] {
        let told = context.run(&["lineage", cell]).assert_code(0).stdout;
        assert!(told.contains(&format!("text={text}")), "{told}");
    }
}

use serde_json::Value;

use crate::context::{CHAIN, CHAIN_CELLS, Context, TIMES, files, overwrite};

const NOTHING: [&str; 0] = [];
/// Keeps as little as can be asked for.
const LITTLE: [&str; 4] = ["--keep-runs", "0", "--grace", "0"];

fn json(context: &Context, arguments: &[&str], code: i32) -> Value {
    let outcome = context.run(arguments).assert_code(code);
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// Cells that a collection would remove, sorted.
fn unwanted(context: &Context, arguments: &[&str]) -> Vec<String> {
    let found = json(context, &[&["gc", "--json"], arguments].concat(), 0);
    let mut cells: Vec<String> = found["unwanted"]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["cell"].as_str().unwrap().to_owned())
        .collect();
    cells.sort();
    cells
}

fn flip(path: &camino::Utf8Path) {
    let mut bytes = fs_err::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    overwrite(path, &bytes);
}

#[test]
fn a_store_as_it_was_left_verifies() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let outcome = context.run(&["verify"]).assert_code(0);
    let objects = files(&context.path("cache/objects-v1"));
    let size: u64 = objects.iter().map(|path| path.metadata().unwrap().len()).sum();
    assert_eq!(
        outcome.stdout,
        format!(
            "store cache: read {} objects ({:.1} KiB) and 7 results\n1 published file outside it: not read (`provenir verify FILE` looks at one, `provenir plan` at those of a manifest)\nnothing is wrong\n",
            objects.len(),
            size as f64 / 1024.0
        )
    );
    let found = json(&context, &["verify", "--json"], 0);
    assert_eq!(found["bytes"], size);
}

#[test]
fn a_damaged_object_is_named_taken_out_and_computed_again() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let object = context.object("second[a=2]");
    flip(&object);
    let outcome = context.run(&["verify"]).assert_code(1);
    let told: String = outcome
        .stdout
        .lines()
        .skip(2)
        .fold(String::new(), |text, line| text + line + "\n");
    insta::assert_snapshot!(context.filtered(&told), @r"

    damaged: the bytes are not those that were stored
      object [DIGEST], of second[a=2]

    next: `provenir verify --discard` takes the damaged objects out of the store; the next `provenir run` that needs them computes them again
    ");
    assert!(object.is_file(), "a check changes nothing");
    // The manifest is not to blame.
    let said = |arguments: &[&str]| context.filtered(&context.run(arguments).assert_code(3).stderr);
    for command in ["path", "show"] {
        insta::allow_duplicates!(insta::assert_snapshot!(said(&[command, "second[a=2]"]), @r"
        error: the artifact of `second[a=2]` is damaged: the bytes of `cache/objects-v1/b1/[DIGEST]` are not those that were stored
          help: `provenir run` computes it again; `provenir verify` finds whatever else is damaged
        "));
    }
    insta::assert_snapshot!(said(&["path", "total"]), @r"
    error: whether the store has `total` is not known: the artifact of `second[a=2]`, which it depends on, is damaged: the bytes of `cache/objects-v1/b1/[DIGEST]` are not those that were stored
      help: `provenir run` computes it again; `provenir verify` finds whatever else is damaged
    ");
    insta::assert_snapshot!(said(&["pin", "second[a=2]"]), @r"
    error: the artifact of `second[a=2]` is damaged: the bytes of `cache/objects-v1/b1/[DIGEST]` are not those that were stored
      help: `provenir run` computes it again; `provenir verify` finds whatever else is damaged; an action key pins an earlier result
    ");
    let told = context.run(&["lineage", "second[a=2]"]).assert_code(0).stdout;
    assert!(
        told.starts_with("the artifact of `second[a=2]` is damaged: the bytes of `cache/objects-v1/"),
        "{told}"
    );
    context.run(&["verify", "--discard"]).assert_code(1);
    assert!(!object.exists());
    let found = json(&context, &["verify", "--json"], 1);
    assert_eq!(found["missing"][0]["cells"], serde_json::json!(["second[a=2]"]));
    // What took it out is told, before and after it is made again, and not of what is lost later.
    let discarded = ": `provenir verify --discard` removed it on ";
    let told = |command: &str| context.run(&[command, "second[a=2]"]).assert_code(0).stdout;
    let plan = || context.run(&["plan"]).assert_code(0).stdout;
    assert!(plan().contains(discarded), "{}", plan());
    let why = told("why");
    assert!(
        why.contains(&format!("is not in the store any more{discarded}"))
            && why.contains(", because it was damaged\n"),
        "{why}"
    );
    assert_eq!(context.executed(&[]), ["second[a=2]"]);
    let why = told("why");
    assert!(
        why.contains(&format!("was not in the store any more{discarded}")),
        "{why}"
    );
    fs_err::remove_file(&object).unwrap();
    let why = told("why");
    assert!(why.contains("is not in the store any more\n"), "{why}");
    assert!(!plan().contains(discarded), "{}", plan());
    assert_eq!(context.executed(&[]), ["second[a=2]"]);
    context.run(&["verify"]).assert_code(0);
    context.check_store();
}

/// Nothing promises to compute again what nothing needs.
#[test]
fn damage_of_a_second_result_is_told_as_that() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "times"
        stages.time = { kind = "clock" }
        "#,
    );
    context.executed(&[]);
    let first = context.object("time");
    context.executed(&["--force", "time"]);
    let objects = files(&context.path("cache/objects-v1"));
    let second = objects.iter().find(|object| **object != first).unwrap();
    flip(second);
    let told = |arguments: &[&str], code| {
        let outcome = context.run(arguments).assert_code(code);
        let (_, told) = outcome.stdout.split_once('\n').unwrap();
        context.filtered(told)
    };
    insta::assert_snapshot!(told(&["verify"], 1), @r"

    damaged: the bytes are not those that were stored
      object [DIGEST], of time

    next: `provenir verify --discard` takes damaged objects that only second results name out of the store; nothing computes those again
    ");
    insta::assert_snapshot!(told(&["verify", "--discard"], 1), @r"

    damaged: the bytes are not those that were stored
      object [DIGEST], of time

    next: damaged objects that only second results name were taken out of the store; nothing computes those again
    ");
    insta::assert_snapshot!(told(&["verify"], 0), @r"

    gone: nothing computes them again, because they are second results, or made from what is gone, too; nothing that counts needs them
      object [DIGEST], of time

    nothing is wrong
    ");
}

/// The run of a stored result hits although its bytes changed, where nothing of the file's stamp tells: `verify` sees it.
#[test]
fn damage_that_no_run_would_see_is_found() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    flip(&context.object("total"));
    fs_err::remove_file(context.path("cache/index-v1.sqlite")).unwrap();
    assert_eq!(context.executed(&[]), NOTHING, "nothing reads it");
    let said = context.run(&["show", "total"]).assert_code(3).stderr;
    insta::assert_snapshot!(context.filtered(&said), @r"
    error: object [DIGEST] is damaged: the bytes of `[FOLDER]/cache/objects-v1/d9/[DIGEST]` are not those that were stored
      help: `provenir verify --discard` takes what is damaged out of the store; the next `provenir run` that needs it computes it again
    ");
    context.run(&["verify", "--discard"]).assert_code(1);
    assert_eq!(context.executed(&[]), ["total"]);
    context.run(&["verify"]).assert_code(0);
}

#[test]
fn what_is_missing_unreadable_or_orphaned_is_told_apart() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let orphan = provenir_api::Digest::of(b"orphan").hex();
    context.write(&format!("cache/objects-v1/{}/{orphan}", &orphan[..2]), "orphan");
    let found = json(&context, &["verify", "--json"], 0);
    assert_eq!(
        found["orphaned"],
        serde_json::json!([{ "object": orphan, "bytes": 6 }])
    );
    let missing = context.object("first[a=1]");
    fs_err::remove_file(&missing).unwrap();
    let result = files(&context.path("cache/results-v1")).remove(0);
    fs_err::write(&result, "{").unwrap();
    context.write("cache/objects-v1/notes.txt", "mine");
    let found = json(&context, &["verify", "--json"], 1);
    assert_eq!(found["missing"][0]["object"], missing.file_name().unwrap());
    let unreadable: Vec<&str> = found["unreadable"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["path"].as_str().unwrap())
        .collect();
    assert_eq!(
        unreadable,
        [
            result.as_str(),
            context.path("cache/objects-v1/notes.txt").as_str()
        ]
    );
    context.executed(&[]);
    fs_err::remove_file(context.path("cache/objects-v1/notes.txt")).unwrap();
    context.run(&["verify"]).assert_code(0);
}

#[test]
fn files_and_digests_are_verified_on_their_own() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let verify = |what: &str, code| context.run(&["verify", what]).assert_code(code).stdout;
    insta::assert_snapshot!(verify("out/total.parquet", 0), @r"
    `out/total.parquet` is as it was published
    nothing is wrong
    ");
    let (good, bad) = (context.object("first[a=1]"), context.object("first[a=2]"));
    flip(&bad);
    assert!(verify(&good.file_name().unwrap()[..10], 0).contains("read 1 object "));
    assert!(verify(good.as_str(), 0).contains("nothing is wrong"));
    assert!(verify(&bad.file_name().unwrap()[..10], 1).contains("of first[a=2]"));
    context.write("out/total.parquet", "altered");
    insta::assert_snapshot!(verify("out/total.parquet", 1), @"`out/total.parquet` was altered since it was published; the next run that publishes there restores it and keeps this one as `total.parquet.orig`");
    fs_err::remove_file(context.path("out/total.parquet")).unwrap();
    insta::assert_snapshot!(verify("out/total.parquet", 1), @"`out/total.parquet` was published and is gone; the next run that publishes there restores it");
    let said = |what: &str| context.filtered(&context.run(&["verify", what]).assert_code(2).stderr);
    insta::assert_snapshot!(said("pipeline.toml"), @r"
    error: nothing is known of `pipeline.toml`: it was not published from this store, and carries no seal of Provenir
      help: `--cache` or PROVENIR_CACHE names another store
    ");
    insta::assert_snapshot!(said("first[a=1]"), @r"
    error: `first[a=1]` is neither a file nor the beginning of a digest
      help: `provenir path CELL` prints where a cell's artifact is; without an argument, the whole store is checked
    ");
    let absent = context.run(&["verify", "--cache", "absent"]).assert_code(2);
    insta::assert_snapshot!(absent.stderr, @r"
    error: there is no store `absent`
      help: `provenir run` makes one; `--cache` or PROVENIR_CACHE names another
    ");
}

#[test]
fn a_collection_shows_first_and_removes_what_nothing_reaches() {
    let context = Context::new(CHAIN);
    context.executed(&["--set", "stages.second.params.value=0.75"]);
    context.executed(&[]);
    assert_eq!(unwanted(&context, &[]), NOTHING, "all of it is young");
    assert_eq!(
        unwanted(&context, &["--grace", "0"]),
        NOTHING,
        "both runs are kept"
    );
    let keep = ["--grace", "0", "--keep-runs", "1"];
    let before = context.results();
    let outcome = context.run(&[&["gc"], &keep[..]].concat()).assert_code(0);
    let told = context.filtered(&outcome.stdout);
    let run = context.runs()[0].file_name().unwrap().to_owned();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(
        lines[0].split(" (").next().unwrap(),
        "store cache: 7 results and 7 objects"
    );
    assert!(lines[0].ends_with("6 of recent runs, 1 published"), "{told}");
    for line in &lines[4..8] {
        assert!(
            line.ends_with(&format!(
                "last used by run {run} of `pipeline.toml`, which is older than the run that is kept"
            )),
            "{line}"
        );
    }
    assert!(
        told.contains("nothing was removed: the same command with `--yes` removes it"),
        "{told}"
    );
    assert_eq!(context.results(), before);
    context.check_store();
    assert_eq!(
        unwanted(&context, &keep),
        ["second[a=1]", "second[a=2]", "second[a=3]", "total"]
    );
    let outcome = context
        .run(&[&["gc", "--yes"], &keep[..]].concat())
        .assert_code(0);
    assert!(
        outcome.stdout.contains("removed 4 results, 4 objects, "),
        "{outcome:#?}"
    );
    context.check_store();
    assert_eq!(unwanted(&context, &keep), NOTHING);
    assert_eq!(context.executed(&[]), NOTHING);
    assert_eq!(
        context.executed(&["--set", "stages.second.params.value=0.75"]),
        ["second[a=1]", "second[a=2]", "second[a=3]", "total"]
    );
}

#[test]
fn a_published_figure_keeps_all_that_it_was_made_from() {
    let context = Context::new(&format!(
        "{CHAIN}\n[stages.aside]\nkind = \"noop\"\nparams = {{ value = 77 }}\n"
    ));
    context.executed(&[]);
    assert_eq!(unwanted(&context, &LITTLE), ["aside"]);
    fs_err::remove_file(context.path("out/total.parquet")).unwrap();
    assert_eq!(unwanted(&context, &LITTLE).len(), 8);
    let told = context
        .run(&[&["gc"], &LITTLE[..]].concat())
        .assert_code(0)
        .stdout;
    assert!(
        told.contains("its published copy `out/total.parquet` is gone"),
        "{told}"
    );
    context.executed(&[]);
    context
        .run(&[&["gc", "--yes"], &LITTLE[..]].concat())
        .assert_code(0);
    assert_eq!(context.executed(&[]), ["aside"]);
}

/// What is kept and what would go is counted in the same bytes: those of objects and of the files of results.
#[test]
fn rows_totals_and_what_is_kept_are_counted_alike() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let size: u64 = ["cache/objects-v1", "cache/results-v1"]
        .iter()
        .flat_map(|folder| files(&context.path(folder)))
        .map(|path| path.metadata().unwrap().len())
        .sum();
    let found = json(&context, &["gc", "--json"], 0);
    assert_eq!(found["kept"]["bytes"], size);
    fs_err::remove_dir_all(context.path("out")).unwrap();
    let found = json(&context, &[&["gc", "--json"], &LITTLE[..]].concat(), 0);
    assert_eq!(found["kept"]["bytes"], 0);
    assert_eq!(found["unwanted"]["bytes"], size);
    let rows = found["unwanted"]["results"].as_array().unwrap().iter();
    let rows: u64 = rows.map(|row| row["bytes"].as_u64().unwrap()).sum();
    assert_eq!(rows, size);
    let found = json(&context, &[&["gc", "--json", "--yes"], &LITTLE[..]].concat(), 0);
    assert_eq!(found["removed"]["bytes"], size);
}

#[test]
fn what_no_record_names_is_not_called_by_a_name() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    for gone in ["out", "cache/runs-v1"] {
        fs_err::remove_dir_all(context.path(gone)).unwrap();
    }
    let told = context
        .run(&[&["gc"], &LITTLE[..]].concat())
        .assert_code(0)
        .stdout;
    assert_eq!(
        told.matches("\n  not recorded (kind noop)  ").count(),
        7,
        "{told}"
    );
    let found = json(&context, &[&["gc", "--json"], &LITTLE[..]].concat(), 0);
    let row = &found["unwanted"]["results"][0];
    assert_eq!((&row["cell"], &row["kind"]), (&Value::Null, &Value::from("noop")));
}

#[test]
fn a_copy_that_was_altered_is_told_and_keeps_what_it_was() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let reasons = || json(&context, &[&["gc", "--json"], &LITTLE[..]].concat(), 0)["kept"]["results"].clone();
    let others = "needed by others of them";
    assert_eq!(reasons(), serde_json::json!({ others: 6, "published": 1 }));
    // The same bytes, written anew.
    let bytes = context.read("out/total.parquet");
    fs_err::remove_file(context.path("out/total.parquet")).unwrap();
    fs_err::write(context.path("out/total.parquet"), bytes).unwrap();
    assert_eq!(reasons(), serde_json::json!({ others: 6, "published": 1 }));
    context.write("out/total.parquet", "altered");
    assert_eq!(
        reasons(),
        serde_json::json!({ others: 6, "published and altered since": 1 })
    );
}

#[test]
fn pins_keep_runs_and_cells_until_they_are_taken_away() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    fs_err::remove_dir_all(context.path("out")).unwrap();
    assert!(
        context
            .run(&["pin"])
            .assert_code(0)
            .stderr
            .starts_with("nothing is pinned")
    );
    let said = context.run(&["pin", "second[a=2]"]).assert_code(0).stderr;
    insta::assert_snapshot!(context.filtered(&said), @"pinned second[a=2] ([DIGEST]): `provenir gc` keeps it and what it was computed from");
    let rest: Vec<&str> = CHAIN_CELLS
        .into_iter()
        .filter(|cell| !["first[a=2]", "second[a=2]"].contains(cell))
        .collect();
    assert_eq!(unwanted(&context, &LITTLE), rest);
    context.run(&["pin", "last"]).assert_code(0);
    assert_eq!(unwanted(&context, &LITTLE), NOTHING);
    let listed = context.run(&["pin"]).assert_code(0).stdout;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let run = context.runs()[0].file_name().unwrap().to_owned();
    let said = context.run(&["unpin", &run]).assert_code(0).stderr;
    assert_eq!(said, format!("run {run} is not pinned any more\n"));
    assert_eq!(unwanted(&context, &LITTLE), rest);
    context.run(&["unpin", "second"]).assert_code(0);
    assert_eq!(unwanted(&context, &LITTLE), CHAIN_CELLS);
    let said = context.run(&["unpin", "second"]).assert_code(2).stderr;
    insta::assert_snapshot!(said, @r"
    error: `second` is not pinned
      help: `provenir pin` lists what is; name it as it is listed there
    ");
}

#[test]
fn a_pin_that_cannot_be_read_keeps_everything() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.run(&["pin", "total"]).assert_code(0);
    let pin = files(&context.path("cache/pins-v1")).remove(0);
    fs_err::write(&pin, "{").unwrap();
    let before = context.results();
    context
        .run(&[&["gc", "--yes"], &LITTLE[..]].concat())
        .assert_code(3);
    assert_eq!(context.results(), before);
}

#[test]
fn an_object_that_a_kept_result_names_too_stays() {
    // 1 + 2 = 2 + 1: two actions, one artifact.
    let manifest = |left: u32, right: u32| {
        format!(
            r#"
            format = 1
            pipeline.name = "shared"
            stages.left = {{ kind = "noop", params = {{ value = {left} }} }}
            stages.right = {{ kind = "noop", inputs = {{ one = "left" }}, params = {{ value = {right} }} }}
            "#
        )
    };
    let context = Context::new(&manifest(1, 2));
    context.executed(&[]);
    context.write("pipeline.toml", &manifest(2, 1));
    context.executed(&[]);
    let outcome = context
        .run(&["gc", "--yes", "--keep-runs", "1", "--grace", "0"])
        .assert_code(0);
    assert!(
        outcome.stdout.contains("removed 2 results, 1 object, "),
        "{outcome:#?}"
    );
    assert_eq!(context.executed(&[]), NOTHING);
    context.check_store();
}

#[test]
fn a_run_under_way_loses_nothing() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "napping"
        axes.a = [1, 2]
        stages.quick = { kind = "noop", params = { value = "${a}" } }
        stages.nap = { kind = "sleep", params = { seconds = 1 }, inputs = { one = "quick" } }
        stages.total = { kind = "noop", inputs = { many = "nap" } }
        "#,
    );
    context.executed(&["--only", "quick"]);
    let mut running = context.start(&["--jobs", "1"]);
    running.wait_for("cell-progress", "nap[a=1]");
    let partials = files(&context.path("cache/partial-v1"));
    let told = context
        .run(&[&["gc", "--yes"], &LITTLE[..]].concat())
        .assert_code(0)
        .stdout;
    assert!(told.contains("2 of runs under way"), "{told}");
    assert_eq!(files(&context.path("cache/partial-v1")), partials);
    let outcome = running.finish().assert_code(0);
    assert_eq!(outcome.cells("cell-finished"), ["nap[a=1]", "nap[a=2]", "total"]);
    context.run(&["verify"]).assert_code(0);
    context.check_store();
}

/// Where somebody removes what a run relies on, it is computed again beside the cell that misses it.
#[test]
fn an_input_that_vanishes_during_a_run_is_computed_again() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "napping"
        stages.quick = { kind = "noop", params = { value = 5 } }
        stages.nap = { kind = "sleep", params = { seconds = 1 } }
        stages.total = { kind = "noop", inputs = { many = ["nap", "quick"] } }
        "#,
    );
    context.executed(&["--only", "quick"]);
    let object = context.object("quick");
    let mut running = context.start(&["--jobs", "1"]);
    running.wait_for("cell-progress", "nap");
    fs_err::remove_file(&object).unwrap();
    let outcome = running.finish().assert_code(0);
    assert_eq!(outcome.cells("cell-finished"), ["nap", "quick", "total"]);
    context.check_store();
}

#[test]
fn checkpoints_go_when_no_kept_run_began_their_cell() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "napping"
        stages.nap = { kind = "sleep", params = { seconds = 600 } }
        "#,
    );
    let mut running = context.start(&[]);
    running.wait_for("cell-progress", "nap");
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.finish().code, Some(130));
    let count = |arguments: &[&str]| {
        let found = json(&context, &[&["gc", "--json"], arguments].concat(), 0);
        found["unwanted"]["checkpoints"].as_array().unwrap().len()
    };
    assert_eq!(count(&["--grace", "0"]), 0, "the next run goes on from them");
    assert_eq!(count(&["--keep-runs", "0"]), 0, "they are young");
    assert_eq!(count(&LITTLE), 1);
    context
        .run(&[&["gc", "--yes"], &LITTLE[..]].concat())
        .assert_code(0);
    assert_eq!(files(&context.path("cache/partial-v1")).len(), 0);
}

#[test]
fn what_a_killed_command_left_is_counted_and_goes() {
    let context = Context::new(CHAIN);
    let mut running = context.start(&[
        "--set",
        "stages.first.kind=\"sleep\"",
        "--set",
        "stages.first.params.seconds=600",
    ]);
    running.wait_for("cell-started", "");
    running.signal(rustix::process::Signal::KILL);
    running.finish();
    crate::context::eventually("the workers' end", || {
        let found = json(&context, &["gc", "--json"], 0);
        found["unwanted"]["abandoned"]["files"].as_u64().unwrap() > 0
    });
    context.run(&["gc", "--yes"]).assert_code(0);
    assert_eq!(files(&context.path("cache/tmp")), [""; 0]);
}

#[test]
fn pins_are_taken_away_as_they_were_given() {
    let context = Context::new(CHAIN);
    context.write(
        "other.toml",
        &CHAIN
            .replace("\"chain\"", "\"other\"")
            .replace("value = 0.5", "value = 0.75"),
    );
    context.executed(&[]);
    context.executed(&["other.toml"]);
    context.run(&["pin", "second"]).assert_code(0);
    context.run(&["pin", "second[a=1]", "other.toml"]).assert_code(0);
    let pinned = || {
        let told = context.run(&["pin"]).assert_code(0).stdout;
        let mut lines: Vec<String> = told
            .lines()
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                format!("{} {}", words[0], words[2])
            })
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(pinned().len(), 4);
    let said = |arguments: &[&str], code| context.filtered(&context.run(arguments).assert_code(code).stderr);
    insta::assert_snapshot!(said(&["unpin", "second[a=1.0]"], 0), @"second[a=1] ([DIGEST]) is not pinned any more");
    insta::assert_snapshot!(said(&["unpin", "second[a=1]"], 2), @r"
    error: `second[a=1]` of `pipeline.toml` is not pinned; it is of another manifest
      help: `provenir unpin 'second[a=1]' other.toml`
    ");
    context
        .run(&["unpin", "second[a=1]", "other.toml"])
        .assert_code(0);
    assert_eq!(
        pinned(),
        ["second[a=2] pipeline.toml", "second[a=3] pipeline.toml"]
    );
    context.run(&["unpin", "second"]).assert_code(0);
    insta::assert_snapshot!(said(&["unpin", "second"], 2), @r"
    error: `second` is not pinned
      help: `provenir pin` lists what is; name it as it is listed there
    ");
    // By the key it does not matter which manifest it was.
    let key = context
        .results()
        .into_iter()
        .find(|(_, text)| text.contains("0.75"))
        .unwrap()
        .0;
    context.run(&["pin", &key[..12]]).assert_code(0);
    context.run(&["unpin", &key[..12], "absent.toml"]).assert_code(0);
}

#[test]
fn times_are_asked_for_with_their_unit() {
    let context = Context::new(CHAIN);
    let said = context.run(&["gc", "--grace", "7"]).assert_code(2).stderr;
    assert!(
        said.contains("write a whole number and a unit: 90s, 30m, 12h, 7d or 2w"),
        "{said}"
    );
}

/// Collections that keep as little as they may, one after another, while runs find, lose and compute: every run ends well, and
/// the store is whole.
#[test]
fn runs_end_well_beside_collections_that_keep_nothing() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "beside"
        axes.a = [1, 2, 3, 4, 5, 6, 7, 8]
        stages.x = { kind = "noop", params = { value = "${a}" } }
        stages.y = { kind = "noop", inputs = { one = "x" }, params = { value = "${a}" }, publish = { sum = "pub/y-${a}.parquet" } }
        "#,
    );
    context.executed(&[]);
    let expected = files(&context.path("pub"))
        .iter()
        .map(|path| fs_err::read(path).unwrap())
        .collect::<Vec<_>>();
    for round in 0..8 {
        fs_err::remove_dir_all(context.path("pub")).unwrap();
        if round % 2 == 1 {
            // Objects that no result names any more, and that will be stored again.
            fs_err::remove_dir_all(context.path("cache/results-v1")).unwrap();
        }
        let running = context.start(&[]);
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let keep = ["gc", "--yes", "--grace", "0", "--keep-runs", "0"];
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    context.run(&keep).assert_code(0);
                }
            });
            let outcome = running.finish();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(outcome.code, Some(0), "{round}: {outcome:#?}");
        });
        let published = files(&context.path("pub"));
        let found: Vec<_> = published.iter().map(|path| fs_err::read(path).unwrap()).collect();
        assert!(found == expected, "{round}");
        context.run(&["verify"]).assert_code(0);
    }
    context.check_store();
}

#[test]
fn records_that_were_cut_off_are_damage_and_keep_everything() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "kept"
        stages.a = { kind = "noop" }
        stages.b = { kind = "noop", inputs = { one = "a" }, params = { value = 1 } }
        "#,
    );
    context.executed(&[]);
    context.run(&["pin", "last"]).assert_code(0);
    let path = context.runs()[0].join("records.jsonl");
    let whole = fs_err::read(&path).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in [
        Vec::new(),
        whole[..first].to_vec(),
        whole[..whole.len() * 2 / 3].to_vec(),
        vec![0; whole.len()],
    ] {
        fs_err::write(&path, cut).unwrap();
        let told = context.run(&["verify"]).assert_code(1).stdout;
        assert!(
            told.contains("records of runs that cannot be understood"),
            "{told}"
        );
        let before = context.results();
        let outcome = context.run(&["gc", "--grace", "0", "--keep-runs", "0", "--yes"]);
        assert_ne!(outcome.code, Some(0), "{outcome:#?}");
        assert_eq!(context.results(), before);
    }
    fs_err::write(&path, whole).unwrap();
    context.run(&["verify"]).assert_code(0);
}

/// A file that claims to be an object of a terabyte is not read to find that it is none.
#[test]
fn an_object_of_absurd_length_holds_nobody_up() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let object = context.object("first[a=1]");
    let mut permissions = fs_err::metadata(&object).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
    fs_err::set_permissions(&object, permissions).unwrap();
    let lengthen = || {
        let file = fs_err::OpenOptions::new().write(true).open(&object).unwrap();
        file.set_len(1 << 40).unwrap();
    };
    lengthen();
    let told = context.run(&["verify"]).assert_code(1).stdout;
    assert!(told.contains("damaged"), "{told}");
    assert_eq!(context.executed(&[]).len(), 1);
    context.check_store();
}

#[test]
fn a_result_that_is_wrong_about_its_objects_is_told_and_mended() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let (key, text) = context
        .results()
        .into_iter()
        .find(|(_, text)| text.contains("\"one\""))
        .unwrap();
    let path = context.path(&format!("cache/results-v1/{}/{key}", &key[..2]));
    let result: Value = serde_json::from_str(&text).unwrap();
    let outputs = result["outputs"].as_array().unwrap();
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut wrong = result.clone();
        change(&mut wrong["outputs"]);
        fs_err::remove_file(&path).unwrap();
        fs_err::write(&path, wrong.to_string()).unwrap();
        let told = context.run(&["verify"]).assert_code(1).stdout;
        assert!(told.contains("unreadable"), "{told}");
        context.run(&["verify", "--discard"]).assert_code(1);
        context.run(&["verify"]).assert_code(0);
        assert_eq!(context.executed(&[]).len(), 1);
        context.check_store();
    };
    for extension in ["x/../y", "../../x", "/etc/x", "a\u{0}b", &"x".repeat(300)] {
        wrong(&|outputs| outputs[0]["extension"] = extension.into());
    }
    for size in [5_u64, u64::MAX] {
        wrong(&|outputs| outputs[0]["size"] = size.into());
    }
    wrong(&|found| *found = vec![outputs[0].clone(); 3].into());
}

/// Actions that gave the same are no reason to keep each other.
#[test]
fn what_gave_the_same_is_not_kept_for_that() {
    let manifest = |value: u32| {
        format!(
            r#"
            format = 1
            pipeline.name = "alike"
            [stages.a]
            kind = "noop"
            params = {{ value = {value} }}
            [stages.b]
            kind = "command"
            inputs = {{ one = "a" }}
            params = {{ argv = ["sh", "-c", "echo ok > o.txt"], outputs.o.file = "o.txt" }}
            [stages.c]
            kind = "command"
            inputs = {{ o = "b" }}
            params = {{ argv = ["cp", "{{input.o}}", "{{output.o}}"], outputs.o.file = "o.txt" }}
            "#
        )
    };
    let context = Context::new(&manifest(1));
    for value in 1..=6 {
        context.write("pipeline.toml", &manifest(value));
        context.executed(&[]);
    }
    // What it was computed from stays, and what it is wired to now.
    let arguments = ["gc", "--grace", "0", "--keep-runs", "1", "--json"];
    let found = json(&context, &arguments, 0);
    assert_eq!(
        found["unwanted"]["results"].as_array().unwrap().len(),
        8,
        "{found}"
    );
    context
        .run(&["gc", "--grace", "0", "--keep-runs", "1", "--yes"])
        .assert_code(0);
    assert_eq!(context.executed(&[]), NOTHING);
    let told = context.run(&["lineage", "c"]).assert_code(0).stdout;
    assert!(told.contains(" a: noop"), "{told}");
}

/// Runs that came to nothing do not push out the last that was whole.
#[test]
fn the_last_complete_runs_are_kept() {
    let manifest = |value: u32, fails: bool| {
        format!(
            r#"
            format = 1
            pipeline.name = "fails"
            [stages.a]
            kind = "noop"
            params = {{ value = {value} }}
            [stages.c]
            kind = "fail"
            params = {{ message = "x", fails = {fails} }}
            "#
        )
    };
    let context = Context::new(&manifest(1, false));
    context.executed(&[]);
    for value in 2..=7 {
        context.write("pipeline.toml", &manifest(value, true));
        context.run(&["run"]).assert_code(1);
    }
    context.write("pipeline.toml", &manifest(8, false));
    for _ in 0..6 {
        context.executed(&["--only", "a", "--force", "a"]);
    }
    context.write("pipeline.toml", &manifest(1, false));
    context.run(&["gc", "--grace", "0", "--yes"]).assert_code(0);
    assert_eq!(context.executed(&[]), NOTHING);
}

/// Of a measurement that was lost and taken again, what was made from the first is needed by nothing.
#[test]
fn what_was_made_from_a_lost_measurement_is_gone_and_not_missing() {
    let context = Context::new(TIMES);
    context.executed(&[]);
    fs_err::remove_file(context.object("time")).unwrap();
    let found = json(&context, &["verify", "--json"], 1);
    assert_eq!(found["missing"][0]["cells"], serde_json::json!(["after", "time"]));
    context.executed(&[]);
    let found = json(&context, &["verify", "--json"], 0);
    assert_eq!(found["missing"], serde_json::json!([]));
    assert_eq!(found["gone"][0]["cells"], serde_json::json!(["after", "time"]));
    let told = context
        .run(&["gc", "--grace", "0", "--keep-runs", "0"])
        .assert_code(0)
        .stdout;
    assert!(
        told.contains("measured, or was made from that, cannot be had again"),
        "{told}"
    );
}

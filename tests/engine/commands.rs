use serde_json::Value;

use crate::context::{CHAIN, Context, files, finish};

#[test]
fn help_is_what_it_is() {
    let context = Context::new(CHAIN);
    let mut text = context.run(&["--help"]).assert_code(0).stdout;
    for command in [
        "run",
        "plan",
        "status",
        "show",
        "export",
        "path",
        "log",
        "why",
        "lineage",
        "runs",
        "diff",
        "audit",
        "verify",
        "gc",
        "pin",
        "unpin",
        "schema",
        "init",
        "doctor",
        "completions",
    ] {
        text.push_str(&format!("\n----- {command}\n"));
        text.push_str(&context.run(&[command, "--help"]).assert_code(0).stdout);
    }
    insta::assert_snapshot!("help", text);
}

#[test]
fn help_and_readme_name_the_same_exit_codes() {
    let readme = fs_err::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let table = readme.split("## Exit codes").nth(1).unwrap();
    let rows: Vec<(&str, &str)> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "))
        .filter(|(code, _)| code.parse::<u8>().is_ok())
        .collect();
    let help = Context::new(CHAIN).run(&["--help"]).assert_code(0).stdout;
    let told: Vec<(&str, &str)> = help
        .split("Exit codes:\n")
        .nth(1)
        .unwrap()
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .map(|(code, meaning)| (code, meaning.trim()))
        .collect();
    assert_eq!(rows.len(), 6);
    assert_eq!(told, rows);
}

#[test]
fn a_plan_says_what_would_run_and_why() {
    let context = Context::new(CHAIN);
    let plan = |arguments: &[&str]| {
        let outcome = context.run(&[&["plan"], arguments].concat()).assert_code(0);
        context.filtered(&outcome.stdout)
    };
    insta::assert_snapshot!(plan(&[]), @r"
    chain (pipeline.toml): 7 cells, 3 to run, 4 known only when those have run

      stage   kind  varies over  cells  up to date  to run  unknown
      first   noop  a                3                   3
      second  noop  a                3                            3
      total   noop                   1                            1

    why
      first, all 3 cells: never run
      second, all 3 cells: depends on what `first` gives
      total: depends on what `first` gives
    ");
    context.executed(&[]);
    insta::assert_snapshot!(plan(&[]), @r"
    chain (pipeline.toml): 7 cells, 7 up to date

      stage   kind  varies over  cells  up to date  to run  unknown
      first   noop  a                3           3
      second  noop  a                3           3
      total   noop                   1           1
    ");
    insta::assert_snapshot!(plan(&["--axis", "a=1,2,3,4", "--set", "stages.second.params.value=0.75"]), @r"
    chain (pipeline.toml with `--axis a=1,2,3,4 --set stages.second.params.value=0.75`): 9 cells, 3 up to date, 4 to run, 2 known only when those have run

      stage   kind  varies over  cells  up to date  to run  unknown
      first   noop  a                4           3       1
      second  noop  a                4                   3        1
      total   noop                   1                            1

    why
      first[a=4]: never run; nearest is first[a=1]: value 1.0 → 4.0
      second[a=4]: depends on what `first` gives
      second, 3 cells: value 0.5 → 0.75
      total: depends on what `second` gives; of its own, this changed: input many also collects a=4
    ");
    fs_err::remove_file(context.object("first[a=1]")).unwrap();
    insta::assert_snapshot!(plan(&["--verbose", "--force", "first[a=3]"]), @r"
    chain (pipeline.toml with `--force 'first[a=3]'`): 7 cells, 2 up to date, 2 to run, 3 known only when those have run

      stage   kind  varies over  cells  up to date  to run  unknown
      first   noop  a                3           1       2
      second  noop  a                3           1                2
      total   noop                   1                            1

      cell         key
      first[a=1]   [DIGEST]  to run      its artifact [DIGEST] is missing from the store
      first[a=2]   [DIGEST]  up to date
      first[a=3]   [DIGEST]  to run      forced
      second[a=1]                unknown     depends on what `first[a=1]` gives
      second[a=2]  [DIGEST]  up to date
      second[a=3]                unknown     depends on what `first[a=3]` gives
      total                      unknown     depends on what `first[a=1]` gives
    ");
    let reasons = plan(&[
        "--set",
        "stages.first.params.value=9",
        "--set",
        "stages.total.params.value=3",
    ]);
    insta::assert_snapshot!(reasons.split_once("why\n").unwrap().1, @r"
      first[a=1]: value 1.0 → 9.0
      first[a=2]: value 2.0 → 9.0
      first[a=3]: value 3.0 → 9.0
      second, all 3 cells: depends on what `first` gives
      total: depends on what `first` gives; of its own, this changed: value 0.0, the default → 3.0
    ");
}

#[test]
fn a_plan_of_a_store_that_does_not_exist_makes_none() {
    let context = Context::new(CHAIN);
    context.run(&["plan"]).assert_code(0);
    context.run(&["status"]).assert_code(0);
    assert!(!context.path("cache").exists());
}

#[test]
fn status_names_what_is_there_and_what_was_interrupted() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "napping"
        stages.quick = { kind = "noop" }
        stages.nap = { kind = "sleep", inputs = { one = "quick" }, params = { seconds = 600 } }
        "#,
    );
    let mut running = context.start(&[]);
    running.wait_for("cell-progress", "nap");
    let outcome = context.run(&["status"]).assert_code(0);
    let expected = format!("running\n  nap: process {} on ", running.child.id());
    assert!(outcome.stdout.contains(&expected), "{outcome:#?}");
    running.signal(rustix::process::Signal::INT);
    let run = running.finish();
    assert_eq!(run.code, Some(130));
    // It left nothing to go on from, until there is a checkpoint.
    let told = context.run(&["status"]).assert_code(0).stdout;
    assert!(!told.contains("interrupted, with"), "{told}");
    let told = context.run(&["why", "nap"]).assert_code(0).stdout;
    assert!(!told.contains("checkpoint"), "{told}");
    let folder = fs_err::read_dir(context.path("cache/partial-v1"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    fs_err::write(folder.path().join("checkpoint"), "1234").unwrap();
    let told = context.run(&["why", "nap"]).assert_code(0).stdout;
    assert!(
        told.contains("an earlier attempt was cut short in run ")
            && told.contains("; it goes on from a checkpoint"),
        "{told}"
    );
    let outcome = context.run(&["status"]).assert_code(0);
    let text = context.filtered(&outcome.stdout);
    insta::assert_snapshot!(text.split("\nlast run").next().unwrap(), @r"
    napping (pipeline.toml): 1 of 2 cells up to date
    store cache

      stage  cells  up to date
      quick      1           1
      nap        1           0

    interrupted, with checkpoints to go on from
      nap: 4 bytes
    ");
}

#[test]
fn status_says_how_the_last_run_ended() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "failing"
        stages.good = { kind = "noop" }
        stages.bad = { kind = "fail", params = { message = "no such luck" } }
        "#,
    );
    let last = || {
        let outcome = context.run(&["status"]).assert_code(0);
        outcome.stdout.split("last run ").nth(1).unwrap().to_owned()
    };
    context.events(&["--only", "good"]).assert_code(0);
    let told = last();
    assert!(
        told.contains(": done, 2") && told.ends_with(": 1 cell executed\n"),
        "{told}"
    );
    context.events(&[]).assert_code(1);
    let told = last();
    assert!(
        told.contains(": failed in part, 2") && told.ends_with(": 0 cells executed, 1 reused, 1 failed\n"),
        "{told}"
    );
}

#[test]
fn artifacts_are_shown_by_cell_by_digest_and_by_file() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let by_cell = context.run(&["show", "second[a=2]"]).assert_code(0).stdout;
    insta::assert_snapshot!(context.filtered(&by_cell), @r"
    second[a=2]
    output sum, content [DIGEST]
    object [DIGEST]
    478 bytes at [FOLDER]/cache/objects-v1/b1/[DIGEST]

    1 row, 1 column

      column  type  unit  missing  min  mean  max
      value   f64                  2.5  2.5   2.5

    first 1 of 1 rows
      value
      2.5
    ");
    let object = context.object("second[a=2.0].sum");
    let digest = object.file_name().unwrap();
    let by_digest = context.run(&["show", &digest[..10]]).assert_code(0).stdout;
    assert!(by_cell.ends_with(&by_digest), "{by_digest}");
    let by_file = context.run(&["show", "out/total.parquet"]).assert_code(0).stdout;
    assert!(by_file.contains("1 row, 1 column"), "{by_file}");
    assert_eq!(
        context.run(&["path", digest]).assert_code(0).stdout,
        format!("{object}\n")
    );
}

#[test]
fn rows_and_columns_are_shown_in_the_order_of_the_table() {
    let context = Context::new(CHAIN);
    let table = provenir_table::TableBuilder::new()
        .u64("zulu", vec![30, 10, 20])
        .utf8("alpha", ["c", "a", "b"])
        .build()
        .unwrap();
    provenir_table::write(&context.path("table.parquet"), &table).unwrap();
    let shown = context.run(&["show", "table.parquet"]).assert_code(0).stdout;
    let rows: Vec<Vec<&str>> = shown
        .split("first 3 of 3 rows\n")
        .nth(1)
        .unwrap()
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows, [["zulu", "alpha"], ["30", "c"], ["10", "a"], ["20", "b"]]);
}

#[test]
fn a_digest_needs_a_store_and_no_manifest() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "talking"
        stages.talk = { kind = "chatter", params = { text = "hello" } }
        "#,
    );
    let outcome = context.events(&[]).assert_code(0);
    let finished = outcome.event("cell-finished");
    let (key, object) = (
        finished["key"].as_str().unwrap(),
        finished["outputs"][0]["object"].as_str().unwrap(),
    );
    let by_cell = context.run(&["path", "talk"]).assert_code(0).stdout;
    fs_err::remove_file(context.path("pipeline.toml")).unwrap();
    for digest in [
        &key[..10],
        &key[..10].to_uppercase(),
        &format!("{}.sum", &key[..10]),
        &object[..10],
    ] {
        assert_eq!(context.run(&["path", digest]).assert_code(0).stdout, by_cell);
        let shown = context.run(&["show", digest]).assert_code(0);
        assert!(shown.stdout.contains("1 row, 1 column"), "{shown:#?}");
    }
    for digest in [&key[..10], &object[..10]] {
        let log = context.run(&["log", digest]).assert_code(0);
        assert!(log.stdout.contains("in the log: hello"), "{log:#?}");
    }
    let said = |arguments: &[&str]| context.filtered(&context.run(arguments).assert_code(2).stderr);
    insta::assert_snapshot!(said(&["show", &format!("{}.sun", &key[..12])]), @r"
    error: action [DIGEST] has no output `sun`
      help: it has `sum`
    ");
    let unknown = if key.starts_with("ffff") || object.starts_with("ffff") {
        "eeee"
    } else {
        "ffff"
    };
    for command in ["show", "path", "log"] {
        let said = said(&[command, unknown]).replace(unknown, "ffff");
        insta::allow_duplicates!(insta::assert_snapshot!(said, @r"
        error: no object and no action of the store `cache` has a digest that begins with `ffff`
          help: `provenir plan --verbose` lists the keys of actions, `provenir show CELL` an artifact's digest; `--cache` names another store
        "));
    }
    insta::assert_snapshot!(said(&["show", "ffff", "--cache", "absent"]), @r"
    error: there is no store `absent` to look for `ffff` in
      help: `--cache` or PROVENIR_CACHE names another store
    ");
    insta::assert_snapshot!(said(&["show", "talk"]), @r"
      × there is no file `pipeline.toml`
      help: name another manifest; `provenir init` writes one to begin with
    error: no manifest was read
    ");
}

#[test]
fn a_stage_whose_name_could_be_a_digest_is_a_stage() {
    let context = Context::new("format = 1\npipeline.name = \"one\"\nstages.face = { kind = \"noop\" }\n");
    context.executed(&[]);
    let shown = context.run(&["show", "face"]).assert_code(0).stdout;
    assert!(shown.starts_with("face\n"), "{shown}");
    let said = context.run(&["log", "face"]).assert_code(0).stderr;
    assert!(said.contains("`face` said nothing"), "{said}");
}

#[test]
fn mistakes_in_the_command_line_are_called_that() {
    let context = Context::new(CHAIN);
    let said = |arguments: &[&str]| context.filtered(&context.run(arguments).assert_code(2).stderr);
    insta::assert_snapshot!(said(&["run", "--axis", "a=x"]), @r#"
      × `value`: expected a number, found "x"
       ╭─[command line:1:10]
     1 │ --axis a=x
       ·          ─
       ╰────
      help: used here: pipeline.toml:12:20
    error: 1 problem in the command line; nothing was run
    "#);
    insta::assert_snapshot!(said(&["plan", "--only", "frst", "--axis", "b=1"]), @r"
      × there is no axis `b`
       ╭─[command line:1:8]
     1 │ --axis b=1
       ·        ─
       ╰────
      help: there is `a`

      × there is no stage `frst`
       ╭─[command line:1:8]
     1 │ --only frst
       ·        ────
       ╰────
      help: did you mean `first`?
    error: 2 problems in the command line
    ");
    insta::assert_snapshot!(said(&["plan", "chain.toml"]), @r"
      × there is no file `chain.toml`
      help: name another manifest; `provenir init` writes one to begin with
    error: no manifest was read
    ");
    context.write("study/one.toml", CHAIN);
    insta::assert_snapshot!(said(&["plan", "study"]), @r"
    error: `study` is a folder; a manifest is a file
      help: did you mean `study/one.toml`?
    ");
    context.write("study/two.toml", CHAIN);
    insta::assert_snapshot!(said(&["run", "study"]), @r"
    error: `study` is a folder; a manifest is a file
      help: in it lie `study/one.toml`, `study/two.toml`
    ");
    insta::assert_snapshot!(said(&["run", "--jobs", "0"]), @r"
    error: invalid value '0' for '--jobs <N>': write how many processor cores cells may occupy together, from 1 to 65,536; without the option, all are used

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(said(&["plan", "--cache", "pipeline.toml"]), @r"
    error: the store `[FOLDER]/pipeline.toml` is a file, not a folder
      help: name a folder, new or a store: `--cache FOLDER` or PROVENIR_CACHE
    ");
    for arguments in [
        &["plan", ""][..],
        &["plan", "--cache", ""],
        &["show", ""],
        &["init", ""],
    ] {
        assert!(
            said(arguments).contains("a value is required"),
            "{}",
            said(arguments)
        );
    }
}

#[test]
fn a_reference_that_means_nothing_names_the_nearest_right_thing() {
    let context = Context::new(CHAIN);
    let said = |arguments: &[&str]| context.filtered(&context.run(arguments).assert_code(2).stderr);
    insta::assert_snapshot!(said(&["show", "secnd[a=1]"]), @r"
    error: there is no stage `secnd`
      help: did you mean `second`?
    ");
    insta::assert_snapshot!(said(&["run", "--force", "totl"]), @r"
    error: there is no stage `totl`
      help: did you mean `total`?
    ");
    insta::assert_snapshot!(said(&["run", "--force", "noop"]), @r"
    error: there is no stage `noop`
      help: `noop` is the kind of the stages `first`, `second`, `total`
    ");
    context.write("empty.parquet", "");
    insta::assert_snapshot!(said(&["show", "empty.parquet"]), @"error: `empty.parquet` cannot be read as a Parquet table: it is empty");
    context.write("cut.zip", "PK\u{3}\u{4}");
    insta::assert_snapshot!(said(&["show", "cut.zip"]), @r"
    error: `cut.zip` cannot be read: the agent's archive: it is cut short or damaged, or no zip archive: the directory is missing that ends one
      help: an agent is the .zip file that `model.save` writes; is the download complete?
    ");
    insta::assert_snapshot!(said(&["show", "second[b=1]"]), @r"
    error: `second` has no axis `b`
      help: there is `a`
    ");
    insta::assert_snapshot!(said(&["show", "second[a=7]"]), @r"
    error: no cell of `second` has these values
      help: its cells: second[a=1], second[a=2], second[a=3]
    ");
    insta::assert_snapshot!(said(&["show", "second"]), @r"
    error: 3 cells are meant; name one
      help: second[a=1], second[a=2], second[a=3]
    ");
    insta::assert_snapshot!(said(&["show", "second[a=1].sun"]), @r"
    error: `second[a=1]` has no output `sun`
      help: did you mean `sum`?
    ");
    insta::assert_snapshot!(said(&["show", "second[a=1].sum"]), @r"
    error: the store does not have `second[a=1]` as the manifest now describes it
      help: `provenir run` computes it
    ");
    insta::assert_snapshot!(said(&["log", "second[a=1"]), @r"
    error: `second[a=1` is not a cell: `]` is missing
      help: write it like `policy` or `policy[epsilon=0.1, method=rbc]`
    ");
    insta::assert_snapshot!(said(&["log", "second[a=1]"]), @r"
    error: `second[a=1]` was not executed in any recorded run
      help: it has no result: `provenir why 'second[a=1]'` tells why it has to run, and what it waits for
    ");
}

#[test]
fn a_manifest_with_mistakes_is_shown_with_their_places() {
    let context = Context::new(&CHAIN.replace(
        "kind = \"noop\"\ninputs = { one = \"first\" }",
        "kind = \"nop\"\ninputs = { one = \"frst\" }",
    ));
    let outcome = context.run(&["run"]).assert_code(2);
    assert!(
        outcome.stderr.contains("pipeline.toml:15:8"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("did you mean"), "{}", outcome.stderr);
    assert!(
        outcome
            .stderr
            .ends_with("problems in the manifest; nothing was run\n"),
        "{}",
        outcome.stderr
    );
    assert!(!context.path("cache").exists());
}

#[test]
fn the_store_is_the_one_asked_for_or_the_nearest_or_beside_the_manifest() {
    let context = Context::new(CHAIN);
    let manifest = "deep/down/study.toml";
    context.write(manifest, CHAIN);
    let run = |arguments: &[&str], variable: Option<&str>| {
        let mut command = context.command(&[&["run", "--quiet", manifest], arguments].concat());
        if let Some(variable) = variable {
            command.env("PROVENIR_CACHE", context.path(variable));
        }
        finish(&mut command).assert_code(0);
    };
    run(&[], None);
    assert!(context.path("deep/down/cache/results-v1").exists());
    fs_err::remove_dir_all(context.path("deep/down/cache")).unwrap();
    context.run(&["run", "--quiet"]).assert_code(0);
    run(&[], None);
    assert!(
        !context.path("deep/down/cache").exists(),
        "the nearest store upwards is used"
    );
    run(&[], Some("by-variable"));
    assert!(context.path("by-variable/results-v1").exists());
    run(&["--cache", "by-option"], Some("other"));
    assert!(context.path("by-option/results-v1").exists() && !context.path("other").exists());
}

#[test]
fn a_folder_that_holds_something_else_does_not_become_a_store() {
    let context = Context::new(CHAIN);
    let outcome = context.run(&["run", "--cache", "."]).assert_code(2);
    insta::assert_snapshot!(context.filtered(&outcome.stderr), @r"
    error: `[FOLDER]` is not a store of Provenir and holds other files
      help: name a new or empty folder, or a store
    ");
    assert!(!context.path(".gitignore").exists());
}

/// Commands that read write nothing into a folder that is no store, and do not make it one.
#[test]
fn reading_leaves_a_folder_of_somebody_else_as_it_is() {
    let context = Context::new(CHAIN);
    context.write("cache/data.txt", "mine");
    for arguments in [
        &["plan"][..],
        &["status"],
        &["why", "total"],
        &["show", "total"],
        &["log", "total"],
        &["lineage", "total"],
        &["pin"],
        &["runs"],
        &["verify"],
        &["gc"],
        &["doctor"],
    ] {
        let outcome = context.run(arguments);
        assert_eq!(
            files(&context.path("cache")),
            [context.path("cache/data.txt")],
            "{arguments:?}"
        );
        assert_eq!(
            context.path("cache").read_dir_utf8().unwrap().count(),
            1,
            "{arguments:?}"
        );
        if arguments == ["doctor"] {
            assert!(
                outcome
                    .stdout
                    .contains("is not a store of Provenir and holds other files"),
                "{outcome:#?}"
            );
            outcome.assert_code(3);
        }
    }
    // An index that an earlier version wrote there does not make it a store either.
    context.write("cache/index-v1.sqlite", "");
    let outcome = context.run(&["run"]).assert_code(2);
    assert!(
        outcome.stderr.contains("is not a store of Provenir"),
        "{outcome:#?}"
    );
    assert_eq!(files(&context.path("cache")).len(), 2);
    context.run(&["doctor"]).assert_code(3);
    // In a folder where nothing else is, a run makes one, and `doctor` says so without making it.
    fs_err::create_dir(context.path("empty")).unwrap();
    let outcome = context.run(&["doctor", "--cache", "empty"]).assert_code(0);
    assert!(
        outcome.stdout.contains("will be made a store by the first run"),
        "{outcome:#?}"
    );
    assert_eq!(context.path("empty").read_dir_utf8().unwrap().count(), 0);
    context.run(&["run", "--cache", "empty"]).assert_code(0);
}

#[test]
fn init_lays_out_a_manifest_and_a_store_once() {
    let context = Context::new(CHAIN);
    let outcome = context.run(&["init", "study"]).assert_code(0);
    let (head, tail) = outcome.stderr.split_once("comes with Provenir: `").unwrap();
    let (expert, tail) = tail.split_once('`').unwrap();
    insta::assert_snapshot!(format!("{head}comes with Provenir: `[EXPERT]`{tail}"), @r"
    wrote `study/pipeline.toml`, and a store beside it: `study/cache`
    the expert that it takes comes with Provenir: `[EXPERT]` (README.md beside it says how it was trained)
    next: `provenir plan study/pipeline.toml` and `provenir run study/pipeline.toml`
    ");
    assert!(context.path("study").join(expert).is_file(), "{expert}");
    assert!(
        context
            .path("study")
            .join(expert)
            .with_file_name("README.md")
            .is_file()
    );
    let manifest = String::from_utf8(context.read("study/pipeline.toml")).unwrap();
    assert!(
        manifest.contains(expert) && manifest.contains("This expert comes with Provenir"),
        "{manifest}"
    );
    for name in [
        "pipeline.toml",
        "cache/CACHEDIR.TAG",
        "cache/README.md",
        "cache/.gitignore",
    ] {
        assert!(context.path("study").join(name).is_file(), "{name}");
    }
    let outcome = context.run(&["init", "study"]).assert_code(2);
    insta::assert_snapshot!(context.filtered(&outcome.stderr), @r"
    error: `study/pipeline.toml` exists and stays as it is
      help: name another folder: `provenir init FOLDER`
    ");
}

#[test]
fn doctor_finds_nothing_wrong_here() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let outcome = context.run(&["doctor"]).assert_code(0);
    assert!(
        outcome
            .stdout
            .lines()
            .all(|line| line.starts_with("ok ") || line.starts_with("   ")),
        "{outcome:#?}"
    );
    assert!(
        outcome
            .stdout
            .contains(&format!("build {}", provenir_build_id::BUILD))
    );
    let machine = outcome.stdout.lines().nth(1).unwrap();
    assert!(
        machine.ends_with("GiB of memory") || machine.ends_with("MiB of memory"),
        "{machine}"
    );
    assert!(!machine.contains("1 cores"), "{machine}");
}

#[test]
fn machines_read_schema_completions_and_events() {
    let context = Context::new(CHAIN);
    let schema: Value = serde_json::from_str(&context.run(&["schema"]).assert_code(0).stdout).unwrap();
    assert!(schema["properties"]["stages"].is_object());
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            context
                .run(&["completions", shell])
                .assert_code(0)
                .stdout
                .contains("provenir")
        );
    }
    let outcome = context.events(&[]).assert_code(0);
    let events = outcome.events();
    assert_eq!(events.first().unwrap()["event"], "run-started");
    assert_eq!(events.last().unwrap()["event"], "run-finished");
    assert_eq!(outcome.stderr, "");
}

#[test]
fn a_run_is_recorded_with_what_it_was_asked_and_what_it_did() {
    let context = Context::new(CHAIN);
    for arguments in [
        &["init", "--quiet"][..],
        &[
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.invalid",
            "commit",
            "--allow-empty",
            "--quiet",
            "-m",
            "x",
        ],
    ] {
        assert!(context.program("git", arguments).status().unwrap().success());
    }
    context.executed(&[]);
    context.executed(&["--axis", "a=1,2,4"]);
    let runs = context.runs();
    assert_eq!(runs.len(), 2);
    let json =
        |name: &str| -> Value { serde_json::from_slice(&fs_err::read(runs[1].join(name)).unwrap()).unwrap() };
    let head = json("run.json");
    assert_eq!(head["pipeline"], "chain");
    assert_eq!(head["resolved"]["axes"]["a"], serde_json::json!([1, 2, 4]));
    assert_eq!(head["git"]["dirty"], false);
    assert_eq!(head["git"]["commit"].as_str().unwrap().len(), 40);
    assert_eq!(head["program"]["build"], provenir_build_id::BUILD);
    assert_eq!(json("outcome.json")["summary"]["ran"], 3);
    let records = fs_err::read_to_string(runs[1].join("records.jsonl")).unwrap();
    let records: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        records.len(),
        4,
        "one line a cell executed, and one that sums up those reused"
    );
    assert_eq!(
        records[0]["cells"].as_array().unwrap().len(),
        4,
        "it is known what the run relies on before anything runs"
    );
    assert_eq!(records[1]["action"]["kind"], "noop");
    let events = fs_err::read_to_string(runs[1].join("events.jsonl")).unwrap();
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert!(event["time"].is_string() && event["event"].is_string());
    }
}

#[test]
fn a_quiet_run_says_what_went_wrong_and_nothing_else() {
    let context = Context::new(CHAIN);
    let mut command = context.command(&["run", "--quiet"]);
    let output = command.output().unwrap();
    assert!(output.status.success());
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    context.write("failing.toml", "format = 1\n[pipeline]\nname = \"f\"\n[stages.bad]\nkind = \"fail\"\nparams = { message = \"no luck\" }\n");
    let output = context
        .command(&["run", "--quiet", "failing.toml"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no luck"));
}

#[test]
fn a_manifest_is_the_same_by_whatever_path_it_is_named() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    fs_err::create_dir(context.path("sub")).unwrap();
    std::os::unix::fs::symlink(&context.folder, context.path("sub/link")).unwrap();
    for (place, path) in [
        ("sub", "../pipeline.toml"),
        (".", "sub/link/pipeline.toml"),
        ("sub", "./../sub/../pipeline.toml"),
    ] {
        let mut command = context.command(&["run", path, "--force", "first[a=1]"]);
        command.current_dir(context.path(place));
        finish(&mut command).assert_code(0);
        let run = context.runs().last().unwrap().file_name().unwrap().to_owned();
        let status = context.run(&["status"]).assert_code(0).stdout;
        assert!(
            status.contains(&format!("last run {run} of `pipeline.toml`")),
            "{status}"
        );
        let why = context.run(&["why", "first[a=1]"]).assert_code(0).stdout;
        assert!(why.contains("although it was the same action in run "), "{why}");
        let mut command = context.command(&["runs", "--manifest", path, "--json"]);
        command.current_dir(context.path(place));
        let runs: serde_json::Value =
            serde_json::from_str(&finish(&mut command).assert_code(0).stdout).unwrap();
        assert_eq!(runs.as_array().unwrap().len(), context.runs().len());
        let mut command = context.command(&["lineage", &path.replace("pipeline.toml", "out/total.parquet")]);
        command.current_dir(context.path(place));
        let told = finish(&mut command).assert_code(0).stdout;
        assert!(told.contains(" makes the same today (total)\n"), "{told}");
    }
}

#[test]
fn what_cannot_be_meant_is_told_before_anything_is_planned() {
    let context = Context::new(CHAIN);
    let told = context.run(&["why", "first[a=1, a=2]"]).assert_code(2).stderr;
    assert!(told.contains("`a` is given twice"), "{told}");
    fs_err::create_dir(context.path("full")).unwrap();
    context.write("full/notes.txt", "mine");
    for command in ["plan", "status", "run"] {
        let told = context.run(&[command, "--cache", "full"]).assert_code(2).stderr;
        assert!(told.contains("full"), "{told}");
    }
    context.executed(&[]);
    fs_err::rename(context.path("pipeline.toml"), context.path("study.toml")).unwrap();
    for command in ["lineage", "why", "log"] {
        let told = context.run(&[command, "results.txt"]).assert_code(2).stderr;
        assert!(
            told.contains("results.txt") && !told.contains("no manifest was read"),
            "{command}: {told}"
        );
    }
}

#[test]
fn a_log_of_what_was_never_executed_says_why_there_is_none() {
    let context = Context::new(
        "format = 1\npipeline.name = \"blocked\"\nstages.bad = { kind = \"fail\", params = { message = \"boom\" } }\nstages.after = { kind = \"noop\", inputs = { one = \"bad\" } }\n",
    );
    context.run(&["run"]).assert_code(1);
    let told = context.run(&["log", "after"]).assert_code(2).stderr;
    assert!(
        told.contains("it has no result: `provenir why after` tells"),
        "{told}"
    );
}

use crate::context::{CHAIN, Context, finish};

#[test]
fn copies_are_restored_when_they_are_missing_or_were_altered() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let published = context.read("out/total.parquet");
    assert_eq!(published, fs_err::read(context.object("total")).unwrap());

    fs_err::remove_file(context.path("out/total.parquet")).unwrap();
    let outcome = context.run(&["run"]).assert_code(0);
    insta::assert_snapshot!(context.filtered(&outcome.stderr), @r"
    restored `out/total.parquet`, which was missing
    nothing to run: 7 cells up to date, 1 published file written ([TIME])
    published:
      out/total.parquet
    ");
    assert_eq!(context.read("out/total.parquet"), published);

    context.write("out/total.parquet", "altered");
    let outcome = context.run(&["run"]).assert_code(0);
    insta::assert_snapshot!(context.filtered(&outcome.stderr), @r"
    warning: restored `out/total.parquet`, which had been altered; the file that was there is kept as `out/total.parquet.orig`
    nothing to run: 7 cells up to date, 1 published file written ([TIME])
    published:
      out/total.parquet
    ");
    assert_eq!(context.read("out/total.parquet"), published);
}

#[test]
fn a_plan_tells_what_a_run_would_publish() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let plan = |arguments: &[&str]| {
        let outcome = context.run(&[&["plan"], arguments].concat()).assert_code(0);
        context.filtered(&outcome.stdout)
    };
    let state = || {
        let outcome = context.run(&["plan", "--json"]).assert_code(0);
        let cells: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(cells[0]["publish"], serde_json::json!([]));
        let copy = cells[6]["publish"][0].clone();
        assert_eq!(copy["port"], "sum");
        assert_eq!(copy["path"], context.path("out/total.parquet").as_str());
        assert_eq!(copy["problem"].is_null(), !copy["state"].is_null());
        copy["state"].clone()
    };
    assert!(!plan(&[]).contains("publish"));
    assert_eq!(state(), "unchanged");

    fs_err::remove_file(context.path("out/total.parquet")).unwrap();
    insta::assert_snapshot!(plan(&[]), @r"
    chain (pipeline.toml): 7 cells, 7 up to date; 1 file to publish

      stage   kind  varies over  cells  up to date  to run  unknown
      first   noop  a                3           3
      second  noop  a                3           3
      total   noop                   1           1

    published
      out/total.parquet (total): is missing; `run` restores it
    ");
    assert_eq!(state(), "restored-missing");

    context.write("out/total.parquet", "altered");
    let told = plan(&["--verbose"]);
    assert!(
        told.ends_with(
            "\npublished\n  out/total.parquet (total): was altered; `run` restores it, and keeps the altered file beside it\n"
        ),
        "{told}"
    );
    assert_eq!(state(), "restored-altered");
    // A plan changes nothing.
    assert_eq!(context.read("out/total.parquet"), b"altered");
    assert!(!context.path("out/total.parquet.orig").exists());
    context.executed(&[]);
    assert_eq!(state(), "unchanged");

    fs_err::remove_file(context.path("out/total.parquet")).unwrap();
    fs_err::create_dir(context.path("out/total.parquet")).unwrap();
    assert!(plan(&[]).contains("a folder has that name"), "{}", plan(&[]));
    assert!(state().is_null());
}

#[test]
fn the_title_of_a_plan_tells_what_was_asked_for() {
    let context = Context::new(&(CHAIN.to_owned() + "\n[profiles.small]\naxes.a = [1]\n"));
    let title = |arguments: &[&str]| {
        let outcome = context.run(&[&["plan"], arguments].concat()).assert_code(0);
        outcome.stdout.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        title(&[
            "--profile",
            "small",
            "--set",
            "stages.second.params.value=0.75",
            "--force",
            "first[a=1]"
        ]),
        "chain (pipeline.toml with `--profile small --set stages.second.params.value=0.75 --force 'first[a=1]'`): 3 cells, 1 to run, 2 known only when those have run"
    );
    assert!(title(&[]).starts_with("chain (pipeline.toml): 7 cells"));
}

#[test]
fn a_restored_copy_is_told_and_listed() {
    let context = Context::new(&CHAIN.replace(
        "publish = {",
        "publish = { sum = \"out/total.parquet\" }\n\n[stages.other]\nkind = \"noop\"\npublish = { sum = \"out/other.parquet\" }\n#",
    ));
    context.executed(&[]);
    fs_err::remove_file(context.path("out/total.parquet")).unwrap();
    let outcome = context.run(&["run", "--force", "other"]).assert_code(0);
    insta::assert_snapshot!(context.filtered(&outcome.stderr), @r"
    chain: 8 cells, 7 up to date
    started other
    finished other in [TIME]
    restored `out/total.parquet`, which was missing
    1 cell executed, 7 reused in [TIME]
    published:
      out/total.parquet
      out/other.parquet
    ");
}

#[test]
fn a_copy_follows_its_cell_and_is_nobodys_link() {
    use std::os::unix::fs::MetadataExt;

    let context = Context::new(CHAIN);
    context.executed(&[]);
    let first = context.read("out/total.parquet");
    context.executed(&["--set", "stages.total.params.value=1"]);
    assert_ne!(context.read("out/total.parquet"), first);
    context.executed(&[]);
    assert_eq!(context.read("out/total.parquet"), first);
    let metadata = fs_err::metadata(context.path("out/total.parquet")).unwrap();
    assert_eq!(metadata.nlink(), 1);
    assert_eq!(
        metadata.mode() & 0o200,
        0o200,
        "a person may edit the copy, never the object"
    );
}

#[test]
fn a_file_that_somebody_else_wrote_is_kept() {
    let context = Context::new(CHAIN);
    context.write("out/total.parquet", "precious");
    let outcome = context.run(&["run", "--quiet"]).assert_code(0);
    let told = outcome.stderr.lines().next().unwrap();
    insta::assert_snapshot!(context.filtered(told), @r"warning: published `out/total.parquet`, where another file was; the file that was there is kept as `out/total.parquet.orig`");
    assert_eq!(context.read("out/total.parquet.orig"), b"precious");
    assert_eq!(
        context.read("out/total.parquet"),
        fs_err::read(context.object("total")).unwrap()
    );
}

#[test]
fn what_was_changed_by_hand_is_kept_once() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let published = context.read("out/total.parquet");
    for _ in 0..2 {
        context.write("out/total.parquet", "by hand");
        context.run(&["run"]).assert_code(0);
        assert_eq!(context.read("out/total.parquet"), published);
        assert_eq!(context.read("out/total.parquet.orig"), b"by hand");
    }
    assert_eq!(crate::context::files(&context.path("out")).len(), 2);
}

#[test]
fn a_table_that_its_copy_alone_still_holds_is_kept() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let first = context.read("out/total.parquet");
    fs_err::remove_dir_all(context.path("cache")).unwrap();
    context.executed(&["--set", "stages.total.params.value=1"]);
    assert_ne!(context.read("out/total.parquet"), first);
    assert_eq!(context.read("out/total.parquet.orig"), first);
    // Of what the store has, nothing is kept aside.
    context.executed(&["--set", "stages.total.params.value=2"]);
    assert_eq!(crate::context::files(&context.path("out")).len(), 2);
}

#[test]
fn a_folder_that_cannot_hold_a_copy_is_told_with_what_to_do() {
    let context = Context::new(CHAIN);
    std::os::unix::fs::symlink("nowhere", context.path("out")).unwrap();
    let said = |code| {
        let outcome = context.run(&["run", "--only", "total"]).assert_code(code);
        let told = context.filtered(&outcome.stderr);
        told.lines()
            .filter(|line| line.contains("error") || line.contains("help"))
            .fold(String::new(), |told, line| told + line + "\n")
    };
    insta::assert_snapshot!(said(3), @r"
    error: cannot publish `out/total.parquet`: `[FOLDER]/out` is a link to a place that does not exist
      help: move it away, or publish elsewhere (`publish` in the manifest); then run again
    ");
    fs_err::remove_file(context.path("out")).unwrap();
    context.write("out", "a file");
    insta::assert_snapshot!(said(3), @r"
    error: cannot publish `out/total.parquet`: `[FOLDER]/out` is a file, not a folder
      help: move it away, or publish elsewhere (`publish` in the manifest); then run again
    ");
    fs_err::remove_file(context.path("out")).unwrap();
    said(0);
}

#[test]
fn a_store_that_was_lost_does_not_make_copies_foreign() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    fs_err::remove_dir_all(context.path("cache")).unwrap();
    let outcome = context.run(&["run"]).assert_code(0);
    assert!(!outcome.stderr.contains("orig"), "{outcome:#?}");
    assert_eq!(
        crate::context::files(&context.path("out")),
        [context.path("out/total.parquet")]
    );
}

#[test]
fn a_folder_in_the_way_is_told_and_loses_nothing() {
    let context = Context::new(CHAIN);
    fs_err::create_dir_all(context.path("out/total.parquet/inside")).unwrap();
    let outcome = context.events(&[]).assert_code(3);
    assert_eq!(outcome.cells("cell-finished").len(), 7);
    let failure = &outcome.event("not-published")["failure"];
    assert!(
        failure["message"]
            .as_str()
            .unwrap()
            .starts_with("a folder has that name"),
        "{failure}"
    );
    fs_err::remove_dir_all(context.path("out/total.parquet")).unwrap();
    let outcome = context.events(&[]).assert_code(0);
    assert_eq!(outcome.cells("cell-finished"), [""; 0]);
    assert!(context.path("out/total.parquet").is_file());
}

#[test]
fn nothing_is_published_into_the_store() {
    let context = Context::new(&CHAIN.replace("out/total.parquet", "cache/objects-v1/total.parquet"));
    let outcome = context.run(&["run"]).assert_code(2);
    insta::assert_snapshot!(context.filtered(&outcome.stderr), @r"
    error: `total` would be published as `cache/objects-v1/total.parquet`, which lies in the store `cache`
      help: publish it elsewhere; `provenir path` says where the store keeps an artifact
    ");
    assert!(context.runs().is_empty(), "{outcome:#?}");
}

#[test]
fn whose_place_a_copy_takes_is_told() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.write("other.toml", &CHAIN.replace("0.5", "0.75"));
    let told = context.run(&["run", "other.toml"]).assert_code(0).stderr;
    assert!(
        told.contains("warning: published `out/total.parquet`, where the copy of `pipeline.toml` was: whichever runs last has the place"),
        "{told}"
    );
    let told = context.run(&["run"]).assert_code(0).stderr;
    assert!(told.contains("where the copy of `other.toml` was"), "{told}");
    // A manifest that is not there any more wants no place.
    context.run(&["run", "other.toml"]).assert_code(0);
    fs_err::remove_file(context.path("other.toml")).unwrap();
    let told = context.run(&["run"]).assert_code(0).stderr;
    assert!(!told.contains("warning"), "{told}");
}

#[test]
fn status_counts_published_files_that_are_not_as_they_were_left() {
    let context = Context::new(CHAIN);
    let status = || context.run(&["status"]).assert_code(0).stdout;
    assert!(!status().contains("published"), "nothing was published yet");
    context.executed(&[]);
    assert!(!status().contains("published"), "{}", status());
    let told = "\n1 published file is missing or altered: `provenir plan` tells which\n";
    context.write("out/total.parquet", "altered");
    assert!(status().contains(told), "{}", status());
    fs_err::remove_file(context.path("out/total.parquet")).unwrap();
    assert!(status().contains(told), "{}", status());
    context.executed(&[]);
    assert!(!status().contains("published"), "{}", status());
}

#[test]
fn a_missing_copy_is_missing_whatever_it_showed() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.executed(&["--set", "stages.total.params.value=1"]);
    fs_err::remove_file(context.path("out/total.parquet")).unwrap();
    let plan = context.run(&["plan"]).assert_code(0).stdout;
    assert!(
        plan.contains("out/total.parquet (total): is missing; `run` restores it\n"),
        "{plan}"
    );
    let status = context.run(&["status"]).assert_code(0).stdout;
    assert!(
        status.contains("1 published file is missing or altered"),
        "{status}"
    );
}

#[test]
fn a_copy_that_was_removed_after_its_project_was_moved_is_missing() {
    let context = Context::new(CHAIN);
    let place = context.path("before");
    fs_err::create_dir(&place).unwrap();
    fs_err::rename(context.path("pipeline.toml"), place.join("pipeline.toml")).unwrap();
    let run = |folder: &str, arguments: &[&str]| {
        let mut command = context.command(arguments);
        command.current_dir(context.path(folder));
        finish(&mut command).assert_code(0).stdout
    };
    run("before", &["run"]);
    fs_err::rename(&place, context.path("after")).unwrap();
    fs_err::remove_file(context.path("after/out/total.parquet")).unwrap();
    let plan = run("after", &["plan"]);
    assert!(
        plan.contains("out/total.parquet (total): is missing; `run` restores it\n"),
        "{plan}"
    );
}

#[test]
fn nothing_is_published_into_the_store_and_plan_says_so_too() {
    for publish in ["cache/objects-v1/total.parquet", "link/total.parquet"] {
        let context = Context::new(CHAIN);
        context.executed(&[]);
        std::os::unix::fs::symlink(context.path("cache/objects-v1"), context.path("link")).unwrap();
        context.write("pipeline.toml", &CHAIN.replace("out/total.parquet", publish));
        for command in ["plan", "run"] {
            let told = context.run(&[command]).assert_code(2).stderr;
            assert!(
                told.contains("which lies in the store `cache`"),
                "{command}: {told}"
            );
        }
        context.run(&["verify"]).assert_code(0);
    }
}

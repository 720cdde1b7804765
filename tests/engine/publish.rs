use crate::context::{CHAIN, Context};

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
    ");
    assert_eq!(context.read("out/total.parquet"), published);

    context.write("out/total.parquet", "altered");
    let outcome = context.run(&["run"]).assert_code(0);
    insta::assert_snapshot!(context.filtered(&outcome.stderr), @r"
    restored `out/total.parquet`, which had been altered
    nothing to run: 7 cells up to date, 1 published file written ([TIME])
    ");
    assert_eq!(context.read("out/total.parquet"), published);
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
    insta::assert_snapshot!(context.filtered(told), @"warning: published `out/total.parquet`, where another file was; the file that was there is kept as `[FOLDER]/out/total.parquet.orig`");
    assert_eq!(context.read("out/total.parquet.orig"), b"precious");
    assert_eq!(
        context.read("out/total.parquet"),
        fs_err::read(context.object("total")).unwrap()
    );
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
            .contains("a folder has that name"),
        "{failure}"
    );
    fs_err::remove_dir_all(context.path("out/total.parquet")).unwrap();
    let outcome = context.events(&[]).assert_code(0);
    assert_eq!(outcome.cells("cell-finished"), [""; 0]);
    assert!(context.path("out/total.parquet").is_file());
}

//! What was computed from files that are not there any more is explained all the same.

use crate::context::Context;

const TAKES: &str = r#"
format = 1
pipeline.name = "sources"
[stages.taken]
kind = "command"
params.argv = ["sh", "-c", "cat data.txt > out.txt"]
params.files = { "data.txt" = "data.txt" }
params.outputs.out.file = "out.txt"
[stages.after]
kind = "noop"
"#;

const GONE: &str = "warning: the source file `data.txt` is not there any more; it is taken to hold what it held when a run last took it\n";

#[test]
fn cells_of_a_source_file_that_is_gone_are_explained_and_not_run() {
    let context = Context::new(TAKES);
    context.write("data.txt", "one\n");
    context.executed(&[]);
    context.write("data.txt", "two\n");
    context.executed(&[]);
    fs_err::remove_file(context.path("data.txt")).unwrap();
    for (command, told) in [
        (&["why", "taken"][..], "data.txt"),
        (&["why", "after"], "is up to date"),
        (&["lineage", "taken"], "data.txt"),
        (&["show", "taken"], "\n4 bytes at "),
        (&["path", "taken"], "cache/objects-v1/"),
    ] {
        let outcome = context.run(command).assert_code(0);
        assert!(outcome.stderr == GONE, "{command:?}: {outcome:#?}");
        assert!(outcome.stdout.contains(told), "{command:?}: {outcome:#?}");
    }
    let why = context.run(&["why", "taken"]).assert_code(0).stdout;
    assert!(why.contains("is up to date"), "{why}");
    let lineage = context.run(&["lineage", "data.txt"]).assert_code(0).stdout;
    assert!(
        lineage.starts_with("`data.txt` is a source file, and is not there any more\n")
            && lineage.contains("taken"),
        "{lineage}"
    );
    // What would compute something needs it.
    for command in [&["run"][..], &["plan"], &["audit", "--all"]] {
        let outcome = context.run(command);
        assert_ne!(outcome.code, Some(0), "{command:?}");
        assert!(
            outcome.stderr.contains("there is no file `data.txt`"),
            "{command:?}: {outcome:#?}"
        );
    }
    // What no run ever took is a mistake.
    context.write(
        "pipeline.toml",
        &TAKES.replace("= \"data.txt\" }", "= \"date.txt\" }"),
    );
    let outcome = context.run(&["why", "after"]).assert_code(2);
    assert!(
        outcome.stderr.contains("there is no file `date.txt`"),
        "{outcome:#?}"
    );
}

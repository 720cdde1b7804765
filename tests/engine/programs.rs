use std::process::Command;

use camino::Utf8PathBuf;

use crate::context::{Context, eventually, finish, is_alive};

const NOTHING: [&str; 0] = [];

/// A number, a program that copies it and writes a text beside it, and what takes the copy.
const COPIED: &str = r#"
format = 1

[pipeline]
name = "programs"

[stages.number]
kind = "noop"
params = { value = 3 }

[stages.copied]
kind = "command"
inputs = { number = "number" }
publish = { note = "out/note.txt" }

[stages.copied.params]
argv = ["sh", "copy.sh", "{input.number}", "{output.table}", "{value.word}"]
files = { "copy.sh" = "scripts/copy.sh" }
values = { word = "hello" }
outputs.table.columns.value = "f64"
outputs.note.file = "note.txt"

[stages.sum]
kind = "noop"
inputs = { one = "copied.table" }
params = { value = 4 }
"#;

const COPY: &str = "echo copying\ncp \"$1\" \"$2\"\necho \"$3\" > note.txt\n";

fn copied() -> Context {
    let context = Context::new(COPIED);
    context.write("scripts/copy.sh", COPY);
    context
}

/// One stage, by what follows `argv = ` and by its outputs.
fn alone(argv: &str, more: &str) -> Context {
    Context::new(&format!(
        "format = 1\npipeline.name = \"alone\"\n\n[stages.run]\nkind = \"command\"\n\n[stages.run.params]\nargv = {argv}\n{more}\n"
    ))
}

#[test]
fn a_program_runs_once_and_its_outputs_go_on() {
    let context = copied();
    assert_eq!(context.executed(&[]), ["copied", "number", "sum"]);
    assert_eq!(context.read("out/note.txt"), b"hello\n");
    let told = context.run(&["show", "sum"]).assert_code(0).stdout;
    assert!(told.contains('7'), "{told}");
    assert_eq!(context.object("copied.table"), context.object("number"));
    assert_eq!(context.object("copied.note").extension(), None);
    assert!(
        context
            .run(&["log", "copied"])
            .assert_code(0)
            .stdout
            .contains("copying")
    );
    assert_eq!(context.executed(&[]), NOTHING);
    context.check_store();
}

#[test]
fn what_the_program_sees_decides_whether_it_runs_again() {
    let context = copied();
    context.executed(&[]);
    // An edited script gives the same table: what takes it stays.
    context.write("scripts/copy.sh", &format!("# edited\n{COPY}"));
    let why = context.run(&["why", "copied"]).assert_code(0).stdout;
    assert!(
        why.contains("scripts/copy.sh") || why.contains("copy.sh"),
        "{why}"
    );
    assert_eq!(context.executed(&[]), ["copied"]);
    // Its name and its place are nothing that it sees.
    fs_err::rename(context.path("scripts/copy.sh"), context.path("elsewhere.sh")).unwrap();
    context.write(
        "pipeline.toml",
        &COPIED.replace("scripts/copy.sh", "elsewhere.sh"),
    );
    assert_eq!(context.executed(&[]), NOTHING);
    // Its name in its folder is.
    let manifest = COPIED
        .replace("\"scripts/copy.sh\"", "\"elsewhere.sh\"")
        .replace("copy.sh", "other.sh");
    context.write("pipeline.toml", &manifest);
    assert_eq!(context.executed(&[]), ["copied"]);
    assert_eq!(
        context.executed(&["--set", "stages.copied.params.values.word=bye"]),
        ["copied"]
    );
    assert_eq!(context.read("out/note.txt"), b"bye\n");
    // How often it agrees with itself is for `audit` to know.
    assert_eq!(
        context.executed(&["--set", "stages.copied.params.determinism=exact"]),
        NOTHING
    );
    context.check_store();
}

#[test]
fn a_script_that_is_not_there_is_told_with_its_place() {
    let context = Context::new(COPIED);
    let said = context.run(&["plan"]).assert_code(2).stderr;
    insta::assert_snapshot!(context.filtered(&said));
}

#[test]
fn mistakes_are_told_all_at_once_with_their_places() {
    let context = Context::new(
        r#"
format = 1

[pipeline]
name = "mistakes"

[axes]
name = ["a", "b"]

[stages.number]
kind = "noop"

[stages.first]
kind = "command"
inputs = { number = "number", "../x" = "number", list = ["number"] }

[stages.first.params]
argv = ["sh", "{input.number}", "{ouptut.table}", "{value.n}"]
outputs.table = { columns = { x = "float64" } }
outputs.model.file = "../model.pt"
outputs.other.file = "/tmp/other.txt"
inherit = ["$HOME"]

[stages.second]
kind = "command"
inputs = { number = "number" }
publish = { tabel = "out.parquet" }

[stages.second.params]
argv = ["cp", "{input.nubmer}", "{output.table}"]
outputs.table.columns.x = "f64"
outputs.note.file = "note.txt"

[stages.third]
kind = "noop"
inputs = { one = "second.table", many = "second" }

[stages.fourth]
kind = "command"
params = { argv = [], outputs = { "${name}" = { file = "x.txt" } } }

[stages.fifth]
kind = "command"
params.argv = ["true"]
params.outputs.x.file = "x.txt"

[[stages.fifth.override]]
where = { name = "b" }
params.outputs.x.file = "x.json"

[stages.sixth]
kind = "command"
inputs = { number = "number" }
params.argv = ["true"]
params.inputs.number.columns = { other = "f64" }
params.outputs.x.file = "x.txt"
"#,
    );
    let said = context.run(&["plan"]).assert_code(2).stderr;
    insta::assert_snapshot!(context.filtered(&said));
}

#[test]
fn a_program_that_fails_is_told_with_the_last_lines_of_its_log() {
    let context = alone(
        r#"["sh", "-c", "echo beginning; echo to standard error >&2; exit 3"]"#,
        "outputs.out.file = \"out.txt\"",
    );
    let outcome = context.run(&["run"]).assert_code(1);
    insta::assert_snapshot!(context.filtered(&outcome.stderr));
    let log = context.run(&["log", "run"]).assert_code(0).stdout;
    assert!(
        log.contains("beginning") && log.contains("to standard error"),
        "{log}"
    );
    // The environment's fault is another exit code.
    let context = alone(r#"["no-such-program"]"#, "outputs.out.file = \"out.txt\"");
    let outcome = context.run(&["run"]).assert_code(3);
    assert!(
        outcome
            .stderr
            .contains("there is no program `no-such-program` on the search path"),
        "{outcome:?}"
    );
    context.check_store();
}

#[test]
fn an_output_that_is_not_as_declared_is_refused_and_not_kept() {
    for (script, message) in [
        (
            "true",
            "the output `out` is missing: the program wrote no file `out.parquet`",
        ),
        ("echo nonsense > out.parquet", "cannot be read as a Parquet table"),
        ("mkfifo out.parquet", "is a pipe, a socket or a device"),
        ("mkdir out.parquet", "`out.parquet` is a folder"),
        (
            "ln -s /etc/passwd out.parquet",
            "`out.parquet` is a symbolic link",
        ),
        (
            "cp inputs/x.parquet out.parquet",
            "its column `value` is f64, not i64",
        ),
    ] {
        let context = Context::new(&format!(
            r#"
            format = 1
            pipeline.name = "refused"
            stages.x = {{ kind = "noop" }}
            [stages.run]
            kind = "command"
            inputs = {{ x = "x" }}
            params.argv = ["sh", "-c", "{script}"]
            params.outputs.out.columns.value = "i64"
            "#
        ));
        let outcome = context.events(&[]).assert_code(1);
        let failure = outcome.event("cell-failed")["failure"]["message"].to_string();
        assert!(failure.contains(message), "{failure}");
        assert!(!failure.contains("cache"), "{failure}");
        context.check_store();
    }
}

#[test]
fn undeclared_files_are_a_warning() {
    let context = alone(
        r#"["sh", "-c", "echo > out.txt; echo > stray.log"]"#,
        "outputs.out.file = \"out.txt\"",
    );
    let outcome = context.run(&["run"]).assert_code(0);
    insta::assert_snapshot!(context.filtered(&outcome.stderr));
    context.check_store();
}

#[test]
fn variables_that_are_inherited_arrive_and_are_in_no_key() {
    let context = alone(
        r#"["sh", "-c", "echo \"$SEEN $HIDDEN\" > out.txt"]"#,
        "inherit = [\"SEEN\"]\noutputs.out.file = \"out.txt\"\n[stages.run.publish]\nout = \"out.txt\"",
    );
    let run = |value: &str| {
        let outcome = finish(
            context
                .command(&["run", "--json"])
                .env("SEEN", value)
                .env("HIDDEN", "x"),
        );
        outcome.assert_code(0).cells("cell-finished")
    };
    assert_eq!(run("first"), ["run"]);
    assert_eq!(context.read("out.txt"), b"first \n");
    assert_eq!(run("second"), NOTHING);
}

#[test]
fn results_do_not_depend_on_the_folder_or_the_number_of_workers() {
    let runs: Vec<_> = ["1", "3"]
        .map(|jobs| {
            let context = copied();
            context.executed(&["--jobs", jobs]);
            context.results()
        })
        .into();
    assert_eq!(runs[0], runs[1]);
}

#[test]
fn axes_reach_a_program_and_are_gathered_by_one() {
    let context = Context::new(
        r#"
format = 1
pipeline.name = "axes"
axes.a = [1, 2]
axes.b = ["x", "y"]

[stages.number]
kind = "noop"
params = { value = "${a}" }

[stages.copied]
kind = "command"
inputs = { number = "number" }
params.argv = ["sh", "-c", "cp {input.number} {output.table}; echo ${b} {value.a} > {output.note}"]
params.values.a = "${a}"
params.outputs.table.columns.value = "f64"
params.outputs.note.file = "note-${b}.txt"
publish = { note = "out/${a}-${b}.txt" }

[stages.all]
kind = "command"
inputs = { numbers = ["copied.table", { stage = "number", at = { a = 1 } }] }
params.argv = ["cp", "{input.numbers}", "{output.table}"]
params.inputs.numbers = { many = true, columns = { value = "f64" } }
params.outputs.table.columns = { value = "f64", source = "text" }
params.outputs.table.open = true
"#,
    );
    assert_eq!(context.executed(&[]).len(), 2 + 4 + 1);
    assert_eq!(context.read("out/2-y.txt"), b"y 2\n");
    let told = context.run(&["show", "all"]).assert_code(0).stdout;
    // Four of the one and one of the other, which does not vary over `b`.
    for part in ["5 rows", "source", "copied"] {
        assert!(told.contains(part), "{told}");
    }
    context.check_store();
}

#[test]
fn several_outputs_have_to_be_named() {
    let context = copied();
    context.executed(&[]);
    let said = context.run(&["show", "copied"]).assert_code(2).stderr;
    assert!(said.contains("`copied` has several outputs"), "{said}");
    assert!(
        said.contains("write `copied.OUTPUT`; it has `note`, `table`"),
        "{said}"
    );
}

#[test]
fn a_file_goes_from_program_to_program() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "files"
        [stages.write]
        kind = "command"
        params.argv = ["sh", "-c", "printf 'a b' > {output.model}"]
        params.outputs.model.file = "model.pt"
        [stages.read]
        kind = "command"
        inputs = { model = "write" }
        params.argv = ["sh", "-c", "wc -c < {input.model} > {output.size}; echo {input.model} >> {output.size}"]
        params.outputs.size.file = "size.txt"
        publish = { size = "size.txt" }
        "#,
    );
    assert_eq!(context.executed(&[]), ["read", "write"]);
    assert_eq!(context.read("size.txt"), b"3\ninputs/model.pt\n");
    // A kind that takes tables does not take it.
    let manifest = String::from_utf8(context.read("pipeline.toml")).unwrap();
    context.write(
        "pipeline.toml",
        &format!("{manifest}\n[stages.sum]\nkind = \"noop\"\ninputs = {{ one = \"write\" }}\n"),
    );
    let said = context.run(&["plan"]).assert_code(2).stderr;
    assert!(said.contains("it is a .pt file, not a table"), "{said}");
}

/// What a shell writes down of three processes that it starts: one whose parent is gone, one of its own, and one in another
/// session; and of itself. Then it goes on with `then`.
fn strays(then: &str) -> (Context, impl Fn(&Context) -> Vec<u32>) {
    let context = alone(
        &format!(
            r#"["sh", "-c", "(sleep 600 & echo $! >> $OUT); sleep 600 & echo $! >> $OUT; setsid sleep 600 & echo $! >> $OUT; echo $$ >> $OUT; echo > out.txt; {then}"]"#
        ),
        "outputs.out.file = \"out.txt\"\nenvironment = { OUT = \"FOLDER/pids\" }",
    );
    let manifest = String::from_utf8(context.read("pipeline.toml")).unwrap();
    context.write(
        "pipeline.toml",
        &manifest.replace("FOLDER", context.folder.as_str()),
    );
    let pids = |context: &Context| -> Vec<u32> {
        let text = fs_err::read_to_string(context.path("pids")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    (context, pids)
}

#[test]
fn what_a_program_started_ends_with_it() {
    let (context, pids) = strays("true");
    assert_eq!(context.executed(&[]), ["run"]);
    let pids = pids(&context);
    assert_eq!(pids.len(), 4);
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
    context.check_store();
}

#[test]
fn what_a_program_started_ends_with_its_time() {
    let (context, pids) = strays("sleep 600");
    let manifest = String::from_utf8(context.read("pipeline.toml")).unwrap();
    context.write(
        "pipeline.toml",
        &manifest.replace("kind = \"command\"", "kind = \"command\"\ntimeout = 1"),
    );
    let outcome = context.events(&[]).assert_code(1);
    assert_eq!(
        outcome.event("cell-failed")["failure"]["message"],
        "it ran longer than its time limit of 1 s"
    );
    let pids = pids(&context);
    assert_eq!(pids.len(), 4);
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
    context.check_store();
}

#[test]
fn what_a_program_started_ends_with_the_command_and_with_its_worker() {
    use rustix::process::{Pid, Signal, kill_process};

    for victim in ["command", "worker"] {
        let (context, pids) = strays("sleep 600");
        let mut running = context.start(&[]);
        running.wait_for("cell-started", "run");
        eventually("the program's start", || pids(&context).len() == 4);
        if victim == "command" {
            running.signal(Signal::KILL);
            running.finish();
        } else {
            let worker = i32::try_from(running.workers()[0]).unwrap();
            kill_process(Pid::from_raw(worker).unwrap(), Signal::KILL).unwrap();
            running.finish().assert_code(1);
        }
        let mut pids = pids(&context);
        if victim == "worker" {
            // Nobody is left who knows what left the worker's group.
            let pid = pids.remove(2).to_string();
            assert!(
                Command::new("kill")
                    .args(["-KILL", &pid])
                    .status()
                    .unwrap()
                    .success()
            );
        }
        for pid in pids {
            eventually("the end of what the program started", || !is_alive(pid));
        }
    }
}

#[test]
fn an_interrupted_program_is_stopped() {
    let (context, pids) = strays("sleep 600");
    let mut running = context.start(&[]);
    running.wait_for("cell-started", "run");
    eventually("the program's start", || pids(&context).len() == 4);
    running.signal(rustix::process::Signal::INT);
    running.finish().assert_code(130);
    let pids = pids(&context);
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
}

#[test]
fn an_audit_holds_a_program_to_what_it_gave() {
    let context = copied();
    context.executed(&[]);
    let told = context.run(&["audit", "--all"]).assert_code(0).stdout;
    assert!(told.contains('3'), "{told}");
    // One that gives something else each time.
    let context = alone(
        r#"["sh", "-c", "cat /proc/sys/kernel/random/uuid > out.txt"]"#,
        "outputs.out.file = \"out.txt\"",
    );
    context.executed(&[]);
    context.run(&["audit", "--all"]).assert_code(1);
    let manifest = String::from_utf8(context.read("pipeline.toml")).unwrap();
    context.write(
        "pipeline.toml",
        &format!("{manifest}outputs.out.volatile = true\n"),
    );
    context.executed(&[]);
    context.run(&["audit", "--all"]).assert_code(0);
}

#[test]
fn where_a_result_comes_from_names_the_script() {
    let context = copied();
    context.executed(&[]);
    let told = context.run(&["lineage", "copied.note"]).assert_code(0).stdout;
    assert!(
        told.contains("scripts/copy.sh") && told.contains("command"),
        "{told}"
    );
    for format in ["ro-crate", "openlineage", "prov", "in-toto"] {
        let out = context.path(&format!("export-{format}"));
        context
            .run(&[
                "export",
                "pipeline.toml",
                "--format",
                format,
                "--out",
                out.as_str(),
            ])
            .assert_code(0);
    }
    let crate_file: Utf8PathBuf = context.path("export-ro-crate/ro-crate-metadata.json");
    assert!(fs_err::read_to_string(crate_file).unwrap().contains("copy.sh"));
}

#[test]
fn what_a_program_was_to_make_is_no_file_that_it_lacked() {
    let context = alone(
        r#"["sh", "-c", "exit 3", "{output.table}", "missing.py"]"#,
        "outputs.table.file = \"results/table.csv\"",
    );
    let said = context.run(&["run"]).assert_code(1).stderr;
    assert!(
        said.contains("`missing.py` is not in the folder") && !said.contains("`results/table.csv` is"),
        "{said}"
    );
    let context = alone(
        r#"["sh", "-c", "exit 3", "{output.table}"]"#,
        "outputs.table.file = \"results/table.csv\"",
    );
    let said = context.run(&["run"]).assert_code(1).stderr;
    assert!(!said.contains("is not in the folder"), "{said}");
}

#[test]
fn the_last_line_counts_without_its_end() {
    let context = alone(
        r#"["sh", "-c", "echo first; printf 'last words' >&2; exit 3"]"#,
        "outputs.table.file = \"table.csv\"",
    );
    let said = context.run(&["run"]).assert_code(1).stderr;
    assert!(said.contains("last words"), "{said}");
    let log = context.run(&["log", "run"]).assert_code(0).stdout;
    assert!(log.contains(" last words\n"), "{log}");
}

//! Programs as stages, without the engine.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::protocol::{Blame, Failed, Level, Progress};
use provenir_api::{Digest, Kind, Label, Parameters, schema};
use provenir_command::CommandExecution;
use provenir_execution::{Context, Execution, Failure, Inputs, Outputs, Reporter, StoredInput};
use provenir_kinds::command::{Command, CommandParameters};
use provenir_table::{Table, TableBuilder, write, write_file};
use serde_json::{Value, json};

#[derive(Default)]
struct Heard(Mutex<Vec<(Level, String)>>);

impl Reporter for Heard {
    fn progress(&self, _: Progress) {}

    fn log(&self, level: Level, message: &str) {
        self.0.lock().unwrap().push((level, message.to_owned()));
    }
}

/// A store of artifacts, and a scratch folder.
struct Cell {
    _guard: tempfile::TempDir,
    root: Utf8PathBuf,
    inputs: Inputs,
    sources: Vec<(String, Utf8PathBuf, Digest)>,
    heard: Heard,
    cancelled: AtomicBool,
}

impl Cell {
    fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(guard.path())
            .unwrap()
            .canonicalize_utf8()
            .unwrap();
        fs_err::create_dir(root.join("scratch")).unwrap();
        Self {
            _guard: guard,
            root,
            inputs: Inputs::new(),
            sources: Vec::new(),
            heard: Heard::default(),
            cancelled: AtomicBool::new(false),
        }
    }

    /// With one more table at an input.
    fn table(mut self, port: &str, labels: &[(&str, i64)], table: &Table) -> Self {
        let path = self.root.join(format!(
            "{port}-{}.object",
            labels.iter().map(|(_, label)| label).sum::<i64>()
        ));
        let object = write(&path, table).unwrap().object;
        self.inputs = self
            .inputs
            .with_stored(port, stored(path, object, "parquet", labels));
        self
    }

    /// With a file at an input.
    fn stored_file(mut self, port: &str, extension: &str, bytes: &[u8]) -> Self {
        let path = self.root.join(format!("{port}.object"));
        let object = write_file(&path, bytes).unwrap().object;
        self.inputs = self
            .inputs
            .with_stored(port, stored(path, object, extension, &[]));
        self
    }

    /// With a file that `files` names.
    fn source(mut self, name: &str, text: &str) -> Self {
        let path = self.root.join(format!("source-{}", self.sources.len()));
        fs_err::write(&path, text).unwrap();
        self.sources
            .push((schema::join("/files", name), path, Digest::of(text.as_bytes())));
        self
    }

    fn run(&self, parameters: &Value) -> Result<Outputs, Failure> {
        let parameters: CommandParameters = serde_json::from_value(parameters.clone()).unwrap();
        assert_eq!(parameters.problems(), []);
        let mut context = Context::new(&self.heard, &self.cancelled, self.root.join("partial"))
            .with_scratch(self.root.join("scratch"))
            .with_cores(3);
        for (pointer, path, digest) in &self.sources {
            context = context.with_source(pointer.clone(), path.clone(), *digest);
        }
        CommandExecution.execute(&parameters, &self.inputs, &context)
    }

    fn refused(&self, parameters: &Value) -> Failed {
        self.run(parameters).unwrap_err().into()
    }

    /// What lies in the folder that the program ran in.
    fn left(&self, name: &str) -> String {
        fs_err::read_to_string(self.root.join("scratch/work").join(name)).unwrap()
    }

    fn warnings(&self) -> Vec<String> {
        let heard = self.heard.0.lock().unwrap();
        heard
            .iter()
            .filter(|(level, _)| *level == Level::Warning)
            .map(|(_, line)| line.clone())
            .collect()
    }
}

fn stored(path: Utf8PathBuf, object: Digest, extension: &str, labels: &[(&str, i64)]) -> StoredInput {
    fs_err::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap();
    StoredInput {
        labels: labels
            .iter()
            .map(|(axis, label)| ((*axis).to_owned(), Label::Integer(*label)))
            .collect(),
        source: "stage".to_owned(),
        path,
        object,
        extension: extension.to_owned(),
    }
}

fn numbers(values: &[f64]) -> Table {
    TableBuilder::new().f64("value", values.to_vec()).build().unwrap()
}

/// A shell script with a table as its output.
fn script(script: &str) -> Value {
    json!({"argv": ["sh", "-c", script], "outputs": {"out": {"columns": {"value": "f64"}}}})
}

/// A shell script with a text as its output.
fn writer(script: &str) -> Value {
    json!({"argv": ["sh", "-c", script], "outputs": {"out": {"file": "out.txt"}}})
}

#[test]
fn a_table_goes_in_and_comes_out() {
    let table = numbers(&[1.0, 2.5]);
    let cell = Cell::new().table("x", &[], &table);
    let outputs = cell.run(&script("cp {input.x} {output.out}")).unwrap();
    assert_eq!(outputs.get_table("out"), Some(&table));
    assert_eq!(cell.warnings(), [""; 0]);
}

#[test]
fn arguments_arrive_as_they_are_written() {
    let parameters = json!({
        "argv": ["sh", "-c", "printf '%s\\n' \"$@\" > {output.out}", "sh", "{input.x}", "--out={output.out}", "a b; $HOME *",
                 "{value.rate}", "{value.name}", 0.5, true, "{{input.x}}", "{print $1}", ""],
        "values": {"rate": 1e-3, "name": "{input.x}"},
        "outputs": {"out": {"file": "deep/er/out.txt"}},
    });
    let cell = Cell::new().stored_file("x", "json", b"{}");
    cell.run(&parameters).unwrap();
    assert_eq!(
        cell.left("deep/er/out.txt").lines().collect::<Vec<_>>(),
        [
            "inputs/x.json",
            "--out=deep/er/out.txt",
            "a b; $HOME *",
            "0.001",
            "{input.x}",
            "0.5",
            "true",
            "{input.x}",
            "{print $1}",
            ""
        ]
    );
}

#[test]
fn files_are_where_they_are_declared_and_nothing_else_is() {
    let cell = Cell::new()
        .source(
            "run.sh",
            "#!/bin/sh\n. lib/helper.sh\nsay > {}\n"
                .replace("{}", "out.txt")
                .as_str(),
        )
        .source("lib/helper.sh", "say() { ls -R; }\n");
    let parameters = json!({
        "argv": ["./run.sh"],
        "files": {"run.sh": "elsewhere/a.sh", "lib/helper.sh": "b.sh"},
        "outputs": {"out": {"file": "out.txt"}},
    });
    cell.run(&parameters).unwrap();
    assert_eq!(
        cell.left("out.txt"),
        ".:\nlib\nout.txt\nrun.sh\n\n./lib:\nhelper.sh\n"
    );
}

#[test]
fn a_script_does_not_learn_where_its_folder_is() {
    let cell = Cell::new().source("run.sh", "#!/bin/sh\necho \"$0 $1\" > out.txt\n");
    let parameters = json!({
        "argv": ["./run.sh", "{output.out}"], "files": {"run.sh": "a"}, "outputs": {"out": {"file": "out.txt"}},
    });
    cell.run(&parameters).unwrap();
    assert_eq!(cell.left("out.txt"), "./run.sh out.txt\n");
}

#[test]
fn a_file_that_changed_meanwhile_is_not_used() {
    let mut cell = Cell::new().source("run.sh", "#!/bin/sh\n");
    cell.sources[0].2 = Digest::of(b"what it was");
    let parameters =
        json!({"argv": ["./run.sh"], "files": {"run.sh": "x"}, "outputs": {"out": {"file": "out.txt"}}});
    let failed = cell.refused(&parameters);
    assert_eq!(failed.blame, Blame::Environment);
    assert!(
        failed.message.contains("changed while the run was under way"),
        "{failed:?}"
    );
}

#[test]
fn an_input_is_a_copy_that_cannot_harm_the_store() {
    let cell = Cell::new().stored_file("x", "txt", b"original");
    let object = cell.root.join("x.object");
    let before = fs_err::metadata(&object).unwrap();
    cell.run(&writer(
        "chmod u+w {input.x}; echo changed > {input.x}; stat -c %h {input.x} > {output.out}",
    ))
    .unwrap();
    assert_eq!(cell.left("out.txt"), "1\n");
    assert_eq!(fs_err::read(&object).unwrap(), b"original");
    let after = fs_err::metadata(&object).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    // It is not to be written to without intent.
    let cell = Cell::new().stored_file("x", "txt", b"original");
    cell.run(&writer("stat -c %a {input.x} > {output.out}")).unwrap();
    assert_eq!(cell.left("out.txt"), "444\n");
}

#[test]
fn a_damaged_input_is_told_before_the_program_starts() {
    let cell = Cell::new().stored_file("x", "txt", b"original");
    let object = cell.root.join("x.object");
    fs_err::set_permissions(&object, PermissionsExt::from_mode(0o644)).unwrap();
    fs_err::write(&object, b"tampered").unwrap();
    let failed = cell.refused(&writer("echo > {output.out}"));
    assert_eq!(failed.blame, Blame::Environment);
    assert_eq!(failed.damaged, Some(Digest::of(b"original")));
    assert!(!fs_err::exists(cell.root.join("scratch/work/out.txt")).unwrap());
}

#[test]
fn an_input_that_takes_many_is_one_table() {
    let cell = Cell::new().table("x", &[("seed", 1)], &numbers(&[1.0])).table(
        "x",
        &[("seed", 2)],
        &numbers(&[2.0, 3.0]),
    );
    let mut parameters = script("cp {input.x} {output.out}");
    parameters["inputs"] = json!({"x": {"many": true}});
    parameters["outputs"]["out"]["columns"] = json!({"value": "f64", "seed": "i64", "source": "text"});
    let expected = TableBuilder::new()
        .f64("value", vec![1.0, 2.0, 3.0])
        .utf8("source", ["stage"; 3])
        .i64("seed", vec![1, 2, 2])
        .build()
        .unwrap();
    assert_eq!(cell.run(&parameters).unwrap().get_table("out"), Some(&expected));
}

#[test]
fn nothing_of_the_callers_environment_arrives_but_what_is_listed() {
    let mut parameters = writer("env > {output.out}");
    // Cargo sets both for a test.
    parameters["inherit"] = json!(["CARGO_PKG_NAME", "PROVENIR_IS_NOT_SET"]);
    parameters["environment"] = json!({"OWN": "{value.n}", "TZ": "CET", "NUMBER": 0.5});
    parameters["values"] = json!({"n": 7});
    let cell = Cell::new();
    cell.run(&parameters).unwrap();
    let text = cell.left("out.txt");
    let variables: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let scratch = cell.root.join("scratch");
    let (home, temporary, work) = (scratch.join("home"), scratch.join("tmp"), scratch.join("work"));
    let path = option_env!("PATH").map(|_| variables["PATH"]).unwrap();
    let expected = BTreeMap::from([
        ("CARGO_PKG_NAME", "provenir-command"),
        ("HOME", home.as_str()),
        ("LANG", "C.UTF-8"),
        ("NUMBER", "0.5"),
        ("OMP_NUM_THREADS", "3"),
        ("OWN", "7"),
        ("PATH", path),
        // Of the shell itself.
        ("PWD", work.as_str()),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONHASHSEED", "0"),
        ("SOURCE_DATE_EPOCH", "315532800"),
        ("TMPDIR", temporary.as_str()),
        ("TZ", "CET"),
    ]);
    let found: BTreeMap<&str, &str> = variables
        .into_iter()
        .filter(|(name, _)| !matches!(*name, "_" | "OLDPWD" | "SHLVL"))
        .collect();
    assert_eq!(found, expected);
    for folder in [home, temporary] {
        assert!(folder.is_dir());
    }
}

#[test]
fn what_goes_wrong_is_told_with_whose_fault_it_is() {
    for (argv, blame, message) in [
        (
            json!(["sh", "-c", "exit 3"]),
            Blame::Stage,
            "`sh` ended with exit code 3",
        ),
        (
            json!(["sh", "-c", "kill -SEGV $$"]),
            Blame::Stage,
            "`sh` crashed (signal 11, segmentation fault)",
        ),
        (
            json!(["sh", "-c", "kill -KILL $$"]),
            Blame::Stage,
            "`sh` was killed (signal 9), perhaps because memory ran out",
        ),
        (
            json!(["no-such-program"]),
            Blame::Environment,
            "there is no program `no-such-program` on the search path",
        ),
        (
            json!(["/no/such/program"]),
            Blame::Environment,
            "`/no/such/program` cannot be started: there is no such file",
        ),
        (
            json!(["./plain"]),
            Blame::Stage,
            "`./plain` cannot be started: it is neither a program of this machine nor a script",
        ),
        (
            json!(["./script"]),
            Blame::Environment,
            "`./script` cannot be started: its first line asks for `/no/such/interpreter`, which is not there",
        ),
        (
            json!(["./dos"]),
            Blame::Environment,
            "`./dos` cannot be started: its first line asks for `/bin/sh\\r`, which is not there",
        ),
        (
            json!(["/etc/passwd"]),
            Blame::Environment,
            "`/etc/passwd` cannot be started: it must not be executed (permission denied)",
        ),
    ] {
        let cell = Cell::new()
            .source("plain", "no program")
            .source("script", "#!/no/such/interpreter -x\n")
            .source("dos", "#!/bin/sh\r\necho\r\n");
        let failed = cell.refused(&json!({
            "argv": argv, "files": {"plain": "a", "script": "b", "dos": "c"}, "outputs": {"out": {"file": "out.txt"}},
        }));
        assert_eq!((failed.blame, failed.message.as_str()), (blame, message));
    }
}

#[test]
fn a_script_that_was_not_declared_is_suspected() {
    let failed = Cell::new().refused(&json!({
        "argv": ["sh", "scripts/run.sh", "--rate", "0.5"], "outputs": {"out": {"file": "out.txt"}},
    }));
    assert_eq!(
        failed.help.unwrap(),
        "`scripts/run.sh` is not in the folder that it ran in; a file that it needs is declared: `files = { \"run.sh\" = \"scripts/run.sh\" }`"
    );
    let failed = Cell::new().refused(&writer("exit 1"));
    assert_eq!(failed.help, None);
}

#[test]
fn a_file_from_elsewhere_is_told() {
    let cell = Cell::new().source("x", "text");
    let outside = cell.root.join("source-0");
    let mut parameters = writer("cat \"$1\" > {output.out}");
    parameters["argv"]
        .as_array_mut()
        .unwrap()
        .extend([json!("sh"), json!(outside), json!("/dev/null")]);
    parameters["files"] = json!({"x": "x"});
    cell.run(&parameters).unwrap();
    assert_eq!(
        cell.warnings(),
        [format!(
            "`{outside}` is not declared in `files`: nothing runs again when it changes"
        )]
    );
}

#[test]
fn an_output_is_a_file_of_what_was_declared() {
    let table = numbers(&[1.0]);
    for (program, message) in [
        (
            "true",
            "the output `out` is missing: the program wrote no file `out.parquet`",
        ),
        (
            "mkdir out.parquet",
            "the output `out` is no file: `out.parquet` is a folder",
        ),
        (
            "mkfifo out.parquet",
            "the output `out` is no file: `out.parquet` is a pipe, a socket or a device",
        ),
        (
            "ln -s inputs/x.parquet out.parquet",
            "the output `out` is no file: `out.parquet` is a symbolic link",
        ),
        (
            "ln -s /dev/zero out.parquet",
            "the output `out` is no file: `out.parquet` is a symbolic link",
        ),
        (
            "echo text > out.parquet",
            "the output `out` is not what is declared: `out.parquet` cannot be read as a Parquet table",
        ),
        (
            ": > out.parquet",
            "the output `out` is not what is declared: `out.parquet` cannot be read as a Parquet table",
        ),
        (
            "truncate -s 5G out.parquet",
            "the output `out` is too large: `out.parquet` holds 5368709120 bytes, and at most 4294967296 are kept",
        ),
        (
            "cp inputs/y.parquet out.parquet",
            "the output `out` is not what is declared: the table does not fit: its column `value` is u32, not f64",
        ),
    ] {
        let other = TableBuilder::new().u32("value", vec![1]).build().unwrap();
        let cell = Cell::new().table("x", &[], &table).table("y", &[], &other);
        let failed = cell.refused(&script(program));
        assert_eq!(failed.blame, Blame::Stage, "{failed:?}");
        assert!(failed.message.starts_with(message), "{failed:?}");
        // Nothing tells where the folder was.
        assert!(!failed.message.contains(cell.root.as_str()), "{failed:?}");
    }
    // A folder on its way may be a link as well.
    let cell = Cell::new();
    let outside = cell.root.join("outside");
    fs_err::create_dir(&outside).unwrap();
    let mut parameters = writer(&format!(
        "rmdir results; ln -s {outside} results; echo > results/out.txt"
    ));
    parameters["outputs"]["out"]["file"] = json!("results/out.txt");
    let failed = cell.refused(&parameters);
    assert_eq!(
        failed.message,
        "the output `out` is no file: `results` is a symbolic link"
    );
}

#[test]
fn what_it_wrote_instead_is_told() {
    let failed = Cell::new().refused(&writer("echo > output.txt"));
    assert_eq!(
        failed.message,
        "the output `out` is missing: the program wrote no file `out.txt`"
    );
    assert_eq!(failed.help.unwrap(), "what it wrote: `output.txt`");
}

#[test]
fn undeclared_files_are_told_and_temporary_ones_are_not() {
    let cell = Cell::new().stored_file("x", "txt", b"");
    let mut parameters = writer(
        "mkdir -p a/b empty; for i in 1 2 3 4 5 6; do echo > a/b/$i; done; ln -s / a/link; echo > $TMPDIR/t; echo > $HOME/h; echo > out.txt",
    );
    cell.run(&parameters).unwrap();
    assert_eq!(
        cell.warnings(),
        [
            "the program left files that no output declares, and that are not kept: `a/b/1`, `a/b/2`, `a/b/3`, `a/b/4`, `a/b/5` and 2 more; what is not wanted belongs to $TMPDIR"
        ]
    );
    // What was declared is none of them, however its path is written.
    parameters = writer("echo > deep/out.txt");
    parameters["outputs"]["out"]["file"] = json!("./deep//out.txt");
    let cell = Cell::new();
    cell.run(&parameters).unwrap();
    assert_eq!(cell.warnings(), [""; 0]);
}

#[test]
fn a_program_is_ended_where_the_cell_is_to_stop() {
    let cell = Cell::new();
    let marker = cell.root.join("scratch/work/started");
    let failed = std::thread::scope(|scope| {
        let running = scope.spawn(|| cell.refused(&writer("echo > started; exec sleep 600")));
        while !marker.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        cell.cancelled.store(true, Ordering::Relaxed);
        running.join().unwrap()
    });
    assert_eq!(failed.blame, Blame::Cancelled);
}

#[test]
fn ports_are_what_the_manifest_says() {
    let parameters = json!({
        "inputs": {"many": {"many": true}, "some": {"columns": {"a": "f64", "b": "list of f32?"}}},
        "outputs": {
            "table": {"columns": {"x": "text"}, "volatile": true}, "model": {"file": "m.PT"}, "broken": 3, "a b": {"file": "x.y"},
        },
    });
    let ports = Command::ports(&parameters, &["any", "many", "some", "a b"]);
    let shown = serde_json::to_value((&ports.inputs, &ports.outputs)).unwrap();
    let column = |name: &str, kind: Value, nullable: bool| json!({"name": name, "kind": kind, "nullable": nullable, "unit": null});
    let input = |name: &str, arity: &str, content: Value| json!({"name": name, "doc": "A table or file that the program takes; `inputs` of its parameters says what it expects.", "arity": arity, "required": false, "content": content});
    let output = |name: &str, content: Value, volatile: bool| json!({"name": name, "doc": "A table or file that the program gives; `outputs` of its parameters says which.", "content": content, "volatile": volatile});
    assert_eq!(
        shown,
        json!([
            [
                input("any", "one", json!("any")),
                input("many", "many", json!({"table": {"columns": [], "open": true}})),
                input(
                    "some",
                    "one",
                    json!({"table": {"open": false, "columns": [
                        column("a", json!("float64"), false), column("b", json!({"list": "float32"}), true),
                    ]}})
                ),
            ],
            [
                output("model", json!({"file": "PT"}), false),
                output(
                    "table",
                    json!({"table": {"open": false, "columns": [column("x", json!("utf8"), false)]}}),
                    true
                ),
            ],
        ])
    );
}

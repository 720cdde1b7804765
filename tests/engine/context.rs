use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

pub(crate) const COMMAND: &str = env!("CARGO_BIN_EXE_provenir-noop");

/// A folder with a manifest and a store.
pub(crate) struct Context {
    _guard: tempfile::TempDir,
    pub(crate) folder: Utf8PathBuf,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Two stages of three cells each, and one that gathers them.
pub(crate) const CHAIN: &str = r#"
format = 1

[pipeline]
name = "chain"

[axes]
a = [1, 2, 3]

[stages.first]
kind = "noop"
params = { value = "${a}" }

[stages.second]
kind = "noop"
inputs = { one = "first" }
params = { value = 0.5 }

[stages.total]
kind = "noop"
inputs = { many = "second" }
publish = { sum = "out/total.parquet" }
"#;

pub(crate) const CHAIN_CELLS: [&str; 7] = [
    "first[a=1]",
    "first[a=2]",
    "first[a=3]",
    "second[a=1]",
    "second[a=2]",
    "second[a=3]",
    "total",
];

/// A measurement, and what is made from it.
pub(crate) const TIMES: &str = r#"
format = 1
pipeline.name = "times"
stages.time = { kind = "clock" }
stages.after = { kind = "noop", inputs = { one = "time" } }
"#;

impl Context {
    /// A folder with this manifest.
    pub(crate) fn new(manifest: &str) -> Self {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(guard.path())
            .unwrap()
            .canonicalize_utf8()
            .unwrap();
        let context = Self {
            _guard: guard,
            folder,
        };
        context.write("pipeline.toml", manifest);
        context
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs_err::read(self.path(name)).unwrap()
    }

    /// The command, in this folder, with nothing of the caller's environment but the search path.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.program(COMMAND, arguments)
    }

    pub(crate) fn program(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", option_env!("PATH").unwrap_or("/usr/bin:/bin"))
            .env("HOME", &self.folder)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        finish(&mut self.command(arguments))
    }

    /// `run --json` with more arguments.
    pub(crate) fn events(&self, arguments: &[&str]) -> Outcome {
        self.run(&[&["run", "--json"], arguments].concat())
    }

    /// Runs the pipeline and gives the names of the cells that were executed, sorted.
    #[track_caller]
    pub(crate) fn executed(&self, arguments: &[&str]) -> Vec<String> {
        let outcome = self.events(arguments);
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        outcome.cells("cell-finished")
    }

    /// Starts `run --json` and lets it go on.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(&[&["run", "--json"], arguments].concat());
        Running::start(&mut command)
    }

    /// Every result of the store: key → file content.
    pub(crate) fn results(&self) -> BTreeMap<String, String> {
        let mut results = BTreeMap::new();
        for path in files(&self.path("cache/results-v1")) {
            let name = path.file_name().unwrap().to_owned();
            results.insert(name, fs_err::read_to_string(path).unwrap());
        }
        results
    }

    /// The file of an artifact.
    pub(crate) fn object(&self, reference: &str) -> Utf8PathBuf {
        let outcome = self.run(&["path", reference]);
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        outcome.stdout.trim_end().into()
    }

    /// Runs that were recorded.
    pub(crate) fn runs(&self) -> Vec<Utf8PathBuf> {
        let mut runs: Vec<Utf8PathBuf> = match self.path("cache/runs-v1").read_dir_utf8() {
            Ok(entries) => entries
                .map(|entry| entry.unwrap().into_path())
                .filter(|path| path.is_dir())
                .collect(),
            Err(_) => Vec::new(),
        };
        runs.sort();
        runs
    }

    /// Lines about runs that executed nothing.
    pub(crate) fn noops(&self) -> usize {
        fs_err::read_to_string(self.path("cache/runs-v1/noop.jsonl")).map_or(0, |text| text.lines().count())
    }

    /// Whether everything that has a final name is complete: each object is what its name says, each result names
    /// objects that are there, and nothing was left behind below `tmp`.
    #[track_caller]
    pub(crate) fn check_store(&self) {
        for path in files(&self.path("cache/objects-v1")) {
            let digest = provenir_api::Digest::of(&fs_err::read(&path).unwrap());
            assert_eq!(
                digest.hex(),
                path.file_name().unwrap(),
                "{path} is not what its name says"
            );
        }
        for (name, text) in self.results() {
            let result: Value = serde_json::from_str(&text).unwrap();
            for output in result["outputs"].as_array().unwrap() {
                let object = output["object"].as_str().unwrap();
                let path = self.path(&format!("cache/objects-v1/{}/{object}", &object[..2]));
                assert!(path.is_file(), "{name} names {path}, which is not there");
            }
        }
        assert_eq!(files(&self.path("cache/tmp")), [""; 0], "left behind");
        assert_eq!(files(&self.path("cache/claims-v1")), [""; 0], "left behind");
    }

    /// What a command said, with everything that differs from time to time and from place to place taken out.
    pub(crate) fn filtered(&self, text: &str) -> String {
        let text = text.replace(self.folder.as_str(), "[FOLDER]");
        let text = replace_runs(&text, |run| run.len() >= 12 && is_hexadecimal(run), "[DIGEST]");
        let mut parts = text.split("runs-v1/");
        let mut filtered = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            filtered.push_str("runs-v1/[RUN]");
            filtered.push_str(part.find('/').map_or("", |end| &part[end..]));
        }
        replace_durations(&filtered)
    }
}

/// A run that is under way.
pub(crate) struct Running {
    pub(crate) child: Child,
    events: BufReader<ChildStdout>,
    seen: Vec<Value>,
}

impl Running {
    /// Starts a command that says what happens in events.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let events = BufReader::new(child.stdout.take().unwrap());
        Running {
            child,
            events,
            seen: Vec::new(),
        }
    }

    /// Reads events until one is of this kind, about this cell.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, event: &str, cell: &str) -> Value {
        loop {
            let mut line = String::new();
            if self.events.read_line(&mut line).unwrap() == 0 {
                let mut stderr = String::new();
                self.child
                    .stderr
                    .take()
                    .unwrap()
                    .read_to_string(&mut stderr)
                    .unwrap();
                panic!(
                    "the run ended before {event} of {cell}: {:#?}\n{stderr}",
                    self.seen
                );
            }
            let found: Value = serde_json::from_str(&line).unwrap();
            let hit = found["event"] == event && (cell.is_empty() || found["cell"] == cell);
            self.seen.push(found.clone());
            if hit {
                return found;
            }
        }
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_raw(self.child.id().try_into().unwrap()).unwrap()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Process ids of the workers seen so far.
    pub(crate) fn workers(&self) -> Vec<u32> {
        self.seen
            .iter()
            .filter(|event| event["event"] == "worker-started")
            .map(|event| event["pid"].as_u64().unwrap().try_into().unwrap())
            .collect()
    }

    /// Waits for the end.
    pub(crate) fn finish(mut self) -> Outcome {
        let mut stdout: String = self
            .seen
            .iter()
            .flat_map(|event| [event.to_string(), "\n".to_owned()])
            .collect();
        self.events.read_to_string(&mut stdout).unwrap();
        let mut stderr = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            pipe.read_to_string(&mut stderr).unwrap();
        }
        Outcome {
            code: self.child.wait().unwrap().code(),
            stdout,
            stderr,
        }
    }
}

impl Outcome {
    /// Every line of standard output as an event.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The cells that events of one kind are about, sorted.
    #[track_caller]
    pub(crate) fn cells(&self, event: &str) -> Vec<String> {
        let mut cells: Vec<String> = self
            .events()
            .iter()
            .filter(|found| found["event"] == event)
            .map(|found| found["cell"].as_str().unwrap().to_owned())
            .collect();
        cells.sort();
        cells
    }

    /// The first event of a kind.
    #[track_caller]
    pub(crate) fn event(&self, event: &str) -> Value {
        let found = self.events().into_iter().find(|found| found["event"] == event);
        found.unwrap_or_else(|| panic!("no {event} in {self:#?}"))
    }

    #[track_caller]
    pub(crate) fn assert_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }
}

/// Copies a program by another process: a program that this one writes may still be open in a child that another test starts
/// at that moment, and could not be executed then.
pub(crate) fn install(from: &Utf8Path, to: &Utf8Path) {
    let installed = Command::new("install")
        .args(["-m", "755"])
        .args([from, to])
        .status();
    assert!(installed.unwrap().success());
}

pub(crate) fn finish(command: &mut Command) -> Outcome {
    let output = command.output().unwrap();
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A result file as the first versions wrote it, and as it can be edited.
pub(crate) fn without_checksum(text: &str) -> String {
    let (before, after) = text.rsplit_once("\"checksum\": \"").unwrap();
    let (_, rest) = after.split_once('"').unwrap();
    format!("{}{rest}", before.trim_end().trim_end_matches(','))
}

/// All files below a folder, sorted.
pub(crate) fn files(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut found = Vec::new();
    if let Ok(entries) = folder.read_dir_utf8() {
        for entry in entries {
            let path = entry.unwrap().into_path();
            if path.is_dir() {
                found.extend(files(&path));
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Overwrites a read-only file.
pub(crate) fn overwrite(path: &Utf8Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt;

    fs_err::set_permissions(path, PermissionsExt::from_mode(0o644)).unwrap();
    fs_err::write(path, bytes).unwrap();
}

/// Whether a process lives.
pub(crate) fn is_alive(pid: u32) -> bool {
    fs_err::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'))
}

/// Asks again and again until it is so; a minute is more than the slowest machine needs.
#[track_caller]
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{what} did not come to pass");
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Replaces each longest run of letters and digits that satisfies a test.
fn replace_runs(text: &str, test: impl Fn(&str) -> bool, by: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .find(|letter: char| !letter.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        if end == 0 {
            let letter = rest.chars().next().unwrap();
            replaced.push(letter);
            rest = &rest[letter.len_utf8()..];
        } else {
            let (run, tail) = rest.split_at(end);
            replaced.push_str(if test(run) { by } else { run });
            rest = tail;
        }
    }
    replaced
}

/// Replaces `1.23 s` and `12 s`.
fn replace_durations(text: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(position) = rest.find(" s") {
        let (head, tail) = rest.split_at(position);
        let number = head.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        let ends = !tail[2..].starts_with(|letter: char| letter.is_ascii_alphanumeric());
        if number.len() < head.len() && ends {
            replaced.push_str(number);
            replaced.push_str("[TIME]");
        } else {
            replaced.push_str(head);
            replaced.push_str(" s");
        }
        rest = &tail[2..];
    }
    replaced.push_str(rest);
    replaced
}

//! A store from somebody else, made to harm: every command ends, and says what is wrong or does what is right; nothing outside
//! the store is touched.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

use crate::context::{CHAIN, COMMAND, Context, Outcome, files, finish, overwrite, without_checksum};

/// What reads a store in one way or another.
const READERS: [&[&str]; 13] = [
    &["plan", "--verbose"],
    &["status"],
    &["why", "total"],
    &["lineage", "first[a=1]"],
    &["lineage", "out/total.parquet"],
    &["show", "second[a=1]"],
    &["log", "total"],
    &["runs"],
    &["diff", "last", "last"],
    &["verify"],
    &["gc"],
    &["pin"],
    &["export", "total", "--format", "prov", "--out", "-"],
];

/// A command within bounds that no honest run comes near: 4 GiB, a minute.
fn bounded(context: &Context, arguments: &[&str]) -> Outcome {
    let script = "ulimit -v 4194304; exec timeout --signal=KILL 60 \"$@\"";
    finish(&mut context.program("/bin/sh", &[&["-c", script, "sh", COMMAND], arguments].concat()))
}

/// A store in which every kind of file is there.
fn everything() -> Context {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.executed(&["--set", "stages.second.params.value=0.75"]);
    context.executed(&[]);
    context.run(&["pin", "total"]).assert_code(0);
    context.run(&["runs", "tag", "last", "paper"]).assert_code(0);
    context.run(&["audit", "--all"]).assert_code(0);
    let key = "ab".repeat(32);
    context.write(&format!("cache/claims-v1/{key}"), "{}");
    context.write(&format!("cache/claims-v1/{key}.1-2"), "{}");
    context.write("cache/tmp/left/owner.json", "{}");
    context.write(&format!("cache/partial-v1/{key}/checkpoint"), "x");
    context
}

/// One file of each kind that the store holds, with what tells the kinds apart.
fn kinds_of_files(context: &Context) -> Vec<Utf8PathBuf> {
    let mut kinds: Vec<(String, Utf8PathBuf)> = Vec::new();
    for path in files(&context.path("cache")) {
        let below = path.strip_prefix(context.path("cache")).unwrap().to_owned();
        let bucket = below.components().next().unwrap().as_str().to_owned();
        let name = below.file_name().unwrap();
        let kind = match bucket.as_str() {
            "runs-v1" => format!("{bucket} {name}"),
            "claims-v1" => format!("{bucket} {}", name.contains('.')),
            _ => bucket,
        };
        if !kinds.iter().any(|(known, _)| *known == kind) {
            kinds.push((kind, path));
        }
    }
    kinds.into_iter().map(|(_, path)| path).collect()
}

/// What is there instead of a file.
#[derive(Clone, Copy, Debug)]
enum Odd {
    Pipe,
    Endless,
    Outside,
    Loop,
    Folder,
    Huge,
    NotUtf8,
    Nothing,
}

const ODDITIES: [Odd; 8] = [
    Odd::Pipe,
    Odd::Endless,
    Odd::Outside,
    Odd::Loop,
    Odd::Folder,
    Odd::Huge,
    Odd::NotUtf8,
    Odd::Nothing,
];

impl Odd {
    fn put(self, path: &Utf8Path, outside: &Utf8Path) {
        match self {
            Self::Pipe => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
            Self::Endless => symlink("/dev/zero", path).unwrap(),
            Self::Outside => symlink(outside, path).unwrap(),
            Self::Loop => symlink(path.file_name().unwrap(), path).unwrap(),
            Self::Folder => fs_err::create_dir(path).unwrap(),
            // Longer than any record that is read; it takes no room on the disk.
            Self::Huge => fs_err::File::create(path).unwrap().set_len(300 << 20).unwrap(),
            Self::NotUtf8 => fs_err::write(path, b"{\"format\": 1, \"\xff\xfe\": \"\xc3\x28\"}\n").unwrap(),
            Self::Nothing => fs_err::write(path, "").unwrap(),
        }
    }

    fn remove(self, path: &Utf8Path) {
        if let Self::Folder = self {
            fs_err::remove_dir_all(path).ok();
        } else {
            fs_err::remove_file(path).ok();
        }
    }
}

fn assert_orderly(outcome: &Outcome, what: &dyn std::fmt::Debug) {
    assert!(
        matches!(outcome.code, Some(0..=3)),
        "{what:?}: no error of the person's or the environment's: {outcome:#?}"
    );
    if outcome.code != Some(0) {
        let is_told = outcome.stderr.contains("error") || !outcome.stdout.is_empty();
        assert!(is_told, "{what:?}: {outcome:#?}");
    }
}

#[test]
fn whatever_lies_where_a_file_should_every_command_ends() {
    let context = everything();
    let outside = context.path("outside.txt");
    fs_err::write(&outside, "somebody else's").unwrap();
    let kinds = kinds_of_files(&context);
    assert!(kinds.len() >= 15, "{kinds:#?}");
    for (number, path) in kinds.iter().enumerate() {
        let kept = context.path("kept");
        for (turn, odd) in ODDITIES.into_iter().enumerate() {
            fs_err::rename(path, &kept).unwrap();
            odd.put(path, &outside);
            // All readers with one oddity of each file, and with each oddity some.
            for (place, reader) in READERS.iter().enumerate() {
                if (place + number + turn) % 4 == 0 {
                    let outcome = bounded(&context, reader);
                    assert_orderly(&outcome, &(path, odd, reader));
                }
            }
            assert_eq!(
                fs_err::read(&outside).unwrap(),
                b"somebody else's",
                "{path} {odd:?}"
            );
            odd.remove(path);
            fs_err::rename(&kept, path).unwrap();
        }
    }
    context.run(&["verify"]).assert_code(0);
}

/// What a run makes of it: it does what was asked, or says why it cannot; never another result.
#[test]
fn whatever_lies_where_a_file_should_a_run_gives_the_same_or_says_why_not() {
    let honest = Context::new(CHAIN);
    honest.executed(&[]);
    let (expected, figure) = (honest.results(), honest.read("out/total.parquet"));
    for odd in ODDITIES {
        for bucket in ["objects-v1", "results-v1", "runs-v1", "published-v1"] {
            let context = Context::new(CHAIN);
            context.executed(&[]);
            context.executed(&[]);
            let outside = context.path("outside.txt");
            fs_err::write(&outside, "somebody else's").unwrap();
            for path in files(&context.path("cache").join(bucket)) {
                fs_err::remove_file(&path).unwrap();
                odd.put(&path, &outside);
            }
            let outcome = bounded(&context, &["run"]);
            assert_orderly(&outcome, &(bucket, odd));
            assert_eq!(fs_err::read(&outside).unwrap(), b"somebody else's");
            if outcome.code == Some(0) {
                assert_eq!(context.read("out/total.parquet"), figure, "{bucket} {odd:?}");
                if bucket != "runs-v1" {
                    assert_eq!(context.results(), expected, "{bucket} {odd:?}");
                    context.check_store();
                }
            } else {
                // A folder cannot be replaced by a file; a loop of links cannot be looked at.
                assert!(
                    matches!(odd, Odd::Folder | Odd::Loop),
                    "{bucket} {odd:?}: {outcome:#?}"
                );
                assert!(outcome.stderr.contains("cache/"), "{outcome:#?}");
            }
        }
    }
}

/// Folders that are links lead out of the store: what lies there is not ours to remove.
#[test]
fn nothing_is_removed_or_written_over_behind_a_link_out_of_the_store() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let digest = provenir_api::Digest::of(b"a photograph").hex();
    let key = "cd".repeat(32);
    context.write(&format!("photos/{digest}"), "another photograph");
    context.write("photos/checkpoint", "a letter");
    context.write("photos/20200101-000000.000-aaaa/run.json", "a diary");
    let photos = context.path("photos");
    for link in [
        format!("objects-v1/{}", &digest[..2]),
        format!("objects-v1/{}/{digest}", &digest[2..4]),
        "results-v1/zz".to_owned(),
        format!("partial-v1/{key}"),
        "runs-v1/20200101-000000.000-bbbb".to_owned(),
        "tmp/1-2-3".to_owned(),
        format!("claims-v1/{key}"),
        format!("pins-v1/{key}.json"),
    ] {
        let path = context.path("cache").join(link);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        if !path.exists() {
            symlink(&photos, path).unwrap();
        }
    }
    let before: Vec<(Utf8PathBuf, Vec<u8>)> = files(&photos)
        .into_iter()
        .map(|path| (path.clone(), fs_err::read(path).unwrap()))
        .collect();
    for command in [
        &["gc", "--yes", "--keep-runs", "0", "--grace", "0"][..],
        &["verify", "--discard"],
        &["run", "--set", "stages.second.params.value=3"],
        &["run", "--force", "first"],
    ] {
        assert_orderly(&bounded(&context, command), &command);
    }
    let after: Vec<(Utf8PathBuf, Vec<u8>)> = files(&photos)
        .into_iter()
        .map(|path| (path.clone(), fs_err::read(path).unwrap()))
        .collect();
    assert_eq!(before, after);
}

/// What is cleared away by its age or for want of an owner must be the store's own.
#[test]
fn folders_that_are_cleared_away_may_not_be_links() {
    for bucket in ["tmp", "claims-v1"] {
        let context = Context::new(CHAIN);
        context.executed(&[]);
        context.write("letters/1", "an old letter");
        context.write(&format!("letters/{}", "ab".repeat(32)), "another");
        for path in files(&context.path("letters")) {
            let aged = Command::new("touch")
                .args(["-d", "2020-01-01"])
                .arg(&path)
                .status();
            assert!(aged.unwrap().success());
        }
        let folder = context.path("cache").join(bucket);
        fs_err::remove_dir_all(&folder).ok();
        symlink(context.path("letters"), &folder).unwrap();
        for command in [
            &["run", "--set", "stages.second.params.value=3"][..],
            &["gc", "--yes", "--keep-runs", "0", "--grace", "0"],
            &["verify", "--discard"],
        ] {
            assert_orderly(&bounded(&context, command), &command);
        }
        let outcome = bounded(&context, &["run", "--force", "first"]).assert_code(3);
        assert!(
            outcome.stderr.contains("it is a link to another place"),
            "{outcome:#?}"
        );
        assert!(outcome.stderr.contains("help: "), "{outcome:#?}");
        assert_eq!(files(&context.path("letters")).len(), 2);
    }
}

/// Changes every result and every record of a store by one function.
fn forge(context: &Context, change: impl Fn(&mut Value)) {
    let results = files(&context.path("cache/results-v1"));
    let runs = files(&context.path("cache/runs-v1"));
    for path in results.into_iter().chain(runs) {
        let text = fs_err::read_to_string(&path).unwrap();
        let mut changed = String::new();
        if path.extension() == Some("jsonl") {
            for line in text.lines() {
                let mut value = serde_json::from_str(line).unwrap();
                change(&mut value);
                changed.push_str(&format!("{value}\n"));
            }
        } else if path.extension() == Some("json") {
            let mut value = serde_json::from_str(&text).unwrap();
            change(&mut value);
            changed = value.to_string();
        } else {
            continue;
        }
        overwrite(&path, changed.as_bytes());
    }
}

/// Every field of this name becomes this value.
fn set(value: &mut Value, name: &str, new: &Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                if key == name {
                    *field = new.clone();
                } else {
                    set(field, name, new);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| set(item, name, new)),
        _ => {}
    }
}

#[test]
fn paths_that_climb_out_of_a_record_lead_nowhere() {
    let context = Context::new(
        "format = 1\npipeline.name = \"p\"\nstages.talk = { kind = \"chatter\", params = { text = \"hello\" } }\n",
    );
    context.executed(&[]);
    let folder = context.path("");
    fs_err::write(context.path("secret.txt"), "the secret").unwrap();
    let climbing = format!("../../../../../../../../../..{}", context.path("secret.txt"));
    forge(&context, |value| {
        set(value, "log", &json!(climbing));
        set(value, "pipeline", &json!("../../evil"));
        set(value, "extension", &json!("parquet/../../../../evil"));
    });
    fs_err::remove_file(context.path("cache/index-v1.sqlite")).unwrap();
    let said = bounded(&context, &["log", "talk"]);
    assert!(!said.stdout.contains("the secret"), "{said:#?}");
    let before = files(&folder);
    for format in ["ro-crate", "prov", "openlineage", "in-toto"] {
        let outcome = bounded(
            &context,
            &["export", "last", "--format", format, "--cache", "cache"],
        );
        assert_orderly(&outcome, &format);
        if outcome.code == Some(0) {
            let out = context.path(outcome.stdout.trim());
            assert!(
                out.starts_with(&folder) && out.parent() == Some(folder.as_path().components().as_path()),
                "{out}"
            );
            if out.is_dir() {
                fs_err::remove_dir_all(out).unwrap();
            } else {
                fs_err::remove_file(out).unwrap();
            }
        }
    }
    assert_eq!(files(&folder), before, "something was written elsewhere");
}

/// Sizes and times at the ends of what their types hold.
#[test]
fn absurd_numbers_in_records_are_shown_or_refused() {
    let numbers = [
        json!(u64::MAX),
        json!(i64::MIN),
        json!(-1.0),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
        json!("x"),
        Value::Null,
    ];
    let times = [
        json!("-009999-01-02T01:59:59Z"),
        json!("9999-12-30T22:00:00.999999999Z"),
        json!("1969-12-31T23:59:60Z"),
        json!("yesterday"),
    ];
    let fields = [
        "size",
        "rows",
        "seconds",
        "position",
        "positions",
        "reused",
        "ran",
        "cores",
        "memory",
        "pid",
        "start",
    ];
    let numbers = fields
        .iter()
        .flat_map(|field| numbers.iter().map(move |number| (*field, number)));
    let moments = ["time", "started", "ended"];
    let times = moments
        .iter()
        .flat_map(|field| times.iter().map(move |time| (*field, time)));
    // A third of all: every field with several, every value in several.
    for (turn, (field, value)) in numbers.chain(times).enumerate().filter(|(turn, _)| turn % 3 == 0) {
        let context = Context::new(CHAIN);
        context.executed(&[]);
        forge(&context, |record| set(record, field, value));
        for (place, reader) in READERS.iter().enumerate() {
            if (turn + place) % 4 == 0 {
                assert_orderly(&bounded(&context, reader), &(field, value, reader));
            }
        }
        let outcome = bounded(&context, &["run"]);
        assert_orderly(&outcome, &(field, value));
        if outcome.code == Some(0) {
            // A result whose sizes are not those of its artifacts is not taken for one.
            context.check_store();
        }
    }
}

#[test]
fn a_field_that_is_given_twice_is_refused() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    for path in files(&context.path("cache/results-v1")) {
        let text = fs_err::read_to_string(&path).unwrap();
        let other = "0".repeat(64);
        let doubled =
            without_checksum(&text).replacen("\"key\":", &format!("\"key\": \"{other}\", \"key\":"), 1);
        assert_ne!(text, doubled);
        overwrite(&path, doubled.as_bytes());
    }
    let told = context.run(&["verify"]).assert_code(1).stdout;
    assert!(told.contains("duplicate field `key`"), "{told}");
    // What cannot be understood is computed again, and replaced.
    assert_eq!(context.executed(&[]).len(), 7);
    context.run(&["verify"]).assert_code(0);
}

#[test]
fn words_that_are_not_utf8_are_a_wrong_request() {
    let context = Context::new(CHAIN);
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9");
    for place in 0..2 {
        let mut command = context.command(&["run"]);
        match place {
            0 => command.arg(odd),
            _ => command.arg("--cache").arg(odd),
        };
        let outcome = finish(&mut command).assert_code(2);
        assert!(outcome.stderr.contains("UTF-8"), "{outcome:#?}");
    }
    let folder = context.folder.as_std_path().join(odd);
    fs_err::create_dir(&folder).unwrap();
    fs_err::copy(context.path("pipeline.toml"), folder.join("pipeline.toml")).unwrap();
    let outcome = finish(context.command(&["run"]).current_dir(&folder)).assert_code(2);
    assert!(outcome.stderr.contains("UTF-8"), "{outcome:#?}");
}

#[test]
fn names_that_are_not_utf8_in_a_store_are_nobodys() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    for bucket in [
        "objects-v1",
        "results-v1",
        "runs-v1",
        "claims-v1",
        "published-v1",
        "partial-v1",
        "tmp",
        "pins-v1",
    ] {
        let folder = context.path("cache").join(bucket);
        fs_err::create_dir_all(&folder).unwrap();
        let odd = folder.as_std_path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        fs_err::write(odd, "x").unwrap();
    }
    for reader in READERS {
        assert_orderly(&bounded(&context, reader), &reader);
    }
    assert_eq!(context.executed(&[]), [""; 0]);
    context.run(&["gc", "--yes", "--grace", "0"]).assert_code(0);
    let odd = context
        .path("cache/objects-v1")
        .as_std_path()
        .join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    assert!(odd.exists(), "what is nobody's is not ours to remove");
}

/// An index that a newer version wrote is left as it is; the store is as good without.
#[test]
fn the_index_of_a_newer_version_is_left_alone() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let path = context.path("cache/index-v1.sqlite");
    let mut bytes = fs_err::read(&path).unwrap();
    // The user version: bytes 60 to 63 of the header, big-endian (SQLite's file format, section 1.3).
    assert_eq!(bytes[60..64], [0, 0, 0, 1]);
    bytes[63] = 2;
    fs_err::write(&path, &bytes).unwrap();
    assert_eq!(context.executed(&[]), [""; 0]);
    assert_eq!(
        context.executed(&["--set", "stages.second.params.value=2"]).len(),
        4
    );
    assert_eq!(fs_err::read(&path).unwrap(), bytes);
}

#[test]
fn what_is_no_file_in_the_place_of_an_object_counts_as_none() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let object = Utf8PathBuf::from(context.run(&["path", "first[a=1]"]).assert_code(0).stdout.trim());
    let outside = context.path("outside.parquet");
    fs_err::rename(&object, &outside).unwrap();
    let bytes = fs_err::read(&outside).unwrap();
    // The right bytes, but not in the store.
    symlink(&outside, &object).unwrap();
    let verified = context.run(&["verify"]).assert_code(1).stdout;
    assert!(
        verified.contains("missing: a result names an object that is not there")
            && verified.contains("a link, a folder or the like, where the file of an object belongs"),
        "{verified}"
    );
    assert_eq!(context.executed(&[]), ["first[a=1]"]);
    assert!(fs_err::symlink_metadata(&object).unwrap().is_file());
    assert_eq!(fs_err::read(&outside).unwrap(), bytes);
    context.check_store();

    fs_err::remove_file(&object).unwrap();
    fs_err::create_dir(&object).unwrap();
    assert_eq!(context.executed(&[]), ["first[a=1]"]);
    fs_err::remove_dir(format!("{object}.displaced-1")).unwrap();
    context.check_store();
}

#[test]
fn notes_that_cannot_be_understood_are_found_by_verify() {
    let context = everything();
    for bucket in ["pins-v1", "published-v1"] {
        let note = files(&context.path(&format!("cache/{bucket}"))).remove(0);
        let whole = fs_err::read(&note).unwrap();
        overwrite(&note, b"{");
        let verified = context.run(&["verify"]).assert_code(1).stdout;
        assert!(
            verified.contains("pins and notes of published copies")
                && verified.contains(note.file_name().unwrap()),
            "{verified}"
        );
        assert!(!verified.contains("nothing is wrong"), "{verified}");
        // What a newer version wrote is whole, and not to be removed.
        let mut newer: Value = serde_json::from_slice(&whole).unwrap();
        newer["format"] = json!(9);
        overwrite(&note, newer.to_string().as_bytes());
        let verified = context.run(&["verify"]).assert_code(1).stdout;
        assert!(
            !verified.contains("remove those notes")
                && verified.contains("a newer version of Provenir wrote"),
            "{verified}"
        );
        overwrite(&note, &whole);
    }
    // Nothing computes a pin again.
    let note = files(&context.path("cache/pins-v1")).remove(0);
    overwrite(&note, b"{");
    for command in ["pin", "gc"] {
        let told = context.run(&[command]).stderr;
        assert!(
            told.contains("pin again") && !told.contains("is computed again"),
            "{command}: {told}"
        );
    }
}

/// What steers a terminal stays where it came from, and is not shown.
#[test]
fn control_characters_are_not_shown() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "colours"
        [stages.loud]
        kind = "command"
        [stages.loud.params]
        argv = ["sh", "-c", "printf '\\033[31mred\\rover\\n' >&2; head -c 3000 /dev/zero | tr '\\0' x >&2; echo >&2; exit 1", "{output.state}"]
        outputs.state.file = "state.txt"
        "#,
    );
    let plain = |text: &str, what: &str| {
        let hostile = text.chars().find(|char| char.is_control() && *char != '\n');
        assert_eq!(hostile, None, "{what}: {text:?}");
    };
    let outcome = context.run(&["run"]).assert_code(1);
    plain(&outcome.stderr, "run");
    assert!(outcome.stderr.contains("| ?[31mred?over"), "{outcome:#?}");
    assert!(
        outcome.stderr.lines().all(|line| line.chars().count() < 420),
        "{outcome:#?}"
    );
    assert!(outcome.stderr.contains("xxx…"), "{outcome:#?}");
    let log = files(&context.path("cache/runs-v1"))
        .into_iter()
        .map(|path| fs_err::read(path).unwrap())
        .find(|bytes| bytes.windows(5).any(|bytes| bytes == b"\x1b[31m"));
    assert!(
        log.is_some_and(|bytes| bytes.len() > 3000),
        "the log keeps all of it"
    );
    for arguments in [&["show", "\x1b[31m"][..], &["runs", "tag", "last", "\x1b[31m"]] {
        let outcome = context.run(arguments).assert_code(2);
        plain(&outcome.stderr, "an argument");
    }
    for path in files(&context.path("cache/runs-v1")) {
        if path.file_name() == Some("run.json") {
            let mut head: Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
            head["pipeline"] = json!("a\x1b[31mb\r\nc");
            overwrite(&path, head.to_string().as_bytes());
        }
    }
    let told = context.run(&["runs"]).assert_code(0).stdout;
    plain(&told, "runs");
    assert!(told.contains("a?[31mb  c"), "{told}");
    fs_err::create_dir(context.path("cache/objects-v1\x1b[31m")).unwrap();
    fs_err::create_dir(context.path("cache/\x1b[31m-v9")).unwrap();
    plain(&context.run(&["doctor"]).stdout, "doctor");
}

/// Nobody is said to execute what a claim that cannot be read stands before.
#[test]
fn a_claim_that_cannot_be_read_is_called_that() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    for path in files(&context.path("cache/results-v1")) {
        let key = path.file_stem().unwrap();
        context.write(&format!("cache/claims-v1/{key}"), "{}");
        fs_err::remove_file(&path).unwrap();
    }
    let outcome = finish(&mut context.program("timeout", &["3", COMMAND, "run"]));
    assert!(
        outcome.stderr.contains("a claim that cannot be read stands in the way; it is taken over when it has not changed for 1 min"),
        "{outcome:#?}"
    );
    assert!(!outcome.stderr.contains("process 0"), "{outcome:#?}");
}

#[test]
fn a_folder_with_other_things_is_no_store() {
    let context = Context::new(CHAIN);
    context.write("elsewhere/notes.txt", "mine");
    for command in ["verify", "gc"] {
        let told = context
            .run(&[command, "--cache", "elsewhere"])
            .assert_code(2)
            .stderr;
        assert!(told.contains("there is no store `elsewhere`"), "{told}");
    }
}

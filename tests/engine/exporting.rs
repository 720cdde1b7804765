use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::{Digest, FigureIdentity};
use rustix::process::Signal;
use serde_json::Value;

use crate::context::{CHAIN, Context, Outcome, Running, eventually, files, is_root, overwrite};
use crate::exported::{Cells, Problems, check_crate, check_openlineage, check_prov, check_statement, truth};

const FORMATS: [&str; 4] = ["ro-crate", "openlineage", "prov", "in-toto"];

/// Two stages of three cells each, the second with a file from outside, and one that gathers them.
fn manifest() -> String {
    CHAIN.replace(
        "params = { value = 0.5 }",
        "params = { value = 0.5, file = \"data.txt\" }",
    )
}

fn chain() -> Context {
    let context = Context::new(&manifest());
    // The text whose SHA-256 FIPS 180-2 gives as its first example.
    context.write("data.txt", "abc");
    context
}

#[track_caller]
fn exported(context: &Context, format: &str, arguments: &[&str]) -> Outcome {
    context
        .run(&[&["export", "--format", format], arguments].concat())
        .assert_code(0)
}

#[track_caller]
fn printed(context: &Context, format: &str, arguments: &[&str]) -> String {
    exported(context, format, &[arguments, &["--out", "-"]].concat()).stdout
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Exports in every format, and what each tells of cells.
#[track_caller]
fn all(context: &Context, arguments: &[&str]) -> Vec<(&'static str, (Cells, Problems))> {
    let folder = context.path("crate");
    if folder.exists() {
        fs_err::remove_dir_all(&folder).unwrap();
    }
    exported(context, "ro-crate", &[arguments, &["--out", "crate"]].concat());
    let of_crate = check_crate(&folder);
    // What lies in the crate is not to be taken for what lies in the store.
    fs_err::remove_dir_all(&folder).unwrap();
    let openlineage = printed(context, "openlineage", arguments);
    let prov = json(&printed(context, "prov", arguments));
    let statement = json(&printed(context, "in-toto", arguments));
    vec![
        ("ro-crate", of_crate),
        ("openlineage", check_openlineage(context, &openlineage)),
        ("prov", check_prov(context, &prov)),
        ("in-toto", check_statement(context, &statement)),
    ]
}

/// In every format, nothing is wrong, and the cells are those of the results with these keys.
#[track_caller]
fn assert_true(context: &Context, arguments: &[&str], keys: Option<&BTreeSet<String>>) {
    let expected = truth(context, keys);
    assert!(!expected.is_empty());
    for (format, (cells, problems)) in all(context, arguments) {
        assert_eq!(problems, [""; 0], "{format}");
        assert_eq!(cells, expected, "{format}");
    }
}

/// Leaves exports for `scripts/check_exports.py`, which holds them against the standards.
fn leave(context: &Context, case: &str, arguments: &[&str]) {
    let folder = Utf8Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("exports")
        .join(case);
    if folder.exists() {
        fs_err::remove_dir_all(&folder).unwrap();
    }
    fs_err::create_dir_all(&folder).unwrap();
    let names = ["ro-crate", "events.jsonl", "prov.json", "statement.json"];
    for (format, name) in FORMATS.iter().zip(names) {
        let out = folder.join(name);
        exported(context, format, &[arguments, &["--out", out.as_str()]].concat());
    }
}

fn keys(context: &Context, cells: &[&str]) -> BTreeSet<String> {
    let key = |cell: &&str| {
        let outcome = context.run(&["lineage", cell, "--format", "json"]).assert_code(0);
        json(&outcome.stdout)["focus"].as_str().unwrap().to_owned()
    };
    cells.iter().map(key).collect()
}

#[test]
fn a_run_is_exported_as_its_results_and_records_have_it() {
    let context = chain();
    context.executed(&[]);
    assert_true(&context, &[], None);
    leave(&context, "run", &[]);
    let folder = context.path("crate");
    exported(&context, "ro-crate", &["--out", "crate"]);
    assert_eq!(
        fs_err::read(folder.join("published/out/total.parquet")).unwrap(),
        context.read("out/total.parquet")
    );
    let metadata = fs_err::read_to_string(folder.join("ro-crate-metadata.json")).unwrap();
    let entities = json(&metadata)["@graph"].as_array().unwrap().clone();
    let entity = |id: &str| {
        entities
            .iter()
            .find(|entity| entity["@id"] == id)
            .unwrap()
            .clone()
    };
    let source = files(&folder.join("sources")).pop().unwrap();
    let source = entity(source.strip_prefix(&folder).unwrap().as_str());
    // FIPS 180-2, appendix B.1.
    assert_eq!(
        source["sha256"],
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    // The record's own words of the run.
    let run = context.runs().pop().unwrap();
    let name = run.file_name().unwrap();
    let head = json(&fs_err::read_to_string(run.join("run.json")).unwrap());
    let fact = |name: &str| entity(&format!("#run-{}/{name}", run.file_name().unwrap()))["value"].clone();
    assert_eq!(fact("host"), head["host"]["name"]);
    assert_eq!(fact("cores"), head["host"]["cores"]);
    assert_eq!(fact("program%20build"), head["program"]["build"]);
    assert_eq!(fact("manifest"), head["manifest"]);
    let started = head["started"].as_str().unwrap();
    let told = entity(&format!("#run-{name}"))["startTime"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(told[..23], started[..23]);
    // The times of a cell are those of its record.
    let records = fs_err::read_to_string(run.join("records.jsonl")).unwrap();
    let records: Vec<Value> = records.lines().map(json).collect();
    let executed: Vec<&Value> = records
        .iter()
        .filter(|record| record["record"] == "executed")
        .collect();
    assert_eq!(executed.len(), 7);
    for record in executed {
        let action = entity(&format!("#action-{}", record["key"].as_str().unwrap()));
        assert_eq!(action["name"], record["cell"]);
        assert_eq!(
            action["startTime"].as_str().unwrap()[..23],
            record["started"].as_str().unwrap()[..23]
        );
        let usage = entity(action["resourceUsage"]["@id"].as_str().unwrap());
        assert_eq!(usage["value"], record["seconds"]);
    }
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    let context = chain();
    context.executed(&[]);
    let texts = || -> Vec<String> {
        let formats = FORMATS[1..].iter();
        formats.map(|format| printed(&context, format, &[])).collect()
    };
    let folder = |name: &str| -> Vec<(Utf8PathBuf, Vec<u8>)> {
        exported(&context, "ro-crate", &["--out", name]);
        let root = context.path(name);
        let found = files(&root).into_iter();
        found
            .map(|path| {
                (
                    path.strip_prefix(&root).unwrap().to_owned(),
                    fs_err::read(&path).unwrap(),
                )
            })
            .collect()
    };
    let (before, crate_before) = (texts(), folder("one"));
    // A run that finds everything up to date, an index that is gone, and another number of threads change nothing.
    assert!(context.executed(&[]).is_empty());
    fs_err::remove_file(context.path("cache/index-v1.sqlite")).unwrap();
    assert_eq!(texts(), before);
    assert_eq!(folder("two"), crate_before);
    let mut command = context.command(&["export", "--format", "prov", "--out", "-"]);
    command.env("RAYON_NUM_THREADS", "1");
    assert_eq!(crate::context::finish(&mut command).stdout, before[1]);
    // The same file may be written again, and nothing over another.
    exported(&context, "prov", &["--out", "prov.json"]);
    exported(&context, "prov", &["--out", "prov.json"]);
    assert_eq!(context.read("prov.json"), before[1].as_bytes());
}

#[test]
fn a_figure_and_a_cell_are_exported_with_what_is_behind_them() {
    let context = chain();
    context.executed(&[]);
    let first = keys(&context, &["first[a=1]"]);
    assert_true(&context, &["first[a=1]"], Some(&first));
    let both = keys(&context, &["first[a=2]", "second[a=2]"]);
    assert_true(&context, &["second[a=2]"], Some(&both));
    let key = keys(&context, &["second[a=2]"]).pop_first().unwrap();
    assert_true(&context, &[&key[..12]], Some(&both));
    // Several cells, and a file, by which the rest is found.
    let six = keys(
        &context,
        &[
            "first[a=1]",
            "first[a=2]",
            "first[a=3]",
            "second[a=1]",
            "second[a=2]",
            "second[a=3]",
        ],
    );
    assert_true(&context, &["second"], Some(&six));
    assert_true(&context, &["out/total.parquet"], None);
    let statement = json(&printed(&context, "in-toto", &["out/total.parquet"]));
    let subjects = statement["subject"].as_array().unwrap();
    let object = Digest::of(&context.read("out/total.parquet")).hex();
    assert_eq!(subjects.len(), 1);
    assert_eq!(subjects[0]["name"], "out/total.parquet");
    assert_eq!(subjects[0]["digest"]["blake3"], object.as_str());
    // A figure says itself where it comes from. Its bytes are not those that the store has, which is said.
    let identity = FigureIdentity {
        action_key: keys(&context, &["total"]).pop_first().unwrap(),
        data: Digest::of(b"data"),
    };
    let figure = format!("<svg>\n{}\n</svg>\n", identity.svg_metadata());
    fs_err::write(
        context.path("found.svg"),
        FigureIdentity::seal(figure.clone().into_bytes()),
    )
    .unwrap();
    let outcome = exported(&context, "prov", &["found.svg", "--out", "-"]);
    assert!(
        outcome
            .stderr
            .starts_with("warning: `found.svg` does not have the bytes"),
        "{outcome:#?}"
    );
    assert_eq!(
        check_prov(&context, &json(&outcome.stdout)),
        (truth(&context, None), Vec::new())
    );
}

#[test]
fn what_earlier_runs_computed_keeps_their_times() {
    let context = chain();
    context.executed(&[]);
    assert_eq!(
        context.executed(&["--axis", "a=1,2,3,4"]),
        ["first[a=4]", "second[a=4]", "total"]
    );
    let runs = context.runs();
    // Of the store's ten results, the earlier total is not the later run's.
    let mut later = BTreeSet::new();
    for a in 1..=4 {
        for stage in ["first", "second"] {
            let cell = format!("{stage}[a={a}]");
            let outcome = context
                .run(&["lineage", &cell, "--axis", "a=1,2,3,4", "--format", "json"])
                .assert_code(0);
            later.insert(json(&outcome.stdout)["focus"].as_str().unwrap().to_owned());
        }
    }
    let total = context
        .run(&["lineage", "total", "--axis", "a=1,2,3,4", "--format", "json"])
        .assert_code(0);
    later.insert(json(&total.stdout)["focus"].as_str().unwrap().to_owned());
    assert_eq!(later.len(), 9);
    assert_true(&context, &["last"], Some(&later));
    leave(&context, "later-run", &["last"]);
    let earlier = runs[0].file_name().unwrap();
    assert_true(
        &context,
        &[earlier],
        Some(&keys(
            &context,
            &[
                "first[a=1]",
                "first[a=2]",
                "first[a=3]",
                "second[a=1]",
                "second[a=2]",
                "second[a=3]",
                "total",
            ],
        )),
    );
    let statement = json(&printed(&context, "in-toto", &["last"]));
    let parameters = &statement["predicate"]["buildDefinition"]["internalParameters"];
    for cell in parameters["cells"].as_array().unwrap() {
        let is_new = ["first[a=4]", "second[a=4]", "total"].contains(&cell["name"].as_str().unwrap());
        let run = runs[usize::from(is_new)].file_name().unwrap();
        assert_eq!(cell["execution"]["run"], run, "{}", cell["name"]);
    }
    // The manifest that lies in a crate is the one that was run: with it, nothing has to run.
    exported(&context, "ro-crate", &["last", "--out", "crate"]);
    fs_err::copy(context.path("data.txt"), context.path("crate/data.txt")).unwrap();
    let plan = context
        .run(&["plan", "crate/manifest.toml", "--cache", "cache"])
        .assert_code(0);
    assert!(plan.stdout.contains("9 cells, 9 up to date"), "{plan:#?}");
}

#[test]
fn what_fails_is_exported_as_failed() {
    let context = Context::new(&format!(
        "{}\n[stages.broken]\nkind = \"fail\"\nparams = {{ message = \"no luck\" }}\ninputs = {{ one = \"first\" }}\n",
        manifest()
    ));
    context.write("data.txt", "abc");
    context.run(&["run", "--quiet"]).assert_code(1);
    for (format, (cells, problems)) in all(&context, &[]) {
        assert_eq!(problems, [""; 0], "{format}");
        assert_eq!(cells.len(), 10, "{format}");
        let known = truth(&context, None);
        for (key, told) in &known {
            assert_eq!(cells[key], *told, "{format}");
        }
        // What failed is told with what it took: from what is there, and nothing else.
        let failed: Vec<_> = cells
            .iter()
            .filter(|(key, _)| !known.contains_key(*key))
            .collect();
        assert_eq!(failed.len(), 3, "{format}");
        let mut taken = BTreeSet::new();
        for (_, told) in failed {
            assert_eq!(told.parameters["message"], "no luck", "{format}");
            assert_eq!(told.inputs.len(), 1, "{format}");
            taken.extend(told.inputs.clone());
        }
        assert_eq!(taken.len(), 3, "{format}");
    }
    leave(&context, "failed-run", &[]);
    let statement = json(&printed(&context, "in-toto", &[]));
    let parts = statement["predicate"]["buildDefinition"]["internalParameters"]["cells"].clone();
    for cell in parts
        .as_array()
        .unwrap()
        .iter()
        .filter(|cell| cell["stage"] == "broken")
    {
        let own = cell["name"].as_str().unwrap().replace("broken", "first");
        let from = parts
            .as_array()
            .unwrap()
            .iter()
            .find(|cell| cell["name"] == own.as_str());
        assert_eq!(cell["inputs"][0]["from"]["actionKey"], from.unwrap()["actionKey"]);
    }
    let events: Vec<Value> = printed(&context, "openlineage", &[]).lines().map(json).collect();
    let failed: Vec<&Value> = events
        .iter()
        .filter(|event| event["eventType"] == "FAIL")
        .collect();
    assert_eq!(failed.len(), 4);
    for event in &failed[..3] {
        assert_eq!(event["run"]["facets"]["errorMessage"]["message"], "no luck");
    }
    assert_eq!(failed[3]["job"]["name"], "chain");
}

/// A run that has begun a cell, and has written down what it is.
fn begun(context: &Context, arguments: &[&str], cell: &str) -> Running {
    let mut running = context.start(arguments);
    running.wait_for("cell-started", cell);
    eventually("the run's head", || {
        let runs = context.runs();
        runs.last().is_some_and(|run| run.join("run.json").is_file())
    });
    running
}

/// Stops a run by a signal when it has begun a cell.
fn stopped(context: &Context, arguments: &[&str], cell: &str, signal: Signal) {
    let running = begun(context, arguments, cell);
    running.signal(signal);
    running.finish();
}

/// What had begun when its run was stopped is neither done nor left out.
#[test]
fn what_was_cut_short_is_exported_as_such() {
    for (signal, case, ending) in [
        (Signal::INT, "interrupted", "was interrupted"),
        (Signal::KILL, "killed", "was killed before it ended"),
    ] {
        let context = Context::new(
            r#"
            format = 1
            pipeline.name = "stopped"
            stages.quick = { kind = "noop", params = { value = 1 } }
            stages.slow = { kind = "sleep", params = { seconds = 600 }, inputs = { one = "quick" } }
            "#,
        );
        stopped(&context, &[], "slow", signal);
        let known = truth(&context, None);
        for (format, (cells, problems)) in all(&context, &["last"]) {
            assert_eq!(problems, [""; 0], "{format}");
            assert_eq!(cells.len(), 2, "{format}");
            for (key, told) in &known {
                assert_eq!(cells[key], *told, "{format}");
            }
        }
        leave(&context, case, &["last"]);
        let reason = format!("it was not finished: the run {ending}");
        exported(&context, "ro-crate", &["last", "--out", "crate"]);
        let metadata = json(&String::from_utf8(context.read("crate/ro-crate-metadata.json")).unwrap());
        let entities = metadata["@graph"].as_array().unwrap().iter();
        let action = entities
            .clone()
            .find(|entity| entity["@type"] == "CreateAction" && entity["name"] == "slow")
            .unwrap();
        assert_eq!(action["actionStatus"], "http://schema.org/FailedActionStatus");
        assert_eq!(action["error"], reason.as_str());
        assert!(action["startTime"].is_string() && action["endTime"].is_null());
        let prov = json(&printed(&context, "prov", &["last"]));
        let mut activities = prov["activity"].as_object().unwrap().values();
        let activity = activities
            .find(|activity| activity["prov:label"] == "slow")
            .unwrap();
        assert_eq!(activity["provenir:cutShort"], true);
        assert!(activity["prov:startTime"].is_string() && activity["prov:endTime"].is_null());
        let events: Vec<Value> = printed(&context, "openlineage", &["last"])
            .lines()
            .map(json)
            .collect();
        let of_slow = events
            .iter()
            .filter(|event| event["job"]["name"] == "stopped.slow");
        let types: Vec<&Value> = of_slow.map(|event| &event["eventType"]).collect();
        assert_eq!(types, ["START", "ABORT"]);
        let statement = json(&printed(&context, "in-toto", &["last"]));
        let cells = &statement["predicate"]["buildDefinition"]["internalParameters"]["cells"];
        let slow = &cells[1];
        assert_eq!((&slow["name"], &slow["kind"]), (&"slow".into(), &"sleep".into()));
        assert_eq!(
            (&slow["cutShort"], &slow["failure"]),
            (&true.into(), &reason.into())
        );
        assert!(slow["execution"]["startedOn"].is_string() && slow["execution"]["finishedOn"].is_null());
    }
}

/// What a cell is and takes is known from an earlier run, where it is computed once more and cut short.
#[test]
fn what_was_cut_short_the_second_time_is_told_as_it_was_the_first() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "held"
        stages.quick = { kind = "noop", params = { value = 1 } }
        [stages.held]
        kind = "command"
        inputs = { one = "quick" }
        [stages.held.params]
        argv = ["sh", "-c", 'if [ -e "$HOME/hold" ]; then sleep 600; fi; echo x > out.txt']
        inherit = ["HOME"]
        outputs.out.file = "out.txt"
        "#,
    );
    context.executed(&[]);
    let before = truth(&context, None);
    context.write("hold", "");
    stopped(&context, &["--force", "held"], "held", Signal::KILL);
    for (format, (cells, problems)) in all(&context, &["last"]) {
        assert_eq!(problems, [""; 0], "{format}");
        assert_eq!(cells.len(), 2, "{format}");
        for (key, told) in &before {
            let names = |parameters: &Value| -> Vec<String> {
                parameters.as_object().unwrap().keys().cloned().collect()
            };
            assert_eq!(names(&cells[key].parameters), names(&told.parameters), "{format}");
            assert_eq!(cells[key].inputs, told.inputs, "{format}");
        }
    }
    // Of a run of which nothing came, a statement would be about nothing.
    let alone = Context::new(
        "format = 1\npipeline.name = \"alone\"\nstages.slow = { kind = \"sleep\", params = { seconds = 600 } }\n",
    );
    stopped(&alone, &[], "slow", Signal::KILL);
    for format in ["openlineage", "prov"] {
        assert!(printed(&alone, format, &["last"]).contains("slow"), "{format}");
    }
    let said = alone
        .run(&["export", "last", "--format", "in-toto"])
        .assert_code(2)
        .stderr;
    assert!(
        said.contains("gave nothing that a statement could be about"),
        "{said}"
    );
}

#[test]
fn what_is_not_at_hand_any_more_is_said_and_not_made_up() {
    let context = chain();
    context.executed(&[]);
    let object = context.object("second[a=2]");
    fs_err::remove_file(&object).unwrap();
    context.write("data.txt", "another");
    let outcome = exported(&context, "ro-crate", &["last", "--out", "crate"]);
    let told = outcome
        .stderr
        .replace(context.runs()[0].file_name().unwrap(), "[RUN]");
    // How long Parquet files are is their writer's business.
    let (head, tail) = told.split_once(" (").unwrap();
    let told = format!("{head} ([SIZE] {}", tail.split_once(' ').unwrap().1);
    insta::assert_snapshot!(context.filtered(&told), @r"
    run [RUN]: 7 cells, 7 artifacts ([SIZE] bytes), 1 file from outside
    warning: the bytes of 1 artifact are not in the store any more: listed by their BLAKE3 alone, without SHA-256, and not included ([DIGEST])
      help: `provenir run` computes again what it still needs of them
    warning: 1 source file has changed since it was taken: only its BLAKE3 of that time is given (`[FOLDER]/data.txt`)
    ");
    let (cells, problems) = check_crate(&context.path("crate"));
    assert_eq!(problems, [""; 0]);
    assert_eq!(cells, truth(&context, None));
    assert_eq!(files(&context.path("crate/sources")), [""; 0]);
    assert_true(&context, &["last"], None);
    leave(&context, "incomplete", &["last"]);
    // What is there and is not what it was is no provenance.
    let damaged = context.object("first[a=1]");
    overwrite(&damaged, b"other");
    for format in FORMATS {
        let out = context.path("damaged");
        let outcome = context
            .run(&["export", "last", "--format", format, "--out", out.as_str()])
            .assert_code(3);
        assert!(outcome.stderr.contains("is damaged"), "{outcome:#?}");
        assert!(!out.exists());
    }
    assert!(
        !context
            .folder
            .read_dir_utf8()
            .unwrap()
            .any(|entry| { entry.unwrap().file_name().starts_with(".provenir-export") })
    );
}

#[test]
fn a_crate_without_data_describes_the_same() {
    let context = chain();
    context.executed(&[]);
    exported(
        &context,
        "ro-crate",
        &[
            "--without-data",
            "--license",
            "https://spdx.org/licenses/MIT",
            "--out",
            "crate",
        ],
    );
    let folder = context.path("crate");
    assert_eq!(
        files(&folder),
        [
            folder.join("manifest.toml"),
            folder.join("ro-crate-metadata.json")
        ]
    );
    let (cells, problems) = check_crate(&folder);
    assert_eq!(problems, [""; 0]);
    assert_eq!(cells, truth(&context, None));
    let metadata = fs_err::read_to_string(folder.join("ro-crate-metadata.json")).unwrap();
    assert!(metadata.contains("https://spdx.org/licenses/MIT"));
}

/// The checks of this file find what they are there to find.
#[test]
fn a_tampered_export_is_found_out() {
    let context = chain();
    context.executed(&[]);
    let folder = context.path("crate");
    let metadata = folder.join("ro-crate-metadata.json");
    let found = |change: &dyn Fn()| -> Problems {
        if folder.exists() {
            fs_err::remove_dir_all(&folder).unwrap();
        }
        exported(&context, "ro-crate", &["--out", "crate"]);
        change();
        check_crate(&folder).1
    };
    assert_eq!(found(&|| {}), [""; 0]);
    let swap = |from: &str, to: &str| {
        let text = fs_err::read_to_string(&metadata).unwrap();
        assert!(text.contains(from));
        fs_err::write(&metadata, text.replacen(from, to, 1)).unwrap();
    };
    let total = "published/out/total.parquet";
    let mut bytes = context.read("out/total.parquet");
    let position = bytes.len() / 2;
    bytes[position] ^= 1;
    assert_eq!(
        found(&|| fs_err::write(folder.join(total), &bytes).unwrap()).len(),
        2
    );
    assert_eq!(
        found(&|| fs_err::remove_file(folder.join(total)).unwrap()).len(),
        1
    );
    assert_eq!(
        found(&|| fs_err::write(folder.join("stray"), "").unwrap()),
        ["stray is not described"]
    );
    let object = Digest::of(&context.read("out/total.parquet")).hex();
    assert_eq!(found(&|| swap(&object, &object.replace('a', "b"))).len(), 1);
    assert!(!found(&|| swap("\"@id\": \"#control-", "\"@id\": \"#gone-")).is_empty());
    fs_err::remove_dir_all(&folder).unwrap();

    let prov = printed(&context, "prov", &[]);
    let openlineage = printed(&context, "openlineage", &[]);
    let statement = printed(&context, "in-toto", &[]);
    let key = keys(&context, &["first[a=1]"]).pop_first().unwrap();
    let other = key.replace('a', "b");
    let wrong = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    let artifact = format!("\"artifact:{key}.sum\": {{");
    let gone = format!("\"artifact:{other}.sum\": {{");
    assert!(
        !check_prov(&context, &json(&wrong(&prov, &artifact, &gone)))
            .1
            .is_empty()
    );
    let digest = json(&statement)["subject"][0]["digest"]["sha256"]
        .as_str()
        .unwrap()
        .to_owned();
    let false_digest = digest.replace('a', "b").replace('0', "1");
    assert!(
        !check_prov(&context, &json(&prov.replace(&digest, &false_digest)))
            .1
            .is_empty()
    );
    assert!(
        !check_statement(&context, &json(&statement.replace(&digest, &false_digest)))
            .1
            .is_empty()
    );
    assert!(
        !check_openlineage(&context, &openlineage.replace(&digest, &false_digest))
            .1
            .is_empty()
    );
    let from = format!("\"actionKey\": \"{key}\",\n                  \"port\"");
    let nowhere = format!("\"actionKey\": \"{other}\",\n                  \"port\"");
    assert!(
        !check_statement(&context, &json(&wrong(&statement, &from, &nowhere)))
            .1
            .is_empty()
    );
    let lines: Vec<&str> = openlineage.lines().collect();
    assert!(!check_openlineage(&context, &lines[1..].join("\n")).1.is_empty());
    let without = |text: &str| -> String {
        let kept = lines
            .iter()
            .filter(|line| !(line.contains(text) && line.contains("\"COMPLETE\"")));
        kept.fold(String::new(), |text, line| text + line + "\n")
    };
    assert!(
        !check_openlineage(&context, &without("\"cell\":\"first[a=1]\""))
            .1
            .is_empty()
    );
    let parent = json(lines[0])["run"]["runId"].as_str().unwrap().to_owned();
    let orphaned = openlineage.replace(
        &format!("\"run\":{{\"runId\":\"{parent}\"}}"),
        "\"run\":{\"runId\":\"x\"}",
    );
    assert!(!check_openlineage(&context, &orphaned).1.is_empty());
}

#[test]
fn what_is_equal_is_told_as_it_was_wired() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "equal"
        stages.demos = { kind = "noop", params = { value = 5 } }
        stages.corrupted = { kind = "noop", inputs = { one = "demos" } }
        stages.trained = { kind = "noop", inputs = { one = "corrupted" }, params = { value = 1 } }
        "#,
    );
    context.executed(&[]);
    let expected = keys(&context, &["demos", "corrupted", "trained"]);
    assert_eq!(expected.len(), 3);
    assert_true(&context, &["trained"], Some(&expected));
    let demos = keys(&context, &["demos"]).pop_first().unwrap();
    let trained = keys(&context, &["trained"]).pop_first().unwrap();
    let prov = json(&printed(&context, "prov", &[]));
    let used = prov["used"].as_object().unwrap().values();
    let of_trained = used.filter(|used| used["prov:activity"].as_str().unwrap().contains(&trained[..12]));
    let entities: Vec<&str> = of_trained
        .map(|used| used["prov:entity"].as_str().unwrap())
        .collect();
    assert!(
        !entities.is_empty() && entities.iter().all(|entity| !entity.contains(&demos[..12])),
        "{entities:?}"
    );
}

/// Two pairs of cells that are one action each, because their files have the same bytes; published below a folder.
fn alike(folder: &str) -> Context {
    let manifest = r#"
        format = 1
        pipeline.name = "alike"
        axes.k = [0, 1]
        [stages.t]
        kind = "noop"
        params = { file = "d-${k}.txt" }
        publish = { sum = "FOLDERt-${k}.parquet" }
        [stages.u]
        kind = "noop"
        inputs = { one = "t" }
        publish = { sum = "FOLDERu-${k}.parquet" }
        "#;
    let context = Context::new(&manifest.replace("FOLDER", folder));
    context.write("d-0.txt", "same");
    context.write("d-1.txt", "same");
    assert_eq!(context.executed(&[]).len(), 2);
    context
}

/// Cells that are one action because their files have the same bytes: each is exported as what it is.
#[test]
fn cells_that_are_one_action_are_exported_as_the_one_that_is_named() {
    let context = alike("");
    let names = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|found| found["name"].as_str().unwrap().to_owned())
            .collect()
    };
    for own in ["0", "1"] {
        for (stage, cells) in [("t", vec!["t"]), ("u", vec!["t", "u"])] {
            let published = format!("{stage}-{own}.parquet");
            let behind: Vec<String> = cells.iter().map(|stage| format!("{stage}[k={own}]")).collect();
            let behind: Vec<&str> = behind.iter().map(String::as_str).collect();
            for named in [format!("{stage}[k={own}]"), published.clone()] {
                assert_true(&context, &[&named], Some(&keys(&context, &behind)));
                let statement = json(&printed(&context, "in-toto", &[&named]));
                assert_eq!(names(&statement["subject"]), [published.as_str()]);
                let build = &statement["predicate"]["buildDefinition"];
                let taken = &names(&build["resolvedDependencies"])[0];
                assert_eq!(*taken, context.path(&format!("d-{own}.txt")));
                assert_eq!(names(&build["internalParameters"]["cells"]), behind);
            }
        }
    }
    exported(&context, "ro-crate", &["u-1.parquet", "--out", "crate"]);
    // What `t` and `u` gave is one file; it has the name that was asked for.
    assert_eq!(files(&context.path("crate/published")).len(), 1);
    assert!(context.path("crate/published/u-1.parquet").is_file());
}

/// Cells that are one action and take from each other: what the first of them took is not left out.
#[test]
fn a_chain_of_cells_that_are_one_action_is_followed_to_its_beginning() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "chained"
        stages.source = { kind = "noop", params = { value = 5 } }
        stages.a = { kind = "noop", inputs = { one = "source" } }
        stages.b = { kind = "noop", inputs = { one = "a" } }
        stages.c = { kind = "noop", inputs = { one = "b" }, publish = { sum = "c.parquet" } }
        stages.end = { kind = "noop", inputs = { one = "c" }, params = { value = 1 } }
        "#,
    );
    assert_eq!(context.executed(&[]).len(), 3);
    for (what, cells) in [
        ("c.parquet", vec!["source", "c"]),
        ("c", vec!["source", "c"]),
        ("end", vec!["source", "c", "end"]),
    ] {
        assert_true(&context, &[what], Some(&keys(&context, &cells)));
        let prov = json(&printed(&context, "prov", &[what]));
        assert!(!prov.to_string().contains("unknown origin"), "{prov}");
    }
    let outcome = context
        .run(&["export", "--format", "prov", "--out", "-"])
        .assert_code(0);
    assert!(
        outcome.stderr.contains("5 cells (3 different actions), "),
        "{outcome:#?}"
    );
}

/// What was computed again after a run is nothing that it had.
#[test]
fn an_export_of_a_run_stays_the_same_whatever_comes_later() {
    let manifest = |folder: &str| {
        format!(
            r#"
            format = 1
            pipeline.name = "measured"
            [stages.m]
            kind = "command"
            params = {{ argv = ["sh", "-c", "date +%s%N > time.txt"], outputs.time = {{ file = "time.txt", volatile = true }} }}
            publish = {{ time = "{folder}/time.txt" }}
            "#
        )
    };
    let context = Context::new(&manifest("one"));
    context.write("two.toml", &manifest("two"));
    context.executed(&[]);
    assert_eq!(context.executed(&["two.toml"]), [""; 0]);
    let runs = context.runs();
    let names: Vec<String> = runs
        .iter()
        .map(|run| run.file_name().unwrap().to_owned())
        .collect();
    let diff = |old: &str, new: &str| context.run(&["diff", old, new]).assert_code(0).stdout;
    let same = diff(&names[0], &names[1]);
    assert!(same.contains("artifacts: 1 cell the same in both"), "{same}");
    let formats = ["prov", "in-toto", "openlineage"];
    let digests = || formats.map(|format| digests_in(&printed(&context, format, &[&names[1]])));
    let before = digests();
    let first = provenir_api::Digest::of(&context.read("two/time.txt"));
    fs_err::remove_file(context.object("m.time")).unwrap();
    assert_eq!(context.executed(&[]), ["m"]);
    assert_ne!(context.read("one/time.txt"), context.read("two/time.txt"));
    assert_eq!(diff(&names[0], &names[1]), same);
    let last = context.runs().last().unwrap().file_name().unwrap().to_owned();
    assert!(diff(&names[1], &last).contains("m: time differs"));
    for (before, after) in before.iter().zip(digests()) {
        assert!(
            before.contains(&first.hex()) && after.contains(&first.hex()),
            "{after:?}"
        );
        let now = provenir_api::Digest::of(&context.read("one/time.txt"));
        assert!(!after.contains(&now.hex()), "{after:?}");
    }
    let told = context.run(&["lineage", "two/time.txt"]).assert_code(0).stdout;
    assert!(
        told.contains("(m: the same action gave something else since)"),
        "{told}"
    );
}

/// Every text of 64 digits in a document.
fn digests_in(text: &str) -> std::collections::BTreeSet<String> {
    let words = text.split(|char: char| !char.is_ascii_hexdigit());
    words.filter(|word| word.len() == 64).map(str::to_owned).collect()
}

fn subjects(context: &Context, arguments: &[&str]) -> Vec<String> {
    let statement = json(&printed(context, "in-toto", arguments));
    let subjects = statement["subject"].as_array().unwrap().iter();
    let mut names: Vec<String> = subjects
        .map(|subject| subject["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// The files that lie in a crate as published.
fn crated(context: &Context, arguments: &[&str]) -> Vec<String> {
    let folder = context.path("crate");
    if folder.exists() {
        fs_err::remove_dir_all(&folder).unwrap();
    }
    exported(context, "ro-crate", &[arguments, &["--out", "crate"]].concat());
    assert_eq!(check_crate(&folder).1, [""; 0]);
    let published = folder.join("published");
    let found = files(&published).into_iter();
    let names = found
        .map(|path| path.strip_prefix(&published).unwrap().to_string())
        .collect();
    fs_err::remove_dir_all(&folder).unwrap();
    names
}

/// Another run published the same under another name, which its own export tells, and no other.
#[test]
fn a_run_is_exported_with_the_copies_that_it_published() {
    let manifest = |path: &str| {
        format!(
            "format = 1\npipeline.name = \"named\"\n[stages.figure]\nkind = \"noop\"\nparams = {{ value = 5 }}\npublish = {{ sum = \"{path}\" }}\n"
        )
    };
    let context = Context::new(&manifest("figures/new.parquet"));
    assert_eq!(context.executed(&[]), ["figure"]);
    context.write("pipeline.toml", &manifest("figures/${stage}.parquet"));
    assert_eq!(context.executed(&[]), [""; 0]);
    let runs = context.runs();
    let earlier = runs[0].file_name().unwrap();
    let (new, own) = (
        context.path("figures/new.parquet"),
        context.path("figures/figure.parquet"),
    );
    let check = || {
        assert_eq!(subjects(&context, &[]), ["figures/figure.parquet"]);
        assert_eq!(crated(&context, &[]), ["figures/figure.parquet"]);
        for format in ["openlineage", "prov", "in-toto"] {
            let text = printed(&context, format, &[]);
            assert!(!text.contains(new.as_str()), "{format}: {text}");
        }
        assert_true(&context, &[], None);
        assert_eq!(subjects(&context, &[earlier]), ["figures/new.parquet"]);
        assert_eq!(crated(&context, &[earlier]), ["figures/new.parquet"]);
    };
    check();
    fs_err::remove_file(context.path("figures/new.parquet")).unwrap();
    check();
    // Of a cell, those are told that are there.
    let text = printed(&context, "in-toto", &["figure"]);
    assert!(
        text.contains(own.as_str()) && !text.contains(new.as_str()),
        "{text}"
    );
    context.write("figures/figure.parquet", "altered");
    let text = printed(&context, "in-toto", &["figure"]);
    assert!(!text.contains(own.as_str()), "{text}");
    context.executed(&[]);
    // The same after the project was moved together with its store.
    let moved = Context::new("");
    fs_err::remove_file(moved.path("pipeline.toml")).unwrap();
    for name in ["cache", "figures", "pipeline.toml"] {
        fs_err::rename(context.path(name), moved.path(name)).unwrap();
    }
    let text = printed(&moved, "in-toto", &[]);
    let path = moved.path("figures/figure.parquet");
    assert!(text.contains(path.as_str()), "{text}");
}

/// Records of earlier versions do not tell what lay where: then what was noted last for their own cells counts.
#[test]
fn copies_of_a_run_that_did_not_note_them_are_those_of_its_cells() {
    let context = chain();
    context.executed(&[]);
    context.write("other.toml", &manifest().replace("out/total", "out/other"));
    context.executed(&["other.toml"]);
    for run in context.runs() {
        let path = run.join("outcome.json");
        let mut outcome = json(&fs_err::read_to_string(&path).unwrap());
        let published = outcome.as_object_mut().unwrap().remove("published").unwrap();
        assert_eq!(published.as_array().unwrap().len(), 1);
        fs_err::write(&path, outcome.to_string()).unwrap();
    }
    assert_eq!(subjects(&context, &["pipeline.toml"]), ["out/total.parquet"]);
    assert_eq!(subjects(&context, &["other.toml"]), ["out/other.parquet"]);
}

/// Cells that are one action, each with a copy of its own, and a stage that gives on what it takes: all of the copies are one
/// artifact, and each is listed.
#[test]
fn every_copy_of_a_run_is_listed() {
    let context = alike("out/");
    let all = [
        "out/t-0.parquet",
        "out/t-1.parquet",
        "out/u-0.parquet",
        "out/u-1.parquet",
    ];
    assert_eq!(subjects(&context, &[]), all);
    assert_eq!(crated(&context, &[]), all);
    assert_true(&context, &[], None);
    for format in ["prov", "in-toto", "openlineage"] {
        let told = printed(&context, format, &[]);
        for name in ["d-0.txt", "d-1.txt", "t[k=0]", "t[k=1]", "u[k=0]", "u[k=1]"] {
            assert!(told.contains(name), "{format} lacks {name}");
        }
    }
    leave(&context, "twins", &[]);
}

/// A stage whose program reads a file that it does not declare, so that it gives something else once that changes.
fn unrepeatable() -> Context {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "diverging"
        [stages.drawn]
        kind = "command"
        publish = { out = "out/drawn.txt" }
        [stages.drawn.params]
        argv = ["sh", "-c", 'cat "$HOME/undeclared" > out.txt']
        inherit = ["HOME"]
        outputs.out.file = "out.txt"
        [stages.copied]
        kind = "command"
        inputs = { drawn = "drawn" }
        [stages.copied.params]
        argv = ["cp", "{input.drawn}", "{output.out}"]
        outputs.out.file = "copy.txt"
        "#,
    );
    context.write("undeclared", "first\n");
    assert_eq!(context.executed(&[]), ["copied", "drawn"]);
    context
}

/// What a run computed and did not count is told of that run, beside what counted, which others took.
#[test]
fn what_a_run_gave_that_differs_is_told_as_such() {
    let context = unrepeatable();
    context.write("undeclared", "second\n");
    assert_eq!(context.executed(&["--force", "drawn"]), ["drawn"]);
    let runs = context.runs();
    let names: Vec<&str> = runs.iter().map(|run| run.file_name().unwrap()).collect();
    let cells = |arguments: &[&str]| -> Vec<(String, String, String, Value)> {
        let statement = json(&printed(&context, "in-toto", arguments));
        let cells = statement["predicate"]["buildDefinition"]["internalParameters"]["cells"].clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let cells = cells.as_array().unwrap().iter();
        cells
            .map(|cell| {
                (
                    text(&cell["name"]),
                    text(&cell["execution"]["run"]),
                    text(&cell["outputs"][0]["digest"]["blake3"]),
                    cell["divergedAt"].clone(),
                )
            })
            .collect()
    };
    let (first, second) = (Digest::of(b"first\n").hex(), Digest::of(b"second\n").hex());
    let cell = |name: &str, run: usize, digest: &str, diverged: Value| {
        (
            name.to_owned(),
            names[run].to_owned(),
            digest.to_owned(),
            diverged,
        )
    };
    let before = [
        cell("drawn", 0, &first, Value::Null),
        cell("copied", 0, &first, Value::Null),
    ];
    assert_eq!(cells(&[names[0]]), before);
    let diverged = [&before[..], &[cell("drawn", 1, &second, "out".into())]].concat();
    assert_eq!(cells(&["last"]), diverged);
    assert_eq!(cells(&["drawn"]), before[..1]);
    for (format, (_, problems)) in all(&context, &["last"]) {
        assert_eq!(problems, [""; 0], "{format}");
    }
    leave(&context, "diverged", &["last"]);
    // In PROV, what diverged is an activity of its own, at its own time, which nothing was derived from.
    let prov = json(&printed(&context, "prov", &["last"]));
    let activities = prov["activity"].as_object().unwrap();
    let of_drawn: Vec<&Value> = activities
        .values()
        .filter(|activity| activity["prov:label"] == "drawn")
        .collect();
    assert_eq!(of_drawn.len(), 2);
    let is_diverged = |activity: &Value| activity["provenir:divergedAt"] == "out";
    let (own, other): (Vec<&Value>, Vec<&Value>) = of_drawn.into_iter().partition(|found| is_diverged(found));
    assert!(own[0]["prov:startTime"].as_str() > other[0]["prov:endTime"].as_str());
    let digest = |section: &str, end: &str| -> BTreeSet<String> {
        let relations = prov[section].as_object().unwrap().values();
        let ends = relations.map(|relation| relation[end].as_str().unwrap());
        ends.filter_map(|id| prov["entity"][id]["provenir:blake3"].as_str().map(str::to_owned))
            .collect()
    };
    assert!(digest("wasGeneratedBy", "prov:entity").contains(&second));
    assert!(!digest("used", "prov:entity").contains(&second));
    exported(&context, "ro-crate", &["last", "--out", "crate"]);
    let metadata = String::from_utf8(context.read("crate/ro-crate-metadata.json")).unwrap();
    assert!(
        metadata
            .contains("executed in this run; its output out is another than that of the result that counts"),
        "{metadata}"
    );
}

/// What a run computed again is told of that run, and nothing to have been used before it was there.
#[test]
fn what_a_run_computed_once_more_is_told_beside_what_counted() {
    let context = chain();
    context.executed(&[]);
    assert_eq!(context.executed(&["--force", "first[a=2]"]), ["first[a=2]"]);
    let runs = context.runs();
    let names: Vec<&str> = runs.iter().map(|run| run.file_name().unwrap()).collect();
    assert_true(&context, &["last"], None);
    leave(&context, "repeated", &["last"]);
    let statement = json(&printed(&context, "in-toto", &["last"]));
    let cells = &statement["predicate"]["buildDefinition"]["internalParameters"]["cells"];
    let cells = cells.as_array().unwrap();
    assert_eq!(cells.len(), 8);
    for (number, cell) in cells.iter().enumerate() {
        let is_again = number == 7;
        assert_eq!(cell["execution"]["run"], names[usize::from(is_again)]);
        assert_eq!(cell["repeated"] == true, is_again);
        assert_eq!(cell["divergedAt"], Value::Null);
    }
    assert_eq!(cells[7]["name"], "first[a=2]");
    let told = exported(&context, "ro-crate", &["last", "--out", "crate"]).stderr;
    assert!(
        told.contains(": 7 cells (1 computed once more), 7 artifacts ("),
        "{told}"
    );
    let metadata = String::from_utf8(context.read("crate/ro-crate-metadata.json")).unwrap();
    assert!(
        metadata.contains("executed in this run; it gave the same as the result that counted already"),
        "{metadata}"
    );
}

/// Cells of one name may give several files at one port; whoever reads a statement finds each by its name.
#[test]
fn what_has_one_name_is_told_apart_in_a_statement() {
    let context = unrepeatable();
    let manifest = String::from_utf8(context.read("pipeline.toml")).unwrap();
    let publish = "publish = { out = \"out/drawn.txt\" }";
    for (publishing, named) in [
        ("", "subject"),
        (
            "[stages.extra]\nkind = \"noop\"\npublish = { sum = \"out/extra.parquet\" }",
            "byproducts",
        ),
    ] {
        context.write(
            "pipeline.toml",
            &format!("{}\n{publishing}\n", manifest.replace(publish, "")),
        );
        context.write("undeclared", &format!("for {named}\n"));
        context
            .run(&["run", "--quiet", "--force", "drawn"])
            .assert_code(0);
        for (format, (_, problems)) in all(&context, &["last"]) {
            assert_eq!(problems, [""; 0], "{format}");
        }
        let statement = json(&printed(&context, "in-toto", &["last"]));
        let found = match named {
            "subject" => &statement["subject"],
            _ => &statement["predicate"]["runDetails"]["byproducts"],
        };
        let found = found.as_array().unwrap().iter();
        let names = found.map(|found| found["name"].as_str().unwrap());
        let drawn: Vec<&str> = names.filter(|name| name.starts_with("drawn.out")).collect();
        assert!(
            drawn.len() == 2 && drawn[0] == "drawn.out" && drawn[1].starts_with("drawn.out@"),
            "{drawn:?}"
        );
    }
}

/// A dataset that a cell takes in several ways is one input.
#[test]
fn what_is_taken_twice_is_one_input_of_an_event() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "alike"
        stages.one = { kind = "noop", params = { value = 7 } }
        stages.other = { kind = "noop", params = { value = 7 } }
        stages.total = { kind = "noop", inputs = { many = ["one", "other"] } }
        "#,
    );
    context.executed(&[]);
    assert_true(&context, &[], None);
    let events: Vec<Value> = printed(&context, "openlineage", &[]).lines().map(json).collect();
    let total = events.iter().find(|event| event["job"]["name"] == "alike.total");
    let inputs = total.unwrap()["inputs"].as_array().unwrap();
    assert_eq!(inputs.len(), 1);
    let taken = &inputs[0]["inputFacets"]["provenir_input"];
    assert_eq!(
        (&taken["source"], &taken["also"][0]["source"]),
        (&"one".into(), &"other".into())
    );
    leave(&context, "taken-twice", &[]);
}

/// Where a result is gone, what another run gives counts from then on; what an earlier one gave stays its own.
#[test]
fn a_run_is_told_with_what_it_gave_when_another_result_counts_by_now() {
    let context = unrepeatable();
    let before = printed(&context, "in-toto", &["last"]);
    let earlier = context.runs()[0].file_name().unwrap().to_owned();
    fs_err::remove_dir_all(context.path("out")).unwrap();
    let collect = ["gc", "--yes", "--grace", "0", "--keep-runs", "0"];
    context.run(&collect).assert_code(0);
    context.write("undeclared", "second\n");
    assert_eq!(context.executed(&[]), ["copied", "drawn"]);
    let cells = |text: &str| -> Vec<(Value, Value, Value)> {
        let statement = json(text);
        let cells = &statement["predicate"]["buildDefinition"]["internalParameters"]["cells"];
        let cells = cells.as_array().unwrap().iter();
        cells
            .map(|cell| {
                (
                    cell["name"].clone(),
                    cell["execution"].clone(),
                    cell["outputs"][0]["digest"]["blake3"].clone(),
                )
            })
            .collect()
    };
    assert_eq!(cells(&printed(&context, "in-toto", &[&earlier])), cells(&before));
    assert_ne!(cells(&printed(&context, "in-toto", &["last"])), cells(&before));
}

#[test]
fn a_file_that_has_the_bytes_stands_in_for_a_collected_object() {
    let context = chain();
    context.executed(&[]);
    fs_err::rename(context.path("out/total.parquet"), context.path("kept.parquet")).unwrap();
    let collect = ["gc", "--yes", "--grace", "0", "--keep-runs", "0"];
    context.run(&collect).assert_code(0);
    let outcome = exported(&context, "ro-crate", &["kept.parquet", "--out", "crate"]);
    assert!(
        outcome
            .stderr
            .contains("the bytes of 6 artifacts are not in the store any more"),
        "{outcome:#?}"
    );
    assert_eq!(check_crate(&context.path("crate")).1, [""; 0]);
    assert_eq!(
        context.read("crate/published/kept.parquet"),
        context.read("kept.parquet")
    );
}

/// What was executed took what was there then, whatever has the same result today.
#[test]
fn nothing_is_told_to_be_used_before_it_was_there() {
    let manifest = |from: &str| {
        format!(
            r#"
            format = 1
            pipeline.name = "equal"
            stages.demos = {{ kind = "noop", params = {{ value = 5 }} }}
            stages.corrupted = {{ kind = "noop", inputs = {{ one = "demos" }} }}
            stages.trained = {{ kind = "noop", inputs = {{ one = "{from}" }}, params = {{ value = 1 }} }}
            "#
        )
    };
    let context = Context::new(&manifest("demos"));
    assert_eq!(context.executed(&["--only", "trained"]), ["demos", "trained"]);
    context.write("pipeline.toml", &manifest("corrupted"));
    assert_eq!(context.executed(&[]), ["corrupted"]);
    assert_true(&context, &[], None);
    let expected = keys(&context, &["demos", "trained"]);
    assert_true(&context, &["trained"], Some(&expected));
}

#[test]
fn with_options_the_last_run_that_had_them_is_exported() {
    let context = chain();
    let set = ["--set", "stages.total.params.value=1"];
    context.executed(&set);
    let first = context.runs()[0].file_name().unwrap().to_owned();
    context.executed(&[]);
    let exported = printed(&context, "prov", &set);
    assert_eq!(exported, printed(&context, "prov", &[&first]));
    assert_ne!(exported, printed(&context, "prov", &[]));
    let refused = context
        .run(&["export", "--format", "prov", "--axis", "a=1"])
        .assert_code(2)
        .stderr;
    insta::assert_snapshot!(refused, @r"
    error: no run of `pipeline.toml` with `--axis a=1` is recorded in the store `cache`
      help: `provenir run` with the same makes one; `provenir runs` lists those that are recorded
    ");
}

#[test]
fn a_request_that_cannot_be_met_says_why() {
    let context = chain();
    let said = |arguments: &[&str]| {
        let outcome = context.run(&[&["export"], arguments].concat()).assert_code(2);
        context.filtered(&outcome.stderr)
    };
    let no_store = said(&["--format", "prov"]);
    insta::assert_snapshot!(no_store, @r"
    error: there is no store `cache`
      help: `provenir run` makes one; `--cache` or PROVENIR_CACHE names another
    ");
    context.executed(&[]);
    insta::assert_snapshot!(said(&["--format", "provv"]), @r"
    error: invalid value 'provv' for '--format <FORMAT>'
      [possible values: safetensors, ro-crate, openlineage, prov, in-toto]

      tip: a similar value exists: 'prov'

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(said(&["2024", "--format", "prov"]), @r"
    error: `2024` names no recorded run of the store `cache`, and no object and no action has a digest that begins so
      help: `provenir runs` lists runs, `provenir plan --verbose` the keys of actions; `--cache` names another store
    ");
    insta::assert_snapshot!(said(&["nothing", "--format", "prov"]), @r"
    error: there is no stage `nothing`
      help: there is `first`, `second`, `total`
    ");
    insta::assert_snapshot!(said(&["nothing.svg", "--format", "prov"]), @r"
    error: there is no file `nothing.svg`, and no stage `nothing`
      help: there is `first`, `second`, `total`
    ");
    let lineage = context.run(&["lineage", "nothing.svg"]).assert_code(2).stderr;
    insta::assert_snapshot!(lineage, @r"
    error: there is no file `nothing.svg`, and no stage `nothing`
      help: there is `first`, `second`, `total`
    ");
    insta::assert_snapshot!(said(&["total.sum", "--format", "prov"]), @"error: `total.sum` names an output; a run, a figure or a cell is exported, with all its outputs");
    insta::assert_snapshot!(said(&["last", "--format", "prov", "--set", "stages.total.params.value=1"]), @r"
    error: --set, --axis, --profile and --only go with a manifest or a cell; a run, a file and a digest are exported as they were made
      help: leave them out, or name a manifest, whose last run with the same is meant, or a cell
    ");
    insta::assert_snapshot!(said(&["total", "--format", "prov", "--set", "stages.total.params.value=1"]), @r"
    error: the store does not have `total` as the manifest now describes it
      help: `provenir run` computes it
    ");
    insta::assert_snapshot!(said(&["no/figure.svg", "--format", "prov"]), @"error: there is no file `no/figure.svg`");
    insta::assert_snapshot!(said(&["data.txt", "--format", "prov"]), @r"
    error: `data.txt` does not say where it comes from, and the store `cache` does not know it
      help: figures (SVG, PNG, PDF, GIF) carry their origin; `--cache` names another store
    ");
    insta::assert_snapshot!(said(&["--format", "prov", "--without-data"]), @"error: --without-data is for --format ro-crate");
    insta::assert_snapshot!(said(&["--format", "ro-crate", "--license", "mine"]), @r"
    error: `mine` is not the URL of a licence
      help: such as https://creativecommons.org/licenses/by/4.0/ or https://spdx.org/licenses/MIT
    ");
    insta::assert_snapshot!(said(&["--format", "ro-crate", "--env", "hopper"]), @"error: --env, --normalization, --activation and --time-feature are for Stable-Baselines3 archives, with --format safetensors");
    insta::assert_snapshot!(said(&["--format", "ro-crate", "--out", "-"]), @r"
    error: a crate is a folder, and cannot be printed
      help: name a folder with --out
    ");
    insta::assert_snapshot!(said(&["--format", "safetensors"]), @r"
    error: no policy is named
      help: name the output of a cell, such as 'policy[epsilon=0.1]', a digest, or a file
    ");
    insta::assert_snapshot!(said(&["--format", "ro-crate", "--out", "out"]), @r"
    error: the folder `out` is not empty
      help: name a new one with --out, or remove what is in it
    ");
    insta::assert_snapshot!(said(&["--format", "ro-crate", "--out", "data.txt"]), @r"
    error: `data.txt` is a file; a crate is a folder
      help: name a new folder with --out
    ");
    let in_the_way = said(&["--format", "prov", "--out", "data.txt"]);
    assert!(
        in_the_way.contains("error: `data.txt` exists and holds something else"),
        "{in_the_way}"
    );
    assert_eq!(context.read("data.txt"), b"abc");
    context.write("other.toml", CHAIN);
    insta::assert_snapshot!(said(&["other.toml", "--format", "prov"]), @r"
    error: no run of `other.toml` is recorded in the store `cache`
      help: `provenir run` makes one; a run in which everything is up to date is not recorded: name a cell or a figure
    ");
    let mut altered = context.read("out/total.parquet");
    altered.push(0);
    fs_err::write(context.path("out/total.parquet"), altered).unwrap();
    insta::assert_snapshot!(said(&["out/total.parquet", "--format", "prov"]), @r"
    error: `out/total.parquet` was altered since Provenir made it
      help: `provenir run` restores what a manifest publishes; or export the cell that made it
    ");
}

#[test]
fn an_empty_folder_is_as_good_as_none_and_others_are_refused() {
    let context = chain();
    context.executed(&[]);
    // One that is not there is told, and one that cannot be written to is the environment's fault.
    fs_err::create_dir(context.path("empty")).unwrap();
    exported(&context, "ro-crate", &["--out", "empty"]);
    assert_eq!(check_crate(&context.path("empty")).1, [""; 0]);
    let nowhere = ["export", "--format", "ro-crate", "--out", "no/such/crate"];
    context.run(&nowhere).assert_code(2);
    if !is_root() {
        use std::os::unix::fs::PermissionsExt;
        fs_err::create_dir(context.path("locked")).unwrap();
        fs_err::set_permissions(context.path("locked"), PermissionsExt::from_mode(0o555)).unwrap();
        context
            .run(&["export", "--format", "ro-crate", "--out", "locked/crate"])
            .assert_code(3);
    }
}

/// What a digest is of can be read beside it, and has nothing of the run: equal manifests have equal digests.
#[test]
fn the_digest_of_a_resolved_manifest_is_that_of_its_text_and_the_same_in_each_run() {
    let context = chain();
    let resolved = || {
        let statement = json(&printed(&context, "in-toto", &["last"]));
        let dependencies = statement["predicate"]["buildDefinition"]["resolvedDependencies"].clone();
        let dependencies = dependencies.as_array().unwrap().iter().rev();
        let role = "resolved manifest";
        // The run itself comes last.
        let mut manifests = dependencies.filter(|found| found["annotations"]["role"] == role);
        manifests.next().unwrap().clone()
    };
    context.executed(&[]);
    let first = resolved();
    assert_eq!(first["name"], "resolved manifest of chain");
    assert_eq!(
        first["annotations"]["takenFrom"],
        context.path("pipeline.toml").as_str()
    );
    let text = first["annotations"]["text"].as_str().unwrap();
    assert_eq!(first["digest"]["blake3"], Digest::of(text.as_bytes()).hex());
    let event = json(printed(&context, "openlineage", &[]).lines().next().unwrap());
    let facet = &event["run"]["facets"]["provenir_run"];
    assert_eq!(facet["manifest"]["path"], context.path("pipeline.toml").as_str());
    assert_eq!(facet["resolvedManifest"]["text"], text);
    assert_eq!(facet["resolvedManifest"]["digests"], first["digest"]);
    context.executed(&["--force", "total"]);
    let second = resolved();
    assert_ne!(first["annotations"]["run"], second["annotations"]["run"]);
    assert_eq!(first["digest"], second["digest"]);
    exported(&context, "ro-crate", &["last", "--out", "crate"]);
    assert_eq!(context.read("crate/manifest.toml"), text.as_bytes());
}

#[test]
fn a_run_that_is_under_way_is_not_exported() {
    let context = Context::new(
        "format = 1\npipeline.name = \"slow\"\nstages.slow = { kind = \"sleep\", params = { seconds = 600 } }\n",
    );
    let running = begun(&context, &[], "slow");
    let outcome = context.run(&["export", "--format", "prov"]).assert_code(2);
    assert!(outcome.stderr.contains("is still running"), "{outcome:#?}");
    running.signal(Signal::INT);
    running.finish();
    // What had begun is told. Where nothing had, there is nothing to tell.
    assert!(printed(&context, "prov", &[]).contains("\"provenir:cutShort\": true"));
    fs_err::remove_file(context.runs()[0].join("events.jsonl")).unwrap();
    let outcome = context.run(&["export", "--format", "prov"]).assert_code(2);
    assert!(outcome.stderr.contains("has no results"), "{outcome:#?}");
}

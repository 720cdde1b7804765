//! What is wrong with a `command` stage is told before anything runs, all at once.

use provenir_api::port::{Column, ColumnType, TableSchema};
use provenir_api::{Determinism, Problem};
use provenir_kinds::command::Command;
use serde_json::{Value, json};

fn kind() -> Box<dyn provenir_api::AnyKind> {
    provenir_api::erase::<Command>()
}

fn resolved(parameters: &Value) -> provenir_api::Resolved {
    kind()
        .resolve(parameters)
        .unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Place, message and help of each problem.
fn told(problems: Vec<Problem>) -> Vec<(String, String, String)> {
    problems
        .into_iter()
        .map(|problem| (problem.pointer, problem.message, problem.help.unwrap_or_default()))
        .collect()
}

fn problems(parameters: &Value) -> Vec<(String, String, String)> {
    told(kind().resolve(parameters).expect_err("it is wrong"))
}

#[track_caller]
fn assert_told(parameters: &Value, expected: &[(&str, &str, &str)]) {
    let found = problems(parameters);
    let found: Vec<(&str, &str, &str)> = found
        .iter()
        .map(|(place, message, help)| (place.as_str(), message.as_str(), help.as_str()))
        .collect();
    assert_eq!(found, expected);
}

fn plain() -> Value {
    json!({"argv": ["true"], "outputs": {"out": {"file": "out.txt"}}})
}

fn with(key: &str, value: Value) -> Value {
    let mut parameters = plain();
    parameters[key] = value;
    parameters
}

#[test]
fn only_what_was_said_keys() {
    assert_eq!(resolved(&plain()).canonical, plain());
    let verbose = json!({
        "argv": ["true"], "outputs": {"out": {"file": "out.txt", "columns": null, "open": false, "volatile": false}}, "files": {},
        "inputs": {}, "values": {}, "environment": {}, "inherit": [], "determinism": "exact",
    });
    assert_eq!(resolved(&verbose).canonical, plain());
    // A file counts by its name there and its content, not by where it lies.
    let mut script = with("files", json!({"lib/a.py": "elsewhere/b.py"}));
    script["argv"] = json!(["python3", "lib/a.py"]);
    let script = resolved(&script);
    assert_eq!(script.canonical.get("files"), None);
    let sources: Vec<(&str, &str)> = script
        .sources
        .iter()
        .map(|source| (source.pointer.as_str(), source.path.as_str()))
        .collect();
    assert_eq!(sources, [("/files/lib~1a.py", "elsewhere/b.py")]);
}

#[test]
fn how_far_executions_agree_is_the_manifests_to_say() {
    assert_eq!(resolved(&plain()).determinism, Determinism::Platform);
    assert_eq!(
        resolved(&with("determinism", json!("exact"))).determinism,
        Determinism::Exact
    );
}

#[test]
fn the_program_must_be_one_that_can_be_found() {
    assert_told(
        &with("argv", json!([])),
        &[("/argv", "needs at least 1 item, has 0", "")],
    );
    for (argv, message, help) in [
        (json!([""]), "the program must not be empty", ""),
        (json!([3]), "the first argument is the program, a text", ""),
        (
            json!(["python3 run.py"]),
            "no shell splits this into words: it is taken for the name of one program",
            "write `argv = [\"python3\", \"run.py\"]`",
        ),
        (
            json!(["scripts/run.sh"]),
            "`scripts/run.sh` is not in the folder that the program runs in",
            "declare it: `files = { \"run.sh\" = \"scripts/run.sh\" }`, and write `\"./run.sh\"` here",
        ),
        (
            json!(["../run.sh"]),
            "`../run.sh` leaves the folder that the program runs in: it holds `..`",
            "`files = { \"NAME\" = \"PATH FROM THE MANIFEST\" }` brings it there, as `./NAME`",
        ),
    ] {
        assert_told(&with("argv", argv), &[("/argv/0", message, help)]);
    }
    let mut named = with("files", json!({"run.sh": "a/run.sh"}));
    named["argv"] = json!(["run.sh"]);
    assert_told(
        &named,
        &[(
            "/argv/0",
            "`run.sh` would be looked for on the search path",
            "write `./run.sh`: that is the file that `files` declares",
        )],
    );
    for argv in [
        json!(["./run.sh"]),
        json!(["/usr/bin/env", "x"]),
        json!(["python3"]),
    ] {
        named["argv"] = argv;
        resolved(&named);
    }
    assert_told(
        &with("argv", json!(["true", "a\0b"])),
        &[("/argv/1", "no program can be given the character U+0000", "")],
    );
}

#[test]
fn paths_stay_in_the_folder_and_are_each_one_files() {
    const KEY: &str =
        "the key is the name that the file gets there; the value is where it is, seen from the manifest";
    const OUTPUT: &str = "the program writes it there, and Provenir takes it from there";
    let mut parameters = plain();
    parameters["files"] = json!({"/a": "x", "b/../../c": "x", "inputs/d": "x", "e": "x", "f/g": "x"});
    parameters["outputs"] = json!({
        "a": {"file": "/abs.txt"}, "b": {"file": "../up.txt"}, "c": {"file": "./e/h.txt"}, "d": {"columns": {"x": "f64"}},
        "e": {"file": "d.parquet", "columns": {"x": "f64"}}, "f": {"file": "folder/"},
    });
    assert_told(
        &parameters,
        &[
            (
                "/files/~1a",
                "`/a` is absolute: paths are those in the folder that the program runs in",
                KEY,
            ),
            (
                "/files/b~1..~1..~1c",
                "`b/../../c` leaves the folder that the program runs in: it holds `..`",
                KEY,
            ),
            (
                "/files/inputs~1d",
                "`inputs` holds the inputs: nothing else goes there",
                "",
            ),
            (
                "/outputs/a/file",
                "`/abs.txt` is absolute: paths are those in the folder that the program runs in",
                OUTPUT,
            ),
            (
                "/outputs/b/file",
                "`../up.txt` leaves the folder that the program runs in: it holds `..`",
                OUTPUT,
            ),
            (
                "/outputs/c/file",
                "`e` would be a file, and the folder of `e/h.txt`",
                "",
            ),
            ("/outputs/e/file", "`d.parquet` is the path of two files", ""),
            ("/outputs/f/file", "`folder/` names no file", OUTPUT),
        ],
    );
}

#[test]
fn an_output_says_what_it_is() {
    let outputs = json!({
        "1st": {"file": "x.txt"}, "a": {}, "b": {"file": "b.parquet"}, "c": {"file": "c"}, "d": {"file": "d.csv", "columns": {"x": "f64"}},
        "e": {"columns": {}}, "f": {"columns": {"x": "float64", "y": "datetime", "z": "f64?"}}, "g": {"file": "g.txt", "open": true},
        "h": {"columns": {}, "open": true},
    });
    let found = problems(&with("outputs", outputs));
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(place, message, _)| (place.as_str(), message.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("/outputs/1st", "`1st` cannot name an output"),
            ("/outputs/a", "neither `columns` nor `file` says what it is"),
            ("/outputs/b/file", "the columns of a table must be declared"),
            ("/outputs/c/file", "`c` has no extension to be kept with"),
            ("/outputs/d/file", "`d.csv` has columns, and is no Parquet file"),
            ("/outputs/e/columns", "a table has a column"),
            ("/outputs/f/columns/x", "there is no column type `float64`"),
            ("/outputs/f/columns/y", "there is no column type `datetime`"),
            (
                "/outputs/g/open",
                "only a table, which has `columns`, can be open"
            ),
        ]
    );
    assert_eq!(
        problems(&with("outputs", json!({})))[0].1,
        "a stage gives something: it needs an output"
    );
}

#[test]
fn placeholders_name_what_is_there() {
    let mut parameters = plain();
    parameters["argv"] = json!([
        "true",
        "{output.uot}",
        "{value.x}",
        "{inptu.a}",
        "{output}",
        "{{output.z}}",
        "{x.y}"
    ]);
    parameters["environment"] = json!({"A": "{value.rate}", "2": "x"});
    parameters["values"] = json!({"rat": 1});
    parameters["inherit"] = json!(["$HOME", "A", "B=1", "LANG"]);
    assert_told(
        &parameters,
        &[
            (
                "/environment/2",
                "`2` cannot name a variable",
                "a name is letters, digits and `_`, no digit first",
            ),
            ("/inherit/0", "`$HOME` cannot name a variable", "write \"HOME\""),
            ("/inherit/1", "`A` is given by `environment`, too", ""),
            (
                "/inherit/2",
                "`B=1` cannot name a variable",
                "`inherit` takes names; a value goes into `environment = { B = \"…\" }`",
            ),
            ("/argv/1", "the stage has no output `uot`", "did you mean `out`?"),
            (
                "/argv/2",
                "the stage has no value `x`",
                "known here: `rat`; or declare it: `params.values.x = …`",
            ),
            (
                "/argv/3",
                "`{inptu.a}` is no placeholder",
                "did you mean `{input.a}`? For the characters themselves write `{{inptu.a}}`",
            ),
            (
                "/argv/4",
                "`{output}` is no placeholder",
                "write which: `{output.NAME}`. For the characters themselves write `{{output}}`",
            ),
            (
                "/environment/A",
                "the stage has no value `rate`",
                "did you mean `rat`?",
            ),
        ],
    );
}

#[test]
fn inputs_are_those_that_are_wired() {
    let mut parameters = plain();
    parameters["argv"] = json!(["true", "{input.demos}", "{input.demo}"]);
    parameters["inputs"] = json!({"other": {"many": true}});
    let full = resolved(&parameters).full;
    let table = TableSchema::new(vec![Column::new("a", ColumnType::Float64)]);
    assert_eq!(
        told(kind().check(&full, &[("demos", table.clone()), ("demos", table)])),
        [
            (
                "/inputs/other",
                "the stage has no input `other`",
                "its inputs are `demos`"
            ),
            (
                "/argv/2",
                "the stage has no input `demo`",
                "did you mean `demos`?"
            ),
        ]
        .map(|(place, message, help)| (place.to_owned(), message.to_owned(), help.to_owned()))
    );
    assert_eq!(
        told(kind().check(&full, &[]))[2].2,
        "nothing is wired: `inputs = { demo = \"STAGE\" }`"
    );
}

#[test]
fn values_are_texts_numbers_and_truth_values() {
    let found = problems(&with("values", json!({"x": [1]})));
    assert_eq!(found[0].0, "/values/x");
    assert!(found[0].1.starts_with("expected a text or a number"), "{found:?}");
    assert_eq!(
        resolved(&with("values", json!({"x": 1.0, "y": 0.5, "z": false}))).canonical["values"],
        json!({"x": 1, "y": 0.5, "z": false})
    );
}

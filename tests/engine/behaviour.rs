//! The behaviour table: what a change makes run again, in a chain of three stages. One row is one test; a row says exactly
//! which cells ran, and that a second run has nothing to do.

use rustix::process::Signal;

use crate::context::{Context, files, finish, overwrite};

const NOTHING: [&str; 0] = [];
/// The command a version later: see `provenir_testing`'s `versions`.
const NEXT: &str = env!("CARGO_BIN_EXE_provenir-noop-next");

/// `a` reads a file, `b` adds a number, `c` is published, and so is `b`, which is in the middle.
const ABC: &str = r#"
format = 1

[pipeline]
name = "abc"

[stages.a]
kind = "noop"
params = { file = "input.txt" }

[stages.b]
kind = "noop"
inputs = { one = "a" }
params = { value = 0.001 }
publish = { sum = "out/b.parquet" }

[stages.c]
kind = "noop"
inputs = { one = "b" }
params = { value = 1 }
publish = { sum = "out/c.parquet" }
"#;

/// The chain over an axis, gathered at its end.
const SWEEP: &str = r#"
format = 1

[pipeline]
name = "sweep"

[axes]
x = [1, 2]

[stages.a]
kind = "noop"
params = { value = "${x}" }

[stages.b]
kind = "noop"
inputs = { one = "a" }
params = { value = 0.5 }

[stages.c]
kind = "noop"
inputs = { many = "b" }
"#;

/// A chain whose middle is of a kind that has two versions.
fn versioned(kind: &str, parameters: &str) -> String {
    format!(
        r#"
format = 1
pipeline.name = "versioned"
stages.a = {{ kind = "noop", params = {{ value = 1 }} }}
stages.b = {{ kind = "{kind}", inputs = {{ one = "a" }}, params = {{ {parameters} }} }}
stages.c = {{ kind = "noop", inputs = {{ one = "b" }} }}
"#
    )
}

/// A folder in which everything has run once.
fn done(manifest: &str) -> Context {
    let context = Context::new(manifest);
    context.write("input.txt", "five.");
    context.executed(&[]);
    context
}

/// Runs, and runs once more: exactly these cells, then none.
#[track_caller]
fn runs(context: &Context, arguments: &[&str], expected: &[&str]) {
    assert_eq!(context.executed(arguments), expected);
    assert_eq!(context.executed(arguments), NOTHING, "the second time");
    context.check_store();
}

/// Writes the manifest anew and runs it.
#[track_caller]
fn changed(context: &Context, manifest: &str, expected: &[&str]) {
    context.write("pipeline.toml", manifest);
    runs(context, &[], expected);
}

/// `manifest` with one thing replaced, which must be in it.
#[track_caller]
fn edited(manifest: &str, old: &str, new: &str) -> String {
    assert!(manifest.contains(old), "{old}");
    manifest.replace(old, new)
}

#[test]
fn no_op() {
    let context = Context::new(ABC);
    context.write("input.txt", "five.");
    runs(&context, &[], &["a", "b", "c"]);
}

#[test]
fn touched_input() {
    let context = done(ABC);
    context.write("input.txt", "five.");
    runs(&context, &[], &NOTHING);
    // As a check-out does: another file, another time, the same bytes.
    fs_err::rename(context.path("input.txt"), context.path("other.txt")).unwrap();
    context.write("input.txt", "five.");
    runs(&context, &[], &NOTHING);
}

#[test]
fn changed_comment() {
    let context = done(ABC);
    let commented = edited(ABC, "[stages.b]", "# The middle.\n[stages.b] # here");
    changed(&context, &commented, &NOTHING);
    let described = edited(ABC, "name = \"abc\"", "name = \"abc\"\ndescription = \"A chain\"");
    changed(&context, &described, &NOTHING);
    let laid_out = edited(ABC, "inputs = { one = \"a\" }\n", "inputs.one = \"a\"\n\n\n");
    changed(&context, &laid_out, &NOTHING);
}

#[test]
fn a_number_written_in_another_way() {
    let context = done(ABC);
    for same in ["1e-3", "1.0e-3", "0.001_000", "10E-4"] {
        changed(&context, &edited(ABC, "0.001", same), &NOTHING);
    }
}

#[test]
fn parameter_changed_and_changed_back() {
    let context = done(ABC);
    let half = edited(ABC, "0.001", "0.5");
    changed(&context, &half, &["b", "c"]);
    changed(&context, ABC, &NOTHING);
    changed(&context, &half, &NOTHING);
}

#[test]
fn published_output_deleted() {
    let context = done(ABC);
    let before = context.read("out/c.parquet");
    fs_err::remove_file(context.path("out/c.parquet")).unwrap();
    let outcome = context.events(&[]).assert_code(0);
    assert_eq!(outcome.cells("cell-finished"), NOTHING);
    assert_eq!(outcome.event("published")["copied"], "restored-missing");
    assert_eq!(context.read("out/c.parquet"), before);
    runs(&context, &[], &NOTHING);
}

#[test]
fn intermediate_output_deleted() {
    let context = done(ABC);
    let before = context.read("out/b.parquet");
    fs_err::remove_file(context.path("out/b.parquet")).unwrap();
    runs(&context, &[], &NOTHING);
    assert_eq!(context.read("out/b.parquet"), before);
    // The store's own: a hit means that the bytes are there. It alone is computed again.
    let object = context.object("b");
    fs_err::remove_file(&object).unwrap();
    runs(&context, &[], &["b"]);
    assert_eq!(fs_err::read(object).unwrap(), before);
}

#[test]
fn published_output_tampered_with() {
    let context = done(ABC);
    let before = context.read("out/c.parquet");
    context.write("out/c.parquet", "tampered with");
    let outcome = context.events(&[]).assert_code(0);
    assert_eq!(outcome.cells("cell-finished"), NOTHING);
    let told = outcome.event("published");
    assert_eq!(told["copied"], "restored-altered");
    assert_eq!(told["kept"], context.path("out/c.parquet.orig").as_str());
    assert_eq!(context.read("out/c.parquet"), before);
    assert_eq!(context.read("out/c.parquet.orig"), b"tampered with");
    runs(&context, &[], &NOTHING);
}

#[test]
fn object_tampered_with() {
    let context = done(ABC);
    let object = context.object("b");
    let whole = fs_err::read(&object).unwrap();
    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    overwrite(&object, &bytes);
    let outcome = context.events(&[]).assert_code(0);
    assert_eq!(outcome.cells("cell-damaged"), ["b"]);
    assert_eq!(outcome.cells("cell-finished"), ["b"]);
    assert_eq!(fs_err::read(&object).unwrap(), whole);
    runs(&context, &[], &NOTHING);
    // Once more, as a person sees it.
    overwrite(&object, &bytes);
    let told = context.run(&["run"]).assert_code(0).stderr;
    let digest = object.file_name().unwrap()[..12].to_owned();
    let expected = format!("warning: the artifact {digest} of b is not what was stored");
    assert!(told.contains(&expected), "{told}");
    runs(&context, &[], &NOTHING);
}

#[test]
fn stage_renamed() {
    let context = done(ABC);
    let renamed = edited(
        &edited(ABC, "[stages.b]", "[stages.middle]"),
        "\"b\"",
        "\"middle\"",
    );
    changed(&context, &renamed, &NOTHING);
}

#[test]
fn publish_path_changed() {
    let context = done(ABC);
    let before = context.read("out/c.parquet");
    changed(
        &context,
        &edited(ABC, "out/c.parquet", "figures/final.parquet"),
        &NOTHING,
    );
    assert_eq!(context.read("figures/final.parquet"), before);
}

#[test]
fn an_axis_value_added_at_the_front() {
    let context = done(SWEEP);
    let wider = edited(SWEEP, "x = [1, 2]", "x = [0, 1, 2]");
    changed(&context, &wider, &["a[x=0]", "b[x=0]", "c"]);
    changed(&context, SWEEP, &NOTHING);
}

#[test]
fn an_axis_made_of_what_was_fixed() {
    let context = done(ABC);
    let swept = edited(
        &edited(ABC, "value = 0.001", "value = \"${x}\""),
        "[stages.a]",
        "[axes]\nx = [0.5, 0.001]\n\n[stages.a]",
    );
    let swept = edited(
        &edited(&swept, "out/b.parquet", "out/b-${x}.parquet"),
        "out/c.parquet",
        "out/c-${x}.parquet",
    );
    changed(&context, &swept, &["b[x=0.5]", "c[x=0.5]"]);
    changed(&context, ABC, &NOTHING);
}

#[test]
fn stages_reordered() {
    for manifest in [ABC, SWEEP] {
        let context = done(manifest);
        let (head, stages) = manifest.split_once("[stages.a]").unwrap();
        let stages = format!("[stages.a]{stages}\n");
        let mut parts: Vec<String> = stages
            .split("[stages.")
            .skip(1)
            .map(|part| format!("[stages.{part}"))
            .collect();
        parts.reverse();
        assert_eq!(parts.len(), 3);
        changed(&context, &format!("{head}\n{}", parts.concat()), &NOTHING);
    }
}

#[test]
fn a_manifest_merged_into_another() {
    let context = done(ABC);
    let more = "[stages.d]\nkind = \"noop\"\ninputs = { one = \"c\" }\nparams = { value = 7 }\n";
    // By hand.
    let merged = format!("{}\n{more}", edited(ABC, "\"abc\"", "\"merged\""));
    context.write("merged.toml", &merged);
    runs(&context, &["merged.toml"], &["d"]);
    // By `extends`.
    let extending =
        format!("format = 1\nextends = \"pipeline.toml\"\n[pipeline]\nname = \"extending\"\n{more}");
    context.write("extending.toml", &extending);
    runs(&context, &["extending.toml"], &NOTHING);
    runs(&context, &[], &NOTHING);
}

#[test]
fn killed_in_the_middle() {
    let slow = edited(
        ABC,
        "kind = \"noop\"\ninputs = { one = \"a\" }\nparams = { value = 0.001 }",
        "kind = \"sleep\"\ninputs = { one = \"a\" }\nparams = { value = 0.001, seconds = 0.5 }",
    );
    let undisturbed = done(&slow);
    let context = Context::new(&slow);
    context.write("input.txt", "five.");
    let mut running = context.start(&[]);
    running.wait_for("cell-progress", "b");
    running.signal(Signal::KILL);
    running.finish();
    assert_eq!(
        files(&context.path("out")),
        [""; 0],
        "nothing is there under its final name in part"
    );
    assert_eq!(context.results().len(), 1);
    runs(&context, &[], &["b", "c"]);
    assert_eq!(context.results(), undisturbed.results());
    assert_eq!(context.read("out/c.parquet"), undisturbed.read("out/c.parquet"));
}

#[test]
fn upstream_runs_again_with_equal_content() {
    let context = done(ABC);
    let forced = context.executed(&["--force", "a", "--force", "b"]);
    assert_eq!(forced, ["a", "b"]);
    runs(&context, &[], &NOTHING);
    // Of other bytes as many: another action, the same sum.
    context.write("input.txt", "FIVE.");
    runs(&context, &[], &["a"]);
    // 5 + 0.5 = 4 + 1.5, to the bit.
    changed(&context, &edited(ABC, "0.001", "0.5"), &["b", "c"]);
    context.write("input.txt", "four");
    changed(&context, &edited(ABC, "0.001", "1.5"), &["a", "b"]);
}

/// What the next version executes.
#[track_caller]
fn upgraded(context: &Context) -> Vec<String> {
    let outcome = finish(&mut context.program(NEXT, &["run", "--json"])).assert_code(0);
    outcome.cells("cell-finished")
}

#[test]
fn a_kinds_revision_raised() {
    // The new results differ for negative numbers alone.
    let context = done(&versioned("revised", "value = -1"));
    assert_eq!(upgraded(&context), ["b", "c"]);
    assert_eq!(upgraded(&context), NOTHING);
    assert_eq!(
        context.executed(&[]),
        NOTHING,
        "the old version finds its own results"
    );
    let context = done(&versioned("revised", "value = 1"));
    assert_eq!(
        upgraded(&context),
        ["b"],
        "what comes out the same changes nothing"
    );
    assert_eq!(upgraded(&context), NOTHING);
    context.check_store();
}

#[test]
fn a_parameter_with_a_default_added_to_a_kind() {
    let context = done(&versioned("extended", "value = 3"));
    assert_eq!(upgraded(&context), NOTHING);
    context.write("pipeline.toml", &versioned("extended", "value = 3, extra = 0"));
    assert_eq!(upgraded(&context), NOTHING);
    context.write("pipeline.toml", &versioned("extended", "value = 3, extra = 1"));
    assert_eq!(upgraded(&context), ["b", "c"]);
    assert_eq!(upgraded(&context), NOTHING);
    context.check_store();
}

#[test]
fn a_default_changed() {
    // Who relied on it gets other results; who had said the same number gets the same, which is found out by computing it.
    let context = done(&versioned("redefined", ""));
    assert_eq!(upgraded(&context), ["b", "c"]);
    assert_eq!(upgraded(&context), NOTHING);
    context.write("pipeline.toml", &versioned("redefined", "value = 2"));
    assert_eq!(upgraded(&context), NOTHING);
    let context = done(&versioned("redefined", "value = 1"));
    assert_eq!(upgraded(&context), ["b"]);
    assert_eq!(upgraded(&context), NOTHING);
    context.check_store();
}

#[test]
fn a_cell_excluded_and_included_again() {
    let context = done(SWEEP);
    let without = edited(SWEEP, "format = 1", "format = 1\nexclude = [{ x = 1 }]");
    changed(&context, &without, &["c"]);
    changed(&context, SWEEP, &NOTHING);
}

#[test]
fn the_same_cells_in_two_manifests() {
    let context = done(ABC);
    context.write(
        "other/study.toml",
        r#"
        format = 1
        pipeline.name = "other"
        stages.end = { kind = "noop", inputs = { one = "middle" }, params = { value = 2 } }
        stages.middle = { kind = "noop", inputs = { one = "read" }, params = { value = 1e-3 } }
        stages.read = { kind = "noop", params = { file = "../input.txt" } }
        "#,
    );
    runs(&context, &["other/study.toml"], &["end"]);
    runs(&context, &[], &NOTHING);
}

#[test]
fn stages_without_inputs() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "sources"
        axes.x = [1, 2, 3]
        stages.a = { kind = "noop" }
        stages.b = { kind = "noop", params = { value = "${x}" } }
        stages.c = { kind = "sleep", params = { seconds = 0 } }
        "#,
    );
    runs(&context, &[], &["a", "b[x=1]", "b[x=2]", "b[x=3]", "c"]);
}

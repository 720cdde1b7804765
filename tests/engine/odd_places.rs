//! What lies where the store's own files belong, programs that say too much, and records that are damaged in part.

use crate::context::{CHAIN, Context, files};

const NOTHING: [&str; 0] = [];

#[test]
fn a_folder_in_the_place_of_an_object_a_result_or_a_claim_is_set_aside() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let object = context.object("first[a=1]");
    fs_err::remove_file(&object).unwrap();
    fs_err::create_dir_all(object.join("inside")).unwrap();
    let result = files(&context.path("cache/results-v1")).remove(0);
    fs_err::remove_file(&result).unwrap();
    fs_err::create_dir_all(result.join("inside")).unwrap();
    context.run(&["run"]).assert_code(0);
    assert_eq!(context.executed(&[]), NOTHING);
    assert!(object.is_file() && result.is_file());
    for place in [object, result] {
        assert!(
            camino::Utf8PathBuf::from(format!("{place}.displaced-1"))
                .join("inside")
                .is_dir()
        );
    }
    let told = context.run(&["verify"]).assert_code(1).stdout;
    assert!(
        told.contains("files that are none of the store's can be moved away"),
        "{told}"
    );
}

#[test]
fn a_link_that_leads_in_a_circle_is_no_result() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let result = files(&context.path("cache/results-v1")).remove(0);
    fs_err::remove_file(&result).unwrap();
    fs_err::os::unix::fs::symlink(&result, &result).unwrap();
    let told = context.run(&["verify"]).assert_code(1).stdout;
    assert!(told.contains("it is not a regular file"), "{told}");
    context.run(&["run"]).assert_code(0);
    context.run(&["verify"]).assert_code(0);
    context.check_store();
}

/// Its memory is bounded, too: what is written waits in the pipe.
#[test]
fn a_program_that_floods_its_log_is_stopped_in_time_and_holds_up_nobody() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "flood"
        [stages.flood]
        kind = "command"
        timeout = "3s"
        params.argv = ["yes", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"]
        params.outputs.o.file = "o.bin"
        [stages.first]
        kind = "noop"
        [stages.second]
        kind = "noop"
        inputs = { one = "first" }
        "#,
    );
    let outcome = context.events(&["--jobs", "2"]).assert_code(1);
    assert_eq!(outcome.cells("cell-finished"), ["first", "second"]);
    let failure = &outcome.event("cell-failed")["failure"]["message"];
    assert!(failure.as_str().unwrap().contains("3 s"), "{failure}");
}

/// What a run that ended had begun is in its records; `gc` reads no list of its events.
#[test]
fn a_damaged_list_of_events_is_told_and_stops_no_collection() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let path = context.runs()[0].join("events.jsonl");
    let events = fs_err::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = events.lines().collect();
    lines[1] = "{garbage}";
    fs_err::write(&path, lines.join("\n") + "\n").unwrap();
    let told = context.run(&["verify"]).assert_code(1).stdout;
    assert!(
        told.contains("what the run computed is known all the same\n") && told.contains("events: line 2: "),
        "{told}"
    );
    context.run(&["gc", "--grace", "0"]).assert_code(0);
}

/// A bit that flips may leave all else well-formed, and name another artifact.
#[test]
fn a_result_that_names_another_artifact_is_found_and_computed_again() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let published = context.read("out/total.parquet");
    let name = |cell: &str| context.object(cell).file_name().unwrap().to_owned();
    let (total, other) = (name("total"), name("first[a=1]"));
    for path in files(&context.path("cache/results-v1")) {
        let text = fs_err::read_to_string(&path).unwrap();
        fs_err::write(&path, text.replace(&total, &other)).unwrap();
    }
    let told = context.run(&["verify"]).assert_code(1).stdout;
    assert!(
        told.contains("the result of total: it was altered since it was written: its checksum is another"),
        "{told}"
    );
    assert_eq!(context.executed(&[]), ["total"]);
    assert_eq!(context.read("out/total.parquet"), published);
    context.check_store();
}

/// Before anything is hashed or executed.
#[test]
fn a_source_file_that_is_too_large_is_a_mistake_of_the_manifest() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "huge"
        [stages.takes]
        kind = "command"
        params.argv = ["cp", "a", "{output.o}"]
        params.files = { "a" = "huge" }
        params.outputs.o.file = "o.bin"
        "#,
    );
    let huge = fs_err::File::create(context.path("huge")).unwrap();
    huge.set_len((4 << 30) + 1).unwrap();
    let told = context.run(&["run"]).assert_code(2).stderr;
    assert!(
        told.contains("`huge` holds 4,294,967,297 bytes; at most 4,294,967,296 are read"),
        "{told}"
    );
}

/// The format of a file is a digit, too: a newer version did not write it because a bit flipped.
#[test]
fn a_flipped_format_is_damage_and_not_the_future() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let result = files(&context.path("cache/results-v1")).remove(0);
    let text = fs_err::read_to_string(&result).unwrap();
    fs_err::write(&result, text.replacen("\"format\": 1", "\"format\": 3", 1)).unwrap();
    context.run(&["verify"]).assert_code(1);
    assert_eq!(context.executed(&[]).len(), 1);
    context.run(&["verify"]).assert_code(0);
}

#[test]
fn folders_in_the_place_of_notes_are_set_aside() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.run(&["run"]).assert_code(0);
    for note in [
        files(&context.path("cache/published-v1")).remove(0),
        context.path("cache/runs-v1/noop.jsonl"),
    ] {
        fs_err::remove_file(&note).unwrap();
        fs_err::create_dir(&note).unwrap();
        fs_err::write(context.path("out/total.parquet"), "altered").unwrap();
        context.run(&["run"]).assert_code(0);
        assert!(note.is_file(), "{note}");
        context.run(&["status"]).assert_code(0);
    }
}

//! What is said of every mistake: `mistakes/NAME.toml` and a snapshot beside it.
//!
//! Lines that begin with `#: ` at the head of a manifest are options of the command line.

use camino::Utf8PathBuf;
use provenir::manifest::{Overrides, SIZE_LIMIT, load};

use super::{Project, kinds};

/// Relative to the package, where tests run.
const FOLDER: &str = "tests/manifest/mistakes";

fn options(text: &str) -> Overrides {
    let mut overrides = Overrides::default();
    for line in text.lines().map_while(|line| line.strip_prefix("#: ")) {
        let (option, value) = line.split_once(' ').unwrap_or((line, ""));
        let value = value.to_owned();
        match option {
            "--profile" => overrides.profile = Some(value),
            "--axis" => overrides.axes.push(value),
            "--set" => overrides.set.push(value),
            "--only" => overrides.only.push(value),
            other => panic!("there is no option {other}"),
        }
    }
    overrides
}

#[test]
fn every_mistake_is_named_with_its_place_and_the_nearest_right_thing() {
    let mut paths: Vec<Utf8PathBuf> = fs_err::read_dir(FOLDER)
        .unwrap()
        .map(|entry| Utf8PathBuf::from_path_buf(entry.unwrap().path()).unwrap())
        .filter(|path| path.extension() == Some("toml"))
        .collect();
    paths.sort();
    assert!(paths.len() > 40, "the folder of mistakes is there");
    let here = std::path::absolute(".").unwrap();
    let here = here.to_str().unwrap().trim_end_matches(['/', '.']);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("mistakes");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for path in paths {
            let text = fs_err::read_to_string(&path).unwrap();
            let overrides = options(&text);
            let found = match load(&path, &kinds::registry(), &overrides) {
                Ok(plan) => plan.warnings,
                Err(found) => found,
            };
            let shown = format!("{found}\n\n{}", found.render(100, false)).replace(here, "HERE");
            let shown: Vec<&str> = shown.lines().map(str::trim_end).collect();
            insta::assert_snapshot!(path.file_stem().unwrap(), shown.join("\n"));
        }
    });
}

#[test]
fn a_byte_order_mark_moves_no_column() {
    let project = Project::new("\u{feff}format = 2\n");
    let found = project.load().err().unwrap();
    let places: Vec<_> = found.entries().map(|told| told.place).collect();
    assert_eq!(places, [Some((1, 10))], "{found}");
}

/// What is said of a file that is no text for a snapshot.
fn said(bytes: &[u8]) -> String {
    let project = Project::new("");
    project.write("m.toml", bytes);
    project.problems(&Overrides::default()).join("\n")
}

#[test]
fn what_is_no_manifest_is_refused_before_it_is_parsed() {
    assert_eq!(
        said(b"format = 1\n\x00\xff\xfe"),
        "m.toml: `m.toml` is not a manifest: it is not UTF-8 text (byte 0xff at line 2, column 2) (it holds bytes that no text has: is it the right file?)"
    );
    assert_eq!(
        said(b"format = 1\nname = \"caf\xe9\"\n"),
        "m.toml: `m.toml` is not a manifest: it is not UTF-8 text (byte 0xe9 at line 2, column 12) (save it as UTF-8, which every editor can)"
    );
    let wide: Vec<u8> = "\u{feff}format = 1"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(
        said(&wide),
        "m.toml: `m.toml` is not a manifest: it is not UTF-8 text (byte 0xff at line 1, column 1) (it is UTF-16: save it as UTF-8)"
    );
    let long = vec![b'#'; usize::try_from(SIZE_LIMIT).unwrap() + 1];
    assert_eq!(
        said(&long),
        "m.toml: `m.toml` has 4,194,305 bytes or more; a manifest has at most 4,194,304 (4 MiB)"
    );
    let project = Project::new("");
    let missing = load(
        &project.path("absent.toml"),
        &kinds::registry(),
        &Overrides::default(),
    )
    .err()
    .unwrap();
    assert!(missing.to_string().contains("there is no file"), "{missing}");
    let folder = load(&project.path(""), &kinds::registry(), &Overrides::default())
        .err()
        .unwrap();
    assert!(folder.to_string().contains("is not a file"), "{folder}");
}

#[test]
fn deep_nesting_is_refused_in_bounded_time() {
    for text in [
        format!("format = 1\nx = {}", "[".repeat(1_000_000)),
        format!("format = 1\nx = {}", "{a = ".repeat(500_000)),
        format!("format = 1\n[{}]\n", vec!["a"; 1_000_000].join(".")),
    ] {
        assert!(!said(text.as_bytes()).is_empty());
    }
}

#[test]
fn many_mistakes_are_said_once_each_and_shown_within_bounds() {
    let stages = (0..20_000)
        .map(|index| format!("[stages.s{index}]\nkind = \"mak\"\ninputs = {{ samples = \"x{index}\" }}\n"));
    let text = "format = 1\n[pipeline]\nname = \"p\"\n".to_owned() + &stages.collect::<String>();
    let project = Project::new(&text);
    let found = project.load().err().unwrap();
    // The kind is one mistake.
    assert_eq!(found.len(), 20_001);
    let shown = found.render(80, false);
    assert!(shown.len() < 100_000 && shown.contains("and 19951 more"));
}

#[test]
fn a_base_and_a_pipe_are_read_with_care() {
    let project = Project::new("format = 1\nextends = \"b.toml\"\n");
    project.write("b.toml", "format = 1\nextends = \"c.toml\"\n");
    project.write("c.toml", "format = 1\nextends = \"m.toml\"\n");
    assert_eq!(
        project.problems(&Overrides::default()),
        ["c.toml:2:11: a manifest extends itself: m.toml → b.toml → c.toml → m.toml"]
    );
    let chain = Project::new("format = 1\nextends = \"0.toml\"\n");
    for index in 0..40 {
        chain.write(
            &format!("{index}.toml"),
            format!("format = 1\nextends = \"{}.toml\"\n", index + 1),
        );
    }
    let said = chain.problems(&Overrides::default()).join("\n");
    assert!(
        said.contains("more than 16 manifests extend one another"),
        "{said}"
    );
}

#[test]
fn more_cells_than_the_limit_are_refused_with_their_count() {
    // As many values as fit into a manifest, on one axis.
    let values: Vec<String> = (0..600_000).map(|value| value.to_string()).collect();
    let text = format!(
        "format = 1\npipeline.name = \"p\"\naxes = {{ a = [{}], b = [1, 2] }}\n\
         stages.s = {{ kind = \"make\", params = {{ count = 1 }}, over = [\"a\", \"b\"] }}\n",
        values.join(",")
    );
    let told = said(text.as_bytes());
    assert!(
        told.contains(
            "the pipeline has 1,200,000 cells; the limit is 1,000,000 (`s` alone has 1,200,000: a (600,000) × b (2))"
        ),
        "{told}"
    );
    // More cells than any number counts.
    let axes: Vec<String> = (0..64)
        .map(|axis| format!("a{axis} = [{}]", values[..10].join(",")))
        .collect();
    let over: Vec<String> = (0..64).map(|axis| format!("\"a{axis}\"")).collect();
    let text = format!(
        "format = 1\npipeline.name = \"p\"\naxes = {{ {} }}\n\
         stages.s = {{ kind = \"make\", params = {{ count = 1 }}, over = [{}] }}\n",
        axes.join(", "),
        over.join(", ")
    );
    let told = said(text.as_bytes());
    assert!(told.contains("cells; the limit is 1,000,000"), "{told}");
    // Fewer cells, each with parameters of its own.
    let text = format!(
        "format = 1\npipeline.name = \"p\"\naxes = {{ a = [{}], b = [1, 2] }}\n\
         stages.s = {{ kind = \"make\", params = {{ count = \"${{a}}\", seed = \"${{b}}\" }} }}\n",
        values[..125_001].join(",")
    );
    let told = said(text.as_bytes());
    assert!(
        told.contains(
            "the pipeline has 250,002 different sets of parameters; the limit is 250,000 (`s` alone has 250,002: a (125,001) × b (2))"
        ),
        "{told}"
    );
}

/// Letters of another alphabet that look like those of a name: the message says which they are.
#[test]
fn names_that_only_look_right_are_told_apart_wherever_they_refer_to_something() {
    let manifest = |kind: &str, stage: &str, port: &str, axis: &str, parameter: &str| {
        format!(
            "format = 1\npipeline.name = \"p\"\naxes.epsilon = [0.5]\n\
             stages.data = {{ kind = \"{kind}\", params = {{ {parameter} = 1 }} }}\n\
             stages.fine = {{ kind = \"refine\", inputs = {{ {port} = \"{stage}\" }}, params = {{ fraction = \"${{{axis}}}\" }} }}\n"
        )
    };
    assert_eq!(
        said(manifest("make", "data", "samples", "epsilon", "count").as_bytes()),
        ""
    );
    for (text, letter) in [
        (
            manifest("m\u{430}ke", "data", "samples", "epsilon", "count"),
            "U+0430",
        ),
        (
            manifest("make", "d\u{430}ta", "samples", "epsilon", "count"),
            "U+0430",
        ),
        (
            manifest("make", "data", "\"s\u{430}mples\"", "epsilon", "count"),
            "U+0430",
        ),
        (
            manifest("make", "data", "samples", "\u{435}psilon", "count"),
            "U+0435",
        ),
        (
            manifest("make", "data", "samples", "epsilon", "\"c\u{43e}unt\""),
            "U+043E",
        ),
        // Full width; and what cannot be seen at all is shown as something.
        (
            manifest("\u{ff4d}ake", "data", "samples", "epsilon", "count"),
            "U+FF4D",
        ),
        (
            manifest("ma\u{200b}ke", "data", "samples", "epsilon", "count"),
            "`ma\u{fffd}ke`",
        ),
    ] {
        let told = said(text.as_bytes());
        assert!(told.contains(letter), "{letter}: {told}\n{text}");
    }
}

#[test]
fn an_axis_value_has_no_letters_that_cannot_be_seen() {
    for (letter, told) in [
        ("\u{202e}", "U+202E, which cannot be seen"),
        ("\u{200b}", "U+200B, which cannot be seen"),
        ("\u{ad}", "U+00AD, which cannot be seen"),
    ] {
        let manifest = format!(
            "format = 1\npipeline.name = 'p'\naxes.a = ['x{letter}y', 'xy']\nstages.s = {{ kind = 'noop', params = {{ file = '${{a}}' }} }}\n"
        );
        let found = said(manifest.as_bytes());
        assert!(
            found.contains(&format!("an axis value must not hold {told}")),
            "{found}"
        );
    }
}

use provenir_api::{Digest, FigureIdentity};
use serde_json::Value;

use crate::context::{CHAIN, Context, finish};

fn lineage(context: &Context, arguments: &[&str]) -> String {
    let outcome = context.run(&[&["lineage"], arguments].concat()).assert_code(0);
    let mut text = context.filtered(&outcome.stdout);
    for run in context.runs() {
        text = text.replace(run.file_name().unwrap(), "[RUN]");
    }
    let lines = text.lines().map(|line| match line.split_once(" on 20") {
        Some((head, _)) => format!("{head} on [HOST]\n"),
        None => format!("{line}\n"),
    });
    lines.collect()
}

fn json(context: &Context, arguments: &[&str]) -> Value {
    let outcome = context.run(arguments).assert_code(0);
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// A figure as the kinds that draw write them, of the cell `total`.
fn figure(context: &Context) -> Vec<u8> {
    let key = json(context, &["lineage", "total", "--format", "json"])["focus"]
        .as_str()
        .unwrap()
        .to_owned();
    let identity = FigureIdentity {
        action_key: key,
        data: Digest::of(b"data"),
    };
    FigureIdentity::seal(format!("<svg>\n{}\n<path d=\"M0\"/></svg>\n", identity.svg_metadata()).into_bytes())
}

#[test]
fn a_cell_is_traced_up_to_sources_and_down_to_published_files() {
    let context = Context::new(&CHAIN.replace(
        "params = { value = 0.5 }",
        "params = { value = 0.5, file = \"data.txt\" }",
    ));
    context.write("data.txt", "four");
    context.executed(&[]);
    insta::assert_snapshot!(lineage(&context, &["second[a=2]"]), @r"
    second[a=2]: noop, action [DIGEST], value=0.5
    output sum, content [DIGEST], object [DIGEST]
    computed by run [RUN] on [HOST]
    manifest `pipeline.toml`

    made from
      ├─ file ← the file `data.txt`, unchanged since, content [DIGEST]
      └─ one ← first[a=2]: noop, action [DIGEST], value=2.0

    used by
      └─ total: noop, action [DIGEST], published `out/total.parquet`
    ");
    let up = lineage(&context, &["total"]);
    for cell in [
        "second[a=1]",
        "second[a=2]",
        "second[a=3]",
        "first[a=1]",
        "first[a=2]",
        "first[a=3]",
    ] {
        assert_eq!(up.matches(&format!("← {cell}: noop")).count(), 1, "{up}");
    }
    assert!(!up.contains("used by"), "{up}");
}

#[test]
fn source_files_are_named_with_what_has_become_of_them() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "sources"
        axes.a = ["one", "two"]
        stages.first = { kind = "noop", params = { file = "../data/${a}.txt" } }
        stages.total = { kind = "noop", inputs = { many = "first" } }
        "#,
    );
    let manifest = String::from_utf8(context.read("pipeline.toml")).unwrap();
    context.write("deep/pipeline.toml", &manifest);
    context.write("data/one.txt", "1");
    context.write("data/two.txt", "22");
    context.executed(&["deep/pipeline.toml", "--cache", "cache"]);
    let sources = || {
        let told = lineage(&context, &["total", "deep/pipeline.toml", "--cache", "cache"]);
        let lines = told.lines().filter(|line| line.contains("file ←"));
        lines
            .map(|line| line.trim_start_matches([' ', '│', '└', '├', '─']).to_owned() + "\n")
            .collect::<String>()
    };
    insta::assert_snapshot!(sources(), @r"
    file ← the file `data/one.txt`, unchanged since, content [DIGEST]
    file ← the file `data/two.txt`, unchanged since, content [DIGEST]
    ");
    let states = || {
        let found = json(
            &context,
            &[
                "lineage",
                "total",
                "deep/pipeline.toml",
                "--cache",
                "cache",
                "--format",
                "json",
            ],
        );
        let nodes = found["nodes"].as_array().unwrap();
        let sources = nodes.iter().map(|node| &node["sources"]["/file"]);
        let mut states: Vec<(String, String)> = sources
            .filter(|source| source.is_object())
            .map(|source| {
                let text = |key: &str| source[key].as_str().unwrap().to_owned();
                (text("path"), text("now"))
            })
            .collect();
        states.sort();
        states
    };
    let paths = [
        context.path("data/one.txt").to_string(),
        context.path("data/two.txt").to_string(),
    ];
    let expected = |states: [&str; 2]| -> Vec<(String, String)> {
        paths.iter().cloned().zip(states.map(str::to_owned)).collect()
    };
    assert_eq!(states(), expected(["unchanged", "unchanged"]));
    // Changed in place; missing while the manifest still names it, so that only its last lineage is known.
    context.write("data/one.txt", "3");
    fs_err::remove_file(context.path("data/two.txt")).unwrap();
    let key = context
        .results()
        .into_iter()
        .find(|(_, text)| text.contains("\"many\""))
        .unwrap()
        .0;
    let told = lineage(&context, &[&key[..12], "--cache", "cache"]);
    assert!(
        told.contains("the file `data/one.txt`, which has changed since; content then")
            && told.contains("the file `data/two.txt`, which is not there any more; content then"),
        "{told}"
    );
    let dot = context
        .run(&["lineage", &key[..12], "--cache", "cache", "--format", "dot"])
        .assert_code(0)
        .stdout;
    assert!(dot.contains("label=\"data/one.txt\\n"), "{dot}");
}

#[test]
fn digests_lead_to_the_same_lineage() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let by_cell = lineage(&context, &["first[a=1]"]);
    let object = context.object("first[a=1]");
    assert_eq!(lineage(&context, &[&object.file_name().unwrap()[..12]]), by_cell);
    let key = json(&context, &["lineage", "first[a=1]", "--format", "json"])["focus"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(lineage(&context, &[&key[..12]]), by_cell);
    // What is gone from the store is still in its records.
    fs_err::remove_dir_all(context.path("out")).unwrap();
    context
        .run(&["gc", "--yes", "--keep-runs", "0", "--grace", "0"])
        .assert_code(0);
    let gone = lineage(&context, &[&key[..12]]);
    assert!(
        gone.contains("no longer in the store") && gone.contains("\nused by\n"),
        "{gone}"
    );
}

#[test]
fn programs_get_the_whole_graph() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let found = json(&context, &["lineage", "total", "--format", "json"]);
    let nodes = found["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 7);
    let total = nodes.iter().find(|node| node["cell"] == "total").unwrap();
    assert_eq!(total["action"], found["focus"]);
    assert_eq!(total["inputs"].as_array().unwrap().len(), 3);
    assert_eq!(total["published"][0]["present"], true);
    let keys: Vec<&str> = nodes
        .iter()
        .map(|node| node["action"].as_str().unwrap())
        .collect();
    for input in nodes.iter().flat_map(|node| node["inputs"].as_array().unwrap()) {
        assert!(keys.contains(&input["from"].as_str().unwrap()), "{input}");
    }
    let dot = context
        .run(&["lineage", "total", "--format", "dot"])
        .assert_code(0)
        .stdout;
    assert!(
        dot.starts_with("digraph lineage {\n") && dot.ends_with("}\n"),
        "{dot}"
    );
    assert_eq!(dot.matches(" -> ").count(), 7, "{dot}");
}

#[test]
fn a_figure_alone_is_enough() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    fs_err::write(context.path("found.svg"), figure(&context)).unwrap();
    let told = lineage(&context, &["found.svg"]);
    let head: Vec<&str> = told.lines().take(5).collect();
    assert_eq!(
        head,
        [
            "`found.svg` has a seal of Provenir that fits its content",
            "the file says: drawn by action [DIGEST], from data [DIGEST]",
            "up to date: `pipeline.toml` makes the same today (total)",
            "",
            "total: noop, action [DIGEST]",
        ]
    );
    let mut altered = figure(&context);
    let position = altered.len() - 10;
    altered[position] = b'9';
    fs_err::write(context.path("found.svg"), altered).unwrap();
    assert!(
        lineage(&context, &["found.svg"])
            .starts_with("`found.svg` was altered since Provenir made it; what follows is of the original\n")
    );
}

/// Anybody can seal: what the store has is believed first.
#[test]
fn a_figure_that_was_changed_and_sealed_again_is_not_taken_for_the_stores() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "forged"
        [stages.draw]
        kind = "command"
        params = { argv = ["sh", "-c", "echo '<svg/>' > figure.svg"], outputs.figure.file = "figure.svg" }
        publish = { figure = "out.svg" }
        "#,
    );
    context.executed(&[]);
    let key = json(&context, &["lineage", "draw", "--json"])["focus"].clone();
    let identity = FigureIdentity {
        action_key: key.as_str().unwrap().to_owned(),
        data: Digest::of(b"data"),
    };
    let drawn = |path: &str| {
        FigureIdentity::seal(format!("<svg>\n{}\n{path}</svg>\n", identity.svg_metadata()).into_bytes())
    };
    fs_err::write(context.path("forged.svg"), drawn("<path/>")).unwrap();
    let told = lineage(&context, &["forged.svg"]);
    assert!(
        told.starts_with("`forged.svg` has a seal that fits, but not the bytes that the store has")
            && told.contains("\nwhether it is stale cannot be told: "),
        "{told}"
    );
    let found = json(&context, &["lineage", "forged.svg", "--json"]);
    assert_eq!(
        (&found["file"]["altered"], &found["file"]["stale"]),
        (&Value::Null, &Value::Null)
    );
    let verified = context.run(&["verify", "forged.svg"]).assert_code(1).stdout;
    assert!(
        verified.starts_with("`forged.svg` has a seal that fits, but not"),
        "{verified}"
    );
    // Where it was published the store knows what it was.
    fs_err::write(context.path("out.svg"), drawn("<circle/>")).unwrap();
    let told = lineage(&context, &["out.svg"]);
    assert!(
        told.starts_with("`out.svg` was altered since Provenir made it"),
        "{told}"
    );
    // So it does of a figure that was made elsewhere, which is nobody's to overwrite.
    let foreign = FigureIdentity {
        action_key: "0".repeat(64),
        ..identity.clone()
    };
    let foreign = FigureIdentity::seal(format!("<svg>\n{}\n</svg>\n", foreign.svg_metadata()).into_bytes());
    fs_err::write(context.path("out.svg"), &foreign).unwrap();
    let told = context.run(&["lineage", "out.svg"]).assert_code(2).stderr;
    assert!(
        told.starts_with("`out.svg` has a seal of Provenir that fits its content\n")
            && told.contains("\nit lies where output figure of draw was published\n"),
        "{told}"
    );
    context.run(&["run"]).assert_code(0);
    assert_eq!(context.read("out.svg.orig"), foreign);
    // A copy of what the store has is no forgery, and a broken seal is told as that.
    fs_err::copy(context.object("draw.figure"), context.path("copy.svg")).unwrap();
    assert!(lineage(&context, &["copy.svg"]).starts_with("`copy.svg` is as Provenir made it\n"));
    let mut broken = drawn("<path/>");
    let end = broken.len() - 3;
    broken[end] = b'x';
    fs_err::write(context.path("broken.svg"), broken).unwrap();
    let verified = context.run(&["verify", "broken.svg"]).assert_code(1).stdout;
    assert_eq!(
        verified,
        "`broken.svg` was altered since Provenir made it: its seal does not fit its content\n"
    );
}

/// Where a file was published says what is expected there, and not what it is.
#[test]
fn an_old_figure_in_the_place_of_a_newer_one_is_stale() {
    let manifest = |title: &str| {
        format!(
            r#"
            format = 1
            pipeline.name = "drawn"
            [stages.draw]
            kind = "command"
            params = {{ argv = ["sh", "-c", "echo {title} > figure.txt"], outputs.figure.file = "figure.txt" }}
            publish = {{ figure = "out.txt" }}
            "#
        )
    };
    let context = Context::new(&manifest("A"));
    context.executed(&[]);
    let old = context.read("out.txt");
    context.write("pipeline.toml", &manifest("B"));
    context.executed(&[]);
    fs_err::write(context.path("out.txt"), &old).unwrap();
    let told = lineage(&context, &["out.txt"]);
    assert!(
        told.contains("\nstale: `pipeline.toml` makes another today (draw: "),
        "{told}"
    );
    let verified = context.run(&["verify", "out.txt"]).assert_code(1).stdout;
    assert_eq!(
        verified,
        "`out.txt` is another artifact, or figure, than was published there; the next run that publishes there replaces it\n"
    );
    context.run(&["run"]).assert_code(0);
    assert_eq!(context.read("out.txt"), b"B\n");
}

#[test]
fn a_published_file_is_known_through_a_link_to_its_folder() {
    let context = Context::new(CHAIN);
    fs_err::create_dir(context.path("real")).unwrap();
    std::os::unix::fs::symlink("real", context.path("out")).unwrap();
    context.executed(&[]);
    let verified = context
        .run(&["verify", "out/total.parquet"])
        .assert_code(0)
        .stdout;
    assert!(
        verified.starts_with("`out/total.parquet` is as it was published\n"),
        "{verified}"
    );
    let told = lineage(&context, &["out/total.parquet"]);
    assert!(told.contains("makes the same today (total)"), "{told}");
}

#[test]
fn a_source_file_tells_which_actions_took_another_content() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "source"
        stages.read = { kind = "noop", params = { file = "data.txt" } }
        "#,
    );
    context.write("data.txt", "one");
    context.executed(&[]);
    let told = lineage(&context, &["data.txt"]);
    assert!(!told.contains("another content"), "{told}");
    context.write("data.txt", "two");
    context.executed(&[]);
    let told = lineage(&context, &["data.txt"]);
    assert_eq!(
        told.lines().nth(1),
        Some("with another content than now it was taken by read (action [DIGEST])"),
        "{told}"
    );
}

#[test]
fn a_stale_figure_says_what_changed() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    fs_err::write(context.path("found.svg"), figure(&context)).unwrap();
    let stale = |arguments: &[&str]| {
        let told = lineage(&context, &[&["found.svg"], arguments].concat());
        told.lines().nth(2).unwrap().to_owned()
    };
    let set = ["pipeline.toml", "--set", "stages.total.params.value=1"];
    assert_eq!(
        stale(&set),
        "probably stale: `pipeline.toml` with `--set stages.total.params.value=1` would compute it anew (total: value 0.0, the default → 1.0); `provenir run pipeline.toml --set stages.total.params.value=1` computes it"
    );
    context.executed(&["--set", "stages.total.params.value=1"]);
    assert_eq!(
        stale(&set),
        "stale: `pipeline.toml` with `--set stages.total.params.value=1` makes another today (total: value 0.0, the default → 1.0); the newer result is in the store; `provenir run pipeline.toml --set stages.total.params.value=1` publishes it as `out/total.parquet`"
    );
    assert_eq!(
        stale(&["pipeline.toml", "--set", "stages.first.params.value=7"]),
        "whether it is stale is known only when first[a=1] has run, which total of `pipeline.toml` with `--set stages.first.params.value=7` depends on"
    );
    let found = json(
        &context,
        &[&["lineage", "found.svg", "--format", "json"], &set[..]].concat(),
    );
    assert_eq!(found["file"]["stale"], true);
    // Where no manifest is named or found, the one whose run made it is taken.
    let elsewhere = context.path("elsewhere");
    fs_err::create_dir(&elsewhere).unwrap();
    let mut command = context.command(&["lineage", "../found.svg", "--cache", "../cache"]);
    command.current_dir(&elsewhere);
    let outcome = crate::context::finish(&mut command).assert_code(0);
    assert!(outcome.stdout.contains("up to date: `"), "{outcome:#?}");
}

/// A figure is held against the manifest as it is now, with the arguments that made it.
#[test]
fn a_figure_made_with_arguments_is_held_against_them() {
    let manifest = format!("{CHAIN}\n[profiles.small]\naxes = {{ a = [1, 2] }}\n");
    let context = Context::new(&manifest);
    let arguments = ["--profile", "small", "--set", "stages.total.params.value=1"];
    context.executed(&arguments);
    let made = context.read("out/total.parquet");
    // Later runs without them make another file of that name.
    context.executed(&[]);
    fs_err::write(context.path("found.parquet"), &made).unwrap();
    let line = || {
        let told = lineage(&context, &["found.parquet"]);
        told.lines().nth(1).unwrap().to_owned()
    };
    insta::assert_snapshot!(line(), @"up to date: `pipeline.toml` with `--profile small --set stages.total.params.value=1`, as in run [RUN], makes the same today (total)");
    let found = json(&context, &["lineage", "found.parquet", "--format", "json"]);
    assert_eq!(found["file"]["stale"], false);
    assert_eq!(found["file"]["arguments"], serde_json::json!(arguments));
    context.write("pipeline.toml", &manifest.replace("value = 0.5", "value = 0.75"));
    let stale = line();
    assert!(
        stale.starts_with("whether it is stale is known only when second[a=1] has run"),
        "{stale}"
    );
    context.executed(&arguments);
    insta::assert_snapshot!(line(), @"stale: `pipeline.toml` with `--profile small --set stages.total.params.value=1`, as in run [RUN], makes another today (total: input many changed (2 artifacts)); the newer result is in the store; `provenir run pipeline.toml --profile small --set stages.total.params.value=1` publishes it as `out/total.parquet`");
    // A profile that is gone is a problem of the manifest.
    context.write("pipeline.toml", CHAIN);
    insta::assert_snapshot!(line(), @"whether it is stale cannot be told: `pipeline.toml` with `--profile small --set stages.total.params.value=1`, as in run [RUN], has problems (`provenir plan pipeline.toml --profile small --set stages.total.params.value=1` shows them)");
    // Another manifest that lies at hand did not make it.
    fs_err::rename(context.path("pipeline.toml"), context.path("study.toml")).unwrap();
    context.write("pipeline.toml", &CHAIN.replace("\"chain\"", "\"other\""));
    context.executed(&["study.toml", "--axis", "a=5"]);
    fs_err::copy(context.path("out/total.parquet"), context.path("found.parquet")).unwrap();
    insta::assert_snapshot!(line(), @"up to date: `study.toml` with `--axis a=5`, as in run [RUN], makes the same today (total)");
}

#[test]
fn a_published_table_is_known_by_its_bytes() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    fs_err::copy(context.path("out/total.parquet"), context.path("copy.parquet")).unwrap();
    let told = lineage(&context, &["copy.parquet"]);
    assert!(
        told.starts_with("`copy.parquet` is as Provenir made it\nup to date: "),
        "{told}"
    );
    assert!(told.contains("\ntotal: noop, action [DIGEST]\n"), "{told}");
}

#[test]
fn what_is_not_known_is_said() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let said = |arguments: &[&str]| {
        let outcome = context.run(&[&["lineage"], arguments].concat()).assert_code(2);
        context.filtered(&outcome.stderr)
    };
    insta::assert_snapshot!(said(&["pipeline.toml"]), @r"
    error: `pipeline.toml` does not say where it comes from, and the store `cache` does not know it
      help: figures (SVG, PNG, PDF, GIF) carry their origin; `--cache` names another store
    ");
    fs_err::write(context.path("found.svg"), figure(&context)).unwrap();
    insta::assert_snapshot!(said(&["found.svg", "--cache", "absent"]), @r"
    `found.svg` has a seal of Provenir that fits its content
    the file says: drawn by action [DIGEST], from data [DIGEST]
    error: the store `absent` has neither result nor record of action [DIGEST]
      help: `--cache` or PROVENIR_CACHE names the store of whoever made the file
    ");
    insta::assert_snapshot!(said(&["second[a=9]", "--axis", "a=9"]), @r"
    error: `second[a=9]` has no result yet
      help: `provenir run` computes it; then its lineage can be told
    ");
}

/// Stages that give equal content: what came of which, the record of the run says.
const EQUAL: &str = r#"
format = 1
pipeline.name = "equal"
stages.demos = { kind = "noop", params = { value = 5 } }
stages.corrupted = { kind = "noop", inputs = { one = "demos" } }
stages.beside = { kind = "noop", inputs = { one = "demos" }, params = { value = 1 } }
stages.trained = { kind = "noop", inputs = { one = "corrupted" }, params = { value = 1 } }
stages.last = { kind = "noop", inputs = { one = "trained" }, params = { value = 2 } }
"#;

#[test]
fn lineage_follows_what_was_wired_and_not_what_is_equal() {
    let context = Context::new(EQUAL);
    // `beside` and `trained` are one action, wired in two ways.
    assert_eq!(context.executed(&[]).len(), 4);
    let tree = |cell: &str| {
        let told = lineage(&context, &[cell]);
        let tree = told.split("\nmade from\n").nth(1).unwrap();
        let tree = tree.split("\n\n").next().unwrap().lines();
        tree.map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned() + "\n")
            .collect::<String>()
    };
    insta::assert_snapshot!(tree("trained"), @r"
    └─ one ← corrupted: noop, action [DIGEST]
       └─ one ← demos: noop, action [DIGEST], value=5.0
    ");
    insta::assert_snapshot!(tree("beside"), @"└─ one ← demos: noop, action [DIGEST], value=5.0");
    for cell in ["trained", "beside"] {
        assert!(lineage(&context, &[cell]).starts_with(&format!("{cell}: noop")));
    }
    insta::assert_snapshot!(tree("corrupted"), @"└─ one ← demos: noop, action [DIGEST], value=5.0");
    let graph = json(&context, &["lineage", "trained", "--json"]);
    let focus = graph["nodes"].as_array().unwrap().iter();
    let focus = focus
        .clone()
        .find(|node| node["action"] == graph["focus"])
        .unwrap();
    assert_eq!(focus["inputs"][0]["output"], "sum");
    // A run that finds everything wired in another way is what counts from then on.
    let rewired = EQUAL.replace("one = \"corrupted\"", "one = \"demos\"");
    context.write("pipeline.toml", &rewired);
    assert_eq!(context.executed(&[]), [""; 0]);
    insta::assert_snapshot!(tree("trained"), @"└─ one ← demos: noop, action [DIGEST], value=5.0");
    context.write("pipeline.toml", EQUAL);
    assert_eq!(context.executed(&[]), [""; 0]);
    let told = tree("trained");
    assert!(told.contains("one ← corrupted: noop"), "{told}");
    // Records that do not tell: of several that gave the same, one that did not take it is where it comes from. The manifest
    // tells how its cells are wired, but not how others that are the same action were.
    let key = json(&context, &["lineage", "trained", "--json"])["focus"]
        .as_str()
        .unwrap()
        .to_owned();
    for run in context.runs() {
        let path = run.join("records.jsonl");
        let records = fs_err::read_to_string(&path).unwrap();
        let stripped = records.lines().map(|line| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            record.as_object_mut().unwrap().remove("wires").unwrap();
            record.to_string() + "\n"
        });
        fs_err::write(&path, stripped.collect::<String>()).unwrap();
    }
    let told = tree(&key[..12]);
    assert!(
        told.contains("one ← demos: noop") && !told.contains("corrupted"),
        "{told}"
    );
}

/// Twice the same that changes nothing is one action, and takes what it gives.
#[test]
fn an_action_that_takes_what_it_gives_comes_from_what_is_before_it() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "twice"
        stages.demos = { kind = "noop", params = { value = 5 } }
        stages.once = { kind = "noop", inputs = { one = "demos" } }
        stages.twice = { kind = "noop", inputs = { one = "once" } }
        "#,
    );
    assert_eq!(context.executed(&[]), ["demos", "once"]);
    for cell in ["once", "twice"] {
        let told = lineage(&context, &[cell]);
        assert!(told.contains("one ← demos: noop"), "{told}");
    }
}

/// What gives on what it took is not where it comes from: not for those that took the same, and least of all for itself.
#[test]
fn a_cell_that_changes_nothing_is_nobodys_origin() {
    let context = Context::new(
        r#"
format = 1
[pipeline]
name = "identity"
[axes]
a = [0.0, 1.0]
[stages.first]
kind = "noop"
params = { value = 5.0 }
[stages.second]
kind = "noop"
inputs = { one = "first" }
params = { value = "${a}" }
"#,
    );
    context.executed(&[]);
    for cell in ["second[a=0]", "second[a=1]"] {
        let told = lineage(&context, &[cell]);
        assert!(told.contains("one ← first: noop"), "{told}");
        assert_eq!(told.matches("second[").count(), 1, "{told}");
    }
    let told = lineage(&context, &["first"]);
    for cell in ["second[a=0]", "second[a=1]"] {
        assert_eq!(told.matches(cell).count(), 1, "{told}");
    }
}

#[test]
fn a_file_is_held_against_the_manifest_that_published_it() {
    let context = Context::new(CHAIN);
    context.run(&["run", "--quiet"]).assert_code(0);
    // Another folder with the same manifest, whose run finds everything in the store.
    let other = context.path("other");
    fs_err::create_dir_all(&other).unwrap();
    context.write("other/pipeline.toml", CHAIN);
    let pipeline = other.join("pipeline.toml");
    let run = [
        "run",
        "--quiet",
        "--cache",
        "cache",
        pipeline.as_str(),
        "--set",
        "stages.total.params.value=0.0",
    ];
    context.run(&run).assert_code(0);
    let file = other.join("out/total.parquet");
    let lineage = ["lineage", file.as_str(), "--cache", "cache"];
    let told = context.run(&lineage).assert_code(0).stdout;
    assert!(
        told.contains("up to date: `other/pipeline.toml` with `--set"),
        "{told}"
    );
    context.write(
        "other/pipeline.toml",
        &CHAIN.replace("value = \"${a}\"", "value = 7.0"),
    );
    let told = context.run(&lineage).assert_code(0).stdout;
    assert!(told.contains("`other/pipeline.toml`"), "{told}");
    assert!(!told.contains("up to date"), "{told}");
}

#[test]
fn a_log_is_of_the_action_and_not_of_the_name() {
    let context = Context::new(
        "format = 1\npipeline.name = \"talk\"\nstages.talk = { kind = \"chatter\", params = { text = \"one\" } }\n",
    );
    context
        .run(&["run", "--quiet", "--set", "stages.talk.params.text=two"])
        .assert_code(0);
    let refused = context.run(&["log", "talk"]).assert_code(2).stderr;
    assert!(
        refused.contains("as the manifest describes it now, was not executed"),
        "{refused}"
    );
    let command = refused
        .split('`')
        .find(|part| part.starts_with("provenir log"))
        .unwrap();
    let digest = command.rsplit(' ').next().unwrap();
    assert!(
        context
            .run(&["log", digest])
            .assert_code(0)
            .stdout
            .contains("two")
    );
    context.run(&["run", "--quiet"]).assert_code(0);
    let log = context.run(&["log", "talk"]).assert_code(0).stdout;
    assert!(log.contains("one") && !log.contains("two"), "{log}");
}

/// Data beside a figure need not change because the figure does.
#[test]
fn a_file_is_stale_by_what_it_holds() {
    let context = Context::new(&CHAIN.replace(
        "inputs = { many = \"second\" }",
        "inputs = { many = \"second\" }\nparams = { file = \"data.txt\" }",
    ));
    context.write("data.txt", "four");
    context.executed(&[]);
    fs_err::copy(context.path("out/total.parquet"), context.path("copy.parquet")).unwrap();
    let line = |file: &str| {
        let told = lineage(&context, &[file]);
        told.lines().nth(1).unwrap().to_owned()
    };
    // Another action, of which it is not known that it gives the same: the length is what counts.
    context.write("data.txt", "five");
    insta::assert_snapshot!(line("copy.parquet"), @"probably stale: `pipeline.toml` would compute it anew (total: file: the content of `data.txt` changed, [DIGEST] → [DIGEST]); `provenir run pipeline.toml` computes it");
    assert_eq!(context.executed(&[]), ["total"]);
    for file in ["copy.parquet", "out/total.parquet"] {
        assert_eq!(
            line(file),
            "up to date: `pipeline.toml` makes the same today (total)"
        );
    }
    let found = json(&context, &["lineage", "copy.parquet", "--format", "json"]);
    assert_eq!(found["file"]["stale"], false);
    context.write("data.txt", "longer");
    context.executed(&[]);
    insta::assert_snapshot!(line("copy.parquet"), @"stale: `pipeline.toml` makes another today (total: file: the content of `data.txt` changed, [DIGEST] → [DIGEST]); the newer result is in the store; `provenir run pipeline.toml` publishes it as `out/total.parquet`");
}

/// A kind takes files; two of them with the same bytes make two cells one action.
const ALIKE: &str = r#"
format = 1
[pipeline]
name = "alike"
[axes]
k = [0, 1]
[stages.t]
kind = "noop"
params = { file = "d-${k}.txt" }
publish = { sum = "t-${k}.parquet" }
[stages.u]
kind = "noop"
inputs = { one = "t" }
params = { value = "${k}" }
publish = { sum = "u-${k}.parquet" }
"#;

#[test]
fn cells_that_are_one_action_keep_their_own_files_and_descendants() {
    let context = Context::new(ALIKE);
    context.write("d-0.txt", "same");
    context.write("d-1.txt", "same");
    assert_eq!(context.executed(&[]).len(), 3);
    for (own, other) in [("0", "1"), ("1", "0")] {
        // By cell, and by the copy that it published.
        for named in [format!("t[k={own}]"), format!("t-{own}.parquet")] {
            let told = lineage(&context, &[&named]);
            for there in [
                format!("\nt[k={own}]: noop"),
                format!("the same action is also t[k={other}]"),
                format!("published `t-{own}.parquet`"),
                format!("file ← the file `d-{own}.txt`, unchanged since"),
                format!("└─ u[k={own}]: noop"),
            ] {
                assert!(format!("\n{told}").contains(&there), "{named}: {there}\n{told}");
            }
            let others = [
                format!("d-{other}.txt"),
                format!("u[k={other}]"),
                format!("t-{other}.parquet"),
            ];
            for absent in others {
                assert!(!told.contains(&absent), "{named}: {absent}\n{told}");
            }
            assert!(
                !named.ends_with(".parquet") || told.contains(&format!("makes the same today (t[k={own}])")),
                "{told}"
            );
        }
        let told = lineage(&context, &[&format!("u[k={own}]")]);
        assert!(told.contains(&format!("one ← t[k={own}]")) && told.contains(&format!("`d-{own}.txt`")));
        // From the file down.
        let told = lineage(&context, &[&format!("d-{own}.txt")]);
        assert!(
            told.starts_with(&format!("`d-{own}.txt` is a source file, content "))
                && told.contains(&format!("─ t[k={own}]: noop"))
                && told.contains(&format!("─ u[k={own}]: noop"))
                && !told.contains(&format!("[k={other}]")),
            "{told}"
        );
    }
    let graph = json(&context, &["lineage", "u[k=1]", "--json"]);
    let u = graph["nodes"].as_array().unwrap();
    let u = u.iter().find(|node| node["cell"] == "u[k=1]").unwrap();
    assert_eq!(u["inputs"][0]["from_cell"], "t[k=1]");
    // By the action alone, all of them.
    let told = lineage(&context, &[&u["inputs"][0]["from"].as_str().unwrap()[..12]]);
    assert!(
        told.contains("also t[k=1]") && told.contains("─ u[k=0]") && told.contains("─ u[k=1]"),
        "{told}"
    );
}

#[test]
fn what_a_stage_only_copied_is_not_called_made() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "copied"
        [stages.copy]
        kind = "command"
        params.argv = ["cp", "data.txt", "{output.copy}"]
        params.files = { "data.txt" = "data.txt" }
        params.outputs.copy.file = "copy.txt"
        "#,
    );
    context.write("data.txt", "as it is");
    context.executed(&[]);
    let told = lineage(&context, &["data.txt"]);
    assert!(told.starts_with("`data.txt` is a source file, content"), "{told}");
    fs_err::copy(context.path("data.txt"), context.path("moved.txt")).unwrap();
    let told = lineage(&context, &["moved.txt"]);
    assert!(
        told.starts_with("`moved.txt` has the bytes of object [DIGEST]; nothing tells that Provenir"),
        "{told}"
    );
    let told = context.run(&["verify", "data.txt"]).assert_code(0).stdout;
    assert!(
        told.contains("`data.txt` has the bytes of object ") && !told.contains("as it was published"),
        "{told}"
    );
}

/// What was executed once more and gave something else did not give what counts.
#[test]
fn a_result_is_of_the_run_that_gave_it() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "moody"
        [stages.rnd]
        kind = "command"
        publish = { o = "o.txt" }
        [stages.rnd.params]
        argv = ["sh", "-c", "date +%s%N > {output.o}"]
        outputs.o.file = "o.txt"
        "#,
    );
    context.executed(&[]);
    let quiet = context
        .run(&["run", "--quiet", "--force", "rnd"])
        .assert_code(0)
        .stderr;
    assert!(
        quiet.contains("warning: the result of rnd differs at `o` from the one in the store"),
        "{quiet}"
    );
    let runs: Vec<String> = context
        .runs()
        .iter()
        .map(|run| run.file_name().unwrap().to_owned())
        .collect();
    let [first, second] = &runs[..] else {
        panic!("{runs:?}")
    };
    for command in [&["why", "rnd"][..], &["lineage", "o.txt"]] {
        let told = context.run(command).assert_code(0).stdout;
        assert!(
            told.contains(&format!("run {first}"))
                && told.contains(&format!("run {second} ("))
                && told.contains("gave a second, different result for output o, object "),
            "{told}"
        );
        assert!(!told.contains(&format!("computed by run {second}")), "{told}");
    }
    let records =
        fs_err::read_to_string(context.path(&format!("cache/runs-v1/{second}/records.jsonl"))).unwrap();
    let executed: Value = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .find(|record: &Value| record["record"] == "executed")
        .unwrap();
    let told = context.run(&["lineage", "o.txt"]).assert_code(0).stdout;
    let object = executed["outputs"][0]["object"].as_str().unwrap();
    assert!(
        told.contains(&format!("output o, object {}", &object[..12])),
        "{told}"
    );
    let diff = context.run(&["diff", first, second]).assert_code(0).stdout;
    assert!(diff.contains("the same action gave another result"), "{diff}");
}

/// An edit that changes nothing of what a stage gives does not rewrite history.
#[test]
fn a_file_is_told_from_what_it_was_made_from() {
    let context = Context::new(
        r#"
        format = 1
        pipeline.name = "cutoff"
        [stages.a]
        kind = "command"
        params.argv = ["sh", "s.sh", "{output.o}"]
        params.files = { "s.sh" = "s.sh" }
        params.outputs.o.file = "o.txt"
        [stages.b]
        kind = "command"
        inputs = { i = "a" }
        publish = { o = "b.txt" }
        params.argv = ["sh", "-c", "cat {input.i} {input.i} > {output.o}"]
        params.outputs.o.file = "o.txt"
        "#,
    );
    context.write("s.sh", "echo 1 > $1\n");
    context.executed(&[]);
    let content = Digest::of(b"echo 1 > $1\n").short();
    let old = json(&context, &["lineage", "a", "--json"])["focus"]
        .as_str()
        .unwrap()[..12]
        .to_owned();
    fs_err::copy(context.path("b.txt"), context.path("old.txt")).unwrap();
    context.write("s.sh", "echo 1 > $1\n# edited\n");
    assert_eq!(context.executed(&[]), ["a"]);
    for file in ["old.txt", "b.txt"] {
        let told = context.run(&["lineage", file]).assert_code(0).stdout;
        assert!(
            told.contains(&format!("i ← a: command, action {old}"))
                && told.contains(&format!("which has changed since; content then {content}")),
            "{told}"
        );
    }
    // As the manifest wires it now, it comes from the edited script; that this is not what was read then is said.
    let told = context.run(&["lineage", "b"]).assert_code(0).stdout;
    assert!(
        told.contains("when it was computed, it was made from others that gave the same")
            && told.contains("the file `s.sh`, unchanged since")
            && !told.contains(&old),
        "{told}"
    );
    // Both versions of the script lead to what was made of them.
    let told = context.run(&["lineage", "s.sh"]).assert_code(0).stdout;
    assert_eq!(told.matches("─ b: command").count(), 2, "{told}");
}

#[test]
fn source_files_are_known_by_path_and_by_content() {
    let context = Context::new(ALIKE);
    context.write("d-0.txt", "one");
    context.write("d-1.txt", "two");
    context.executed(&[]);
    fs_err::copy(context.path("d-0.txt"), context.path("copy.txt")).unwrap();
    let content = Digest::of(b"one").hex();
    context.write("d-0.txt", "another");
    let told = context.run(&["lineage", "d-0.txt"]).assert_code(0).stdout;
    assert!(
        told.starts_with("`d-0.txt` is a source file, and has changed since it was taken")
            && told.contains("t[k=0]"),
        "{told}"
    );
    for named in ["copy.txt", &content[..12]] {
        let told = context.run(&["lineage", named]).assert_code(0).stdout;
        assert!(
            told.contains("source file, content") && told.contains("─ t[k=0]"),
            "{told}"
        );
        assert!(!told.contains("k=1"), "{told}");
    }
    // Equal bytes in two files are two files.
    let context = Context::new(ALIKE);
    context.write("d-0.txt", "same");
    context.write("d-1.txt", "same");
    context.executed(&[]);
    let key = json(&context, &["lineage", "t[k=0]", "--json"])["focus"]
        .as_str()
        .unwrap()
        .to_owned();
    let dot = |what: &str| {
        context
            .run(&["lineage", what, "--format", "dot"])
            .assert_code(0)
            .stdout
    };
    assert!(
        dot("d-0.txt").contains("label=\"d-0.txt\\n"),
        "{}",
        dot("d-0.txt")
    );
    let both = dot(&key[..12]);
    assert!(both.contains("u[k=0]") && both.contains("u[k=1]"), "{both}");
}

#[test]
fn a_project_that_was_moved_is_the_same_project() {
    let context = Context::new(CHAIN);
    let base = context.path("before");
    fs_err::create_dir_all(&base).unwrap();
    context.write(
        "before/pipeline.toml",
        &CHAIN.replace(
            "params = { value = 0.5 }",
            "params = { value = 0.5, file = \"data.txt\" }",
        ),
    );
    context.write("before/data.txt", "four");
    let at = |folder: &str, arguments: &[&str]| {
        let mut command = context.command(arguments);
        command
            .current_dir(context.path(folder))
            .env_remove("PROVENIR_CACHE");
        finish(&mut command)
    };
    at("before", &["run"]).assert_code(0);
    fs_err::rename(&base, context.path("after")).unwrap();
    let told = at("after", &["lineage", "out/total.parquet"])
        .assert_code(0)
        .stdout;
    assert!(
        told.contains("published `out/total.parquet`\n")
            && told.contains("the file `data.txt`, unchanged since")
            && told.contains("makes the same today (total)"),
        "{told}"
    );
    let told = at("after", &["gc", "--grace", "0", "--keep-runs", "0"]).assert_code(0);
    assert!(
        !told.stdout.contains("total") && !told.stdout.contains("is gone"),
        "{told:#?}"
    );
    let told = at("after", &["plan", "--set", "stages.total.params.value=2"])
        .assert_code(0)
        .stdout;
    assert!(told.contains("total: value 0.0, the default → 2.0"), "{told}");
    at("after", &["verify", "out/total.parquet"]).assert_code(0);
}

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use provenir_policy::PolicySet;
use provenir_stable_baselines::{Agent, read};
use serde_json::{Value, json};

use crate::context::{CHAIN, Context};

/// A file that Stable-Baselines3 wrote.
fn recorded(name: &str) -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../stages/stable-baselines/tests/fixtures")
        .join(name)
}

/// Hopper's agent that reads the time feature, as the reader gives it.
fn agent() -> PolicySet {
    let bytes = |name| fs_err::read(recorded(name)).unwrap();
    let policy = read(&Agent {
        archive: &bytes("hopper-time.zip"),
        statistics: Some(&bytes("hopper-time.pkl")),
        activation: None,
        environment: "hopper",
        time_feature: true,
    });
    PolicySet::single(policy.unwrap())
}

/// What the command says of that agent's archive, given all that the archive does not tell.
fn with_agent(context: &Context, command: &[&str]) -> String {
    let (archive, statistics) = (recorded("hopper-time.zip"), recorded("hopper-time.pkl"));
    let given = [
        "--env",
        "hopper",
        "--normalization",
        statistics.as_str(),
        "--time-feature",
    ];
    let arguments = [&command[..1], &[archive.as_str()], &command[1..], &given].concat();
    context.run(&arguments).assert_code(0).stdout
}

/// The lines about the policy, without those about the file.
fn policy_lines(text: &str) -> &str {
    &text[text.find("a policy").unwrap()..]
}

#[test]
fn an_archive_is_shown_with_what_it_does_not_tell() {
    let context = Context::new(CHAIN);
    let archive = recorded("hopper-time.zip");
    let told = context.run(&["show", archive.as_str()]).assert_code(0).stdout;
    insta::assert_snapshot!(policy_lines(&told), @r"
    a policy

      environment     not told by an archive; give --env
      algorithm       sac
      time feature    not told by an archive; give --time-feature where it was trained with it
      normalisation   none, or in a VecNormalize file; give --normalization
      layers          16 → 4 → 3, relu between
      actions         3, clipped at ±2, then by tanh onto -1 to 1
      parameters      83
      exploration     gSDE
      source          Stable-Baselines3 2.9.2
      training steps  0
    ");
    insta::assert_snapshot!(context.filtered(policy_lines(&with_agent(&context, &["show"]))), @r"
    a policy

      environment     hopper
      algorithm       sac
      time feature    the last number of an observation
      normalisation   (observation − mean) / scale, clipped at ±10
      layers          16 → 4 → 3, relu between
      actions         3, clipped at ±2, then by tanh onto -1 to 1
      parameters      83
      exploration     gSDE
      source          Stable-Baselines3 2.9.2
      training steps  0
      content         [DIGEST]
    ");
    let json: Value = serde_json::from_str(
        &context
            .run(&["show", archive.as_str(), "--json"])
            .assert_code(0)
            .stdout,
    )
    .unwrap();
    for unknown in [
        "environment",
        "time_feature",
        "normalisation",
        "content",
        "cell",
        "object",
    ] {
        assert_eq!(json[unknown], Value::Null, "{unknown}");
    }
    assert_eq!(json["layers"], json!([16, 4, 3]));
}

#[test]
fn every_file_of_a_policy_shows_the_same() {
    let context = Context::new(CHAIN);
    let set = agent();
    let table = set.to_table().unwrap();
    let content = table.content().to_string();
    provenir_table::write(&context.path("agent.parquet"), &table).unwrap();
    with_agent(
        &context,
        &["export", "--format", "safetensors", "--out", "agent.safetensors"],
    );
    // As an object of a store, found by its digest.
    let bytes = context.read("agent.parquet");
    let digest = Digest::of(&bytes).hex();
    let object = format!("cache/objects-v1/{}/{digest}", &digest[..2]);
    fs_err::create_dir_all(context.path(&object).parent().unwrap()).unwrap();
    fs_err::write(context.path(&object), bytes).unwrap();

    let expected = with_agent(&context, &["show"]);
    assert!(expected.contains(&content));
    for reference in ["agent.parquet", "agent.safetensors", &digest[..12]] {
        let shown = context.run(&["show", reference]).assert_code(0).stdout;
        assert_eq!(policy_lines(&shown), policy_lines(&expected), "{reference}");
        let json: Value =
            serde_json::from_str(&context.run(&["show", reference, "--json"]).assert_code(0).stdout).unwrap();
        let policy = set.last();
        for (key, value) in [
            ("kind", json!("policy")),
            ("environment", json!("hopper")),
            ("algorithm", json!("sac")),
            ("time_feature", json!(true)),
            ("layers", json!([16, 4, 3])),
            ("activation", json!("relu")),
            (
                "actions",
                json!({"map": "clipped-tanh", "clip": 2.0, "low": [-1.0, -1.0, -1.0], "high": [1.0, 1.0, 1.0]}),
            ),
            // 16 · 4 + 4 weights and biases, then 4 · 3 + 3.
            ("parameters", json!(83)),
            ("checkpoints", json!([0])),
            ("training_steps", json!(0)),
            ("source", json!("Stable-Baselines3 2.9.2")),
            ("content", json!(content)),
        ] {
            assert_eq!(json[key], value, "{key}");
        }
        let statistics = policy.standardisation().unwrap();
        assert_eq!(
            json["normalisation"],
            json!({"mean": statistics.mean, "scale": statistics.scale, "clip": 10.0})
        );
    }
    // Exported from any of them, it is the same file, which reads back as the same policy.
    for (reference, out) in [
        ("agent.parquet", "1"),
        ("agent.safetensors", "2"),
        (&digest[..12], "3"),
    ] {
        context
            .run(&["export", reference, "--format", "safetensors", "--out", out])
            .assert_code(0);
        assert_eq!(context.read(out), context.read("agent.safetensors"));
    }
    let again = PolicySet::from_safetensors(&context.read("agent.safetensors")).unwrap();
    assert_eq!(again.to_table().unwrap().content().to_string(), content);
}

#[test]
fn an_export_is_named_and_never_written_over_something_else() {
    let context = Context::new(CHAIN);
    provenir_table::write(&context.path("agent.parquet"), &agent().to_table().unwrap()).unwrap();
    let export = ["export", "agent.parquet", "--format", "safetensors"];
    assert_eq!(context.run(&export).assert_code(0).stdout, "agent.safetensors\n");
    let written = context.read("agent.safetensors");
    context.run(&export).assert_code(0);
    fs_err::write(context.path("agent.safetensors"), b"mine").unwrap();
    insta::assert_snapshot!(context.run(&export).assert_code(2).stderr, @r"
    error: `agent.safetensors` exists and holds something else
      help: remove it, or name another file with --out
    ");
    assert_eq!(context.read("agent.safetensors"), b"mine");
    let elsewhere = [&export[..], &["--out", "no/such/folder/a.safetensors"]].concat();
    insta::assert_snapshot!(context.run(&elsewhere).assert_code(2).stderr, @r"
    error: there is no folder `no/such/folder`
      help: make it, or name another file with --out
    ");
    let mut same = written.clone();
    *same.last_mut().unwrap() ^= 1;
    fs_err::write(context.path("agent.safetensors"), same).unwrap();
    context.run(&export).assert_code(2);
}

#[test]
fn what_is_asked_wrongly_is_told() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    context.write("notes.txt", "not a policy");
    let archive = recorded("hopper.zip");
    let said = |arguments: &[&str]| {
        let stderr = context.run(arguments).assert_code(2).stderr;
        stderr.replace(recorded("").as_str(), "[FIXTURES]/")
    };
    insta::assert_snapshot!(said(&["export", archive.as_str(), "--format", "safetensors"]), @r"
    error: `[FIXTURES]/hopper.zip` does not tell the environment that its agent acts in
      help: give --env NAME; and --normalization FILE and --time-feature, where the agent was trained with them
    ");
    insta::assert_snapshot!(said(&["export", archive.as_str(), "--format", "safetensors", "--env", "hoper"]), @r"
    error: there is no environment `hoper`
      help: did you mean `hopper`?
    ");
    insta::assert_snapshot!(said(&["export", "notes.txt", "--format", "safetensors"]), @r"
    error: `notes.txt` holds no policy
      help: a policy is what `train` and `expert` give, a file of safetensors, or a Stable-Baselines3 archive (.zip)
    ");
    insta::assert_snapshot!(said(&["export", "out/total.parquet", "--format", "safetensors"]), @r"
    error: `out/total.parquet` holds no policy
      help: a policy is what `train` and `expert` give, a file of safetensors, or a Stable-Baselines3 archive (.zip)
    ");
    insta::assert_snapshot!(said(&["show", "out/total.parquet", "--env", "hopper"]), @r"
    error: --env, --normalization, --activation and --time-feature are for Stable-Baselines3 archives; `out/total.parquet` is none
      help: leave them out: a policy says all of that itself
    ");
    insta::assert_snapshot!(said(&["show", archive.as_str(), "--activation", "tanh"]), @r"
    error: `[FIXTURES]/hopper.zip` cannot be read: the hidden layers' activation is relu by the agent's archive, and was given as tanh
      help: leave `--activation` out
    ");
}

#[test]
fn a_policy_that_cannot_fit_its_environment_is_told_and_not_exported() {
    let context = Context::new(CHAIN);
    let (archive, statistics) = (recorded("hopper-time.zip"), recorded("hopper-time.pkl"));
    for command in ["show", "export", "render"] {
        let given = |more: &[&str]| {
            let mut arguments = vec![command, archive.as_str(), "--normalization", statistics.as_str()];
            match command {
                "export" => arguments.extend(["--format", "safetensors"]),
                "render" => arguments.extend(["--out", "a.gif"]),
                _ => {}
            }
            arguments.extend(more);
            context.run(&arguments).assert_code(2).stderr
        };
        let told = given(&["--env", "hopper"]);
        assert!(
            told.contains(
                "it sees 16 numbers without the time feature; an observation of `hopper` alone has 15"
            ) && told.contains("give --time-feature"),
            "{told}"
        );
        let told = given(&["--env", "ant", "--time-feature"]);
        assert!(told.contains("an observation of `ant` with it has 29"), "{told}");
    }
    let renamed = |environment: &str, time_feature: bool| {
        let read = read(&Agent {
            archive: &fs_err::read(&archive).unwrap(),
            statistics: Some(&fs_err::read(&statistics).unwrap()),
            activation: None,
            environment,
            time_feature,
        });
        PolicySet::single(read.unwrap())
    };
    let untimed = renamed("hopper", false);
    fs_err::write(context.path("untimed.safetensors"), untimed.to_safetensors()).unwrap();
    provenir_table::write(&context.path("untimed.parquet"), &untimed.to_table().unwrap()).unwrap();
    for name in ["untimed.safetensors", "untimed.parquet"] {
        let shown = context.run(&["show", name]).assert_code(0).stdout;
        assert!(
            shown.contains("  warning         it does not fit: it sees 16 numbers without the time feature;"),
            "{shown}"
        );
        let json: Value =
            serde_json::from_str(&context.run(&["show", name, "--json"]).assert_code(0).stdout).unwrap();
        assert!(
            json["flaw"].as_str().unwrap().starts_with("it sees 16 numbers"),
            "{json}"
        );
        let export = [
            "export",
            name,
            "--format",
            "safetensors",
            "--out",
            "out.safetensors",
        ];
        let told = context.run(&export).assert_code(2).stderr;
        assert!(told.contains("`time_feature` is `true`"), "{told}");
        assert!(!context.path("out.safetensors").exists());
    }
    let elsewhere = renamed("humanoid", true);
    provenir_table::write(&context.path("elsewhere.parquet"), &elsewhere.to_table().unwrap()).unwrap();
    let shown = context.run(&["show", "elsewhere.parquet"]).assert_code(0).stdout;
    assert!(
        shown.contains("it does not fit: its metadata name the environment `humanoid`, which there is not"),
        "{shown}"
    );
    let exported = context
        .run(&["export", "elsewhere.parquet", "--format", "safetensors"])
        .assert_code(0);
    assert!(
        exported
            .stderr
            .contains("name the environment `humanoid`, which there is not; no stage can use it"),
        "{exported:#?}"
    );
    insta::assert_snapshot!(
        context.run(&["render", "elsewhere.safetensors", "--out", "a.gif"]).assert_code(2).stderr, @r"
    error: the policy `elsewhere.safetensors` does not fit: its metadata name the environment `humanoid`, which there is not
      help: there is `hopper`, `walker2d`, `half-cheetah`, `ant`; the entry `environment` of its metadata names one of them
    ");
}

#[test]
fn files_made_to_harm_are_refused_by_name() {
    let context = Context::new(CHAIN);
    let command = b"\x80\x04cos\nsystem\nX\x0d\0\0\0touch touched\x85R.";
    fs_err::write(context.path("harm.pkl"), command).unwrap();
    let archive = recorded("hopper.zip");
    let refused = context
        .run(&["show", archive.as_str(), "--normalization", "harm.pkl"])
        .assert_code(2)
        .stderr;
    insta::assert_snapshot!(refused, @r"
    error: `harm.pkl` cannot be read: the `VecNormalize` file: this pickle asks for `os.system`, which is not on the list of what a Stable-Baselines3 file may contain; it was not run
      help: take the file from somebody you trust; one that Stable-Baselines3 wrote asks for no such thing
    ");
    assert!(!context.path("touched").exists());
    let whole = fs_err::read(&archive).unwrap();
    let mut deep = 200_000_u64.to_le_bytes().to_vec();
    deep.extend(format!("{{\"a\":{}", "[".repeat(199_995)).as_bytes());
    for (name, content) in [
        // Without the end of its own directory, the last one is that of `policy.pth`, an archive within it.
        ("without-end.zip", whole[..whole.len() - 30].to_vec()),
        ("cut.zip", whole[..whole.len() / 2].to_vec()),
        ("twice.zip", [whole.clone(), whole.clone()].concat()),
        ("deep.safetensors", deep),
        ("long.safetensors", [&u64::MAX.to_le_bytes()[..], b"{}"].concat()),
        ("empty.safetensors", Vec::new()),
    ] {
        fs_err::write(context.path(name), content).unwrap();
        let outcome = context.run(&["show", name]);
        // Two archives one after the other are the second one, for every reader of zip.
        let expected = if name == "twice.zip" { 0 } else { 2 };
        assert_eq!(outcome.code, Some(expected), "{outcome:#?}");
        assert!(expected == 0 || outcome.stderr.contains(name), "{outcome:#?}");
        assert!(
            !name.ends_with("end.zip") || outcome.stderr.contains("it is cut short or damaged"),
            "{outcome:#?}"
        );
    }
}

#[test]
fn a_table_is_shown_as_json() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let shown = context
        .run(&["show", "second[a=2]", "--json"])
        .assert_code(0)
        .stdout;
    let json: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&json["kind"], &json["rows"]), (&json!("table"), &json!(1)));
    assert_eq!(
        (&json["cell"], &json["output"]),
        (&json!("second[a=2]"), &json!("sum"))
    );
    assert_eq!(
        json["columns"],
        json!([{"name": "value", "type": "f64", "unit": null, "missing": 0, "min": 2.5, "mean": 2.5, "max": 2.5}])
    );
}

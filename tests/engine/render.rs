use camino::{Utf8Path, Utf8PathBuf};

use crate::context::{CHAIN, Context, Outcome};

/// A file that Stable-Baselines3 wrote.
fn recorded(name: &str) -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../stages/stable-baselines/tests/fixtures")
        .join(name)
}

/// Draws Hopper's agent that reads the time feature.
fn draw(context: &Context, more: &[&str]) -> Outcome {
    let (archive, statistics) = (recorded("hopper-time.zip"), recorded("hopper-time.pkl"));
    let agent = [
        "render",
        archive.as_str(),
        "--env",
        "hopper",
        "--normalization",
        statistics.as_str(),
        "--time-feature",
    ];
    context.run(&[&agent[..], more].concat())
}

/// Nothing was written but, perhaps, the store.
#[track_caller]
fn assert_untouched(context: &Context) {
    let names: Vec<String> = fs_err::read_dir(&context.folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        names
            .iter()
            .all(|name| ["pipeline.toml", "cache", "policy.safetensors"].contains(&name.as_str())),
        "{names:?}"
    );
}

#[test]
fn an_animation_is_made_once_and_its_file_restored() {
    let context = Context::new(CHAIN);
    let first = draw(&context, &["--out", "a.gif", "--seed", "7"]).assert_code(0);
    assert_eq!(first.stdout, "a.gif\n");
    assert!(first.stderr.contains("1 cell executed"), "{}", first.stderr);
    assert!(!first.stderr.contains("a.gif"), "{}", first.stderr);
    let drawn = context.read("a.gif");
    // The worker for tests writes down what it was asked to draw.
    let text = String::from_utf8(drawn.clone()).unwrap();
    for wanted in ["gif", "\"env\":\"hopper\"", "\"seed\":7", "\"time_feature\":true"] {
        assert!(text.contains(wanted), "{text}");
    }
    fs_err::remove_file(context.path("a.gif")).unwrap();
    let again = draw(&context, &["--out", "a.gif", "--seed", "7"]).assert_code(0);
    assert!(again.stderr.contains("1 cell up to date"), "{}", again.stderr);
    assert!(context.read("a.gif") == drawn);
    let elsewhere = draw(&context, &["--out", "b.gif", "--seed", "7", "--quiet"]).assert_code(0);
    assert_eq!(
        (elsewhere.stdout.as_str(), elsewhere.stderr.as_str()),
        ("b.gif\n", "")
    );
    assert!(context.read("b.gif") == drawn);
}

#[test]
fn the_format_is_that_of_the_name() {
    let context = Context::new(CHAIN);
    for (name, format) in [
        ("a.gif", "gif"),
        ("a.apng", "apng"),
        ("a.png", "apng"),
        ("a.svg", "svg"),
        ("b.GIF", "gif"),
        ("b.Png", "apng"),
    ] {
        draw(&context, &["--out", name]).assert_code(0);
        let text = String::from_utf8(context.read(name)).unwrap();
        assert!(text.starts_with(format), "{name}: {text}");
    }
    let outcome = draw(&context, &["--out", "a.mp4"]).assert_code(2);
    insta::assert_snapshot!(outcome.stderr, @r"
    error: `a.mp4` is no animation by its name
      help: let it end in .gif, in .apng or .png (animated PNG), or in .svg (animated SVG)
    ");
}

#[test]
fn a_place_that_cannot_be_written_to_is_told_before_anything_is_drawn() {
    let context = Context::new(CHAIN);
    let outcome = draw(&context, &["--out", "missing/a.gif"]).assert_code(2);
    insta::assert_snapshot!(outcome.stderr, @r"
    error: there is no folder `missing`
      help: make it, or name another file with --out
    ");
    fs_err::create_dir(context.path("a.gif")).unwrap();
    let outcome = draw(&context, &["--out", "a.gif"]).assert_code(2);
    insta::assert_snapshot!(outcome.stderr, @r"
    error: `a.gif` is a folder
      help: name a file in it
    ");
    fs_err::remove_dir(context.path("a.gif")).unwrap();
    let locked = context.path("locked");
    fs_err::create_dir(&locked).unwrap();
    let read_only = std::os::unix::fs::PermissionsExt::from_mode(0o555);
    fs_err::set_permissions(&locked, read_only).unwrap();
    if rustix::process::geteuid().is_root() {
        eprintln!("skipped: the superuser may write to a read-only folder");
    } else {
        let outcome = draw(&context, &["--out", "locked/a.gif"]).assert_code(3);
        assert!(
            outcome.stderr.contains("cannot write to the folder `locked`"),
            "{}",
            outcome.stderr
        );
    }
    fs_err::remove_dir(&locked).unwrap();
    assert_untouched(&context);
}

#[test]
fn what_is_wrong_with_a_policy_or_an_option_is_told_at_once() {
    let context = Context::new(CHAIN);
    let archive = recorded("hopper.zip");
    let render = |policy: &str, more: &[&str]| {
        let arguments = [&["render", policy, "--out", "a.gif"], more].concat();
        context.run(&arguments).assert_code(2).stderr
    };
    let told = render(archive.as_str(), &[]);
    assert!(told.contains("does not tell the environment"), "{told}");
    insta::assert_snapshot!(render(archive.as_str(), &["--env", "hopper", "--fps", "99"]), @"error: --fps: must be at most 50, is 99");
    for (option, value, wanted) in [
        ("--speed", "-1", "--speed: must be at least 0.05, is -1"),
        ("--speed", "21", "--speed: must be at most 20"),
        ("--fps", "-1", "--fps: must be at least 1, is -1"),
        ("--width", "-1", "--width: must be at least 240, is -1"),
        ("--seed", "-1", "--seed: must be at least 0, is -1"),
        ("--fps", "1.5", "--fps: expected a whole number"),
        ("--speed", "nan", "write a number, such as 20 or 0.5"),
        ("--speed", "inf", "write a number, such as 20 or 0.5"),
    ] {
        let told = render(archive.as_str(), &["--env", "hopper", option, value]);
        assert!(told.contains(wanted), "{option} {value}: {told}");
    }
    // A policy says itself where it acts; what contradicts it is refused.
    let exported = context.run(&[
        "export",
        archive.as_str(),
        "--env",
        "hopper",
        "--format",
        "safetensors",
        "--out",
        "policy.safetensors",
    ]);
    exported.assert_code(0);
    insta::assert_snapshot!(render("policy.safetensors", &["--env", "ant"]), @r"
    error: the policy was made for the environment `hopper`, not for `ant`
      help: leave --env out: the policy says it itself
    ");
    assert!(render("pipeline.toml", &[]).contains("holds no policy"));
    assert!(render("nothing.zip", &[]).contains("nothing"));
    assert_untouched(&context);
    for more in [&["--env", "hopper"][..], &[]] {
        let arguments = [&["render", "policy.safetensors", "--out", "a.gif"], more].concat();
        context.run(&arguments).assert_code(0);
    }
}

//! Values that are each right and do not go together: said where the one is written that was laid over the others.

use provenir::manifest::Overrides;

use super::study::{only, said, said_with};

const METHOD: &str = "method = \"${method}\", epochs = 10";
const PLAIN: (&str, &str) = (METHOD, "method = \"noisy-bc\", epochs = 10");
const UNFIT: &str = "`noisy_bc.rounds`: 5 rounds do not go into 3 epochs: each takes at least one";

/// The only thing that is said, with options of the command line.
fn with(edits: &[(&str, &str)], overrides: &Overrides) -> String {
    let mut said = said_with(edits, overrides);
    assert_eq!(said.len(), 1, "{edits:?}: {said:#?}");
    said.remove(0)
}

fn set(value: &str) -> Overrides {
    Overrides {
        set: vec![value.to_owned()],
        ..Overrides::default()
    }
}

#[test]
fn what_does_not_go_together_is_said_where_it_was_given_last() {
    // In the stage: the number, not the method, and not the table that holds the parameters.
    assert_eq!(
        only(&[(METHOD, "method = \"noisy-bc\", epochs = 3")]),
        format!("m.toml:22:42: {UNFIT}")
    );
    // In an override.
    let entry =
        "[[stages.policy.override]]\nwhere = { env = \"ant\" }\nparams = { epochs = 3 }\n[stages.reward]";
    assert_eq!(
        only(&[PLAIN, ("[stages.reward]", entry), (", series = \"method\"", "")]),
        format!("m.toml:25:21: {UNFIT} (found at env=ant)")
    );
    // In a profile.
    let profile = "[profiles.small]\nparams = { policy = { epochs = 3 } }\n[stages.reward]";
    let chosen = Overrides {
        profile: Some("small".to_owned()),
        ..Overrides::default()
    };
    let plain = [PLAIN, (", series = \"method\"", "")];
    let edits = [plain[0], plain[1], ("[stages.reward]", profile)];
    assert_eq!(with(&edits, &chosen), format!("m.toml:24:32: {UNFIT}"));
    // On the command line: an option is its own place.
    assert_eq!(
        with(&plain, &set("stages.policy.params.epochs=3")),
        format!("--set stages.policy.params.epochs=3: {UNFIT}")
    );
    assert_eq!(
        with(
            &[(METHOD, "method = \"${method}\", epochs = 3")],
            &set("stages.policy.params.method=noisy-bc")
        )
        .split(" (")
        .next()
        .unwrap(),
        format!("--set stages.policy.params.method=noisy-bc: {UNFIT}")
    );
    // In the value of an axis, of the manifest and of the command line.
    let axis = ("[axes]", "[axes]\nduration = [3, 10]");
    let edits = [
        axis,
        (
            METHOD,
            "method = \"noisy-bc\", epochs = \"${duration}\", noisy_bc = { rounds = 5 }",
        ),
        plain[1],
    ];
    assert_eq!(
        only(&edits),
        format!("m.toml:5:13: {UNFIT} (found at duration=3)")
    );
    let given = Overrides {
        axes: vec!["duration=3".to_owned()],
        ..Overrides::default()
    };
    let edits = [("[axes]", "[axes]\nduration = [10]"), edits[1], edits[2]];
    assert_eq!(
        with(&edits, &given),
        format!("--axis duration=3: {UNFIT} (found at duration=3)")
    );
    // That an axis names the method is not what is wrong with a number.
    assert_eq!(
        only(&[
            ("[\"bc\", \"rbc\"]", "[\"bc\", \"noisy-bc\"]"),
            (
                METHOD,
                "method = \"${method}\", epochs = 3, noisy_bc = { rounds = 5 }"
            ),
        ]),
        format!("m.toml:22:68: {UNFIT} (found at method=noisy-bc)")
    );
}

#[test]
fn a_stage_that_cannot_be_read_is_not_missed_by_others() {
    assert_eq!(
        with(&[], &set("stages.demos=3")),
        "--set stages.demos=3: stage `demos` must be a table, not a whole number"
    );
}

#[test]
fn of_two_that_exclude_each_other_the_later_is_the_place() {
    assert_eq!(
        only(&[("samples = 1000", "samples = 1000, episodes = 3")]),
        "m.toml:10:77: `episodes`: `samples` and `episodes` are both given (give one of the two)"
    );
    assert_eq!(
        with(
            &[("samples = 1000", "episodes = 3")],
            &set("stages.demos.params.samples=1000")
        ),
        "--set stages.demos.params.samples=1000: `episodes`: `samples` and `episodes` are both given (give one of the two)"
    );
    // What a stage needs of another.
    assert_eq!(
        with(
            &[("validation = 0.1", "validation = 0.1, samples = 900")],
            &set("stages.parts.params.validation=0.5")
        ),
        "--set stages.parts.params.validation=0.5: `samples`: 900 samples beside a share of 0.5 for validation need 1800 \
         rows, and `corrupted` gives 1000 (ask for fewer, or set `samples` of stage `demos` to 1800 or more)"
    );
}

#[test]
fn a_log_scale_is_refused_where_an_axis_holds_what_it_cannot_show() {
    let none: [String; 0] = [];
    let log = |more: &str| (", series =", format!(", x_scale = \"log\"{more}, series ="));
    let (old, new) = log("");
    assert_eq!(
        only(&[(old, &new)]),
        "m.toml:30:51: `x_scale`: a log scale has no place for `0`, which column `epsilon` holds (leave it out with \
         `where = { epsilon = [ … ] }`, or set `x_scale = \"linear\"`)"
    );
    // Where the value is left out, or the axis has it in other runs only.
    let (_, filtered) = log(", where = { epsilon = 0.1 }");
    assert_eq!(said(&[(old, &filtered)]), none);
    let given = Overrides {
        axes: vec!["epsilon=0.1,0.2".to_owned()],
        ..Overrides::default()
    };
    assert_eq!(said_with(&[(old, &new)], &given), none);
}

#[test]
fn an_animation_is_called_what_its_format_is() {
    let film = |parameters: &str, name: &str| {
        let stage = format!(
            "[stages.film]\nkind = \"render\"\ninputs = {{ policy = \"policy\" }}\nparams = {{ env = \"${{env}}\"{parameters} }}\n\
             publish = {{ animation = \"${{env}}-${{epsilon}}-${{method}}{name}\" }}\n[stages.figure]"
        );
        said(&[("[stages.figure]", &stage)])
    };
    let none: [String; 0] = [];
    assert_eq!(film("", ".gif"), none);
    assert_eq!(film(", format = \"apng\"", ".PNG"), none);
    assert_eq!(
        film(", format = \"svg\"", ".gif"),
        [
            "m.toml:31:25: output `animation` is a .svg file here, and the path is `hopper-0-bc.gif` (let the path end in .svg, or \
             set `format` to what the path says)"
        ]
    );
    assert_eq!(film("", ".mp4").len(), 1);
}

//! What is said of a study with the built-in kinds when something in it is wrong: one message a mistake, with what is right.

use provenir::manifest::{Overrides, load};
use provenir::registry::Registry;

use super::Project;

/// Nothing is wrong with it.
const STUDY: &str = r#"format = 1
[pipeline]
name = "study"
[axes]
env = ["hopper", "ant"]
epsilon = [0.0, 0.1]
method = ["bc", "rbc"]
[stages.demos]
kind = "collect"
params = { env = "${env}", expert = "e.parquet", samples = 1000, seed = 1 }
[stages.corrupted]
kind = "corrupt"
inputs = { demos = "demos" }
params = { outlier = "boundary", fraction = "${epsilon}", seed = 2 }
[stages.parts]
kind = "split"
inputs = { demos = "corrupted" }
params = { validation = 0.1 }
[stages.policy]
kind = "train"
inputs = { demos = "parts.train", validation = "parts.validation" }
params = { method = "${method}", epochs = 10 }
[stages.reward]
kind = "evaluate"
inputs = { policy = "policy" }
params = { env = "${env}", trials = 20, seed = 4 }
[stages.figure]
kind = "plot"
inputs = { table = ["reward", "demos.episodes"] }
params = { x = "epsilon", y = "return", series = "method", columns = "env" }
publish = { svg = "figures/${stage}.svg" }
"#;

/// What is said of the study after some edits, each a text that occurs once and what stands in its place.
pub(super) fn said(edits: &[(&str, &str)]) -> Vec<String> {
    said_with(edits, &Overrides::default())
}

/// The same with options of the command line.
pub(super) fn said_with(edits: &[(&str, &str)], overrides: &Overrides) -> Vec<String> {
    let mut text = STUDY.to_owned();
    for (old, new) in edits {
        assert_eq!(text.matches(old).count(), 1, "`{old}` occurs once");
        text = text.replace(old, new);
    }
    let project = Project::new(&text);
    project.write("e.parquet", "");
    let registry = Registry::new(provenir_kinds::all());
    let found = match load(&project.path("m.toml"), &registry, overrides) {
        Ok(plan) => plan.warnings,
        Err(found) => found,
    };
    let folder = project.path("");
    found
        .to_string()
        .lines()
        .map(|line| {
            line.replace(folder.as_str(), "")
                .trim_start_matches('/')
                .to_owned()
        })
        .collect()
}

/// The only thing that is said.
pub(super) fn only(edits: &[(&str, &str)]) -> String {
    let mut said = said(edits);
    assert_eq!(said.len(), 1, "{edits:?}: {said:#?}");
    said.remove(0)
}

#[test]
fn nothing_is_said_of_what_is_right() {
    let none: [String; 0] = [];
    assert_eq!(said(&[]), none);
    assert_eq!(
        said(&[(
            "columns = \"env\"",
            "columns = \"env\", labels = { bc = \"BC\", ant = \"Ant\", epsilon = \"ε\", \"demos.episodes\" = \"expert\" }, \
             where = { epsilon = [0, 0.1] }, order = [\"trimmed\", \"rbc\"]"
        )]),
        none
    );
}

/// What stands in the study, what is written in its place, and the beginning of what is said.
const MISTAKES: &[(&str, &str, &str)] = &[
    // Names where they are declared and where they are used.
    (
        "outlier = ",
        "outleir = ",
        "14:12: unknown parameter `outleir` (did you mean `outlier`?)",
    ),
    (
        "[stages.corrupted]",
        "[stages.corupted]",
        "17:20: there is no stage `corrupted` (did you mean `corupted`?)",
    ),
    (
        "[stages.demos]",
        "[stages.dmeos]",
        "13:20: there is no stage `demos` (did you mean `dmeos`?)",
    ),
    (
        "\"demos\" }",
        "\"deoms\" }",
        "13:20: there is no stage `deoms` (did you mean `demos`?)",
    ),
    (
        "[stages.demos]",
        "[stages.\"de.mos\"]",
        "8:9: the stage name `de.mos` holds `.`",
    ),
    (
        "[stages.demos]",
        "[stages.\"d\u{435}mos\"]",
        "8:9: the stage name `d\u{435}mos` holds `\u{435}` (U+0435), which is not the `e` that it looks like",
    ),
    (
        "\"demos\" }",
        "\"dem\u{43e}s\" }",
        "13:20: there is no stage `dem\u{43e}s` (did you mean `demos`? its `\u{43e}` is U+043E, which is not the `o` of a keyboard)",
    ),
    (
        "kind = \"corrupt\"",
        "kind = \"corupt\"",
        "12:8: there is no kind `corupt` (did you mean `corrupt`?)",
    ),
    (
        "\nepsilon =",
        "\nepsilom =",
        "14:46: there is no axis `epsilon` (did you mean `epsilom`?)",
    ),
    (
        "\nenv =",
        "\nenvs =",
        "10:19: there is no axis `env` (did you mean `envs`?)",
    ),
    (
        "[axes]",
        "[axis]",
        "4:2: `axis` is no key of a manifest (did you mean `axes`?)",
    ),
    (
        "parts.train",
        "parts.trian",
        "21:27: stage `parts` (kind `split`) has no output `trian` (did you mean `train`?)",
    ),
    // Values, and columns that they would have given.
    (
        "\"${epsilon}\"",
        "5",
        "14:45: `fraction`: must be at most 1, is 5",
    ),
    (
        "[0.0, 0.1]",
        "[0.0, \"a\"]",
        "6:17: `fraction`: expected a number, found \"a\"",
    ),
    (
        "\"${method}\"",
        "\"b\u{441}\"",
        "22:21: `method`: \"b\u{441}\" is not one of",
    ),
    (
        "\"${method}\"",
        "\"${methods}\"",
        "22:22: there is no axis `methods` (did you mean `method`?)",
    ),
    (
        "epochs = 10",
        "epochs = 24e3",
        "22:43: `epochs`: expected a whole number, found 24000.0 (write 24000)",
    ),
    (
        "epochs = 10",
        "epochs = 10, hidden = 64",
        "22:56: `hidden`: expected an array, found 64 (write [64])",
    ),
    // Values that cannot be read: what they would have given is not missed.
    (
        "\"${epsilon}\"",
        "nan",
        "14:45: numbers must be finite, this is nan",
    ),
    ("[0.0, 0.1]", "[nan]", "6:12: numbers must be finite, this is nan"),
    (
        "samples = 1000",
        "samples = 99999999999999999999",
        "10:60: whole numbers are between",
    ),
    (
        "env = [\"hopper\", \"ant\"]",
        "env = [{ name = \"hopper\", n = inf }]\nother = [1]",
        "5:31: numbers must be finite, this is inf",
    ),
    (
        "{ policy = \"policy\" }",
        "{ policy = { stage = \"policy\", at = { epsilon = nan } } }",
        "25:58: numbers must be finite, this is nan",
    ),
    // Axes in the marks of another language, and short forms.
    (
        "\"${epsilon}\"",
        "\"$epsilon\"",
        "14:45: `fraction`: expected a number, found \"$epsilon\" (did you mean `\"${epsilon}\"`?)",
    ),
    (
        "\"${epsilon}\"",
        "\"epsilon\"",
        "14:45: `fraction`: expected a number, found \"epsilon\" (did you mean `\"${epsilon}\"`?)",
    ),
    (
        "\"e.parquet\"",
        "\"{env}/{{epsilon}}.parquet\"",
        "10:37: `expert`: there is no file `{env}/{{epsilon}}.parquet` (did you mean `\"${env}/${epsilon}.parquet\"`?)",
    ),
    (
        "figures/${stage}.svg",
        "figures/${stge}.svg",
        "31:28: there is no axis `stge` (did you mean `stage`?)",
    ),
    (
        "figures/${stage}.svg",
        "figures/$stage.svg",
        "31:19: warning: the text is taken as it stands: what is filled in is written `${…}` (did you mean `\"figures/${stage}.svg\"`?)",
    ),
    (
        "epochs = 10",
        "epochs = 10, lr = 1e-3",
        "22:47: unknown parameter `lr` (did you mean `learning_rate`?)",
    ),
    (
        "epochs = 10",
        "epochs = 10, tau_steps = 3",
        "22:47: unknown parameter `tau_steps` (it belongs to `rbc`: `rbc = { tau_steps = … }`)",
    ),
    (
        "kind = \"corrupt\"",
        "kind = '\"corupt\"'",
        "12:8: there is no kind `\"corupt\"` (did you mean `corrupt`?)",
    ),
    (
        "kind = \"corrupt\"",
        "kind = stage \"corupt\"",
        "12:8: a text is written in quotes (write \"corupt\" alone, or 'stage \"corupt\"' if all of it is the text)",
    ),
    (
        "[stages.corrupted]",
        "[stage \"corrupted\"]",
        "11:7: the name `stage \"corrupted\"` holds a space (write `[stages.corrupted]`)",
    ),
    // Inputs.
    (
        "{ policy = \"policy\" }",
        "{ policy = [\"policy\", \"policy\"] }",
        "25:21: input `policy` takes one artifact, not a list (name one stage;",
    ),
    (
        "{ policy = \"policy\" }",
        "{ policy = \"reward\" }",
        "25:21: stages feed each other in a cycle: reward → reward",
    ),
    (
        "{ policy = \"policy\" }",
        "{ policy = \"\" }",
        "25:21: an empty text names no stage (there is",
    ),
    (
        "\"e.parquet\"",
        "\"\"",
        "10:37: `expert`: the path of a file must not be empty",
    ),
    // Selectors that select nothing, or everything.
    (
        "[stages.reward]",
        "[[stages.policy.override]]\nwhere = {}\nparams = { epochs = 3 }\n[stages.reward]",
        "24:9: an empty `where` leaves nothing out: the override would win everywhere (put its parameters into the stage's `params`",
    ),
    (
        "[stages.reward]",
        "[[stages.policy.override]]\nwhere = { method = [] }\nparams = { epochs = 3 }\n[stages.reward]",
        "24:20: `method` is given no value, so that nothing matches",
    ),
    // Copies that are called what they are not.
    (
        "figures/${stage}.svg",
        "figures/${stage}.pdf",
        "31:19: output `svg` is a .svg file, and the path ends in `.pdf` (let the path end in `.svg`;",
    ),
    (
        "figures/${stage}.svg",
        "figures/${stage}",
        "31:19: output `svg` is a .svg file, and the path has no extension",
    ),
    // Keys.
    (
        "inputs = { demos = \"demos\" }",
        "input = { demos = \"demos\" }",
        "13:1: `input` is no key of a stage (did you mean `inputs`?)",
    ),
    (
        "inputs = { demos = \"demos\" }",
        "inputs = \"demos\"",
        "13:10: `inputs` must be a table, not a text (write `inputs = { NAME = \"demos\" }`)",
    ),
    (
        "params = { outlier = \"boundary\", ",
        "outlier = \"boundary\"\nparams = { ",
        "14:1: `outlier` is no key of a stage (it is a parameter: `params = { outlier = … }`, or `params.outlier = …`)",
    ),
    (
        "params = { outlier",
        "parms = { outlier",
        "14:1: `parms` is no key of a stage (did you mean `params`?)",
    ),
    (
        "kind = \"corrupt\"",
        "knid = \"corrupt\"",
        "12:1: `knid` is no key of a stage (did you mean `kind`?)",
    ),
    (
        "format = 1",
        "fromat = 1",
        "1:1: `fromat` is no key of a manifest (did you mean `format`?)",
    ),
    (
        "[pipeline]",
        "[pipelne]",
        "2:2: `pipelne` is no key of a manifest (did you mean `pipeline`?)",
    ),
    // Forms that are written elsewhere.
    (
        "{ policy = \"policy\" }",
        "{ policy = \"policy[method=rbx]\" }",
        "25:21: axis `method` has no value `rbx`; `policy[method=rbx]` names no stage (a slice is a table: `{ stage = \"policy\", at = { method = \"rbc\" } }`)",
    ),
    (
        "{ policy = \"policy\" }",
        "{ policy = \"policy[epsilon=0.10]\" }",
        "25:21: `policy[epsilon=0.10]` names no stage (a slice is a table: `{ stage = \"policy\", at = { epsilon = 0.1 } }`)",
    ),
    (
        "\"demos.episodes\"",
        "\"demos.episodes as expert\"",
        "29:31: `demos.episodes as expert` names no stage (a name is given in a table: `{ stage = \"demos.episodes\", as = \"expert\" }`)",
    ),
    (
        "\"demos.episodes\"] }",
        "\"demos.episodes\"], as = \"x\" }",
        "29:50: kind `plot` has no input `as` (`as` names a member of a list of inputs: `[\"STAGE\", { stage = \"STAGE\", as = \"NAME\" }]`)",
    ),
    (
        "columns = \"env\" }",
        "columns = \"env\" }\nas = \"x\"",
        "31:1: `as` is no key of a stage (`as` names a member of a list of inputs: `[\"STAGE\", { stage = \"STAGE\", as = \"NAME\" }]`)",
    ),
    (
        "{ policy = \"policy\" }",
        "{ policy = { stage = \"policy\", as = \"x\" } }",
        "25:46: `as` names a member of a list, and input `policy` takes one artifact (leave `as` out)",
    ),
    (
        "columns = \"env\" }",
        "columns = \"env\" }\nover = \"seed\"",
        "31:8: `over` must be an array, not a text (write `over = [\"seed\"]`)",
    ),
    (
        "columns = \"env\" }",
        "columns = \"env\" }\nexclude = { env = \"ant\" }",
        "31:11: `exclude` must be an array, not a table (write `exclude = [{ env = \"ant\" }]`)",
    ),
    (
        "method = [\"bc\", \"rbc\"]",
        "method = \"bc\"",
        "7:10: axis `method` must be an array, not a text (write `method = [\"bc\"]`)",
    ),
    (
        "method = [\"bc\", \"rbc\"]",
        "method = { range = [1, 3] }",
        "7:10: axis `method` must be an array, not a table (write its values one by one, `method = [1, 2, 3]`; a value that is a table has a `name`)",
    ),
];

#[test]
fn a_mistake_is_said_once_although_more_follows_from_it() {
    let mut wrong = Vec::new();
    for &(old, new, message) in MISTAKES {
        let found = said(&[(old, new)]).join("\n");
        let expected = format!("m.toml:{message}");
        if !(found.starts_with(&expected) && found.lines().count() == 1) {
            wrong.push(format!("{old} → {new}:\n{found}\nbut not {expected}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_for_one_environment_is_not_used_in_another() {
    let other = "params = { env = \"walker2d\", trials";
    let evaluate = "params = { env = \"${env}\", trials";
    assert_eq!(
        only(&[(evaluate, other)]),
        "m.toml:26:18: `env` is `walker2d`, and the environment of `policy` is `hopper` (write `env = \"${env}\"`, as stage `demos` does)"
    );
    // Through one environment that is written out.
    assert_eq!(
        only(&[
            (
                "params = { env = \"${env}\", expert",
                "params = { env = \"ant\", expert"
            ),
            (", columns = \"env\"", ""),
            (evaluate, other),
        ]),
        "m.toml:26:18: `env` is `walker2d`, and the environment of `policy` is `ant` (write `env = \"ant\"`, or wire what has the environment `walker2d` to `policy`)"
    );
    // An expert of a stage, and nothing of what would follow.
    assert_eq!(
        only(&[
            (
                "[stages.demos]",
                "[stages.expert]\nkind = \"expert\"\nparams = { env = \"hopper\" }\n[stages.demos]\ninputs = { expert = \"expert\" }"
            ),
            (
                "params = { env = \"${env}\", expert = \"e.parquet\"",
                "params = { env = \"ant\""
            ),
            (", columns = \"env\"", ""),
            (evaluate, "params = { env = \"hopper\", trials"),
        ]),
        "m.toml:14:18: `env` is `ant`, and the environment of `expert` is `hopper` (write `env = \"hopper\"`, or wire what has the environment `ant` to `expert`)"
    );
    // Two inputs that must go together.
    assert_eq!(
        only(&[
            (
                "[stages.corrupted]",
                "[stages.others]\nkind = \"collect\"\nparams = { env = \"walker2d\", expert = \"e.parquet\", samples = 10 }\n[stages.corrupted]"
            ),
            ("validation = \"parts.validation\"", "validation = \"others\""),
        ]),
        "m.toml:24:48: the environment of what arrives at `validation` is `walker2d`, and at `demos` it is `hopper` (wire both to what has the same environment)"
    );
}

#[test]
fn a_split_takes_no_more_than_is_collected() {
    let none: [String; 0] = [];
    let split = |parameters: &str| said(&[("validation = 0.1", parameters)]);
    assert_eq!(split("validation = 0.1, samples = 900"), none);
    assert_eq!(split("validation = 0.0, samples = 1000"), none);
    assert_eq!(split("samples = 900"), none);
    assert_eq!(
        split("validation = 0.5, samples = 800"),
        [
            "m.toml:18:40: `samples`: 800 samples beside a share of 0.5 for validation need 1600 rows, and `corrupted` gives 1000 (ask for fewer, or set `samples` of stage `demos` to 1600 or more)"
        ]
    );
    assert_eq!(
        split("samples = 1001, validation = 0"),
        [
            "m.toml:18:22: `samples`: 1001 rows are asked for, and `corrupted` gives 1000 (ask for fewer, or set `samples` of stage `demos` to 1001 or more)"
        ]
    );
}

#[test]
fn a_figure_names_values_that_arrive() {
    let plot = |parameters: &str| only(&[("columns = \"env\"", &format!("columns = \"env\", {parameters}"))]);
    assert_eq!(
        plot("labels = { bc = \"BC\", rcb = \"RBC\" }"),
        "m.toml:30:99: `rcb` is neither a column nor a value of what is drawn (did you mean `rbc`?)"
    );
    assert_eq!(
        plot("where = { method = \"rbx\" }"),
        "m.toml:30:96: `where.method`: no row that arrives has `rbx` in column `method` (did you mean `rbc`?)"
    );
    assert_eq!(
        plot("where = { epsilon = [0.0, 0.2] }"),
        "m.toml:30:97: `where.epsilon`: no row that arrives has `0.2` in column `epsilon` (there is `0`, `0.1`)"
    );
    assert_eq!(
        plot("reference = [{ label = \"expert\", source = \"demos\" }]"),
        "m.toml:30:119: `reference[0].source`: nothing that arrives is called \"demos\" (did you mean `demos.episodes`?)"
    );
}

#[test]
fn names_are_checked_where_they_do_not_count_today() {
    let profile = r#"publish = { svg = "figures/${stage}.svg" }
[[stages.policy.override]]
where = { method = "rbc" }
params = { ephocs = 3, rbc = { objectve = "min-max" } }
[profiles.small]
axes = { env = ["hopper"], epsilom = [0.1] }
params = { policy = { epoch = 3, hidden = "${width}" }, polcy = { epochs = 3 } }
exclude = [{ methods = "bc" }]
publish = { figure = { sgv = "x.svg" } }
"#;
    assert_eq!(
        said(&[("publish = { svg = \"figures/${stage}.svg\" }\n", profile)]),
        [
            "m.toml:34:12: unknown parameter `ephocs` (did you mean `epochs`?)",
            "m.toml:34:32: unknown parameter `objectve` (did you mean `objective`?)",
            "m.toml:36:28: there is no axis `epsilom` (did you mean `epsilon`?)",
            "m.toml:37:23: unknown parameter `epoch` (did you mean `epochs`?)",
            "m.toml:37:44: there is no axis `width` (there is `env`, `epsilon`, `method`)",
            "m.toml:37:57: there is no stage `polcy` (did you mean `policy`?)",
            "m.toml:38:14: there is no axis `methods` (did you mean `method`?)",
            "m.toml:39:24: kind `plot` has no output `sgv` (did you mean `svg`?)",
        ]
    );
}

#[test]
fn copies_that_meet_are_named_with_their_ports() {
    assert_eq!(
        only(&[(
            "{ validation = 0.1 }",
            "{ validation = 0.1 }\npublish = { train = \"${env}-${epsilon}.parquet\", validation = \"./${env}-${epsilon}.parquet\" }"
        )]),
        "m.toml:19:63: `hopper-0.parquet` would be written twice: by `parts[env=hopper, epsilon=0].train` and by \
         `parts[env=hopper, epsilon=0].validation` (give each its own path)"
    );
}

#[test]
fn a_place_far_down_is_shown_without_all_that_lies_between() {
    let values: Vec<String> = (0..400).map(|value| format!("{}.5", value - 399)).collect();
    let text = STUDY.replace("[0.0, 0.1]", &format!("[\n{}\n]", values.join(",\n")));
    let project = Project::new(&text);
    project.write("e.parquet", "");
    let registry = Registry::new(provenir_kinds::all());
    let found = load(&project.path("m.toml"), &registry, &Overrides::default())
        .err()
        .unwrap();
    let shown = found.render(100, false);
    let longest = shown.split("\n\n").map(|shown| shown.lines().count()).max();
    assert!(longest <= Some(14), "{longest:?} lines\n{shown}");
}

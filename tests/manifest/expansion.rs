//! What manifests expand to. Expected cells and wirings follow from the design's rules, written out by hand.

use serde_json::json;

use super::{Overrides, Project, cell, cells, inputs, plan};

const HEAD: &str = "format = 1\n[pipeline]\nname = \"p\"\n";

/// A pipeline of every shape: broadcast, one to one, gather, slice, union.
pub(crate) const PIPELINE: &str = r#"
format = 1
[pipeline]
name = "corruption"

[axes]
env     = ["hopper", "ant"]
epsilon = [0.0, 0.1]
method  = ["plain", "robust"]

[stages.demos]
kind   = "make"
params = { count = 10, tag = "demos of ${env}" }

[stages.corrupted]
kind   = "refine"
inputs = { samples = "demos" }
params = { fraction = "${epsilon}" }

[stages.policy]
kind   = "refine"
inputs = { samples = "corrupted", reference = "demos" }
params = { fraction = 0.5, method = "${method}" }

[[stages.policy.override]]
where  = { method = "robust", epsilon = [0.1] }
params = { robust = { rounds = 7 } }

[stages.figure]
kind    = "draw"
inputs  = { table = ["policy", { stage = "policy", at = { epsilon = 0 }, as = "oracle" }, "demos.timing"] }
params  = { x = "epsilon" }
over    = ["env"]
publish = { svg = "figures/${stage}-${env}.svg" }
"#;

#[test]
fn axes_flow_from_inputs_that_take_one_and_are_gathered_by_inputs_that_take_many() {
    let plan = plan(PIPELINE);
    assert_eq!(cells(&plan, "demos"), ["demos[env=hopper]", "demos[env=ant]"]);
    assert_eq!(
        cells(&plan, "corrupted"),
        [
            "corrupted[env=hopper, epsilon=0]",
            "corrupted[env=hopper, epsilon=0.1]",
            "corrupted[env=ant, epsilon=0]",
            "corrupted[env=ant, epsilon=0.1]",
        ]
    );
    assert_eq!(cells(&plan, "policy").len(), 8);
    assert_eq!(cells(&plan, "figure"), ["figure[env=hopper]", "figure[env=ant]"]);
    assert_eq!(
        inputs(&plan, "policy[env=ant, epsilon=0.1, method=plain]"),
        [
            "samples <- corrupted[env=ant, epsilon=0.1].samples {} samples",
            "reference <- demos[env=ant].samples {} reference",
        ]
    );
    assert_eq!(
        inputs(&plan, "figure[env=ant]"),
        [
            "table <- demos[env=ant].timing {} demos.timing",
            "table <- policy[env=ant, epsilon=0, method=plain].samples {epsilon=0, method=plain} policy",
            "table <- policy[env=ant, epsilon=0, method=robust].samples {epsilon=0, method=robust} policy",
            "table <- policy[env=ant, epsilon=0.1, method=plain].samples {epsilon=0.1, method=plain} policy",
            "table <- policy[env=ant, epsilon=0.1, method=robust].samples {epsilon=0.1, method=robust} policy",
            "table <- policy[env=ant, epsilon=0, method=plain].samples {method=plain} oracle",
            "table <- policy[env=ant, epsilon=0, method=robust].samples {method=robust} oracle",
        ]
    );
    let figure = &plan.cells[cell(&plan, "figure[env=ant]")];
    assert_eq!(figure.publish[0].path, "figures/figure-ant.svg");
    let stage = plan.stage_of(cell(&plan, "figure[env=ant]"));
    assert!(stage.volatile, "it takes timings");
    assert_eq!(stage.inputs.len(), 3);
}

#[test]
fn whole_references_keep_their_type_and_overrides_win_where_they_match() {
    let plan = plan(PIPELINE);
    let full = |name| plan.cells[cell(&plan, name)].parameters.full.clone();
    assert_eq!(full("demos[env=ant]")["tag"], json!("demos of ant"));
    assert_eq!(full("corrupted[env=ant, epsilon=0.1]")["fraction"], json!(0.1));
    assert_eq!(
        full("policy[env=ant, epsilon=0.1, method=robust]")["robust"]["rounds"],
        json!(7)
    );
    assert_eq!(
        full("policy[env=ant, epsilon=0, method=robust]")["robust"]["rounds"],
        json!(5)
    );
    assert_eq!(
        full("policy[env=ant, epsilon=0.1, method=plain]")["robust"]["rounds"],
        json!(5)
    );
}

#[test]
fn parameters_are_shared_by_cells_that_differ_elsewhere() {
    let plan = plan(PIPELINE);
    let parameters = |name| plan.cells[cell(&plan, name)].parameters.clone();
    assert!(std::sync::Arc::ptr_eq(
        &parameters("corrupted[env=ant, epsilon=0.1]"),
        &parameters("corrupted[env=hopper, epsilon=0.1]"),
    ));
}

#[test]
fn the_order_of_stages_and_axes_and_their_layout_change_no_cell() {
    let turned = r#"
[axes]
method  = ["plain", "robust"]
env     = ["hopper", "ant"]
epsilon = [0, 1e-1]   # equal by number

[stages.policy]
kind = "refine"
params = { method = "${method}", fraction = 0.50 }
inputs = { reference = "demos", samples = "corrupted.samples" }
override = [{ params = { robust = { rounds = 7 } }, where = { epsilon = 0.1, method = "robust" } }]

[stages.corrupted]
params.fraction = "${epsilon}"
inputs.samples = { stage = "demos", port = "samples" }
kind = "refine"

[stages.demos]
params = { tag = "demos of ${env}", count = 10 }
kind   = "make"
"#;
    let turned = plan(&format!("{HEAD}{turned}"));
    let first = plan(PIPELINE);
    let seen = |plan: &super::Plan| {
        let mut seen: Vec<String> = (0..plan.cells.len())
            .filter(|cell| plan.stage_of(*cell).name != "figure")
            .map(|cell| {
                let mut labels: Vec<String> = plan
                    .stage_of(cell)
                    .axes
                    .iter()
                    .zip(&plan.cells[cell].labels)
                    .map(|(axis, label)| format!("{axis}={label}"))
                    .collect();
                labels.sort();
                let canonical = &plan.cells[cell].parameters.canonical;
                let sources: Vec<&str> = plan.cells[cell]
                    .inputs
                    .iter()
                    .map(|input| &*input.source)
                    .collect();
                format!("{} {labels:?} {canonical} {sources:?}", plan.stage_of(cell).name)
            })
            .collect();
        seen.sort();
        seen
    };
    assert_eq!(seen(&first), seen(&turned));
}

#[test]
fn stages_stand_after_what_they_take() {
    let plan = plan(PIPELINE);
    for (index, cell) in plan.cells.iter().enumerate() {
        assert!(cell.inputs.iter().all(|input| input.producer < index));
        assert!(plan.stages[cell.stage].cells.contains(&index));
    }
}

#[test]
fn renaming_a_stage_changes_a_source_only_where_a_union_shows_it() {
    let renamed = PIPELINE
        .replace("\"policy\"", "\"learner\"")
        .replace("stages.policy", "stages.learner");
    let (first, second) = (plan(PIPELINE), plan(&renamed));
    let sources = |plan: &super::Plan, kind: &str| -> Vec<String> {
        let mut sources: Vec<String> = plan
            .cells
            .iter()
            .filter(|cell| plan.stages[cell.stage].kind.name() == kind)
            .flat_map(|cell| cell.inputs.iter().map(|input| input.source.to_string()))
            .collect();
        sources.sort();
        sources.dedup();
        sources
    };
    assert_eq!(sources(&first, "refine"), sources(&second, "refine"));
    assert_eq!(sources(&first, "draw"), ["demos.timing", "oracle", "policy"]);
    assert_eq!(sources(&second, "draw"), ["demos.timing", "learner", "oracle"]);
}

#[test]
fn a_port_that_takes_one_producer_names_it_after_itself() {
    let alone = format!(
        "{HEAD}[axes]\nepsilon = [0, 0.1]\n{DATA}{FINE}[stages.figure]\nkind = \"draw\"\n\
         inputs = {{ table = [\"fine\"] }}\nparams = {{ x = \"epsilon\" }}\n"
    );
    assert_eq!(
        inputs(&plan(&alone), "figure"),
        [
            "table <- fine[epsilon=0].samples {epsilon=0} table",
            "table <- fine[epsilon=0.1].samples {epsilon=0.1} table",
        ]
    );
    let named = alone.replace("[\"fine\"]", "{ stage = \"fine\", as = \"mine\" }");
    assert_eq!(
        inputs(&plan(&named), "figure")[0],
        "table <- fine[epsilon=0].samples {epsilon=0} mine"
    );
}

const DATA: &str = "[stages.data]\nkind = \"make\"\nparams = { count = 10 }\n";
const FINE: &str = "[stages.fine]\nkind = \"refine\"\ninputs = { samples = \"data\" }\nparams = { fraction = \"${epsilon}\" }\n";

#[test]
fn gathered_inputs_are_sorted_by_axis_name_and_value_not_by_the_manifest() {
    let manifest = format!(
        "{HEAD}[axes]\nz = [10, 9]\na = [\"y\", \"x\"]\n[stages.data]\nkind = \"make\"\n\
         params = {{ count = 10, seed = \"${{z}}\", tag = \"${{a}}\" }}\n\
         [stages.figure]\nkind = \"draw\"\ninputs = {{ table = \"data\" }}\nparams = {{ x = \"z\" }}\n"
    );
    assert_eq!(
        inputs(&plan(&manifest), "figure"),
        [
            "table <- data[z=9, a=x].samples {a=x, z=9} table",
            "table <- data[z=10, a=x].samples {a=x, z=10} table",
            "table <- data[z=9, a=y].samples {a=y, z=9} table",
            "table <- data[z=10, a=y].samples {a=y, z=10} table",
        ]
    );
}

#[test]
fn tables_as_axis_values_have_a_label_and_fields() {
    let project = Project::new(&format!(
        "{HEAD}[axes]\nenv = [{{ name = \"hopper\", size = 3, note = {{ text = \"h\" }} }}, {{ name = \"ant\", size = 7, note = {{ text = \"a\" }} }}]\n\
         [stages.data]\nkind = \"make\"\nparams = {{ count = \"${{env.size}}\", tag = \"${{env}}: ${{env.note.text}} $${{env}}\" }}\n\
         publish = {{ samples = \"out/${{pipeline}}-${{stage}}-${{env}}-${{env.size}}.parquet\" }}\n"
    ));
    let plan = project.plan();
    assert_eq!(cells(&plan, "data"), ["data[env=hopper]", "data[env=ant]"]);
    let ant = &plan.cells[cell(&plan, "data[env=ant]")];
    assert_eq!(ant.parameters.full["count"], json!(7));
    assert_eq!(ant.parameters.full["tag"], json!("ant: a ${env}"));
    assert_eq!(ant.publish[0].path, "out/p-data-ant-7.parquet");
    // On the command line a name stands for its table.
    let one = project.plan_with(&Overrides {
        axes: vec!["env=ant".to_owned()],
        ..Overrides::default()
    });
    assert_eq!(cells(&one, "data"), ["data[env=ant]"]);
    assert_eq!(one.cells[0].parameters.full["count"], json!(7));
}

#[test]
fn excluded_cells_are_gone_with_everything_that_varies_over_the_same_axes() {
    let manifest = PIPELINE.replace(
        "[pipeline]",
        "exclude = [{ env = \"ant\", epsilon = [0.1] }]\n[pipeline]",
    );
    let plan = plan(&manifest);
    assert_eq!(cells(&plan, "corrupted").len(), 3);
    assert_eq!(cells(&plan, "policy").len(), 6);
    assert_eq!(cells(&plan, "demos").len(), 2, "it does not vary over epsilon");
    let gathered = inputs(&plan, "figure[env=ant]");
    assert_eq!(gathered.len(), 5, "{gathered:?}");
}

#[test]
fn an_excluded_combination_may_be_out_of_range() {
    let manifest = format!(
        "format = 1\nexclude = [{{ epsilon = 0.9 }}]\n[pipeline]\nname = \"p\"\n[axes]\nepsilon = [0.1, 0.9]\n{DATA}{FINE}"
    );
    assert_eq!(cells(&plan(&manifest), "fine"), ["fine[epsilon=0.1]"]);
}

#[test]
fn a_manifest_lies_over_what_it_extends() {
    let project = Project::new(
        "format = 1\nextends = \"sub/base.toml\"\n[pipeline]\nname = \"child\"\n[axes]\nepsilon = [0.2]\n\
         [stages.fine]\ninputs = { samples = \"data\" }\nparams = { hidden = [3], robust = { rounds = 2 } }\n",
    );
    project.write(
        "sub/base.toml",
        "format = 1\nextends = \"deep.toml\"\n[axes]\nepsilon = [0, 0.1]\n[stages.fine]\nkind = \"refine\"\n\
             inputs = { samples = { stage = \"data\", port = \"timing\" } }\n\
             params = { fraction = \"${epsilon}\", hidden = [1, 2], robust = { weight = 4 } }\n\
             [[stages.fine.override]]\nwhere = { epsilon = 0.1 }\nparams = { hidden = [9] }\n",
    );
    project.write("sub/deep.toml", format!("{HEAD}{DATA}"));
    let plan = project.plan();
    assert_eq!(plan.pipeline, "child");
    assert_eq!(cells(&plan, "fine"), ["fine[epsilon=0.2]"]);
    let full = &plan.cells[cell(&plan, "fine[epsilon=0.2]")].parameters.full;
    assert_eq!(full["hidden"], json!([3]), "arrays are replaced");
    assert_eq!(
        full["robust"],
        json!({"rounds": 2, "weight": 4.0}),
        "tables are merged"
    );
    assert_eq!(
        inputs(&plan, "fine[epsilon=0.2]"),
        ["samples <- data.samples {} samples"],
        "what is wired to a port is replaced as a whole"
    );
}

#[test]
fn a_profile_wins_over_overrides_and_the_command_line_over_both() {
    let manifest = format!(
        "{HEAD}[axes]\nepsilon = [0, 0.1]\n{DATA}{FINE}[[stages.fine.override]]\nwhere = {{ epsilon = 0.1 }}\n\
         params = {{ hidden = [1], robust = {{ rounds = 3, weight = 3 }} }}\n\
         [profiles.smoke]\naxes = {{ epsilon = [0.1] }}\n\
         params = {{ fine = {{ hidden = [2], robust = {{ rounds = 4 }} }} }}\n\
         publish = {{ fine = {{ samples = \"smoke.parquet\" }} }}\n"
    );
    let project = Project::new(&manifest);
    let full = |overrides: &Overrides| {
        let plan = project.plan_with(overrides);
        plan.cells[cell(&plan, "fine[epsilon=0.1]")]
            .parameters
            .full
            .clone()
    };
    let mut overrides = Overrides::default();
    assert_eq!(full(&overrides)["hidden"], json!([1]));
    overrides.profile = Some("smoke".to_owned());
    assert_eq!(full(&overrides)["hidden"], json!([2]));
    assert_eq!(full(&overrides)["robust"], json!({"rounds": 4, "weight": 3.0}));
    overrides.set = vec![
        "stages.fine.params.robust.rounds=5".to_owned(),
        "stages.data.params.tag=a bare text".to_owned(),
        "stages.data.params.seed=0x10".to_owned(),
    ];
    assert_eq!(full(&overrides)["robust"], json!({"rounds": 5, "weight": 3.0}));
    let plan = project.plan_with(&overrides);
    assert_eq!(cells(&plan, "fine"), ["fine[epsilon=0.1]"]);
    let data = &plan.cells[cell(&plan, "data")];
    assert_eq!(data.parameters.full["tag"], json!("a bare text"));
    assert_eq!(data.parameters.full["seed"], json!(16));
    let fine = &plan.cells[cell(&plan, "fine[epsilon=0.1]")];
    assert_eq!(fine.publish[0].path, "smoke.parquet");
    // Values that a profile or the command line leaves out may still be named.
    overrides.axes = vec!["epsilon=0".to_owned()];
    overrides.set.clear();
    assert_eq!(cells(&project.plan_with(&overrides), "fine"), ["fine[epsilon=0]"]);
}

#[test]
fn values_of_the_command_line_have_the_type_that_they_show() {
    let project = Project::new(&format!(
        "{HEAD}[axes]\nepsilon = [0, 0.1]\nm = [\"plain\"]\n{DATA}[stages.fine]\nkind = \"refine\"\ninputs = {{ samples = \"data\" }}\nparams = {{ fraction = \"${{epsilon}}\", method = \"${{m}}\" }}\n"
    ));
    let plan = project.plan_with(&Overrides {
        axes: vec!["epsilon=0.25, 0.5".to_owned(), "m=robust,'plain'".to_owned()],
        ..Overrides::default()
    });
    assert_eq!(
        cells(&plan, "fine"),
        [
            "fine[epsilon=0.25, m=robust]",
            "fine[epsilon=0.25, m=plain]",
            "fine[epsilon=0.5, m=robust]",
            "fine[epsilon=0.5, m=plain]",
        ]
    );
}

#[test]
fn only_keeps_a_stage_and_its_ancestors() {
    let plan = Project::new(PIPELINE).plan_with(&Overrides {
        only: vec!["corrupted".to_owned()],
        ..Overrides::default()
    });
    let names: Vec<&str> = plan.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["demos", "corrupted"]);
}

#[test]
fn what_is_recorded_is_again_a_manifest_of_the_same_cells() {
    let project = Project::new(&format!(
        "{PIPELINE}\n[profiles.small]\naxes = {{ env = [\"ant\"] }}\nparams = {{ demos = {{ count = 3 }} }}\n"
    ));
    let overrides = Overrides {
        profile: Some("small".to_owned()),
        axes: vec!["epsilon=0,0.1,0.25".to_owned()],
        // The second is laid over an override.
        set: ["weight=2", "rounds=9"]
            .map(|value| format!("stages.policy.params.robust.{value}"))
            .to_vec(),
        ..Overrides::default()
    };
    let plan = project.plan_with(&overrides);
    assert!(
        !plan.resolved.to_string().contains("\"where\":{}"),
        "{}",
        plan.resolved
    );
    let again = Project::new(&toml::to_string(&plan.resolved).expect("it is TOML")).plan();
    let seen = |plan: &super::Plan| -> Vec<String> {
        (0..plan.cells.len())
            .map(|cell| format!("{} {}", plan.name(cell), plan.cells[cell].parameters.full))
            .collect()
    };
    let (mut first, mut second) = (seen(&plan), seen(&again));
    first.sort();
    second.sort();
    assert_eq!(first, second);
    assert!(
        !first.iter().any(|cell| cell.contains("\"rounds\":7")),
        "{first:?}"
    );
    assert!(
        first.iter().any(|cell| cell.contains("epsilon=0.25")),
        "{first:?}"
    );
}

#[test]
fn cells_keep_their_names_where_something_is_laid_over_what_named_an_axis() {
    let project = Project::new(&format!(
        "{HEAD}[axes]\nepsilon = [0, 0.1]\nseed = [1, 2]\n{}[profiles.twice]\nparams = {{ data = {{ seed = \"${{seed}}\" }} }}\n",
        DATA.replace("count = 10", "count = 10, tag = \"at ${epsilon}\"")
    ));
    let names = |profile: Option<&str>, set: &[&str]| -> Vec<String> {
        let overrides = Overrides {
            profile: profile.map(str::to_owned),
            set: set
                .iter()
                .map(|value| format!("stages.data.params.{value}"))
                .collect(),
            ..Overrides::default()
        };
        let plan = project.plan_with(&overrides);
        let again = Project::new(&toml::to_string(&plan.resolved).expect("it is TOML")).plan();
        assert_eq!(cells(&plan, "data"), cells(&again, "data"), "of what is recorded");
        cells(&plan, "data")
    };
    let by_epsilon = ["data[epsilon=0]", "data[epsilon=0.1]"];
    assert_eq!(names(None, &[]), by_epsilon);
    assert_eq!(names(None, &["tag=fixed"]), by_epsilon);
    // What the profile lays over the stage, the command line lays something over.
    let by_both = names(Some("twice"), &[]);
    assert_eq!(by_both.len(), 4);
    assert_eq!(names(Some("twice"), &["seed=7"]), by_both);
    assert_eq!(names(Some("twice"), &["seed=7", "tag=at ${seed}"]), by_both);
}

#[test]
fn fewer_values_of_an_axis_give_cells_of_the_same_names() {
    let project = Project::new(&format!(
        "{HEAD}[axes]\nepsilon = [0, 0.1]\nfold = [1, 2]\nseed = [3]\n{DATA}over = [\"epsilon\"]\n\
         [[stages.data.override]]\nwhere = {{ epsilon = 0.1, fold = 2 }}\nparams = {{ seed = \"${{seed}}\" }}\n"
    ));
    let all = cells(&project.plan(), "data");
    assert_eq!(all.len(), 4);
    let plan = project.plan_with(&Overrides {
        axes: vec!["epsilon=0".to_owned()],
        ..Overrides::default()
    });
    let some = cells(&plan, "data");
    assert_eq!(
        some,
        [
            "data[epsilon=0, fold=1, seed=3]",
            "data[epsilon=0, fold=2, seed=3]"
        ]
    );
    assert!(some.iter().all(|name| all.contains(name)));
    // The override, which holds nowhere, is not recorded; what it names is.
    assert!(
        !plan.resolved.to_string().contains("override"),
        "{}",
        plan.resolved
    );
    let again = Project::new(&toml::to_string(&plan.resolved).expect("it is TOML")).plan();
    assert_eq!(cells(&again, "data"), some);
}

#[test]
fn resources_replace_the_kinds_estimate() {
    let manifest = format!("{HEAD}{DATA}resources = {{ memory = 4096 }}\n");
    let resources = plan(&manifest).cells[0].parameters.resources;
    assert_eq!((resources.cores, resources.memory), (1, 4096));
}

#[test]
fn sources_are_files_relative_to_the_manifest() {
    let project = Project::new(&format!(
        "{HEAD}{}",
        DATA.replace("count = 10", "count = 10, file = \"in/a.txt\"")
    ));
    project.write("in/a.txt", "text");
    let plan = project.plan();
    let sources = &plan.cells[0].parameters.sources;
    assert_eq!(sources[0].pointer, "/file");
    assert!(plan.source_path(&sources[0]).is_file());
    assert!(plan.source_path(&sources[0]).is_absolute());
}

#[test]
fn a_named_copy_may_not_overwrite_a_source() {
    let project = Project::new(&format!(
        "{HEAD}{}publish = {{ samples = \"in/a.parquet\" }}\n",
        DATA.replace("count = 10", "count = 10, file = \"./in/../in/a.parquet\"")
    ));
    project.write("in/a.parquet", "bytes");
    assert_eq!(
        project.problems(&Overrides::default()),
        [
            "m.toml:7:23: `in/a.parquet` is read by this pipeline; a named copy would overwrite it (give the copy another path)"
        ]
    );
}

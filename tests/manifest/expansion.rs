//! What manifests expand to. Expected cells and wirings follow from the design's rules, written out by hand.

use serde_json::json;

use super::{Overrides, Project, cell, cells, inputs, plan};

const HEAD: &str = "format = 1\n[pipeline]\nname = \"p\"\n";

/// A pipeline of every shape: broadcast, one to one, gather, slice, union.
const PIPELINE: &str = r#"
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
    assert_eq!(full("policy[env=ant, epsilon=0.1, method=robust]")["robust"]["rounds"], json!(7));
    assert_eq!(full("policy[env=ant, epsilon=0, method=robust]")["robust"]["rounds"], json!(5));
    assert_eq!(full("policy[env=ant, epsilon=0.1, method=plain]")["robust"]["rounds"], json!(5));
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

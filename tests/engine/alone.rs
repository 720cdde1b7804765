//! Cells that are executed while nothing else is.

use std::collections::BTreeSet;

use crate::context::Context;

/// Four cells that measure, two of them behind others; nine that do not, of which some could use every core.
const STUDY: &str = r#"
format = 1
pipeline.name = "alone"
axes.a = [1, 2]
axes.b = [1, 2, 3]
stages.measured = { kind = "sleep", over = ["a"], params = { value = "${a}", seconds = 0.3, exclusive = true } }
stages.usual = { kind = "sleep", params = { value = "${b}", seconds = 0.1, spare = 7 } }
stages.later = { kind = "sleep", inputs = { one = "usual" }, over = ["a"], params = { seconds = 0.05, value = "${a}" } }
stages.again = { kind = "sleep", inputs = { many = "later" }, over = ["a"], params = { seconds = 0.3, exclusive = true, value = "${a}" } }
stages.total = { kind = "noop", inputs = { many = ["measured", "again"] } }
"#;

fn measures(cell: &str) -> bool {
    cell.starts_with("measured") || cell.starts_with("again")
}

#[test]
fn nothing_runs_beside_a_cell_that_runs_alone() {
    let context = Context::new(STUDY);
    let outcome = context.events(&["--jobs", "3"]).assert_code(0);
    // Those of which it was not said yet that they are finished, and those that can only be waiting to be committed, because
    // another has begun.
    let (mut running, mut over) = (BTreeSet::<String>::new(), BTreeSet::<String>::new());
    let (mut most, mut measured) = (0, 0);
    for event in outcome.events() {
        let cell = || event["cell"].as_str().unwrap().to_owned();
        match event["event"].as_str().unwrap() {
            "cell-started" => {
                if measures(&cell()) {
                    assert!(running.is_empty(), "{} began beside {running:?}", cell());
                    assert_eq!(event["cores"], 3);
                    measured += 1;
                }
                over.extend(running.iter().filter(|cell| measures(cell)).cloned());
                running.insert(cell());
                most = most.max(running.len());
            }
            "cell-progress" => assert!(!over.contains(&cell()), "{} was not alone", cell()),
            "cell-finished" => assert!(running.remove(&cell())),
            _ => {}
        }
    }
    assert_eq!((measured, running.len()), (4, 0));
    // The others are not kept from each other.
    assert!(most > 1);
    context.check_store();
    assert_eq!(context.events(&[]).assert_code(0).cells("cell-started"), [""; 0]);
}

/// A cell that measures waits until the machine is free, and meanwhile keeps no core from those that can use it.
#[test]
fn spare_cores_do_not_wait_for_a_cell_that_runs_alone() {
    let context = Context::new(
        "format = 1\npipeline.name = \"spare\"\n\
         stages.usual = { kind = \"sleep\", params = { seconds = 0.1, spare = 7 } }\n\
         stages.measured = { kind = \"sleep\", params = { seconds = 0.1, exclusive = true, value = 1 } }\n",
    );
    let outcome = context.events(&["--jobs", "3"]).assert_code(0);
    let started: Vec<_> = outcome
        .events()
        .into_iter()
        .filter(|event| event["event"] == "cell-started")
        .map(|event| event["cores"].as_u64().unwrap())
        .collect();
    assert_eq!(started, [3, 3]);
}

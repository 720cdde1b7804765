//! Cells that workers execute together.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::context::{Context, Outcome};

/// Ten cells of two teams, behind cells of their own.
const TEAMS: &str = r#"
format = 1
pipeline.name = "teams"
axes.a = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
axes.team = ["x", "y"]
stages.before = { kind = "noop", params = { value = "${a}" } }
stages.member = { kind = "team", inputs = { one = "before" }, params = { value = "${a}", team = "${team}" } }
stages.total = { kind = "noop", inputs = { many = "member" } }
"#;

/// How many were executed together with each cell.
fn company(outcome: &Outcome) -> BTreeMap<String, u64> {
    let started = outcome
        .events()
        .into_iter()
        .filter(|event| event["event"] == "cell-started");
    started
        .map(|event| {
            let together = event["together"].as_u64().unwrap();
            (event["cell"].as_str().unwrap().to_owned(), together)
        })
        .collect()
}

fn members(company: &BTreeMap<String, u64>) -> Vec<u64> {
    let members = company.iter().filter(|(cell, _)| cell.starts_with("member"));
    members.map(|(_, together)| *together).collect()
}

#[test]
fn cells_of_a_group_run_together_and_give_what_they_give_alone() {
    let context = Context::new(TEAMS);
    let alone = Context::new(&TEAMS.replace("team = \"${team}\"", "team = \"${team}${a}\""));
    let outcome = context.events(&["--jobs", "1"]).assert_code(0);
    let company = company(&outcome);
    // Ten of each team, six at most: no member begins before it could have all its company.
    assert_eq!(
        members(&company)
            .iter()
            .filter(|together| **together == 6)
            .count(),
        12
    );
    assert_eq!(
        members(&company)
            .iter()
            .filter(|together| **together == 4)
            .count(),
        8
    );
    let lonely = alone.events(&["--jobs", "2"]).assert_code(0);
    assert!(
        members(&self::company(&lonely))
            .iter()
            .all(|together| *together == 1)
    );
    let values = |context: &Context| -> Vec<Vec<u8>> {
        (1..=10)
            .flat_map(|a| ["x", "y"].map(|team| format!("member[a={a}, team={team}]")))
            .map(|cell| fs_err::read(context.object(&cell)).unwrap())
            .collect()
    };
    assert_eq!(values(&context), values(&alone));
    context.check_store();
    assert_eq!(context.events(&[]).assert_code(0).cells("cell-started"), [""; 0]);
}

#[test]
fn cores_share_a_group_and_cached_cells_are_not_in_it() {
    let context = Context::new(TEAMS);
    context
        .events(&["--axis", "a=1,2", "--axis", "team=x"])
        .assert_code(0);
    let outcome = context
        .events(&["--jobs", "2", "--axis", "a=1,2,3,4,5,6", "--axis", "team=x"])
        .assert_code(0);
    // Four are left, and two workers.
    assert_eq!(members(&company(&outcome)), [2, 2, 2, 2]);
}

#[test]
fn a_cell_that_kills_its_worker_fails_alone() {
    for (dies, fails) in [
        ("always", true),
        ("in-company", false),
        ("panics-in-company", false),
    ] {
        let manifest = TEAMS.replace(
            "team = \"${team}\" }",
            "team = \"${team}\" }, override = [{ where = { a = 3 }, params = { dies = \"DIES\" } }]",
        );
        let context = Context::new(&manifest.replace("DIES", dies));
        let outcome = context.events(&["--jobs", "1", "--axis", "a=1,2,3,4,5", "--axis", "team=x"]);
        let outcome = outcome.assert_code(i32::from(fails));
        let finished = outcome.cells("cell-finished");
        for a in [1, 2, 4, 5] {
            assert!(
                finished.contains(&format!("member[a={a}, team=x]")),
                "{dies}: {finished:?}"
            );
        }
        let failed: &[&str] = if fails { &["member[a=3, team=x]"] } else { &[] };
        assert_eq!(outcome.cells("cell-failed"), failed, "{dies}");
        if dies == "panics-in-company" {
            let again = "cells that were executed together panicked: each of them is executed again, alone";
            assert!(outcome.stdout.contains(again), "{outcome:#?}");
        }
        context.check_store();
    }
}

#[test]
fn a_time_limit_keeps_cells_apart() {
    let manifest = TEAMS.replace("stages.member = {", "stages.member = { timeout = \"1h\",");
    let context = Context::new(&manifest);
    let outcome = context
        .events(&["--jobs", "1", "--axis", "team=x"])
        .assert_code(0);
    assert!(members(&company(&outcome)).iter().all(|together| *together == 1));
}

#[test]
fn members_that_wait_for_members_do_not_wait_for_ever() {
    let context = Context::new(
        r#"
format = 1
pipeline.name = "chain"
axes.a = [1, 2]
stages.first = { kind = "team", params = { value = "${a}", team = "x" } }
stages.second = { kind = "team", inputs = { one = "first" }, params = { team = "x" } }
stages.third = { kind = "team", inputs = { many = "second" }, params = { team = "x" } }
"#,
    );
    let outcome = context.events(&["--jobs", "2"]).assert_code(0);
    assert_eq!(outcome.cells("cell-finished").len(), 5);
}

#[test]
fn a_group_that_is_interrupted_stops_as_one() {
    let manifest = TEAMS.replace("team = \"${team}\" }", "team = \"${team}\", seconds = 60.0 }");
    let context = Context::new(&manifest);
    let mut running = context.start(&["--jobs", "1", "--axis", "team=x"]);
    running.wait_for("cell-started", "member[a=1, team=x]");
    running.signal(rustix::process::Signal::INT);
    let outcome = running.finish().assert_code(130);
    let summary: Value = outcome.event("run-finished")["summary"].clone();
    assert_eq!(summary["ran"].as_u64(), Some(10), "{summary}");
    context.check_store();
}

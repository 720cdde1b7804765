use crate::context::Context;

const SLOW: &str = r#"
format = 1
pipeline.name = "slow"
axes.a = [1, 2, 3, 4]
stages.nap = { kind = "sleep", params = { seconds = 0.4, value = "${a}" } }
stages.after = { kind = "noop", inputs = { one = "nap" } }
stages.total = { kind = "noop", inputs = { many = "after" } }
"#;

#[test]
fn processes_that_share_a_store_share_the_work() {
    let context = Context::new(SLOW);
    let mut first = context.start(&["--jobs", "2"]);
    first.wait_for("cell-started", "");
    let others: Vec<_> = (0..3).map(|_| context.start(&["--jobs", "2"])).collect();
    let mut executed = Vec::new();
    for running in std::iter::once(first).chain(others) {
        let outcome = running.finish().assert_code(0);
        executed.extend(outcome.cells("cell-finished"));
        let summary = &outcome.event("run-finished")["summary"];
        assert_eq!(
            summary["ran"].as_u64().unwrap() + summary["reused"].as_u64().unwrap(),
            9
        );
    }
    executed.sort();
    let mut once = executed.clone();
    once.dedup();
    assert_eq!(executed, once, "something ran twice");
    assert_eq!(executed.len(), 9);
    context.check_store();
}

#[test]
fn a_dead_owner_holds_nobody_up() {
    let context = Context::new(SLOW);
    let mut first = context.start(&["--jobs", "1"]);
    first.wait_for("cell-started", "nap[a=1]");
    let mut second = context.start(&["--jobs", "1", "--only", "nap", "--axis", "a=1"]);
    second.wait_for("cell-awaited", "nap[a=1]");
    first.signal(rustix::process::Signal::KILL);
    let outcome = second.finish().assert_code(0);
    assert_eq!(outcome.cells("cell-finished"), ["nap[a=1]"]);
    first.finish();
}

use crate::context::{CHAIN, Context};

const WIDE: &str = r#"
format = 1

[pipeline]
name = "wide"

[axes]
a = [1, 2, 3, 4, 5, 6]
b = [0.1, 0.2, 0.3]

[stages.left]
kind = "noop"
params = { value = "${a}" }

[stages.right]
kind = "sleep"
params = { value = "${b}", seconds = 0.01 }

[stages.both]
kind = "noop"
inputs = { one = "left", many = "right" }

[stages.all]
kind = "noop"
inputs = { many = ["both", "left"] }
"#;

#[test]
fn results_depend_neither_on_the_number_of_workers_nor_on_the_folder() {
    let one = Context::new(WIDE);
    one.executed(&["--jobs", "1"]);
    let four = Context::new(WIDE);
    assert_eq!(four.executed(&["--jobs", "4"]).len(), 6 + 3 + 6 + 1);
    assert_eq!(one.results(), four.results());
    one.check_store();
    four.check_store();
}

#[test]
fn a_cell_gives_the_same_alone_and_in_company() {
    let together = Context::new(WIDE);
    together.executed(&[]);
    let alone = Context::new(WIDE);
    for a in 1..=6 {
        alone.executed(&["--only", "left", "--axis", &format!("a={a}")]);
    }
    let all = together.results();
    for (key, result) in alone.results() {
        assert_eq!(all.get(&key), Some(&result));
    }
}

#[test]
fn a_result_knows_neither_clock_nor_host() {
    let context = Context::new(CHAIN);
    context.executed(&[]);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for result in context.results().values() {
        assert!(!result.contains(context.folder.as_str()));
        assert!(!result.contains(&format!("\"{host}\"")));
    }
    let again = Context::new(CHAIN);
    again.executed(&[]);
    assert_eq!(context.results(), again.results());
}

/// A small generator; which numbers it gives does not matter, only that they are the same every time.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Stages, each of which takes from earlier ones; some fail. What must happen is worked out beside the engine.
#[test]
fn in_any_graph_exactly_what_needs_a_failed_cell_is_blocked() {
    const STAGES: u64 = 14;
    for seed in 0..12 {
        let mut draw = Draw(seed);
        let mut manifest = "format = 1\npipeline.name = \"graph\"\n".to_owned();
        let mut bad = Vec::new();
        let (mut finished, mut failed, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
        for stage in 0..STAGES {
            let producers: Vec<u64> = (0..draw.below(4).min(stage)).map(|_| draw.below(stage)).collect();
            let fails = draw.below(6) == 0;
            let inputs = match &producers[..] {
                [] => String::new(),
                [only] => format!("inputs.one = \"s{only:02}\"\n"),
                several => {
                    let mut names: Vec<String> =
                        several.iter().map(|stage| format!("\"s{stage:02}\"")).collect();
                    names.sort();
                    names.dedup();
                    format!("inputs.many = [{}]\n", names.join(", "))
                }
            };
            let what = if fails {
                format!("kind = \"fail\"\nparams.message = \"{stage}\"\n")
            } else {
                // A value of its own keeps every stage an action of its own.
                format!(
                    "kind = \"noop\"\nparams.value = {}\n",
                    (1_u64 << stage) as f64 + 0.5
                )
            };
            manifest.push_str(&format!("[stages.s{stage:02}]\n{what}{inputs}"));
            let name = format!("s{stage:02}");
            let is_blocked = producers.iter().any(|producer| bad.contains(producer));
            if is_blocked || fails {
                bad.push(stage);
            }
            match (is_blocked, fails) {
                (true, _) => blocked.push(name),
                (false, true) => failed.push(name),
                (false, false) => finished.push(name),
            }
        }
        let mut stores = Vec::new();
        for jobs in ["1", "3"] {
            let context = Context::new(&manifest);
            let outcome = context
                .events(&["--jobs", jobs])
                .assert_code(i32::from(!failed.is_empty()));
            assert_eq!(
                outcome.cells("cell-finished"),
                finished,
                "seed {seed}\n{manifest}"
            );
            assert_eq!(outcome.cells("cell-failed"), failed, "seed {seed}\n{manifest}");
            assert_eq!(outcome.cells("cell-blocked"), blocked, "seed {seed}\n{manifest}");
            context.check_store();
            stores.push(context.results());
        }
        assert_eq!(stores[0], stores[1], "seed {seed}");
    }
}

/// How many cores each cell may keep busy, by its name; what it was told itself is what was said.
fn cores(context: &Context, arguments: &[&str]) -> Vec<(String, u64)> {
    let outcome = context.events(arguments).assert_code(0);
    let events = outcome.events();
    let of = |event: &str, cores: fn(&serde_json::Value) -> Option<f64>| -> Vec<(String, u64)> {
        let named = events
            .iter()
            .filter(|found| found["event"] == event)
            .map(|found| {
                (
                    found["cell"].as_str().unwrap().to_owned(),
                    cores(found).unwrap() as u64,
                )
            });
        let mut named: Vec<_> = named.collect();
        named.sort();
        named.dedup();
        named
    };
    let said = of("cell-started", |event| event["cores"].as_f64());
    let told = of("cell-progress", |event| event["metrics"]["cores"].as_f64());
    assert_eq!(said, told);
    said
}

#[test]
fn idle_cores_go_to_cells_that_can_use_them_and_change_nothing() {
    let manifest = |extra: &str| {
        format!(
            "format = 1\npipeline.name = \"spare\"\naxes.a = [1, 2]\n[stages.nap]\nkind = \"sleep\"\n\
             params = {{ seconds = 0.3, value = \"${{a}}\", spare = 3 }}\n{extra}"
        )
    };
    let named = |found: [u64; 2]| {
        let names = ["nap[a=1]", "nap[a=2]"].map(str::to_owned);
        names.into_iter().zip(found).collect::<Vec<_>>()
    };
    let context = Context::new(&manifest(""));
    // One each, and the three others in turn.
    assert_eq!(cores(&context, &["--jobs", "5"]), named([3, 2]));
    let five = context.results();
    assert_eq!(context.executed(&["--jobs", "1"]), [""; 0]);
    for (jobs, expected) in [("1", [1, 1]), ("2", [1, 1]), ("16", [4, 4])] {
        let context = Context::new(&manifest(""));
        assert_eq!(cores(&context, &["--jobs", jobs]), named(expected));
        assert_eq!(context.results(), five);
    }
    let context = Context::new(&manifest(""));
    assert_eq!(
        cores(&context, &["--jobs", "3", "--axis", "a=1"]),
        named([3, 0])[..1]
    );
    // Cores that the manifest gives are all there are.
    let context = Context::new(&manifest("resources = { cores = 2 }"));
    assert_eq!(cores(&context, &["--jobs", "16"]), named([2, 2]));
    assert_eq!(context.results(), five);
}

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

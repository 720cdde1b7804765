//! The declaration of `plot`: what its parameters mean to the command.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use provenir_api::port::{Column, ColumnType, TableSchema};
use provenir_api::{AnyKind, Label, Problem, erase};
use provenir_kinds::plot::Plot;
use serde_json::{Value, json};

fn plot() -> Box<dyn AnyKind> {
    erase::<Plot>()
}

fn with(key: &str, value: Value) -> Value {
    let mut given = json!({"x": "epsilon", "y": "return"});
    given[key] = value;
    given
}

fn canonical(given: &Value) -> Value {
    plot().resolve(given).unwrap().canonical
}

fn problem(key: &str, value: Value) -> String {
    let problems = plot().resolve(&with(key, value)).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    format!("{}: {}", problems[0].pointer, problems[0].message)
}

#[test]
fn one_and_a_list_of_one_are_the_same() {
    let same = [
        (with("series", json!("method")), with("series", json!(["method"]))),
        (
            with("where", json!({"epsilon": 0})),
            with("where", json!({"epsilon": [0.0]})),
        ),
        (
            with("series", json!([])),
            json!({"x": "epsilon", "y": "return", "labels": {}, "band": "std"}),
        ),
    ];
    for (left, right) in same {
        assert_eq!(canonical(&left), canonical(&right));
    }
    assert_ne!(
        canonical(&with("series", json!(["a", "b"]))),
        canonical(&with("series", json!(["b", "a"])))
    );
}

#[test]
fn what_a_bootstrap_needs_matters_to_a_bootstrap_alone() {
    let seeded = |band: &str| json!({"x": "a", "y": "b", "band": band, "seed": 3, "confidence": 0.5});
    assert_eq!(
        canonical(&seeded("sem")),
        json!({"x": "a", "y": "b", "band": "sem"})
    );
    assert_eq!(canonical(&seeded("ci"))["seed"], json!(3));
}

#[test]
fn combinations_that_make_no_sense_are_named() {
    for (key, value, expected) in [
        (
            "x_limits",
            json!([1, 1]),
            "/x_limits: the first limit must be below the second, is 1 against 1",
        ),
        (
            "y_limits",
            json!([2, -1.5]),
            "/y_limits: the first limit must be below the second, is 2 against -1.5",
        ),
        ("y_limits", json!([2]), "/y_limits: needs at least 2 items, has 1"),
        ("order", json!(["a", "b", "a"]), "/order: \"a\" is listed twice"),
        (
            "size",
            json!([60, 60]),
            "/dpi: 60 by 60 inches have more than 50000000 pixels at 200 an inch",
        ),
        ("series", json!(3), "/series: expected a text, found 3"),
        (
            "reference",
            json!([{"label": "a"}]),
            "/reference/0: a reference needs rows to summarise, or a `value`",
        ),
        (
            "reference",
            json!([{"label": "a", "value": 1, "source": "b"}]),
            "/reference/0: a reference takes its height from rows (`source`, `where`) or from `value`, not from both",
        ),
        (
            "reference",
            json!([{"label": "a", "value": 1, "y": "b"}]),
            "/reference/0/y: a reference with a `value` reads no column",
        ),
    ] {
        assert_eq!(problem(key, value), expected);
    }
    let mut log = with("x_limits", json!([0, 1]));
    log["x_scale"] = json!("log");
    assert_eq!(
        plot().resolve(&log).unwrap_err()[0].message,
        "a log scale begins above 0, not at 0"
    );
}

fn check(given: &Value, wired: &[TableSchema]) -> Vec<Problem> {
    let wired: Vec<(&str, TableSchema)> = wired.iter().map(|schema| ("table", schema.clone())).collect();
    plot().check(&plot().resolve(given).unwrap().full, &wired)
}

#[test]
fn columns_are_checked_before_the_run_as_far_as_they_are_known() {
    let reward = TableSchema::new(vec![
        Column::new("return", ColumnType::Float64),
        Column::new("terminated", ColumnType::Bool),
        Column::new("epsilon", ColumnType::Float64),
        Column::new("method", ColumnType::Utf8),
        Column::new(
            "observation",
            ColumnType::FixedList(std::boxed::Box::new(ColumnType::Float32)),
        ),
    ]);
    let episodes = TableSchema::new(vec![Column::new("return", ColumnType::Float64)]);
    let wired = [reward.clone(), episodes];
    let given = json!({
        "x": "epsilon", "y": "return", "series": ["method", "source"], "columns": "terminated",
        "reference": [{"label": "Expert", "source": "demos.episodes", "y": "terminated"}],
    });
    assert_eq!(check(&given, &wired), []);
    let wrong = json!({
        "x": "terminated", "y": "retrun", "series": "observation", "rows": "outlier", "where": {"epsilonn": 1},
        "reference": [{"label": "Expert", "where": {"sauce": "a"}}],
    });
    let found: Vec<String> = check(&wrong, &wired)
        .into_iter()
        .map(|problem| {
            format!(
                "{} {}: {} ({})",
                problem.pointer,
                problem.key,
                problem.message,
                problem.help.unwrap_or_default()
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            "/x false: column `terminated` must hold numbers or texts; it is bool ()",
            "/y false: no table that arrives has a column `retrun` (did you mean `return`?)",
            "/series false: column `observation` must hold numbers, truth values or texts; it is fixed-size list of f32 ()",
            "/rows false: no table that arrives has a column `outlier` (the columns are `epsilon`, `method`, `observation`, \
             `return`, `source`, `terminated`; an axis is a column where what is drawn varies over it)",
            "/where/epsilonn true: no table that arrives has a column `epsilonn` (did you mean `epsilon`?)",
            "/reference/0/where/sauce true: no table that arrives has a column `sauce` (did you mean `source`?)",
        ]
    );
    assert_eq!(check(&wrong, &[TableSchema::any()]), []);
    assert_eq!(check(&wrong, &[]), []);
}

#[test]
fn texts_along_the_horizontal_axis_have_neither_limits_nor_scale() {
    let table = |kind| {
        TableSchema::new(vec![
            Column::new("env", kind),
            Column::new("seconds", ColumnType::Float64),
        ])
    };
    let texts = table(ColumnType::Utf8);
    let given = json!({"x": "env", "y": "seconds", "y_scale": "log", "labels": {"env": "robot"}});
    assert_eq!(check(&given, std::slice::from_ref(&texts)), []);
    let limited = json!({"x": "env", "y": "seconds", "x_limits": [1, 2], "x_scale": "log"});
    let said = |given: &Value, wired: &[TableSchema]| -> Vec<String> {
        let problems = check(given, wired).into_iter();
        problems
            .map(|problem| format!("{}: {}", problem.pointer, problem.message))
            .collect()
    };
    assert_eq!(
        said(&limited, std::slice::from_ref(&texts)),
        [
            "/x_limits: column `env` holds texts, which have no limits",
            "/x_scale: column `env` holds texts, which have no scale",
        ]
    );
    assert_eq!(
        said(&given, &[texts, table(ColumnType::Int64)]),
        ["/x: column `env` holds texts in one table, and is i64 in another"]
    );
    // The values of an axis are known, so that a label of none is found.
    let known = TableSchema::new(vec![
        Column::new("env", ColumnType::Utf8)
            .values(["hopper", "ant"].map(|name| Label::Text(name.to_owned()))),
        Column::new("seconds", ColumnType::Float64),
    ]);
    let source = Column::new("source", ColumnType::Utf8).values([Label::Text("time".to_owned())]);
    let known = TableSchema::new([known.columns, vec![source]].concat());
    let labelled = |name: &str| json!({"x": "env", "y": "seconds", "labels": {name: "Ant"}});
    assert_eq!(said(&labelled("ant"), std::slice::from_ref(&known)), [""; 0]);
    assert_eq!(
        said(&labelled("walker2d"), &[known]),
        ["/labels/walker2d: `walker2d` is neither a column nor a value of what is drawn"]
    );
}

//! From tables to figures: what is drawn, and what is said where it cannot be.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use provenir_api::protocol::{Level, Progress};
use provenir_api::{FigureIdentity, Kind, Label, erase};
use provenir_execution::{Context, Execution, Failure, Input, Inputs, Outputs, Reporter};
use provenir_kinds::plot::{Plot, PlotParameters};
use provenir_plot::PlotExecution;
use provenir_table::{Table, TableBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Default)]
struct Warnings(Mutex<Vec<String>>);

impl Reporter for Warnings {
    fn progress(&self, _: Progress) {}

    fn log(&self, level: Level, message: &str) {
        if level == Level::Warning {
            self.0.lock().unwrap().push(message.to_owned());
        }
    }
}

fn parameters(parameters: &Value) -> PlotParameters {
    let resolved = erase::<Plot>()
        .resolve(parameters)
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    PlotParameters::deserialize(&resolved.full).unwrap()
}

fn run(given: &Value, inputs: &[Input]) -> (Result<Outputs, Failure>, Vec<String>) {
    let (warnings, cancelled) = (Warnings::default(), AtomicBool::new(false));
    let context = Context::new(&warnings, &cancelled, "unused").with_action_key("the key");
    let inputs = inputs
        .iter()
        .fold(Inputs::new(), |all, input| all.with("table", input.clone()));
    let outputs = PlotExecution.execute(&parameters(given), &inputs, &context);
    (outputs, warnings.0.into_inner().unwrap())
}

/// The data of a figure that is drawn without a warning.
fn data(given: &Value, inputs: &[Input]) -> Vec<Drawn> {
    let (outputs, warnings) = run(given, inputs);
    assert_eq!(warnings, Vec::<String>::new());
    drawn(&outputs.unwrap())
}

fn failure(given: &Value, inputs: &[Input]) -> (String, String) {
    let failed = provenir_api::protocol::Failed::from(run(given, inputs).0.unwrap_err());
    (failed.message, failed.help.unwrap_or_default())
}

/// A row of the data: row, column, series, reference, x, y, low, high, count.
type Drawn = (
    [Option<String>; 4],
    Option<f64>,
    f64,
    Option<f64>,
    Option<f64>,
    u64,
);

fn drawn(outputs: &Outputs) -> Vec<Drawn> {
    let table = outputs.get_table("data").unwrap();
    table.matches(&provenir_kinds::plot::data()).unwrap();
    let text = |name| table.optional_utf8(name).unwrap();
    let float = |name| table.optional_f64(name).unwrap();
    let (rows, columns, series, references) =
        (text("row"), text("column"), text("series"), text("reference"));
    let (x, low, high) = (float("x"), float("low"), float("high"));
    let y = table.column_f64("y").unwrap();
    let count = table.column_u64("count").unwrap();
    (0..table.rows())
        .map(|row| {
            let texts =
                [rows[row], columns[row], series[row], references[row]].map(|text| text.map(str::to_owned));
            (texts, x[row], y[row], low[row], high[row], count[row])
        })
        .collect()
}

fn point(series: &str, x: f64, y: f64, band: Option<[f64; 2]>, count: u64) -> Drawn {
    let series = (!series.is_empty()).then(|| series.to_owned());
    (
        [None, None, series, None],
        Some(x),
        y,
        band.map(|band| band[0]),
        band.map(|band| band[1]),
        count,
    )
}

fn line(reference: &str, y: f64, count: u64) -> Drawn {
    (
        [None, None, None, Some(reference.to_owned())],
        None,
        y,
        None,
        None,
        count,
    )
}

fn labels<const N: usize>(labels: [(&str, Label); N]) -> BTreeMap<String, Label> {
    labels
        .into_iter()
        .map(|(name, label)| (name.to_owned(), label))
        .collect()
}

fn text(text: &str) -> Label {
    Label::Text(text.to_owned())
}

fn number(value: f64) -> Label {
    Label::number(value).unwrap()
}

fn input(source: &str, labels: BTreeMap<String, Label>, table: Table) -> Input {
    Input {
        labels,
        source: source.to_owned(),
        table,
    }
}

fn returns(values: &[f64]) -> Table {
    TableBuilder::new()
        .f64("return", values.to_vec())
        .build()
        .unwrap()
}

fn reward(epsilon: f64, method: &str, values: &[f64]) -> Input {
    input(
        "reward",
        labels([("epsilon", number(epsilon)), ("method", text(method))]),
        returns(values),
    )
}

/// Two methods, two shares of outliers, and the expert's episodes.
fn rewards() -> Vec<Input> {
    vec![
        reward(0.0, "bc", &[90.0, 110.0]),
        reward(0.2, "bc", &[1.0, 3.0, 8.0]),
        reward(0.0, "rbc", &[100.0]),
        reward(0.2, "rbc", &[80.0, 120.0]),
        input("demos.episodes", BTreeMap::new(), returns(&[100.0, 104.0])),
    ]
}

fn half(squares: f64, count: f64) -> f64 {
    (squares / (count - 1.0)).sqrt()
}

#[test]
fn labels_become_columns_and_rows_that_agree_make_a_point() {
    let (a, b, c) = (half(200.0, 2.0), half(26.0, 3.0), half(800.0, 2.0));
    assert_eq!(
        data(
            &json!({"x": "epsilon", "y": "return", "series": "method"}),
            &rewards()
        ),
        [
            point("bc", 0.0, 100.0, Some([100.0 - a, 100.0 + a]), 2),
            point("bc", 0.2, 4.0, Some([4.0 - b, 4.0 + b]), 3),
            point("rbc", 0.0, 100.0, None, 1),
            point("rbc", 0.2, 100.0, Some([100.0 - c, 100.0 + c]), 2),
            line("demos.episodes", 102.0, 2),
        ]
    );
    let averaged = data(
        &json!({"x": "epsilon", "y": "return", "band": "min-max"}),
        &rewards(),
    );
    assert_eq!(
        averaged,
        [
            point("", 0.0, 100.0, Some([90.0, 110.0]), 3),
            point("", 0.2, 212.0 / 5.0, Some([1.0, 120.0]), 5),
            line("demos.episodes", 102.0, 2),
        ]
    );
}

/// Seconds of one training of a robot; none where it did not get there.
fn seconds(env: &str, method: &str, seconds: Option<f64>) -> Input {
    let table = TableBuilder::new()
        .optional_f64("seconds", vec![seconds])
        .unit("s")
        .build()
        .unwrap();
    input(
        "time",
        labels([("env", text(env)), ("method", text(method))]),
        table,
    )
}

#[test]
fn texts_stand_beside_each_other_as_categories() {
    let inputs = [
        seconds("walker2d", "bc", Some(1.0)),
        seconds("walker2d", "bc", Some(3.0)),
        seconds("ant", "bc", Some(5.0)),
        seconds("ant", "rbc", Some(4.0)),
        seconds("ant", "rbc", Some(8.0)),
        seconds("ant", "rbc", None),
    ];
    let given = json!({"x": "env", "y": "seconds", "series": "method", "order": ["walker2d", "ant"],
        "labels": {"walker2d": "Walker2D"}});
    let (outputs, warnings) = run(&given, &inputs);
    assert_eq!(
        warnings,
        ["1 row of `time` is not drawn: no finite value in `seconds`"]
    );
    let outputs = outputs.unwrap();
    let place = |series: &str, y: f64, band: Option<[f64; 2]>, count: u64| {
        let mut point = point(series, 0.0, y, band, count);
        point.1 = None;
        point
    };
    let (a, b) = (half(8.0, 2.0), half(2.0, 2.0));
    // Sorted by name, whatever the order in the figure.
    assert_eq!(
        drawn(&outputs),
        [
            place("bc", 5.0, None, 1),
            place("bc", 2.0, Some([2.0 - b, 2.0 + b]), 2),
            place("rbc", 6.0, Some([6.0 - a, 6.0 + a]), 2),
        ]
    );
    let categories = outputs
        .get_table("data")
        .unwrap()
        .column_utf8("category")
        .unwrap();
    assert_eq!(categories, ["ant", "walker2d", "ant"]);
    let svg = String::from_utf8(outputs.get_file("svg").unwrap().to_vec()).unwrap();
    for name in ["Walker2D", "ant"] {
        assert!(svg.contains(&format!("aria-label=\"{name}\"")), "{name}");
    }
    let many: Vec<Input> = (0..65)
        .map(|index| seconds(&format!("robot {index}"), "bc", Some(1.0)))
        .collect();
    assert_eq!(
        failure(&given, &many).0,
        "`env` has 65 values, too many to stand beside each other: at most 64 do"
    );
}

/// What else is drawn does not move an interval, although it moves a category's place.
#[test]
fn the_interval_of_a_category_is_its_own() {
    let given = json!({"x": "env", "y": "seconds", "band": "ci", "seed": 3});
    let ant: Vec<Input> = (0..9)
        .map(|index| seconds("walker2d", "bc", Some(f64::from(index * index))))
        .collect();
    let mut both = ant.clone();
    both.insert(0, seconds("ant", "bc", Some(1.0)));
    assert_eq!(data(&given, &ant)[0], data(&given, &both)[1]);
}

#[test]
fn references_are_named_selected_and_constant() {
    let given = json!({
        "x": "epsilon", "y": "return", "series": "method", "band": "none", "statistic": "median",
        "where": {"method": ["rbc"]},
        "reference": [
            {"label": "Expert", "source": "demos.episodes"},
            {"label": "BC on clean data", "where": {"method": "bc", "epsilon": 0}},
            {"label": "Goal", "value": 120},
        ],
    });
    assert_eq!(
        data(&given, &rewards()),
        [
            point("rbc", 0.0, 100.0, None, 1),
            point("rbc", 0.2, 100.0, None, 2),
            line("Expert", 102.0, 2),
            line("BC on clean data", 100.0, 2),
            line("Goal", 120.0, 0),
        ]
    );
}

/// Rows of the data with their facets and heights.
fn places(rows: &[Drawn]) -> Vec<(&str, &str, f64)> {
    rows.iter()
        .map(|([row, column, ..], _, y, ..)| {
            (
                row.as_deref().unwrap_or("-"),
                column.as_deref().unwrap_or("-"),
                *y,
            )
        })
        .collect()
}

#[test]
fn a_reference_is_drawn_in_every_panel_it_is_not_bound_to() {
    let cell = |env: &str, outlier: &str, value: f64| {
        let labels = labels([
            ("env", text(env)),
            ("outlier", text(outlier)),
            ("epsilon", number(0.1)),
        ]);
        input("reward", labels, returns(&[value]))
    };
    let expert =
        |env: &str, value: f64| input("demos.episodes", labels([("env", text(env))]), returns(&[value]));
    let inputs = [
        cell("ant", "boundary", 1.0),
        cell("ant", "uniform", 2.0),
        cell("hopper", "boundary", 3.0),
        expert("ant", 10.0),
        expert("hopper", 20.0),
        // A robot of which nothing else is drawn makes no panel.
        expert("walker2d", 30.0),
        input("everyone", BTreeMap::new(), returns(&[40.0])),
    ];
    let given = json!({"x": "epsilon", "y": "return", "columns": "env", "rows": "outlier"});
    let rows = data(&given, &inputs);
    assert_eq!(
        places(&rows),
        [
            ("boundary", "ant", 1.0),
            ("boundary", "hopper", 3.0),
            ("uniform", "ant", 2.0),
            ("boundary", "ant", 10.0),
            ("boundary", "hopper", 20.0),
            ("uniform", "ant", 10.0),
            ("uniform", "hopper", 20.0),
            ("boundary", "ant", 40.0),
            ("boundary", "hopper", 40.0),
            ("uniform", "ant", 40.0),
            ("uniform", "hopper", 40.0),
        ]
    );
}

#[test]
fn a_table_of_many_x_makes_a_curve_and_every_number_type_serves() {
    let table = TableBuilder::new()
        .u32("checkpoint", vec![1, 1, 2, 2])
        .i64("steps", vec![-5, -5, 7, 7])
        .u64("sample", vec![3, 3, 4, 4])
        .f32("rate", vec![0.1, 0.1, 0.2, 0.2])
        .bool("terminated", vec![true, false, false, false])
        .f32("loss", vec![1.0, 2.0, 3.0, 5.0])
        .build()
        .unwrap();
    let inputs = [input("history", BTreeMap::new(), table)];
    for (x, [first, second]) in [
        ("checkpoint", [1.0, 2.0]),
        ("steps", [-5.0, 7.0]),
        ("sample", [3.0, 4.0]),
        ("rate", [0.1, 0.2]),
    ] {
        let rows = data(&json!({"x": x, "y": "loss", "band": "min-max"}), &inputs);
        let expected = [
            point("", first, 1.5, Some([1.0, 2.0]), 2),
            point("", second, 4.0, Some([3.0, 5.0]), 2),
        ];
        assert_eq!(rows, expected, "{x}");
    }
    let shares = data(&json!({"x": "rate", "y": "terminated", "band": "none"}), &inputs);
    assert_eq!(
        shares,
        [point("", 0.1, 0.5, None, 2), point("", 0.2, 0.0, None, 2)]
    );
}

#[test]
fn single_and_double_floats_of_one_decimal_are_one_value() {
    let table = TableBuilder::new()
        .f32("epsilon", vec![0.1])
        .f64("return", vec![1.0])
        .build()
        .unwrap();
    let inputs = [
        input("reward", BTreeMap::new(), table),
        input("reward", labels([("epsilon", number(0.1))]), returns(&[3.0])),
    ];
    let rows = data(&json!({"x": "epsilon", "y": "return", "band": "none"}), &inputs);
    assert_eq!(rows, [point("", 0.1, 2.0, None, 2)]);
    let rows = data(
        &json!({"x": "epsilon", "y": "return", "series": "epsilon", "band": "none"}),
        &inputs,
    );
    assert_eq!(rows, [point("0.1", 0.1, 2.0, None, 2)]);
}

#[test]
fn series_of_several_columns_and_of_sources() {
    let given = json!({"x": "epsilon", "y": "return", "series": ["method", "source"], "band": "none"});
    let rows = data(&given, &rewards()[..4]);
    let series: Vec<_> = rows
        .iter()
        .map(|([_, _, series, _], ..)| series.as_deref().unwrap())
        .collect();
    assert_eq!(series, ["bc, reward", "bc, reward", "rbc, reward", "rbc, reward"]);
}

#[test]
fn missing_values_are_left_out_and_said() {
    let table = TableBuilder::new()
        .optional_f64("epsilon", vec![Some(0.0), Some(0.0), None, Some(0.1), Some(0.1)])
        .optional_f64(
            "return",
            vec![Some(1.0), None, Some(3.0), Some(f64::NAN), Some(f64::INFINITY)],
        )
        .optional_utf8("method", vec![Some("bc"); 5])
        .build()
        .unwrap();
    let inputs = [
        input("reward", BTreeMap::new(), table),
        input("other", labels([("epsilon", number(0.2))]), returns(&[9.0])),
    ];
    let (outputs, warnings) = run(
        &json!({"x": "epsilon", "y": "return", "series": "method", "band": "none"}),
        &inputs,
    );
    assert_eq!(drawn(&outputs.unwrap()), [point("bc", 0.0, 1.0, None, 1)]);
    assert_eq!(
        warnings,
        [
            "1 row of `other` is not drawn: no finite value in `method`",
            "1 row of `reward` is not drawn: no finite value in `epsilon`",
            "3 rows of `reward` are not drawn: no finite value in `return`",
        ]
    );
}

#[test]
fn what_is_missing_is_named_with_the_nearest_thing() {
    let given = |key: &str, value: Value| {
        let mut given = json!({"x": "epsilon", "y": "return", "series": "method"});
        given[key] = value;
        given
    };
    for (given, message, help) in [
        (
            given("x", json!("epsilom")),
            "no table that arrives has a column `epsilom`",
            "did you mean `epsilon`?",
        ),
        (
            given("y", json!("retrun")),
            "no table that arrives has a column `retrun`",
            "did you mean `return`?",
        ),
        (
            given("columns", json!("methods")),
            "has a column `methods`",
            "did you mean `method`?",
        ),
        (
            given("where", json!({"epsilom": 1})),
            "has a column `epsilom`",
            "did you mean `epsilon`?",
        ),
        (
            given("y", json!("method")),
            "column `method` must hold numbers; it is text",
            "",
        ),
        (
            given("where", json!({"method": "sac"})),
            "there is nothing to draw: none of 10 rows",
            "`where`",
        ),
        (
            given(
                "reference",
                json!([{"label": "Expert", "source": "demos.episode"}]),
            ),
            "the reference `Expert` summarises `demos.episode`, which is not among what arrives",
            "did you mean `demos.episodes`?",
        ),
        (
            given(
                "reference",
                json!([{"label": "Oracle", "where": {"method": "bd"}}]),
            ),
            "the reference `Oracle` has no rows",
            "`where`",
        ),
        (
            given("x_scale", json!("log")),
            "the horizontal axis has a log scale, which cannot show 0, a value of column `epsilon`",
            "x_scale",
        ),
        (
            given("size", json!([1, 1])),
            "the figure has room for panels of",
            "enlarge `size`",
        ),
    ] {
        let (found, hint) = failure(&given, &rewards());
        assert!(found.contains(message), "{found}");
        assert!(hint.contains(help), "{found}: {hint}");
    }
    let (outputs, warnings) = run(&given("where", json!({"method": ["bc", "rbcc"]})), &rewards());
    outputs.unwrap();
    assert_eq!(
        warnings,
        ["`where` asks for `method` = `rbcc`, which no row has (did you mean `rbc`?)"]
    );
}

#[test]
fn tables_without_rows_and_no_tables_are_clear_errors() {
    let given = json!({"x": "epsilon", "y": "return"});
    let (message, _) = failure(&given, &[reward(0.0, "bc", &[])]);
    assert_eq!(
        message,
        "there is nothing to draw: none of 0 rows from `reward` makes a point of `return` against `epsilon`"
    );
    assert!(failure(&given, &[]).0.starts_with("there is nothing to draw"));
}

#[test]
fn more_series_or_panels_than_can_be_told_apart_are_refused() {
    let inputs: Vec<Input> = (0..40)
        .map(|seed| {
            let labels = labels([("seed", number(f64::from(seed))), ("epsilon", number(0.1))]);
            input("reward", labels, returns(&[1.0]))
        })
        .collect();
    let given = |key: &str| json!({"x": "epsilon", "y": "return", key: "seed"});
    assert!(
        failure(&given("series"), &inputs)
            .0
            .contains("make 40 series; at most 28 can be told apart")
    );
    assert!(
        failure(&given("columns"), &inputs)
            .0
            .contains("`seed` has 40 values, too many for columns of panels")
    );
    assert!(run(&given("series"), &inputs[..28]).0.is_ok());
    assert!(run(&given("rows"), &inputs[..16]).0.is_ok());
}

#[test]
fn looks_change_the_picture_and_not_the_data() {
    let plain = json!({"x": "epsilon", "y": "return", "series": "method"});
    let dressed = json!({
        "x": "epsilon", "y": "return", "series": "method", "title": "A title", "order": ["rbc", "bc"],
        "labels": {"rbc": "RBC", "epsilon": "ε"}, "y_limits": [-10, 200], "size": [5, 4], "dpi": 100,
    });
    let [plain, dressed] = [plain, dressed].map(|given| run(&given, &rewards()).0.unwrap());
    assert_eq!(plain.get_table("data"), dressed.get_table("data"));
    assert_ne!(plain.get_file("svg"), dressed.get_file("svg"));
    let svg = String::from_utf8(dressed.get_file("svg").unwrap().to_vec()).unwrap();
    for text in ["A title", "RBC", "ε", "bc", "demos.episodes"] {
        assert!(svg.contains(&format!("aria-label=\"{text}\"")), "{text}");
    }
    assert!(
        svg.find("aria-label=\"RBC\"") < svg.find("aria-label=\"bc\""),
        "the order of the legend"
    );
}

#[test]
fn numbers_in_a_legend_come_with_the_name_of_their_column() {
    let cell = |samples: f64, clean: bool| {
        let labels = labels([
            ("samples", number(samples)),
            ("clean_data", Label::Bool(clean)),
            ("x", number(0.0)),
        ]);
        input("reward", labels, returns(&[1.0, 2.0]))
    };
    let inputs = [cell(-20_000.0, true), cell(-0.5, false)];
    let given = json!({
        "x": "x", "y": "return", "series": "samples", "columns": "clean_data", "labels": {"samples": "N", "false": "dirty"},
    });
    let svg = run(&given, &inputs).0.unwrap().get_file("svg").unwrap().to_vec();
    let svg = String::from_utf8(svg).unwrap();
    for text in ["N = −20\u{2009}000", "N = −0.5", "clean data = true", "dirty"] {
        assert!(svg.contains(&format!("aria-label=\"{text}\"")), "{text}");
    }
}

#[test]
fn a_series_keeps_its_style_whichever_others_are_there() {
    let colour = |inputs: &[Input]| {
        let given =
            json!({"x": "epsilon", "y": "return", "series": "method", "order": ["noisy-bc", "bc", "rbc"]});
        let svg = run(&given, inputs).0.unwrap().get_file("svg").unwrap().to_vec();
        let svg = String::from_utf8(svg).unwrap();
        // The sample of an entry precedes its text.
        let before = svg.split("aria-label=\"rbc\"").next().unwrap();
        before.rsplit("fill=\"#").nth(1).unwrap()[..6].to_owned()
    };
    assert_eq!(colour(&rewards()), colour(&rewards()[2..]));
    assert_eq!(colour(&rewards()), "009e73", "the third style's");
}

#[test]
fn files_carry_the_action_key_and_the_digest_of_the_data() {
    let outputs = run(&json!({"x": "epsilon", "y": "return"}), &rewards())
        .0
        .unwrap();
    let identity = FigureIdentity {
        action_key: "the key".to_owned(),
        data: outputs.get_table("data").unwrap().content(),
    };
    for port in ["svg", "png", "pdf"] {
        assert_eq!(
            FigureIdentity::read(outputs.get_file(port).unwrap()),
            Some(identity.clone()),
            "{port}"
        );
    }
}

#[test]
fn a_bootstrap_depends_on_the_seed_and_on_its_own_point_alone() {
    let given =
        |seed: u64| json!({"x": "epsilon", "y": "return", "series": "method", "band": "ci", "seed": seed});
    let all = data(&given(1), &rewards()[..4]);
    let alone = data(&given(1), &rewards()[1..2]);
    assert_eq!(all[1], alone[0]);
    let other = data(&given(2), &rewards()[1..2]);
    assert_eq!(Some(all[1].2), Some(other[0].2));
    // Resampled means of three numbers take ten values: ends may agree, both ends of several points hardly.
    let spread: Vec<f64> = (0..40).map(|index| f64::from(index * index)).collect();
    let long = [reward(0.3, "bc", &spread)];
    assert_ne!(data(&given(1), &long)[0].3, data(&given(2), &long)[0].3);
}

#[test]
fn hostile_labels_and_letters_that_the_font_lacks_do_no_harm() {
    let hostile = "<script>alert(1)</script>\" onload=\"x 🤖";
    let inputs = [input(
        hostile,
        labels([("a<b", text(hostile)), ("x", number(1.0))]),
        returns(&[1.0, 2.0]),
    )];
    let given =
        json!({"x": "x", "y": "return", "series": ["a<b", "source"], "columns": "source", "title": hostile});
    let (outputs, warnings) = run(&given, &inputs);
    let svg = String::from_utf8(outputs.unwrap().get_file("svg").unwrap().to_vec()).unwrap();
    assert!(!svg.contains("<script") && !svg.contains("\" onload"));
    assert_eq!(warnings, ["the figure's font has no letter for `🤖`"]);
}

/// Exact on every platform: whoever changes it raises the revision of `plot`.
#[test]
fn the_data_of_a_figure_is_the_one_recorded() {
    let given = |band: &str, statistic: &str| json!({"x": "epsilon", "y": "return", "series": "method", "band": band, "statistic": statistic, "seed": 7});
    let inputs: Vec<Input> = (0..6)
        .map(|index| {
            let values: Vec<f64> = (0..23)
                .map(|row| 1000.0 / (1.0 + f64::from(row * (index + 1) % 17)))
                .collect();
            reward(
                f64::from(index / 2) * 0.1,
                ["bc", "rbc"][index as usize % 2],
                &values,
            )
        })
        .collect();
    let mut digests = Vec::new();
    for (band, statistic) in [
        ("std", "mean"),
        ("sem", "median"),
        ("quartiles", "iqm"),
        ("min-max", "mean"),
        ("ci", "mean"),
        ("ci", "iqm"),
        ("none", "median"),
    ] {
        let outputs = run(&given(band, statistic), &inputs).0.unwrap();
        digests.push(format!(
            "{band} {statistic} {}",
            outputs.get_table("data").unwrap().content()
        ));
    }
    assert_eq!(Plot::REVISIONS[0].number, 4);
    assert_eq!(
        digests,
        include_str!("data.txt").lines().collect::<Vec<_>>(),
        "found:\n{}",
        digests.join("\n")
    );
}

//! A kind's parameters through the eyes of the command.

use provenir_api::port::{InputPort, OutputPort};
use provenir_api::{Determinism, Kind, Parameters, Revision, SourceFile, erase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Example {
    /// Share of samples.
    #[schemars(range(min = 0.0, max = 0.5))]
    fraction: f64,
    /// Which way.
    #[serde(default)]
    method: Method,
    /// Widths.
    #[serde(default = "hidden")]
    #[schemars(length(min = 1, max = 8), inner(range(min = 1)))]
    hidden: Vec<u32>,
    /// A file.
    #[serde(default)]
    expert: Option<SourceFile>,
    /// Settings of `second`.
    #[serde(default)]
    second: Second,
}

#[derive(Serialize, Deserialize, JsonSchema, Default, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Method {
    /// The first.
    #[default]
    First,
    /// The second.
    SecondBest,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Second {
    /// Weight.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    weight: f64,
    /// Rounds.
    #[schemars(range(min = 1))]
    rounds: u32,
}

impl Default for Second {
    fn default() -> Self {
        Self {
            weight: 1.0,
            rounds: 5,
        }
    }
}

fn hidden() -> Vec<u32> {
    vec![64, 64]
}

impl Parameters for Example {
    fn irrelevant(&self) -> Vec<&'static str> {
        if self.method == Method::First {
            vec!["/second"]
        } else {
            Vec::new()
        }
    }
}

struct ExampleKind;

impl Kind for ExampleKind {
    type Parameters = Example;
    const NAME: &'static str = "example";
    const SUMMARY: &'static str = "An example.";
    const REVISIONS: &'static [Revision] = &[Revision {
        part: "example",
        number: 1,
    }];
    const DETERMINISM: Determinism = Determinism::Exact;

    fn inputs() -> Vec<InputPort> {
        Vec::new()
    }

    fn outputs() -> Vec<OutputPort> {
        Vec::new()
    }
}

#[expect(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "a literal at every call, in a test"
)]
fn canonical(parameters: serde_json::Value) -> serde_json::Value {
    erase::<ExampleKind>().resolve(&parameters).unwrap().canonical
}

#[test]
fn defaults_and_what_does_not_matter_stay_out_of_the_key() {
    assert_eq!(canonical(json!({"fraction": 0.1})), json!({"fraction": 0.1}));
    assert_eq!(
        canonical(json!({"fraction": 0.1, "method": "first", "hidden": [64, 64], "second": {"weight": 2}})),
        json!({"fraction": 0.1})
    );
    assert_eq!(
        canonical(json!({"fraction": 0.1, "method": "second-best", "second": {"weight": 2, "rounds": 5}})),
        json!({"fraction": 0.1, "method": "second-best", "second": {"weight": 2.0}})
    );
    assert_eq!(
        canonical(json!({"fraction": 0.1, "method": "second-best", "second": {"weight": 1, "rounds": 5}})),
        canonical(json!({"fraction": 0.1, "method": "second-best"}))
    );
}

#[test]
fn a_whole_number_for_a_float_is_that_float() {
    assert_eq!(
        canonical(json!({"fraction": 0})),
        canonical(json!({"fraction": 0.0}))
    );
}

#[test]
fn a_source_enters_by_content_and_its_default_fills_in() {
    let resolved = erase::<ExampleKind>()
        .resolve(&json!({"fraction": 0.1, "expert": "a/b.zip"}))
        .unwrap();
    assert_eq!(resolved.canonical, json!({"fraction": 0.1}));
    assert_eq!(resolved.sources.len(), 1);
    assert_eq!(resolved.sources[0].pointer, "/expert");
    assert_eq!(resolved.sources[0].path, "a/b.zip");
    assert_eq!(resolved.full["hidden"], json!([64, 64]));
}

#[test]
fn every_problem_is_found_at_once_with_its_place() {
    let problems = erase::<ExampleKind>()
        .resolve(&json!({
            "fraction": 0.7,
            "method": "second",
            "hiden": [1],
            "hidden": [],
            "second": {"weight": 0, "rounds": "many"},
        }))
        .unwrap_err();
    let shown: Vec<String> = problems
        .iter()
        .map(|p| {
            format!(
                "{}: {}{}",
                p.pointer,
                p.message,
                p.help.as_ref().map_or(String::new(), |h| format!(" ({h})"))
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "/fraction: must be at most 0.5, is 0.7",
            "/hidden: needs at least 1 item, has 0",
            "/hiden: unknown parameter `hiden` (did you mean `hidden`?)",
            "/method: \"second\" is not one of \"first\", \"second-best\" (did you mean \"second-best\"?)",
            "/second/rounds: expected a whole number, found \"many\"",
            "/second/weight: must be above 0, is 0",
        ]
    );
    let problems = erase::<ExampleKind>().resolve(&json!({})).unwrap_err();
    assert_eq!(problems[0].message, "parameter `fraction` is missing");
}

//! `diagnose` from outside: tables in, tables out.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::sync::atomic::AtomicBool;

use provenir_api::Kind;
use provenir_api::port::Content;
use provenir_api::protocol::{Level, Progress};
use provenir_diagnose::DiagnoseExecution;
use provenir_execution::{Context, Execution, Failure, Inputs, Outputs, Reporter};
use provenir_kinds::diagnose::{Diagnose, DiagnoseParameters};
use provenir_policy::{ActionMap, Activation, Layer, Policy, PolicySet, Squash};
use provenir_table::demonstrations::{About, Demonstrations};
use provenir_table::{Matrix, Table, TableBuilder};

struct Silent;

impl Reporter for Silent {
    fn progress(&self, _: Progress) {}
    fn log(&self, _: Level, _: &str) {}
}

/// Samples 10 to 13, of which 11 and 13 are corrupted; the clean action is twice the observation.
fn demos() -> Demonstrations {
    Demonstrations {
        sample: vec![10, 11, 12, 13],
        episode: vec![0; 4],
        step: (0..4).collect(),
        observation: Matrix::new(1, vec![0.0, 0.125, 0.25, 0.375]).unwrap(),
        action: Matrix::new(1, vec![0.0, 1.0, 0.5, -1.0]).unwrap(),
        reward: vec![0.0; 4],
        terminated: vec![false; 4],
        truncated: vec![false; 4],
        about: About {
            environment: "hopper".to_owned(),
            ..About::default()
        },
    }
}

/// Of more samples, in another order.
fn mask() -> Table {
    TableBuilder::new()
        .u64("sample", vec![13, 99, 12, 11, 10])
        .bool("corrupted", vec![true, true, false, true, false])
        .build()
        .unwrap()
}

fn clean() -> TableBuilder {
    TableBuilder::new()
        .u64("sample", vec![99, 10, 11, 12, 13])
        .fixed_list_f32("clean_action", 1, vec![7.0, 0.0, 0.25, 0.5, 0.75])
}

/// Trust by selections a draw: 1, 1/4, 1/2, and one never drawn.
fn counted() -> Table {
    TableBuilder::new()
        .u64("sample", vec![12, 11, 10, 13])
        .u64("drawn", vec![6, 8, 2, 0])
        .u64("selected", vec![6, 2, 1, 0])
        .build()
        .unwrap()
}

fn about(environment: &str) -> provenir_policy::About {
    provenir_policy::About {
        environment: environment.to_owned(),
        ..provenir_policy::About::default()
    }
}

/// a = gain · s.
fn linear(gain: f32, about: provenir_policy::About) -> Policy {
    let layer = Layer::new(1, 1, vec![gain], vec![0.0]).unwrap();
    let map = ActionMap {
        squash: Squash::Clip,
        low: vec![-1.0],
        high: vec![1.0],
    };
    Policy::new(vec![layer], Activation::Relu, None, map, about).unwrap()
}

fn inputs(ports: &[(&str, Table)]) -> Inputs {
    let inputs = Inputs::new()
        .with_table("demos", demos().into_table().unwrap())
        .with_table("mask", mask());
    ports.iter().fold(inputs, |inputs, (port, table)| {
        inputs.with_table(port, table.clone())
    })
}

fn run(inputs: &Inputs, threshold: f64) -> Result<Outputs, Failure> {
    let cancelled = AtomicBool::new(false);
    let context = Context::new(&Silent, &cancelled, "unused");
    DiagnoseExecution.execute(&DiagnoseParameters { threshold }, inputs, &context)
}

fn diagnose(ports: &[(&str, Table)], threshold: f64) -> Outputs {
    run(&inputs(ports), threshold).unwrap()
}

fn numbers(outputs: &Outputs, column: &str) -> Vec<Option<f64>> {
    let table = outputs.get_table("diagnosis").unwrap();
    table.column_numbers(column).unwrap()
}

fn refused(ports: &[(&str, Table)]) -> String {
    run(&inputs(ports), 0.5).unwrap_err().to_string()
}

#[test]
fn trust_is_judged_by_what_was_drawn() {
    let outputs = diagnose(&[("trust", counted())], 0.5);
    for (port, declared) in ["diagnosis", "curve"].iter().zip(Diagnose::outputs()) {
        assert_eq!(declared.name, *port);
        let schema = outputs.get_table(port).unwrap().schema();
        assert_eq!(Content::Table(schema), declared.content);
    }
    // Below one half is sample 11 alone, which is the only corrupted one that was ever drawn.
    for (column, expected) in [
        ("checkpoint", None),
        ("samples", Some(4.0)),
        ("corrupted", Some(2.0)),
        ("threshold", Some(0.5)),
        ("precision", Some(1.0)),
        ("recall", Some(1.0)),
        ("average_precision", Some(1.0)),
        ("selected_corrupted", Some(2.0 / 9.0)),
        ("mse", None),
        ("mse_corrupted", None),
        ("mse_rest", None),
    ] {
        assert_eq!(numbers(&outputs, column), [expected], "{column}");
    }
    let outputs = diagnose(&[("trust", counted())], 0.75);
    assert_eq!(numbers(&outputs, "precision"), [Some(0.5)]);
    let curve = outputs.get_table("curve").unwrap();
    assert_eq!(curve.column_f64("trust").unwrap(), [0.25, 0.5, 1.0]);
    assert_eq!(curve.column_u64("distrusted").unwrap(), [1, 2, 3]);
    assert_eq!(curve.column_f64("precision").unwrap(), [1.0, 0.5, 1.0 / 3.0]);
    assert_eq!(curve.optional_f64("recall").unwrap(), [Some(1.0); 3]);
}

#[test]
fn a_method_that_says_what_it_trusts_is_taken_at_its_word() {
    let trust = TableBuilder::new()
        .u64("sample", vec![10, 11, 12, 13])
        .f64("trust", vec![0.75, 0.5, 0.5, 0.25]);
    let outputs = diagnose(&[("trust", trust.build().unwrap())], 0.6);
    assert_eq!(numbers(&outputs, "precision"), [Some(2.0 / 3.0)]);
    assert_eq!(numbers(&outputs, "recall"), [Some(1.0)]);
    assert_eq!(
        numbers(&outputs, "average_precision"),
        [Some(f64::midpoint(1.0, 2.0 / 3.0))]
    );
    assert_eq!(numbers(&outputs, "selected_corrupted"), [Some(0.75 / 2.0)]);
    // What a method that gives weights leaves: every sample that was drawn gave a gradient, times its weight.
    let drawn = vec![4, 4, 2, 8];
    let trust = TableBuilder::new()
        .u64("sample", vec![10, 11, 12, 13])
        .u64("drawn", drawn.clone())
        .u64("selected", drawn)
        .f64("trust", vec![0.75, 0.5, 0.5, 0.25]);
    let outputs = diagnose(&[("trust", trust.build().unwrap())], 0.6);
    assert_eq!(numbers(&outputs, "selected_corrupted"), [Some(4.0 / 8.0)]);
}

#[test]
fn policies_are_held_against_clean_actions_where_the_state_was_clean() {
    let policies = [
        (3, linear(2.0, about("hopper"))),
        (5, linear(0.0, about("hopper"))),
    ];
    let policy = PolicySet::new(policies.to_vec()).unwrap().to_table().unwrap();
    let outputs = diagnose(
        &[("policy", policy.clone()), ("clean", clean().build().unwrap())],
        0.5,
    );
    assert_eq!(numbers(&outputs, "checkpoint"), [Some(3.0), Some(5.0)]);
    assert_eq!(numbers(&outputs, "mse"), [Some(0.0), Some(0.875 / 4.0)]);
    assert_eq!(numbers(&outputs, "mse_corrupted"), [Some(0.0), Some(0.625 / 2.0)]);
    assert_eq!(numbers(&outputs, "mse_rest"), [Some(0.0), Some(0.25 / 2.0)]);
    assert_eq!(numbers(&outputs, "precision"), [None, None]);
    assert_eq!(outputs.get_table("curve").unwrap().rows(), 0);
    // What the demonstrations say was observed is not what was.
    let observed = clean().fixed_list_f32("clean_observation", 1, vec![0.0, 0.5, 0.125, 0.25, 0.375]);
    let outputs = diagnose(&[("policy", policy), ("clean", observed.build().unwrap())], 0.5);
    assert_eq!(numbers(&outputs, "mse_rest"), [Some(0.5), Some(0.125)]);
}

#[test]
fn what_cannot_be_joined_is_refused() {
    let policy = |policy: Policy| PolicySet::single(policy).to_table().unwrap();
    let fit = || policy(linear(1.0, about("hopper")));
    let few = TableBuilder::new()
        .u64("sample", vec![10, 11, 12])
        .fixed_list_f32("clean_action", 1, vec![0.0; 3]);
    let trust = |samples: Vec<u64>, values: Vec<f64>| {
        let table = TableBuilder::new().u64("sample", samples).f64("trust", values);
        table.build().unwrap()
    };
    let time_feature = provenir_policy::About {
        time_feature: true,
        ..about("hopper")
    };
    let clean = || ("clean", clean().build().unwrap());
    for (found, expected) in [
        (
            refused(&[("policy", fit()), ("clean", few.build().unwrap())]),
            "the sample 13 at `demos` is not among those at `clean`",
        ),
        (
            refused(&[("trust", trust(vec![10, 99], vec![0.0, 1.0]))]),
            "the sample 99 at `trust` is not among those at `demos`",
        ),
        (
            refused(&[("trust", trust(vec![10, 10], vec![0.0, 1.0]))]),
            "the table at `trust` holds the sample 10 twice; a sample's number is its identity",
        ),
        (
            refused(&[("trust", trust(vec![10], vec![1.5]))]),
            "a sample's trust is 1.5; it must be from 0 to 1",
        ),
        (
            refused(&[("trust", trust(vec![10], vec![f64::NAN]))]),
            "a sample's trust is NaN; it must be from 0 to 1",
        ),
        (
            refused(&[("policy", policy(linear(1.0, about("ant")))), clean()]),
            "the policy is for the environment `ant`, the demonstrations are of `hopper`",
        ),
        (
            refused(&[("policy", policy(linear(1.0, time_feature))), clean()]),
            "the policy observes with the time feature, the demonstrations are without it",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

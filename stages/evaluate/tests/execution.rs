//! `evaluate` from a policy table to its tables of results.

use std::sync::atomic::AtomicBool;

use camino::Utf8Path;
use provenir_api::port::Content;
use provenir_api::protocol::{Blame, Failed, Level, Progress};
use provenir_api::{Digest, Kind, SourceFile};
use provenir_evaluate::EvaluateExecution;
use provenir_execution::{Context, Execution, Failure, Inputs, Outputs, Reporter};
use provenir_kinds::Environment;
use provenir_kinds::evaluate::{Evaluate, EvaluateParameters};
use provenir_policy::{About, ActionMap, Activation, Layer, Policy, PolicySet, Squash};
use provenir_table::{Table, TableBuilder};

struct Silent;

impl Reporter for Silent {
    fn progress(&self, _: Progress) {}
    fn log(&self, _: Level, _: &str) {}
}

/// Holds the joints near their start with a gain; see the tests of `provenir-sim`.
fn standing(gain: f32) -> Policy {
    let mut weights = vec![0.0; 3 * 15];
    for joint in 0..3 {
        weights[15 * joint + 8 + 2 * joint] = -gain;
        weights[15 * joint + 9 + 2 * joint] = -0.1;
    }
    policy(15, weights, vec![0.9, 0.95, 0.0], "hopper")
}

fn policy(width: usize, weights: Vec<f32>, bias: Vec<f32>, environment: &str) -> Policy {
    let layer = Layer::new(width, 3, weights, bias).expect("the layer is sound");
    let map = ActionMap {
        squash: Squash::Clip,
        low: vec![-1.0; 3],
        high: vec![1.0; 3],
    };
    let about = About {
        environment: environment.into(),
        time_feature: false,
        method: "test".into(),
        ..About::default()
    };
    Policy::new(vec![layer], Activation::Relu, None, map, about).expect("the policy is sound")
}

/// Finite weights whose outputs are not numbers: the hidden layer overflows, and the last takes infinity from infinity.
fn overflowing() -> Policy {
    let mut weights = vec![0.0; 2 * 15];
    // The cosine of the bearing is 1, the thigh's position near 1.
    for index in [2, 8, 15 + 2, 15 + 8] {
        weights[index] = f32::MAX;
    }
    let hidden = Layer::new(15, 2, weights, vec![0.0; 2]).expect("the layer is sound");
    let last = Layer::new(2, 3, [1.0, -1.0].repeat(3), vec![0.0; 3]).expect("the layer is sound");
    let plain = standing(1.0);
    let (map, about) = (plain.action_map().clone(), plain.about().clone());
    Policy::new(vec![hidden, last], Activation::Relu, None, map, about).expect("the policy is sound")
}

fn set(policies: &[(u32, Policy)]) -> PolicySet {
    PolicySet::new(policies.to_vec()).expect("the policies are alike")
}

fn parameters(trials: u32, seed: u64) -> EvaluateParameters {
    EvaluateParameters {
        env: Environment::Hopper,
        policy: None,
        normalization: None,
        activation: None,
        time_feature: None,
        trials,
        seed,
        discount: 0.9,
    }
}

fn evaluate(policies: &PolicySet, trials: u32, seed: u64, cancelled: bool) -> Result<Outputs, Failure> {
    let cancelled = AtomicBool::new(cancelled);
    let context = Context::new(&Silent, &cancelled, "unused");
    EvaluateExecution.execute(&parameters(trials, seed), &inputs(policies), &context)
}

fn inputs(policies: &PolicySet) -> Inputs {
    Inputs::new().with_table("policy", policies.to_table().expect("a policy makes a table"))
}

/// Evaluates beside an expert's episodes.
fn beside(expert: Table) -> Result<Outputs, Failure> {
    let cancelled = AtomicBool::new(false);
    let context = Context::new(&Silent, &cancelled, "unused");
    let policies = set(&[(0, standing(1.0))]);
    EvaluateExecution.execute(
        &parameters(3, 1),
        &inputs(&policies).with_table("expert", expert),
        &context,
    )
}

/// Episodes as `collect` records them.
fn episodes(returns: &[f64], lengths: &[u32], truncated: &[bool]) -> TableBuilder {
    TableBuilder::new()
        .f64("return", returns.to_vec())
        .u32("length", lengths.to_vec())
        .unit("steps")
        .bool("truncated", truncated.to_vec())
        .metadata("environment", "hopper")
}

fn tables(policies: &PolicySet, trials: u32, seed: u64) -> (Table, Table) {
    let outputs = evaluate(policies, trials, seed, false).expect("it evaluates");
    let table = |port| outputs.get_table(port).expect("the port was given").clone();
    (table("trials"), table("summary"))
}

/// One row of trials: checkpoint, trial, return's bits, length, terminated, truncated.
type Row = (u32, u32, u64, u32, bool, bool);

fn rows(trials: &Table) -> Vec<Row> {
    let integers = |name| trials.column_u32(name).expect("the column is there");
    let flags = |name| trials.column_bool(name).expect("the column is there");
    let (checkpoints, numbers, lengths) = (integers("checkpoint"), integers("trial"), integers("length"));
    let returns = trials.column_f64("return").expect("the column is there");
    let (fell, cut) = (flags("terminated"), flags("truncated"));
    (0..trials.rows())
        .map(|row| {
            (
                checkpoints[row],
                numbers[row],
                returns[row].to_bits(),
                lengths[row],
                fell[row],
                cut[row],
            )
        })
        .collect()
}

#[test]
fn its_tables_are_those_that_the_kind_declares() {
    let (trials, summary) = tables(&set(&[(0, standing(1.0)), (7, standing(0.9))]), 5, 3);
    for (port, table) in Evaluate::outputs().iter().zip([&trials, &summary]) {
        let Content::Table(schema) = &port.content else {
            panic!("{} is no table", port.name)
        };
        assert_eq!(&table.schema(), schema, "{}", port.name);
        assert_eq!(
            table.metadata().get("environment").map(String::as_str),
            Some("hopper")
        );
    }
    assert_eq!(
        rows(&trials).iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(),
        {
            let numbers = |checkpoint| (0..5).map(move |trial| (checkpoint, trial));
            numbers(0).chain(numbers(7)).collect::<Vec<_>>()
        }
    );
    assert_eq!(summary.column_u32("checkpoint").unwrap(), [0, 7]);
}

#[test]
fn the_summary_is_that_of_the_trials() {
    let (trials, summary) = tables(&set(&[(2, standing(1.0))]), 9, 1);
    let (mut returns, lengths) = (
        trials.column_f64("return").unwrap().to_vec(),
        trials.column_u32("length").unwrap().to_vec(),
    );
    let value = |name: &str| summary.column_f64(name).unwrap()[0];
    assert!((value("mean") - returns.iter().sum::<f64>() / 9.0).abs() < 1e-9);
    returns.sort_by(f64::total_cmp);
    assert_eq!(
        (value("min"), value("median"), value("max")),
        (returns[0], returns[4], returns[8])
    );
    assert!((value("length") - f64::from(lengths.iter().sum::<u32>()) / 9.0).abs() < 1e-9);
    assert!(value("ci_low") < value("mean") && value("mean") < value("ci_high"));
    // This policy falls every time, and differs from trial to trial.
    assert_eq!(summary.column_u32("early_falls").unwrap(), [9]);
    assert!(lengths.iter().all(|length| *length < 1000) && value("std") > 0.0);
}

/// A policy that does nothing, and the same episodes by hand.
#[test]
fn discounted_returns_weigh_each_reward_by_its_time() {
    let still = policy(15, vec![0.0; 45], vec![0.0; 3], "hopper");
    let (trials, summary) = tables(&set(&[(0, still)]), 4, 8);
    let task = provenir_sim::Task::named("hopper").unwrap();
    let mut seeds = provenir_random::Stream::new(8, "trials");
    let mut expected = Vec::new();
    for length in trials.column_u32("length").unwrap() {
        let mut environment = provenir_sim::Environment::new(task, false);
        environment.reset(seeds.u64());
        let rewards = (0..*length).map(|_| environment.step(&[0.0; 3]).unwrap().reward);
        // Horner's scheme, from the end.
        let rewards: Vec<f64> = rewards.collect();
        expected.push(
            rewards
                .iter()
                .rev()
                .fold(0.0, |later, reward| reward + 0.9 * later),
        );
    }
    let found = trials.column_f64("discounted_return").unwrap();
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }
    let mean = summary.column_f64("discounted_mean").unwrap()[0];
    assert!((mean - expected.iter().sum::<f64>() / 4.0).abs() < 1e-9);
    assert_eq!(
        summary.metadata().get("discount").map(String::as_str),
        Some("0.9")
    );
}

#[test]
fn shares_relate_to_the_mean_of_the_expert_s_whole_episodes() {
    let shares = |outputs: &Outputs, port| {
        let table = outputs.get_table(port).unwrap();
        let value = if port == "trials" { "return" } else { "mean" };
        let values = table.column_f64(value).unwrap().to_vec();
        (values, table.optional_f64("share").unwrap())
    };
    let check = |outputs: &Outputs, expert: f64| {
        for port in ["trials", "summary"] {
            let (values, shares) = shares(outputs, port);
            for (value, share) in values.iter().zip(shares) {
                assert!((share.unwrap() - value / expert).abs() < 1e-12);
            }
        }
    };
    // The third was cut where its collection ended; the fourth reached the time limit.
    let whole = episodes(
        &[100.0, 300.0, 7.0, 500.0],
        &[40, 90, 3, 1000],
        &[false, false, true, true],
    );
    check(&beside(whole.build().unwrap()).unwrap(), 300.0);
    // Trials of two checkpoints: the last one is the expert.
    let trials = episodes(&[100.0, 300.0, 8.0], &[40, 90, 10], &[false; 3]).u32("checkpoint", vec![5, 5, 2]);
    check(&beside(trials.build().unwrap()).unwrap(), 200.0);
    // Not wired: unknown.
    let alone = evaluate(&set(&[(0, standing(1.0))]), 3, 1, false).unwrap();
    for port in ["trials", "summary"] {
        assert!(shares(&alone, port).1.iter().all(Option::is_none));
    }
}

#[test]
fn an_expert_that_shares_cannot_relate_to_is_refused() {
    let message = |table: TableBuilder| {
        let failed = Failed::from(beside(table.build().unwrap()).expect_err("it is refused"));
        failed.message
    };
    assert_eq!(
        message(episodes(&[1.0], &[9], &[false]).metadata("environment", "ant")),
        "the input `expert` holds episodes in `ant`, not in `hopper`"
    );
    assert_eq!(
        message(episodes(&[1.0], &[9], &[true])),
        "the input `expert` holds no whole episode"
    );
    assert_eq!(
        message(episodes(&[1.0, -3.0], &[9, 9], &[false; 2])),
        "the expert's mean return is -1: a share of it says nothing"
    );
    assert_eq!(
        message(episodes(&[f64::NAN], &[9], &[false])),
        "the expert's mean return is NaN: a share of it says nothing"
    );
    assert_eq!(
        message(episodes(&[], &[], &[])),
        "the input `expert` holds no whole episode"
    );
}

#[test]
fn a_trial_depends_on_seed_number_and_policy_only() {
    let both = set(&[(0, standing(0.9)), (1, standing(1.0))]);
    let (trials, summary) = tables(&both, 40, 5);
    let of = |checkpoint| rows(&trials).into_iter().filter(move |row| row.0 == checkpoint);
    // Alone, and with fewer trials beside it.
    let (alone, _) = tables(&set(&[(1, standing(1.0))]), 12, 5);
    assert_eq!(rows(&alone), of(1).take(12).collect::<Vec<_>>());
    // Another seed gives other trials; the same gives the same tables.
    let (other, _) = tables(&set(&[(1, standing(1.0))]), 12, 6);
    assert!(
        rows(&other)
            .iter()
            .zip(rows(&alone))
            .all(|(other, alone)| other.2 != alone.2)
    );
    assert_eq!(tables(&both, 40, 5), (trials, summary));
}

#[test]
fn what_cannot_be_evaluated_is_named() {
    let failure = |policies: &PolicySet, cancelled| {
        Failed::from(evaluate(policies, 2, 0, cancelled).expect_err("it cannot be evaluated"))
    };
    let walker = failure(
        &PolicySet::single(policy(15, vec![0.0; 45], vec![0.0; 3], "walker2d")),
        false,
    );
    assert_eq!(walker.blame, Blame::Stage);
    assert_eq!(
        walker.message,
        "the policy does not fit: it was made for the environment `walker2d`, not for `hopper`"
    );
    assert!(walker.help.is_some());
    let wide = failure(
        &PolicySet::single(policy(16, vec![0.0; 48], vec![0.0; 3], "hopper")),
        false,
    );
    assert!(wide.message.contains("it sees 16 numbers"), "{}", wide.message);
    let steep = overflowing();
    let diverged = failure(&set(&[(4, steep)]), false);
    assert!(
        diverged.message.starts_with("checkpoint 4: component"),
        "{}",
        diverged.message
    );
    assert!(
        diverged.message.contains("the policy has diverged"),
        "{}",
        diverged.message
    );
    assert_eq!(
        failure(&PolicySet::single(standing(1.0)), true).blame,
        Blame::Cancelled
    );
}

#[test]
fn a_table_that_is_no_policy_is_an_error() {
    let cancelled = AtomicBool::new(false);
    let context = Context::new(&Silent, &cancelled, "unused");
    let table = TableBuilder::new().u32("checkpoint", vec![0]).build().unwrap();
    let failed = EvaluateExecution.execute(
        &parameters(1, 0),
        &Inputs::new().with_table("policy", table),
        &context,
    );
    assert_eq!(failed.unwrap_err().blame(), Blame::Stage);
}

#[test]
fn a_policy_in_a_file_is_evaluated_as_one_that_is_wired() {
    let policies = set(&[(1, standing(1.0)), (4, standing(0.5))]);
    let folder = tempfile::tempdir().unwrap();
    let file = Utf8Path::from_path(folder.path())
        .unwrap()
        .join("policy.safetensors");
    fs_err::write(&file, policies.to_safetensors()).unwrap();
    let cancelled = AtomicBool::new(false);
    let digest = Digest::of(&policies.to_safetensors());
    let context = Context::new(&Silent, &cancelled, "unused").with_source("/policy", &file, digest);
    let parameters = EvaluateParameters {
        policy: Some(SourceFile(file.clone())),
        ..parameters(3, 7)
    };
    let outputs = EvaluateExecution
        .execute(&parameters, &Inputs::new(), &context)
        .unwrap();
    let (trials, summary) = tables(&policies, 3, 7);
    for (port, wired) in [("trials", trials), ("summary", summary)] {
        assert_eq!(
            outputs.get_table(port).unwrap().content(),
            wired.content(),
            "{port}"
        );
    }
}

/// What revision 2 gives. Where this is to change, raise the revision of what changed (`evaluate`, or machinery it uses) in
/// `stages/kinds`, and record anew.
#[test]
fn golden() {
    const RETURNS: [f64; 4] = [
        20.474_946_756_059_943,
        18.426_906_665_989_37,
        18.457_430_007_217_045,
        14.719_931_215_599_354,
    ];
    const TRIALS: &str = "8ec7ed0410181574fb46c9d14b20b2d2edd754ac9d7d6a80ec639163ffd9c0d6";
    const SUMMARY: &str = "289265c15abedcf0604ad453ba94d6604c84b82a0c7315aa101902ab909a7b17";

    // Falls within a dozen steps, before other last bits of another C library can grow.
    let falling = policy(15, vec![0.0; 45], vec![1.0, -0.5, 0.5], "hopper");
    let (trials, summary) = tables(&set(&[(0, falling)]), 4, 1);
    assert_eq!(trials.column_u32("length").unwrap(), [11, 11, 12, 11]);
    for (found, expected) in trials.column_f64("return").unwrap().iter().zip(RETURNS) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }
    if has_fma() {
        assert_eq!(
            (trials.content().hex().as_str(), summary.content().hex().as_str()),
            (TRIALS, SUMMARY)
        );
    } else {
        println!("SKIPPED the digests: they were recorded on an x86-64 processor with FMA");
    }
}

/// Sine and cosine of the C library take another path without it, with other last bits.
#[cfg(target_arch = "x86_64")]
fn has_fma() -> bool {
    std::is_x86_feature_detected!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_fma() -> bool {
    false
}

#[test]
fn cores_change_nothing() {
    let policies = set(&[(0, standing(1.0)), (7, standing(0.9))]);
    let digests = |cores| {
        let cancelled = AtomicBool::new(false);
        let context = Context::new(&Silent, &cancelled, "unused").with_cores(cores);
        let outputs = EvaluateExecution
            .execute(&parameters(7, 3), &inputs(&policies), &context)
            .expect("it evaluates");
        ["trials", "summary"].map(|port| outputs.get_table(port).expect("the port was given").content())
    };
    let one = digests(1);
    for cores in [2, 3, 40] {
        assert_eq!(digests(cores), one, "{cores}");
    }
}

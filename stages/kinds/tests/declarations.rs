//! What holds for the declaration of every built-in kind.

use std::collections::BTreeSet;

use provenir_api::port::{Column, ColumnType, TableSchema};
use provenir_api::{AnyKind, schema};
use provenir_kinds::all;
use serde_json::{Value, json};

/// The JSON Schema keywords that `provenir_api::schema` checks, and those that say nothing about values.
const CHECKED: &[&str] = &[
    "type",
    "properties",
    "required",
    "additionalProperties",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
];
const SILENT: &[&str] = &["title", "description", "default", "format"];

fn each_schema<'a>(schema: &'a Value, place: &str, visit: &mut impl FnMut(&str, &'a Value)) {
    visit(place, schema);
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        each_schema(property, &format!("{place}/{name}"), visit);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(key).filter(|inner| inner.is_object()) {
            each_schema(inner, &format!("{place}/{key}"), visit);
        }
    }
    for key in ["anyOf", "oneOf"] {
        for inner in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            each_schema(inner, place, visit);
        }
    }
}

#[test]
fn every_keyword_of_a_schema_is_one_that_is_checked() {
    for kind in all() {
        each_schema(kind.schema(), kind.name(), &mut |place, schema| {
            for keyword in schema
                .as_object()
                .into_iter()
                .flatten()
                .map(|(keyword, _)| keyword.as_str())
            {
                assert!(
                    CHECKED.contains(&keyword) || SILENT.contains(&keyword),
                    "`{keyword}` at {place}"
                );
            }
        });
    }
}

#[test]
fn every_parameter_is_documented_and_every_table_is_closed() {
    for kind in all() {
        each_schema(kind.schema(), kind.name(), &mut |place, schema| {
            for (name, property) in schema
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                let description = property
                    .get("description")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                assert!(
                    description.ends_with(['.', ')']),
                    "{place}/{name} is not documented by sentences: `{description}`"
                );
            }
            if schema.get("properties").is_some() {
                assert_eq!(
                    schema.get("additionalProperties"),
                    Some(&json!(false)),
                    "{place} accepts unknown keys"
                );
            }
        });
    }
}

#[test]
fn every_default_is_itself_in_range() {
    for kind in all() {
        each_schema(kind.schema(), kind.name(), &mut |place, schema| {
            for (name, property) in schema
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                if let Some(default) = property.get("default") {
                    let problems = provenir_api::schema::check(property, default);
                    assert!(problems.is_empty(), "the default of {place}/{name}: {problems:?}");
                }
            }
        });
    }
}

#[test]
fn names_are_unique_and_the_kinds_own_revision_comes_first() {
    let mut kinds = BTreeSet::new();
    for kind in all() {
        assert!(
            kinds.insert(kind.name()),
            "two kinds are called `{}`",
            kind.name()
        );
        assert_eq!(kind.revisions()[0].part, kind.name());
        let mut inputs = BTreeSet::new();
        assert!(kind.inputs().iter().all(|port| inputs.insert(port.name)));
        let mut outputs = BTreeSet::new();
        assert!(kind.outputs().iter().all(|port| outputs.insert(port.name)));
        assert_eq!(outputs.is_empty(), kind.declares_ports(), "`{}`", kind.name());
    }
}

fn kind(name: &str) -> Box<dyn AnyKind> {
    let found = all().into_iter().find(|kind| kind.name() == name);
    found.unwrap_or_else(|| panic!("no kind is named `{name}`"))
}

#[test]
fn no_learner_sees_which_samples_are_corrupted_or_what_they_were() {
    for kind in all() {
        let inputs: Vec<&str> = kind.inputs().iter().map(|port| port.name).collect();
        let outputs: Vec<&str> = kind.outputs().iter().map(|port| port.name).collect();
        assert!(kind.privileged_inputs().iter().all(|port| inputs.contains(port)));
        assert!(
            kind.privileged_outputs()
                .iter()
                .all(|port| outputs.contains(port))
        );
    }
    assert_eq!(kind("corrupt").privileged_outputs(), ["mask", "clean"]);
    for learner in ["train", "collect", "split", "corrupt"] {
        assert!(kind(learner).privileged_inputs().is_empty(), "{learner}");
    }
}

#[test]
fn what_is_diagnosed_and_with_what_is_checked() {
    let diagnose = kind("diagnose");
    let full = diagnose.resolve(&json!({})).unwrap().full;
    let any = TableSchema::any;
    let messages = |wired: &[(&str, TableSchema)]| -> Vec<String> {
        let problems = diagnose.check(&full, wired);
        problems.into_iter().map(|problem| problem.message).collect()
    };
    assert!(messages(&[("trust", any())]).is_empty());
    assert!(messages(&[("policy", any()), ("clean", any())]).is_empty());
    assert_eq!(messages(&[]), ["there is nothing to diagnose"]);
    assert_eq!(
        messages(&[("policy", any())]),
        ["`policy` and `clean` are needed together"]
    );
    let sample_only = TableSchema::new(vec![Column::new("sample", ColumnType::UInt64)]);
    assert_eq!(
        messages(&[("trust", sample_only)]),
        ["what arrives at `trust` has neither a column `trust` nor `drawn` and `selected`"]
    );
}

#[test]
fn only_the_settings_of_the_chosen_outlier_key() {
    let plain = json!({"outlier": "boundary", "fraction": 0.1, "seed": 2});
    assert_eq!(canonical("corrupt", &plain), plain);
    let verbose = json!({
        "outlier": "boundary", "fraction": 0.1, "seed": 2, "placement": "sample", "constant": 0.5, "noise": 3.0, "delay": 9,
        "sensors": 0.7,
    });
    assert_eq!(canonical("corrupt", &verbose), plain);
    for (outlier, setting, value, default) in [
        ("constant", "constant", json!(-1.0), json!(1.0)),
        ("gaussian", "noise", json!(0.25), json!(0.5)),
        ("observation-noise", "noise", json!(0.25), json!(0.5)),
        ("delayed", "delay", json!(1), json!(5)),
        ("dead-sensors", "sensors", json!(1.0), json!(0.25)),
    ] {
        let given = json!({"outlier": outlier, "fraction": 0.1, setting: value});
        assert_eq!(canonical("corrupt", &given), given);
        let usual = json!({"outlier": outlier, "fraction": 0.1, setting: default});
        assert_eq!(
            canonical("corrupt", &usual),
            json!({"outlier": outlier, "fraction": 0.1})
        );
    }
}

#[test]
fn a_weaker_policy_replaces_whole_episodes_and_is_wired() {
    let corrupt = kind("corrupt");
    let whole = json!({"outlier": "weaker-policy", "fraction": 0.1, "placement": "episode"});
    let problems = corrupt
        .resolve(&json!({"outlier": "weaker-policy", "fraction": 0.1}))
        .unwrap_err();
    assert_eq!(problems[0].message, "`weaker-policy` replaces whole episodes");
    let weaker = corrupt.resolve(&whole).unwrap();
    let plain = corrupt
        .resolve(&json!({"outlier": "uniform", "fraction": 0.1}))
        .unwrap();
    let wired = [("demos", TableSchema::any()), ("weaker", TableSchema::any())];
    assert!(corrupt.check(&weaker.full, &wired).is_empty());
    assert!(corrupt.check(&plain.full, &wired[..1]).is_empty());
    assert_eq!(
        corrupt.check(&weaker.full, &wired[..1])[0].message,
        "the weaker policy's demonstrations are missing"
    );
    assert_eq!(corrupt.check(&plain.full, &wired)[0].pointer, "/outlier");
}

#[test]
fn rollouts_can_use_a_core_an_episode() {
    for (name, parameters, spare) in [
        ("evaluate", json!({"env": "ant", "trials": 20}), 19),
        ("evaluate", json!({"env": "ant", "trials": 1}), 0),
        ("collect", json!({"env": "ant", "episodes": 3}), 2),
        ("collect", json!({"env": "ant", "samples": 2001}), 2),
        ("collect", json!({"env": "ant", "samples": 1}), 0),
        ("train", json!({"method": "bc", "epochs": 2}), 0),
    ] {
        assert_eq!(
            kind(name).resolve(&parameters).unwrap().spare_cores,
            spare,
            "{name}"
        );
    }
}

#[test]
fn a_measured_training_is_alone_and_has_a_key_of_its_own() {
    let usual = json!({"method": "bc", "epochs": 2, "hidden": [64]});
    let mut given = usual.clone();
    given["measure_time"] = json!(false);
    assert_eq!(canonical("train", &given), usual);
    let plain = kind("train").resolve(&given).unwrap();
    assert!(!plain.exclusive && plain.group.is_some_and(|group| group.most > 1));
    given["measure_time"] = json!(true);
    assert_eq!(canonical("train", &given), given);
    let measured = kind("train").resolve(&given).unwrap();
    assert!(measured.exclusive && measured.group.is_none());
    assert_eq!(
        (measured.resources, measured.facts),
        (plain.resources, plain.facts)
    );
}

#[test]
fn trainings_whose_steps_have_one_shape_may_differ_in_method() {
    let group = |parameters: &Value| {
        let resolved = kind("train").resolve(parameters).unwrap();
        let mut common = resolved.full;
        for own in resolved.group.unwrap().own {
            schema::remove(&mut common, own);
        }
        common
    };
    let bc = json!({"method": "bc", "epochs": 8});
    for alike in [
        json!({"method": "bc", "epochs": 8, "seed": 3, "learning_rate": 1e-3, "loss": "nll", "nll": {"learned": true}}),
        json!({"method": "trimmed", "epochs": 8, "trimmed": {"among": "epoch"}, "rbc": {"block": 2}}),
        json!({"method": "mixture", "epochs": 8, "mixture": {"assumed_epsilon": 0.1}}),
        json!({"method": "robust-loss", "epochs": 8, "robust_loss": {"loss": "welsch"}}),
        json!({"method": "range-filter", "epochs": 8, "range_filter": {"bound": 0.9}}),
    ] {
        assert_eq!(group(&alike), group(&bc), "{alike}");
    }
    for other in [
        json!({"method": "rbc", "epochs": 8}),
        json!({"method": "noisy-bc", "epochs": 8}),
        json!({"method": "co-teaching", "epochs": 8}),
        json!({"method": "filter", "epochs": 8}),
        json!({"method": "bc", "epochs": 9}),
        json!({"method": "bc", "epochs": 8, "batch": 64}),
        json!({"method": "bc", "epochs": 8, "hidden": [64]}),
        json!({"method": "bc", "epochs": 8, "weight_decay": 0.1}),
    ] {
        assert_ne!(group(&other), group(&bc), "{other}");
    }
}

fn canonical(name: &str, parameters: &Value) -> Value {
    kind(name)
        .resolve(parameters)
        .unwrap_or_else(|problems| panic!("{problems:?}"))
        .canonical
}

#[test]
fn the_settings_of_a_method_that_is_not_chosen_do_not_key() {
    let plain = canonical("train", &json!({"method": "bc", "epochs": 2}));
    assert_eq!(plain, json!({"method": "bc", "epochs": 2}));
    assert_eq!(
        canonical(
            "train",
            &json!({"method": "bc", "epochs": 2, "rbc": {"window": 0.4}, "device": "cpu"})
        ),
        plain
    );
    assert_eq!(
        canonical(
            "train",
            &json!({"method": "rbc", "epochs": 2, "rbc": {"block": 3, "block_max": 4, "window": 0.4, "assumed_epsilon": 0.1}})
        ),
        json!({"method": "rbc", "epochs": 2, "rbc": {"block": 3, "window": 0.4}})
    );
    // The window follows from it where that is not given.
    assert_eq!(
        canonical(
            "train",
            &json!({"method": "rbc", "epochs": 2, "rbc": {"block": 3, "assumed_epsilon": 0.1}})
        ),
        json!({"method": "rbc", "epochs": 2, "rbc": {"block": 3, "assumed_epsilon": 0.1}})
    );
}

#[test]
fn of_the_tables_of_methods_only_what_matters_keys() {
    let key = |parameters: Value| {
        let mut full = json!({"epochs": 9});
        for (name, value) in parameters.as_object().unwrap() {
            full[name] = value.clone();
        }
        let mut canonical = canonical("train", &full);
        canonical.as_object_mut().unwrap().remove("epochs");
        canonical
    };
    let all = json!({
        "loss": "nll", "nll": {"sigma": 0.3, "floor": 0.2}, "rbc": {"window": 0.4, "tau_steps": 7},
        "noisy_bc": {"rounds": 3, "members": 7}, "trimmed": {"keep": 0.6, "margin": 0.1},
        "mixture": {"learn_epsilon": true}, "robust_loss": {"freedom": 4.0, "scale": 0.1, "scale_floor": 0.2},
        "co_teaching": {"ramp": 3}, "filter": {"folds": 4, "by": "rbc"}, "range_filter": {"bound": 0.5},
    });
    let of = |method: &str| {
        let mut parameters = all.clone();
        parameters["method"] = json!(method);
        key(parameters)
    };
    for (method, expected) in [
        ("bc", json!({"loss": "nll", "nll": {"sigma": 0.3}})),
        (
            "rbc",
            json!({"loss": "nll", "nll": {"sigma": 0.3}, "rbc": {"window": 0.4, "tau_steps": 7}}),
        ),
        ("noisy-bc", json!({"noisy_bc": {"rounds": 3}})),
        ("trimmed", json!({"trimmed": {"keep": 0.6}})),
        ("mixture", json!({"mixture": {"learn_epsilon": true}})),
        ("robust-loss", json!({"robust_loss": {"scale": 0.1}})),
        ("co-teaching", json!({"co_teaching": {"ramp": 3}})),
        ("filter", json!({"filter": {"by": "rbc"}, "rbc": {"window": 0.4}})),
        ("range-filter", json!({"range_filter": {"bound": 0.5}})),
    ] {
        let mut expected = expected;
        expected["method"] = json!(method);
        assert_eq!(of(method), expected);
    }
    // The deviation at which τ̂ is measured matters to whoever measures it, whatever the loss.
    let rbc = |rbc: Value| key(json!({"method": "rbc", "nll": {"sigma": 0.3, "learned": true}, "rbc": rbc}));
    assert_eq!(rbc(json!({})), json!({"method": "rbc", "nll": {"sigma": 0.3}}));
    for without in [json!({"tau_steps": 0}), json!({"objective": "direct"})] {
        assert_eq!(rbc(without.clone()), json!({"method": "rbc", "rbc": without}));
    }
    assert_eq!(
        key(json!({"method": "noisy-bc", "noisy_bc": {"form": "published", "members": 7}})),
        json!({"method": "noisy-bc", "noisy_bc": {"form": "published", "members": 7}})
    );
    assert_eq!(
        key(
            json!({"method": "robust-loss", "robust_loss": {"loss": "student-t", "freedom": 4.0, "scale_floor": 0.2}})
        ),
        json!({"method": "robust-loss", "robust_loss": {"loss": "student-t", "freedom": 4.0, "scale_floor": 0.2}})
    );
}

#[test]
fn settings_that_cannot_work_are_refused_with_their_reason() {
    let problem = |parameters: Value| {
        let problems = kind("train").resolve(&parameters).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        (problems[0].pointer.clone(), problems[0].message.clone())
    };
    let (place, why) =
        problem(json!({"method": "rbc", "epochs": 2, "loss": "nll", "nll": {"learned": true}}));
    assert_eq!(place, "/nll/learned");
    assert!(why.contains("unbounded"), "{why}");
    for (parameters, place) in [
        (json!({"method": "noisy-bc", "epochs": 4}), "/noisy_bc/rounds"),
        (
            json!({"method": "trimmed", "epochs": 4, "trimmed": {"assumed_epsilon": 0.9, "margin": 0.1}}),
            "/trimmed/margin",
        ),
        (json!({"method": "filter", "epochs": 1}), "/epochs"),
        (
            json!({"method": "filter", "epochs": 4, "filter": {"by": "rbc"}, "rbc": {"block": 5, "chunk": 4}}),
            "/rbc/chunk",
        ),
        (
            json!({"method": "mixture", "epochs": 4, "mixture": {"assumed_epsilon": 0.0}}),
            "/mixture/assumed_epsilon",
        ),
    ] {
        assert_eq!(problem(parameters).0, place);
    }
    // What belongs to a method that is not chosen does no harm.
    assert!(
        kind("train")
            .resolve(&json!({"method": "bc", "epochs": 1, "nll": {"learned": true}}))
            .is_ok()
    );
}

#[test]
fn methods_are_written_as_they_are_named() {
    for name in [
        "bc",
        "rbc",
        "noisy-bc",
        "trimmed",
        "mixture",
        "robust-loss",
        "co-teaching",
        "filter",
        "range-filter",
    ] {
        let method: provenir_kinds::train::Method = serde_json::from_value(json!(name)).unwrap();
        assert_eq!(method.name(), name);
    }
}

#[test]
fn block_and_window_follow_from_the_assumed_share_of_outliers() {
    let settings = |assumed_epsilon: f64| {
        let rbc = provenir_kinds::train::Rbc {
            assumed_epsilon,
            ..Default::default()
        };
        (rbc.block_size(), rbc.window_share())
    };
    // ⌊1/(3ε)⌋ between 1 and 6, and 2 (1 − ε)^b − 1.
    for (assumed, block, clean) in [
        (0.0, 6, 1.0),
        (0.05, 6, 0.735_091_890_625),
        (0.1, 3, 0.729),
        (0.15, 2, 0.7225),
        (0.2, 1, 0.8),
        (1.0 / 6.0, 2, 25.0 / 36.0),
        (0.4, 1, 0.6),
    ] {
        let (found, window) = settings(assumed);
        assert_eq!(found, block, "{assumed}");
        assert!(
            (window - (2.0 * clean - 1.0)).abs() < 1e-12,
            "{assumed}: {window}"
        );
    }
    let given = provenir_kinds::train::Rbc {
        block: Some(6),
        window: Some(0.25),
        ..Default::default()
    };
    assert_eq!(given.block_size(), 6);
    assert!((given.window_share() - 0.25).abs() < 1e-12);
    let dirty = provenir_kinds::train::Rbc {
        block: Some(6),
        ..Default::default()
    };
    assert!(dirty.window_share().abs() < 1e-12);
}

#[test]
fn what_to_collect_and_from_whom_is_checked() {
    let message = |parameters: Value| {
        kind("collect").resolve(&parameters).unwrap_err()[0]
            .message
            .clone()
    };
    assert_eq!(
        message(json!({"env": "hopper"})),
        "how much to collect is missing"
    );
    assert_eq!(
        message(json!({"env": "hopper", "samples": 5, "episodes": 1})),
        "`samples` and `episodes` are both given"
    );
    assert_eq!(
        message(json!({"env": "hopper", "samples": 5, "expert": "a.pkl"})),
        "`a.pkl` is neither a policy nor an archive"
    );
    let resolved = kind("collect")
        .resolve(&json!({"env": "hopper", "samples": 5}))
        .unwrap();
    assert_eq!(
        kind("collect").check(&resolved.full, &[])[0].message,
        "the expert is missing"
    );
    // What is not given is no part of what keys a cell; what is given may stand beside every expert, which is checked.
    let canonical = |parameters: Value| kind("collect").resolve(&parameters).unwrap().canonical;
    for expert in ["a.zip", "a.parquet", "a.safetensors"] {
        assert_eq!(
            canonical(json!({"env": "hopper", "samples": 5, "expert": expert})),
            json!({"env": "hopper", "samples": 5})
        );
        for given in [false, true] {
            assert_eq!(
                canonical(json!({"env": "hopper", "samples": 5, "expert": expert, "time_feature": given})),
                json!({"env": "hopper", "samples": 5, "time_feature": given})
            );
        }
    }
}

#[test]
fn environments_are_written_as_they_are_named() {
    for environment in provenir_kinds::Environment::ALL {
        assert_eq!(json!(environment), environment.name());
    }
}

#[test]
fn what_to_draw_and_how_much_of_it_is_checked() {
    let problems = |parameters: Value| kind("render").resolve(&parameters).unwrap_err();
    let message = |parameters: Value| problems(parameters)[0].message.clone();
    assert_eq!(
        message(json!({"env": "hopper", "policy": "a.pkl"})),
        "`a.pkl` is neither a policy nor an archive"
    );
    assert_eq!(
        message(json!({"env": "hopper", "policy": "a.parquet", "activation": "tanh"})),
        "`activation` belongs to a Stable-Baselines3 archive (.zip) named by `policy`"
    );
    // Whether it is what the policy says of itself is seen when that is read, as with `collect` and `evaluate`.
    for kind_of_stage in ["render", "evaluate"] {
        for policy in ["a.parquet", "a.zip", "0123abcd"] {
            let given = json!({"env": "hopper", "policy": policy, "time_feature": true});
            assert!(
                kind(kind_of_stage).resolve(&given).is_ok(),
                "{kind_of_stage} {policy}"
            );
        }
    }
    // 16.5 s at a twentieth of the pace: 330 s, each of 50 frames.
    assert_eq!(
        message(json!({"env": "hopper", "speed": 0.05, "fps": 50})),
        "the animation has up to 16501 frames; at most 3000 are drawn"
    );
    assert!(
        message(json!({"env": "hopper", "fps": 50, "speed": 0.5, "width": 1920, "height": 1080}))
            .contains("pixels together")
    );
    assert_eq!(problems(json!({"env": "hopper", "fps": 51}))[0].pointer, "/fps");
    let resolved = kind("render")
        .resolve(&json!({"env": "ant", "policy": "0123abcd", "format": "gif", "speed": 1}))
        .unwrap();
    assert_eq!(resolved.canonical, json!({"env": "ant"}));
    assert_eq!(resolved.sources.len(), 1);
    let wired = [("policy", TableSchema::any())];
    assert_eq!(kind("render").check(&resolved.full, &wired)[0].pointer, "/policy");
    let unnamed = kind("render").resolve(&json!({"env": "ant"})).unwrap();
    assert!(kind("render").check(&unnamed.full, &wired).is_empty());
    assert_eq!(
        kind("render").check(&unnamed.full, &[])[0].message,
        "the policy is missing"
    );
}

#[test]
fn what_an_expert_is_trained_by_is_checked_and_keyed() {
    let plain = json!({"env": "hopper"});
    assert_eq!(canonical("expert", &plain), plain);
    assert_eq!(
        canonical("expert", &json!({"env": "hopper", "temperature": null})),
        plain
    );
    assert_eq!(
        canonical(
            "expert",
            &json!({"env": "hopper", "tqc": {"dropped": 5}, "decay_from": 0.5, "final_share": 0.1, "device": "cpu"})
        ),
        plain
    );
    let chosen = json!({
        "env": "ant", "algorithm": "tqc", "tqc": {"dropped": 5}, "schedule": "linear", "decay_from": 0.5, "temperature": 0.1,
    });
    assert_eq!(canonical("expert", &chosen), chosen);

    let places = |parameters: Value| -> Vec<String> {
        let problems = kind("expert").resolve(&parameters).unwrap_err();
        problems.into_iter().map(|problem| problem.pointer).collect()
    };
    let tqc = |dropped: u32| json!({"env": "hopper", "algorithm": "tqc", "tqc": {"quantiles": 5, "dropped": dropped}});
    assert_eq!(places(tqc(5)), ["/tqc/dropped"]);
    assert!(kind("expert").resolve(&tqc(4)).is_ok());
    let short = json!({"env": "hopper", "steps": 10_000, "buffer": 8});
    assert_eq!(places(short), ["/learning_starts", "/buffer"]);
    assert_eq!(
        places(json!({"env": "hopper", "learning_rate": 0.0})),
        ["/learning_rate"]
    );
}

#[test]
fn the_learning_rate_of_an_expert_falls_from_where_it_is_to_fall() {
    let parameters = |schedule: &str| -> provenir_kinds::expert::ExpertParameters {
        let json = json!({"env": "hopper", "schedule": schedule, "decay_from": 0.5, "final_share": 0.2});
        serde_json::from_value(json).unwrap()
    };
    // 101 updates: the last is number 100.
    for (update, expected) in [(0, 1.0), (50, 1.0), (75, 0.6), (100, 0.2)] {
        let share = parameters("linear").rate_share(update, 101);
        assert!((share - expected).abs() < 1e-12, "{update}: {share}");
        assert!((parameters("constant").rate_share(update, 101) - 1.0).abs() < 1e-12);
    }
    assert!((parameters("linear").rate_share(0, 1) - 1.0).abs() < 1e-12);
}

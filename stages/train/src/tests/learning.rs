use super::*;

/// Slope of the least-squares line through the origin from the expert's actions to the policy's, and the root mean
/// squared distance between them.
fn compare(outputs: &Outputs) -> (f64, f64) {
    let clean = demonstrations(500, 77);
    let found = actions(outputs, &clean.observation);
    let pairs = || {
        let values = found.values().iter().zip(clean.action.values());
        values.map(|(found, expected)| (f64::from(*found), f64::from(*expected)))
    };
    let slope = pairs().map(|(found, expected)| found * expected).sum::<f64>()
        / pairs().map(|(_, expected)| expected * expected).sum::<f64>();
    let squares = pairs()
        .map(|(found, expected)| (found - expected).powi(2))
        .sum::<f64>();
    (slope, (squares / found.values().len() as f64).sqrt())
}

#[test]
fn robust_methods_too_learn_what_clean_demonstrations_show() {
    let demos = demonstrations(3000, 1);
    for parameters in [
        parameters!({ "method": "bc", "hidden": [48, 48], "epochs": 40, "learning_rate": 3e-3 }),
        parameters!({ "method": "rbc", "hidden": [48, 48], "epochs": 40, "learning_rate": 3e-3, "rbc": { "assumed_epsilon": 0.1 } }),
        parameters!({ "method": "noisy-bc", "hidden": [48, 48], "epochs": 80, "learning_rate": 3e-3, "noisy_bc": { "rounds": 2 } }),
    ] {
        let (slope, error) = compare(&train(&parameters, &demos));
        assert!((slope - 1.0).abs() < 0.03 && error < 0.04, "{slope} {error}");
    }
}

#[test]
fn outliers_pull_least_squares_towards_their_mean_and_leave_median_of_means_alone() {
    // A fifth of the actions is ±1 with mean 0: the mean of what is shown is 0.8 of what the expert does.
    let demos = with_outliers(demonstrations(4000, 2), 800);
    let base = |method: &str, objective: &str, block: u32| {
        parameters!({
            "method": method, "hidden": [48, 48], "epochs": 40, "learning_rate": 3e-3, "seed": 5,
            "rbc": { "objective": objective, "assumed_epsilon": 0.2, "block": block },
        })
    };
    let bc = train(&base("bc", "direct", 1), &demos);
    let (slope, error) = compare(&bc);
    assert!((slope - 0.8).abs() < 0.05 && error > 0.08, "{slope} {error}");
    for (objective, block) in [("min-max", 1), ("direct", 1), ("min-max", 2)] {
        let rbc = train(&base("rbc", objective, block), &demos);
        let (slope, error) = compare(&rbc);
        assert!(
            (slope - 1.0).abs() < 0.04 && error < 0.05,
            "{objective} {block}: {slope} {error}"
        );
        // Outliers are trusted less.
        let trust = rbc.get_table("trust").unwrap();
        assert_eq!(trust.column_u64("sample").unwrap(), demos.sample);
        let share = |rows: std::ops::Range<usize>| {
            let sum = |column| {
                trust.column_u64(column).unwrap()[rows.clone()]
                    .iter()
                    .sum::<u64>() as f64
            };
            sum("selected") / sum("drawn")
        };
        let (outliers, clean) = (share(0..800), share(800..4000));
        assert!(outliers < 0.75 * clean, "{objective} {block}: {outliers} {clean}");
        // A challenger that learns on against a policy that stands still gets ahead of it; without one nothing is measured.
        let tau = rbc.get_table("history").unwrap().optional_f64("tau").unwrap();
        assert!(tau[..39].iter().all(Option::is_none));
        assert_eq!(tau[39].is_some(), objective == "min-max");
    }
}

/// Mean trust of the outliers, which come first, and of the others.
fn trust(outputs: &Outputs, outliers: usize) -> (f64, f64) {
    let trust = outputs.get_table("trust").unwrap().column_f64("trust").unwrap();
    assert!(trust.iter().all(|trust| (0.0..=1.0).contains(trust)));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    (mean(&trust[..outliers]), mean(&trust[outliers..]))
}

#[test]
fn every_rival_withstands_what_ruins_least_squares_and_trusts_outliers_less() {
    let demos = with_outliers(demonstrations(4000, 2), 800);
    for (method, extra) in [
        ("noisy-bc", serde_json::json!({})),
        (
            "noisy-bc",
            serde_json::json!({ "noisy_bc": { "form": "published", "members": 3, "rounds": 3 } }),
        ),
        ("trimmed", serde_json::json!({})),
        ("trimmed", serde_json::json!({ "trimmed": { "among": "epoch" } })),
        ("mixture", serde_json::json!({})),
        (
            "mixture",
            serde_json::json!({ "mixture": { "assumed_epsilon": 0.05, "learn_epsilon": true } }),
        ),
        ("robust-loss", serde_json::json!({})),
        (
            "robust-loss",
            serde_json::json!({ "robust_loss": { "loss": "norm" } }),
        ),
        (
            "robust-loss",
            serde_json::json!({ "robust_loss": { "loss": "student-t" } }),
        ),
        (
            "robust-loss",
            serde_json::json!({ "robust_loss": { "loss": "welsch" } }),
        ),
        ("co-teaching", serde_json::json!({})),
        ("filter", serde_json::json!({})),
        ("filter", serde_json::json!({ "filter": { "by": "rbc" } })),
        ("range-filter", serde_json::json!({})),
    ] {
        let mut json = serde_json::json!({
            "method": method, "hidden": [48, 48], "epochs": 60, "learning_rate": 3e-3, "seed": 5,
        });
        for (key, value) in extra.as_object().unwrap() {
            json[key] = value.clone();
        }
        let outputs = train(&serde_json::from_value(json).unwrap(), &demos);
        let (slope, error) = compare(&outputs);
        let (outliers, clean) = trust(&outputs, 800);
        eprintln!("{method} {extra}: slope {slope:.3}, error {error:.4}, trust {outliers:.3} and {clean:.3}");
        assert!(
            (slope - 1.0).abs() < 0.06 && error < 0.07,
            "{method} {extra}: {slope} {error}"
        );
        assert!(outliers < 0.75 * clean, "{method} {extra}: {outliers} {clean}");
        assert_eq!(policies(&outputs).last().about().method, method);
    }
}

#[test]
fn an_epoch_of_cloning_draws_every_sample_once_and_one_of_median_of_means_takes_as_many_steps() {
    // 300 samples in batches of 128: two whole ones and one of 44.
    let demos = demonstrations(300, 3);
    let counts = |outputs: &Outputs, column: &str| {
        outputs
            .get_table("trust")
            .unwrap()
            .column_u64(column)
            .unwrap()
            .to_vec()
    };
    let bc = train(
        &parameters!({ "method": "bc", "hidden": [4], "epochs": 5, "batch": 128 }),
        &demos,
    );
    assert_eq!(counts(&bc, "drawn"), [5; 300]);
    assert_eq!(counts(&bc, "selected"), [5; 300]);
    let rbc = parameters!({
        "method": "rbc", "hidden": [4], "epochs": 5, "batch": 128, "rbc": { "chunk": 100, "assumed_epsilon": 0.2 },
    });
    let outputs = train(&rbc, &demos);
    let sum = |column: &str| counts(&outputs, column).iter().sum::<u64>();
    assert_eq!((sum("drawn"), sum("selected")), (5 * 3 * 100, 5 * 3 * 60));
    let whole = parameters!({
        "method": "rbc", "hidden": [4], "epochs": 2, "batch": 128, "rbc": { "chunk": 0, "assumed_epsilon": 0.1 },
    });
    assert_eq!(counts(&train(&whole, &demos), "drawn"), [6; 300]);
}

#[test]
fn the_history_holds_what_its_columns_say() {
    let (demos, validation) = (demonstrations(700, 4), demonstrations(1500, 5));
    let parameters = parameters!({
        "method": "bc", "hidden": [16], "epochs": 6, "learning_rate": 1e-3, "schedule": "linear", "final_share": 0.1,
    });
    let both = inputs(&demos).with_table("validation", validation.clone().into_table().unwrap());
    let outputs = train_with(&parameters, &both, &Listener::default()).unwrap();
    let history = outputs.get_table("history").unwrap();
    assert_eq!(history.column_u32("epoch").unwrap(), [1, 2, 3, 4, 5, 6]);
    // Three steps an epoch: at the end of epoch e step 3e − 1 of 18 was the last.
    for (epoch, rate) in (1..).zip(history.column_f64("learning_rate").unwrap()) {
        let expected = 1e-3 * (1.0 - 0.9 * f64::from(3 * epoch - 1) / 17.0);
        assert!((rate / expected - 1.0).abs() < 1e-12);
    }
    let loss = history.column_f64("loss").unwrap();
    assert!(loss[5] < loss[0]);
    assert!(
        history
            .optional_f64("median")
            .unwrap()
            .iter()
            .all(Option::is_none)
    );
    assert!(
        history
            .column_f64("gradient_norm")
            .unwrap()
            .iter()
            .all(|norm| *norm > 0.0)
    );
    let found = actions(&outputs, &validation.observation);
    let squares = found.values().iter().zip(validation.action.values());
    let expected = squares
        .map(|(found, expected)| f64::from(found - expected).powi(2))
        .sum::<f64>()
        / 3000.0;
    let last = history.optional_f64("validation_loss").unwrap()[5].unwrap();
    assert!((last / expected - 1.0).abs() < 1e-4, "{last} for {expected}");
    // Without a validation set nothing else changes.
    let alone = train(&parameters, &demos);
    assert_eq!(
        alone.get_table("policy").unwrap().content(),
        outputs.get_table("policy").unwrap().content()
    );
    let missing = alone
        .get_table("history")
        .unwrap()
        .optional_f64("validation_loss")
        .unwrap();
    assert_eq!(missing, [None; 6]);
}

#[test]
fn policies_are_kept_as_asked_and_say_where_they_come_from() {
    let demos = demonstrations(300, 6);
    let numbers = |every: u32| -> Vec<u32> {
        let outputs = train(
            &parameters!({ "method": "bc", "hidden": [4], "epochs": 7, "checkpoint_every": every }),
            &demos,
        );
        let set = policies(&outputs);
        let about = set.last().about();
        assert_eq!(
            (
                about.environment.as_str(),
                about.time_feature,
                about.method.as_str()
            ),
            ("hopper", true, "bc")
        );
        set.checkpoints().iter().map(|(number, _)| *number).collect()
    };
    assert_eq!(numbers(0), [7]);
    assert_eq!(numbers(3), [3, 6, 7]);
    assert_eq!(numbers(7), [7]);
    assert_eq!(numbers(9), [7]);
}

#[test]
fn results_depend_on_the_seed_and_on_nothing_else() {
    let demos = demonstrations(500, 7);
    for method in ["bc", "rbc"] {
        let digests = |seed: u64| {
            let outputs = train(
                &parameters!({ "method": method, "hidden": [20, 20], "epochs": 3, "seed": seed }),
                &demos,
            );
            ["policy", "history", "trust"].map(|port| outputs.get_table(port).unwrap().content())
        };
        assert_eq!(digests(1), digests(1));
        let (first, second) = (digests(1), digests(2));
        assert_ne!(first[0], second[0]);
        assert_ne!(first[1], second[1]);
    }
}

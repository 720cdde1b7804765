//! Agents that Stable-Baselines3 saved, beside the actions that it took itself; recorded by `scripts/record_agents.py`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use provenir_policy::PolicySet;
use provenir_stable_baselines::{Agent, read};
use serde::Deserialize;

use crate::support::assert_acts;

#[derive(Deserialize)]
struct Recorded {
    method: String,
    statistics: bool,
    time_feature: bool,
    observations: Vec<Vec<f32>>,
    actions: Vec<Vec<f64>>,
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

#[test]
fn actions_are_those_of_the_libraries() {
    let recorded: BTreeMap<String, Recorded> =
        serde_json::from_slice(&fs_err::read(fixture("agents.json")).unwrap()).unwrap();
    assert_eq!(recorded.len(), 15);
    for (name, recorded) in recorded {
        let archive = fs_err::read(fixture(&format!("{name}.zip"))).unwrap();
        let statistics = recorded
            .statistics
            .then(|| fs_err::read(fixture(&format!("{name}.pkl"))).unwrap());
        let agent = Agent {
            archive: &archive,
            statistics: statistics.as_deref(),
            activation: None,
            environment: "test",
            time_feature: recorded.time_feature,
        };
        let policy = read(&agent).unwrap_or_else(|error| panic!("{name}: {error}"));
        let about = policy.about();
        assert_eq!(
            (&about.method, about.time_feature),
            (&recorded.method, recorded.time_feature)
        );
        assert_eq!(about.notes["source"], "Stable-Baselines3 2.9.2");
        assert_eq!(about.notes["training_steps"], "0");
        assert_eq!((recorded.observations.len(), recorded.actions.len()), (8, 8));
        for (observation, action) in recorded.observations.iter().zip(&recorded.actions) {
            assert_acts(&policy, observation, action, 1e-6);
        }
    }
}

#[test]
fn safetensors_of_the_formats_own_library_are_read() {
    let recorded: Recorded = serde_json::from_slice(&fs_err::read(fixture("foreign.json")).unwrap()).unwrap();
    let set = PolicySet::from_safetensors(&fs_err::read(fixture("foreign.safetensors")).unwrap()).unwrap();
    let policy = set.last();
    assert_eq!(policy.about().notes["note"], "written by hand");
    for (observation, action) in recorded.observations.iter().zip(&recorded.actions) {
        assert_acts(policy, observation, action, 1e-6);
    }
}

//! Agents that Stable-Baselines3 saved, beside the actions that it took itself; recorded by `fixtures/record.py`.

use provenir_stable_baselines::{Error, NetworkError};
use serde::Deserialize;

use crate::support::{assert_acts, read_agent};

#[derive(Deserialize)]
struct Expected {
    observations: Vec<Vec<f32>>,
    actions: Vec<Vec<f64>>,
}

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../fixtures/", $name)).as_slice()
    };
}

#[test]
fn actions_are_those_of_stable_baselines3() {
    let expected: std::collections::BTreeMap<String, Expected> =
        serde_json::from_slice(fixture!("expected.json")).unwrap();
    let agents = [
        ("ppo", fixture!("ppo.zip"), Some(fixture!("ppo.pkl"))),
        (
            "ppo-relu-gsde",
            fixture!("ppo-relu-gsde.zip"),
            Some(fixture!("ppo-relu-gsde.pkl")),
        ),
        ("a2c", fixture!("a2c.zip"), Some(fixture!("a2c.pkl"))),
        (
            "squashed",
            fixture!("squashed.zip"),
            Some(fixture!("squashed.pkl")),
        ),
        ("plain", fixture!("plain.zip"), None),
    ];
    assert_eq!(agents.len(), expected.len());
    for (name, archive, statistics) in agents {
        let policy = read_agent(archive, statistics, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let Expected {
            observations,
            actions,
        } = &expected[name];
        assert_eq!(observations.len(), 6);
        for (observation, action) in observations.iter().zip(actions) {
            assert_acts(&policy, observation, action, 2e-6);
        }
    }
}

#[test]
fn an_agent_of_sac_is_refused_by_name() {
    let error = read_agent(fixture!("sac.zip"), None, None).unwrap_err();
    assert!(matches!(
        error,
        Error::Network(NetworkError::Algorithm("SAC or TQC"))
    ));
}

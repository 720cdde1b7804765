//! Compares agents with what the libraries that wrote them do: `compare_agents FOLDER`, of a folder that
//! `scripts/record_agents.py` filled. Writes each as `NAME.safetensors` beside it, for `scripts/check_safetensors.py`, and reads
//! it back.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use provenir_policy::{Policy, PolicySet};
use provenir_stable_baselines::{Agent, read};
use serde::Deserialize;

/// The greatest difference of an action from the library's, whose sums add up in another order.
const TOLERANCE: f64 = 1e-6;

#[derive(Deserialize)]
struct Recorded {
    method: String,
    statistics: bool,
    time_feature: bool,
    observations: Vec<Vec<f32>>,
    actions: Vec<Vec<f64>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder: PathBuf = std::env::args_os()
        .nth(1)
        .ok_or("usage: compare_agents FOLDER")?
        .into();
    let recorded: BTreeMap<String, Recorded> =
        serde_json::from_slice(&fs_err::read(folder.join("agents.json"))?)?;
    let (mut worst, mut actions) = ((0.0, String::new()), 0);
    for (name, recorded) in &recorded {
        let policy = agent(&folder, name, recorded).map_err(|error| format!("{name}: {error}"))?;
        let difference = difference(&policy, recorded);
        if difference.is_nan() || difference > worst.0 {
            worst = (difference, name.clone());
        }
        actions += recorded.actions.len();
        let set = PolicySet::single(policy);
        let file = folder.join(format!("{name}.safetensors"));
        fs_err::write(&file, set.to_safetensors())?;
        let again = PolicySet::from_safetensors(&fs_err::read(&file)?)?;
        if again.to_table()?.content() != set.to_table()?.content() {
            return Err(format!("{name}: not the same after it was written as safetensors").into());
        }
    }
    let (difference, name) = worst;
    println!(
        "{} agents, {actions} actions: the greatest difference is {difference:.2e} ({name})",
        recorded.len()
    );
    if difference <= TOLERANCE {
        Ok(())
    } else {
        Err(format!("actions differ by more than {TOLERANCE:e}").into())
    }
}

fn agent(folder: &std::path::Path, name: &str, recorded: &Recorded) -> Result<Policy, Box<dyn Error>> {
    let archive = fs_err::read(folder.join(format!("{name}.zip")))?;
    let statistics = recorded
        .statistics
        .then(|| fs_err::read(folder.join(format!("{name}.pkl"))))
        .transpose()?;
    let policy = read(&Agent {
        archive: &archive,
        statistics: statistics.as_deref(),
        activation: None,
        environment: "test",
        time_feature: recorded.time_feature,
    })?;
    let method = &policy.about().method;
    if *method != recorded.method {
        return Err(format!("read as {method}, made by {}", recorded.method).into());
    }
    Ok(policy)
}

fn difference(policy: &Policy, recorded: &Recorded) -> f64 {
    let mut actor = policy.actor();
    let mut actions = vec![0.0; policy.action_width()];
    let mut worst: f64 = 0.0;
    for (observation, expected) in recorded.observations.iter().zip(&recorded.actions) {
        actor.act(observation, &mut actions);
        for (action, expected) in actions.iter().zip(expected) {
            let difference = (f64::from(*action) - expected).abs();
            if difference.is_nan() {
                return difference;
            }
            worst = worst.max(difference);
        }
    }
    worst
}

use std::fmt::Write;

use provenir_policy::{Layer, Policy, Squash};
use serde_json::{Value, json};

use super::load::Loaded;
use crate::cli::describe::{cut, number};
use crate::cli::error::CommandError;

impl Loaded {
    /// In words, a line for each thing.
    pub(in crate::cli) fn describe(&self) -> Result<String, CommandError> {
        let policy = self.policies.last();
        let about = policy.about();
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "  {name:<14}  {}", cut(value, 160));
        };
        let checkpoints = self.policies.checkpoints();
        let numbers: Vec<String> = checkpoints.iter().map(|(number, _)| number.to_string()).collect();
        line(
            "environment",
            if self.has_environment {
                &about.environment
            } else {
                "not told by an archive; give --env"
            },
        );
        if let Err(misfit) = self.fits() {
            line("warning", &format!("it does not fit: {misfit}"));
        }
        line("algorithm", &about.method);
        line(
            "time feature",
            match (self.has_time_feature, about.time_feature) {
                (false, _) => "not told by an archive; give --time-feature where it was trained with it",
                (true, true) => "the last number of an observation",
                (true, false) => "none",
            },
        );
        line("normalisation", &self.normalisation(policy));
        line("layers", &layers(policy));
        line("actions", &actions(policy));
        line("parameters", &policy.parameter_count().to_string());
        if let [_, _, ..] = checkpoints {
            line(
                "checkpoints",
                &format!("{}: {}", numbers.len(), numbers.join(", ")),
            );
        }
        for (key, value) in &about.notes {
            line(&cut(&key.replace('_', " "), 40), value);
        }
        if let Some(content) = self.content()? {
            line("content", &content.to_string());
        }
        Ok(text)
    }

    fn normalisation(&self, policy: &Policy) -> String {
        match policy.standardisation() {
            None if self.is_archive => "none, or in a VecNormalize file; give --normalization".to_owned(),
            None => "none".to_owned(),
            Some(standardisation) => match standardisation.clip {
                Some(clip) => format!("(observation − mean) / scale, clipped at ±{clip}"),
                None => "(observation − mean) / scale".to_owned(),
            },
        }
    }

    /// As JSON; `null` is what is not told, and `flaw` is there only where they do not fit their environment.
    pub(in crate::cli) fn json(&self) -> Result<Value, CommandError> {
        let policy = self.policies.last();
        let about = policy.about();
        let map = policy.action_map();
        let bound = match map.squash {
            Squash::ClippedTanh { bound } => Some(bound),
            Squash::Clip | Squash::Tanh => None,
        };
        let note = |key: &str| about.notes.get(key);
        let checkpoints = self.policies.checkpoints().iter().map(|(number, _)| *number);
        let mut value = json!({
            "kind": "policy",
            "environment": self.has_environment.then_some(&about.environment),
            "algorithm": about.method,
            "time_feature": self.has_time_feature.then_some(about.time_feature),
            "normalisation": policy.standardisation().map(|standardisation| json!({
                "mean": standardisation.mean,
                "scale": standardisation.scale,
                "clip": standardisation.clip,
            })),
            "layers": widths(policy),
            "activation": policy.activation().to_string(),
            "actions": {
                "map": map.squash.to_string(),
                "clip": bound,
                "low": map.low,
                "high": map.high,
            },
            "parameters": policy.parameter_count(),
            "checkpoints": checkpoints.collect::<Vec<_>>(),
            "training_steps": note("training_steps").and_then(|steps| steps.parse::<u64>().ok()),
            "source": note("source"),
            "notes": about.notes,
            "content": self.content()?.map(|content| content.to_string()),
        });
        if let Err(misfit) = self.fits() {
            value["flaw"] = json!(misfit.to_string());
        }
        Ok(value)
    }
}

/// Numbers in an observation, then those that each layer gives.
fn widths(policy: &Policy) -> Vec<usize> {
    std::iter::once(policy.observation_width())
        .chain(policy.layers().iter().map(Layer::outputs))
        .collect()
}

fn layers(policy: &Policy) -> String {
    let widths: Vec<String> = widths(policy).iter().map(ToString::to_string).collect();
    let between = match widths.len() {
        2 => String::new(),
        _ => format!(", {} between", policy.activation()),
    };
    format!("{}{between}", widths.join(" → "))
}

fn actions(policy: &Policy) -> String {
    let map = policy.action_map();
    let how = match map.squash {
        Squash::Clip => "clipped to".to_owned(),
        Squash::Tanh => "by tanh onto".to_owned(),
        Squash::ClippedTanh { bound } => format!("clipped at ±{bound}, then by tanh onto"),
    };
    let list = |values: &[f32]| -> String {
        let numbers: Vec<String> = values.iter().map(|value| number(f64::from(*value))).collect();
        numbers.join(", ")
    };
    let is_even = |values: &[f32]| {
        values
            .windows(2)
            .all(|pair| pair[0].to_bits() == pair[1].to_bits())
    };
    let bounds = if is_even(&map.low) && is_even(&map.high) {
        format!("{} to {}", list(&map.low[..1]), list(&map.high[..1]))
    } else {
        format!("({}) to ({})", list(&map.low), list(&map.high))
    };
    format!("{}, {how} {bounds}", policy.action_width())
}

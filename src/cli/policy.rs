//! Policies in whatever file they are: a table, safetensors, a Stable-Baselines3 archive.

use std::fmt::Write;
use std::io::Read;

use camino::Utf8Path;
use provenir_api::Digest;
use provenir_api::port::Content;
use provenir_policy::{Layer, Policy, PolicySet, Squash};
use provenir_stable_baselines::{self as stable_baselines, Agent, ArchiveError};
use provenir_table::Table;
use serde_json::{Value, json};

use super::arguments::AgentArguments;
use super::describe::{cut, number};
use super::error::CommandError;
use super::reference::Found;
use crate::store::StoreError;

/// The longest file of safetensors, and the longest archive, that is read.
const LIMIT: u64 = 1 << 30;

/// Policies, and what is known of them.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) policies: PolicySet,
    /// An archive does not tell the environment, nor whether the agent reads the time feature, nor how observations were
    /// standardised: only what was given counts.
    is_archive: bool,
    has_environment: bool,
    has_time_feature: bool,
}

/// What a file begins as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Parquet.
    Table,
    /// A zip archive.
    Archive,
    /// By its name, or its first bytes: the length of a JSON object.
    Safetensors,
    Other,
}

impl Format {
    /// Looks at the first bytes of a file.
    pub(super) fn of(path: &Utf8Path) -> Result<Self, StoreError> {
        let failed = || StoreError::io("cannot read the file");
        let mut magic = Vec::new();
        fs_err::File::open(path)
            .map_err(failed())?
            .take(9)
            .read_to_end(&mut magic)
            .map_err(failed())?;
        Ok(match &magic[..] {
            [b'P', b'A', b'R', b'1', ..] => Self::Table,
            [b'P', b'K', 3, 4, ..] => Self::Archive,
            [_, _, _, _, _, 0, 0, 0, b'{'] => Self::Safetensors,
            _ if path.extension() == Some("safetensors") => Self::Safetensors,
            _ => Self::Other,
        })
    }
}

/// The policies in a table; `None` where its columns are not those of policies.
pub(super) fn of_table(table: &Table) -> Option<Result<Loaded, String>> {
    let Content::Table(schema) = provenir_kinds::tables::policy() else {
        unreachable!("policies are tables");
    };
    if table.schema() != schema {
        return None;
    }
    let policies = PolicySet::from_table(table).map_err(|error| error.to_string());
    Some(policies.map(Loaded::told))
}

/// The policies in a file of safetensors.
pub(super) fn of_safetensors(path: &Utf8Path) -> Result<Loaded, CommandError> {
    let policies = PolicySet::from_safetensors(&bytes(path)?)
        .map_err(|error| CommandError::request(format!("`{path}` is {error}")))?;
    Ok(Loaded::told(policies))
}

/// The policy in a Stable-Baselines3 archive; `None` where the archive is of something else.
pub(super) fn of_archive(path: &Utf8Path, given: &AgentArguments) -> Result<Option<Loaded>, CommandError> {
    let archive = bytes(path)?;
    let statistics = given.normalization.as_deref().map(bytes).transpose()?;
    let agent = Agent {
        archive: &archive,
        statistics: statistics.as_deref(),
        activation: given.activation,
        environment: given.environment()?.unwrap_or_default(),
        time_feature: given.time_feature.unwrap_or(false),
    };
    match stable_baselines::read(&agent) {
        Ok(policy) => Ok(Some(Loaded {
            policies: PolicySet::single(policy),
            is_archive: true,
            has_environment: given.env.is_some(),
            has_time_feature: given.time_feature.is_some(),
        })),
        Err(stable_baselines::Error::Archive(ArchiveError::Missing(_))) if !given.is_given() => Ok(None),
        Err(error) => {
            let file = match &given.normalization {
                Some(statistics) if error.is_of_statistics() => statistics,
                _ => path,
            };
            let told = CommandError::request(format!("`{file}` cannot be read: {error}"));
            Err(match error.help() {
                // There, a parameter; here, an option.
                Some(help) => told.help(
                    help.replace("the parameter `activation`", "`--activation`")
                        .replace("(\"relu\" or \"tanh\")", "(relu or tanh)"),
                ),
                None => told,
            })
        }
    }
}

/// The policies that were found, whatever they are in.
pub(super) fn load(found: &Found, given: &AgentArguments) -> Result<Loaded, CommandError> {
    let path = &found.path;
    let format = Format::of(path)?;
    given.check(path, format)?;
    let none = || {
        CommandError::request(format!("`{path}` holds no policy")).help(
            "a policy is what `train` and `expert` give, a file of safetensors, or a Stable-Baselines3 archive (.zip)",
        )
    };
    match format {
        Format::Table => {
            let table =
                provenir_table::read(path, found.object).map_err(|error| super::show::unreadable(&error))?;
            of_table(&table)
                .ok_or_else(none)?
                .map_err(|reason| CommandError::request(format!("`{path}`: {reason}")))
        }
        Format::Archive => of_archive(path, given)?.ok_or_else(none),
        Format::Safetensors => of_safetensors(path),
        Format::Other => Err(none()),
    }
}

fn bytes(path: &Utf8Path) -> Result<Vec<u8>, CommandError> {
    let failed = |error: std::io::Error| CommandError::request(error.to_string());
    let mut bytes = Vec::new();
    fs_err::File::open(path)
        .map_err(failed)?
        .take(LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > LIMIT {
        return Err(CommandError::request(format!(
            "`{path}` holds more than {LIMIT} bytes; no policy is that large"
        )));
    }
    Ok(bytes)
}

impl Loaded {
    /// Policies that say all of themselves.
    fn told(policies: PolicySet) -> Self {
        Self {
            policies,
            is_archive: false,
            has_environment: true,
            has_time_feature: true,
        }
    }

    /// Digest of their content as a table, where they are complete.
    pub(super) fn content(&self) -> Result<Option<Digest>, CommandError> {
        if !self.has_environment {
            return Ok(None);
        }
        let table = self
            .policies
            .to_table()
            .map_err(|error| super::show::unreadable(&error))?;
        Ok(Some(table.content()))
    }

    /// In words, a line for each thing.
    pub(super) fn describe(&self) -> Result<String, CommandError> {
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

    /// As JSON; `null` is what is not told.
    pub(super) fn json(&self) -> Result<Value, CommandError> {
        let policy = self.policies.last();
        let about = policy.about();
        let map = policy.action_map();
        let bound = match map.squash {
            Squash::ClippedTanh { bound } => Some(bound),
            Squash::Clip | Squash::Tanh => None,
        };
        let note = |key: &str| about.notes.get(key);
        let checkpoints = self.policies.checkpoints().iter().map(|(number, _)| *number);
        Ok(json!({
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
        }))
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
        Squash::Tanh => "tanh, from".to_owned(),
        Squash::ClippedTanh { bound } => format!("clipped at ±{bound}, then tanh, from"),
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

impl AgentArguments {
    fn is_given(&self) -> bool {
        self.env.is_some()
            || self.normalization.is_some()
            || self.activation.is_some()
            || self.time_feature.is_some()
    }

    /// The environment's name, where one is given.
    fn environment(&self) -> Result<Option<&str>, CommandError> {
        let Some(name) = &self.env else {
            return Ok(None);
        };
        match serde_json::from_value::<provenir_kinds::Environment>(name.as_str().into()) {
            Ok(_) => Ok(Some(name)),
            Err(error) => Err(CommandError::request(format!("--env: {error}"))),
        }
    }

    /// That they are given for an archive only: other files say all of themselves.
    pub(super) fn check(&self, path: &Utf8Path, format: Format) -> Result<(), CommandError> {
        if self.is_given() && format != Format::Archive {
            return Err(CommandError::request(format!(
                "--env, --normalization, --activation and --time-feature are for Stable-Baselines3 archives; `{path}` is none"
            ))
            .help("leave them out: a policy says all of that itself"));
        }
        Ok(())
    }

    /// That what an archive leaves open is given.
    pub(super) fn check_complete(&self, path: &Utf8Path, loaded: &Loaded) -> Result<(), CommandError> {
        if loaded.has_environment {
            return Ok(());
        }
        Err(
            CommandError::request(format!("`{path}` does not tell the environment that its agent acts in"))
                .help("give --env NAME; and --normalization FILE and --time-feature, where the agent was trained with them"),
        )
    }
}

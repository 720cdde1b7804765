//! The entry `data` of an archive: JSON, of which only plain values and printed attributes are read, never a pickled
//! payload.

use provenir_policy::{Activation, Squash};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// What the metadata says about how to use the weights.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    #[serde(default)]
    policy_kwargs: Option<PolicyArguments>,
    #[serde(default)]
    policy_class: Option<Class>,
    #[serde(default)]
    action_space: Option<Space>,
    #[serde(default)]
    observation_space: Option<Space>,
    /// Only PPO has one.
    #[serde(default)]
    clip_range: Option<IgnoredAny>,
}

/// The arguments that an agent's policy was made with.
#[derive(Debug, Deserialize)]
struct PolicyArguments {
    #[serde(default)]
    activation_fn: Option<Value>,
    #[serde(default)]
    features_extractor_class: Option<Value>,
    #[serde(default)]
    squash_output: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Class {
    #[serde(default, rename = "__module__")]
    module: Option<String>,
}

/// A gym or gymnasium space.
#[derive(Debug, Deserialize)]
struct Space {
    #[serde(default, rename = ":type:")]
    class: Option<String>,
    #[serde(default)]
    low: Option<String>,
    #[serde(default)]
    high: Option<String>,
}

/// What the metadata says about the hidden layers' activation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Activation(Activation),
    /// A class that is none of these.
    Other(String),
    Nothing,
}

/// Why the metadata was refused.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// It is not the JSON that Stable-Baselines3 writes.
    #[error("it is not what Stable-Baselines3 writes: {0}")]
    Json(#[from] serde_json::Error),
    /// A part of the agent is code that is not in the archive.
    #[error("its {part} is `{class}`, whose code is not in the archive; agents with `{read}` are read")]
    Code {
        /// Which part.
        part: &'static str,
        /// The class.
        class: String,
        /// What is read.
        read: &'static str,
    },
    /// A space that is no box, or is not described.
    #[error(
        "its {space} space is {class}; agents whose observations and actions are vectors (`Box`) are read"
    )]
    Space {
        /// Which.
        space: &'static str,
        /// Its class.
        class: String,
    },
    /// Bounds of the actions that are not told, or are not as many as the network has outputs.
    #[error("it does not tell between which bounds each of the {actions} actions lies")]
    Bounds {
        /// Outputs of the network.
        actions: usize,
    },
}

impl Metadata {
    /// Reads the metadata and refuses what would give the weights another meaning.
    pub(crate) fn read(json: &[u8]) -> Result<Self, MetadataError> {
        let metadata: Self = serde_json::from_slice(json)?;
        metadata.check_code()?;
        check_box("observation", metadata.observation_space.as_ref())?;
        check_box("action", metadata.action_space.as_ref())?;
        Ok(metadata)
    }

    /// The algorithm, for people: PPO, or another whose agents are alike.
    pub(crate) fn method(&self) -> &'static str {
        if self.clip_range.is_some() {
            "ppo"
        } else {
            "actor-critic"
        }
    }

    /// How actions are kept between their bounds: by clipping, unless gSDE was told to squash them.
    pub(crate) fn squash(&self) -> Squash {
        match self
            .policy_kwargs
            .as_ref()
            .and_then(|arguments| arguments.squash_output)
        {
            Some(true) => Squash::Tanh,
            Some(false) | None => Squash::Clip,
        }
    }

    /// Lower and upper bounds of this many actions.
    pub(crate) fn bounds(&self, actions: usize) -> Result<(Vec<f32>, Vec<f32>), MetadataError> {
        let bound = |printed: fn(&Space) -> &Option<String>| {
            let values = vector(printed(self.action_space.as_ref()?).as_deref()?)?;
            (values.len() == actions).then_some(values)
        };
        bound(|space| &space.low)
            .zip(bound(|space| &space.high))
            .ok_or(MetadataError::Bounds { actions })
    }

    /// What it says about the activation. Stable-Baselines3 prints the class where one was given, and takes Tanh where
    /// none was.
    pub(crate) fn activation(&self) -> Told {
        let Some(arguments) = &self.policy_kwargs else {
            return Told::Nothing;
        };
        let Some(activation) = &arguments.activation_fn else {
            return Told::Activation(Activation::Tanh);
        };
        match activation.as_str().and_then(class_name) {
            Some("torch.nn.modules.activation.ReLU") => Told::Activation(Activation::Relu),
            Some("torch.nn.modules.activation.Tanh") => Told::Activation(Activation::Tanh),
            Some(other) => Told::Other(shown(other)),
            None => Told::Nothing,
        }
    }

    fn check_code(&self) -> Result<(), MetadataError> {
        const MODULE: &str = "stable_baselines3.common.policies";
        const EXTRACTOR: &str = "stable_baselines3.common.torch_layers.FlattenExtractor";
        let module = self
            .policy_class
            .as_ref()
            .and_then(|class| class.module.as_deref());
        if let Some(module) = module.filter(|module| *module != MODULE) {
            return Err(MetadataError::Code {
                part: "policy class",
                class: shown(module),
                read: "MlpPolicy",
            });
        }
        let Some(arguments) = &self.policy_kwargs else {
            return Ok(());
        };
        if let Some(extractor) = &arguments.features_extractor_class
            && extractor.as_str().and_then(class_name) != Some(EXTRACTOR)
        {
            return Err(MetadataError::Code {
                part: "features extractor",
                class: shown(&extractor.to_string()),
                read: "FlattenExtractor",
            });
        }
        Ok(())
    }
}

fn check_box(name: &'static str, space: Option<&Space>) -> Result<(), MetadataError> {
    let class = space.and_then(|space| class_name(space.class.as_deref()?));
    match class {
        Some("gym.spaces.box.Box" | "gymnasium.spaces.box.Box") => Ok(()),
        found => Err(MetadataError::Space {
            space: name,
            class: found.map_or("not described".to_owned(), |class| {
                format!("a `{}`", shown(class))
            }),
        }),
    }
}

/// A vector as numpy prints it: `[-1. -1.]`.
fn vector(printed: &str) -> Option<Vec<f32>> {
    let items = printed.trim().strip_prefix('[')?.strip_suffix(']')?;
    items.split_whitespace().map(|item| item.parse().ok()).collect()
}

/// The path in a class as Python prints it: `<class 'gym.spaces.box.Box'>`.
fn class_name(printed: &str) -> Option<&str> {
    printed.strip_prefix("<class '")?.strip_suffix("'>")
}

/// A text from the file as a message may show it: printable and short.
fn shown(text: &str) -> String {
    text.chars().take(120).flat_map(char::escape_debug).collect()
}

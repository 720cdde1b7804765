//! The entry `data` of an archive: JSON, of which only plain values and printed attributes are read, never a pickled
//! payload.

use std::collections::BTreeMap;

use provenir_policy::{Activation, Squash};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::network::Family;

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
    #[serde(default)]
    num_timesteps: Option<Value>,
    #[serde(default)]
    seed: Option<Value>,
    #[serde(default)]
    use_sde: Option<Value>,
    // Settings that one algorithm of a family has.
    #[serde(default)]
    clip_range: Option<IgnoredAny>,
    #[serde(default)]
    cg_max_steps: Option<IgnoredAny>,
    #[serde(default)]
    normalize_advantage: Option<IgnoredAny>,
    #[serde(default)]
    top_quantiles_to_drop_per_net: Option<IgnoredAny>,
    #[serde(default)]
    policy_delay: Option<Value>,
    #[serde(default)]
    target_noise_clip: Option<Value>,
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
    #[serde(default)]
    clip_mean: Option<f64>,
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

/// The bound on a gSDE actor's mean where none was given.
const CLIP_MEAN: f64 = 2.0;

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
    /// The tensors are those of another class of policy than the metadata says.
    #[error("its policy class is of `{class}`, but `policy.pth` holds the network of {network}")]
    Contradiction {
        /// By the metadata.
        class: String,
        /// By the tensors.
        network: &'static str,
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
    pub(crate) fn read(json: &[u8], family: Family) -> Result<Self, MetadataError> {
        let metadata: Self = serde_json::from_slice(json)?;
        metadata.check_class(family)?;
        metadata.check_extractor()?;
        check_box("observation", metadata.observation_space.as_ref())?;
        check_box("action", metadata.action_space.as_ref())?;
        Ok(metadata)
    }

    /// The algorithm, for people. What archives do not name, their settings tell apart.
    pub(crate) fn method(&self, family: Family) -> &'static str {
        match family {
            Family::OnPolicy if self.clip_range.is_some() => "ppo",
            Family::OnPolicy if self.cg_max_steps.is_some() => "trpo",
            Family::OnPolicy if self.normalize_advantage.is_some() => "a2c",
            Family::OnPolicy => "actor-critic",
            Family::Stochastic { .. } if self.top_quantiles_to_drop_per_net.is_some() => "tqc",
            Family::Stochastic { .. } => "sac",
            Family::Deterministic => {
                // DDPG is a TD3 that neither delays its policy nor smooths its target.
                let is =
                    |value: &Option<Value>, number| value.as_ref().and_then(Value::as_f64) == Some(number);
                if is(&self.policy_delay, 1.0) && is(&self.target_noise_clip, 0.0) {
                    "ddpg"
                } else {
                    "td3"
                }
            }
        }
    }

    /// What else it tells of the training, for people.
    pub(crate) fn notes(&self) -> BTreeMap<String, String> {
        let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_i64);
        let mut notes = BTreeMap::new();
        if let Some(steps) = number(&self.num_timesteps) {
            notes.insert("training_steps".to_owned(), steps.to_string());
        }
        if let Some(seed) = number(&self.seed) {
            notes.insert("seed".to_owned(), seed.to_string());
        }
        if self.use_sde.as_ref().and_then(Value::as_bool) == Some(true) {
            notes.insert("exploration".to_owned(), "gSDE".to_owned());
        }
        notes
    }

    /// How actions are kept between their bounds: on-policy agents clip them, unless gSDE was told to squash them.
    pub(crate) fn squash(&self, family: Family) -> Squash {
        let arguments = self.policy_kwargs.as_ref();
        match family {
            Family::OnPolicy if arguments.and_then(|arguments| arguments.squash_output) == Some(true) => {
                Squash::Tanh
            }
            Family::OnPolicy => Squash::Clip,
            Family::Stochastic { clips_mean: true } => Squash::ClippedTanh {
                bound: arguments
                    .and_then(|arguments| arguments.clip_mean)
                    .unwrap_or(CLIP_MEAN) as f32,
            },
            Family::Stochastic { clips_mean: false } | Family::Deterministic => Squash::Tanh,
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

    /// What it says about the activation. Stable-Baselines3 prints the class where one was given; where none was, on-policy
    /// algorithms take Tanh and the others `ReLU`.
    pub(crate) fn activation(&self, family: Family) -> Told {
        let Some(arguments) = &self.policy_kwargs else {
            return Told::Nothing;
        };
        let Some(activation) = &arguments.activation_fn else {
            return Told::Activation(match family {
                Family::OnPolicy => Activation::Tanh,
                Family::Stochastic { .. } | Family::Deterministic => Activation::Relu,
            });
        };
        match activation.as_str().and_then(class_name) {
            Some("torch.nn.modules.activation.ReLU") => Told::Activation(Activation::Relu),
            Some("torch.nn.modules.activation.Tanh") => Told::Activation(Activation::Tanh),
            Some(other) => Told::Other(shown(other)),
            None => Told::Nothing,
        }
    }

    /// That the policy's class is one whose networks are known, and the one that its tensors are of.
    fn check_class(&self, family: Family) -> Result<(), MetadataError> {
        const ON_POLICY: &str = "stable_baselines3.common.policies";
        const STOCHASTIC: [&str; 2] = ["stable_baselines3.sac.policies", "sb3_contrib.tqc.policies"];
        const DETERMINISTIC: &str = "stable_baselines3.td3.policies";
        let class = self.policy_class.as_ref();
        let Some(module) = class.and_then(|class| class.module.as_deref()) else {
            return Ok(());
        };
        let (fits, network) = match family {
            Family::OnPolicy => (module == ON_POLICY, "PPO or A2C"),
            Family::Stochastic { .. } => (STOCHASTIC.contains(&module), "SAC or TQC"),
            Family::Deterministic => (module == DETERMINISTIC, "TD3 or DDPG"),
        };
        if fits {
            Ok(())
        } else if STOCHASTIC.contains(&module) || [ON_POLICY, DETERMINISTIC].contains(&module) {
            Err(MetadataError::Contradiction {
                class: module.to_owned(),
                network,
            })
        } else {
            Err(MetadataError::Code {
                part: "policy class",
                class: shown(module),
                read: "MlpPolicy",
            })
        }
    }

    fn check_extractor(&self) -> Result<(), MetadataError> {
        const EXTRACTOR: &str = "stable_baselines3.common.torch_layers.FlattenExtractor";
        let arguments = self.policy_kwargs.as_ref();
        if let Some(extractor) = arguments.and_then(|arguments| arguments.features_extractor_class.as_ref())
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

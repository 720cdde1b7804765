//! What all checkpoints of a training share, as entries of a file's metadata.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::tensors::short;
use crate::{About, Activation, Policy, Squash};

const ENVIRONMENT: &str = "environment";
const TIME_FEATURE: &str = "time_feature";
const METHOD: &str = "method";
const ACTIVATION: &str = "activation";
const ACTION_MAP: &str = "action_map";
const ACTION_CLIP: &str = "action_clip";
const CLIP: &str = "observation_clip";
/// Version of the layout, in safetensors.
pub(crate) const LAYOUT: &str = "provenir_policy";
/// Number of the checkpoint, in safetensors that hold one.
pub(crate) const CHECKPOINT: &str = "checkpoint";

/// Keys that notes must not have.
const RESERVED: [&str; 9] = [
    ENVIRONMENT,
    TIME_FEATURE,
    METHOD,
    ACTIVATION,
    ACTION_MAP,
    ACTION_CLIP,
    CLIP,
    LAYOUT,
    CHECKPOINT,
];

/// Whether a key of metadata says something else than a note.
pub(crate) fn is_reserved(key: &str) -> bool {
    RESERVED.contains(&key)
}

/// What all checkpoints share.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) activation: Activation,
    pub(crate) squash: Squash,
    /// Bound on standardised observations.
    pub(crate) clip: Option<f64>,
    pub(crate) about: About,
}

/// An entry of the metadata that is missing or wrong; `problem` is what is said of the key.
#[derive(Debug)]
pub(crate) struct Flaw {
    pub(crate) key: &'static str,
    pub(crate) problem: String,
}

impl Header {
    pub(crate) fn of(policy: &Policy) -> Self {
        Self {
            activation: policy.activation(),
            squash: policy.action_map().squash,
            clip: policy
                .standardisation()
                .and_then(|standardisation| standardisation.clip),
            about: policy.about().clone(),
        }
    }

    /// Numbers are the shortest decimals that read back as the same number.
    pub(crate) fn entries(&self) -> BTreeMap<String, String> {
        let About {
            environment,
            time_feature,
            method,
            notes,
        } = &self.about;
        let mut entries = notes.clone();
        let mut set = |key: &str, value: String| entries.insert(key.to_owned(), value);
        set(ENVIRONMENT, environment.clone());
        set(TIME_FEATURE, time_feature.to_string());
        set(METHOD, method.clone());
        set(ACTIVATION, self.activation.to_string());
        set(ACTION_MAP, self.squash.to_string());
        if let Squash::ClippedTanh { bound } = self.squash {
            set(ACTION_CLIP, bound.to_string());
        }
        if let Some(clip) = self.clip {
            set(CLIP, clip.to_string());
        }
        entries
    }

    /// Reads and removes what the entries say; those that say nothing of a policy are its notes.
    pub(crate) fn read(mut entries: BTreeMap<String, String>) -> Result<Self, Flaw> {
        let environment = required(&mut entries, ENVIRONMENT)?;
        let method = required(&mut entries, METHOD)?;
        let time_feature = match required(&mut entries, TIME_FEATURE)?.as_str() {
            "true" => true,
            "false" => false,
            other => return Err(wrong(TIME_FEATURE, "`true` or `false`", other)),
        };
        let activation = required(&mut entries, ACTIVATION)?;
        let activation = activation
            .parse()
            .map_err(|_| wrong(ACTIVATION, "`relu` or `tanh`", &activation))?;
        let bound = optional(&mut entries, ACTION_CLIP)?;
        let name = required(&mut entries, ACTION_MAP)?;
        let squash = match (name.as_str(), bound) {
            ("clip", None) => Squash::Clip,
            ("tanh", None) => Squash::Tanh,
            ("clipped-tanh", Some(bound)) => Squash::ClippedTanh { bound },
            ("clipped-tanh", None) => return Err(missing(ACTION_CLIP)),
            ("clip" | "tanh", Some(_)) => {
                return Err(Flaw {
                    key: ACTION_CLIP,
                    problem: format!("belongs to the action map `clipped-tanh`, not to `{name}`"),
                });
            }
            (other, _) => return Err(wrong(ACTION_MAP, "`clip`, `tanh` or `clipped-tanh`", other)),
        };
        Ok(Self {
            activation,
            squash,
            clip: optional(&mut entries, CLIP)?,
            about: About {
                environment,
                time_feature,
                method,
                notes: entries,
            },
        })
    }
}

fn required(entries: &mut BTreeMap<String, String>, key: &'static str) -> Result<String, Flaw> {
    entries.remove(key).ok_or_else(|| missing(key))
}

fn optional<N: FromStr>(
    entries: &mut BTreeMap<String, String>,
    key: &'static str,
) -> Result<Option<N>, Flaw> {
    entries
        .remove(key)
        .map(|number| number.parse().map_err(|_| wrong(key, "a number", &number)))
        .transpose()
}

fn missing(key: &'static str) -> Flaw {
    Flaw {
        key,
        problem: "is missing".to_owned(),
    }
}

fn wrong(key: &'static str, wanted: &str, found: &str) -> Flaw {
    Flaw {
        key,
        problem: format!("is {wanted}, not `{}`", short(found)),
    }
}

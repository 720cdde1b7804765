//! Actions as the store keeps them: owned, with their key. What enters a key, and why, is in [`crate::plan::Action`].

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use provenir_api::{Digest, DigestError, Label};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan;

/// The digest that names an action's result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActionKey(Digest);

/// What a cell does: the fields of its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// The kind's name.
    pub kind: String,
    /// Revisions by name: the kind's own, and those of the machinery it uses.
    pub revisions: BTreeMap<String, u32>,
    /// Canonical parameters.
    pub parameters: Value,
    /// Content of source files, by the JSON pointer of their parameter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, Digest>,
    /// Artifacts, in the plan's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ActionInput>,
    /// The numeric platform, where it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
}

/// An artifact that an action takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionInput {
    /// The port.
    pub port: String,
    /// Values of the gathered axes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gathered: BTreeMap<String, Label>,
    /// What the cell knows it by: the name of a union's member, or the port's own.
    pub source: String,
    /// Digest of its values.
    pub content: Digest,
}

impl Action {
    /// The action's key.
    pub fn key(&self) -> ActionKey {
        let gathered: Vec<Vec<(Arc<str>, Label)>> = self
            .inputs
            .iter()
            .map(|input| {
                input
                    .gathered
                    .iter()
                    .map(|(axis, label)| (axis.as_str().into(), label.clone()))
                    .collect()
            })
            .collect();
        let action = plan::Action {
            kind: &self.kind,
            revisions: self
                .revisions
                .iter()
                .map(|(part, number)| (part.as_str(), *number))
                .collect(),
            parameters: &self.parameters,
            inputs: self
                .inputs
                .iter()
                .zip(&gathered)
                .map(|(input, gathered)| plan::ActionInput {
                    port: &input.port,
                    gathered,
                    source: &input.source,
                    content: input.content,
                })
                .collect(),
            sources: self
                .sources
                .iter()
                .map(|(pointer, digest)| (pointer.as_str(), *digest))
                .collect(),
            platform: self.platform.as_deref(),
        };
        ActionKey::of(&action)
    }
}

impl ActionKey {
    /// The key of an action.
    pub fn of(action: &plan::Action<'_>) -> Self {
        Self(action.key())
    }

    pub(super) fn from_digest(digest: Digest) -> Self {
        Self(digest)
    }

    /// The 64 hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0.hex()
    }

    /// The first twelve digits, for people.
    pub fn short(&self) -> String {
        self.0.short()
    }

    /// The raw bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        self.0.bytes()
    }
}

impl fmt::Display for ActionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Debug for ActionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ActionKey({})", self.short())
    }
}

impl FromStr for ActionKey {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_action_and_its_key_survive_a_file() {
        let action = Action {
            kind: "train".into(),
            revisions: BTreeMap::from([("nn".into(), 1), ("train".into(), 2)]),
            parameters: json!({"rate": 7.5e-4, "third": 1.0 / 3.0, "tiny": 5e-324, "whole": 2.0, "count": u64::MAX}),
            sources: BTreeMap::from([("/expert".into(), Digest::of(b"expert"))]),
            inputs: vec![ActionInput {
                port: "demos".into(),
                gathered: BTreeMap::from([
                    ("epsilon".into(), Label::Float(0.1 + 0.2)),
                    ("seed".into(), Label::Integer(1)),
                ]),
                source: "parts.train".into(),
                content: Digest::of(b"demos"),
            }],
            platform: None,
        };
        let text = serde_json::to_string(&action).unwrap();
        let read: Action = serde_json::from_str(&text).unwrap();
        assert_eq!(read, action);
        assert_eq!(read.key(), action.key());
    }
}

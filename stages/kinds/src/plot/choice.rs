//! Parameters that are one thing or a list of such things.

use std::borrow::Cow;

use provenir_api::Label;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, value::SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Column names, written as a text or as a list of texts. One name and a list of it are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Names(Vec<String>);

impl Names {
    /// The names, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<const N: usize> From<[&str; N]> for Names {
    fn from(names: [&str; N]) -> Self {
        Self(names.map(str::to_owned).to_vec())
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Names;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a text or a list of texts")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Names, E> {
                Ok(Names(vec![name.to_owned()]))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, names: A) -> Result<Names, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(names)).map(Names)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Names {
    fn schema_name() -> Cow<'static, str> {
        "Names".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "minLength": 1 },
                { "type": "array", "items": { "type": "string", "minLength": 1 }, "maxItems": 4 },
            ]
        })
    }
}

/// Values that a column may have, written as one value or as a list. One value and a list of it are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Values(Vec<Label>);

impl Values {
    /// The values, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Label> {
        self.0.iter()
    }

    /// Whether a value is among them.
    pub fn contains(&self, label: &Label) -> bool {
        self.0.contains(label)
    }
}

impl<const N: usize> From<[Label; N]> for Values {
    fn from(values: [Label; N]) -> Self {
        Self(values.to_vec())
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = match Value::deserialize(deserializer)? {
            Value::Array(values) => values,
            value => vec![value],
        };
        values
            .into_iter()
            .map(|value| Label::try_from(value).map_err(Error::custom))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl JsonSchema for Values {
    fn schema_name() -> Cow<'static, str> {
        "Values".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": ["string", "number", "boolean"] },
                { "type": "array", "items": { "type": ["string", "number", "boolean"] }, "minItems": 1 },
            ]
        })
    }
}

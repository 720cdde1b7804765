use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::Encoder;

/// The value of an axis at a cell.
///
/// Invariant: a float that is a whole number below 2^53 is held as an integer, so that labels equal by number
/// (`0` and `0.0`) are one label; floats are finite and never `-0.0`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub enum Label {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A finite number that is not whole.
    Float(f64),
    /// A string, or the `name` of a table used as axis value.
    Text(String),
}

impl Label {
    /// A number's label; `None` where it is not finite.
    pub fn number(value: f64) -> Option<Self> {
        const WHOLE: f64 = 9_007_199_254_740_992.0;
        if !value.is_finite() {
            None
        } else if value.fract() == 0.0 && value.abs() < WHOLE {
            Some(Self::Integer(value as i64))
        } else {
            Some(Self::Float(value))
        }
    }

    /// The label as a number, where it is one.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Bool(_) | Self::Text(_) => None,
        }
    }

    /// Appends the canonical encoding.
    pub fn encode(&self, encoder: &mut Encoder) {
        match self {
            Self::Bool(value) => encoder.value(&Value::from(*value)),
            Self::Integer(value) => encoder.value(&Value::from(*value)),
            Self::Float(value) => encoder.value(&Value::from(*value)),
            Self::Text(value) => encoder.value(&Value::from(value.as_str())),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::Integer(_) | Self::Float(_) => 1,
            Self::Text(_) => 2,
        }
    }
}

/// Booleans before numbers before texts; numbers by value.
impl Ord for Label {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(left), Self::Bool(right)) => left.cmp(right),
            (Self::Integer(left), Self::Integer(right)) => left.cmp(right),
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            _ => match (self.as_number(), other.as_number()) {
                (Some(left), Some(right)) => left.total_cmp(&right).then(self.kind().cmp(&other.kind())),
                _ => self.rank().cmp(&other.rank()),
            },
        }
    }
}

impl Label {
    // Integers above 2^53 may equal a float when compared as floats; this keeps the order total and consistent with equality.
    fn kind(&self) -> u8 {
        u8::from(matches!(self, Self::Float(_)))
    }
}

impl PartialOrd for Label {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Label {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Label {}

impl std::hash::Hash for Label {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Self::Bool(value) => (0_u8, value).hash(state),
            Self::Integer(value) => (1_u8, value).hash(state),
            Self::Float(value) => (2_u8, value.to_bits()).hash(state),
            Self::Text(value) => (3_u8, value).hash(state),
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(formatter),
            Self::Integer(value) => value.fmt(formatter),
            Self::Float(value) => value.fmt(formatter),
            Self::Text(value) => formatter.write_str(value),
        }
    }
}

impl From<Label> for Value {
    fn from(label: Label) -> Self {
        match label {
            Label::Bool(value) => value.into(),
            Label::Integer(value) => value.into(),
            Label::Float(value) => value.into(),
            Label::Text(value) => value.into(),
        }
    }
}

impl TryFrom<Value> for Label {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::Bool(value) => Ok(Self::Bool(value)),
            Value::String(value) => Ok(Self::Text(value)),
            Value::Number(number) => match number.as_i64() {
                Some(value) => Ok(Self::Integer(value)),
                None => number
                    .as_f64()
                    .and_then(Self::number)
                    .ok_or_else(|| format!("`{number}` is not a finite number")),
            },
            other => Err(format!(
                "a label is a truth value, a number or a text, not `{other}`"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_equal_by_number_are_one_label() {
        assert_eq!(Label::number(0.0), Some(Label::Integer(0)));
        assert_eq!(Label::number(-0.0), Some(Label::Integer(0)));
        assert_eq!(Label::number(0.1), Some(Label::Float(0.1)));
        assert_eq!(Label::number(f64::NAN), None);
        assert_ne!(Label::Integer(1), Label::Text("1".into()));
    }

    #[test]
    fn order_is_by_number_then_text() {
        let mut labels = [
            Label::Text("b".into()),
            Label::Integer(2),
            Label::Float(0.5),
            Label::Bool(true),
            Label::Integer(-1),
            Label::Text("a".into()),
        ];
        labels.sort();
        let shown: Vec<String> = labels.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["true", "-1", "0.5", "2", "a", "b"]);
    }
}

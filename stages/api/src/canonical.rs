//! The self-delimiting, typed encoding of everything that enters an action key.
//!
//! Every field begins with a tag that names its type, and every field of variable length carries its length, so that
//! two different sequences of fields never give the same bytes. Objects are sorted by key; floats are encoded by
//! value (`-0.0` as `0.0`); integers and floats have different tags, because the kind's typed parameters have already
//! decided which one a number is.

use serde_json::Value;

use crate::{Digest, Label};

/// Accumulates fields and digests them.
pub struct Encoder {
    hasher: blake3::Hasher,
}

impl Encoder {
    /// Begins a pre-image in its own domain: equal fields under two domains never share a digest.
    pub fn new(domain: &str) -> Self {
        Self {
            hasher: blake3::Hasher::new_derive_key(domain),
        }
    }

    /// Appends a byte string.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.tagged(b'b', bytes);
    }

    /// Appends a text.
    pub fn text(&mut self, text: &str) {
        self.tagged(b's', text.as_bytes());
    }

    /// Appends a count, such as the number of fields that follow.
    pub fn count(&mut self, count: usize) {
        self.fixed(b'n', &(count as u64).to_le_bytes());
    }

    /// Appends a digest.
    pub fn digest(&mut self, digest: &Digest) {
        self.fixed(b'd', digest.bytes());
    }

    /// Appends an axis label.
    pub fn label(&mut self, label: &Label) {
        label.encode(self);
    }

    /// Appends a JSON value.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.fixed(b'0', &[]),
            Value::Bool(value) => self.fixed(b't', &[u8::from(*value)]),
            Value::Number(number) => {
                if let Some(value) = number.as_i64() {
                    self.fixed(b'i', &i128::from(value).to_le_bytes());
                } else if let Some(value) = number.as_u64() {
                    self.fixed(b'i', &i128::from(value).to_le_bytes());
                } else {
                    // Adding zero turns -0.0 into 0.0 and leaves every other number alone.
                    let value = number.as_f64().unwrap_or(f64::NAN) + 0.0;
                    self.fixed(b'f', &value.to_bits().to_le_bytes());
                }
            }
            Value::String(value) => self.text(value),
            Value::Array(values) => {
                self.fixed(b'a', &(values.len() as u64).to_le_bytes());
                for value in values {
                    self.value(value);
                }
            }
            Value::Object(fields) => {
                self.fixed(b'o', &(fields.len() as u64).to_le_bytes());
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(key, _)| *key);
                for (key, value) in fields {
                    self.text(key);
                    self.value(value);
                }
            }
        }
    }

    /// The digest of all fields.
    pub fn finish(self) -> Digest {
        self.hasher.finalize().into()
    }

    fn tagged(&mut self, tag: u8, bytes: &[u8]) {
        self.fixed(tag, &(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }

    fn fixed(&mut self, tag: u8, bytes: &[u8]) {
        self.hasher.update(&[tag]);
        self.hasher.update(bytes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest(value: &Value) -> Digest {
        let mut encoder = Encoder::new("provenir test");
        encoder.value(value);
        encoder.finish()
    }

    #[test]
    fn order_of_keys_is_immaterial_and_everything_else_is_not() {
        assert_eq!(digest(&json!({"a": 1, "b": 2})), digest(&json!({"b": 2, "a": 1})));
        let distinct = [
            json!(null),
            json!(false),
            json!(0),
            json!(0.0),
            json!(1),
            json!("1"),
            json!(""),
            json!([]),
            json!({}),
            json!([[]]),
            json!(["ab", "c"]),
            json!(["a", "bc"]),
            json!([["a"], "b"]),
            json!([["a", "b"]]),
            json!({"a": {"b": 1}}),
            json!({"a": {}, "b": 1}),
        ];
        for (index, left) in distinct.iter().enumerate() {
            for right in &distinct[..index] {
                assert_ne!(digest(left), digest(right), "{left} and {right}");
            }
        }
    }

    #[test]
    fn negative_zero_is_zero() {
        assert_eq!(digest(&json!(-0.0)), digest(&json!(0.0)));
    }

    #[test]
    fn domains_are_separate() {
        assert_ne!(Encoder::new("a").finish(), Encoder::new("b").finish());
    }
}

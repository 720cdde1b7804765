//! Policies as safetensors, the format in which PyTorch, JAX and others exchange weights.
//!
//! A file is the length of its header (u64, little-endian), the header (JSON, padded with spaces to a multiple of 8
//! bytes), and the tensors' bytes without gaps: those of f64 before those of f32, each by name, as the format's own
//! writers order them. The header gives each tensor's `dtype`, `shape` and `data_offsets`, and under `__metadata__` texts:
//! the same entries as the metadata of a table of policies, and `provenir_policy`, the version of this layout.
//!
//! Tensors are named as in the module `tensors`. Where there is one checkpoint, its number is the entry `checkpoint` (0, where
//! it is left out); where there are several, `checkpoints.N.` precedes the names of each.
//!
//! The format's own crate keeps metadata in a map of random order and lets the last of two entries of one name win; here the
//! same policy gives the same bytes, and what is ambiguous is refused.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::header::{CHECKPOINT, Header, LAYOUT};
use crate::tensors::{Tensor, Tensors, Values, is_double, printable, short, visit};
use crate::{PolicyError, PolicySet};

/// The longest header that is read, in bytes; 1000 checkpoints of 10 layers need 3 MB.
const HEADER_LIMIT: u64 = 32 << 20;
const METADATA: &str = "__metadata__";
const VERSION: &str = "1";
const PREFIX: &str = "checkpoints.";

/// What the header says of a tensor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

impl PolicySet {
    /// As safetensors; the same set gives the same bytes.
    pub fn to_safetensors(&self) -> Vec<u8> {
        let mut metadata = Header::of(self.last()).entries();
        metadata.insert(LAYOUT.to_owned(), VERSION.to_owned());
        let alone = match self.checkpoints() {
            [(number, _)] => {
                metadata.insert(CHECKPOINT.to_owned(), number.to_string());
                true
            }
            _ => false,
        };
        // Sorted as they are written: f64 first.
        let mut tensors: BTreeMap<(bool, String), (Vec<u64>, Vec<u8>)> = BTreeMap::new();
        for (number, policy) in self.checkpoints() {
            visit(policy, |name, shape, values| {
                let is_single = matches!(values, Values::F32(_));
                let bytes = match values {
                    Values::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
                    Values::F64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
                };
                let name = if alone {
                    name
                } else {
                    format!("{PREFIX}{number}.{name}")
                };
                let shape = shape.iter().map(|width| u64::from(*width)).collect();
                tensors.insert((is_single, name), (shape, bytes));
            });
        }
        let mut header = format!("{{{}:{}", json(METADATA), json(&metadata));
        let mut end = 0;
        for ((is_single, name), (shape, bytes)) in &tensors {
            let begin = end;
            end += bytes.len() as u64;
            let description = Description {
                dtype: if *is_single { "F32" } else { "F64" }.to_owned(),
                shape: shape.clone(),
                data_offsets: [begin, end],
            };
            header.push_str(&format!(",{}:{}", json(name), json(&description)));
        }
        header.push('}');
        while !header.len().is_multiple_of(8) {
            header.push(' ');
        }
        let mut file = Vec::with_capacity(8 + header.len() + end as usize);
        file.extend((header.len() as u64).to_le_bytes());
        file.extend(header.as_bytes());
        for (_, bytes) in tensors.values() {
            file.extend(bytes);
        }
        file
    }

    /// From safetensors; everything in it is checked, and nothing in it is ignored.
    ///
    /// Others may write such a file, too: `observation.mean` and `observation.scale` may be f32 then.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self, PolicyError> {
        let invalid = |reason: String| PolicyError::Safetensors(reason);
        let (header, data) = split(bytes).map_err(invalid)?;
        let Contents {
            mut metadata,
            tensors,
        } = serde_json::from_slice(header)
            .map_err(|error| invalid(format!("its header: {}", printable(&error))))?;
        check_layout(metadata.remove(LAYOUT).as_deref()).map_err(invalid)?;
        let alone = metadata
            .remove(CHECKPOINT)
            .map(|number| {
                number
                    .parse()
                    .map_err(|_| invalid(format!("`{CHECKPOINT}` is a number, not `{}`", short(&number))))
            })
            .transpose()?;
        let shared = Header::read(metadata)
            .map_err(|flaw| invalid(format!("`{}` in its `{METADATA}` {}", flaw.key, flaw.problem)))?;
        check_extents(&tensors, data.len() as u64).map_err(invalid)?;
        let decoded: Vec<Decoded<'_>> = tensors
            .iter()
            .map(|(name, description)| Decoded::new(name, description, data))
            .collect::<Result<_, _>>()
            .map_err(invalid)?;
        if alone.is_some() && decoded.iter().all(|tensor| tensor.checkpoint.is_some()) {
            return Err(invalid(format!(
                "`{CHECKPOINT}` is given, but its tensors' names tell their checkpoints"
            )));
        }
        let mut checkpoints: BTreeMap<u32, Tensors<'_>> = BTreeMap::new();
        for tensor in &decoded {
            let number = tensor.checkpoint.or(alone).unwrap_or(0);
            let parts = Tensor {
                shape: &tensor.shape,
                values: match &tensor.numbers {
                    Numbers::F32(values) => Values::F32(values),
                    Numbers::F64(values) => Values::F64(values),
                },
            };
            if !checkpoints.entry(number).or_default().insert(tensor.name, parts) {
                return Err(invalid(format!(
                    "checkpoint {number} has two tensors `{}`",
                    short(tensor.name)
                )));
            }
        }
        Self::assemble(checkpoints, &shared)
    }
}

/// JSON of what can always be written as JSON.
fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| unreachable!("texts and numbers are JSON"))
}

/// Header and data of a file.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let Some((length, rest)) = bytes.split_first_chunk() else {
        return Err("it is shorter than the length that it begins with".to_owned());
    };
    let length = u64::from_le_bytes(*length);
    if length > HEADER_LIMIT {
        return Err(format!(
            "its header claims {length} bytes; at most {HEADER_LIMIT} are read"
        ));
    }
    rest.split_at_checked(length as usize).ok_or_else(|| {
        format!(
            "it is cut short: its header claims {length} bytes, {} follow",
            rest.len()
        )
    })
}

fn check_layout(version: Option<&str>) -> Result<(), String> {
    match version {
        // Written by hand or by another program.
        None | Some(VERSION) => Ok(()),
        Some(other) => Err(format!(
            "its layout is version {} of `{LAYOUT}`; this Provenir reads version {VERSION}",
            short(other)
        )),
    }
}

/// That every tensor lies within the data, as long as its shape says, and that together they cover the data once.
fn check_extents(tensors: &BTreeMap<String, Description>, length: u64) -> Result<(), String> {
    let mut extents = Vec::with_capacity(tensors.len());
    for (name, description) in tensors {
        let size = match description.dtype.as_str() {
            "F32" => 4_u64,
            "F64" => 8,
            other => {
                return Err(format!(
                    "the tensor `{}` holds {}; F32 and F64 are read",
                    short(name),
                    short(other)
                ));
            }
        };
        let [begin, end] = description.data_offsets;
        let claimed = description
            .shape
            .iter()
            .try_fold(size, |size, width| size.checked_mul(*width));
        if begin > end || end > length || claimed != Some(end - begin) {
            return Err(format!(
                "the tensor `{}` of shape {:?} does not fit the bytes {begin} to {end} of {length} that it claims; \
                 the file may be cut short",
                short(name),
                &description.shape[..description.shape.len().min(4)]
            ));
        }
        extents.push((begin, end));
    }
    extents.sort_unstable();
    let mut covered = 0;
    for (begin, end) in extents {
        if begin != covered {
            return Err(format!("its tensors overlap or leave a gap at byte {covered}"));
        }
        covered = end;
    }
    if covered == length {
        Ok(())
    } else {
        Err(format!(
            "{} bytes after its last tensor belong to none",
            length - covered
        ))
    }
}

/// A tensor's name without the checkpoint's, and its numbers.
struct Decoded<'a> {
    checkpoint: Option<u32>,
    name: &'a str,
    shape: Vec<u32>,
    numbers: Numbers,
}

enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl<'a> Decoded<'a> {
    /// The extents have been checked.
    fn new(full: &'a str, description: &Description, data: &[u8]) -> Result<Self, String> {
        let (checkpoint, name) = match full.strip_prefix(PREFIX) {
            Some(rest) => {
                let (number, name) = rest.split_once('.').unwrap_or((rest, ""));
                let number = number
                    .parse()
                    .map_err(|_| format!("no use for the tensor `{}`", short(full)))?;
                (Some(number), name)
            }
            None => (None, full),
        };
        let shape = description.shape.iter().map(|width| u32::try_from(*width));
        let shape = shape
            .collect::<Result<_, _>>()
            .map_err(|_| format!("the tensor `{}` is too large", short(full)))?;
        let [begin, end] = description.data_offsets.map(|offset| offset as usize);
        let bytes = &data[begin..end];
        let singles = || {
            let (chunks, _) = bytes.as_chunks::<4>();
            chunks.iter().map(|chunk| f32::from_le_bytes(*chunk))
        };
        let numbers = match (description.dtype.as_str(), is_double(name)) {
            ("F32", false) => Numbers::F32(singles().collect()),
            ("F32", true) => Numbers::F64(singles().map(f64::from).collect()),
            (_, true) => {
                let (chunks, _) = bytes.as_chunks::<8>();
                Numbers::F64(chunks.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect())
            }
            (_, false) => return Err(format!("the tensor `{}` holds F64; F32 is read", short(full))),
        };
        Ok(Self {
            checkpoint,
            name,
            shape,
            numbers,
        })
    }
}

/// A header, of which no name occurs twice.
struct Contents {
    metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, Description>,
}

impl<'de> Deserialize<'de> for Contents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Contents;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Contents, A::Error> {
                let mut metadata = None;
                let mut tensors = BTreeMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    let is_new = if key == METADATA {
                        let Unique(texts) = map.next_value()?;
                        metadata.replace(texts).is_none()
                    } else {
                        let description = map.next_value()?;
                        tensors.insert(key.clone(), description).is_none()
                    };
                    if !is_new {
                        return Err(A::Error::custom(format!("`{}` occurs twice", short(&key))));
                    }
                }
                Ok(Contents {
                    metadata: metadata.unwrap_or_default(),
                    tensors,
                })
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

/// Texts by name, of which none occurs twice.
struct Unique(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Unique;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
                let mut entries = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    if entries.insert(key.clone(), value).is_some() {
                        return Err(A::Error::custom(format!("`{}` occurs twice", short(&key))));
                    }
                }
                Ok(Unique(entries))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use jiff::Timestamp;
use provenir_api::Digest;
use serde::{Deserialize, Serialize};

use super::regular::{self, Content};
use super::{Action, ActionKey, Layout, StoreError};

/// Format of a result file. 1 - the first.
const FORMAT: u32 = 1;

/// Longest result file that is read: a cell that gathers a hundred thousand artifacts needs about 20 MB.
const LONGEST: u64 = 256 << 20;

/// An immutable table or file in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The output port that gave it.
    pub port: String,
    /// Digest of its values: what it is.
    pub content: Digest,
    /// Digest of its bytes: where it is.
    pub object: Digest,
    /// Length in bytes.
    pub size: u64,
    /// Number of rows, for a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// `parquet`, or the extension of a file.
    pub extension: String,
    /// True but not repeatable: left out of comparisons.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volatile: bool,
}

/// What an action gave: the content of a result file. It knows neither clock nor host, so that stores can be shared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionResult {
    /// [`FORMAT`] of the file.
    format: u32,
    /// The action's key.
    pub key: ActionKey,
    /// The action: the key's fields, so that it can be said later what differs between two.
    pub action: Action,
    /// The numeric platform that it was computed on.
    pub platform: BTreeMap<String, String>,
    /// One for each output port of the kind, in its order.
    pub outputs: Vec<Artifact>,
}

/// What is written: a flipped bit may leave all else well-formed, and name another artifact. Files of the first versions have no
/// checksum.
#[derive(Serialize)]
struct ResultFile<'a> {
    #[serde(flatten)]
    result: &'a ActionResult,
    /// [`checksum`] of the file.
    checksum: &'static str,
}

/// What stands where a file's checksum will be.
const NO_CHECKSUM: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// BLAKE3 of a result file with zeros in the place of that, and where that place is; `None` where there is none.
fn checksum(bytes: &[u8]) -> Option<(Digest, std::ops::Range<usize>)> {
    const FIELD: &[u8] = b"\"checksum\": \"";
    let field = bytes.windows(FIELD.len()).rposition(|window| window == FIELD)?;
    let start = field + FIELD.len();
    let place = start..start + NO_CHECKSUM.len();
    let rest = bytes.get(place.end..)?;
    Some((
        Digest::of(&[&bytes[..start], NO_CHECKSUM.as_bytes(), rest].concat()),
        place,
    ))
}

/// Most outputs of an action: far more than any kind has.
const OUTPUTS: usize = 10_000;
/// Longest extension of a file.
const EXTENSION: usize = 64;

impl Artifact {
    /// What is wrong with what a result says of it; its extension becomes part of a file's name.
    fn flaw(&self) -> Option<String> {
        let is_plain = self.extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_plain || self.extension.len() > EXTENSION {
            return Some(format!("the extension of output {} is none", self.port));
        }
        None
    }
}

/// The part of every format of a result file that says which it is.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

impl ActionResult {
    pub(super) fn new(
        key: ActionKey,
        action: Action,
        platform: BTreeMap<String, String>,
        outputs: Vec<Artifact>,
    ) -> Self {
        Self {
            format: FORMAT,
            key,
            action,
            platform,
            outputs,
        }
    }

    /// Whether two results agree in everything that is repeatable.
    pub fn agrees_with(&self, other: &Self) -> bool {
        self.first_difference(other).is_none()
    }

    /// The first output port at which two results differ, volatile ones left out.
    pub fn first_difference(&self, other: &Self) -> Option<&str> {
        let differs = |artifact: &&Artifact| {
            let counterpart = other.outputs.iter().find(|other| other.port == artifact.port);
            !artifact.volatile && counterpart.is_none_or(|other| other.content != artifact.content)
        };
        Some(self.outputs.iter().find(differs)?.port.as_str())
    }

    /// The first output port at which two results that agree differ all the same, because it is volatile.
    pub fn first_measured_otherwise(&self, other: &Self) -> Option<&str> {
        let differs = |artifact: &&Artifact| {
            let mut others = other.outputs.iter();
            others.any(|other| other.port == artifact.port && other.content != artifact.content)
        };
        Some(self.outputs.iter().find(differs)?.port.as_str())
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, StoreError> {
        let failed =
            |error: &dyn std::fmt::Display| StoreError::Outputs(format!("cannot be written down: {error}"));
        let file = ResultFile {
            result: self,
            checksum: NO_CHECKSUM,
        };
        let mut bytes = serde_json::to_vec_pretty(&file).map_err(|error| failed(&error))?;
        bytes.push(b'\n');
        let (checksum, place) = checksum(&bytes).ok_or_else(|| failed(&"its checksum has no place"))?;
        bytes[place].copy_from_slice(checksum.hex().as_bytes());
        Ok(bytes)
    }

    /// The result of `key`, and when it was written; `None` where there is none, or it cannot be understood.
    pub fn with_time(layout: &Layout, key: &ActionKey) -> Result<Option<(Self, Timestamp)>, StoreError> {
        let path = layout.result(key);
        let result = match Self::read(&path, key) {
            Err(StoreError::Malformed { .. }) => None,
            other => other?,
        };
        let written = fs_err::metadata(&path).and_then(|metadata| metadata.modified());
        let written = written.ok().and_then(|time| Timestamp::try_from(time).ok());
        Ok(result.zip(written))
    }

    /// Reads the result of `key`; `None` where there is no such file.
    pub(super) fn read(path: &Utf8Path, key: &ActionKey) -> Result<Option<Self>, StoreError> {
        const WHAT: &str = "result";
        let failed = || StoreError::io("cannot read a result");
        let malformed = |reason: &dyn ToString| StoreError::malformed(path, WHAT, reason);
        let bytes = match regular::read(path, LONGEST).map_err(failed())? {
            Content::Absent => return Ok(None),
            Content::Unfit(why) => return Err(malformed(&format!("it {why}"))),
            Content::Bytes(bytes) => bytes,
        };
        let version: Version = serde_json::from_slice(&bytes).map_err(|error| malformed(&error))?;
        // Before what it says is believed, its format included.
        if let Some((found, place)) = checksum(&bytes)
            && bytes[place] != *found.hex().as_bytes()
        {
            return Err(malformed(
                &"it was altered since it was written: its checksum is another",
            ));
        }
        if version.format > FORMAT {
            return Err(StoreError::Newer {
                path: path.to_owned(),
                found: version.format,
                known: FORMAT,
            });
        }
        let result: Self = serde_json::from_slice(&bytes).map_err(|error| malformed(&error))?;
        if result.key != *key || result.action.key() != *key {
            return Err(malformed(&"its name is not the key of its action"));
        }
        if result.outputs.len() > OUTPUTS {
            return Err(malformed(&"it has more outputs than any action"));
        }
        let mut ports = BTreeSet::new();
        for artifact in &result.outputs {
            if let Some(flaw) = artifact.flaw() {
                return Err(malformed(&flaw));
            }
            if !ports.insert(&artifact.port) {
                return Err(malformed(&format!("it has two outputs {}", artifact.port)));
            }
        }
        Ok(Some(result))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn artifact(port: &str, bytes: &[u8]) -> Artifact {
        Artifact {
            port: port.into(),
            content: Digest::of(&[b"content", bytes].concat()),
            object: Digest::of(bytes),
            size: bytes.len() as u64,
            rows: None,
            extension: "txt".into(),
            volatile: false,
        }
    }

    pub(crate) fn action(number: u64) -> Action {
        Action {
            kind: "noop".into(),
            revisions: BTreeMap::from([("noop".into(), 1)]),
            parameters: json!({ "number": number }),
            sources: BTreeMap::new(),
            inputs: Vec::new(),
            platform: None,
        }
    }

    fn result(outputs: Vec<Artifact>) -> ActionResult {
        let action = action(1);
        ActionResult::new(action.key(), action, BTreeMap::new(), outputs)
    }

    #[test]
    fn volatile_outputs_do_not_count_as_differences() {
        let mut timing = artifact("timing", b"1");
        timing.volatile = true;
        let mut other_timing = artifact("timing", b"2");
        other_timing.volatile = true;
        let left = result(vec![artifact("out", b"a"), timing]);
        assert!(left.agrees_with(&result(vec![artifact("out", b"a"), other_timing.clone()])));
        assert_eq!(
            left.first_difference(&result(vec![artifact("out", b"b"), other_timing])),
            Some("out")
        );
    }

    #[test]
    fn a_file_is_read_only_under_its_own_key_and_in_a_known_format() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("result.json");
        let written = result(vec![artifact("out", b"a")]);
        assert_eq!(ActionResult::read(&path, &written.key).unwrap(), None);
        fs_err::write(&path, written.encode().unwrap()).unwrap();
        assert_eq!(
            ActionResult::read(&path, &written.key).unwrap(),
            Some(written.clone())
        );
        assert!(matches!(
            ActionResult::read(&path, &action(2).key()),
            Err(StoreError::Malformed { .. })
        ));
        let mut newer = written.clone();
        newer.format = 2;
        fs_err::write(&path, newer.encode().unwrap()).unwrap();
        assert!(matches!(
            ActionResult::read(&path, &written.key),
            Err(StoreError::Newer {
                found: 2,
                known: 1,
                ..
            })
        ));
        let whole = written.encode().unwrap();
        for length in 0..whole.len() - 2 {
            fs_err::write(&path, &whole[..length]).unwrap();
            assert!(matches!(
                ActionResult::read(&path, &written.key),
                Err(StoreError::Malformed { .. })
            ));
        }
    }
}

//! Actions and their keys.
//!
//! An action is what a cell does, stripped of everything that cannot change what it gives. Its key names its result in
//! the store, so that two cells that do the same share one result, wherever they stand.
//!
//! | what | in the key | why |
//! |---|---|---|
//! | kind | yes | |
//! | revisions of the kind and of the machinery it uses | yes | raised when results change |
//! | parameters | those that matter and differ from their default, floats by value | a new parameter re-keys nothing |
//! | source files | the digest of their bytes, under the parameter's JSON pointer | the path does not matter, the content does |
//! | inputs | port and content digest | content, not bytes: an upgrade of the Parquet library moves no key |
//! | gathered axes at a *many* port | name and value | they become columns of what the cell sees |
//! | axes matched one to one | no | what they select is in the content |
//! | name of an input's source | only where a port unites several | it becomes the `source` column there |
//! | names and order of stages, layout, comments, the pipeline's name | no | they change no result |
//! | resources, `publish`, host, time, jobs, what else runs | no | they change no result |
//! | version and build of Provenir | no | revisions say when results change |
//!
//! Every field is typed and delimits itself ([`provenir_api::canonical`]); the domain below is the pre-image's first
//! field, so that an action never shares a digest with anything else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use provenir_api::canonical::Encoder;
use provenir_api::{Digest, DigestError, Label};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Raised when the encoding changes, which moves every key.
const DOMAIN: &str = "provenir 1 action key";

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
}

/// An artifact that an action takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionInput {
    /// The port.
    pub port: String,
    /// Values of the gathered axes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gathered: BTreeMap<String, Label>,
    /// How the manifest names where it comes from; only where the port unites several sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Digest of its values.
    pub content: Digest,
}

impl Action {
    /// The action's key.
    pub fn key(&self) -> ActionKey {
        let mut encoder = KeyEncoder::new(
            &self.kind,
            self.revisions
                .iter()
                .map(|(part, number)| (part.as_str(), *number)),
            &self.parameters,
            self.sources
                .iter()
                .map(|(pointer, digest)| (pointer.as_str(), digest)),
            self.inputs.len(),
        );
        for input in &self.inputs {
            encoder.input(
                &input.port,
                input.gathered.iter().map(|(axis, label)| (axis.as_str(), label)),
                input.source.as_deref(),
                &input.content,
            );
        }
        encoder.finish()
    }
}

/// Computes the key of an action that is never put together: the scheduler asks for the keys of thousands of cells
/// whose results are there.
pub(crate) struct KeyEncoder(Encoder);

impl KeyEncoder {
    /// Revisions and sources are sorted by name; `inputs` calls of [`KeyEncoder::input`] must follow.
    pub(crate) fn new<'a>(
        kind: &str,
        revisions: impl ExactSizeIterator<Item = (&'a str, u32)>,
        parameters: &Value,
        sources: impl ExactSizeIterator<Item = (&'a str, &'a Digest)>,
        inputs: usize,
    ) -> Self {
        let mut encoder = Encoder::new(DOMAIN);
        encoder.text(kind);
        encoder.count(revisions.len());
        for (part, number) in revisions {
            encoder.text(part);
            encoder.count(number as usize);
        }
        encoder.value(parameters);
        encoder.count(sources.len());
        for (pointer, digest) in sources {
            encoder.text(pointer);
            encoder.digest(digest);
        }
        encoder.count(inputs);
        Self(encoder)
    }

    /// Appends an input; labels are sorted by axis.
    pub(crate) fn input<'a>(
        &mut self,
        port: &str,
        gathered: impl ExactSizeIterator<Item = (&'a str, &'a Label)>,
        source: Option<&str>,
        content: &Digest,
    ) {
        self.0.text(port);
        self.0.count(gathered.len());
        for (axis, label) in gathered {
            self.0.text(axis);
            self.0.label(label);
        }
        self.0.count(usize::from(source.is_some()));
        if let Some(source) = source {
            self.0.text(source);
        }
        self.0.digest(content);
    }

    pub(crate) fn finish(self) -> ActionKey {
        ActionKey(self.0.finish())
    }
}

/// The ports at which several sources are united, given each input's port and source.
pub(crate) fn united<'a>(inputs: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeSet<&'a str> {
    let mut first = BTreeMap::new();
    let mut united = BTreeSet::new();
    for (port, source) in inputs {
        if *first.entry(port).or_insert(source) != source {
            united.insert(port);
        }
    }
    united
}

impl ActionKey {
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
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn action() -> Action {
        Action {
            kind: "train".into(),
            revisions: BTreeMap::from([("nn".into(), 1), ("train".into(), 2)]),
            parameters: json!({"epochs": 3}),
            sources: BTreeMap::from([("/expert".into(), Digest::of(b"expert"))]),
            inputs: vec![ActionInput {
                port: "demos".into(),
                gathered: BTreeMap::from([("seed".into(), Label::Integer(1))]),
                source: Some("parts.train".into()),
                content: Digest::of(b"demos"),
            }],
        }
    }

    #[test]
    fn every_field_moves_the_key() {
        let changes: [fn(&mut Action); 13] = [
            |action| action.kind = "trai".into(),
            |action| *action.revisions.get_mut("nn").unwrap() = 2,
            |action| drop(action.revisions.remove("nn")),
            |action| action.parameters = json!({"epochs": 4}),
            |action| action.parameters = json!({}),
            |action| action.sources.clear(),
            |action| drop(action.sources.insert("/expert".into(), Digest::of(b"other"))),
            |action| action.inputs.clear(),
            |action| action.inputs[0].port = "validation".into(),
            |action| action.inputs[0].gathered.clear(),
            |action| {
                drop(
                    action.inputs[0]
                        .gathered
                        .insert("seed".into(), Label::Text("1".into())),
                )
            },
            |action| action.inputs[0].source = None,
            |action| action.inputs[0].content = Digest::of(b"other"),
        ];
        let mut keys = BTreeSet::from([action().key()]);
        for change in changes {
            let mut changed = action();
            change(&mut changed);
            assert!(keys.insert(changed.key()), "{changed:?}");
        }
    }

    #[test]
    fn an_action_survives_its_file() {
        let text = serde_json::to_string(&action()).unwrap();
        let read: Action = serde_json::from_str(&text).unwrap();
        assert_eq!(read.key(), action().key());
    }

    #[test]
    fn a_port_unites_where_its_sources_differ() {
        let inputs = [
            ("table", "reward"),
            ("table", "reward"),
            ("other", "a"),
            ("both", "a"),
            ("both", "b"),
        ];
        assert_eq!(united(inputs.into_iter()), BTreeSet::from(["both"]));
    }

    fn arbitrary_input() -> impl Strategy<Value = ActionInput> {
        let short = "[ab]{0,2}";
        (
            short,
            prop::collection::btree_map(short, 0_i64..3, 0..3),
            prop::option::of(short),
            0_u8..3,
        )
            .prop_map(|(port, gathered, source, content)| ActionInput {
                port,
                gathered: gathered
                    .into_iter()
                    .map(|(axis, value)| (axis, Label::Integer(value)))
                    .collect(),
                source,
                content: Digest::of(&[content]),
            })
    }

    fn arbitrary_action() -> impl Strategy<Value = Action> {
        let short = "[ab]{0,2}";
        (
            short,
            prop::collection::btree_map(short, 0_u32..3, 0..3),
            prop::collection::btree_map(short, 0_i64..3, 0..3),
            prop::collection::btree_map(short, 0_u8..3, 0..3),
            prop::collection::vec(arbitrary_input(), 0..3),
        )
            .prop_map(|(kind, revisions, parameters, sources, inputs)| Action {
                kind,
                revisions,
                parameters: json!(parameters),
                sources: sources
                    .into_iter()
                    .map(|(key, value)| (key, Digest::of(&[value])))
                    .collect(),
                inputs,
            })
    }

    proptest! {
        #[test]
        fn keys_are_equal_exactly_where_actions_are(left in arbitrary_action(), right in arbitrary_action()) {
            prop_assert_eq!(left.key() == right.key(), left == right);
        }
    }
}

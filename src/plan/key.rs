//! The identity of an action: what decides the bytes that it gives, and nothing else.
//!
//! The pre-image is a sequence of typed, length-prefixed fields (`provenir_api::canonical`) in a domain of its own:
//!
//! | part        | encoded as                                              | why                                             |
//! |-------------|---------------------------------------------------------|-------------------------------------------------|
//! | domain      | BLAKE3 key-derivation context [`DOMAIN`], with a version | another layout of this table never collides     |
//! | kind        | name                                                    |                                                 |
//! | revisions   | count; name and number of each part, sorted by name     | results change when the code that gives them does |
//! | parameters  | canonical JSON: relevant, not default, floats by value  | a new parameter with a default re-keys nothing  |
//! | inputs      | count; for each, sorted: port; count, name and label of gathered axes, sorted by name; source; content digest | what the cell sees of an artifact |
//! | sources     | count; JSON pointer and digest of each file, sorted     | a file counts by content, not by path           |
//! | platform    | count 0, or count 1 and the text                        | only where the person asks for it               |
//!
//! Not in it: names of pipeline, stages and cells; axes that are matched one to one; the order of anything; layout,
//! comments, descriptions; resources, `publish`; where and when it runs. The source of an input is the name of its
//! port wherever a port takes one producer, so that renaming a stage re-runs nothing; in a union without `as` it is the
//! producer's name as written, because a figure may show it.

use std::sync::Arc;

use provenir_api::canonical::Encoder;
use provenir_api::{Digest, Label};
use serde::Serialize;
use serde_json::Value;

/// The domain of action keys; its version is raised when the table above changes, which re-keys everything.
pub const DOMAIN: &str = "provenir action key, version 1";

/// Everything that decides the result of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Action<'a> {
    /// Name of the kind.
    pub kind: &'a str,
    /// Name and number of the revisions of the kind and of the machinery that it uses, in any order.
    pub revisions: Vec<(&'a str, u32)>,
    /// Its canonical parameters.
    pub parameters: &'a Value,
    /// The artifacts that it takes, in any order.
    pub inputs: Vec<ActionInput<'a>>,
    /// JSON pointer and digest of every source file among the parameters, in any order.
    pub sources: Vec<(&'a str, Digest)>,
    /// The numeric platform, where it is to count.
    pub platform: Option<&'a str>,
}

/// What a cell sees of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ActionInput<'a> {
    /// The consumer's port.
    pub port: &'a str,
    /// Labels of gathered axes, in any order.
    #[serde(serialize_with = "as_list")]
    pub gathered: &'a [(Arc<str>, Label)],
    /// As in [`Input::source`](super::Input::source).
    pub source: &'a str,
    /// Digest of its values.
    pub content: Digest,
}

fn as_list<S: serde::Serializer>(gathered: &&[(Arc<str>, Label)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(gathered.iter().map(|(axis, label)| (&**axis, label)))
}

impl Action<'_> {
    /// The action key.
    pub fn key(&self) -> Digest {
        let mut encoder = Encoder::new(DOMAIN);
        encoder.text(self.kind);
        let mut revisions = self.revisions.clone();
        revisions.sort_unstable();
        encoder.count(revisions.len());
        for (part, number) in revisions {
            encoder.text(part);
            encoder.count(number as usize);
        }
        encoder.value(self.parameters);
        let mut inputs: Vec<(Vec<_>, &ActionInput<'_>)> = self
            .inputs
            .iter()
            .map(|input| {
                let mut gathered: Vec<&(Arc<str>, Label)> = input.gathered.iter().collect();
                gathered.sort();
                (gathered, input)
            })
            .collect();
        inputs.sort_by_key(|(gathered, input)| (input.port, gathered.clone(), input.source, input.content));
        encoder.count(inputs.len());
        for (gathered, input) in inputs {
            encoder.text(input.port);
            encoder.count(gathered.len());
            for (axis, label) in gathered {
                encoder.text(axis);
                encoder.label(label);
            }
            encoder.text(input.source);
            encoder.digest(&input.content);
        }
        let mut sources = self.sources.clone();
        sources.sort();
        encoder.count(sources.len());
        for (pointer, digest) in sources {
            encoder.text(pointer);
            encoder.digest(&digest);
        }
        encoder.count(usize::from(self.platform.is_some()));
        if let Some(platform) = self.platform {
            encoder.text(platform);
        }
        encoder.finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// An action that owns what it is made of, as plain data: two of them are the same action exactly where they are
    /// equal once what has no order is sorted.
    #[derive(Clone, Debug, PartialEq)]
    struct Owned {
        kind: String,
        revision: u32,
        parameters: Value,
        inputs: Vec<OwnedInput>,
        sources: Vec<(String, u8)>,
        platform: Option<String>,
    }

    type OwnedInput = (String, Vec<(Arc<str>, Label)>, String, u8);

    impl Owned {
        fn key(&self) -> Digest {
            Action {
                kind: &self.kind,
                revisions: vec![("part", self.revision)],
                parameters: &self.parameters,
                inputs: self
                    .inputs
                    .iter()
                    .map(|(port, gathered, source, content)| ActionInput {
                        port,
                        gathered,
                        source,
                        content: Digest::of(&[*content]),
                    })
                    .collect(),
                sources: self
                    .sources
                    .iter()
                    .map(|(pointer, content)| (pointer.as_str(), Digest::of(&[*content])))
                    .collect(),
                platform: self.platform.as_deref(),
            }
            .key()
        }

        fn sorted(mut self) -> Self {
            for (_, gathered, _, _) in &mut self.inputs {
                gathered.sort();
            }
            self.inputs.sort();
            self.sources.sort();
            self
        }
    }

    /// Few values of everything, so that actions that nearly agree are common.
    fn actions() -> impl Strategy<Value = Owned> {
        let text = || "[ab]{0,2}";
        let label = prop_oneof![
            (0_i64..3).prop_map(Label::Integer),
            Just(Label::Float(0.5)),
            text().prop_map(Label::Text),
            any::<bool>().prop_map(Label::Bool),
        ];
        let gathered = prop::collection::btree_map(text().prop_map(Arc::from), label, 0..3)
            .prop_map(|map| map.into_iter().collect::<Vec<(Arc<str>, Label)>>())
            .prop_shuffle();
        let parameters = prop_oneof![
            Just(json!({})),
            Just(json!({"a": 1})),
            Just(json!({"a": 1.5, "b": ["a", "b"]})),
            Just(json!({"a": {"b": "a"}})),
        ];
        let input = (text(), gathered, text(), 0_u8..2);
        let source = (text(), 0_u8..2);
        (
            text(),
            0_u32..2,
            parameters,
            prop::collection::vec(input, 0..3),
            prop::collection::vec(source, 0..2),
            prop::option::of(text()),
        )
            .prop_map(|(kind, revision, parameters, inputs, sources, platform)| Owned {
                kind,
                revision,
                parameters,
                inputs,
                sources,
                platform,
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

        #[test]
        fn two_actions_have_one_key_exactly_where_they_are_the_same(left in actions(), right in actions()) {
            let same = left.clone().sorted() == right.clone().sorted();
            prop_assert_eq!(left.key() == right.key(), same);
        }

        #[test]
        fn every_part_counts(action in actions(), other in actions()) {
            let part: [fn(&mut Owned, Owned); 6] = [
                |action, other| action.kind = other.kind,
                |action, other| action.revision = other.revision,
                |action, other| action.parameters = other.parameters,
                |action, other| action.inputs = other.inputs,
                |action, other| action.sources = other.sources,
                |action, other| action.platform = other.platform,
            ];
            for replace in part {
                let mut changed = action.clone();
                replace(&mut changed, other.clone());
                let same = action.clone().sorted() == changed.clone().sorted();
                prop_assert_eq!(action.key() == changed.key(), same);
            }
        }

        #[test]
        fn order_is_immaterial(action in actions(), seed in any::<u64>()) {
            let mut turned = action.clone();
            let by = |len: usize| if len == 0 { 0 } else { usize::try_from(seed % len as u64).unwrap_or(0) };
            for (_, gathered, _, _) in &mut turned.inputs {
                let by = by(gathered.len());
                gathered.rotate_left(by);
            }
            let (inputs, sources) = (by(turned.inputs.len()), by(turned.sources.len()));
            turned.inputs.rotate_left(inputs);
            turned.sources.rotate_left(sources);
            prop_assert_eq!(action.key(), turned.key());
        }
    }

    #[test]
    fn the_preimage_is_the_table_at_the_head_of_this_module() {
        // Written out byte by byte, so that a change of the layout cannot go unnoticed.
        let gathered = [(Arc::from("epsilon"), Label::Float(0.5))];
        let action = Action {
            kind: "k",
            revisions: vec![("z", 2), ("k", 1)],
            parameters: &json!({"n": 3}),
            inputs: vec![ActionInput {
                port: "p",
                gathered: &gathered,
                source: "p",
                content: Digest::of(b"content"),
            }],
            sources: vec![("/file", Digest::of(b"file"))],
            platform: Some("x"),
        };
        let text = |text: &str| [&b"s"[..], &(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
        let count = |count: u64| [&b"n"[..], &count.to_le_bytes()].concat();
        let digest = |of: &[u8]| [&b"d"[..], &blake3::hash(of).as_bytes()[..]].concat();
        let preimage = [
            text("k"),
            count(2),
            text("k"),
            count(1),
            text("z"),
            count(2),
            [&b"o"[..], &1_u64.to_le_bytes()].concat(),
            text("n"),
            [&b"i"[..], &3_i128.to_le_bytes()].concat(),
            count(1),
            text("p"),
            count(1),
            text("epsilon"),
            [&b"f"[..], &0.5_f64.to_bits().to_le_bytes()].concat(),
            text("p"),
            digest(b"content"),
            count(1),
            text("/file"),
            digest(b"file"),
            count(1),
            text("x"),
        ]
        .concat();
        let expected = blake3::Hasher::new_derive_key("provenir action key, version 1")
            .update(&preimage)
            .finalize();
        assert_eq!(action.key(), Digest::from(expected));
    }
}

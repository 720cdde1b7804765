//! What differs between two actions.
//!
//! * `inputs`: artifacts that arrive at a port.

mod inputs;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use camino::Utf8PathBuf;
use provenir_api::Digest;
use serde::Serialize;
use serde_json::Value;

pub(crate) use inputs::changed_inputs;

use crate::store::Action;
use inputs::compare_inputs;

/// One field in which two actions differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// What the stage does.
    Kind {
        /// Before.
        old: String,
        /// Now.
        new: String,
    },
    /// The revision of the kind or of machinery that it uses.
    Revision {
        /// Of what.
        part: String,
        /// Before; `None` where it was not used.
        old: Option<u32>,
        /// Now; `None` where it is not used any more.
        new: Option<u32>,
    },
    /// A parameter.
    Parameter {
        /// Its JSON pointer.
        pointer: String,
        /// Before; `None` where it had its default, or no effect.
        old: Option<Value>,
        /// Now; `None` where it has its default, or no effect.
        new: Option<Value>,
        /// What it is on the side that does not have it, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        absent: Option<Absent>,
    },
    /// The content of a source file.
    Source {
        /// JSON pointer of the parameter that names it.
        pointer: String,
        /// Before; `None` where no file was named.
        old: Option<FileVersion>,
        /// Now; `None` where no file is named.
        new: Option<FileVersion>,
    },
    /// What arrives at a port.
    Input {
        /// The port.
        port: String,
        /// Artifacts of the same labels and source with another content.
        changed: usize,
        /// Artifacts that were not there before.
        added: usize,
        /// Artifacts that are not there any more.
        removed: usize,
        /// Which were not there before, in as few words as tell them: values of an axis (`seed=3`), members of a union, or
        /// the labels of each. Nothing where the port takes one artifact.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        gained: Vec<String>,
        /// Which are not there any more, in the same words.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        lost: Vec<String>,
        /// Artifacts that are known by another name now, with the same content: before, now.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        renamed: Vec<(String, String)>,
    },
    /// The numeric platform, where it counts.
    Platform {
        /// Before; `None` where it did not count.
        old: Option<String>,
        /// Now; `None` where it does not count.
        new: Option<String>,
    },
}

/// A source file as an action took it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileVersion {
    /// Digest of its bytes.
    pub content: Digest,
    /// Its path as the manifest named it, where that is known: it is in no key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Utf8PathBuf>,
}

/// What a parameter is that an action does not have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Absent {
    /// Its default, which is this.
    Default(Value),
    /// Nothing: given the other parameters, it has no effect.
    NoEffect,
    /// Nothing: an entry of a table that holds any.
    NotThere,
}

/// Every field in which two actions differ, in the order of a key's fields.
pub fn differences(old: &Action, new: &Action) -> Vec<Difference> {
    let mut found = Vec::new();
    if old.kind != new.kind {
        found.push(Difference::Kind {
            old: old.kind.clone(),
            new: new.kind.clone(),
        });
        // What else they hold means something else in each.
        return found;
    }
    for part in keys(&old.revisions, &new.revisions) {
        let (old, new) = (old.revisions.get(part).copied(), new.revisions.get(part).copied());
        if old != new {
            found.push(Difference::Revision {
                part: part.clone(),
                old,
                new,
            });
        }
    }
    compare(Some(&old.parameters), Some(&new.parameters), "", &mut found);
    for pointer in keys(&old.sources, &new.sources) {
        let version = |action: &Action| action.sources.get(pointer).copied();
        let (old, new) = (version(old), version(new));
        if old != new {
            let version = |content| FileVersion { content, path: None };
            found.push(Difference::Source {
                pointer: pointer.clone(),
                old: old.map(version),
                new: new.map(version),
            });
        }
    }
    compare_inputs(&old.inputs, &new.inputs, &mut found);
    if old.platform != new.platform {
        found.push(Difference::Platform {
            old: old.platform.clone(),
            new: new.platform.clone(),
        });
    }
    found
}

impl Difference {
    /// What differs in which artifacts arrive at a port, without those that changed.
    pub fn of_gathered(&self) -> Option<Self> {
        let Self::Input {
            port,
            added,
            removed,
            gained,
            lost,
            renamed,
            ..
        } = self
        else {
            return None;
        };
        (added + removed > 0 || !renamed.is_empty()).then(|| Self::Input {
            port: port.clone(),
            changed: 0,
            added: *added,
            removed: *removed,
            gained: gained.clone(),
            lost: lost.clone(),
            renamed: renamed.clone(),
        })
    }
}

/// Every value in which two JSON values differ, as [`Difference::Parameter`].
pub fn value_differences(old: &Value, new: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(Some(old), Some(new), "", &mut found);
    found
}

fn keys<'a, V>(old: &'a BTreeMap<String, V>, new: &'a BTreeMap<String, V>) -> BTreeSet<&'a String> {
    old.keys().chain(new.keys()).collect()
}

/// Goes down into tables, and into lists that are too long to be shown; everything else is one value.
fn compare(old: Option<&Value>, new: Option<&Value>, pointer: &str, found: &mut Vec<Difference>) {
    let is_long =
        |list: &[Value]| list.iter().map(|item| item.to_string().len() + 1).sum::<usize>() > LONGEST;
    match (old, new) {
        (Some(Value::Array(old)), Some(Value::Array(new))) if is_long(old) || is_long(new) => {
            compare_lists(old, new, pointer, found);
        }
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                compare(old.get(name), new.get(name), &pointer, found);
            }
        }
        (old, new) if old != new => found.push(Difference::Parameter {
            pointer: pointer.to_owned(),
            old: old.cloned(),
            new: new.cloned(),
            absent: None,
        }),
        _ => {}
    }
}

/// Lists item by item: what both begin and end with is the same, and what is between is taken in order.
fn compare_lists(old: &[Value], new: &[Value], pointer: &str, found: &mut Vec<Difference>) {
    let begin = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[begin..], &new[begin..]);
    let backwards = old.iter().rev().zip(new.iter().rev());
    let end = backwards.take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    for place in 0..old.len().max(new.len()) {
        let pointer = format!("{pointer}/{}", begin + place);
        match (old.get(place), new.get(place)) {
            (Some(old), Some(new)) => compare(Some(old), Some(new), &pointer, found),
            (old, new) => found.push(Difference::Parameter {
                pointer,
                old: old.cloned(),
                new: new.cloned(),
                absent: Some(Absent::NotThere),
            }),
        }
    }
}

/// A JSON pointer as people write the place of a parameter: `outputs.table.columns[2]`.
fn place_of(pointer: &str) -> String {
    let mut place = String::new();
    for part in pointer.split('/').skip(1) {
        if part.bytes().all(|byte| byte.is_ascii_digit()) && !place.is_empty() {
            let _ = write!(place, "[{part}]");
        } else {
            let dot = if place.is_empty() { "" } else { "." };
            let _ = write!(place, "{dot}{part}");
        }
    }
    place
}

/// A short phrase: `epochs 50 → 60`. The alternate form (`{:#}`) shows much longer values.
impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { old, new } => write!(formatter, "kind {old} → {new}"),
            Self::Revision { part, old, new } => {
                let shown = |number: &Option<u32>| {
                    number.map_or_else(|| "none".to_owned(), |number| number.to_string())
                };
                write!(formatter, "revision of {part} {} → {}", shown(old), shown(new))
            }
            Self::Parameter {
                pointer,
                old,
                new,
                absent,
            } => {
                let told = |value: &Option<Value>| shown(value.as_ref(), absent.as_ref());
                let longest = if formatter.alternate() {
                    LONGEST_ALONE
                } else {
                    LONGEST
                };
                let (old, new) = cut_apart(&told(old), &told(new), longest);
                write!(formatter, "{} {old} → {new}", place_of(pointer))
            }
            Self::Source { pointer, old, new } => {
                let file = changed_file(old.as_ref(), new.as_ref());
                write!(formatter, "{}: {file}", place_of(pointer))
            }
            Self::Input {
                port,
                changed,
                added,
                removed,
                gained,
                lost,
                renamed,
            } => {
                let mut told = Vec::new();
                match (changed, added + removed) {
                    (0, _) => {}
                    (1, 0) => told.push("changed".to_owned()),
                    (1, _) => told.push("changed (1 artifact)".to_owned()),
                    (count, _) => told.push(format!("changed ({count} artifacts)")),
                }
                for (terms, verb, is_there, plain) in [
                    (gained, "also collects", *added > 0, "added"),
                    (lost, "no longer collects", *removed > 0, "removed"),
                ] {
                    if !terms.is_empty() {
                        told.push(format!("{verb} {}", listed(terms)));
                    } else if is_there {
                        told.push(plain.to_owned());
                    }
                }
                if !renamed.is_empty() {
                    let names = renamed
                        .iter()
                        .map(|(old, new)| format!("{old} is called {new} now"));
                    told.push(listed(&names.collect::<Vec<_>>()));
                }
                let colon = if *changed + added + removed > 0 { "" } else { ":" };
                write!(formatter, "input {port}{colon} {}", told.join(", "))
            }
            Self::Platform { old, new } => {
                let told = |platform: &Option<String>| match platform {
                    Some(platform) => platform.replace('\n', ", "),
                    None => "any".to_owned(),
                };
                write!(formatter, "platform {} → {}", told(old), told(new))
            }
        }
    }
}

/// A source file before and now, in words.
fn changed_file(old: Option<&FileVersion>, new: Option<&FileVersion>) -> String {
    if let (Some(old), Some(new)) = (old, new) {
        let same = match (&old.path, &new.path) {
            (Some(old), Some(new)) if old != new => None,
            (None, None) => Some("the file".to_owned()),
            (path, other) => path.as_ref().or(other.as_ref()).map(|path| format!("`{path}`")),
        };
        if let Some(name) = same {
            let (old, new) = (old.content.short(), new.content.short());
            return format!("the content of {name} changed, {old} → {new}");
        }
    }
    let told = |version: Option<&FileVersion>| match version {
        Some(FileVersion {
            content,
            path: Some(path),
        }) => format!("`{path}` (content {})", content.short()),
        Some(FileVersion { content, path: None }) => format!("a file (content {})", content.short()),
        None => "no file".to_owned(),
    };
    format!("{} → {}", told(old), told(new))
}

/// Characters of a value that are shown.
const LONGEST: usize = 40;
/// The same where each difference has a line of its own.
const LONGEST_ALONE: usize = 400;
/// So many terms are shown.
const TERMS: usize = 6;

/// Terms, the first few of many.
fn listed(terms: &[String]) -> String {
    let shown = terms[..terms.len().min(TERMS)].join(", ");
    match terms.len().saturating_sub(TERMS) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn shown(value: Option<&Value>, absent: Option<&Absent>) -> String {
    match (value, absent) {
        (Some(value), _) => value.to_string(),
        (None, Some(Absent::Default(Value::Null))) => "none, the default".to_owned(),
        (None, Some(Absent::Default(value))) => format!("{value}, the default"),
        (None, Some(Absent::NoEffect)) => "no effect".to_owned(),
        (None, Some(Absent::NotThere)) => "not there".to_owned(),
        (None, None) => "default".to_owned(),
    }
}

/// Two values that differ: short ones as they are, long ones cut, at the front, too, where they begin alike for longer than
/// is shown.
pub(crate) fn cut_apart(old: &str, new: &str, longest: usize) -> (String, String) {
    /// So many characters stand before what differs.
    const BEFORE: usize = 8;
    let alike = old.chars().zip(new.chars()).take_while(|(old, new)| old == new);
    let alike = alike.count();
    let left_out = if alike + 1 < longest {
        0
    } else {
        alike - BEFORE.min(alike)
    };
    let cut = |text: &str| -> String {
        let length = text.chars().count();
        if length <= longest {
            return text.to_owned();
        }
        let front = (left_out > 0).then_some('…');
        let room = longest - usize::from(left_out > 0);
        let back = (length - left_out > room).then_some('…');
        let kept = text
            .chars()
            .skip(left_out)
            .take(room - usize::from(back.is_some()));
        front.into_iter().chain(kept).chain(back).collect()
    };
    (cut(old), cut(new))
}

#[cfg(test)]
mod tests {
    use provenir_api::Label;
    use serde_json::json;

    use super::*;
    use crate::store::ActionInput;

    fn action(parameters: Value) -> Action {
        Action {
            kind: "train".into(),
            revisions: BTreeMap::from([("nn".into(), 1), ("train".into(), 2)]),
            parameters,
            sources: BTreeMap::new(),
            inputs: Vec::new(),
            platform: None,
        }
    }

    fn input(port: &str, seed: i64, content: &[u8]) -> ActionInput {
        ActionInput {
            port: port.into(),
            gathered: BTreeMap::from([("seed".into(), Label::Integer(seed))]),
            source: port.into(),
            content: Digest::of(content),
        }
    }

    fn told(old: &Action, new: &Action) -> Vec<String> {
        differences(old, new).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn equal_actions_do_not_differ() {
        assert_eq!(told(&action(json!({"a": 1})), &action(json!({"a": 1}))), [""; 0]);
    }

    #[test]
    fn each_parameter_is_told_on_its_own() {
        let old = action(json!({"epochs": 50, "rbc": {"objective": "min-max", "window": 3}}));
        let new = action(json!({"epochs": 60, "rbc": {"objective": "direct"}, "seed": 1}));
        assert_eq!(
            told(&old, &new),
            [
                "epochs 50 → 60",
                "rbc.objective \"min-max\" → \"direct\"",
                "rbc.window 3 → default",
                "seed default → 1"
            ]
        );
    }

    #[test]
    fn long_lists_are_told_item_by_item_and_short_ones_whole() {
        let argv = |words: &[&str]| action(json!({ "argv": words }));
        let old = argv(&[
            "sh",
            "-c",
            "echo 1 > o.txt",
            "train",
            "--data",
            "x.csv",
            "--epochs",
            "10",
        ]);
        let new = argv(&[
            "sh",
            "-c",
            "echo 1 > o.txt",
            "fit",
            "--data",
            "x.csv",
            "--epochs",
            "20",
        ]);
        assert_eq!(
            told(&old, &new),
            [r#"argv[3] "train" → "fit""#, r#"argv[7] "10" → "20""#]
        );
        let longer = argv(&[
            "sh",
            "-c",
            "echo 1 > o.txt",
            "train",
            "--data",
            "x.csv",
            "-v",
            "--epochs",
            "10",
        ]);
        assert_eq!(told(&old, &longer), [r#"argv[6] not there → "-v""#]);
        assert_eq!(told(&longer, &old), [r#"argv[6] "-v" → not there"#]);
        let hidden = |widths: &[u32]| action(json!({ "hidden": widths }));
        assert_eq!(
            told(&hidden(&[256, 256, 256]), &hidden(&[64, 64])),
            ["hidden [256,256,256] → [64,64]"]
        );
    }

    #[test]
    fn what_an_action_does_not_have_is_told_as_what_it_is() {
        let told = |absent| {
            let difference = Difference::Parameter {
                pointer: "/rbc/window".into(),
                old: Some(json!(3)),
                new: None,
                absent,
            };
            difference.to_string()
        };
        assert_eq!(told(None), "rbc.window 3 → default");
        assert_eq!(
            told(Some(Absent::Default(json!(1)))),
            "rbc.window 3 → 1, the default"
        );
        assert_eq!(
            told(Some(Absent::Default(Value::Null))),
            "rbc.window 3 → none, the default"
        );
        assert_eq!(told(Some(Absent::NoEffect)), "rbc.window 3 → no effect");
    }

    #[test]
    fn long_values_are_cut_but_never_so_that_they_look_the_same() {
        let told = |old: &str, new: &str| {
            let (old, new) = cut_apart(old, new, 12);
            format!("{old} {new}")
        };
        let alike = "x".repeat(50);
        assert_eq!(told(&alike, "y"), "xxxxxxxxxxx… y");
        assert_eq!(
            told(&format!("{alike}a"), &format!("{alike}b")),
            "…xxxxxxxxa …xxxxxxxxb"
        );
        assert_eq!(told(&alike, &format!("{alike}b")), "…xxxxxxxx …xxxxxxxxb");
        assert_eq!(told("xxxxxxxxxxxx", &alike), "xxxxxxxxxxxx …xxxxxxxxxx…");
        assert_eq!(
            told(&format!("{alike}a{alike}"), &format!("{alike}b{alike}")),
            "…xxxxxxxxax… …xxxxxxxxbx…"
        );
        for (old, new) in [(&*alike, "xxx"), ("", &*alike), ("xxxxxxxxxxxx", "xxxxxxxxxxxy")] {
            let (before, now) = cut_apart(old, new, 12);
            assert_ne!(before, now);
            assert!(
                before.chars().count() <= 12 && now.chars().count() <= 12,
                "{before} {now}"
            );
        }
    }

    #[test]
    fn a_file_is_told_with_its_path_and_its_content() {
        let version = |bytes: &[u8], path: Option<&str>| {
            Some(FileVersion {
                content: Digest::of(bytes),
                path: path.map(Utf8PathBuf::from),
            })
        };
        let (one, two) = (Digest::of(b"1").short(), Digest::of(b"2").short());
        let told = |old, new| {
            let pointer = "/expert".into();
            Difference::Source { pointer, old, new }.to_string()
        };
        assert_eq!(
            [
                told(version(b"1", Some("a.zip")), version(b"2", Some("a.zip"))),
                told(version(b"1", None), version(b"2", Some("a.zip"))),
                told(version(b"1", Some("a.zip")), version(b"2", Some("b.zip"))),
                told(version(b"1", None), version(b"2", None)),
                told(version(b"1", Some("a.zip")), None),
            ],
            [
                format!("expert: the content of `a.zip` changed, {one} → {two}"),
                format!("expert: the content of `a.zip` changed, {one} → {two}"),
                format!("expert: `a.zip` (content {one}) → `b.zip` (content {two})"),
                format!("expert: the content of the file changed, {one} → {two}"),
                format!("expert: `a.zip` (content {one}) → no file"),
            ]
        );
    }

    #[test]
    fn revisions_files_and_inputs_are_told() {
        let mut old = action(json!({}));
        let mut new = action(json!({}));
        new.revisions.insert("train".into(), 3);
        new.revisions.remove("nn");
        new.sources.insert("/expert".into(), Digest::of(b"x"));
        old.inputs = vec![
            input("demos", 1, b"a"),
            input("table", 1, b"a"),
            input("table", 2, b"b"),
        ];
        new.inputs = vec![
            input("demos", 1, b"c"),
            input("table", 1, b"a"),
            input("table", 3, b"b"),
            input("table", 4, b"b"),
        ];
        assert_eq!(
            told(&old, &new),
            [
                "revision of nn 1 → none",
                "revision of train 2 → 3",
                &format!("expert: no file → a file (content {})", Digest::of(b"x").short()),
                "input demos changed",
                "input table also collects seed=3, seed=4, no longer collects seed=2"
            ]
        );
    }
}

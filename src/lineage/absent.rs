//! Parameters that an action does not have: what their default is, or that they have no effect there.

use provenir_api::AnyKind;
use serde_json::{Map, Value};

use crate::exec::{Absent, Difference};
use crate::store::Action;

/// Says of each parameter that one of two actions does not have what it is there, as far as the kind that they are of can
/// tell.
pub(super) fn explained(
    found: Vec<Difference>,
    kind: Option<&dyn AnyKind>,
    old: &Action,
    new: &Action,
) -> Vec<Difference> {
    let Some(kind) = kind else { return found };
    let mut explained = Vec::with_capacity(found.len());
    for difference in found {
        let (pointer, value, lacking) = match difference {
            // An item of a list.
            Difference::Parameter { absent: Some(_), .. } => {
                explained.push(difference);
                continue;
            }
            Difference::Parameter {
                pointer,
                old: None,
                new: Some(value),
                ..
            } => (pointer, value, Lacking::Old),
            Difference::Parameter {
                pointer,
                old: Some(value),
                new: None,
                ..
            } => (pointer, value, Lacking::New),
            other => {
                explained.push(other);
                continue;
            }
        };
        let action = match lacking {
            Lacking::Old => old,
            Lacking::New => new,
        };
        let absent = absent(kind, action, &pointer, &value);
        push(&mut explained, pointer, value, absent, lacking);
    }
    explained
}

/// Which of two actions does not have a parameter.
#[derive(Clone, Copy)]
enum Lacking {
    Old,
    New,
}

/// Adds a difference; of a table that has defaults, one for each of its fields.
fn push(
    explained: &mut Vec<Difference>,
    pointer: String,
    value: Value,
    absent: Option<Absent>,
    lacking: Lacking,
) {
    match (value, absent) {
        (Value::Object(fields), Some(Absent::Default(Value::Object(defaults)))) => {
            for (name, field) in fields {
                let default = defaults.get(&name).cloned().map(Absent::Default);
                let pointer = provenir_api::schema::join(&pointer, &name);
                push(explained, pointer, field, default, lacking);
            }
        }
        (value, absent) => {
            let (old, new) = match lacking {
                Lacking::Old => (None, Some(value)),
                Lacking::New => (Some(value), None),
            };
            explained.push(Difference::Parameter {
                pointer,
                old,
                new,
                absent,
            });
        }
    }
}

/// What the parameter at a pointer is for an action that does not have it; `value` is what it is for another.
///
/// The kind fills in defaults, and leaves out of the key what has no effect: so it is asked twice, without the parameter
/// and with it. An action of another revision may have had other defaults; of that nothing is said.
fn absent(kind: &dyn AnyKind, action: &Action, pointer: &str, value: &Value) -> Option<Absent> {
    let is_of_kind = kind.name() == action.kind
        && kind.revisions().len() == action.revisions.len()
        && kind
            .revisions()
            .iter()
            .all(|revision| action.revisions.get(revision.part) == Some(&revision.number));
    if !is_of_kind {
        return None;
    }
    let mut parameters = action.parameters.clone();
    for source in action.sources.keys() {
        // Any file will do: what is asked does not depend on which.
        put(&mut parameters, source, Value::from("file"));
    }
    let full = kind.resolve(&parameters).ok()?.full;
    put(&mut parameters, pointer, value.clone());
    if let Ok(resolved) = kind.resolve(&parameters)
        && resolved.canonical.pointer(pointer).is_none()
    {
        return Some(Absent::NoEffect);
    }
    Some(
        full.pointer(pointer)
            .cloned()
            .map_or(Absent::NotThere, Absent::Default),
    )
}

/// Puts a value at a JSON pointer through tables, which are made where they are missing.
fn put(base: &mut Value, pointer: &str, value: Value) {
    let mut place = base;
    for name in pointer.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(fields) = place else { return };
        place = fields.entry(name).or_insert(Value::Null);
    }
    *place = value;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::exec::differences;

    fn train() -> Box<dyn AnyKind> {
        let mut kinds = provenir_kinds::all().into_iter();
        kinds.find(|kind| kind.name() == "train").unwrap()
    }

    fn action(kind: &dyn AnyKind, parameters: &Value) -> Action {
        Action {
            kind: kind.name().into(),
            revisions: kind
                .revisions()
                .iter()
                .map(|revision| (revision.part.to_owned(), revision.number))
                .collect(),
            parameters: kind.resolve(parameters).unwrap().canonical,
            sources: BTreeMap::new(),
            inputs: Vec::new(),
            platform: None,
        }
    }

    fn told(old: &Value, new: &Value) -> Vec<String> {
        let kind = train();
        let (old, new) = (action(&*kind, old), action(&*kind, new));
        let found = explained(differences(&old, &new), Some(&*kind), &old, &new);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn defaults_are_told_by_value_and_what_has_no_effect_as_that() {
        let kind = train();
        let defaults = kind
            .resolve(&json!({ "method": "rbc", "epochs": 5 }))
            .unwrap()
            .full;
        assert_eq!(
            told(
                &json!({ "method": "rbc", "epochs": 5 }),
                &json!({ "method": "rbc", "epochs": 5, "batch": 7, "rbc": { "window": 0.5 } })
            ),
            [
                format!("batch {}, the default → 7", defaults["batch"]),
                "rbc.window none, the default → 0.5".to_owned(),
            ]
        );
        assert!(defaults["rbc"]["window"].is_null());
        assert_eq!(
            told(
                &json!({ "method": "rbc", "epochs": 5, "rbc": { "window": 0.5 } }),
                &json!({ "method": "bc", "epochs": 5 })
            )
            .last()
            .unwrap(),
            "rbc {\"window\":0.5} → no effect"
        );
    }

    #[test]
    fn nothing_is_said_of_the_defaults_of_another_revision() {
        let kind = train();
        let mut old = action(&*kind, &json!({ "method": "bc", "epochs": 5 }));
        let new = action(&*kind, &json!({ "method": "bc", "epochs": 5, "batch": 7 }));
        old.revisions.insert("train".into(), 0);
        let found = explained(differences(&old, &new), Some(&*kind), &old, &new);
        assert_eq!(found.last().unwrap().to_string(), "batch default → 7");
    }
}

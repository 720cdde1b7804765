use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Entities in the order in which they were first added.
#[derive(Default)]
pub(super) struct Graph {
    entities: Vec<Value>,
    places: BTreeMap<String, usize>,
    /// References that were added: from where, as what, to what.
    references: BTreeSet<(usize, String, String)>,
}

impl Graph {
    /// Adds an entity; one that is there already stays as it is.
    pub(super) fn add(&mut self, entity: Value) {
        let id = entity["@id"].as_str().unwrap_or_default();
        if !self.places.contains_key(id) {
            self.places.insert(id.to_owned(), self.entities.len());
            self.entities.push(entity);
        }
    }

    /// Adds a reference to a property of an entity that is there, once: a single one is written without a list.
    pub(super) fn refer(&mut self, id: &str, property: &str, to: &str) {
        let Some(place) = self.places.get(id).copied() else {
            return;
        };
        if !self
            .references
            .insert((place, property.to_owned(), to.to_owned()))
        {
            return;
        }
        match &mut self.entities[place][property] {
            old @ Value::Null => *old = reference(to),
            Value::Array(list) => list.push(reference(to)),
            old => *old = Value::Array(vec![old.take(), reference(to)]),
        }
    }

    /// Adds a property value (schema.org), and says how it is referred to.
    pub(super) fn value(&mut self, id: String, name: &str, value: &Value) -> String {
        self.add(json!({ "@id": id, "@type": "PropertyValue", "name": name, "value": value }));
        id
    }

    /// All of them.
    pub(super) fn entities(self) -> Vec<Value> {
        self.entities
    }
}

/// A reference to an entity.
pub(super) fn reference(id: &str) -> Value {
    json!({ "@id": id })
}

/// References: a single one without a list; `null` for none, which [`without_nulls`] leaves out.
pub(super) fn several(ids: impl IntoIterator<Item = String>) -> Value {
    let mut list: Vec<Value> = Vec::new();
    let mut seen = BTreeSet::new();
    for id in ids {
        if seen.insert(id.clone()) {
            list.push(reference(&id));
        }
    }
    match list.len() {
        0 => Value::Null,
        1 => list.remove(0),
        _ => Value::Array(list),
    }
}

/// An entity without the properties that are `null`.
pub(super) fn without_nulls(mut entity: Value) -> Value {
    if let Value::Object(properties) = &mut entity {
        properties.retain(|_, value| !value.is_null());
    }
    entity
}

use super::Global;

/// The place of a value in its pickle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(pub(super) u32);

/// A pickled value. Containers hold places rather than values, so that a value that contains itself is harmless: it
/// is neither copied nor walked nor dropped recursively.
#[derive(Debug)]
pub(crate) enum Value<'a> {
    None,
    Bool(bool),
    Int(i64),
    /// A whole number beyond 64 bits: the state of a random generator, read by nobody.
    BigInt,
    Float(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Global(Global),
    Object(Box<Object>),
    /// What is kept outside the pickle: a tensor's storage.
    Persistent(Id),
}

/// What a call in a pickle would have made: its parts, never executed.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) class: Global,
    /// A tuple.
    pub(crate) arguments: Id,
    pub(crate) state: Option<Id>,
    /// Entries of an `OrderedDict`.
    pub(crate) items: Vec<(Id, Id)>,
}

/// A pickle's values. Every [`Id`] in it belongs to it.
#[derive(Debug)]
pub(crate) struct Pickle<'a> {
    pub(super) values: Vec<Value<'a>>,
    pub(super) root: Id,
}

impl<'a> Pickle<'a> {
    pub(crate) fn root(&self) -> Id {
        self.root
    }

    pub(crate) fn value(&self, id: Id) -> &Value<'a> {
        &self.values[id.0 as usize]
    }

    pub(crate) fn object(&self, id: Id) -> Option<&Object> {
        match self.value(id) {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    pub(crate) fn tuple(&self, id: Id) -> Option<&[Id]> {
        match self.value(id) {
            Value::Tuple(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn text(&self, id: Id) -> Option<&'a str> {
        match self.value(id) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number that is a size or an index.
    pub(crate) fn size(&self, id: Id) -> Option<u64> {
        match self.value(id) {
            Value::Int(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// A tuple of sizes.
    pub(crate) fn sizes(&self, id: Id) -> Option<Vec<u64>> {
        self.tuple(id)?.iter().map(|id| self.size(*id)).collect()
    }

    /// The entries of a dict or an `OrderedDict`.
    pub(crate) fn entries(&self, id: Id) -> Option<&[(Id, Id)]> {
        match self.value(id) {
            Value::Dict(entries) => Some(entries),
            Value::Object(object) if object.class == Global::OrderedDict => Some(&object.items),
            _ => None,
        }
    }

    /// The attribute of an object whose state is a dict; the last one wins, as in Python.
    pub(crate) fn attribute(&self, object: &Object, name: &str) -> Option<Id> {
        let entries = self.entries(object.state?)?;
        entries
            .iter()
            .rev()
            .find(|(key, _)| self.text(*key) == Some(name))
            .map(|(_, value)| *value)
    }
}

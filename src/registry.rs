//! The kinds that a manifest may name.

use std::collections::BTreeMap;
use std::sync::Arc;

use provenir_api::AnyKind;

/// Kinds by name.
#[derive(Clone, Default)]
pub struct Registry {
    kinds: BTreeMap<&'static str, Arc<dyn AnyKind>>,
}

impl Registry {
    /// A registry of these kinds. Of two with one name the later is kept.
    pub fn new(kinds: Vec<Box<dyn AnyKind>>) -> Self {
        Self {
            kinds: kinds
                .into_iter()
                .map(|kind| (kind.name(), Arc::from(kind)))
                .collect(),
        }
    }

    /// The kind of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn AnyKind>> {
        self.kinds.get(name)
    }

    /// All kinds, by name.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<dyn AnyKind>> {
        self.kinds.values()
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.kinds.keys().copied()
    }
}

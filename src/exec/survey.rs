use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::resolve::{Resolver, Results};
use crate::plan::{CellIndex, Plan};
use crate::store::{Action, ActionKey, Committed, Lookup, MissReason, Store, StoreError};

/// Where a cell stands before a run.
#[derive(Clone, Debug)]
pub enum Standing {
    /// The store has its result.
    Cached(Committed),
    /// It has to be executed.
    Due {
        /// Its action.
        key: ActionKey,
        /// Why.
        reason: Due,
    },
    /// Its key, and so whether it has to be executed, is known only when a producer's result is.
    Unknown {
        /// The nearest producer that has to be executed.
        producer: CellIndex,
    },
}

/// Why a cell has to be executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Due {
    /// The store does not have its result, or not all of it.
    Miss(MissReason),
    /// The person wants it.
    Forced,
}

/// Where every cell of a plan stands.
pub struct Survey<'a> {
    plan: &'a Plan,
    store: &'a Store,
    /// By cell.
    pub standings: Vec<Standing>,
}

impl Results for Vec<Standing> {
    fn result(&self, cell: CellIndex) -> Option<&Committed> {
        match self.get(cell) {
            Some(Standing::Cached(result)) => Some(result),
            _ => None,
        }
    }
}

impl<'a> Survey<'a> {
    /// Looks up every cell whose key can be known. Executes nothing, and writes nothing but the index.
    pub fn take(plan: &'a Plan, store: &'a Store, force: &BTreeSet<CellIndex>) -> Result<Self, StoreError> {
        store.lookup_all(|| Self::look(plan, store, force))
    }

    fn look(plan: &'a Plan, store: &'a Store, force: &BTreeSet<CellIndex>) -> Result<Self, StoreError> {
        let mut resolver = Resolver::new(plan, store);
        let mut standings: Vec<Standing> = Vec::with_capacity(plan.cells.len());
        for (index, cell) in plan.cells.iter().enumerate() {
            let uncertain = cell
                .inputs
                .iter()
                .find_map(|input| match &standings[input.producer] {
                    Standing::Cached(_) => None,
                    Standing::Due { .. } => Some(input.producer),
                    Standing::Unknown { producer } => Some(*producer),
                });
            standings.push(match uncertain {
                Some(producer) => Standing::Unknown { producer },
                None => stand(store, resolver.key(index, &standings)?, force.contains(&index))?,
            });
        }
        Ok(Self {
            plan,
            store,
            standings,
        })
    }

    /// The action of a cell whose producers' results are all known.
    pub fn action(&self, cell: CellIndex) -> Result<Action, StoreError> {
        Resolver::new(self.plan, self.store).action(cell, &self.standings)
    }

    /// The action of a cell, as far as it is known: without the artifacts whose producers have to be executed first.
    pub fn known(&self, cell: CellIndex) -> Result<Action, StoreError> {
        Resolver::new(self.plan, self.store).known(cell, &self.standings)
    }

    /// How many cells the store has.
    pub fn cached(&self) -> usize {
        self.standings
            .iter()
            .filter(|standing| matches!(standing, Standing::Cached(_)))
            .count()
    }
}

/// Where a cell stands whose key is known.
fn stand(store: &Store, key: ActionKey, forced: bool) -> Result<Standing, StoreError> {
    if forced {
        return Ok(Standing::Due {
            key,
            reason: Due::Forced,
        });
    }
    Ok(match store.lookup(&key)? {
        Lookup::Hit(result) => Standing::Cached(result),
        Lookup::Miss(reason) => Standing::Due {
            key,
            reason: Due::Miss(reason),
        },
    })
}

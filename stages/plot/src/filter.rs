//! `where`: which rows are meant.

use std::collections::{BTreeMap, BTreeSet};

use provenir_api::Label;
use provenir_api::schema::nearest;
use provenir_execution::{Context, Failure, Input};
use provenir_kinds::plot::Values;

use crate::columns::{self, Factor, shown};

/// A filter, and the values that were met while it was used.
pub(crate) struct Filter<'a> {
    wanted: &'a BTreeMap<String, Values>,
    met: BTreeMap<&'a str, BTreeSet<Label>>,
}

/// A filter on the rows of one table.
pub(crate) struct OnTable<'a>(Vec<(&'a Values, Factor)>);

impl<'a> Filter<'a> {
    pub(crate) fn new(wanted: &'a BTreeMap<String, Values>) -> Self {
        Self {
            wanted,
            met: BTreeMap::new(),
        }
    }

    /// The filter on the rows of a table.
    pub(crate) fn on(&mut self, input: &Input) -> Result<OnTable<'a>, Failure> {
        let mut factors = Vec::with_capacity(self.wanted.len());
        for (name, values) in self.wanted {
            let factor = columns::factor(input, name)?;
            let met = self.met.entry(name).or_default();
            match &factor {
                Factor::Constant(label) => met.extend(label.clone()),
                Factor::Rows(labels) => {
                    for label in labels.iter().flatten() {
                        if !met.contains(label) {
                            met.insert(label.clone());
                        }
                    }
                }
            }
            factors.push((values, factor));
        }
        Ok(OnTable(factors))
    }

    /// Warns of values that were asked for and that no row has.
    pub(crate) fn warn_of_unmet(&self, context: &Context<'_>) {
        let nothing = BTreeSet::new();
        for (name, values) in self.wanted {
            let met = self.met.get(name.as_str()).unwrap_or(&nothing);
            for value in values.iter().filter(|value| !met.contains(value)) {
                let texts: Vec<_> = met.iter().map(shown).collect();
                let near = nearest(&shown(value), texts.iter().map(AsRef::as_ref));
                let hint = near.map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
                context.warn(format!(
                    "`where` asks for `{name}` = `{value}`, which no row has{hint}"
                ));
            }
        }
    }
}

impl OnTable<'_> {
    /// Whether a row has one of the values wanted in every column named.
    pub(crate) fn keeps(&self, row: usize) -> bool {
        self.0
            .iter()
            .all(|(values, factor)| factor.get(row).is_some_and(|label| values.contains(label)))
    }
}

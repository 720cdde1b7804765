//! What is known of artifacts before they are made, where parameters tell: how many rows they have, which environment they
//! are of. A cell that needs something else than arrives cannot do what it is asked for.

use provenir_api::{Known, Label, Need, Resolved};

use super::model::{CellIndex, Input};

/// A fact about an output, and the parameter that says it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    pub(super) value: Label,
    /// The cell whose parameter it is.
    pub(super) origin: CellIndex,
    pub(super) pointer: &'static str,
}

/// What arrives at a port, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arrival {
    pub(super) port: &'static str,
    pub(super) producer: CellIndex,
    pub(super) fact: Fact,
}

/// Something else arrives than is needed.
#[derive(Debug, PartialEq)]
pub(super) struct Conflict<'a> {
    /// What the fact is called.
    pub(super) name: &'static str,
    pub(super) need: &'a Need,
    pub(super) found: Arrival,
    /// What it should be like, where that arrives, too.
    pub(super) other: Option<Arrival>,
}

/// What is known of every cell's outputs so far.
#[derive(Default)]
pub(super) struct Ledger(Vec<Vec<(&'static str, &'static str, Fact)>>);

impl Ledger {
    /// Adds the next cell; gives what it needs and does not get. Of what is in conflict nothing is known further on, so that
    /// it is said once.
    pub(super) fn add<'a>(&mut self, parameters: &'a Resolved, inputs: &[Input]) -> Vec<Conflict<'a>> {
        let cell = self.0.len();
        let facts = &parameters.facts;
        let arriving = |port: &'static str, name: &str| {
            let input = inputs.iter().find(|input| input.port == port)?;
            let outputs = self.0.get(input.producer)?;
            let (_, _, fact) = outputs
                .iter()
                .find(|(output, known, _)| *output == input.output && *known == name)?;
            Some(Arrival {
                port,
                producer: input.producer,
                fact: fact.clone(),
            })
        };
        let conflicts: Vec<Conflict<'a>> = facts
            .needs
            .iter()
            .filter_map(|(port, name, need)| {
                let found = arriving(port, name)?;
                let value = &found.fact.value;
                let (is_met, other) = match need {
                    Need::AtLeast { least, .. } => {
                        let enough = |rows: i64| u64::try_from(rows).is_ok_and(|rows| rows >= *least);
                        (!matches!(value, Label::Integer(rows) if !enough(*rows)), None)
                    }
                    Need::Equal(wanted, _) => (value == wanted, None),
                    Need::Alike(port) => {
                        let other = arriving(port, name)?;
                        (*value == other.fact.value, Some(other))
                    }
                };
                (!is_met).then_some(Conflict {
                    name,
                    need,
                    found,
                    other,
                })
            })
            .collect();
        let outputs = facts.gives.iter().filter_map(|(port, name, known)| {
            if conflicts.iter().any(|conflict| conflict.name == *name) {
                return None;
            }
            let fact = match known {
                Known::Given(value, pointer) => Fact {
                    value: value.clone(),
                    origin: cell,
                    pointer,
                },
                Known::Of(input) => arriving(input, name)?.fact,
            };
            Some((*port, *name, fact))
        });
        let outputs = outputs.collect();
        self.0.push(outputs);
        conflicts
    }
}

use camino::Utf8PathBuf;

use super::place::Place;
use crate::exec::Difference;
use crate::record::History;
use crate::store::{Action, ActionInput};

/// An action, as one of the cells that are it: one of the two sides of a comparison.
pub struct Side<'a> {
    /// The action.
    pub action: &'a Action,
    /// The cell, where records tell which and where it stands.
    pub place: Option<Place<'a>>,
    /// What gave each artifact that it takes, in the order of the action's inputs, where that is known.
    origins: Vec<Option<Place<'a>>>,
}

impl<'a> Side<'a> {
    /// All of an action.
    pub fn of(action: &'a Action, place: Option<Place<'a>>) -> Self {
        Self::part(action, place, |_| true)
    }

    /// An action of which only the inputs are there whose position among all of the cell's `is_there` says that of.
    pub(super) fn part(
        action: &'a Action,
        place: Option<Place<'a>>,
        mut is_there: impl FnMut(usize) -> bool,
    ) -> Self {
        let wires = place.and_then(Place::wires).unwrap_or_default();
        let there = wires.iter().enumerate().filter(|(number, _)| is_there(*number));
        let mut origins: Vec<_> = there
            .map(|(_, wire)| place.map(|place| place.origin(wire)))
            .collect();
        if origins.len() != action.inputs.len() {
            origins = vec![None; action.inputs.len()];
        }
        Self {
            action,
            place,
            origins,
        }
    }

    /// What gave the artifact at an input.
    pub(super) fn origin(&self, input: usize) -> Option<Place<'a>> {
        self.origins.get(input).copied().flatten()
    }

    /// An input by its position.
    pub(super) fn input(&self, input: usize) -> &'a ActionInput {
        &self.action.inputs[input]
    }

    /// The source file at a parameter, as its manifest names it.
    fn source(&self, pointer: &str, history: &History) -> Option<Utf8PathBuf> {
        let own = self
            .place
            .and_then(|place| place.cells.source_as_named(place.position, pointer));
        let latest = || history.source(&self.action.key(), pointer);
        own.or_else(latest).map(ToOwned::to_owned)
    }
}

/// Adds to what differs between two sides the paths of source files.
pub(super) fn named(
    mut found: Vec<Difference>,
    history: &History,
    old: &Side<'_>,
    new: &Side<'_>,
) -> Vec<Difference> {
    for difference in &mut found {
        if let Difference::Source {
            pointer,
            old: before,
            new: now,
        } = difference
        {
            for (version, side) in [(before, old), (now, new)] {
                if let Some(version) = version {
                    version.path = side.source(pointer, history);
                }
            }
        }
    }
    found
}

use crate::exec::{Standing, Survey};
use crate::plan::{CellIndex, Plan};
use crate::record::{Cells, PlacedCell, Wire};

/// The cells of a plan, as a run of it would record them.
pub fn cells(plan: &Plan, survey: &Survey<'_>) -> Cells {
    let all = 0..plan.cells.len();
    let cells = all.map(|position| (position, cell(plan, survey, position)));
    Cells::new(cells.collect(), Some(plan.folder.clone()))
}

fn cell(plan: &Plan, survey: &Survey<'_>, position: CellIndex) -> PlacedCell {
    let cell = &plan.cells[position];
    let wires = cell.inputs.iter();
    let sources = cell.parameters.sources.iter();
    PlacedCell {
        name: plan.name(position),
        key: match &survey.standings[position] {
            Standing::Cached(result) => Some(result.key()),
            Standing::Due { key, .. } => Some(*key),
            Standing::Unknown { .. } => None,
        },
        wires: Some(
            wires
                .map(|input| Wire(input.producer, input.output.to_owned()))
                .collect(),
        ),
        sources: Some(
            sources
                .map(|source| (source.pointer.clone(), source.path.clone()))
                .collect(),
        ),
    }
}

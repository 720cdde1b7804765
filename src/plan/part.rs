use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::model::{Cell, CellIndex, Input, Plan, Stage, StageInput};
use crate::manifest::Diagnostics;

impl Plan {
    /// The cells upstream of these, and these.
    pub fn with_ancestors(&self, cells: &BTreeSet<CellIndex>) -> BTreeSet<CellIndex> {
        let mut found = BTreeSet::new();
        let mut open: Vec<CellIndex> = cells.iter().copied().collect();
        while let Some(cell) = open.pop() {
            if found.insert(cell) {
                open.extend(self.cells[cell].inputs.iter().map(|input| input.producer));
            }
        }
        found
    }

    /// The plan of some of its cells and all that they need, which publishes nothing; and for each of its cells the
    /// position in this plan.
    pub fn part(&self, cells: &BTreeSet<CellIndex>) -> (Self, Vec<CellIndex>) {
        let kept: Vec<CellIndex> = self.with_ancestors(cells).into_iter().collect();
        let positions: BTreeMap<CellIndex, CellIndex> = kept
            .iter()
            .enumerate()
            .map(|(position, cell)| (*cell, position))
            .collect();
        let mut stages: Vec<Stage> = Vec::new();
        let mut stage_positions: BTreeMap<usize, usize> = BTreeMap::new();
        let mut parts = Vec::with_capacity(kept.len());
        for (position, index) in kept.iter().enumerate() {
            let cell = &self.cells[*index];
            let stage = *stage_positions.entry(cell.stage).or_insert_with(|| {
                stages.push(self.empty_stage(cell.stage, position));
                stages.len() - 1
            });
            stages[stage].cells.end = position + 1;
            let inputs = cell.inputs.iter().map(|input| Input {
                producer: positions[&input.producer],
                gathered: Arc::clone(&input.gathered),
                source: Arc::clone(&input.source),
                ..*input
            });
            parts.push(Cell {
                stage,
                labels: cell.labels.clone(),
                parameters: Arc::clone(&cell.parameters),
                inputs: inputs.collect(),
                publish: Vec::new(),
            });
        }
        // A stage has cells here only if its producers have.
        for stage in &mut stages {
            stage.inputs.retain_mut(|input: &mut StageInput| {
                let position = stage_positions.get(&input.producer);
                position.is_some_and(|position| {
                    input.producer = *position;
                    true
                })
            });
        }
        let part = Self {
            pipeline: self.pipeline.clone(),
            manifest: self.manifest.clone(),
            bases: self.bases.clone(),
            folder: self.folder.clone(),
            platform: self.platform.clone(),
            stages,
            cells: parts,
            resolved: self.resolved.clone(),
            gone: self.gone.clone(),
            warnings: Diagnostics::none(),
        };
        (part, kept)
    }

    /// A stage of this plan with no cell yet, the first of which will be at `first`.
    fn empty_stage(&self, stage: usize, first: CellIndex) -> Stage {
        let stage = &self.stages[stage];
        Stage {
            name: stage.name.clone(),
            place: stage.place.clone(),
            kind: Arc::clone(&stage.kind),
            outputs: Arc::clone(&stage.outputs),
            axes: stage.axes.clone(),
            inputs: stage.inputs.clone(),
            volatile: stage.volatile,
            attempts: stage.attempts,
            cells: first..first,
        }
    }
}

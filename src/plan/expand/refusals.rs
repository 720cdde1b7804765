//! What a plan is refused for when its stages are expanded: its size, producers that are excluded, rows that lack.

use provenir_api::port::Arity;

use super::super::axes::AXES;
use super::super::layout::{Point, count};
use super::super::links::{Port, width};
use super::super::sizes::Shortage;
use super::Expansion;

/// Most cells of a plan.
const CELLS: u64 = 1_000_000;
/// Most artifacts that the cells of a plan take, all together.
const INPUTS: u64 = 20_000_000;

impl Expansion<'_, '_> {
    /// Whether the plan has a size that can be held; reports its largest stage otherwise.
    pub(super) fn is_bounded(&mut self, kept: &[bool]) -> bool {
        let mut cells = 0_u64;
        let mut inputs = 0_u64;
        let mut largest = (0, 0);
        let mut widest = (0, 0);
        for stage in (0..self.graph.nodes.len()).filter(|stage| kept[*stage]) {
            let own = count(self.flow.stages[stage].axes, self.axes);
            let taken = own.saturating_mul(width(self.graph, self.flow, stage, self.axes));
            cells = cells.saturating_add(own);
            inputs = inputs.saturating_add(taken);
            largest = largest.max((own, stage));
            widest = widest.max((taken, stage));
        }
        if cells > CELLS {
            let (own, stage) = largest;
            let factors: Vec<String> = self.flow.stages[stage]
                .axes
                .iter()
                .map(|axis| format!("{} ({})", self.axes.name(axis), self.axes.values(axis).len()))
                .collect();
            let node = &self.graph.nodes[stage];
            let message = format!("the pipeline has {cells} cells; the limit is {CELLS}");
            self.report.error(node.decl.key, message).help(format!(
                "`{}` alone has {own}: {}",
                node.name,
                factors.join(" × ")
            ));
        } else if inputs > INPUTS {
            let (taken, stage) = widest;
            let node = &self.graph.nodes[stage];
            let message = format!("the cells of the pipeline take {inputs} artifacts; the limit is {INPUTS}");
            self.report
                .error(node.decl.key, message)
                .help(format!("those of `{}` alone take {taken}", node.name));
        }
        cells <= CELLS && inputs <= INPUTS
    }

    /// Reports that every producer that a cell could take at a port is excluded.
    pub(super) fn report_lacking(&mut self, stage: usize, port: &Port, point: &Point) {
        let node = &self.graph.nodes[stage];
        let Some(link) = port.links.first() else { return };
        let wire = &node.wires[link.wire];
        let producer = &self.graph.nodes[wire.producer];
        let produced = self.flow.stages[wire.producer].axes;
        let consumer = self.cell_name(stage, point);
        let message = match port.arity {
            Arity::One => {
                let mut at = *point;
                for (axis, value) in &self.flow.stages[stage].fixed[link.wire] {
                    at[*axis] = *value;
                }
                format!(
                    "`{consumer}` takes `{}`, which is excluded",
                    self.cell_name(wire.producer, &at)
                )
            }
            Arity::Many => format!(
                "`{consumer}` finds no cell of `{}`: all are excluded",
                producer.name
            ),
        };
        let place = self
            .flow
            .exclusions(wire.producer, produced)
            .first()
            .map(|points| points.span);
        let diagnostic = self.report.error(wire.item.span, message);
        if let Some(place) = place {
            diagnostic.label(place, "excluded here");
        }
        diagnostic.help(format!(
            "exclude it for `{}` too; at the top level of the manifest `exclude` concerns every stage that varies over the axes it names",
            node.name
        ));
    }

    /// Says that fewer rows arrive than a parameter asks for, at both parameters.
    pub(super) fn report_shortage(&mut self, stage: usize, point: &Point, shortage: &Shortage) {
        let axes = self.axes;
        let at = |axis: usize| (point[axis], &axes.values(axis)[point[axis]]);
        let asked = self.parameters[stage].place_of(shortage.pointer, &at, axes, &mut self.report);
        let producer = self.stages[self.cells[shortage.producer].stage].name.clone();
        let origin = &self.cells[shortage.known.origin];
        let source = self.stages[origin.stage].name.clone();
        let mut there: Point = [0; AXES];
        for (name, label) in self.stages[origin.stage].axes.iter().zip(&origin.labels) {
            if let Some(axis) = axes.index(name) {
                there[axis] = axes.position(axis, label).unwrap_or_default();
            }
        }
        let node = self.graph.nodes.iter().position(|node| **node.name == *source);
        let given = node.map(|node| {
            let at = |axis: usize| (there[axis], &axes.values(axis)[there[axis]]);
            self.parameters[node].place_of(shortage.known.pointer, &at, axes, &mut self.report)
        });
        let name = |pointer: &str| pointer.trim_start_matches('/').replace('/', ".");
        let message = format!(
            "`{}`: {} rows are asked for, and `{producer}` gives {}",
            name(shortage.pointer),
            shortage.wanted,
            shortage.known.rows
        );
        let diagnostic = self.report.error(asked, message);
        if let Some(given) = given {
            diagnostic.label(given, "as many as this says");
        }
        diagnostic.help(format!(
            "ask for fewer, or raise `{}` of stage `{source}`",
            name(shortage.known.pointer)
        ));
    }
}

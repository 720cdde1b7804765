//! What a plan is refused for when its stages are expanded: its size, producers that are excluded, inputs that are not
//! what is needed.

use provenir_api::port::Arity;
use provenir_api::{Facts, Need};

use super::super::axes::{AXES, AxisSet};
use super::super::facts::{Conflict, Fact};
use super::super::layout::{Point, count};
use super::super::links::{Port, width};
use super::super::model::Publish;
use super::super::parameters::Place;
use super::super::publish::Pattern;
use super::Expansion;
use crate::number::{grouped, grouped_u64};

/// Most cells of a plan.
const CELLS: u64 = 1_000_000;
/// Most different sets of parameters of a plan's cells, which share them where they are the same: 2 to 5 KB each.
const PARAMETERS: u64 = 250_000;
/// Most artifacts that the cells of a plan take, all together.
const INPUTS: u64 = 20_000_000;

impl Expansion<'_, '_> {
    /// Whether the plan has a size that can be held; reports its largest stage otherwise.
    pub(super) fn is_bounded(&mut self, kept: &[bool]) -> bool {
        let mut cells = 0_u64;
        let mut inputs = 0_u64;
        let mut sets = 0_u64;
        let mut largest = (0, 0);
        let mut richest = (0, 0);
        let mut widest = (0, 0);
        for stage in (0..self.graph.nodes.len()).filter(|stage| kept[*stage]) {
            let own = count(self.flow.stages[stage].axes, self.axes);
            let taken = own.saturating_mul(width(self.graph, self.flow, stage, self.axes));
            cells = cells.saturating_add(own);
            inputs = inputs.saturating_add(taken);
            let different = count(self.parameters[stage].axes, self.axes);
            sets = sets.saturating_add(different);
            richest = richest.max((different, stage));
            largest = largest.max((own, stage));
            widest = widest.max((taken, stage));
        }
        if cells > CELLS {
            self.refuse_count((cells, CELLS), "cells", largest, self.flow.stages[largest.1].axes);
        } else if sets > PARAMETERS {
            let axes = self.parameters[richest.1].axes;
            self.refuse_count((sets, PARAMETERS), "different sets of parameters", richest, axes);
        } else if inputs > INPUTS {
            let (taken, stage) = widest;
            let node = &self.graph.nodes[stage];
            let message = format!(
                "the cells of the pipeline take {} artifacts; the limit is {}",
                grouped_u64(inputs),
                grouped_u64(INPUTS)
            );
            self.report.error(node.decl.key, message).help(format!(
                "those of `{}` alone take {}",
                node.name,
                grouped_u64(taken)
            ));
        }
        cells <= CELLS && sets <= PARAMETERS && inputs <= INPUTS
    }

    /// Reports that there are more of something than the limit, with the stage that has most, and the axes that make it so.
    fn refuse_count(
        &mut self,
        (found, limit): (u64, u64),
        what: &str,
        (own, stage): (u64, usize),
        axes: AxisSet,
    ) {
        let factors: Vec<String> = axes
            .iter()
            .map(|axis| {
                let values = grouped(self.axes.values(axis).len());
                format!("{} ({values})", self.axes.name(axis))
            })
            .collect();
        let node = &self.graph.nodes[stage];
        // Products end there.
        let told = |count: u64| match count {
            u64::MAX => format!("more than {}", grouped_u64(count - 1)),
            count => grouped_u64(count),
        };
        let message = format!(
            "the pipeline has {} {what}; the limit is {}",
            told(found),
            grouped_u64(limit)
        );
        self.report.error(node.decl.key, message).help(format!(
            "`{}` alone has {}: {}",
            node.name,
            told(own),
            factors.join(" × ")
        ));
    }

    /// Reports a named copy that is called what its file, by the parameters of the cell, is not; once a pattern.
    pub(super) fn check_end(
        &mut self,
        stage: usize,
        facts: &Facts,
        copy: &Publish,
        patterns: &mut [Pattern],
        point: &Point,
    ) {
        let pattern = patterns.iter_mut().find(|pattern| pattern.place().1 == copy.port);
        let Some(pattern) = pattern else { return };
        let Some((wanted, pointer)) = pattern.misnamed(&copy.path, facts) else {
            return;
        };
        let place = self.parameter_place(stage, pointer, point);
        let parameter = written(pointer);
        let message = format!(
            "output `{}` is a {wanted} file here, and the path is `{}`",
            copy.port, copy.path
        );
        let diagnostic = self.report.error(pattern.place().0, message);
        if place.is_written() {
            diagnostic.label(place.shown, format!("`{parameter}` says so"));
        }
        diagnostic.help(format!(
            "let the path end in {wanted}, or set `{parameter}` to what the path says"
        ));
    }

    /// Reports that every producer that a cell could take at a port is excluded.
    pub(super) fn report_lacking(&mut self, stage: usize, port: &Port, point: &Point) {
        let node = &self.graph.nodes[stage];
        let Some(link) = port.links.first() else { return };
        let wire = &node.wires[link.wire];
        let producer = &self.graph.nodes[wire.producer];
        let produced = self.flow.stages[wire.producer].axes;
        let consumer = self.cell_name(stage, point);
        let exclusions = self.flow.exclusions(wire.producer, produced);
        let (message, exclusion) = match port.arity {
            Arity::One => {
                let mut at = *point;
                for (axis, value) in &self.flow.stages[stage].fixed[link.wire] {
                    at[*axis] = *value;
                }
                let message = format!(
                    "`{consumer}` takes `{}`, which is excluded",
                    self.cell_name(wire.producer, &at)
                );
                let mut exclusions = exclusions.iter();
                (message, exclusions.find(|points| points.contain(|axis| at[axis])))
            }
            Arity::Many => {
                let message = format!(
                    "`{consumer}` finds no cell of `{}`: all are excluded",
                    producer.name
                );
                (message, exclusions.first())
            }
        };
        let place = exclusion.map(|points| points.span);
        let diagnostic = self.report.error(wire.item.span, message);
        if let Some(place) = place {
            diagnostic.label(place, "excluded here");
        }
        diagnostic.help(format!(
            "exclude it for `{}` too; at the top level of the manifest `exclude` concerns every stage that varies over the axes it names",
            node.name
        ));
    }

    /// Says that something else arrives than a cell needs, at both parameters; once a place.
    pub(super) fn report_conflict(&mut self, stage: usize, point: &Point, conflict: &Conflict<'_>) {
        let name = conflict.name;
        let (mut asked, pointer) = match conflict.need {
            Need::AtLeast { pointer, .. } | Need::Equal(_, pointer) => {
                (self.parameter_place(stage, pointer, point), *pointer)
            }
            Need::Alike(_) => (self.port_place(stage, conflict.found.port), ""),
        };
        if !self.told.insert((asked.shown, name)) {
            return;
        }
        let fact = &conflict.found.fact;
        let producer = self.stages[self.cells[conflict.found.producer].stage]
            .name
            .clone();
        let (origin, given) = self.origin(fact);
        let parameter = written(pointer);
        let (message, help) = match conflict.need {
            Need::AtLeast { least, reason, .. } => (
                match reason {
                    Some(reason) => format!(
                        "`{parameter}`: {reason} need {least} {name}, and `{producer}` gives {}",
                        fact.value
                    ),
                    None => format!(
                        "`{parameter}`: {least} {name} are asked for, and `{producer}` gives {}",
                        fact.value
                    ),
                },
                format!(
                    "ask for fewer, or set `{}` of stage `{origin}` to {least} or more",
                    written(fact.pointer)
                ),
            ),
            Need::Equal(wanted, _) => {
                let reference = given.as_ref().and_then(|place| place.used);
                let help = match reference.map(|reference| self.report.sources.slice(reference)) {
                    Some(reference) => format!("write `{parameter} = {reference}`, as stage `{origin}` does"),
                    None => format!(
                        "write `{parameter} = \"{}\"`, or wire what has the {name} `{wanted}` to `{}`",
                        fact.value, conflict.found.port
                    ),
                };
                let message = format!(
                    "`{parameter}` is `{wanted}`, and the {name} of `{producer}` is `{}`",
                    fact.value
                );
                (message, help)
            }
            Need::Alike(port) => {
                let other = conflict.other.as_ref().map(|other| other.fact.value.to_string());
                let message = format!(
                    "the {name} of what arrives at `{}` is `{}`, and at `{port}` it is `{}`",
                    conflict.found.port,
                    fact.value,
                    other.unwrap_or_default()
                );
                (message, format!("wire both to what has the same {name}"))
            }
        };
        let mut beside: Vec<Place> = match conflict.need {
            Need::AtLeast { beside, .. } => beside
                .iter()
                .map(|pointer| self.parameter_place(stage, pointer, point))
                .filter(Place::is_written)
                .collect(),
            _ => Vec::new(),
        };
        let other = conflict
            .other
            .as_ref()
            .and_then(|other| self.origin(&other.fact).1);
        for place in &mut beside {
            if place.is_over(&asked) {
                std::mem::swap(place, &mut asked);
            }
        }
        let diagnostic = self.report.error(asked.shown, message).help(help);
        if let Some(used) = asked.used {
            diagnostic.label(used, "used here");
        }
        for place in beside {
            diagnostic.label(place.shown, "this is part of it");
        }
        if let Some(given) = given {
            diagnostic.label(given.shown, format!("this says {}", fact.value));
        }
        if let (Some(place), Some(other)) = (other, &conflict.other) {
            diagnostic.label(place.shown, format!("this says {}", other.fact.value));
        }
    }

    /// Where the parameter at a JSON pointer is written, at a point of a stage.
    fn parameter_place(&mut self, stage: usize, pointer: &str, point: &Point) -> Place {
        let axes = self.axes;
        let at = |axis: usize| (point[axis], &axes.values(axis)[point[axis]]);
        self.parameters[stage].place_of(pointer, &at, axes, &mut self.report)
    }

    /// Where a stage's port is wired.
    fn port_place(&self, stage: usize, port: &str) -> Place {
        let node = &self.graph.nodes[stage];
        let input = node.decl.inputs.iter().find(|input| input.port.value == port);
        Place::of(input.map_or(node.decl.key, |input| input.span))
    }

    /// The stage whose parameter a fact comes from, and where that is written.
    fn origin(&mut self, fact: &Fact) -> (String, Option<Place>) {
        let cell = &self.cells[fact.origin];
        let stage = &self.stages[cell.stage];
        let mut point: Point = [0; AXES];
        for (name, label) in stage.axes.iter().zip(&cell.labels) {
            if let Some(axis) = self.axes.index(name) {
                point[axis] = self.axes.position(axis, label).unwrap_or_default();
            }
        }
        let name = stage.name.clone();
        let node = self.graph.nodes.iter().position(|node| **node.name == *name);
        let place = node.map(|node| self.parameter_place(node, fact.pointer, &point));
        (name, place)
    }
}

/// A parameter as a person writes it.
fn written(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

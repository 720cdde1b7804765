//! Which artifacts a cell takes: the producer's cells that agree with it on the axes they share, with the axes that
//! only the producer has gathered.

use std::sync::Arc;

use provenir_api::Label;
use provenir_api::port::Arity;

use super::axes::{Axes, AxisSet};
use super::flow::Flow;
use super::graph::Graph;
use super::layout::{Layout, Point, count};

/// Where the cells of an expanded stage are, by their number on the stage's axes.
pub(super) struct Grid {
    /// Position in `Plan::stages`.
    pub(super) stage: usize,
    pub(super) layout: Layout,
    pub(super) cells: Vec<Place>,
}

/// What is at a point.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Cell(u32),
    Excluded,
    /// Its parameters were wrong, which was reported.
    Failed,
}

/// The artifacts that a stage takes.
pub(super) struct Links {
    /// In the kind's order of ports.
    pub(super) ports: Vec<Port>,
    /// For each wire, the producer's axes that the consumer has, with their strides.
    matched: Vec<Vec<(usize, usize)>>,
    /// For each wire.
    pub(super) gathered: Vec<AxisSet>,
}

/// The artifacts that a stage takes at one port, in their order.
pub(super) struct Port {
    pub(super) name: &'static str,
    pub(super) arity: Arity,
    pub(super) links: Vec<Link>,
}

/// The artifact that arrives over one wire for one combination of gathered labels.
pub(super) struct Link {
    pub(super) wire: usize,
    /// Number of the producer's point where every matched axis is at its first value.
    offset: usize,
    pub(super) gathered: Arc<[(Arc<str>, Label)]>,
    pub(super) output: &'static str,
    pub(super) source: Arc<str>,
}

/// The axes that are gathered over a wire of a stage.
pub(super) fn gathered(graph: &Graph<'_>, flow: &Flow, stage: usize, wire: usize) -> AxisSet {
    let producer = graph.nodes[stage].wires[wire].producer;
    let mut gathered = flow.stages[producer].axes.without(flow.stages[stage].axes);
    for (axis, _) in &flow.stages[stage].fixed[wire] {
        gathered.remove(*axis);
    }
    gathered
}

/// The number of artifacts that a stage takes at each of its points.
pub(super) fn width(graph: &Graph<'_>, flow: &Flow, stage: usize, axes: &Axes<'_>) -> u64 {
    // A tainted stage is not expanded.
    if graph.nodes[stage].tainted {
        return 0;
    }
    (0..graph.nodes[stage].wires.len())
        .map(|wire| count(gathered(graph, flow, stage, wire), axes))
        .fold(0, u64::saturating_add)
}

impl Links {
    /// The links of an untainted stage, whose producers are in `grids`.
    pub(super) fn new(
        graph: &Graph<'_>,
        flow: &Flow,
        grids: &[Option<Grid>],
        stage: usize,
        axes: &Axes<'_>,
    ) -> Self {
        let node = &graph.nodes[stage];
        let mut links = Self {
            ports: Vec::new(),
            matched: Vec::new(),
            gathered: Vec::new(),
        };
        let Some(kind) = &node.kind else { return links };
        for (index, wire) in node.wires.iter().enumerate() {
            let Some(grid) = &grids[wire.producer] else {
                continue;
            };
            let fixed = &flow.stages[stage].fixed[index];
            let produced = flow.stages[wire.producer].axes;
            let open = gathered(graph, flow, stage, index);
            links.gathered.push(open);
            links.matched.push(
                produced
                    .without(open)
                    .iter()
                    .filter(|axis| fixed.iter().all(|(other, _)| other != axis))
                    .map(|axis| (axis, grid.layout.stride(axis)))
                    .collect(),
            );
            let base: usize = fixed
                .iter()
                .map(|(axis, value)| value * grid.layout.stride(*axis))
                .sum();
            // By name, which is not the manifest's order of axes.
            let mut by_name: Vec<usize> = open.iter().collect();
            by_name.sort_by_key(|axis| axes.name(*axis));
            let output = graph.nodes[wire.producer]
                .kind
                .as_ref()
                .map_or("", |produced| produced.outputs[wire.output].name);
            let combinations = Layout::new(open, axes);
            let found = combinations.points().map(|point| Link {
                wire: index,
                offset: base + grid.layout.number(&point),
                gathered: by_name
                    .iter()
                    .map(|axis| {
                        let label = axes.values(*axis)[point[*axis]].label.clone();
                        (Arc::clone(axes.name(*axis)), label)
                    })
                    .collect(),
                output,
                source: Arc::clone(&wire.source),
            });
            let port = &kind.inputs[wire.port];
            match links.ports.last_mut().filter(|last| last.name == port.name) {
                Some(last) => last.links.extend(found),
                None => links.ports.push(Port {
                    name: port.name,
                    arity: port.arity,
                    links: found.collect(),
                }),
            }
        }
        for port in &mut links.ports {
            port.links
                .sort_by(|left, right| (&left.gathered, &left.source).cmp(&(&right.gathered, &right.source)));
        }
        links
    }

    /// What a wire contributes to the producer's number at a point of the consumer.
    pub(super) fn base(&self, wire: usize, point: &Point) -> usize {
        self.matched[wire]
            .iter()
            .map(|(axis, stride)| point[*axis] * stride)
            .sum()
    }
}

impl Link {
    /// What the producer has there; `base` is [`Links::base`] of its wire.
    pub(super) fn place(&self, grid: &Grid, base: usize) -> Place {
        grid.cells[self.offset + base]
    }
}

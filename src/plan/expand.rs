//! From stages to cells.
//!
//! * `refusals`: what a plan is refused for meanwhile.

mod refusals;

use std::collections::BTreeSet;
use std::sync::Arc;

use camino::Utf8Path;
use provenir_api::port::TableSchema;
use provenir_api::{Label, Resolved};
use serde_json::Value;

use super::axes::{Axes, AxisSet, Points};
use super::facts::Ledger;
use super::flow::Flow;
use super::graph::{Graph, KindInfo};
use super::layout::{Layout, Point};
use super::links::{Grid, Links, Place};
use super::model::{Cell, Input, Plan, Publish, Stage, StageInput, point as shown};
use super::parameters::StageParameters;
use super::publish::{Paths, Pattern, patterns};
use super::schemas::arriving;
use super::sources::{RememberedSources, SourceFiles, normal};
use crate::manifest::{Diagnostics, Manifest, Node, Read, Report, STAGE_KEY, Span, clip, located};
use crate::registry::Registry;

/// Expands a manifest, or says everything that is wrong with it.
pub(crate) fn expand(
    read: Read,
    registry: &Registry,
    remembered: &RememberedSources,
    mut report: Report,
) -> Result<Plan, Diagnostics> {
    let manifest = &read.manifest;
    let folder = read.path.parent().unwrap_or(Utf8Path::new("/"));
    let axes = Axes::new(manifest, &mut report);
    let mut graph = Graph::new(manifest, registry, &mut report);
    let parameters: Vec<StageParameters<'_>> = graph
        .nodes
        .iter()
        .map(|node| StageParameters::new(node.decl, &axes, &mut report))
        .collect();
    let flow = Flow::new(&mut graph, &parameters, manifest, &axes, &mut report);
    let kept = graph.kept(&manifest.only, &mut report);
    let mut expansion = Expansion {
        manifest,
        axes: &axes,
        graph: &graph,
        flow: &flow,
        parameters,
        files: SourceFiles::new(folder, remembered),
        paths: Paths::default(),
        grids: (0..graph.nodes.len()).map(|_| None).collect(),
        stages: Vec::new(),
        cells: Vec::new(),
        ledger: Ledger::default(),
        told: BTreeSet::new(),
        uncertain: vec![false; graph.nodes.len()],
        report,
    };
    if expansion.is_bounded(&kept) {
        for stage in &graph.order {
            expansion.visit(*stage, kept[*stage]);
        }
    }
    expansion.check_paths(folder);
    let Expansion {
        stages,
        cells,
        report,
        parameters,
        files,
        ..
    } = expansion;
    if report.has_errors() {
        return Err(report.finish());
    }
    Ok(Plan {
        pipeline: manifest.name.clone(),
        folder: folder.to_owned(),
        platform: None,
        resolved: recorded(&read.resolved, &graph, &parameters, &axes),
        stages,
        cells,
        gone: files.gone(),
        warnings: report.finish(),
        manifest: read.path,
        bases: read.bases,
    })
}

/// The manifest as it is recorded: `over` names the axes of values that hold nowhere and were left out.
fn recorded(
    resolved: &Node,
    graph: &Graph<'_>,
    parameters: &[StageParameters<'_>],
    axes: &Axes<'_>,
) -> Value {
    let mut value = resolved.to_value();
    for (node, parameters) in graph.nodes.iter().zip(parameters) {
        let named = node.decl.over.iter().map(|name| name.value.as_str());
        let mut over: Vec<&str> = named.collect();
        let idle = parameters.idle.iter().map(|axis| &**axes.name(axis));
        let more: Vec<&str> = idle.filter(|axis| !over.contains(axis)).collect();
        if !more.is_empty() {
            over.extend(more);
            value["stages"][&**node.name]["over"] = over.into();
        }
    }
    value
}

struct Expansion<'a, 'm> {
    manifest: &'m Manifest,
    axes: &'a Axes<'m>,
    graph: &'a Graph<'m>,
    flow: &'a Flow,
    parameters: Vec<StageParameters<'m>>,
    files: SourceFiles<'a>,
    paths: Paths,
    /// Where the cells of each expanded stage are.
    grids: Vec<Option<Grid>>,
    stages: Vec<Stage>,
    cells: Vec<Cell>,
    ledger: Ledger,
    /// Places at which a conflict of that name was reported.
    told: BTreeSet<(Span, &'static str)>,
    /// Stages that have a problem, or a producer that has: what arrives at them is uncertain.
    uncertain: Vec<bool>,
    report: Report,
}

impl Expansion<'_, '_> {
    /// Expands a stage, or checks what can be checked of it.
    fn visit(&mut self, stage: usize, kept: bool) {
        let node = &self.graph.nodes[stage];
        let before = self.report.errors();
        let mut producers = self.graph.producers[stage].iter();
        self.uncertain[stage] = node.tainted || producers.any(|(producer, _)| self.uncertain[*producer]);
        if let (Some(kind), true, false) = (&node.kind, kept, node.tainted) {
            self.stage(stage, kind);
        } else {
            patterns(node, None, self.axes, &mut self.report);
            let lacks_params = node.decl.lacks_params || self.has_stray_parameters(stage);
            if let (Some(kind), true, false) = (&node.kind, kept, lacks_params) {
                self.check_parameters(stage, kind);
            }
        }
        if let Some(kind) = &node.kind {
            self.parameters[stage].check_unused(&*kind.kind, self.axes, &mut self.report);
        }
        self.uncertain[stage] |= self.report.errors() > before;
    }

    /// Whether parameters stand beside `params`; says of each where it belongs.
    fn has_stray_parameters(&mut self, stage: usize) -> bool {
        let node = &self.graph.nodes[stage];
        let properties = node
            .kind
            .as_ref()
            .and_then(|kind| kind.kind.schema().get("properties"));
        let mut found = false;
        for stray in &node.decl.strays {
            if properties.is_some_and(|known| known.get(&stray.value).is_some()) {
                found = true;
                let message = format!("`{}` is no {STAGE_KEY}", clip(&stray.value));
                let written = self.report.sources.slice(stray.span).to_owned();
                self.report.error(stray.span, message).help = Some(format!(
                    "it is a parameter: `params = {{ {written} = … }}`, or `params.{written} = …`"
                ));
            }
        }
        found
    }

    /// Checks the parameters of a stage whose axes are uncertain, at the points of those that its parameters name.
    fn check_parameters(&mut self, stage: usize, kind: &KindInfo) {
        let named = self.parameters[stage].axes;
        let layout = Layout::new(named, self.axes);
        let excluded = self.flow.exclusions(stage, named);
        for point in layout.points() {
            if !is_excluded(&excluded, &point) {
                self.resolve(stage, kind, None, &point);
            }
        }
    }

    fn resolve(
        &mut self,
        stage: usize,
        kind: &KindInfo,
        wired: Option<&[(&str, TableSchema)]>,
        point: &Point,
    ) -> Option<Arc<Resolved>> {
        let axes = self.axes;
        let at = |axis: usize| (point[axis], &axes.values(axis)[point[axis]]);
        self.parameters[stage].resolve(kind, wired, &mut self.files, &at, axes, &mut self.report)
    }

    fn stage(&mut self, stage: usize, kind: &KindInfo) {
        let node = &self.graph.nodes[stage];
        let own = self.flow.stages[stage].axes;
        let before = self.report.errors();
        let links = Links::new(self.graph, self.flow, &self.grids, stage, self.axes);
        let wired = arriving(self.graph, stage, &links.gathered, self.axes, &mut self.report);
        let certain = self.report.errors() == before && !self.uncertain[stage];
        let wired = certain.then_some(wired.as_slice());
        let mut patterns = patterns(node, Some(own), self.axes, &mut self.report);
        let named = Layout::new(self.parameters[stage].axes, self.axes);
        let mut resolved: Vec<Option<Option<Arc<Resolved>>>> = vec![None; named.len];
        let excluded = self.flow.exclusions(stage, own);
        let layout = Layout::new(own, self.axes);
        let mut places = Vec::with_capacity(layout.len);
        let mut lacking = Lacking::new(&links);
        let first = self.cells.len();
        for point in layout.points() {
            if is_excluded(&excluded, &point) {
                places.push(Place::Excluded);
                continue;
            }
            let number = named.number(&point);
            if resolved[number].is_none() {
                resolved[number] = Some(self.resolve(stage, kind, wired, &point));
            }
            let inputs = self.inputs(stage, &links, &point, &mut lacking);
            let publish = self.copies(stage, &mut patterns, &point);
            let Some(parameters) = resolved[number].clone().flatten() else {
                places.push(Place::Failed);
                continue;
            };
            for copy in &publish {
                self.check_end(stage, &parameters.facts, copy, &mut patterns, &point);
            }
            places.push(u32::try_from(self.cells.len()).map_or(Place::Failed, Place::Cell));
            for conflict in self.ledger.add(&parameters, &inputs) {
                self.report_conflict(stage, &point, &conflict);
            }
            self.cells.push(Cell {
                stage: self.stages.len(),
                labels: own
                    .iter()
                    .map(|axis| self.axes.values(axis)[point[axis]].label.clone())
                    .collect(),
                parameters,
                inputs,
                publish,
            });
        }
        if places.iter().all(|place| matches!(place, Place::Excluded)) {
            self.report.warning(
                node.decl.key,
                format!("every cell of stage `{}` is excluded", node.name),
            );
        }
        self.grids[stage] = Some(Grid {
            stage: self.stages.len(),
            layout,
            cells: places,
        });
        self.stages.push(Stage {
            name: node.name.to_string(),
            place: Some(self.report.sources.line(node.decl.key)),
            kind: Arc::clone(&kind.kind),
            outputs: Arc::clone(&kind.outputs),
            axes: own.iter().map(|axis| Arc::clone(self.axes.name(axis))).collect(),
            inputs: self.stage_inputs(stage, kind, &links),
            attempts: node.decl.attempts,
            volatile: self.is_volatile(stage),
            cells: first..self.cells.len(),
        });
    }

    /// The artifacts of a cell. A producer that is excluded is reported, once a wire.
    fn inputs(&mut self, stage: usize, links: &Links, point: &Point, lacking: &mut Lacking) -> Vec<Input> {
        let node = &self.graph.nodes[stage];
        let mut inputs = Vec::with_capacity(links.ports.iter().map(|port| port.links.len()).sum());
        lacking.bases.clear();
        lacking
            .bases
            .extend((0..node.wires.len()).map(|wire| links.base(wire, point)));
        for (index, port) in links.ports.iter().enumerate() {
            let mut any = false;
            for link in &port.links {
                let Some(grid) = &self.grids[node.wires[link.wire].producer] else {
                    continue;
                };
                match link.place(grid, lacking.bases[link.wire]) {
                    Place::Failed => any = true,
                    Place::Excluded => {}
                    Place::Cell(producer) => {
                        any = true;
                        inputs.push(Input {
                            port: port.name,
                            producer: producer as usize,
                            output: link.output,
                            gathered: Arc::clone(&link.gathered),
                            source: Arc::clone(&link.source),
                        });
                    }
                }
            }
            if !any && !std::mem::replace(&mut lacking.reported[index], true) {
                self.report_lacking(stage, port, point);
            }
        }
        inputs
    }

    /// The named copies of a cell.
    fn copies(&mut self, stage: usize, patterns: &mut [Pattern], point: &Point) -> Vec<Publish> {
        let axes = self.axes;
        let name: &str = self.graph.nodes[stage].name;
        let at = |axis: usize| &axes.values(axis)[point[axis]];
        let own = self.flow.stages[stage].axes;
        let cell = || cell_name(name, own, axes, point);
        patterns
            .iter_mut()
            .filter_map(|pattern| {
                let names = (self.manifest.name.as_str(), name);
                pattern.copy(names, cell, &at, axes, &mut self.paths, &mut self.report)
            })
            .collect()
    }

    fn cell_name(&self, stage: usize, point: &Point) -> String {
        cell_name(
            self.graph.nodes[stage].name,
            self.flow.stages[stage].axes,
            self.axes,
            point,
        )
    }

    fn stage_inputs(&self, stage: usize, kind: &KindInfo, links: &Links) -> Vec<StageInput> {
        let node = &self.graph.nodes[stage];
        let mut inputs = Vec::new();
        for (index, wire) in node.wires.iter().enumerate() {
            let producer = &self.graph.nodes[wire.producer];
            let (Some(grid), Some(produced)) = (&self.grids[wire.producer], &producer.kind) else {
                continue;
            };
            let mut gathered: Vec<Arc<str>> = links.gathered[index]
                .iter()
                .map(|axis| Arc::clone(self.axes.name(axis)))
                .collect();
            gathered.sort();
            inputs.push(StageInput {
                port: kind.inputs[wire.port].name,
                producer: grid.stage,
                output: produced.outputs[wire.output].name,
                gathered,
                at: self.flow.stages[stage].fixed[index]
                    .iter()
                    .map(|(axis, value)| {
                        let label = self.axes.values(*axis)[*value].label.clone();
                        (Arc::clone(self.axes.name(*axis)), label)
                    })
                    .collect(),
                source: Arc::clone(&wire.source),
            });
        }
        inputs
    }

    fn is_volatile(&self, stage: usize) -> bool {
        self.graph.nodes[stage].wires.iter().any(|wire| {
            let port = self.graph.nodes[wire.producer]
                .kind
                .as_ref()
                .is_some_and(|kind| kind.outputs[wire.output].volatile);
            let upstream = self.grids[wire.producer]
                .as_ref()
                .is_some_and(|grid| self.stages[grid.stage].volatile);
            port || upstream
        })
    }

    /// Checks that no named copy overwrites what the pipeline reads.
    fn check_paths(&mut self, folder: &Utf8Path) {
        let manifests: Vec<_> = self
            .report
            .sources
            .files()
            .filter_map(|file| Some(normal(&located(file).ok()?)))
            .collect();
        let inputs = self.files.paths().chain(manifests);
        self.paths.check(&normal(folder), inputs, &mut self.report);
    }
}

/// What was already said of inputs that lack, so that it is said once.
struct Lacking {
    /// By port.
    reported: Vec<bool>,
    /// Room for the base of every wire.
    bases: Vec<usize>,
}

impl Lacking {
    fn new(links: &Links) -> Self {
        Self {
            reported: vec![false; links.ports.len()],
            bases: Vec::new(),
        }
    }
}

fn is_excluded(excluded: &[&Points], point: &Point) -> bool {
    excluded.iter().any(|points| points.contain(|axis| point[axis]))
}

fn cell_name(stage: &str, own: AxisSet, axes: &Axes<'_>, point: &Point) -> String {
    if own.is_empty() {
        return stage.to_owned();
    }
    let labels: Vec<(&Arc<str>, &Label)> = own
        .iter()
        .map(|axis| (axes.name(axis), &axes.values(axis)[point[axis]].label))
        .collect();
    format!("{stage}[{}]", shown(labels.into_iter()))
}

//! Which axes each stage varies over, and which cells are excluded.
//!
//! A stage varies over the axes of the inputs that take one artifact (without those fixed by `at`), over those that its
//! own parameters and overrides name, and over those in `over`.

use provenir_api::port::Arity;

use super::axes::{Axes, AxisSet, Points};
use super::graph::{Graph, Wire};
use super::parameters::StageParameters;
use crate::manifest::{Manifest, Report};

/// What is known of a stage once axes have flowed.
pub(super) struct StageFlow {
    /// What it varies over; uncertain where the stage is tainted.
    pub(super) axes: AxisSet,
    /// For each wire, the value (by position) of each axis that `at` fixes.
    pub(super) fixed: Vec<Vec<(usize, usize)>>,
    /// Its own excluded points.
    exclude: Vec<Points>,
}

/// All stages, and the points excluded everywhere.
pub(super) struct Flow {
    pub(super) stages: Vec<StageFlow>,
    exclude: Vec<Points>,
}

impl Flow {
    /// `parameters` are those of the graph's stages.
    pub(super) fn new(
        graph: &mut Graph<'_>,
        parameters: &[StageParameters<'_>],
        manifest: &Manifest,
        axes: &Axes<'_>,
        report: &mut Report,
    ) -> Self {
        let mut stages = Vec::with_capacity(graph.nodes.len());
        for (node, parameters) in graph.nodes.iter_mut().zip(parameters) {
            let before = report.errors();
            let mut own = parameters.axes;
            for name in &node.decl.over {
                if let Some(axis) = axes.find(&name.value, name.span, report) {
                    own.insert(axis);
                }
            }
            node.tainted |= parameters.tainted || report.errors() > before;
            stages.push(StageFlow {
                axes: own,
                fixed: Vec::new(),
                exclude: Vec::new(),
            });
        }
        let mut flow = Self {
            stages,
            exclude: manifest
                .exclude
                .iter()
                .filter_map(|selector| axes.points(selector, report))
                .collect(),
        };
        for selector in &manifest.dormant {
            axes.points(selector, report);
        }
        for index in 0..graph.order.len() {
            let stage = graph.order[index];
            flow.visit(stage, graph, axes, report);
        }
        flow.warn(axes, report);
        flow
    }

    /// Lets the axes of a stage's producers flow into it.
    fn visit(&mut self, stage: usize, graph: &mut Graph<'_>, axes: &Axes<'_>, report: &mut Report) {
        let before = report.errors();
        let node = &graph.nodes[stage];
        let mut tainted = node.tainted;
        // Where the producer's kind is unknown there is no wire.
        let mut producers = graph.producers[stage].iter();
        tainted |= producers.any(|(producer, _)| graph.nodes[*producer].tainted);
        let mut own = self.stages[stage].axes;
        let mut fixed = Vec::with_capacity(node.wires.len());
        for wire in &node.wires {
            let uncertain = graph.nodes[wire.producer].tainted;
            tainted |= uncertain;
            let produced = self.stages[wire.producer].axes;
            let slice = slice(wire, graph, produced, uncertain, axes, report);
            let arity = node.kind.as_ref().map(|kind| kind.inputs[wire.port].arity);
            if arity == Some(Arity::One) {
                let mut flowing = produced;
                for (axis, _) in &slice {
                    flowing.remove(*axis);
                }
                own = own.union(flowing);
            }
            fixed.push(slice);
        }
        let mut exclude = Vec::new();
        for selector in &node.decl.exclude {
            let Some(points) = axes.points(selector, report) else {
                continue;
            };
            if let Some(axis) = points.axes.without(own).iter().next()
                && !tainted
            {
                let axis = axes.name(axis);
                report
                    .error(
                        points.span,
                        format!(
                            "stage `{}` does not vary over `{axis}`, so that this excludes nothing",
                            node.name
                        ),
                    )
                    .help("exclude it where it varies, or at the top level of the manifest");
                continue;
            }
            exclude.push(points);
        }
        // An axis without values was reported; nothing can be said of what varies over it.
        tainted |= own.iter().any(|axis| axes.values(axis).is_empty());
        let flow = &mut self.stages[stage];
        flow.axes = own;
        flow.fixed = fixed;
        flow.exclude = exclude;
        graph.nodes[stage].tainted |= tainted || report.errors() > before;
    }

    /// Warns of axes and exclusions that change nothing.
    fn warn(&self, axes: &Axes<'_>, report: &mut Report) {
        if report.has_errors() {
            return;
        }
        let used = self
            .stages
            .iter()
            .fold(AxisSet::default(), |used, stage| used.union(stage.axes));
        for axis in (0..axes.len()).filter(|axis| !used.contains(*axis)) {
            let name = axes.name(axis);
            report
                .warning(axes.key(axis), format!("no stage varies over the axis `{name}`"))
                .help(format!(
                    "name it in a parameter as `${{{name}}}`, or in a stage's `over`"
                ));
        }
        for points in &self.exclude {
            if !self.stages.iter().any(|stage| points.axes.is_subset(stage.axes)) {
                report.warning(
                    points.span,
                    "no stage varies over all of these axes, so that this excludes nothing",
                );
            }
        }
    }

    /// The exclusions that concern a stage that varies over `axes`.
    pub(super) fn exclusions(&self, stage: usize, axes: AxisSet) -> Vec<&Points> {
        self.stages[stage]
            .exclude
            .iter()
            .chain(&self.exclude)
            .filter(|points| points.axes.is_subset(axes))
            .collect()
    }
}

/// The axes that `at` fixes, with the position of the value.
fn slice(
    wire: &Wire<'_>,
    graph: &Graph<'_>,
    produced: AxisSet,
    uncertain: bool,
    axes: &Axes<'_>,
    report: &mut Report,
) -> Vec<(usize, usize)> {
    let mut fixed = Vec::new();
    for (name, label) in &wire.item.at {
        let Some(axis) = axes.find(&name.value, name.span, report) else {
            continue;
        };
        if !produced.contains(axis) {
            if !uncertain {
                let producer = graph.nodes[wire.producer].name;
                let varies: Vec<&str> = produced.iter().map(|axis| &**axes.name(axis)).collect();
                let help = if varies.is_empty() {
                    "it varies over no axis".to_owned()
                } else {
                    format!("it varies over {}", provenir_api::schema::list(varies))
                };
                report
                    .error(
                        name.span,
                        format!("stage `{producer}` does not vary over `{}`", name.value),
                    )
                    .help(help);
            }
            continue;
        }
        match axes.position(axis, &label.value) {
            Some(value) => fixed.push((axis, value)),
            None if axes.is_inactive(axis, &label.value) => {
                let name = axes.name(axis);
                report
                    .error(
                        label.span,
                        format!("axis `{name}` has no value `{}` in this run", label.value),
                    )
                    .label(axes.key(axis), "its values are replaced here")
                    .help(format!("keep `{}` among the values", label.value));
            }
            None => axes.no_such_value(axis, label, report),
        }
    }
    fixed
}

//! Privileged information, which a study has and no learner could have, does not reach a learner: not over a wire, and not by
//! way of stages in between. Whatever is made from it is privileged, too.

use super::graph::{Graph, KindInfo};
use crate::manifest::{InputItem, Report, shortened};

/// A stage, by position, and one of its ports, by position in its kind.
type End = (usize, usize);

impl KindInfo {
    /// Whether an output is privileged whatever the kind was given.
    pub(super) fn is_privileged(&self, output: usize) -> bool {
        self.kind
            .privileged_outputs()
            .contains(&self.outputs[output].name)
    }

    /// Whether an input takes privileged information.
    pub(super) fn takes_privileged(&self, input: usize) -> bool {
        self.kind.privileged_inputs().contains(&self.inputs[input].name)
    }
}

impl Graph<'_> {
    /// Reports inputs that what is made from privileged information is wired to, and that do not take it. Outputs that are
    /// themselves privileged were looked at when they were wired.
    pub(super) fn check_privilege(&mut self, report: &mut Report) {
        // The privileged output that each stage was given, if any.
        let mut given: Vec<Option<End>> = vec![None; self.nodes.len()];
        for stage in self.order.clone() {
            let node = &self.nodes[stage];
            let Some(kind) = &node.kind else { continue };
            let mut own = None;
            let mut refused = false;
            for wire in &node.wires {
                let Some(produced) = &self.nodes[wire.producer].kind else {
                    continue;
                };
                let origin = if produced.is_privileged(wire.output) {
                    Some((wire.producer, wire.output))
                } else {
                    given[wire.producer]
                };
                let Some(origin) = origin else { continue };
                if kind.takes_privileged(wire.port) {
                    own.get_or_insert(origin);
                } else if !produced.is_privileged(wire.output) {
                    let from = (wire.producer, wire.output);
                    self.report_privilege((stage, wire.port), from, origin, wire.item, report);
                    refused = true;
                }
            }
            given[stage] = own;
            self.nodes[stage].tainted |= refused;
        }
    }

    /// Reports that an input does not take an output that is privileged, as `origin` is.
    pub(super) fn report_privilege(
        &self,
        to: End,
        from: End,
        origin: End,
        item: &InputItem,
        report: &mut Report,
    ) {
        let output = |(stage, port): End| {
            let node = &self.nodes[stage];
            let port = node.kind.as_ref().map_or("", |kind| kind.outputs[port].name);
            format!("`{}.{port}`", node.name)
        };
        let (stage, port) = to;
        let node = &self.nodes[stage];
        let Some(kind) = &node.kind else { return };
        let what = if from == origin {
            format!("{} is privileged", output(from))
        } else {
            format!(
                "{} is made from {}, which is privileged",
                output(from),
                output(origin)
            )
        };
        let takers = shortened(self.takers.iter().copied());
        report
            .error(
                item.span,
                format!(
                    "{what}: the input `{}` of `{}` must not see it",
                    kind.inputs[port].name, node.name
                ),
            )
            .help(format!("no learner could know it; kinds that may: {takers}"));
    }
}

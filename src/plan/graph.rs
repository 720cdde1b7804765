//! What the names in a manifest refer to: kinds, producers and their ports; and the order of the stages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use std::sync::Arc;

use provenir_api::port::{InputPort, OutputPort, Ports};
use provenir_api::schema::nearest;
use provenir_api::{AnyKind, Problem};
use serde_json::Value;

use crate::manifest::{InputItem, Manifest, Report, Span, Spanned, StageDecl, clip, is_name};
use crate::registry::Registry;

/// A kind with its ports at hand; where its stages declare them, with those of one stage.
pub(super) struct KindInfo {
    pub(super) kind: Arc<dyn AnyKind>,
    pub(super) inputs: Vec<InputPort>,
    pub(super) outputs: Arc<[OutputPort]>,
}

impl KindInfo {
    fn new(kind: &Arc<dyn AnyKind>, ports: Ports) -> Self {
        Self {
            kind: Arc::clone(kind),
            inputs: ports.inputs,
            outputs: ports.outputs.into(),
        }
    }

    /// With the ports that a stage declares.
    fn of_stage(kind: &Arc<dyn AnyKind>, decl: &StageDecl) -> Self {
        let wired: Vec<&str> = decl
            .inputs
            .iter()
            .map(|input| input.port.value.as_str())
            .collect();
        Self::new(kind, kind.ports(&decl.params_everywhere(), &wired))
    }

    /// What is wrong where the parameters of a cell, which passed every check, declare other ports than those of its stage do
    /// as they are written.
    pub(super) fn other_ports(&self, full: &Value) -> Option<Problem> {
        if !self.kind.declares_ports() {
            return None;
        }
        let wired: Vec<&str> = self.inputs.iter().map(|port| port.name).collect();
        let ports = self.kind.ports(full, &wired);
        if ports.inputs == self.inputs && *ports.outputs == *self.outputs {
            return None;
        }
        let pointer = if *ports.outputs == *self.outputs {
            "/inputs"
        } else {
            "/outputs"
        };
        let message = "all cells of a stage have the same inputs and outputs, and here an axis or an override changes them";
        Some(Problem::new(pointer, message).help("make a stage of its own of what gives something else"))
    }

    /// The output that is meant where the stage alone is named, by position; nothing where there are several to choose from.
    pub(super) fn only_output(&self) -> Option<usize> {
        let several = self.kind.declares_ports() && self.outputs.len() > 1;
        (!several && !self.outputs.is_empty()).then_some(0)
    }
}

/// A stage whose names were looked up.
pub(super) struct Node<'m> {
    pub(super) name: &'m Arc<str>,
    pub(super) decl: &'m StageDecl,
    /// Absent where the manifest names no known kind.
    pub(super) kind: Option<Rc<KindInfo>>,
    /// Whether the manifest misspells it, so that it is a guess.
    pub(super) is_guess: bool,
    /// In the kind's order of ports.
    pub(super) wires: Vec<Wire<'m>>,
    /// Whether a problem with the stage or an ancestor leaves its axes uncertain: what follows from them is not
    /// checked, lest one mistake be reported as many.
    pub(super) tainted: bool,
}

/// A producer at a port.
pub(super) struct Wire<'m> {
    /// Position in the kind's inputs.
    pub(super) port: usize,
    /// Position of the producing stage.
    pub(super) producer: usize,
    /// Position in the producing kind's outputs.
    pub(super) output: usize,
    pub(super) item: &'m InputItem,
    /// The name of the source that the consumer sees.
    pub(super) source: Arc<str>,
}

/// The stages of a manifest, in its order.
pub(super) struct Graph<'m> {
    pub(super) nodes: Vec<Node<'m>>,
    /// Positions, producers before consumers; stages in a cycle, and what lies downstream of them, come last.
    pub(super) order: Vec<usize>,
    /// Kinds that take privileged information.
    pub(super) takers: Vec<&'static str>,
    /// Producers named by each stage, also where something else about the input is wrong.
    pub(super) producers: Vec<Vec<(usize, Span)>>,
}

impl<'m> Graph<'m> {
    pub(super) fn new(manifest: &'m Manifest, registry: &Registry, report: &mut Report) -> Self {
        let kinds: BTreeMap<&str, Rc<KindInfo>> = registry
            .kinds()
            .map(|kind| {
                let ports = Ports {
                    inputs: kind.inputs(),
                    outputs: kind.outputs(),
                };
                (kind.name(), Rc::new(KindInfo::new(kind, ports)))
            })
            .collect();
        let mut nodes: Vec<Node<'m>> = Vec::with_capacity(manifest.stages.len());
        for (name, decl) in &manifest.stages {
            let mut is_guess = false;
            let kind = decl.kind.as_ref().and_then(|kind| {
                let of_stage = |info: &Rc<KindInfo>| {
                    if info.kind.declares_ports() {
                        Rc::new(KindInfo::of_stage(&info.kind, decl))
                    } else {
                        Rc::clone(info)
                    }
                };
                if let Some(found) = kinds.get(kind.value.as_str()) {
                    return Some(of_stage(found));
                }
                let names = kinds.keys().copied();
                let help = report.suggest(&kind.value, names.clone());
                // What else is wrong with the stage is said by the kind that was meant, where what is written bears that out.
                let meant = help.as_ref().and_then(|_| nearest(&kind.value, names));
                let meant = meant.and_then(|meant| kinds.get(meant)).map(of_stage);
                let meant = meant.filter(|meant| bears_out(decl, meant));
                is_guess = meant.is_some();
                let diagnostic =
                    report.unknown(kind.span, format!("there is no kind `{}`", clip(&kind.value)));
                diagnostic.is_root |= is_guess;
                diagnostic.help.clone_from(&help);
                meant
            });
            nodes.push(Node {
                name,
                decl,
                tainted: decl.broken || kind.is_none(),
                kind,
                is_guess,
                wires: Vec::new(),
            });
        }
        let takers = registry
            .kinds()
            .filter(|kind| !kind.privileged_inputs().is_empty());
        let mut graph = Self {
            takers: takers.map(|kind| kind.name()).collect(),
            producers: vec![Vec::new(); nodes.len()],
            nodes,
            order: Vec::new(),
        };
        let by_name: BTreeMap<&str, usize> = graph
            .nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (&**node.name, index))
            .collect();
        for stage in 0..graph.nodes.len() {
            graph.wire(stage, &by_name, report);
        }
        graph.sort(report);
        graph.check_privilege(report);
        graph
    }

    /// Orders the stages; reports cycles.
    fn sort(&mut self, report: &mut Report) {
        let count = self.nodes.len();
        let mut waiting: Vec<usize> = self.producers.iter().map(Vec::len).collect();
        let mut consumers = vec![Vec::new(); count];
        for (consumer, producers) in self.producers.iter().enumerate() {
            for (producer, _) in producers {
                consumers[*producer].push(consumer);
            }
        }
        let mut ready: BinaryHeap<Reverse<usize>> = (0..count)
            .filter(|stage| waiting[*stage] == 0)
            .map(Reverse)
            .collect();
        while let Some(Reverse(stage)) = ready.pop() {
            self.order.push(stage);
            for consumer in &consumers[stage] {
                waiting[*consumer] -= 1;
                if waiting[*consumer] == 0 {
                    ready.push(Reverse(*consumer));
                }
            }
        }
        if self.order.len() < count {
            self.report_cycles(&waiting, report);
            for (stage, waiting) in waiting.iter().enumerate() {
                if *waiting > 0 {
                    self.nodes[stage].tainted = true;
                    self.order.push(stage);
                }
            }
        }
    }

    /// Reports one cycle through each group of stages that wait for one another.
    fn report_cycles(&self, waiting: &[usize], report: &mut Report) {
        let mut seen = vec![false; self.nodes.len()];
        for start in 0..self.nodes.len() {
            // From a stage that waits, one can always go on to a producer that waits, until one comes round.
            let mut path: Vec<(usize, Span)> = Vec::new();
            let mut positions = BTreeMap::new();
            let mut stage = start;
            while waiting[stage] > 0 && !seen[stage] {
                seen[stage] = true;
                positions.insert(stage, path.len());
                let Some(next) = self.producers[stage]
                    .iter()
                    .find(|(producer, _)| waiting[*producer] > 0)
                else {
                    break;
                };
                path.push((stage, next.1));
                stage = next.0;
            }
            let Some(first) = positions.get(&stage).copied().filter(|first| *first < path.len()) else {
                continue;
            };
            let cycle = &path[first..];
            // From producer to consumer, as the data would flow, beginning with the stage declared first.
            let mut stages: Vec<usize> = cycle.iter().rev().map(|(stage, _)| *stage).collect();
            let least = stages.iter().enumerate().min_by_key(|(_, stage)| **stage);
            let least = least.map_or(0, |(index, _)| index);
            stages.rotate_left(least);
            let names: Vec<&str> = stages
                .iter()
                .chain(stages.first())
                .map(|stage| &**self.nodes[*stage].name)
                .collect();
            let place = cycle
                .iter()
                .find(|(stage, _)| *stage == stages[0])
                .map_or(cycle[0].1, |(_, span)| *span);
            let diagnostic = report.error(
                place,
                format!("stages feed each other in a cycle: {}", names.join(" → ")),
            );
            for (_, span) in cycle {
                diagnostic.label(*span, "part of the cycle");
            }
        }
    }

    /// The stages to keep: those named and their ancestors, or all.
    pub(super) fn kept(&self, only: &[Spanned<String>], report: &mut Report) -> Vec<bool> {
        if only.is_empty() {
            return vec![true; self.nodes.len()];
        }
        let by_name: BTreeMap<&str, usize> = self
            .nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (&**node.name, index))
            .collect();
        let mut kept = vec![false; self.nodes.len()];
        let mut stack: Vec<usize> = only
            .iter()
            .filter_map(|name| find_stage(name, &by_name, report))
            .collect();
        while let Some(stage) = stack.pop() {
            if !std::mem::replace(&mut kept[stage], true) {
                stack.extend(self.producers[stage].iter().map(|(producer, _)| *producer));
            }
        }
        kept
    }
}

/// Whether what a stage says is what a kind takes: every name that is written, and all that must be there. Only then a kind
/// whose name is misspelt is taken for this one, so that nothing is reported that comes of a wrong guess.
fn bears_out(decl: &StageDecl, kind: &KindInfo) -> bool {
    let wired = |name: &str| decl.inputs.iter().any(|input| input.port.value == name);
    let takes = |name: &str| kind.inputs.iter().any(|port| port.name == name);
    let schema = kind.kind.schema();
    let known = schema.get("properties").and_then(Value::as_object);
    let known = || {
        known
            .into_iter()
            .flat_map(serde_json::Map::keys)
            .map(String::as_str)
    };
    let params = decl.params_everywhere();
    let written = || {
        let fields = params.as_object().into_iter();
        fields.flat_map(serde_json::Map::keys).map(String::as_str)
    };
    let is_given = |name: &str| written().any(|key| nearest(key, known()) == Some(name));
    let required = schema.get("required").and_then(Value::as_array);
    let mut required = required.into_iter().flatten().filter_map(Value::as_str);
    decl.inputs.iter().all(|input| takes(&input.port.value))
        && kind.inputs.iter().all(|port| !port.required || wired(port.name))
        && written().all(|key| nearest(key, known()).is_some())
        && required.all(is_given)
}

/// The stage of that name; reports a name that is none. A stage whose own name was reported is found by what it was
/// probably meant to be.
pub(super) fn find_stage(
    name: &Spanned<String>,
    by_name: &BTreeMap<&str, usize>,
    report: &mut Report,
) -> Option<usize> {
    let found = by_name.get(name.value.as_str()).copied();
    found.or_else(|| {
        let misnamed = by_name.keys().copied().filter(|known| !is_name(known));
        if let Some(near) = nearest(&name.value, misnamed) {
            report.follows();
            return by_name.get(near).copied();
        }
        let help = report.suggest(&name.value, by_name.keys().copied());
        let message = if name.value.is_empty() {
            "an empty text names no stage".to_owned()
        } else {
            format!("there is no stage `{}`", clip(&name.value))
        };
        report.unknown(name.span, message).help.clone_from(&help);
        None
    })
}

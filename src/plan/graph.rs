//! What the names in a manifest refer to: kinds, producers and their ports; and the order of the stages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;
use std::sync::Arc;

use provenir_api::AnyKind;
use provenir_api::port::{Arity, InputPort, OutputPort};

use crate::manifest::{InputDecl, InputItem, Manifest, Report, Span, Spanned, StageDecl, clip, shortened};
use crate::registry::Registry;

/// A kind with its ports at hand.
pub(super) struct KindInfo {
    pub(super) kind: Arc<dyn AnyKind>,
    pub(super) inputs: Vec<InputPort>,
    pub(super) outputs: Vec<OutputPort>,
}

/// A stage whose names were looked up.
pub(super) struct Node<'m> {
    pub(super) name: &'m Arc<str>,
    pub(super) decl: &'m StageDecl,
    /// Absent where the manifest names no known kind.
    pub(super) kind: Option<Rc<KindInfo>>,
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
    /// Producers named by each stage, also where something else about the input is wrong.
    producers: Vec<Vec<(usize, Span)>>,
}

impl<'m> Graph<'m> {
    pub(super) fn new(manifest: &'m Manifest, registry: &Registry, report: &mut Report) -> Self {
        let kinds: BTreeMap<&str, Rc<KindInfo>> = registry
            .kinds()
            .map(|kind| {
                let info = KindInfo {
                    kind: Arc::clone(kind),
                    inputs: kind.inputs(),
                    outputs: kind.outputs(),
                };
                (kind.name(), Rc::new(info))
            })
            .collect();
        let mut nodes: Vec<Node<'m>> = Vec::with_capacity(manifest.stages.len());
        for (name, decl) in &manifest.stages {
            let kind = decl.kind.as_ref().and_then(|kind| {
                let found = kinds.get(kind.value.as_str()).cloned();
                if found.is_none() {
                    let help = report.suggest(&kind.value, kinds.keys().copied());
                    report
                        .error(kind.span, format!("there is no kind `{}`", clip(&kind.value)))
                        .help
                        .clone_from(&help);
                }
                found
            });
            nodes.push(Node {
                name,
                decl,
                tainted: kind.is_none(),
                kind,
                wires: Vec::new(),
            });
        }
        let mut graph = Self {
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
        graph
    }

    /// Looks up what is wired to a stage.
    fn wire(&mut self, stage: usize, by_name: &BTreeMap<&str, usize>, report: &mut Report) {
        let before = report.errors();
        let decl = self.nodes[stage].decl;
        let kind = self.nodes[stage].kind.clone();
        let mut wires = Vec::new();
        for input in &decl.inputs {
            let port = kind
                .as_ref()
                .and_then(|kind| find_port(kind, &input.port, report));
            if let (Some(kind), Some(port)) = (&kind, port) {
                check_arity(input, &kind.inputs[port], report);
            }
            let mut members = Vec::new();
            for item in &input.items {
                let Some(producer) = find_stage(&item.stage, by_name, report) else {
                    continue;
                };
                self.producers[stage].push((producer, item.stage.span));
                let Some(produced) = &self.nodes[producer].kind else {
                    continue;
                };
                let Some(output) = find_output(produced, item, report) else {
                    continue;
                };
                if let (Some(kind), Some(port)) = (&kind, port) {
                    self.check_content(stage, kind, port, producer, output, item, report);
                    members.push((producer, output, item));
                }
            }
            if let (Some(kind), Some(port)) = (&kind, port) {
                wires.extend(name_sources(&kind.inputs[port], port, input, members, report));
            }
        }
        if let Some(kind) = &kind {
            for port in &kind.inputs {
                let wired = decl.inputs.iter().any(|input| input.port.value == port.name);
                if port.required && !wired {
                    self.missing(stage, port, report);
                }
            }
        }
        wires.sort_by_key(|wire| wire.port);
        let node = &mut self.nodes[stage];
        node.wires = wires;
        node.tainted |= report.errors() > before;
    }

    fn missing(&self, stage: usize, port: &InputPort, report: &mut Report) {
        let node = &self.nodes[stage];
        // Stages whose first output fits; in a hostile manifest there may be very many.
        let fitting: Vec<&str> = self
            .nodes
            .iter()
            .take(1000)
            .enumerate()
            .filter(|(index, _)| *index != stage)
            .filter(|(_, other)| {
                let output = other.kind.as_ref().and_then(|kind| kind.outputs.first());
                output.is_some_and(|output| output.content.mismatches(&port.content).is_empty())
            })
            .map(|(_, other)| &**other.name)
            .collect();
        let help = if fitting.is_empty() {
            format!("`{}`: {}", port.name, port.doc)
        } else {
            format!(
                "`inputs = {{ {} = \"STAGE\" }}`; what these stages give fits: {}",
                port.name,
                shortened(fitting.iter().copied())
            )
        };
        report
            .error(
                node.decl.key,
                format!("stage `{}` lacks its input `{}`", node.name, port.name),
            )
            .help(help);
    }

    #[expect(clippy::too_many_arguments, reason = "both ends of a wire and its place")]
    fn check_content(
        &self,
        stage: usize,
        kind: &KindInfo,
        port: usize,
        producer: usize,
        output: usize,
        item: &InputItem,
        report: &mut Report,
    ) {
        let wanted = &kind.inputs[port];
        let Some(produced) = &self.nodes[producer].kind else {
            return;
        };
        let mismatches = produced.outputs[output].content.mismatches(&wanted.content);
        if mismatches.is_empty() {
            return;
        }
        let message = format!(
            "`{}.{}` does not fit the input `{}` of `{}`: {}",
            self.nodes[producer].name,
            produced.outputs[output].name,
            wanted.name,
            self.nodes[stage].name,
            mismatches.join("; ")
        );
        let fitting: Vec<String> = produced
            .outputs
            .iter()
            .filter(|output| output.content.mismatches(&wanted.content).is_empty())
            .map(|output| format!("{}.{}", self.nodes[producer].name, output.name))
            .collect();
        let help = if fitting.is_empty() {
            format!("`{}`: {}", wanted.name, wanted.doc)
        } else {
            format!("this fits: {}", shortened(fitting.iter().map(String::as_str)))
        };
        report.error(item.span, message).help(help);
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

fn find_stage(name: &Spanned<String>, by_name: &BTreeMap<&str, usize>, report: &mut Report) -> Option<usize> {
    let found = by_name.get(name.value.as_str()).copied();
    if found.is_none() {
        let help = report.suggest(&name.value, by_name.keys().copied());
        report
            .error(name.span, format!("there is no stage `{}`", clip(&name.value)))
            .help
            .clone_from(&help);
    }
    found
}

fn find_port(kind: &KindInfo, name: &Spanned<String>, report: &mut Report) -> Option<usize> {
    let found = kind.inputs.iter().position(|port| port.name == name.value);
    if found.is_none() {
        let help = match report.suggest(&name.value, kind.inputs.iter().map(|port| port.name)) {
            Some(help) => help,
            None => "it takes no inputs".to_owned(),
        };
        let message = format!("kind `{}` has no input `{}`", kind.kind.name(), clip(&name.value));
        report.error(name.span, message).help(help);
    }
    found
}

fn find_output(kind: &KindInfo, item: &InputItem, report: &mut Report) -> Option<usize> {
    let outputs = || kind.outputs.iter().map(|port| port.name);
    let (name, span) = match &item.port {
        Some(port) => (port.value.as_str(), port.span),
        None if kind.outputs.is_empty() => {
            let message = format!(
                "stage `{}` gives nothing: its kind has no outputs",
                item.stage.value
            );
            report.error(item.stage.span, message);
            return None;
        }
        None => return Some(0),
    };
    let found = outputs().position(|output| output == name);
    if found.is_none() {
        let help = report.suggest(name, outputs());
        let message = format!(
            "stage `{}` (kind `{}`) has no output `{}`",
            item.stage.value,
            kind.kind.name(),
            clip(name)
        );
        report.error(span, message).help.clone_from(&help);
    }
    found
}

fn check_arity(input: &InputDecl, port: &InputPort, report: &mut Report) {
    if port.arity == Arity::Many {
        return;
    }
    if input.list {
        report
            .error(
                input.span,
                format!("input `{}` takes one artifact, not a list", port.name),
            )
            .help("name one stage; an axis makes one cell for each of several settings");
    }
    for name in input.items.iter().filter_map(|item| item.name.as_ref()) {
        report.error(
            name.span,
            format!(
                "`as` names a member of a union, and input `{}` takes one artifact",
                port.name
            ),
        );
    }
}

/// Gives every member of a port its source name.
fn name_sources<'m>(
    port: &InputPort,
    position: usize,
    input: &'m InputDecl,
    members: Vec<(usize, usize, &'m InputItem)>,
    report: &mut Report,
) -> Vec<Wire<'m>> {
    let alone = input.items.len() == 1;
    let mut names: BTreeMap<String, Span> = BTreeMap::new();
    let mut wires: Vec<Wire<'m>> = Vec::new();
    let mut united = BTreeSet::new();
    for (producer, output, item) in members {
        let source = match (&item.name, &item.port) {
            (Some(name), _) => name.value.clone(),
            (None, _) if alone => port.name.to_owned(),
            (None, Some(port)) => format!("{}.{}", item.stage.value, port.value),
            (None, None) => item.stage.value.clone(),
        };
        let slice: BTreeMap<&str, _> = item
            .at
            .iter()
            .map(|(axis, label)| (axis.value.as_str(), &label.value))
            .collect();
        if !united.insert((producer, output, slice)) {
            report.error(item.span, format!("`{}` is united twice", item.stage.value));
        } else if let Some(first) = names.get(&source) {
            let first = *first;
            report
                .error(
                    item.span,
                    format!("two members of the union are called `{}`", clip(&source)),
                )
                .label(first, "the other one")
                .help("give one a name of its own: `{ stage = \"…\", as = \"…\" }`");
        }
        names.insert(source.clone(), item.span);
        wires.push(Wire {
            port: position,
            producer,
            output,
            item,
            source: source.into(),
        });
    }
    wires
}

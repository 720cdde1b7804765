//! What is wired to the ports of a stage: that it is there, fits and is named.

use std::collections::{BTreeMap, BTreeSet};

use provenir_api::port::{Arity, InputPort};
use provenir_api::schema;

use super::graph::{Graph, KindInfo, Wire, find_stage};
use crate::manifest::{
    InputDecl, InputItem, Report, Span, Spanned, alike, belongs, clip, report_alike, shortened,
};

/// Keys of an input, which some take for its port.
const IN_AN_INPUT: [&str; 4] = ["stage", "port", "at", "as"];

impl Graph<'_> {
    /// Looks up what is wired to a stage.
    pub(super) fn wire(&mut self, stage: usize, by_name: &BTreeMap<&str, usize>, report: &mut Report) {
        let before = report.errors();
        let decl = self.nodes[stage].decl;
        let kind = self.nodes[stage].kind.clone();
        let mut wires = Vec::new();
        for input in &decl.inputs {
            let port = kind
                .as_ref()
                .and_then(|kind| find_port(kind, &input.port, report));
            if port.is_none() && IN_AN_INPUT.contains(&input.port.value.as_str()) {
                // What stands there is no stage.
                continue;
            }
            if let (Some(kind), Some(port)) = (&kind, port) {
                check_arity(input, kind, &kind.inputs[port], report);
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
                    // Where it must not see what it is given, it does not matter whether that fits.
                    if produced.is_privileged(output) && !kind.takes_privileged(port) {
                        self.report_privilege(
                            (stage, port),
                            (producer, output),
                            (producer, output),
                            item,
                            report,
                        );
                    } else if producer != stage
                        && !self.nodes[stage].is_guess
                        && !self.nodes[producer].is_guess
                    {
                        // That it feeds itself is said with the cycles.
                        self.check_content(stage, kind, port, producer, output, item, report);
                    }
                    members.push((producer, output, item));
                }
            }
            if let (Some(kind), Some(port)) = (&kind, port) {
                wires.extend(name_sources(&kind.inputs[port], port, input, members, report));
            }
        }
        if let Some(kind) = &kind {
            for port in &kind.inputs {
                // A name that was probably meant for the port was reported already.
                let meant = |name: &str| {
                    let known = kind.inputs.iter().map(|port| port.name);
                    if IN_AN_INPUT.contains(&name) {
                        return kind.inputs.len() == 1;
                    }
                    name == port.name || schema::nearest(name, known) == Some(port.name)
                };
                if port.required
                    && !decl.lacks_inputs
                    && !decl.inputs.iter().any(|input| meant(&input.port.value))
                {
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
                let output = other
                    .kind
                    .as_ref()
                    .and_then(|kind| kind.outputs.get(kind.only_output()?));
                output.is_some_and(|output| output.content.mismatches(&port.content).is_empty())
            })
            .map(|(_, other)| &**other.name)
            .collect();
        let help = if fitting.is_empty() {
            format!("input `{}`: {}", port.name, port.doc)
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
        let help = if fitting.is_empty() && kind.kind.declares_ports() {
            format!(
                "`params.inputs.{}` says what the program expects there: declare what `{}` gives, or wire what is declared",
                wanted.name, self.nodes[producer].name
            )
        } else if fitting.is_empty() {
            format!("input `{}`: {}", wanted.name, wanted.doc)
        } else {
            format!("this fits: {}", shortened(fitting.iter().map(String::as_str)))
        };
        report.error(item.span, message).help(help);
    }
}

fn find_port(kind: &KindInfo, name: &Spanned<String>, report: &mut Report) -> Option<usize> {
    let found = kind.inputs.iter().position(|port| port.name == name.value);
    if found.is_none() && kind.kind.declares_ports() {
        report
            .error(name.span, format!("`{}` cannot name an input", clip(&name.value)))
            .help("write letters, digits, `_` and `-`, a letter or `_` first, at most 64 in all");
    } else if found.is_none() {
        let ports = kind.inputs.iter().map(|port| port.name);
        let help = match (belongs(&name.value), report.suggest(&name.value, ports)) {
            (Some(place), _) if IN_AN_INPUT[2..].contains(&name.value.as_str()) => place.to_owned(),
            (_, Some(_)) if IN_AN_INPUT.contains(&name.value.as_str()) => format!(
                "an input begins with its port: `inputs = {{ {} = {{ stage = \"STAGE\", … }} }}`",
                kind.inputs[0].name
            ),
            (_, Some(help)) => help,
            (_, None) => "it takes no inputs".to_owned(),
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
            let whose = if kind.kind.declares_ports() {
                "it declares"
            } else {
                "its kind has"
            };
            let message = format!("stage `{}` gives nothing: {whose} no outputs", item.stage.value);
            report.error(item.stage.span, message);
            return None;
        }
        None => {
            let only = kind.only_output();
            if only.is_none() {
                let stage = &item.stage.value;
                let all = outputs().map(|output| format!("{stage}.{output}"));
                let all: Vec<String> = all.collect();
                report
                    .error(item.stage.span, format!("stage `{stage}` has several outputs"))
                    .help(format!(
                        "write which: {}",
                        shortened(all.iter().map(String::as_str))
                    ));
            }
            return only;
        }
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

fn check_arity(input: &InputDecl, kind: &KindInfo, port: &InputPort, report: &mut Report) {
    if port.arity == Arity::Many {
        return;
    }
    if input.list {
        let help = if kind.kind.declares_ports() {
            format!(
                "`params.inputs.{} = {{ many = true }}` makes it one that takes many",
                port.name
            )
        } else {
            "name one stage; an axis makes one cell for each of several settings".to_owned()
        };
        report
            .error(
                input.span,
                format!("input `{}` takes one artifact, not a list", port.name),
            )
            .help(help);
    }
    for name in input.items.iter().filter_map(|item| item.name.as_ref()) {
        let message = format!(
            "`as` names a member of a list, and input `{}` takes one artifact",
            port.name
        );
        report.error(name.span, message).help("leave `as` out");
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
    let mut names: BTreeMap<String, Span> = BTreeMap::new();
    let mut spans: Vec<(String, Span)> = Vec::new();
    let mut wires: Vec<Wire<'m>> = Vec::new();
    let mut united = BTreeSet::new();
    for (producer, output, item) in members {
        let source = match (&item.name, &item.port) {
            (Some(name), _) => name.value.clone(),
            (None, _) if input.alone => port.name.to_owned(),
            (None, Some(port)) => format!("{}.{}", item.stage.value, port.value),
            (None, None) => item.stage.value.clone(),
        };
        let slice: BTreeMap<&str, _> = item
            .at
            .iter()
            .map(|(axis, label)| (axis.value.as_str(), &label.value))
            .collect();
        if port.arity == Arity::One {
            // That it takes one alone was said.
        } else if !united.insert((producer, output, slice)) {
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
        spans.push((source.clone(), item.span));
        names.insert(source.clone(), item.span);
        wires.push(Wire {
            port: position,
            producer,
            output,
            item,
            source: source.into(),
        });
    }
    for (first, second) in alike(spans.iter().map(|(source, _)| source.as_str())) {
        let ((first, earlier), (second, later)) = (&spans[first], &spans[second]);
        let what = "two members of the union have names that look alike";
        report_alike(what, (first, second), (*earlier, *later), report);
    }
    wires
}

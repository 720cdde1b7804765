//! The parameters of a stage at each point of the axes that they name.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use provenir_api::port::TableSchema;
use provenir_api::{AnyKind, Label, Problem, Resolved, schema};
use serde_json::Value;

use super::axes::{Axes, AxisSet, Points};
use super::graph::KindInfo;
use super::model::point;
use super::sources::SourceFiles;
use super::template::{Piece, Scope, Template, marked, parse};
use crate::manifest::{AxisValue, Data, Node, Origin, Override, Report, Span, StageDecl, belongs, quoted};

/// The parameters of a stage, ready to be resolved at points.
pub(super) struct StageParameters<'m> {
    decl: &'m StageDecl,
    /// Axes that the parameters, the overrides and their `where` name.
    pub(super) axes: AxisSet,
    /// Those of them that only values name which hold nowhere: others were laid over them, or the axis that they hold for was
    /// given other values. What a cell is called does not depend on that.
    pub(super) idle: AxisSet,
    /// Whether a mistake in what they name leaves `axes` uncertain.
    pub(super) tainted: bool,
    overrides: Vec<(Points, &'m Override)>,
    /// By which overrides match.
    variants: BTreeMap<Vec<bool>, Rc<Variant>>,
}

/// The parameters where certain overrides match.
struct Variant {
    /// Merged; absent where the stage has none.
    node: Option<Node>,
    template: Template,
}

impl<'m> StageParameters<'m> {
    /// Looks up the axes that are named; mistakes are reported.
    pub(super) fn new(decl: &'m StageDecl, axes: &Axes<'_>, report: &mut Report) -> Self {
        let before = report.errors();
        let mut named = AxisSet::default();
        let written = decl
            .params
            .iter()
            .chain(decl.overrides.iter().map(|entry| &entry.params));
        for params in written {
            Template::compile(&params.node, axes, report).axes(&mut named);
        }
        let (mut effective, mut overrides) = (AxisSet::default(), Vec::new());
        for entry in &decl.overrides {
            if let Some(points) = axes.points(&entry.matching, report) {
                named = named.union(points.axes);
                if !points.is_empty() {
                    effective = effective.union(points.axes);
                }
                overrides.push((points, entry));
            }
        }
        for (entry, node) in in_effect(decl) {
            let mut of_override = overrides
                .iter()
                .filter(|(_, other)| entry.is_some_and(|entry| std::ptr::eq(entry, *other)));
            if of_override.all(|(points, _)| !points.is_empty()) {
                Template::compile(&node, axes, report).axes(&mut effective);
            }
        }
        Self {
            decl,
            axes: named,
            idle: named.without(effective),
            tainted: report.errors() > before,
            overrides,
            variants: BTreeMap::new(),
        }
    }

    /// Resolves the parameters at a point. What is wrong is reported; then there are none. `wired` is absent where it
    /// is uncertain.
    pub(super) fn resolve<'a>(
        &mut self,
        info: &KindInfo,
        wired: Option<&[(&str, TableSchema)]>,
        files: &mut SourceFiles<'_>,
        at: &impl Fn(usize) -> (usize, &'a AxisValue),
        axes: &Axes<'_>,
        report: &mut Report,
    ) -> Option<Arc<Resolved>> {
        let kind = &*info.kind;
        let matching: Vec<bool> = self
            .overrides
            .iter()
            .map(|(points, _)| points.contain(|axis| at(axis).0))
            .collect();
        let variant = if let Some(variant) = self.variants.get(&matching) {
            Rc::clone(variant)
        } else {
            let variant = Rc::new(self.variant(&matching, axes, report));
            self.variants.insert(matching.clone(), Rc::clone(&variant));
            variant
        };
        let value = variant.template.fill(&|axis| at(axis).1, axes, report);
        let source = Source {
            matching: &matching,
            node: variant.node.as_ref(),
            value: &value,
        };
        let node = variant.node.as_ref();
        if report.has_errors() && node.is_some_and(|node| is_spoilt(node, at, axes, report)) {
            // Something in it was reported. What is wrong elsewhere is wrong all the same; whether all goes together cannot be
            // known.
            for problem in &schema::check(kind.schema(), &value) {
                self.report(problem, Concern::Value, &source, at, axes, report);
            }
            report.follows();
            return None;
        }
        let problems = match kind.resolve(&value) {
            Ok(mut resolved) => {
                let mut problems = wired.map_or(Vec::new(), |wired| kind.check(&resolved.full, wired));
                problems.extend(info.other_ports(&resolved.full));
                problems.extend(resolved.sources.iter().filter_map(|source| files.problem(source)));
                if problems.is_empty() {
                    self.decl.resources.apply(&mut resolved);
                    return Some(Arc::new(resolved));
                }
                problems
            }
            Err(mut problems) => {
                // Whether a file is there does not depend on what is wrong beside it.
                for source in schema::sources(kind.schema(), &value) {
                    if problems.iter().all(|problem| problem.pointer != source.pointer) {
                        problems.extend(files.problem(&source));
                    }
                }
                problems
            }
        };
        // Where each value is right by itself, the point says which of them come together.
        let concern = if schema::check(kind.schema(), &value).is_empty() {
            Concern::Combination
        } else {
            Concern::Value
        };
        let named = schema::sources(kind.schema(), &value);
        for problem in &problems {
            let is_file =
                concern == Concern::Value && named.iter().any(|file| file.pointer == problem.pointer);
            let concern = if is_file { Concern::File } else { concern };
            self.report(problem, concern, &source, at, axes, report);
        }
        None
    }

    /// Where the parameter at a JSON pointer is written, for a point at which the parameters were resolved.
    pub(super) fn place_of<'a>(
        &self,
        pointer: &str,
        at: &impl Fn(usize) -> (usize, &'a AxisValue),
        axes: &Axes<'_>,
        report: &mut Report,
    ) -> Place {
        let matching: Vec<bool> = self
            .overrides
            .iter()
            .map(|(points, _)| points.contain(|axis| at(axis).0))
            .collect();
        let source = Source {
            matching: &matching,
            node: self
                .variants
                .get(&matching)
                .and_then(|variant| variant.node.as_ref()),
            value: &Value::Null,
        };
        self.place(pointer, false, &source, at, axes, report)
    }

    /// Which layer gives the parameter at a JSON pointer, the later the higher: the stage, its overrides, a profile, the
    /// command line.
    fn layer(&self, pointer: &str, matching: &[bool], report: &Report) -> Layer {
        let entries = self.overrides.iter().zip(matching).rev();
        for ((_, entry), _) in entries.filter(|(_, matches)| **matches) {
            if !holds(&entry.params.node, pointer) {
                continue;
            }
            return match (
                report.sources.of(entry.params.key).origin == Origin::CommandLine,
                entry.laid,
            ) {
                (true, _) => Layer::CommandLine,
                (false, true) => Layer::Profile,
                (false, false) => Layer::Override,
            };
        }
        Layer::Stage
    }

    /// Checks parameters that may hold at no point, those of overrides, and of profiles that are not chosen: every name, and of
    /// the profiles the values, too, but for those that axes give.
    pub(super) fn check_unused(&self, kind: &dyn AnyKind, axes: &Axes<'_>, report: &mut Report) {
        let overrides = self.decl.overrides.iter().map(|entry| &entry.params);
        for params in overrides.chain(&self.decl.dormant.0) {
            Template::compile(&params.node, axes, report);
            let is_dormant = self
                .decl
                .dormant
                .0
                .iter()
                .any(|dormant| std::ptr::eq(dormant, params));
            for problem in schema::check(kind.schema(), &params.node.to_value()) {
                let mut key = params.key;
                let mut node = &params.node;
                let mut written = !problem.pointer.is_empty();
                for segment in problem.pointer.split('/').skip(1) {
                    let segment = segment.replace("~1", "/").replace("~0", "~");
                    let Some(entry) = node.as_table().and_then(|table| table.get(&segment)) else {
                        written = false;
                        break;
                    };
                    (key, node) = (entry.key, &entry.node);
                }
                // What a table lacks the stage may give.
                let is_value = written && !matches!(node.data, Data::Table(_));
                let stands = node.as_text().is_none_or(|text| !text.contains("${"));
                if problem.key && !report.is_spoilt(key) {
                    report.error(key, problem.message).help.clone_from(&problem.help);
                } else if !problem.key && is_dormant && is_value && stands && !report.is_spoilt(node.span) {
                    let message = match name(&problem) {
                        Some(name) => format!("`{name}`: {}", problem.message),
                        None => problem.message.clone(),
                    };
                    report.error(node.span, message).help.clone_from(&problem.help);
                }
            }
        }
    }

    fn variant(&self, matching: &[bool], axes: &Axes<'_>, report: &mut Report) -> Variant {
        let mut node = self.decl.params.as_ref().map(|params| params.node.clone());
        for ((_, entry), matches) in self.overrides.iter().zip(matching) {
            if *matches {
                match &mut node {
                    Some(node) => node.merge(entry.params.node.clone()),
                    None => node = Some(entry.params.node.clone()),
                }
            }
        }
        let template = match &node {
            Some(node) => Template::compile(node, axes, report),
            None => Template::Constant(serde_json::Map::new().into()),
        };
        Variant { node, template }
    }

    /// Says a problem at the place that it comes from: the value, or the axis value that stands for it. Of values that do not
    /// go together, the one that was laid over the others last is the place, and the others are shown beside it.
    fn report<'a>(
        &self,
        problem: &Problem,
        concern: Concern,
        source: &Source<'_>,
        at: &impl Fn(usize) -> (usize, &'a AxisValue),
        axes: &Axes<'_>,
        report: &mut Report,
    ) {
        let mut place = self.place(&problem.pointer, problem.key, source, at, axes, report);
        if place.spoilt || problem.key && report.is_spoilt(place.shown) {
            return;
        }
        // A text that axes complete is wrong for one reason, whatever they make of it.
        let completed = place.text.as_deref().is_some_and(|text| text.contains("${"));
        if concern == Concern::Value && completed && place.used.is_none() && report.has_error_at(place.shown)
        {
            report.follows();
            return;
        }
        let mut others = Vec::new();
        for pointer in &problem.beside {
            let mut other = self.place(pointer, false, source, at, axes, report);
            if other.written {
                let mut pointer = pointer.as_str();
                if other.is_over(&place) {
                    std::mem::swap(&mut other, &mut place);
                    pointer = &problem.pointer;
                }
                others.push((pointer, other));
            }
        }
        let message = match name(problem) {
            Some(name) => format!("`{name}`: {}", problem.message),
            None => problem.message.clone(),
        };
        let text = place.text.as_deref().filter(|_| !problem.key);
        let meant = text.and_then(|text| {
            let is_axis = problem.help.is_none() && axes.index(text).is_some();
            let meant = is_axis.then(|| format!("${{{text}}}"));
            let meant = marked(text, Scope::Parameters, axes).or(meant)?;
            Some(format!("did you mean `{}`?", quoted(&meant)))
        });
        let diagnostic = report.error(place.shown, message);
        if let Some(place_used) = place.used {
            diagnostic.label(place_used, "used here");
        }
        for (pointer, other) in others.into_iter().filter(|(_, other)| other.written) {
            let name = name(&Problem::new(pointer, "")).unwrap_or_default();
            let text = match source.value.pointer(pointer) {
                Some(value) => format!("`{name}` is {}", schema::shown(value)),
                None => format!("`{name}`"),
            };
            diagnostic.label(other.shown, text);
        }
        // A key of the language that stands below `[stages.NAME.params]` is one of the parameters for TOML.
        let strayed = problem.pointer.rsplit('/').next().filter(|_| problem.key);
        if let Some(meant) = meant {
            diagnostic.help(meant);
        } else if let Some(place) = strayed.and_then(belongs) {
            diagnostic.help(format!("{place}, above its `[stages.NAME.params]`"));
        } else if let Some(help) = &problem.help {
            diagnostic.help(help.clone());
        } else if concern == Concern::Combination && !self.axes.is_empty() {
            let labels: Vec<(&Arc<str>, &Label)> = self
                .axes
                .iter()
                .map(|axis| (axes.name(axis), &at(axis).1.label))
                .collect();
            diagnostic.help(format!("found at {}", point(labels.into_iter())));
        }
    }

    /// The place that a JSON pointer names; `key` where the key is what is pointed at.
    fn place<'a>(
        &self,
        pointer: &str,
        key_meant: bool,
        source: &Source<'_>,
        at: &impl Fn(usize) -> (usize, &'a AxisValue),
        axes: &Axes<'_>,
        report: &mut Report,
    ) -> Place {
        let Some(mut node) = source.node else {
            return Place::of(self.decl.key);
        };
        let mut key = self
            .decl
            .params
            .as_ref()
            .map_or(self.decl.key, |params| params.key);
        let mut used = None;
        let mut found = true;
        let mut layer = self.layer(pointer, source.matching, report);
        for segment in pointer.split('/').skip(1) {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            let (target, place) = follow(node, at, axes, report);
            if let Some((_, axis)) = place {
                layer = layer.max(axis_layer(axis, axes, report));
            }
            used = used.or(place.map(|(span, _)| span));
            let next = match &target.data {
                Data::Table(table) => table.get(&segment).map(|entry| (entry.key, &entry.node)),
                Data::Array(items) => segment
                    .parse()
                    .ok()
                    .and_then(|index: usize| items.get(index))
                    .map(|item| (item.span, item)),
                _ => None,
            };
            if let Some((span, below)) = next {
                key = span;
                node = below;
            } else {
                // The field is not written; what would hold it is.
                found = false;
                node = target;
                break;
            }
        }
        let (target, place) = follow(node, at, axes, report);
        if let Some((_, axis)) = place {
            layer = layer.max(axis_layer(axis, axes, report));
        }
        used = used.or(place.map(|(span, _)| span));
        let table = matches!(target.data, Data::Table(_)) && place.is_none();
        let shown = if key_meant || table || !found {
            key
        } else {
            target.span
        };
        Place {
            shown,
            used,
            spoilt: report.is_spoilt(node.span) || report.is_spoilt(target.span),
            written: found,
            text: target.as_text().map(str::to_owned),
            // What a manifest says goes over what it extends.
            layer: (layer, shown.source == 0),
        }
    }
}

/// The parameters of a stage and of its overrides, without the values that hold nowhere because a profile or the command line
/// has laid others over them.
fn in_effect(decl: &StageDecl) -> Vec<(Option<&Override>, Node)> {
    let (laid, own): (Vec<_>, Vec<_>) = decl.overrides.iter().partition(|entry| entry.laid);
    let own = own.into_iter().map(|entry| (Some(entry), &entry.params));
    let written = decl.params.iter().map(|params| (None, params)).chain(own);
    let mut nodes: Vec<_> = written
        .map(|(entry, params)| (entry, params.node.clone()))
        .collect();
    let layers = laid.into_iter().map(|entry| entry.params.node.clone());
    let over = layers.reduce(|mut lower, upper| {
        lower.merge(upper);
        lower
    });
    if let Some(over) = over {
        for (_, node) in &mut nodes {
            node.replace(&over);
        }
        nodes.push((None, over));
    }
    nodes
}

/// Where the parameters at a point come from.
struct Source<'s> {
    /// Which overrides match.
    matching: &'s [bool],
    /// What is written, merged; absent where nothing is.
    node: Option<&'s Node>,
    /// The same, filled in.
    value: &'s Value,
}

/// What a problem is with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Concern {
    /// A value by itself.
    Value,
    /// The file that a value names.
    File,
    /// Values that are right by themselves, at a point where they come together.
    Combination,
}

/// What gives a parameter its value, the later over the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    Stage,
    /// The value of an axis: it holds at some points only.
    Axis,
    Override,
    Profile,
    CommandLine,
}

fn axis_layer(axis: usize, axes: &Axes<'_>, report: &Report) -> Layer {
    match (axes.is_replaced(axis), &report.sources.of(axes.key(axis)).origin) {
        (true, Origin::CommandLine) => Layer::CommandLine,
        (true, Origin::File(_)) => Layer::Profile,
        (false, _) => Layer::Axis,
    }
}

/// Whether a value says what is at a JSON pointer below it.
fn holds(mut node: &Node, pointer: &str) -> bool {
    for segment in pointer.split('/').skip(1) {
        let Data::Table(table) = &node.data else {
            // It stands for, or replaces, all that is below.
            return true;
        };
        match table.get(&segment.replace("~1", "/").replace("~0", "~")) {
            Some(entry) => node = &entry.node,
            None => return false,
        }
    }
    true
}

/// Whether a value, or what it stands for, holds something that was reported.
fn is_spoilt<'a>(
    node: &Node,
    at: &impl Fn(usize) -> (usize, &'a AxisValue),
    axes: &Axes<'_>,
    report: &mut Report,
) -> bool {
    if report.is_spoilt(node.span) {
        return true;
    }
    let (target, place) = follow(node, at, axes, report);
    match &target.data {
        _ if place.is_some() => target.is_spoilt(),
        Data::Array(items) => items.iter().any(|item| is_spoilt(item, at, axes, report)),
        Data::Table(table) => table
            .values()
            .any(|entry| is_spoilt(&entry.node, at, axes, report)),
        data => matches!(data, Data::Invalid),
    }
}

/// The parameter that a problem is with, as a person would write it: `robust.rounds`, `hidden[1]`. A problem with a
/// key names it already.
fn name(problem: &Problem) -> Option<String> {
    if problem.key {
        return None;
    }
    let mut name = String::new();
    for segment in problem.pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        if segment.bytes().all(|byte| byte.is_ascii_digit()) {
            name.extend(["[", &segment, "]"]);
        } else {
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&segment);
        }
    }
    (!name.is_empty()).then_some(name)
}

/// Where a parameter is written.
pub(super) struct Place {
    pub(super) shown: Span,
    /// The `${…}` that the shown place stands for.
    pub(super) used: Option<Span>,
    /// Whether the value there was reported.
    spoilt: bool,
    /// Whether it is there, and not only what would hold it.
    written: bool,
    /// The value, where it is a text.
    text: Option<String>,
    /// What gives it its value; and whether that is in the manifest itself.
    layer: (Layer, bool),
}

impl Place {
    /// Whether a message about both parameters belongs here and not there: it is there, and was laid over the other. That an
    /// axis chooses a method is not what is wrong with a number.
    pub(super) fn is_over(&self, other: &Self) -> bool {
        let rank = |place: &Self| match place.layer {
            (Layer::Axis, here) if place.text.is_some() => (Layer::Stage, here),
            layer => layer,
        };
        self.written && (!other.written || rank(self) > rank(other))
    }

    /// Whether the parameter is there, and not only what would hold it.
    pub(super) fn is_written(&self) -> bool {
        self.written
    }

    /// One place.
    pub(super) fn of(span: Span) -> Self {
        Self {
            shown: span,
            used: None,
            spoilt: false,
            written: false,
            text: None,
            layer: (Layer::Stage, false),
        }
    }
}

/// What a value stands for, where it is one reference; with the place of that reference, and its axis.
fn follow<'n, 'a: 'n>(
    node: &'n Node,
    at: &impl Fn(usize) -> (usize, &'a AxisValue),
    axes: &Axes<'_>,
    report: &mut Report,
) -> (&'n Node, Option<(Span, usize)>) {
    if let Some(text) = node.as_text().filter(|text| text.starts_with("${"))
        && !report.is_spoilt(node.span)
        && let Some(pieces) = parse(text, node.span, Scope::Parameters, axes, report)
        && let [Piece::Axis(reference)] = pieces.as_slice()
        && let Some(target) = reference.lookup(at(reference.axis).1)
    {
        return (target, Some((node.span, reference.axis)));
    }
    (node, None)
}

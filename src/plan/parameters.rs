//! The parameters of a stage at each point of the axes that they name.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use provenir_api::port::TableSchema;
use provenir_api::{AnyKind, Label, Problem, Resolved, schema};

use super::axes::{Axes, AxisSet, Points};
use super::model::point;
use super::sources::SourceFiles;
use super::template::{Piece, Scope, Template, parse};
use crate::manifest::{AxisValue, Data, Node, Params, Report, Span, StageDecl};

/// The parameters of a stage, ready to be resolved at points.
pub(super) struct StageParameters<'m> {
    decl: &'m StageDecl,
    /// Axes that the parameters, the overrides and their `where` name.
    pub(super) axes: AxisSet,
    /// Whether a mistake in what they name leaves `axes` uncertain.
    pub(super) tainted: bool,
    overrides: Vec<(Points, &'m Params)>,
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
        let mut overrides = Vec::new();
        if let Some(params) = &decl.params {
            Template::compile(&params.node, axes, report).axes(&mut named);
        }
        for entry in &decl.overrides {
            Template::compile(&entry.params.node, axes, report).axes(&mut named);
            if let Some(points) = axes.points(&entry.matching, report) {
                named = named.union(points.axes);
                overrides.push((points, &entry.params));
            }
        }
        Self {
            decl,
            axes: named,
            tainted: report.errors() > before,
            overrides,
            variants: BTreeMap::new(),
        }
    }

    /// Resolves the parameters at a point. What is wrong is reported; then there are none. `wired` is absent where it
    /// is uncertain.
    pub(super) fn resolve<'a>(
        &mut self,
        kind: &dyn AnyKind,
        wired: Option<&[(&str, TableSchema)]>,
        files: &mut SourceFiles,
        at: &impl Fn(usize) -> (usize, &'a AxisValue),
        axes: &Axes<'_>,
        report: &mut Report,
    ) -> Option<Arc<Resolved>> {
        let matching: Vec<bool> = self
            .overrides
            .iter()
            .map(|(points, _)| points.contain(|axis| at(axis).0))
            .collect();
        let variant = if let Some(variant) = self.variants.get(&matching) {
            Rc::clone(variant)
        } else {
            let variant = Rc::new(self.variant(&matching, axes, report));
            self.variants.insert(matching, Rc::clone(&variant));
            variant
        };
        let value = variant.template.fill(&|axis| at(axis).1, axes, report);
        let problems = match kind.resolve(&value) {
            Ok(mut resolved) => {
                let mut problems = wired.map_or(Vec::new(), |wired| kind.check(&resolved.full, wired));
                problems.extend(resolved.sources.iter().filter_map(|source| files.problem(source)));
                if problems.is_empty() {
                    self.decl.resources.apply(&mut resolved);
                    return Some(Arc::new(resolved));
                }
                problems
            }
            Err(problems) => problems,
        };
        // Where each value is right by itself, the point says which of them come together.
        let combined = schema::check(kind.schema(), &value).is_empty();
        for problem in &problems {
            self.report(problem, combined, variant.node.as_ref(), at, axes, report);
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
        let node = self
            .variants
            .get(&matching)
            .and_then(|variant| variant.node.as_ref());
        self.place(&Problem::new(pointer, ""), node, at, axes, report)
    }

    /// Checks names in parameters that may hold at no point: those of overrides, and of profiles that are not chosen.
    pub(super) fn check_names(&self, kind: &dyn AnyKind, axes: &Axes<'_>, report: &mut Report) {
        let overrides = self.decl.overrides.iter().map(|entry| &entry.params);
        for params in overrides.chain(&self.decl.dormant.0) {
            Template::compile(&params.node, axes, report);
            let problems = schema::check(kind.schema(), &params.node.to_value());
            for problem in problems.into_iter().filter(|problem| problem.key) {
                let mut key = params.key;
                let mut node = &params.node;
                for segment in problem.pointer.split('/').skip(1) {
                    let segment = segment.replace("~1", "/").replace("~0", "~");
                    let Some(entry) = node.as_table().and_then(|table| table.get(&segment)) else {
                        break;
                    };
                    (key, node) = (entry.key, &entry.node);
                }
                report.error(key, problem.message).help.clone_from(&problem.help);
            }
        }
    }

    fn variant(&self, matching: &[bool], axes: &Axes<'_>, report: &mut Report) -> Variant {
        let mut node = self.decl.params.as_ref().map(|params| params.node.clone());
        for ((_, params), matches) in self.overrides.iter().zip(matching) {
            if *matches {
                match &mut node {
                    Some(node) => node.merge(params.node.clone()),
                    None => node = Some(params.node.clone()),
                }
            }
        }
        let template = match &node {
            Some(node) => Template::compile(node, axes, report),
            None => Template::Constant(serde_json::Map::new().into()),
        };
        Variant { node, template }
    }

    /// Says a problem at the place that it comes from: the value, or the axis value that stands for it.
    fn report<'a>(
        &self,
        problem: &Problem,
        combined: bool,
        node: Option<&Node>,
        at: &impl Fn(usize) -> (usize, &'a AxisValue),
        axes: &Axes<'_>,
        report: &mut Report,
    ) {
        let place = self.place(problem, node, at, axes, report);
        if report.is_spoilt(place.value) {
            return;
        }
        let message = match name(problem) {
            Some(name) => format!("`{name}`: {}", problem.message),
            None => problem.message.clone(),
        };
        let diagnostic = report.error(place.shown, message);
        if let Some(place_used) = place.used {
            diagnostic.label(place_used, "used here");
        }
        if let Some(help) = &problem.help {
            diagnostic.help(help.clone());
        } else if combined && !self.axes.is_empty() {
            let labels: Vec<(&Arc<str>, &Label)> = self
                .axes
                .iter()
                .map(|axis| (axes.name(axis), &at(axis).1.label))
                .collect();
            diagnostic.help(format!("found at {}", point(labels.into_iter())));
        }
    }

    /// The place that the JSON pointer of a problem names.
    fn place<'a>(
        &self,
        problem: &Problem,
        node: Option<&Node>,
        at: &impl Fn(usize) -> (usize, &'a AxisValue),
        axes: &Axes<'_>,
        report: &mut Report,
    ) -> Place {
        let Some(mut node) = node else {
            return Place::of(self.decl.key);
        };
        let mut key = self
            .decl
            .params
            .as_ref()
            .map_or(self.decl.key, |params| params.key);
        let mut used = None;
        let mut found = true;
        for segment in problem.pointer.split('/').skip(1) {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            let (target, place) = follow(node, at, axes, report);
            used = used.or(place);
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
        let value = node.span;
        let (target, place) = follow(node, at, axes, report);
        used = used.or(place);
        let table = matches!(target.data, Data::Table(_)) && place.is_none();
        let shown = if problem.key || table || !found {
            key
        } else {
            target.span
        };
        Place { shown, value, used }
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
    /// The value as written.
    value: Span,
    /// The `${…}` that the shown place stands for.
    pub(super) used: Option<Span>,
}

impl Place {
    /// One place.
    pub(super) fn of(span: Span) -> Self {
        Self {
            shown: span,
            value: span,
            used: None,
        }
    }
}

/// What a value stands for, where it is one reference; with the place of that reference.
fn follow<'n, 'a: 'n>(
    node: &'n Node,
    at: &impl Fn(usize) -> (usize, &'a AxisValue),
    axes: &Axes<'_>,
    report: &mut Report,
) -> (&'n Node, Option<Span>) {
    if let Some(text) = node.as_text().filter(|text| text.starts_with("${"))
        && !report.is_spoilt(node.span)
        && let Some(pieces) = parse(text, node.span, Scope::Parameters, axes, report)
        && let [Piece::Axis(reference)] = pieces.as_slice()
        && let Some(target) = reference.lookup(at(reference.axis).1)
    {
        return (target, Some(node.span));
    }
    (node, None)
}

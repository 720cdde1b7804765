//! A manifest whose shape has been checked: every table has only known keys of the right type. What the names in it
//! refer to is the plan's to find out.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::IndexMap;
use provenir_api::{Label, Resolved};
use serde_json::Value;

use super::node::Node;
use super::source::Span;
use crate::plan::Attempts;

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

impl<T> Spanned<T> {
    pub(crate) fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

/// A pipeline after `extends`, the profile and the command line.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) axes: IndexMap<Arc<str>, Axis>,
    pub(crate) exclude: Vec<Selector>,
    pub(crate) stages: IndexMap<Arc<str>, StageDecl>,
    pub(crate) only: Vec<Spanned<String>>,
    /// What profiles that are not chosen would exclude.
    pub(crate) dormant: Vec<Selector>,
    /// Whether axes may be lacking, because they could not be read; that was reported.
    pub(crate) lacks_axes: bool,
}

/// A named list of values.
#[derive(Debug)]
pub(crate) struct Axis {
    /// Where its name is written.
    pub(crate) key: Span,
    /// Its values; none only where a problem with it was reported.
    pub(crate) values: Vec<AxisValue>,
    /// Labels that it has elsewhere: in another profile, or before the profile or the command line replaced it. A
    /// `where` or `exclude` may name them; they match nothing.
    pub(crate) inactive: BTreeSet<Label>,
    /// Whether its values are a profile's or the command line's.
    pub(crate) replaced: bool,
}

/// A value of an axis.
#[derive(Debug)]
pub(crate) struct AxisValue {
    pub(crate) label: Label,
    pub(crate) node: Node,
}

impl AxisValue {
    /// Where its label is written: of a table, the name.
    pub(crate) fn place(&self) -> Span {
        let name = self.node.as_table().and_then(|table| table.get("name"));
        name.map_or(self.node.span, |entry| entry.node.span)
    }
}

/// Points of the axes that it names: those that have, on each, one of its values.
#[derive(Debug)]
pub(crate) struct Selector {
    pub(crate) span: Span,
    pub(crate) axes: Vec<(Spanned<String>, Vec<Spanned<Label>>)>,
}

/// A stage as declared.
#[derive(Debug)]
pub(crate) struct StageDecl {
    /// Where its name is written.
    pub(crate) key: Span,
    /// Absent only where that was reported.
    pub(crate) kind: Option<Spanned<String>>,
    pub(crate) inputs: Vec<InputDecl>,
    pub(crate) params: Option<Params>,
    pub(crate) over: Vec<Spanned<String>>,
    pub(crate) overrides: Vec<Override>,
    pub(crate) exclude: Vec<Selector>,
    pub(crate) publish: Vec<PublishDecl>,
    pub(crate) resources: ResourcesDecl,
    pub(crate) attempts: Attempts,
    /// What profiles that are not chosen would lay over its parameters and its named copies.
    pub(crate) dormant: (Vec<Params>, Vec<PublishDecl>),
    /// Whether something in it could not be read, which was reported.
    pub(crate) broken: bool,
    /// Keys that it must not have, which were reported; they may belong to its parameters.
    pub(crate) strays: Vec<Spanned<String>>,
    /// Whether that leaves its inputs uncertain.
    pub(crate) lacks_inputs: bool,
    /// Whether that leaves its parameters uncertain.
    pub(crate) lacks_params: bool,
}

impl StageDecl {
    /// A stage that could not be read, which was reported: its name is known.
    pub(crate) fn unread(key: Span) -> Self {
        Self {
            key,
            kind: None,
            inputs: Vec::new(),
            params: None,
            over: Vec::new(),
            overrides: Vec::new(),
            exclude: Vec::new(),
            publish: Vec::new(),
            resources: ResourcesDecl::default(),
            attempts: Attempts::default(),
            dormant: (Vec::new(), Vec::new()),
            broken: true,
            strays: Vec::new(),
            lacks_inputs: true,
            lacks_params: true,
        }
    }

    /// The parameters as they are written, with what a profile and the command line lay over them at every point.
    pub(crate) fn params_everywhere(&self) -> Value {
        let mut node = self.params.as_ref().map(|params| params.node.clone());
        for entry in self.overrides.iter().filter(|entry| entry.laid) {
            match &mut node {
                Some(node) => node.merge(entry.params.node.clone()),
                None => node = Some(entry.params.node.clone()),
            }
        }
        node.map_or(Value::Null, |node| node.to_value())
    }
}

/// A `params` table and where its key is written.
#[derive(Clone, Debug)]
pub(crate) struct Params {
    pub(crate) key: Span,
    pub(crate) node: Node,
}

/// Parameters that win where the axes match.
#[derive(Debug)]
pub(crate) struct Override {
    /// Whether a profile or the command line laid it over the stage: it wins everywhere.
    pub(crate) laid: bool,
    pub(crate) matching: Selector,
    pub(crate) params: Params,
}

/// What is wired to a port.
#[derive(Debug)]
pub(crate) struct InputDecl {
    pub(crate) port: Spanned<String>,
    /// The place of the whole value.
    pub(crate) span: Span,
    /// Whether it was written as a list.
    pub(crate) list: bool,
    /// Whether it has one member.
    pub(crate) alone: bool,
    pub(crate) items: Vec<InputItem>,
}

/// A producer at a port.
#[derive(Debug)]
pub(crate) struct InputItem {
    pub(crate) span: Span,
    pub(crate) stage: Spanned<String>,
    pub(crate) port: Option<Spanned<String>>,
    /// The slice that is taken.
    pub(crate) at: Vec<(Spanned<String>, Spanned<Label>)>,
    /// The name given to it in a union.
    pub(crate) name: Option<Spanned<String>>,
}

/// A named copy of an output.
#[derive(Debug)]
pub(crate) struct PublishDecl {
    pub(crate) port: Spanned<String>,
    pub(crate) path: Spanned<String>,
}

/// Resources that replace the kind's own estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResourcesDecl {
    cores: Option<u32>,
    memory: Option<u64>,
}

impl ResourcesDecl {
    pub(crate) fn new(cores: Option<u32>, memory: Option<u64>) -> Self {
        Self { cores, memory }
    }

    /// Puts what the manifest says in the place of the kind's own estimate. Cores that it gives are all that a cell has.
    pub(crate) fn apply(self, resolved: &mut Resolved) {
        if let Some(cores) = self.cores {
            resolved.resources.cores = cores;
            resolved.spare_cores = 0;
        }
        if let Some(memory) = self.memory {
            resolved.resources.memory = memory;
        }
    }
}

//! `${axis}` and `${axis.field}` in texts.

use provenir_api::Label;
use serde_json::{Map, Value};

use super::axes::{Axes, AxisSet};
use crate::manifest::{AxisValue, Data, Node, Report, Span, clip, quoted};

/// Longest text that an interpolation gives, in bytes.
const TEXT: usize = 64 << 10;

/// A reference to an axis or to a field of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) axis: usize,
    fields: Vec<String>,
    /// Where it is written.
    pub(super) span: Span,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(String),
    Axis(Reference),
    /// `${stage}`, in the path of a named copy.
    Stage,
    /// `${pipeline}`, in the path of a named copy.
    Pipeline,
}

/// Which names beside the axes may be referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Axes only.
    Parameters,
    /// Axes, `stage` and `pipeline`.
    Publish,
}

impl Scope {
    /// The names beside the axes.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Parameters => &[],
            Self::Publish => &["stage", "pipeline"],
        }
    }
}

/// Splits a text into its parts. `None` where it holds a mistake, which is reported.
pub(super) fn parse(
    text: &str,
    span: Span,
    scope: Scope,
    axes: &Axes<'_>,
    report: &mut Report,
) -> Option<Vec<Piece>> {
    // In a plain string every character stands for itself, after the opening quote.
    let plain = report
        .sources
        .slice(span)
        .get(1..)
        .is_some_and(|inner| inner.starts_with(text));
    let bare = report.sources.slice(span) == text;
    let place = |offset: usize, length: usize| match (plain, bare) {
        (true, _) => span.part(offset + 1, length),
        (_, true) => span.part(offset, length),
        _ => span,
    };
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    let mut complete = true;
    while let Some(at) = rest.find("${") {
        let offset = text.len() - rest.len() + at;
        if rest[..at].ends_with('$') {
            // `$${` stands for `${`.
            literal.push_str(&rest[..at]);
            literal.push('{');
            rest = &rest[at + 2..];
            continue;
        }
        literal.push_str(&rest[..at]);
        let Some(length) = rest[at..].find('}') else {
            report
                .error(place(offset, 2), "`${` is not closed")
                .help("write `${AXIS}`, or `$${` for the characters themselves");
            return None;
        };
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        let name = &rest[at + 2..at + length];
        let written = place(offset, length + 1);
        match (scope, name) {
            (Scope::Publish, "stage") => pieces.push(Piece::Stage),
            (Scope::Publish, "pipeline") => pieces.push(Piece::Pipeline),
            (Scope::Parameters, "stage" | "pipeline") => {
                report
                    .error(written, format!("`${{{name}}}` has a meaning in `publish` only"))
                    .help("what a stage is called must not change what it computes");
                complete = false;
            }
            _ => match reference(name, written, scope, axes, report) {
                Some(reference) => pieces.push(Piece::Axis(reference)),
                None => complete = false,
            },
        }
        rest = &rest[at + length + 1..];
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    complete.then_some(pieces)
}

fn reference(
    name: &str,
    span: Span,
    scope: Scope,
    axes: &Axes<'_>,
    report: &mut Report,
) -> Option<Reference> {
    let mut parts = name.split('.');
    let axis = parts.next().unwrap_or_default();
    let fields: Vec<String> = parts.map(str::to_owned).collect();
    if axis.is_empty() || fields.iter().any(String::is_empty) {
        report
            .error(span, format!("`${{{}}}` names no axis", clip(name)))
            .help("write `${AXIS}` or `${AXIS.FIELD}`, or `$${` for the characters themselves");
        return None;
    }
    let axis = axes.find_beside(axis, scope.names(), span, report)?;
    Some(Reference { axis, fields, span })
}

/// The text with `${…}` around each axis, or other name of the scope, that stands in it as other languages mark what is to be
/// filled in: `$name`, `$(name)`, `{name}`, `{{name}}`, `<name>`. Nothing where there is none.
pub(super) fn marked(text: &str, scope: Scope, axes: &Axes<'_>) -> Option<String> {
    const LONGEST: usize = 1000;
    if text.len() > LONGEST || !text.contains(['$', '{', '<']) {
        return None;
    }
    let names = axes.names.iter().map(|name| &**name);
    let mut found = text.to_owned();
    for name in names.chain(scope.names().iter().copied()) {
        let right = format!("${{{name}}}");
        // What is right already is put aside.
        let mut rest = found.replace(&right, "\0");
        for (before, after) in [("{{", "}}"), ("$(", ")"), ("{", "}"), ("<", ">")] {
            rest = rest.replace(&format!("{before}{name}{after}"), "\0");
        }
        let sigil = format!("${name}");
        let mut whole = String::new();
        while let Some(at) = rest.find(&sigil) {
            let after = &rest[at + sigil.len()..];
            let goes_on =
                after.starts_with(|next: char| next.is_ascii_alphanumeric() || matches!(next, '_' | '-'));
            whole.push_str(&rest[..at]);
            whole.push_str(if goes_on { &sigil } else { "\0" });
            rest = after.to_owned();
        }
        whole.push_str(&rest);
        found = whole.replace('\0', &right);
    }
    (found != text).then_some(found)
}

impl Reference {
    /// What it stands for at one value of its axis: the value itself, the name of a table, or a field of it. Reports a
    /// field that the value does not have.
    pub(super) fn target<'a>(
        &self,
        value: &'a AxisValue,
        axes: &Axes<'_>,
        report: &mut Report,
    ) -> Option<&'a Node> {
        if let Some(found) = self.lookup(value) {
            return Some(found);
        }
        // That no value has it was reported.
        if report.is_spoilt(self.span) {
            return None;
        }
        let name = axes.name(self.axis);
        let path = self.fields.join(".");
        if axes
            .values(self.axis)
            .iter()
            .all(|value| self.lookup(value).is_none())
        {
            let fields = value.node.as_table().into_iter().flatten();
            let help = match report.suggest(&self.fields[0], fields.map(|(name, _)| name.as_str())) {
                Some(help) => help,
                None => "only values that are tables have fields".to_owned(),
            };
            let message = format!("no value of axis `{name}` has a field `{}`", clip(&path));
            report
                .error(self.span, message)
                .label(axes.key(self.axis), "the axis")
                .help(help);
            report.spoil(self.span);
            return None;
        }
        let help = match value.node.as_table() {
            Some(table) => report.suggest(&self.fields[0], table.keys().map(String::as_str)),
            None => Some("only tables have fields".to_owned()),
        };
        report
            .error(
                self.span,
                format!(
                    "the value `{}` of axis `{name}` has no field `{}`",
                    value.label,
                    clip(&path)
                ),
            )
            .label(value.place(), "this value")
            .help
            .clone_from(&help);
        None
    }

    /// The same without a report.
    pub(super) fn lookup<'a>(&self, value: &'a AxisValue) -> Option<&'a Node> {
        if self.fields.is_empty() {
            return Some(match value.node.as_table().and_then(|table| table.get("name")) {
                Some(entry) => &entry.node,
                None => &value.node,
            });
        }
        let mut node = &value.node;
        for field in &self.fields {
            node = &node.as_table()?.get(field)?.node;
        }
        Some(node)
    }
}

/// Refuses a key that refers to an axis: it would stand as it is written.
fn refuse_in_key(key: &str, span: Span, axes: &Axes<'_>, report: &mut Report) {
    if report.is_spoilt(span) {
        return;
    }
    let refers = |name: &str| key.contains(&format!("${{{name}}}")) || key.contains(&format!("${{{name}."));
    if let Some(name) = axes.names.iter().find(|name| refers(name)) {
        report.spoil(span);
        report
            .error(
                span,
                format!(
                    "`${{{name}}}` is filled in in values, and not in keys: `{}`",
                    clip(key)
                ),
            )
            .help("the same key has to do for every cell; let its value vary");
    }
}

/// A value with references in it, ready to be filled in.
#[derive(Clone, Debug)]
pub(super) enum Template {
    /// No references below.
    Constant(Value),
    /// A text that is one reference: the value keeps its type.
    Whole(Reference, Span),
    /// A text with references in it.
    Text(Vec<Piece>, Span),
    Array(Vec<Template>),
    Table(Vec<(String, Template)>),
}

impl Template {
    /// Compiles a value. Mistakes are reported, and the texts that hold them spoilt.
    pub(super) fn compile(node: &Node, axes: &Axes<'_>, report: &mut Report) -> Self {
        match &node.data {
            Data::Text(text) if text.contains("${") => {
                match parse(text, node.span, Scope::Parameters, axes, report) {
                    None => {
                        report.spoil(node.span);
                        Self::Constant(Value::Null)
                    }
                    Some(mut pieces) => match (pieces.pop(), pieces.is_empty()) {
                        (Some(Piece::Axis(reference)), true) => Self::Whole(reference, node.span),
                        (Some(Piece::Literal(text)), true) => Self::Constant(text.into()),
                        (last, _) => {
                            pieces.extend(last);
                            Self::Text(pieces, node.span)
                        }
                    },
                }
            }
            Data::Text(text) => {
                warn_of_marks(text, node.span, Scope::Parameters, axes, report);
                Self::Constant(node.to_value())
            }
            Data::Array(items) => {
                let items: Vec<Self> = items
                    .iter()
                    .map(|item| Self::compile(item, axes, report))
                    .collect();
                if items.iter().all(Self::is_constant) {
                    Self::Constant(items.into_iter().filter_map(Self::into_constant).collect())
                } else {
                    Self::Array(items)
                }
            }
            Data::Table(table) => {
                for (key, entry) in table {
                    refuse_in_key(key, entry.key, axes, report);
                }
                let fields: Vec<(String, Self)> = table
                    .iter()
                    .map(|(key, entry)| (key.clone(), Self::compile(&entry.node, axes, report)))
                    .collect();
                if fields.iter().all(|(_, field)| field.is_constant()) {
                    let fields = fields
                        .into_iter()
                        .filter_map(|(key, field)| Some((key, field.into_constant()?)));
                    Self::Constant(Value::Object(fields.collect()))
                } else {
                    Self::Table(fields)
                }
            }
            _ => Self::Constant(node.to_value()),
        }
    }

    fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }

    fn into_constant(self) -> Option<Value> {
        match self {
            Self::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Adds the axes that it refers to.
    pub(super) fn axes(&self, found: &mut AxisSet) {
        match self {
            Self::Constant(_) => {}
            Self::Whole(reference, _) => found.insert(reference.axis),
            Self::Text(pieces, _) => piece_axes(pieces, found),
            Self::Array(items) => items.iter().for_each(|item| item.axes(found)),
            Self::Table(fields) => fields.iter().for_each(|(_, field)| field.axes(found)),
        }
    }

    /// Fills in the axes; `at` gives the value of each. A text that cannot be filled in is reported and spoilt.
    pub(super) fn fill<'a>(
        &self,
        at: &impl Fn(usize) -> &'a AxisValue,
        axes: &Axes<'_>,
        report: &mut Report,
    ) -> Value {
        match self {
            Self::Constant(value) => value.clone(),
            Self::Whole(reference, span) => {
                if let Some(node) = reference.target(at(reference.axis), axes, report) {
                    node.to_value()
                } else {
                    report.spoil(*span);
                    Value::Null
                }
            }
            Self::Text(pieces, span) => {
                if let Some(text) = interpolate(pieces, ("", ""), at, axes, report) {
                    text.into()
                } else {
                    report.spoil(*span);
                    Value::Null
                }
            }
            Self::Array(items) => items.iter().map(|item| item.fill(at, axes, report)).collect(),
            Self::Table(fields) => {
                let mut filled = Map::new();
                for (key, field) in fields {
                    filled.insert(key.clone(), field.fill(at, axes, report));
                }
                Value::Object(filled)
            }
        }
    }
}

/// Adds the axes that a text refers to.
pub(super) fn piece_axes(pieces: &[Piece], found: &mut AxisSet) {
    for piece in pieces {
        if let Piece::Axis(reference) = piece {
            found.insert(reference.axis);
        }
    }
}

/// The text with everything filled in; `names` are those of the pipeline and the stage.
pub(super) fn interpolate<'a>(
    pieces: &[Piece],
    (pipeline, stage): (&str, &str),
    at: &impl Fn(usize) -> &'a AxisValue,
    axes: &Axes<'_>,
    report: &mut Report,
) -> Option<String> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Stage => text.push_str(stage),
            Piece::Pipeline => text.push_str(pipeline),
            Piece::Axis(reference) => {
                let node = reference.target(at(reference.axis), axes, report)?;
                match node.label() {
                    Some(Label::Text(part)) => text.push_str(&part),
                    Some(label) => text.push_str(&label.to_string()),
                    None => {
                        let found = node.described();
                        report
                            .error(reference.span, format!("{found} cannot be part of a text"))
                            .label(node.span, "this value");
                        return None;
                    }
                }
                if text.len() > TEXT {
                    report.error(
                        reference.span,
                        format!("the text becomes longer than {TEXT} bytes"),
                    );
                    return None;
                }
            }
        }
    }
    Some(text)
}

/// Warns of a text that holds the name of an axis in another language's marks: it is not filled in.
pub(super) fn warn_of_marks(text: &str, span: Span, scope: Scope, axes: &Axes<'_>, report: &mut Report) {
    if let Some(meant) = marked(text, scope, axes) {
        report
            .warning(
                span,
                "the text is taken as it stands: what is filled in is written `${…}`",
            )
            .help(format!("did you mean `{}`?", quoted(&meant)));
    }
}

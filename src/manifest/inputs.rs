//! The forms that an input is written in.

use std::sync::Arc;

use indexmap::IndexMap;
use provenir_api::schema::nearest;

use super::diagnostic::Report;
use super::expect::{expect_label, expect_table, expect_text, known_keys};
use super::model::{Axis, InputDecl, InputItem, Spanned};
use super::node::{Data, Entry, Node, clip, quoted};
use super::source::Span;

/// Reads what is wired to a port: `"stage"`, `"stage.port"`, `{ stage = …, port = …, at = {…}, as = … }`, or a list of
/// those. Items with a problem are left out.
pub(crate) fn read_input(
    port: &str,
    entry: &Entry,
    axes: &IndexMap<Arc<str>, Axis>,
    report: &mut Report,
) -> InputDecl {
    let (list, nodes) = match &entry.node.data {
        Data::Array(items) => (true, items.as_slice()),
        _ => (false, std::slice::from_ref(&entry.node)),
    };
    if nodes.is_empty() {
        report
            .error(entry.node.span, format!("input `{}` unites no stage", clip(port)))
            .help("name at least one stage, or leave the input out");
    }
    let mut items = Vec::new();
    for node in nodes {
        items.extend(read_item(node, axes, report));
    }
    InputDecl {
        port: Spanned::new(port.to_owned(), entry.key),
        span: entry.node.span,
        list,
        alone: nodes.len() == 1,
        items,
    }
}

fn read_item(node: &Node, axes: &IndexMap<Arc<str>, Axis>, report: &mut Report) -> Option<InputItem> {
    const LENGTH: usize = 100;
    if let Some(text) = node.as_text() {
        if let Some(text) = foreign(text, node.span, axes, report) {
            // What was meant is known, and what it lacks was reported.
            let (stage, port) = reference(&text, node.span, report);
            return Some(InputItem {
                span: node.span,
                stage,
                port,
                at: Vec::new(),
                name: None,
            });
        }
        let (stage, port) = reference(text, node.span, report);
        return Some(InputItem {
            span: node.span,
            stage,
            port,
            at: Vec::new(),
            name: None,
        });
    }
    if !matches!(node.data, Data::Invalid | Data::Table(_)) {
        report.error(
            node.span,
            format!(
                "an input is \"stage\", \"stage.port\", a table or a list of those, not {}",
                node.described()
            ),
        );
        return None;
    }
    let table = expect_table(node, "an input", report)?;
    let meant = known_keys(table, "key of an input", &["stage", "port", "at", "as"], report);
    let Some(entry) = table.get("stage") else {
        if !meant.contains(&"stage") {
            report
                .error(node.span, "the input does not name its `stage`")
                .help("`{ stage = \"STAGE\", … }`");
        }
        return None;
    };
    let text = expect_text(&entry.node, "`stage`", report)?;
    let (stage, mut port) = reference(text, entry.node.span, report);
    if let Some(entry) = table.get("port") {
        let text = expect_text(&entry.node, "`port`", report)?;
        if port.is_some() {
            report.error(entry.node.span, "the input names its port twice");
        }
        port = Some(Spanned::new(text.to_owned(), entry.node.span));
    }
    let mut at = Vec::new();
    if let Some(entry) = table.get("at")
        && let Some(table) = expect_table(&entry.node, "`at`", report)
    {
        for (axis, entry) in table {
            if let Some(label) = expect_label(&entry.node, report) {
                at.push((
                    Spanned::new(axis.clone(), entry.key),
                    Spanned::new(label, entry.node.span),
                ));
            }
        }
    }
    let mut name = None;
    if let Some(entry) = table.get("as")
        && let Some(text) = expect_text(&entry.node, "`as`", report)
    {
        if text.is_empty() || text.len() > LENGTH || text.chars().any(char::is_control) {
            report.error(
                entry.node.span,
                format!("the name of a source has 1 to {LENGTH} bytes and no control characters"),
            );
        }
        name = Some(Spanned::new(text.to_owned(), entry.node.span));
    }
    Some(InputItem {
        span: node.span,
        stage,
        port,
        at,
        name,
    })
}

/// Reports what people write of inputs elsewhere: `stage[axis=value]`, which names cells on the command line, and
/// `stage as name`. Gives the stage, and the port if there is one.
fn foreign(text: &str, span: Span, axes: &IndexMap<Arc<str>, Axis>, report: &mut Report) -> Option<String> {
    if let Some((stage, name)) = text.split_once(" as ") {
        let bare = |text: &'_ str| text.trim().trim_matches(['"', '\'']).to_owned();
        let (stage, name) = (bare(stage), bare(name));
        report
            .error(span, format!("`{}` names no stage", clip(text)))
            .help(format!(
                "a name is given in a table: `{{ stage = {}, as = {} }}`",
                quoted(&stage),
                quoted(&name)
            ));
        return Some(stage);
    }
    let (stage, rest) = text.split_once('[')?;
    let (slice, port) = rest.rsplit_once(']').unwrap_or((rest, ""));
    let stage = format!("{}{port}", stage.trim().trim_matches(['"', '\'']));
    let mut said = Vec::new();
    let mut fields = Vec::new();
    for part in slice.split(',').filter(|part| !part.trim().is_empty()) {
        let (axis, value) = part.split_once('=').unwrap_or((part, ""));
        let (axis, value) = (axis.trim(), value.trim().trim_matches(['"', '\'']));
        let near = nearest(axis, axes.keys().map(AsRef::as_ref));
        let Some(known) = near.and_then(|near| axes.get(near)) else {
            said.push(format!("there is no axis `{}`", clip(axis)));
            fields.push(format!("{} = {}", clip(axis), clip(value)));
            continue;
        };
        let axis = near.unwrap_or(axis);
        let labels = || known.values.iter().map(|value| &value.label);
        let texts: Vec<String> = labels().map(ToString::to_string).collect();
        let number = value.parse().ok().and_then(provenir_api::Label::number);
        let found = texts
            .iter()
            .position(|text| text == value)
            .or_else(|| labels().position(|label| Some(label) == number.as_ref()))
            .or_else(|| {
                said.push(format!("axis `{axis}` has no value `{}`", clip(value)));
                let near = nearest(value, texts.iter().map(String::as_str))?;
                texts.iter().position(|text| text == near)
            });
        let written = match found.and_then(|place| labels().nth(place)) {
            Some(provenir_api::Label::Text(text)) => quoted(text),
            Some(label) => label.to_string(),
            None => "VALUE".to_owned(),
        };
        fields.push(format!("{axis} = {written}"));
    }
    said.push(format!("`{}` names no stage", clip(text)));
    report.error(span, said.join("; ")).help(format!(
        "a slice is a table: `{{ stage = {}, at = {{ {} }} }}`",
        quoted(&stage),
        fields.join(", ")
    ));
    Some(stage)
}

/// Splits `stage` or `stage.port`.
fn reference(text: &str, span: Span, report: &mut Report) -> (Spanned<String>, Option<Spanned<String>>) {
    match text.split_once('.') {
        None => (Spanned::new(text.to_owned(), span), None),
        Some((stage, port)) => {
            // In a plain string every character stands for itself, after the opening quote.
            let inner = report.sources.slice(span);
            let plain = inner.len() == text.len() + 2;
            let place = |offset: usize, length: usize| {
                if plain {
                    span.part(offset + 1, length)
                } else {
                    span
                }
            };
            (
                Spanned::new(stage.to_owned(), place(0, stage.len())),
                Some(Spanned::new(port.to_owned(), place(stage.len() + 1, port.len()))),
            )
        }
    }
}

//! From merged TOML to a [`Manifest`]: known keys, right types, well-formed names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;
use provenir_api::Label;

use super::alike::{alike, apart};
use super::diagnostic::Report;
use super::expect::{
    check_name, expect_array, expect_label, expect_table, expect_text, is_unseen, known_keys, named,
    optional_table,
};
use super::inputs::read_input;
use super::limits::{read_attempts, read_resources};
use super::model::{Axis, AxisValue, Manifest, Override, Params, PublishDecl, Selector, Spanned, StageDecl};
use super::node::{Data, Entry, Node, Table, clip};
use super::source::Span;
use crate::number::grouped;

/// Most stages of a manifest.
const STAGES: usize = 100_000;
/// Longest label of an axis value, in bytes.
const LABEL: usize = 200;
/// What a key of a stage is called.
pub(crate) const STAGE_KEY: &str = "key of a stage";
/// Names that `${…}` gives another meaning, or that the column of a union has.
const RESERVED: [&str; 3] = ["stage", "pipeline", "source"];

/// Reads the root table of a manifest, after everything was merged into it. `root` is the place of the whole.
pub(crate) fn read_manifest(table: &Table, root: Span, report: &mut Report) -> Manifest {
    const KEYS: [&str; 7] = [
        "format", "extends", "pipeline", "axes", "exclude", "stages", "profiles",
    ];
    let meant = known_keys(table, "key of a manifest", &KEYS, report);
    let name = if meant.contains(&"pipeline") {
        String::new()
    } else {
        read_pipeline(table, root, report)
    };
    let mut axes = IndexMap::new();
    let mut lacks_axes = meant.contains(&"axes") || table.contains_key("axes");
    if let Some(entry) = table.get("axes")
        && let Some(declared) = expect_table(&entry.node, "`axes`", report)
    {
        lacks_axes = false;
        for (name, entry) in declared {
            check_name(name, entry.key, "axis", report);
            if RESERVED.contains(&name.as_str()) {
                report
                    .error(entry.key, format!("an axis cannot be called `{name}`"))
                    .help(format!("`{name}` has a meaning of its own; rename the axis"));
            }
            axes.insert(Arc::from(name.as_str()), read_axis(name, entry, report));
        }
    }
    let mut stages = IndexMap::new();
    match table.get("stages") {
        Some(entry) => {
            if let Some(declared) = expect_table(&entry.node, "`stages`", report) {
                if declared.len() > STAGES {
                    let (count, limit) = (grouped(declared.len()), grouped(STAGES));
                    report.error(
                        entry.key,
                        format!("{count} stages are more than the limit of {limit}"),
                    );
                }
                for (name, entry) in declared.iter().take(STAGES) {
                    check_name(name, entry.key, "stage", report);
                    let stage = read_stage(name, entry, &axes, report);
                    let stage = stage.unwrap_or_else(|| StageDecl::unread(entry.key));
                    stages.insert(Arc::from(name.as_str()), stage);
                }
                if declared.is_empty() {
                    report.error(entry.key, "a pipeline needs at least one stage");
                }
            }
        }
        None if meant.contains(&"stages") => {}
        None => {
            report
                .error(root, "the manifest declares no stages")
                .help("add a table `[stages.NAME]` with a `kind`");
        }
    }
    Manifest {
        name,
        axes,
        exclude: read_selectors(table.get("exclude"), "exclude", report),
        stages,
        only: Vec::new(),
        dormant: Vec::new(),
        lacks_axes,
    }
}

fn read_pipeline(table: &Table, root: Span, report: &mut Report) -> String {
    const HELP: &str = "add `[pipeline]` with `name = \"…\"`";
    let Some(entry) = table.get("pipeline") else {
        report.error(root, "the pipeline has no name").help(HELP);
        return String::new();
    };
    let Some(pipeline) = expect_table(&entry.node, "`pipeline`", report) else {
        return String::new();
    };
    let meant = known_keys(pipeline, "key of `pipeline`", &["name", "description"], report);
    if let Some(description) = pipeline.get("description") {
        expect_text(&description.node, "`description`", report);
    }
    let Some(name) = pipeline.get("name") else {
        if meant.contains(&"name") {
            return String::new();
        }
        report.error(entry.key, "the pipeline has no name").help(HELP);
        return String::new();
    };
    match expect_text(&name.node, "the pipeline's name", report) {
        Some(text) => {
            check_name(text, name.node.span, "pipeline", report);
            text.to_owned()
        }
        None => String::new(),
    }
}

/// Reads the values of an axis. An axis with a problem keeps the values that have none.
pub(crate) fn read_axis(name: &str, entry: &Entry, report: &mut Report) -> Axis {
    let mut values: Vec<AxisValue> = Vec::new();
    let mut places = BTreeMap::<Label, Span>::new();
    if let Data::Table(_) = &entry.node.data {
        report
            .error(
                entry.node.span,
                format!("axis `{name}` must be an array, not a table"),
            )
            .help(format!(
                "write its values one by one, `{name} = [1, 2, 3]`; a value that is a table has a `name`"
            ));
    } else if let Some(items) = expect_array(&entry.node, &format!("axis `{name}`"), report) {
        if items.is_empty() {
            report
                .error(entry.node.span, format!("axis `{name}` is empty"))
                .help("an axis needs at least one value");
        }
        for item in items {
            let Some(label) = axis_label(item, report) else {
                continue;
            };
            if let Some(earlier) = places.get(&label) {
                let earlier = *earlier;
                let twice = report
                    .error(item.span, format!("axis `{name}` has the value `{label}` twice"))
                    .label(earlier, "here first");
                if label.as_number().is_some() {
                    twice.help("values that are equal by number are one value");
                }
                continue;
            }
            places.insert(label.clone(), item.span);
            values.push(AxisValue {
                label,
                node: item.clone(),
            });
        }
    }
    let labels: Vec<String> = values.iter().map(|value| value.label.to_string()).collect();
    let mut written = BTreeMap::<&str, &Label>::new();
    for (value, text) in values.iter().zip(&labels) {
        if let Some(earlier) = written.insert(text, &value.label) {
            let message = format!("axis `{name}` has `{}` as a text and as what is none", clip(text));
            report
                .error(places[&value.label], message)
                .label(places[earlier], "the other one")
                .help("their cells would have one name: write the value in one way, or as a table with a `name`");
        }
    }
    for (first, second) in alike(labels.iter().map(String::as_str)) {
        let what = format!("axis `{name}` has two values that look alike");
        let places = (places[&values[first].label], places[&values[second].label]);
        report_alike(&what, (&labels[first], &labels[second]), places, report);
    }
    Axis {
        key: entry.key,
        values,
        inactive: BTreeSet::new(),
        replaced: false,
    }
}

/// Reports two texts that look alike.
pub(crate) fn report_alike(
    what: &str,
    (first, second): (&str, &str),
    (earlier, place): (Span, Span),
    report: &mut Report,
) {
    report
        .error(place, format!("{what}: `{}` and `{}`", clip(first), clip(second)))
        .label(earlier, "the other one")
        .help(format!(
            "they differ in {}; write one of them everywhere, or names that people can tell apart",
            apart(first, second)
        ));
}

/// The label of an axis value: itself, or the `name` of a table.
fn axis_label(item: &Node, report: &mut Report) -> Option<Label> {
    let named = match &item.data {
        Data::Invalid => return None,
        Data::Array(_) => {
            report.error(
                item.span,
                "an axis value is a text, a number, a truth value or a table, not an array",
            );
            return None;
        }
        Data::Table(table) => {
            if let Some(entry) = table.get("name") {
                &entry.node
            } else {
                report
                    .error(item.span, "a table used as axis value needs a `name`")
                    .help("the name is its label: `{ name = \"…\", … }`");
                return None;
            }
        }
        _ => item,
    };
    if std::ptr::eq(named, item) {
        check_label(named, report)
    } else {
        expect_text(named, "the name of an axis value", report)?;
        check_label(named, report)
    }
}

fn check_label(node: &Node, report: &mut Report) -> Option<Label> {
    if let Some(text) = node.as_text() {
        if text.is_empty() {
            report.error(node.span, "an axis value must not be empty");
            return None;
        }
        if text.len() > LABEL {
            report.error(node.span, format!("an axis value is longer than {LABEL} bytes"));
            return None;
        }
        // It becomes part of names of cells and files, which people read.
        if let Some(unseen) = text.chars().find(|letter| is_unseen(*letter)) {
            report.error(
                node.span,
                format!("an axis value must not hold {}", named(unseen)),
            );
            return None;
        }
    }
    node.label()
}

fn read_stage(
    name: &str,
    entry: &Entry,
    axes: &IndexMap<Arc<str>, Axis>,
    report: &mut Report,
) -> Option<StageDecl> {
    const KEYS: [&str; 11] = [
        "kind",
        "description",
        "inputs",
        "params",
        "over",
        "override",
        "exclude",
        "publish",
        "resources",
        "timeout",
        "retries",
    ];
    let before = report.errors();
    let table = expect_table(&entry.node, &format!("stage `{}`", clip(name)), report)?;
    let meant = known_keys(table, STAGE_KEY, &KEYS, report);
    if let Some(description) = table.get("description") {
        expect_text(&description.node, "`description`", report);
    }
    let kind = if let Some(kind) = table.get("kind") {
        expect_text(&kind.node, "`kind`", report).map(|text| Spanned::new(text.to_owned(), kind.node.span))
    } else {
        if !meant.contains(&"kind") {
            report
                .error(entry.key, format!("stage `{}` has no kind", clip(name)))
                .help("add `kind = \"…\"`");
        }
        None
    };
    let mut inputs = Vec::new();
    if let Some(declared) = optional_table(table, "inputs", report) {
        for (port, entry) in declared {
            inputs.push(read_input(port, entry, axes, report));
        }
    }
    let publish = optional_table(table, "publish", report);
    let publish = publish.map_or(Vec::new(), |declared| read_publish(declared, report));
    let params = read_params(table, report);
    let over = read_names(table.get("over"), "over", report);
    let overrides = read_overrides(table.get("override"), report);
    let exclude = read_selectors(table.get("exclude"), "exclude", report);
    let resources = read_resources(table, report);
    let attempts = read_attempts(table, report);
    let lacks = |key: &'static str| {
        let unread = table
            .get(key)
            .is_some_and(|entry| entry.node.as_table().is_none());
        unread || meant.contains(&key)
    };
    Some(StageDecl {
        key: entry.key,
        kind,
        inputs,
        params,
        over,
        overrides,
        exclude,
        publish,
        resources,
        attempts,
        dormant: (Vec::new(), Vec::new()),
        // Of a value that was reported when it was read, nothing follows.
        broken: report.errors() > before
            || table
                .iter()
                .any(|(key, entry)| !matches!(key.as_str(), "params" | "override") && entry.node.is_spoilt()),
        strays: table
            .iter()
            .filter(|(key, _)| !KEYS.contains(&key.as_str()))
            .map(|(key, entry)| Spanned::new(key.clone(), entry.key))
            .collect(),
        lacks_inputs: lacks("inputs"),
        lacks_params: lacks("params"),
    })
}

/// Reads the paths of named copies, by port.
pub(super) fn read_publish(declared: &Table, report: &mut Report) -> Vec<PublishDecl> {
    let mut publish = Vec::new();
    for (port, entry) in declared {
        let what = format!("the path of `{}`", clip(port));
        if let Some(path) = expect_text(&entry.node, &what, report) {
            publish.push(PublishDecl {
                port: Spanned::new(port.clone(), entry.key),
                path: Spanned::new(path.to_owned(), entry.node.span),
            });
        }
    }
    publish
}

fn read_params(table: &Table, report: &mut Report) -> Option<Params> {
    let entry = table.get("params")?;
    expect_table(&entry.node, "`params`", report)?;
    Some(Params {
        key: entry.key,
        node: entry.node.clone(),
    })
}

fn read_overrides(entry: Option<&Entry>, report: &mut Report) -> Vec<Override> {
    let Some(entry) = entry else { return Vec::new() };
    let Some(items) = expect_array(&entry.node, "`override`", report) else {
        return Vec::new();
    };
    let mut overrides = Vec::new();
    for item in items {
        let Some(table) = expect_table(item, "an override", report) else {
            continue;
        };
        let meant = known_keys(table, "key of an override", &["where", "params"], report);
        let laid = is_laid(item, table);
        let matching = if let Some(entry) = table.get("where") {
            if entry.node.as_table().is_some_and(Table::is_empty) && !laid {
                report
                    .error(entry.node.span, "an empty `where` leaves nothing out: the override would win everywhere")
                    .help("put its parameters into the stage's `params`, or say where it wins: `where = { AXIS = VALUE }`");
            }
            read_selector(&entry.node, "where", true, report)
        } else {
            if !meant.contains(&"where") {
                report
                    .error(item.span, "an override needs a `where`")
                    .help("`where = { AXIS = VALUE }` says at which points of the axes its `params` win");
            }
            None
        };
        let params = read_params(table, report);
        if params.is_none() && !table.contains_key("params") && !meant.contains(&"params") {
            report.error(item.span, "an override needs `params`");
        }
        if let (Some(matching), Some(params)) = (matching, params) {
            overrides.push(Override {
                laid,
                matching,
                params,
            });
        }
    }
    overrides
}

/// Whether an override is what [`lay_params`](super::layers::lay_params) makes: it and its `where` have one place. In a text
/// the one lies within the other.
pub(super) fn is_laid(item: &Node, table: &Table) -> bool {
    table
        .get("where")
        .is_some_and(|matching| matching.node.span == item.span)
}

/// Reads a list of selectors, such as `exclude`.
pub(super) fn read_selectors(entry: Option<&Entry>, what: &str, report: &mut Report) -> Vec<Selector> {
    let Some(entry) = entry else { return Vec::new() };
    let Some(items) = expect_array(&entry.node, &format!("`{what}`"), report) else {
        return Vec::new();
    };
    let mut selectors = Vec::new();
    for item in items {
        if let Some(selector) = read_selector(item, what, false, report) {
            selectors.push(selector);
        }
    }
    selectors
}

fn read_selector(node: &Node, what: &str, may_be_empty: bool, report: &mut Report) -> Option<Selector> {
    let subject = if may_be_empty {
        format!("`{what}`")
    } else {
        format!("an entry of `{what}`")
    };
    let table = expect_table(node, &subject, report)?;
    if table.is_empty() && !may_be_empty {
        report
            .error(node.span, format!("{subject} names at least one axis"))
            .help("`{ AXIS = VALUE }` or `{ AXIS = [VALUE, VALUE] }`");
        return None;
    }
    let mut axes = Vec::new();
    for (axis, entry) in table {
        let nodes = match &entry.node.data {
            Data::Array(items) => items.as_slice(),
            _ => std::slice::from_ref(&entry.node),
        };
        if nodes.is_empty() {
            report
                .error(
                    entry.node.span,
                    format!("`{}` is given no value, so that nothing matches", clip(axis)),
                )
                .help("name at least one value, or leave the axis out");
        }
        let mut labels = Vec::new();
        for node in nodes {
            if let Some(label) = expect_label(node, report) {
                labels.push(Spanned::new(label, node.span));
            }
        }
        axes.push((Spanned::new(axis.clone(), entry.key), labels));
    }
    Some(Selector {
        span: node.span,
        axes,
    })
}

fn read_names(entry: Option<&Entry>, what: &str, report: &mut Report) -> Vec<Spanned<String>> {
    let Some(entry) = entry else { return Vec::new() };
    let Some(items) = expect_array(&entry.node, &format!("`{what}`"), report) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for item in items {
        if let Some(text) = expect_text(item, &format!("an entry of `{what}`"), report) {
            names.push(Spanned::new(text.to_owned(), item.span));
        }
    }
    names
}

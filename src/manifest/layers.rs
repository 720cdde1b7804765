//! What is laid over a manifest: itself over what it extends, then a profile, then the command line.

use std::collections::BTreeMap;

use provenir_api::Label;

use super::diagnostic::Report;
use super::load::{entry, merge};
use super::model::{Manifest, Spanned};
use super::node::{Data, Entry, Node, Table, clip, parse_value};
use super::read::{expect_array, expect_table, expect_text, known_keys, read_manifest};
use super::source::{Origin, Span};

/// What the command line changes in a manifest.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--profile NAME`.
    pub profile: Option<String>,
    /// `--axis NAME=VALUE,VALUE`: values that replace an axis'.
    pub axes: Vec<String>,
    /// `--set PATH=VALUE`: a value at a dotted path of the manifest. Parameters set here win over every override.
    pub set: Vec<String>,
    /// `--only STAGE`: these stages and their ancestors; all where there are none.
    pub only: Vec<String>,
}

/// Labels of each axis before anything replaced its values.
type Known = BTreeMap<String, Vec<Label>>;

/// Merges `layers` (the deepest base first), the profile and the command line; gives the manifest and the merged TOML.
pub(super) fn apply(
    layers: Vec<Table>,
    root: Span,
    overrides: &Overrides,
    report: &mut Report,
) -> (Manifest, Table) {
    let mut table = Table::new();
    let mut known = Known::new();
    for layer in layers {
        remember(&layer, &mut known);
        merge(&mut table, layer);
    }
    table.shift_remove("extends");
    let profiles = table.shift_remove("profiles");
    apply_profiles(&mut table, profiles, overrides, &mut known, report);
    for option in &overrides.set {
        apply_set(&mut table, option, report);
    }
    let mut given = BTreeMap::new();
    for option in &overrides.axes {
        apply_axis(&mut table, option, &mut given, report);
    }
    remember(&table, &mut known);
    let mut manifest = read_manifest(&table, root, report);
    for (name, axis) in &mut manifest.axes {
        let mut labels = known.remove(&**name).unwrap_or_default();
        labels.retain(|label| axis.values.iter().all(|value| value.label != *label));
        labels.sort();
        labels.dedup();
        axis.inactive = labels;
    }
    for stage in &overrides.only {
        let (span, text) = option_source("--only ", stage, report);
        let span = span.part("--only ".len(), text.len());
        manifest.only.push(Spanned::new(stage.clone(), span));
    }
    (manifest, table)
}

/// Notes the labels of a layer's axes.
fn remember(layer: &Table, known: &mut Known) {
    for (name, entry) in layer
        .get("axes")
        .and_then(|axes| axes.node.as_table())
        .into_iter()
        .flatten()
    {
        if let Data::Array(items) = &entry.node.data {
            let labels = items.iter().filter_map(|item| value_name(item).label());
            known.entry(name.clone()).or_default().extend(labels);
        }
    }
}

/// What names an axis value: the `name` of a table, or itself.
fn value_name(item: &Node) -> &Node {
    item.as_table()
        .and_then(|table| table.get("name"))
        .map_or(item, |entry| &entry.node)
}

fn apply_profiles(
    table: &mut Table,
    profiles: Option<Entry>,
    overrides: &Overrides,
    known: &mut Known,
    report: &mut Report,
) {
    let empty = Table::new();
    let profiles = profiles.as_ref();
    let declared = profiles
        .and_then(|entry| expect_table(&entry.node, "`profiles`", report))
        .unwrap_or(&empty);
    let mut chosen = None;
    for (name, entry) in declared {
        let what = format!("profile `{}`", clip(name));
        if let Some(profile) = expect_table(&entry.node, &what, report) {
            remember(profile, known);
            check_profile(table, profile, report);
            if overrides.profile.as_ref() == Some(name) {
                chosen = Some(profile);
            }
        }
    }
    match (chosen, &overrides.profile) {
        (Some(profile), _) => apply_profile(table, profile, report),
        (None, Some(name)) if !declared.contains_key(name) => {
            let (span, _) = option_source("--profile ", name, report);
            let help = match report.suggest(name, declared.keys().map(String::as_str)) {
                Some(help) => help,
                None => "the manifest declares no profiles".to_owned(),
            };
            report
                .error(span, format!("the manifest has no profile `{}`", clip(name)))
                .help(help);
        }
        _ => {}
    }
}

/// Checks that what a profile names is there.
fn check_profile(table: &Table, profile: &Table, report: &mut Report) {
    const KEYS: [&str; 5] = ["description", "axes", "params", "exclude", "publish"];
    known_keys(profile, "key of a profile", &KEYS, report);
    if let Some(description) = profile.get("description") {
        expect_text(&description.node, "`description`", report);
    }
    if let Some(entry) = profile.get("exclude") {
        expect_array(&entry.node, "`exclude`", report);
    }
    for (key, what, declared) in [
        ("axes", "axis", child(table, "axes")),
        ("params", "stage", child(table, "stages")),
        ("publish", "stage", child(table, "stages")),
    ] {
        let Some(entry) = profile.get(key) else { continue };
        let Some(changes) = expect_table(&entry.node, &format!("`{key}`"), report) else {
            continue;
        };
        for (name, entry) in changes {
            match declared {
                Some(declared) if declared.contains_key(name) => {}
                _ => unknown(name, entry.key, what, declared, report),
            }
            if key == "axes" {
                expect_array(&entry.node, &format!("axis `{}`", clip(name)), report);
            } else {
                expect_table(&entry.node, &format!("`{key}` of stage `{}`", clip(name)), report);
            }
        }
    }
}

fn apply_profile(table: &mut Table, profile: &Table, report: &mut Report) {
    for (name, entry) in child(profile, "axes").into_iter().flatten() {
        if let Data::Array(values) = &entry.node.data {
            replace_axis(table, name, entry.key, values.clone(), entry.node.span, report);
        }
    }
    for (name, entry) in child(profile, "params").into_iter().flatten() {
        if entry.node.as_table().is_some() {
            lay_params(table, name, entry.clone());
        }
    }
    for (name, entry) in child(profile, "publish").into_iter().flatten() {
        if let Some(stage) = stage_mut(table, name) {
            super::node::merge_entry(stage, "publish".to_owned(), entry.clone());
        }
    }
    if let Some(entry) = profile.get("exclude")
        && let Data::Array(more) = &entry.node.data
    {
        append(table, "exclude", more.clone(), entry.key);
    }
}

/// Adds parameters that win at every point of a stage's axes.
fn lay_params(table: &mut Table, stage: &str, params: Entry) {
    let span = params.node.span;
    let mut layer = Table::new();
    layer.insert("where".to_owned(), entry(Node::table(Table::new(), span)));
    layer.insert("params".to_owned(), params);
    if let Some(stage) = stage_mut(table, stage) {
        append(stage, "override", vec![Node::table(layer, span)], span);
    }
}

/// Appends to an array, which is made where there is none; what is no array is left for the reader to report.
fn append(table: &mut Table, key: &str, more: Vec<Node>, span: Span) {
    let present = table.entry(key.to_owned()).or_insert_with(|| {
        entry(Node {
            data: Data::Array(Vec::new()),
            span,
        })
    });
    if let Data::Array(items) = &mut present.node.data {
        items.extend(more);
    }
}

/// Replaces the values of a declared axis. A text that is the name of a table among the values stands for that table.
fn replace_axis(
    table: &mut Table,
    name: &str,
    key: Span,
    values: Vec<Node>,
    span: Span,
    report: &mut Report,
) {
    let Some(axis) = table
        .get_mut("axes")
        .and_then(|axes| axes.node.as_table_mut()?.get_mut(name))
    else {
        return;
    };
    let declared: BTreeMap<&str, &Node> = match &axis.node.data {
        Data::Array(items) => items
            .iter()
            .filter(|item| item.as_table().is_some())
            .filter_map(|item| Some((value_name(item).as_text()?, item)))
            .collect(),
        _ => BTreeMap::new(),
    };
    let all_tables =
        matches!(&axis.node.data, Data::Array(items) if !items.is_empty() && items.len() == declared.len());
    let mut replaced = Vec::new();
    for mut value in values {
        if let Some(text) = value.as_text() {
            if let Some(item) = declared.get(text) {
                value.data = item.data.clone();
            } else if all_tables {
                let help = report.suggest(text, declared.keys().copied());
                let message = format!("`{}` is the name of no value of axis `{name}`", clip(text));
                report.error(value.span, message).help.clone_from(&help);
                value.data = Data::Invalid;
            }
        }
        replaced.push(value);
    }
    axis.key = key;
    axis.node = Node {
        data: Data::Array(replaced),
        span,
    };
}

/// `--set stages.policy.params.epochs=50`.
fn apply_set(table: &mut Table, option: &str, report: &mut Report) {
    const OPTION: &str = "--set ";
    let (whole, _) = option_source(OPTION, option, report);
    let Some((path, value)) = option.split_once('=') else {
        report
            .error(whole, "the value is missing")
            .help("`--set PATH=VALUE`, such as `--set stages.policy.params.epochs=50`");
        return;
    };
    let Some(path) = read_path(path, whole, OPTION.len(), report) else {
        return;
    };
    let Some(value) = read_value(value, whole, OPTION.len() + option.len() - value.len(), report) else {
        return;
    };
    let names: Vec<&str> = path.iter().map(|segment| segment.value.as_str()).collect();
    if matches!(names[0], "format" | "extends" | "profiles") {
        let message = format!("`{}` cannot be set on the command line", names[0]);
        report.error(path[0].span, message);
        return;
    }
    if let ["stages", stage, ..] = names.as_slice()
        && stage_mut(table, stage).is_none()
    {
        unknown(stage, path[1].span, "stage", child(table, "stages"), report);
        return;
    }
    if let ["stages", stage, "params", ..] = names.as_slice() {
        let params = nest(&path[3..], value);
        if expect_table(&params, "`params`", report).is_some() {
            let key = path[2].span;
            lay_params(table, stage, Entry { key, node: params });
        }
        return;
    }
    if let ["axes", axis] = names.as_slice() {
        match (
            &child(table, "axes").is_some_and(|axes| axes.contains_key(*axis)),
            &value.data,
        ) {
            (false, _) => unknown(axis, path[1].span, "axis", child(table, "axes"), report),
            (true, Data::Array(values)) => {
                replace_axis(table, axis, path[1].span, values.clone(), value.span, report);
            }
            (true, _) => {
                expect_array(&value, &format!("axis `{axis}`"), report);
            }
        }
        return;
    }
    let mut over = Table::new();
    let node = nest(&path[1..], value);
    let key = path[0].span;
    over.insert(names[0].to_owned(), Entry { key, node });
    merge(table, over);
}

/// `--axis epsilon=0.1,0.2`.
fn apply_axis(table: &mut Table, option: &str, given: &mut BTreeMap<String, Span>, report: &mut Report) {
    const OPTION: &str = "--axis ";
    let (whole, _) = option_source(OPTION, option, report);
    let Some((name, list)) = option.split_once('=') else {
        report
            .error(whole, "the values are missing")
            .help("`--axis NAME=VALUE,VALUE`, such as `--axis epsilon=0.1,0.2`");
        return;
    };
    let key = whole.part(OPTION.len(), name.len());
    let axes = child(table, "axes");
    if !axes.is_some_and(|axes| axes.contains_key(name)) {
        unknown(name, key, "axis", axes, report);
        return;
    }
    if given.insert(name.to_owned(), key).is_some() {
        report
            .error(key, format!("axis `{name}` is given twice"))
            .help("give all its values at once: `--axis NAME=VALUE,VALUE`");
        return;
    }
    let start = OPTION.len() + name.len() + 1;
    let mut values = Vec::new();
    let mut complete = true;
    for range in split_list(list) {
        match read_value(&list[range.clone()], whole, start + range.start, report) {
            Some(value) => values.push(value),
            None => complete = false,
        }
    }
    if complete {
        replace_axis(table, name, key, values, whole.part(start, list.len()), report);
    }
}

/// The parts of a list between the commas that are in no quotes, brackets or braces; none where it is blank.
fn split_list(list: &str) -> Vec<std::ops::Range<usize>> {
    if list.trim().is_empty() {
        return Vec::new();
    }
    let mut parts = Vec::new();
    let (mut start, mut depth, mut quote, mut escaped) = (0, 0_usize, None, false);
    for (offset, char) in list.char_indices() {
        match (quote, char) {
            _ if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if open == char => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(char),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(start..offset);
                start = offset + 1;
            }
            (None, _) => {}
        }
    }
    parts.push(start..list.len());
    parts
}

/// A value of the command line: TOML, or a bare word, which is a text.
fn read_value(text: &str, whole: Span, shift: usize, report: &mut Report) -> Option<Node> {
    let trimmed = text.trim();
    let start = shift + (text.len() - text.trim_start().len());
    let span = whole.part(start, trimmed.len());
    if trimmed.is_empty() {
        report
            .error(whole, "a value is empty")
            .help("an empty text is written `''`");
        return None;
    }
    let toml = toml::de::DeValue::parse(trimmed).is_ok();
    let bare = trimmed
        .starts_with(|first: char| first.is_alphabetic() || matches!(first, '_' | '.' | '/' | '$'))
        && !trimmed.contains(['"', '\'', '=', '[', ']', '\n']);
    if bare && !toml {
        Some(Node::text(trimmed, span))
    } else {
        parse_value(whole.source, start, trimmed, report)
    }
}

fn read_path(path: &str, whole: Span, shift: usize, report: &mut Report) -> Option<Vec<Spanned<String>>> {
    const SEGMENTS: usize = 16;
    let mut segments = Vec::new();
    let mut offset = 0;
    for segment in path.split('.') {
        let span = whole.part(shift + offset, segment.len());
        let bare = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        if segment.is_empty() || !segment.chars().all(bare) || segments.len() == SEGMENTS {
            report
                .error(whole, format!("`{}` is not a path of a manifest", clip(path)))
                .help("a path is names joined by dots, such as `stages.policy.params.epochs`");
            return None;
        }
        segments.push(Spanned::new(segment.to_owned(), span));
        offset += segment.len() + 1;
    }
    Some(segments)
}

/// The value below the tables that a path names.
fn nest(path: &[Spanned<String>], value: Node) -> Node {
    path.iter().rev().fold(value, |node, segment| {
        let mut table = Table::new();
        let span = node.span;
        let key = segment.span;
        table.insert(segment.value.clone(), Entry { key, node });
        Node::table(table, span)
    })
}

/// Adds an option to the sources; gives its whole place and its text.
fn option_source(option: &str, value: &str, report: &mut Report) -> (Span, String) {
    let source = report
        .sources
        .add(Origin::CommandLine, format!("{option}{value}"));
    (report.sources.whole(source), value.to_owned())
}

fn unknown(name: &str, span: Span, what: &str, declared: Option<&Table>, report: &mut Report) {
    let help = declared.and_then(|table| report.suggest(name, table.keys().map(String::as_str)));
    report
        .error(span, format!("there is no {what} `{}`", clip(name)))
        .help
        .clone_from(&help);
}

fn child<'a>(table: &'a Table, key: &str) -> Option<&'a Table> {
    table.get(key)?.node.as_table()
}

fn stage_mut<'a>(table: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    table
        .get_mut("stages")?
        .node
        .as_table_mut()?
        .get_mut(name)?
        .node
        .as_table_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_split_at_commas_that_separate_values() {
        let parts = |list: &str| -> Vec<String> {
            split_list(list)
                .into_iter()
                .map(|range| list[range].to_owned())
                .collect()
        };
        assert_eq!(parts("0.1,0.2"), ["0.1", "0.2"]);
        assert_eq!(parts("\"a,b\",'c,\"',d"), ["\"a,b\"", "'c,\"'", "d"]);
        assert_eq!(parts("{name='x', n=[1,2]},y"), ["{name='x', n=[1,2]}", "y"]);
        assert_eq!(parts("\"\\\",\",x"), ["\"\\\",\"", "x"]);
        assert_eq!(parts(""), Vec::<String>::new());
        assert_eq!(parts("a,"), ["a", ""]);
    }
}

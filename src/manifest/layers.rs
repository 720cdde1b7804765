//! What is laid over a manifest: itself over what it extends, then a profile, then the command line.

use std::collections::{BTreeMap, BTreeSet};

use provenir_api::Label;

use super::alike::alike;
use super::diagnostic::Report;
use super::expect::{expect_array, expect_table, expect_text, known_keys};
use super::load::{entry, merge};
use super::model::{Manifest, Params, Spanned};
use super::node::{Data, Entry, Node, Table, clip};
use super::options::{apply_axis, apply_set, option_source};
use super::read::{is_laid, read_axis, read_manifest, read_publish, read_selectors, report_alike};
use super::source::Span;

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
type Known = BTreeMap<String, BTreeSet<Label>>;

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
    apply_profiles(&mut table, profiles.as_ref(), overrides, &mut known, report);
    for option in &overrides.set {
        apply_set(&mut table, option, report);
    }
    let mut given = BTreeMap::new();
    for option in &overrides.axes {
        apply_axis(&mut table, option, &mut given, report);
    }
    remember(&table, &mut known);
    let mut manifest = read_manifest(&table, root, report);
    let replaced = overrides
        .profile
        .as_ref()
        .and_then(|name| child(child(profiles.as_ref()?.node.as_table()?, name)?, "axes"));
    keep_dormant(&mut manifest, profiles.as_ref(), overrides, report);
    for (name, axis) in &mut manifest.axes {
        let mut labels = known.remove(&**name).unwrap_or_default();
        for value in &axis.values {
            labels.remove(&value.label);
        }
        axis.inactive = labels;
        axis.replaced =
            replaced.is_some_and(|axes| axes.contains_key(&**name)) || given.contains_key(&**name);
    }
    prune(&mut table, &manifest);
    fold(&mut table);
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
    profiles: Option<&Entry>,
    overrides: &Overrides,
    known: &mut Known,
    report: &mut Report,
) {
    let empty = Table::new();
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
    for (first, second) in alike(declared.keys().map(String::as_str)) {
        let (first, second) = (declared.get_index(first), declared.get_index(second));
        if let (Some((first, earlier)), Some((second, later))) = (first, second) {
            let what = "two profiles have names that look alike";
            report_alike(what, (first, second), (earlier.key, later.key), report);
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
    let mut others = profile.clone();
    if let Some(entry) = others.shift_remove("stages") {
        report
            .error(entry.key, "`stages` is no key of a profile")
            .help("a profile names stages below what it changes of them: `params.STAGE` and `publish.STAGE`");
    }
    known_keys(&others, "key of a profile", &KEYS, report);
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
                if let (Some(values), Some(declared)) = (
                    expect_array(&entry.node, &format!("axis `{}`", clip(name)), report),
                    declared,
                ) {
                    check_axis(name, entry, values, declared, report);
                }
            } else {
                expect_table(&entry.node, &format!("`{key}` of stage `{}`", clip(name)), report);
            }
        }
    }
}

/// Checks values that a profile gives an axis.
fn check_axis(name: &str, entry: &Entry, values: &[Node], declared: &Table, report: &mut Report) {
    let Some(axis) = declared.get(name) else { return };
    let mut axes = Table::new();
    axes.insert(name.to_owned(), axis.clone());
    let mut table = Table::new();
    let node = Node::table(axes, axis.node.span);
    table.insert("axes".to_owned(), super::load::entry(node));
    replace_axis(
        &mut table,
        name,
        entry.key,
        values.to_vec(),
        entry.node.span,
        report,
    );
    if let Some(replaced) = child(&table, "axes").and_then(|axes| axes.get(name)) {
        read_axis(name, replaced, report);
    }
}

/// Keeps what profiles say that are not chosen, so that names in it can be checked, too.
fn keep_dormant(
    manifest: &mut Manifest,
    profiles: Option<&Entry>,
    overrides: &Overrides,
    report: &mut Report,
) {
    let declared = profiles.and_then(|entry| entry.node.as_table());
    for (name, entry) in declared.into_iter().flatten() {
        let Some(profile) = entry
            .node
            .as_table()
            .filter(|_| overrides.profile.as_ref() != Some(name))
        else {
            continue;
        };
        manifest
            .dormant
            .extend(read_selectors(profile.get("exclude"), "exclude", report));
        for (stage, entry) in child(profile, "params").into_iter().flatten() {
            if let (Some(stage), Some(_)) = (manifest.stages.get_mut(&**stage), entry.node.as_table()) {
                stage.dormant.0.push(Params {
                    key: entry.key,
                    node: entry.node.clone(),
                });
            }
        }
        for (stage, entry) in child(profile, "publish").into_iter().flatten() {
            if let (Some(stage), Some(declared)) = (manifest.stages.get_mut(&**stage), entry.node.as_table())
            {
                stage.dormant.1.extend(read_publish(declared, report));
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

/// Adds parameters that win at every point of a stage's axes: an override whose `where` is empty and has its own place, as
/// none in a text has.
pub(super) fn lay_params(table: &mut Table, stage: &str, params: Entry) {
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
pub(super) fn replace_axis(
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

/// Takes values that an axis no longer has out of every `where` and `exclude`: they match nothing, and the manifest
/// that is recorded stands by itself.
fn prune(table: &mut Table, manifest: &Manifest) {
    let matches_nothing = |selector: &mut Node| {
        let points = selector.as_table_mut().into_iter().flatten();
        points.into_iter().any(|(name, entry)| {
            let Some(axis) = manifest.axes.get(name.as_str()) else {
                return false;
            };
            let inactive = |node: &Node| node.label().is_some_and(|label| axis.inactive.contains(&label));
            match &mut entry.node.data {
                Data::Array(items) => {
                    items.retain(|item| !inactive(item));
                    items.is_empty()
                }
                _ => inactive(&entry.node),
            }
        })
    };
    let selectors = |entry: Option<&mut Entry>| {
        if let Some(Data::Array(items)) = entry.map(|entry| &mut entry.node.data) {
            items.retain_mut(|item| !matches_nothing(item));
        }
    };
    selectors(table.get_mut("exclude"));
    for stage in stage_tables(table) {
        selectors(stage.get_mut("exclude"));
        if let Some(Data::Array(items)) = stage.get_mut("override").map(|entry| &mut entry.node.data) {
            items.retain_mut(|item| {
                let matching = item.as_table_mut().and_then(|item| item.get_mut("where"));
                matching.is_none_or(|matching| !matches_nothing(&mut matching.node))
            });
        }
    }
}

/// The stages that are written as tables.
fn stage_tables(table: &mut Table) -> impl Iterator<Item = &mut Table> {
    let stages = table
        .get_mut("stages")
        .and_then(|stages| stages.node.as_table_mut());
    stages
        .into_iter()
        .flatten()
        .filter_map(|(_, stage)| stage.node.as_table_mut())
}

/// Puts what was laid over every point of a stage into its parameters, and over whatever its own overrides say of the same: the
/// manifest that is recorded says what holds in the words of a person.
fn fold(table: &mut Table) {
    for stage in stage_tables(table) {
        let Some(Data::Array(items)) = stage.get_mut("override").map(|entry| &mut entry.node.data) else {
            continue;
        };
        let (laid, mut kept): (Vec<Node>, Vec<Node>) = std::mem::take(items)
            .into_iter()
            .partition(|item| item.as_table().is_some_and(|table| is_laid(item, table)));
        let layers: Vec<Entry> = laid
            .into_iter()
            .filter_map(|mut item| item.as_table_mut()?.shift_remove("params"))
            .collect();
        for layer in &layers {
            let params = kept
                .iter_mut()
                .filter_map(|item| item.as_table_mut()?.get_mut("params"));
            params.for_each(|params| params.node.replace(&layer.node));
        }
        if kept.is_empty() {
            stage.shift_remove("override");
        } else {
            *items = kept;
        }
        for layer in layers {
            super::node::merge_entry(stage, "params".to_owned(), layer);
        }
    }
}

pub(super) fn unknown(name: &str, span: Span, what: &str, declared: Option<&Table>, report: &mut Report) {
    let help = declared.and_then(|table| report.suggest(name, table.keys().map(String::as_str)));
    report
        .error(span, format!("there is no {what} `{}`", clip(name)))
        .help
        .clone_from(&help);
}

pub(super) fn child<'a>(table: &'a Table, key: &str) -> Option<&'a Table> {
    table.get(key)?.node.as_table()
}

pub(super) fn stage_mut<'a>(table: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    table
        .get_mut("stages")?
        .node
        .as_table_mut()?
        .get_mut(name)?
        .node
        .as_table_mut()
}

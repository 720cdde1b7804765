//! Options of the command line that change a manifest. Each is a text of its own among the sources, so that a problem
//! with what it says is shown in it.

use std::collections::BTreeMap;

use super::diagnostic::Report;
use super::expect::{expect_array, expect_table};
use super::layers::{child, lay_params, replace_axis, stage_mut, unknown};
use super::load::merge;
use super::model::Spanned;
use super::node::{Data, Entry, Node, Table, clip, parse_value};
use super::source::{Origin, Span};

/// `--set stages.policy.params.epochs=50`.
pub(super) fn apply_set(table: &mut Table, option: &str, report: &mut Report) {
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
    if let Some(meant) = begun_too_late(table, &names) {
        report
            .error(
                path[0].span,
                format!("`{}` is no key of a manifest", clip(names[0])),
            )
            .help(meant);
        return;
    }
    let mut over = Table::new();
    let node = nest(&path[1..], value);
    let key = path[0].span;
    over.insert(names[0].to_owned(), Entry { key, node });
    merge(table, over);
}

/// What a path that begins with a stage's or an axis's name should have been.
fn begun_too_late(table: &Table, names: &[&str]) -> Option<String> {
    const OF_STAGE: [&str; 6] = ["params", "inputs", "over", "publish", "timeout", "retries"];
    let (first, rest) = names.split_first()?;
    if child(table, "stages").is_some_and(|stages| stages.contains_key(*first)) {
        let within = match rest.first() {
            None => "stages.".to_owned() + first + ".params.NAME",
            Some(key) if OF_STAGE.contains(key) => format!("stages.{}", names.join(".")),
            Some(_) => format!("stages.{first}.params.{}", rest.join(".")),
        };
        return Some(format!("it is a stage: write `--set {within}=VALUE`"));
    }
    let is_axis = child(table, "axes").is_some_and(|axes| axes.contains_key(*first));
    is_axis.then(|| format!("it is an axis: write `--axis {first}=VALUE,VALUE`"))
}

/// `--axis epsilon=0.1,0.2`.
pub(super) fn apply_axis(
    table: &mut Table,
    option: &str,
    given: &mut BTreeMap<String, Span>,
    report: &mut Report,
) {
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
            (None, '"' | '\'') => quote = Some(char),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(start..offset);
                start = offset + 1;
            }
            _ => {}
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
pub(super) fn option_source(option: &str, value: &str, report: &mut Report) -> (Span, String) {
    let source = report
        .sources
        .add(Origin::CommandLine, format!("{option}{value}"));
    (report.sources.whole(source), value.to_owned())
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

//! What a value must be: known keys, right types, well-formed names. What is not is reported.

use provenir_api::Label;

use super::diagnostic::Report;
use super::node::{Data, Node, Table, clip};
use super::source::Span;

/// Reports keys that a table must not have, each with the nearest that it may have.
pub(crate) fn known_keys(table: &Table, what: &str, known: &[&str], report: &mut Report) {
    for (key, entry) in table {
        if !known.contains(&key.as_str()) {
            let help = report.suggest(key, known.iter().copied());
            report
                .error(entry.key, format!("`{}` is no {what}", clip(key)))
                .help
                .clone_from(&help);
        }
    }
}

/// Reports a name that is not made of ASCII letters, digits, `_` and `-`.
pub(crate) fn check_name(name: &str, span: Span, what: &str, report: &mut Report) {
    const LENGTH: usize = 100;
    let well_formed = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let stranger = name
        .chars()
        .find(|char| !(char.is_ascii_alphanumeric() || matches!(char, '_' | '-')));
    let message = if name.is_empty() {
        format!("the name of a {what} must not be empty")
    } else if name.len() > LENGTH {
        format!("the name of a {what} is longer than {LENGTH} bytes")
    } else if let Some(stranger) = stranger {
        let kind = if stranger.is_alphabetic() {
            " (a letter that is not ASCII, even if it looks like one)"
        } else {
            ""
        };
        format!(
            "the {what} name `{}` holds U+{:04X}{kind}",
            clip(name),
            u32::from(stranger)
        )
    } else if well_formed {
        return;
    } else {
        format!("the {what} name `{}` does not begin with a letter", clip(name))
    };
    report
        .error(span, message)
        .help("names are made of the letters A to Z and a to z, digits, `_` and `-`, and begin with a letter or `_`");
}

/// The table `key` of a table, if it is there and is one.
pub(crate) fn optional_table<'a>(table: &'a Table, key: &str, report: &mut Report) -> Option<&'a Table> {
    expect_table(&table.get(key)?.node, &format!("`{key}`"), report)
}

pub(crate) fn expect_table<'a>(node: &'a Node, what: &str, report: &mut Report) -> Option<&'a Table> {
    node.as_table()
        .or_else(|| mismatch(node, what, "a table", report))
}

pub(crate) fn expect_text<'a>(node: &'a Node, what: &str, report: &mut Report) -> Option<&'a str> {
    node.as_text().or_else(|| mismatch(node, what, "a text", report))
}

pub(crate) fn expect_array<'a>(node: &'a Node, what: &str, report: &mut Report) -> Option<&'a [Node]> {
    match &node.data {
        Data::Array(items) => Some(items),
        _ => mismatch(node, what, "an array", report),
    }
}

/// The label that a value names.
pub(crate) fn expect_label(node: &Node, report: &mut Report) -> Option<Label> {
    node.label().or_else(|| {
        mismatch(
            node,
            "an axis value here",
            "a text, a number or a truth value",
            report,
        )
    })
}

fn mismatch<T>(node: &Node, what: &str, wanted: &str, report: &mut Report) -> Option<T> {
    if !matches!(node.data, Data::Invalid) {
        report.error(
            node.span,
            format!("{what} must be {wanted}, not {}", node.described()),
        );
    }
    None
}

//! What a value must be: known keys, right types, well-formed names. What is not is reported.

use provenir_api::{Label, schema};

use super::diagnostic::Report;
use super::node::{Data, Node, Table, clip};
use super::source::Span;

/// Reports keys that a table must not have, each with the nearest that it may have or where it belongs. Gives the keys that
/// such were probably meant for: they are not missing.
pub(crate) fn known_keys<'k>(
    table: &Table,
    what: &str,
    known: &[&'k str],
    report: &mut Report,
) -> Vec<&'k str> {
    let mut meant = Vec::new();
    for (key, entry) in table {
        if known.contains(&key.as_str()) {
            continue;
        }
        let near = schema::nearest(key, known.iter().copied());
        meant.extend(near);
        let help = match (near, belongs(key)) {
            (None, Some(place)) => Some(place.to_owned()),
            _ => report.suggest(key, known.iter().copied()),
        };
        report
            .error(entry.key, format!("`{}` is no {what}", clip(key)))
            .help
            .clone_from(&help);
    }
    meant
}

/// Where a key of the language belongs.
pub(crate) fn belongs(key: &str) -> Option<&'static str> {
    Some(match key {
        "as" => {
            "`as` names a member of a list of inputs: `[\"STAGE\", { stage = \"STAGE\", as = \"NAME\" }]`"
        }
        "at" => "`at` takes a slice of an input: `{ stage = \"STAGE\", at = { AXIS = VALUE } }`",
        "where" => "`where` belongs to an entry of a stage's `override`, beside its `params`",
        "kind" | "inputs" | "params" | "over" | "override" | "publish" | "resources" | "timeout"
        | "retries" => "it belongs to a stage: `[stages.NAME]`",
        "cores" | "memory" => {
            "it belongs to a stage's `resources`: `resources = { cores = 2, memory = 4096 }`"
        }
        "format" | "extends" => "it belongs to the top of the manifest, before the first `[table]`",
        "pipeline" | "axes" | "stages" | "profiles" => {
            "it belongs to the top of the manifest; below a `[table]`, a key belongs to that table"
        }
        _ => return None,
    })
}

/// Whether a name is made of ASCII letters, digits, `_` and `-`, and begins as one may.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-'))
}

/// Reports a name that is not made of ASCII letters, digits, `_` and `-`.
pub(crate) fn check_name(name: &str, span: Span, what: &str, report: &mut Report) {
    const LENGTH: usize = 100;
    let stranger = name
        .chars()
        .find(|char| !(char.is_ascii_alphanumeric() || matches!(char, '_' | '-')));
    let message = if name.is_empty() {
        format!("the {what} name must not be empty")
    } else if name.len() > LENGTH {
        format!("the {what} name is longer than {LENGTH} bytes")
    } else if let Some(stranger) = stranger {
        format!("the {what} name `{}` holds {}", clip(name), named(stranger))
    } else if is_name(name) {
        return;
    } else {
        format!("the {what} name `{}` does not begin with a letter", clip(name))
    };
    report
        .error(span, message)
        .help("names are made of the letters A to Z and a to z, digits, `_` and `-`, and begin with a letter or `_`");
}

/// Whether a character cannot be seen, or changes how others are shown: a control or format character, such as those that
/// turn the direction of writing.
pub(super) fn is_unseen(char: char) -> bool {
    let formats = matches!(
        char,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    char.is_control() || formats
}

/// A character that a name must not hold, as a person knows it.
pub(super) fn named(char: char) -> String {
    let code = u32::from(char);
    match char {
        ' ' => "a space".to_owned(),
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{3000}' => {
            format!("U+{code:04X}, which looks like a space and is none")
        }
        _ if char.is_control() => format!("the control character U+{code:04X}"),
        _ if is_unseen(char) => format!("U+{code:04X}, which cannot be seen"),
        _ if char.is_ascii() => format!("`{char}`"),
        _ => match schema::look_alike(char) {
            Some(plain) => format!("`{char}` (U+{code:04X}), which is not the `{plain}` that it looks like"),
            None => format!("`{char}` (U+{code:04X})"),
        },
    }
}

/// The table `key` of a table, if it is there and is one.
pub(crate) fn optional_table<'a>(table: &'a Table, key: &str, report: &mut Report) -> Option<&'a Table> {
    let node = &table.get(key)?.node;
    let around = Some(("{ NAME = ", " }"));
    node.as_table()
        .or_else(|| mismatch(node, &format!("`{key}`"), "a table", around, report))
}

pub(crate) fn expect_table<'a>(node: &'a Node, what: &str, report: &mut Report) -> Option<&'a Table> {
    node.as_table()
        .or_else(|| mismatch(node, what, "a table", None, report))
}

pub(crate) fn expect_text<'a>(node: &'a Node, what: &str, report: &mut Report) -> Option<&'a str> {
    // A truth value in quotes is hardly ever what is wanted.
    let quotes = matches!(node.data, Data::Integer(_) | Data::Float(_));
    let around = quotes.then_some(("\"", "\""));
    node.as_text()
        .or_else(|| mismatch(node, what, "a text", around, report))
}

pub(crate) fn expect_array<'a>(node: &'a Node, what: &str, report: &mut Report) -> Option<&'a [Node]> {
    match &node.data {
        Data::Array(items) => Some(items),
        _ => mismatch(node, what, "an array", Some(("[", "]")), report),
    }
}

/// The label that a value names.
pub(crate) fn expect_label(node: &Node, report: &mut Report) -> Option<Label> {
    node.label().or_else(|| {
        mismatch(
            node,
            "an axis value here",
            "a text, a number or a truth value",
            None,
            report,
        )
    })
}

/// Reports a value of the wrong type; `around` makes it right.
fn mismatch<T>(
    node: &Node,
    what: &str,
    wanted: &str,
    around: Option<(&str, &str)>,
    report: &mut Report,
) -> Option<T> {
    if matches!(node.data, Data::Invalid) {
        return None;
    }
    let help = around.and_then(|around| rewritten(node.span, around, report));
    report
        .error(
            node.span,
            format!("{what} must be {wanted}, not {}", node.described()),
        )
        .help
        .clone_from(&help);
    None
}

/// How a value would be written with something around it, with its key where that stands before it.
fn rewritten(span: Span, (before, after): (&str, &str), report: &Report) -> Option<String> {
    const LENGTH: usize = 60;
    let written = report.sources.slice(span);
    if written.is_empty() || written.len() > LENGTH || written.contains(['\n', '`']) {
        return None;
    }
    let text = &report.sources.of(span).text;
    let line = text.get(..span.start as usize)?.rsplit('\n').next()?;
    let key = line
        .trim_end()
        .strip_suffix('=')
        .map(str::trim_end)
        .and_then(|line| {
            let bare = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
            let key = &line[line.trim_end_matches(bare).len()..];
            (!key.is_empty()).then(|| format!("{key} = "))
        });
    Some(format!(
        "write `{}{before}{written}{after}`",
        key.unwrap_or_default()
    ))
}

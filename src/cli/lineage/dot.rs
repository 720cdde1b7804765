use std::collections::BTreeMap;
use std::fmt::Write;

use crate::cli::session;
use crate::lineage::{Lineage, NodeId};
use crate::store::ActionKey;

/// The graph for Graphviz: cells as boxes, source files as folders, published copies as notes.
pub(super) fn text(lineage: &Lineage) -> String {
    let nodes = &lineage.nodes;
    let mut text =
        String::from("digraph lineage {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n");
    let mut cells: BTreeMap<ActionKey, usize> = BTreeMap::new();
    for id in nodes.keys() {
        *cells.entry(id.action).or_default() += 1;
    }
    // Cells that are one action are told apart by their names.
    let shown = |id: &NodeId| {
        let short = id.action.short();
        match &id.cell {
            Some(cell) if cells.get(&id.action).is_some_and(|count| *count > 1) => format!("{short} {cell}"),
            _ => short,
        }
    };
    for (id, node) in nodes {
        let bold = if Some(id) == lineage.focus.as_ref() {
            ", style=bold"
        } else {
            ""
        };
        let action = id.action.short();
        let id = quoted(&shown(id));
        let label = format!("{}\n{} {action}", node.name(), node.kind);
        let _ = writeln!(text, "  {id} [label={}{bold}];", quoted(&label));
        for (pointer, file) in &node.sources {
            let content = file.content.short();
            let name = match &file.path {
                Some(path) => session::short(path).into_string(),
                None => pointer.trim_start_matches('/').replace('/', "."),
            };
            // Two files may have the same bytes, and one file may have had others.
            let source = quoted(&format!("source {name} {content}"));
            let label = format!("{name}\n{content}");
            let _ = writeln!(text, "  {source} [shape=folder, label={}];", quoted(&label));
            let _ = writeln!(text, "  {source} -> {id};");
        }
        for copy in &node.published {
            let name = quoted(session::short(&copy.path).as_str());
            let _ = writeln!(
                text,
                "  {name} [shape=note];\n  {id} -> {name} [label={}];",
                quoted(&copy.port)
            );
        }
        let mut edges: BTreeMap<(String, &str), usize> = BTreeMap::new();
        for link in &node.inputs {
            let from = link.from.as_ref().filter(|from| nodes.contains_key(from));
            let from = from.map_or_else(|| format!("content {}", link.content.short()), shown);
            *edges.entry((from, &link.port)).or_default() += 1;
        }
        for ((from, port), count) in edges {
            let label = if count == 1 {
                port.to_owned()
            } else {
                format!("{port} × {count}")
            };
            let _ = writeln!(text, "  {} -> {id} [label={}];", quoted(&from), quoted(&label));
        }
    }
    text.push_str("}\n");
    text
}

/// A text as Graphviz takes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for symbol in text.chars() {
        match symbol {
            '"' | '\\' => quoted.extend(['\\', symbol]),
            '\n' => quoted.push_str("\\n"),
            symbol if symbol.is_control() => quoted.push('\u{fffd}'),
            symbol => quoted.push(symbol),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_leave_their_quotes() {
        assert_eq!(quoted("a\"b\\c\nd\u{1b}"), "\"a\\\"b\\\\c\\nd\u{fffd}\"");
    }
}

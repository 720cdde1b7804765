use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use super::by_port;
use crate::audit::{Record, Verdict};
use crate::cli::describe::cut;
use crate::cli::measure::count;
use crate::cli::{session, terminal};
use crate::display::duration;
use crate::lineage::{Computed, Lineage, Node, NodeId, Now, SourceFile};

/// So many artifacts of a port, or consumers of a cell, are shown.
const SHOWN: usize = 8;
/// Fewest characters of parameters that are shown where a line has to be cut.
const FEWEST: usize = 24;

/// A lineage in words.
pub(super) fn text(lineage: &Lineage) -> String {
    let width = terminal::columns();
    let mut text = String::new();
    let mut tree = Tree {
        width,
        lineage,
        seen: BTreeSet::new(),
        text: String::new(),
    };
    if let Some(node) = lineage.node() {
        text.push_str(&heading(node, width));
        text.push_str(&doubts(lineage, node));
        if !node.inputs.is_empty() || !node.sources.is_empty() {
            text.push_str("\nmade from\n");
            tree.up(node, "  ");
            text.push_str(&std::mem::take(&mut tree.text));
        }
        text.push('\n');
    }
    if !lineage.takers.is_empty() {
        text.push_str("used by\n");
        tree.seen.clear();
        tree.down(&lineage.takers, "  ");
        text.push_str(&tree.text);
    } else if text.ends_with("\n\n") {
        text.pop();
    }
    text
}

fn heading(node: &Node, width: Option<usize>) -> String {
    let mut text = format!("{}\n", line(node, width));
    if !node.also.is_empty() {
        let _ = writeln!(text, "the same action is also {}", listed(&node.also));
    }
    for artifact in &node.outputs {
        let gone = if node.stored {
            ""
        } else {
            ", no longer in the store"
        };
        let _ = writeln!(
            text,
            "output {}, content {}, object {}{gone}",
            artifact.port,
            artifact.content.short(),
            artifact.object.short()
        );
    }
    for copy in &node.published {
        let gone = if copy.present { "" } else { " (gone)" };
        let _ = writeln!(text, "published `{}`{gone}", session::short(&copy.path));
    }
    text.push_str(&computed(node.computed.as_ref()));
    for second in &node.seconds {
        let _ = writeln!(text, "{second}");
    }
    // Equal verdicts are one line, where the last of them stands.
    let mut verdicts: Vec<(String, usize, &Record)> = Vec::new();
    for record in &node.audits {
        if let Some(told) = verdict(&record.verdict) {
            let same = verdicts.iter().position(|(known, ..)| *known == told);
            let before = same.map_or(0, |position| verdicts.remove(position).1);
            verdicts.push((told, before + 1, record));
        }
    }
    let more = verdicts.len().saturating_sub(SHOWN);
    if more > 0 {
        let _ = writeln!(text, "{} of earlier audits", count(more, "other verdict"));
    }
    for (told, times, record) in &verdicts[more..] {
        let times = match times {
            1 => String::new(),
            times => format!(" {times} times, last"),
        };
        let _ = writeln!(
            text,
            "{told}{times} by provenir {}, build {}, on host {} ({})",
            record.version,
            record.build,
            record.host,
            record.time.strftime("%Y-%m-%d %H:%M:%S UTC")
        );
    }
    text
}

/// Cells that a node was made from and that the latest audit of them did not reproduce.
fn doubts(lineage: &Lineage, node: &Node) -> String {
    let mut doubted: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<&NodeId> = node.inputs.iter().filter_map(|link| link.from.as_ref()).collect();
    while let Some(id) = open.pop() {
        let Some(above) = lineage.nodes.get(id).filter(|_| seen.insert(id)) else {
            continue;
        };
        open.extend(above.inputs.iter().filter_map(|link| link.from.as_ref()));
        let told = above
            .audits
            .iter()
            .rev()
            .find_map(|record| match &record.verdict {
                Verdict::Blocked | Verdict::Volatile => None,
                other => Some(other),
            });
        if let Some(bad @ (Verdict::Differs { .. } | Verdict::Failed { .. })) = told {
            let told = verdict(bad).unwrap_or_default();
            doubted.push(format!("{}: {told}", above.name()));
        }
    }
    doubted.sort();
    let mut text = String::new();
    if !doubted.is_empty() {
        let _ = writeln!(text, "of what it was made from, an audit found");
        for told in doubted.iter().take(SHOWN) {
            let _ = writeln!(text, "  {told}");
        }
        if doubted.len() > SHOWN {
            let _ = writeln!(text, "  and {} more", doubted.len() - SHOWN);
        }
    }
    text
}

/// Names, the first few of many.
pub(super) fn listed(names: &[String]) -> String {
    let told = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => told,
        more => format!("{told} and {more} more"),
    }
}

/// What an audit found, in words that "by" follows.
fn verdict(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Reproduced => Some("reproduced".to_owned()),
        Verdict::Differs { port, place } => Some(format!("not reproduced (output {port}: {place})")),
        Verdict::OtherPlatform { port, place, .. } => Some(format!(
            "computed otherwise on another platform (output {port}: {place})"
        )),
        Verdict::WithinTolerance { largest, .. } => {
            Some(format!("reproduced on another platform within {largest:.1e}"))
        }
        Verdict::Failed { message } => Some(format!(
            "failed when it was computed again ({})",
            message.lines().next().unwrap_or_default()
        )),
        Verdict::Blocked | Verdict::Volatile => None,
    }
}

fn computed(computed: Option<&Computed>) -> String {
    let Some(found) = computed else {
        return "computed elsewhere, or before records were kept: no record here tells\n".to_owned();
    };
    let mut text = format!(
        "computed by run {} on {} in {}",
        found.run,
        found.time.strftime("%Y-%m-%d %H:%M:%S UTC"),
        duration(found.seconds)
    );
    if let Some(host) = &found.host {
        let _ = write!(text, ", host {host}");
    }
    if let Some(build) = &found.build {
        let _ = write!(text, ", provenir {build}");
    }
    text.push('\n');
    if let Some(manifest) = &found.manifest {
        let _ = write!(text, "manifest `{}`", session::short(manifest));
        if let Some(git) = &found.git {
            let _ = write!(text, ", git {git}");
        }
        text.push('\n');
    }
    text
}

/// A cell in one line: `second[a=1]: noop, action 0123456789ab, value=0.5`; parameters are cut to what a terminal has of
/// columns from there on, and are all there where it is none.
fn line(node: &Node, width: Option<usize>) -> String {
    let mut text = format!("{}: {}, action {}", node.name(), node.kind, node.action.short());
    if let Value::Object(parameters) = &node.parameters
        && !parameters.is_empty()
    {
        let told: Vec<String> = parameters
            .iter()
            .map(|(name, value)| match value {
                Value::String(value) => format!("{name}={value}"),
                other => format!("{name}={other}"),
            })
            .collect();
        let left = width.map_or(usize::MAX, |width| {
            width.saturating_sub(text.chars().count() + 2).max(FEWEST)
        });
        let _ = write!(text, ", {}", cut(&told.join(" "), left));
    }
    text
}

/// A source file in words.
fn file(source: &SourceFile) -> String {
    let content = source.content.short();
    let Some(path) = &source.path else {
        return format!("a file whose name no record tells, content {content}");
    };
    let path = session::short(path);
    match source.now {
        Some(Now::Unchanged) => format!("the file `{path}`, unchanged since, content {content}"),
        Some(Now::Changed) => format!("the file `{path}`, which has changed since; content then {content}"),
        Some(Now::Missing) => {
            format!("the file `{path}`, which is not there any more; content then {content}")
        }
        Some(Now::Unreadable) | None => {
            format!("the file `{path}`, which cannot be read now; content then {content}")
        }
    }
}

struct Tree<'a> {
    /// Columns of the terminal; absent where it is none.
    width: Option<usize>,
    lineage: &'a Lineage,
    /// Cells whose branches were shown.
    seen: BTreeSet<&'a NodeId>,
    text: String,
}

impl<'a> Tree<'a> {
    /// A cell in one line, after a head, in a branch of the tree.
    fn cell(&self, node: &Node, head: &str, indent: &str) -> String {
        /// Characters of a branch.
        const BRANCH: usize = 3;
        let taken = indent.chars().count() + BRANCH + head.chars().count();
        let width = self.width.map(|width| width.saturating_sub(taken));
        format!("{head}{}", line(node, width))
    }

    fn up(&mut self, node: &'a Node, indent: &str) {
        let mut items: Vec<(String, Option<&'a NodeId>)> = Vec::new();
        for (pointer, source) in &node.sources {
            let name = pointer.trim_start_matches('/').replace('/', ".");
            items.push((format!("{name} ← {}", file(source)), None));
        }
        for (port, links) in by_port(node) {
            for link in links.iter().take(SHOWN) {
                let from = link.from.as_ref().and_then(|id| self.lineage.nodes.get(id));
                let head = format!("{port} ← ");
                let told = match from {
                    Some(from) => self.cell(from, &head, indent),
                    None => format!(
                        "{head}content {}, of which nothing is known",
                        link.content.short()
                    ),
                };
                items.push((told, link.from.as_ref()));
            }
            if links.len() > SHOWN {
                items.push((format!("{port} ← {} more", links.len() - SHOWN), None));
            }
        }
        self.branches(items, indent, |tree, id, below| {
            if let Some(node) = tree.lineage.nodes.get(id) {
                tree.up(node, below);
            }
        });
    }

    fn down(&mut self, consumers: &'a BTreeSet<NodeId>, indent: &str) {
        let mut items: Vec<(String, Option<&'a NodeId>)> = Vec::new();
        // By name, because that is what they are ordered by.
        let known = consumers
            .iter()
            .filter_map(|id| Some((id, self.lineage.nodes.get(id)?)));
        let known: Vec<(&NodeId, &Node)> = known.collect();
        for (id, node) in known.iter().take(SHOWN) {
            let mut told = self.cell(node, "", indent);
            for copy in &node.published {
                let gone = if copy.present { "" } else { " (gone)" };
                let _ = write!(told, ", published `{}`{gone}", session::short(&copy.path));
            }
            items.push((told, Some(*id)));
        }
        if known.len() > SHOWN {
            items.push((format!("{} more", known.len() - SHOWN), None));
        }
        self.branches(items, indent, |tree, id, below| {
            if let Some(consumers) = tree.lineage.consumers.get(id) {
                tree.down(consumers, below);
            }
        });
    }

    fn branches(
        &mut self,
        items: Vec<(String, Option<&'a NodeId>)>,
        indent: &str,
        mut descend: impl FnMut(&mut Self, &'a NodeId, &str),
    ) {
        let count = items.len();
        for (position, (told, id)) in items.into_iter().enumerate() {
            let (branch, below) = if position + 1 == count {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            let is_new = id.is_none_or(|id| self.seen.insert(id));
            let again = if is_new { "" } else { " (shown above)" };
            let _ = writeln!(self.text, "{indent}{branch}{told}{again}");
            if let Some(id) = id
                && is_new
            {
                descend(self, id, &format!("{indent}{below}"));
            }
        }
    }
}

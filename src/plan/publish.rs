//! Named copies of outputs: where they go, and that no two go to one place.

use std::collections::BTreeMap;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use provenir_api::Facts;

use super::axes::{Axes, AxisSet};
use super::graph::Node;
use super::model::Publish;
use super::template::{Piece, Scope, interpolate, parse, piece_axes, warn_of_marks};
use crate::manifest::{AxisValue, PublishDecl, Report, Span, clip};

/// The path pattern of an output.
pub(super) struct Pattern {
    port: &'static str,
    pieces: Vec<Piece>,
    span: Span,
    /// Extensions that the output's file may have.
    fitting: Vec<String>,
    /// Axes with several values that the stage varies over and the pattern does not name.
    unnamed: AxisSet,
    /// Whether something is wrong with every path of it, so that one was reported for all.
    reported: bool,
}

/// Every path so far, with the cell that it is a copy for.
#[derive(Default)]
pub(super) struct Paths {
    taken: BTreeMap<Utf8PathBuf, Taken>,
}

struct Taken {
    /// The cell and its output.
    by: String,
    span: Span,
}

/// Reads the patterns of a stage. `axes_of_stage` is absent where it is uncertain.
pub(super) fn patterns(
    node: &Node<'_>,
    axes_of_stage: Option<AxisSet>,
    axes: &Axes<'_>,
    report: &mut Report,
) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for decl in &node.decl.dormant.1 {
        pattern(node, decl, None, axes, report);
    }
    for decl in &node.decl.publish {
        if let Some(pattern) = pattern(node, decl, axes_of_stage, axes, report) {
            patterns.push(pattern);
        }
    }
    patterns
}

fn pattern(
    node: &Node<'_>,
    decl: &PublishDecl,
    axes_of_stage: Option<AxisSet>,
    axes: &Axes<'_>,
    report: &mut Report,
) -> Option<Pattern> {
    let pieces = parse(&decl.path.value, decl.path.span, Scope::Publish, axes, report);
    let kind = node.kind.as_ref()?;
    let Some(output) = kind.outputs.iter().find(|output| output.name == decl.port.value) else {
        let help = report.suggest(&decl.port.value, kind.outputs.iter().map(|output| output.name));
        let message = format!(
            "kind `{}` has no output `{}`",
            kind.kind.name(),
            clip(&decl.port.value)
        );
        report.error(decl.port.span, message).help.clone_from(&help);
        return None;
    };
    let pieces = pieces?;
    warn_of_marks(&decl.path.value, decl.path.span, Scope::Publish, axes, report);
    let fitting: Vec<String> = output
        .content
        .extensions()
        .into_iter()
        .map(str::to_owned)
        .collect();
    // What an axis ends it in is known of each cell.
    let is_open = matches!(pieces.last(), Some(Piece::Axis(_)));
    if !is_open && !ends_in(&decl.path.value, &fitting) {
        report_end(output.name, &decl.path.value, decl.path.span, &fitting, report);
        return None;
    }
    let mut named = AxisSet::default();
    piece_axes(&pieces, &mut named);
    let own = axes_of_stage?;
    for piece in &pieces {
        if let Piece::Axis(reference) = piece
            && !own.contains(reference.axis)
        {
            let axis = axes.name(reference.axis);
            report
                .error(
                    reference.span,
                    format!("stage `{}` does not vary over `{axis}`", node.name),
                )
                .help(format!(
                    "`over = [\"{axis}\"]` makes one cell for each of its values"
                ));
            return None;
        }
    }
    let mut unnamed = own.without(named);
    for axis in own.iter() {
        if axes.values(axis).len() < 2 {
            unnamed.remove(axis);
        }
    }
    Some(Pattern {
        port: output.name,
        pieces,
        span: decl.path.span,
        fitting,
        unnamed,
        reported: false,
    })
}

impl Pattern {
    /// Whether the copy of a cell is called what its file is, where its parameters say which of several that is; tells
    /// otherwise which it is, and the parameter.
    pub(super) fn misnamed(&mut self, path: &Utf8Path, facts: &Facts) -> Option<(String, &'static str)> {
        let (_, extensions, pointer) = facts.files.iter().find(|(port, ..)| *port == self.port)?;
        let is_told = self.reported || ends_in(path.as_str(), extensions);
        if is_told {
            return None;
        }
        self.reported = true;
        let dotted: Vec<String> = extensions
            .iter()
            .map(|extension| format!(".{extension}"))
            .collect();
        Some((dotted.join(" or "), pointer))
    }

    /// Where it is written, and the output.
    pub(super) fn place(&self) -> (Span, &'static str) {
        (self.span, self.port)
    }

    /// The copy of one cell; what is wrong with it is reported, once for a pattern.
    pub(super) fn copy<'a>(
        &mut self,
        names: (&str, &str),
        cell: impl Fn() -> String,
        at: &impl Fn(usize) -> &'a AxisValue,
        axes: &Axes<'_>,
        paths: &mut Paths,
        report: &mut Report,
    ) -> Option<Publish> {
        if self.reported {
            return None;
        }
        let text = interpolate(&self.pieces, names, at, axes, report);
        if let Some(text) = text.as_ref().filter(|text| !ends_in(text, &self.fitting)) {
            report_end(self.port, text, self.span, &self.fitting, report);
            self.reported = true;
            return None;
        }
        let path = text.and_then(|text| match below(&text) {
            Ok(path) => Some(path),
            Err(message) => {
                report
                    .error(self.span, message)
                    .help("the path of a named copy is relative to the manifest's folder and stays below it");
                None
            }
        });
        let Some(path) = path else {
            self.reported = true;
            return None;
        };
        let by = format!("{}.{}", cell(), self.port);
        if let Some(taken) = paths.taken.get(&path) {
            let first = &taken.by;
            let diagnostic = report.error(
                self.span,
                format!("`{path}` would be written twice: by `{first}` and by `{by}`"),
            );
            diagnostic.label(taken.span, format!("here by `{first}`"));
            if let Some(axis) = self.unnamed.iter().next() {
                diagnostic.help(format!("add `${{{}}}` to the path", axes.name(axis)));
            } else {
                diagnostic.help("give each its own path");
            }
            self.reported = true;
            return None;
        }
        let taken = Taken { by, span: self.span };
        paths.taken.insert(path.clone(), taken);
        Some(Publish {
            port: self.port,
            path,
        })
    }
}

/// Whether the extension of a path is one of these.
fn ends_in(path: &str, fitting: &[impl AsRef<str>]) -> bool {
    let is_same = |extension: &str| {
        fitting
            .iter()
            .any(|fitting| fitting.as_ref().eq_ignore_ascii_case(extension))
    };
    Utf8Path::new(path).extension().is_some_and(is_same)
}

fn report_end(port: &str, path: &str, span: Span, fitting: &[String], report: &mut Report) {
    let dotted: Vec<String> = fitting.iter().map(|extension| format!(".{extension}")).collect();
    let found = match Utf8Path::new(path).extension() {
        Some(extension) => format!("and the path ends in `.{}`", clip(extension)),
        None => "and the path has no extension".to_owned(),
    };
    report
        .error(
            span,
            format!("output `{port}` is a {} file, {found}", dotted.join(" or ")),
        )
        .help(format!(
            "let the path end in `{}`; a copy has the bytes of the output, whatever it is called",
            dotted.join("` or `")
        ));
}

impl Paths {
    /// Checks the paths against each other as folders, and against files that must not be overwritten. `inputs` are
    /// absolute, as is `folder`.
    pub(super) fn check(
        &self,
        folder: &Utf8Path,
        inputs: impl Iterator<Item = Utf8PathBuf>,
        report: &mut Report,
    ) {
        for (path, taken) in &self.taken {
            for parent in path.ancestors().skip(1) {
                if let Some(other) = self.taken.get(parent) {
                    let message = format!(
                        "`{parent}` would be a file, by `{}`, and a folder, by `{}`",
                        other.by, taken.by
                    );
                    report.error(taken.span, message).label(other.span, "and here");
                }
            }
        }
        for input in inputs {
            if let Ok(path) = input.strip_prefix(folder)
                && let Some(taken) = self.taken.get(path)
            {
                report
                    .error(
                        taken.span,
                        format!("`{path}` is read by this pipeline; a named copy would overwrite it"),
                    )
                    .help("give the copy another path");
            }
        }
    }
}

/// A relative path that stays below the folder, without `.`.
fn below(text: &str) -> Result<Utf8PathBuf, String> {
    const LENGTH: usize = 1000;
    let shown = clip(text);
    if text.is_empty() || text.ends_with('/') {
        return Err(format!("the path `{shown}` names no file"));
    }
    if text.len() > LENGTH {
        return Err(format!("the path `{shown}` is longer than {LENGTH} bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err("the path holds control characters".to_owned());
    }
    let mut path = Utf8PathBuf::new();
    for component in Utf8Path::new(text).components() {
        match component {
            Utf8Component::Normal(name) => path.push(name),
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => {
                return Err(format!("the path `{shown}` leaves the folder: it holds `..`"));
            }
            Utf8Component::RootDir | Utf8Component::Prefix(_) => {
                return Err(format!("the path `{shown}` is absolute"));
            }
        }
    }
    if path.as_str().is_empty() {
        return Err(format!("the path `{shown}` names no file"));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_folder() {
        assert_eq!(below("a/./b//c.svg").expect("it is below"), "a/b/c.svg");
        for bad in ["", ".", "a/", "/a", "../a", "a/../../b", "a/..", "a\0b", "a\nb"] {
            assert!(below(bad).is_err(), "{bad}");
        }
    }
}

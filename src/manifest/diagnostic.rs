//! What is wrong with a manifest, and where.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use provenir_api::schema;
use serde::Serialize;

use super::source::{Origin, Sources, Span};

/// How much a diagnostic matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Nothing can run.
    Error,
    /// It runs, but probably not as meant.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub(crate) struct Diagnostic {
    pub(crate) severity: Severity,
    pub(crate) message: String,
    pub(crate) span: Span,
    /// Other places that have to do with it.
    pub(crate) labels: Vec<(Span, String)>,
    /// What to do next.
    pub(crate) help: Option<String>,
    /// Whether others rest on a guess of what was meant here: it is told before them.
    pub(crate) is_root: bool,
}

impl Diagnostic {
    pub(crate) fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help.get_or_insert_with(|| help.into());
        self
    }

    pub(crate) fn label(&mut self, span: Span, text: impl Into<String>) -> &mut Self {
        const MOST: usize = 3;
        if span != self.span
            && self.labels.len() < MOST
            && self.labels.iter().all(|(other, _)| *other != span)
        {
            self.labels.push((span, text.into()));
        }
        self
    }
}

/// Everything that is wrong with a manifest, sorted by place, roots first; nothing is said twice.
#[derive(Clone)]
pub struct Diagnostics {
    pub(super) sources: Arc<Sources>,
    pub(super) list: Vec<Diagnostic>,
}

/// A diagnostic for people and programs that do not want the source shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry<'a> {
    /// How much it matters.
    pub severity: Severity,
    /// The file, or the whole option of the command line, that it lies in.
    pub source: &'a str,
    /// Line and column, counted from 1 in characters; absent where the problem is with the source as a whole or in an
    /// option of the command line.
    pub place: Option<(usize, usize)>,
    /// What is wrong.
    pub message: &'a str,
    /// What to do next.
    pub help: Option<&'a str>,
}

impl Diagnostics {
    /// Nothing is wrong.
    pub(crate) fn none() -> Self {
        Report::new(Sources::default()).finish()
    }

    /// Whether anything keeps the manifest from running.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|found| found.severity == Severity::Error)
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many things are wrong.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// How many errors lie in manifests, and how many in the command line.
    pub fn errors(&self) -> (usize, usize) {
        let errors = || {
            let errors = self.list.iter().filter(|found| found.severity == Severity::Error);
            errors.map(|found| matches!(self.sources.of(found.span).origin, Origin::CommandLine))
        };
        let options = errors().filter(|is_option| *is_option).count();
        (errors().count() - options, options)
    }

    /// Whether no text was found to read: there is no file, or nothing is in it.
    pub fn is_unread(&self) -> bool {
        self.list
            .iter()
            .all(|found| self.sources.of(found.span).text.is_empty())
    }

    /// Each of them, sorted by place.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.list.iter().map(|found| {
            let source = self.sources.of(found.span);
            Entry {
                severity: found.severity,
                source: source.name(),
                place: source
                    .has_lines()
                    .then(|| source.place(found.span.start as usize)),
                message: &found.message,
                help: found.help.as_deref(),
            }
        })
    }
}

/// `path:line:column: message`, with the help in brackets.
impl fmt::Display for Entry<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use super::render::visible;
        write!(formatter, "{}:", visible(self.source))?;
        if let Some((line, column)) = self.place {
            write!(formatter, "{line}:{column}:")?;
        }
        if self.severity == Severity::Warning {
            formatter.write_str(" warning:")?;
        }
        write!(formatter, " {}", visible(self.message))?;
        if let Some(help) = self.help {
            write!(formatter, " ({})", visible(help))?;
        }
        Ok(())
    }
}

/// One line for each.
impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.entries().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            entry.fmt(formatter)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl std::error::Error for Diagnostics {}

/// Collects what is wrong while a manifest is read and expanded.
pub(crate) struct Report {
    pub(crate) sources: Sources,
    /// By place and message, so that what is found for many cells is said once.
    found: BTreeMap<(Span, String), Diagnostic>,
    errors: usize,
    /// Where a name that refers to nothing was first met, by message.
    unknown: BTreeMap<String, Span>,
    /// Values about which something has been said that makes every later complaint about them noise.
    spoilt: BTreeSet<Span>,
    /// How many more names may be compared in search of the nearest one: a hostile manifest could ask for as many
    /// comparisons as the square of its length.
    comparisons: usize,
}

impl Report {
    pub(crate) fn new(sources: Sources) -> Self {
        Self {
            sources,
            found: BTreeMap::new(),
            errors: 0,
            unknown: BTreeMap::new(),
            spoilt: BTreeSet::new(),
            comparisons: 1_000_000,
        }
    }

    pub(crate) fn error(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.errors += 1;
        self.add(Severity::Error, span, message.into())
    }

    /// Reports a name that refers to nothing. The same name in several places is one mistake, told at the first.
    pub(crate) fn unknown(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.errors += 1;
        let message = message.into();
        let first = *self.unknown.entry(message.clone()).or_insert(span);
        self.add(Severity::Error, first, message).label(span, "and here")
    }

    /// Counts an error that follows from one that was reported, and that is not told.
    pub(crate) fn follows(&mut self) {
        self.errors += 1;
    }

    pub(crate) fn warning(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.add(Severity::Warning, span, message.into())
    }

    fn add(&mut self, severity: Severity, span: Span, message: String) -> &mut Diagnostic {
        self.found
            .entry((span, message.clone()))
            .or_insert_with(|| Diagnostic {
                severity,
                message,
                span,
                labels: Vec::new(),
                help: None,
                is_root: false,
            })
    }

    /// Marks a value as not worth a further complaint.
    pub(crate) fn spoil(&mut self, span: Span) {
        self.spoilt.insert(span);
    }

    pub(crate) fn is_spoilt(&self, span: Span) -> bool {
        self.spoilt.contains(&span)
    }

    /// Whether an error was reported of exactly this place.
    pub(crate) fn has_error_at(&self, span: Span) -> bool {
        let here = (span, String::new())..;
        let mut found = self
            .found
            .range(here)
            .take_while(|((place, _), _)| *place == span);
        found.any(|(_, diagnostic)| diagnostic.severity == Severity::Error)
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The number of errors so far, to see whether a step adds to them.
    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    /// "did you mean …?", or what there is to choose from.
    pub(crate) fn suggest<'a>(
        &mut self,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Option<String> {
        let count = known.clone().count();
        if count == 0 || count > self.comparisons {
            return None;
        }
        self.comparisons -= count;
        Some(
            match (schema::nearest(name, known.clone()), schema::misread(name)) {
                (Some(near), None) => format!("did you mean `{near}`?"),
                (Some(near), Some(odd)) => format!("did you mean `{near}`? {odd}"),
                (None, _) => format!("there is {}", shortened(known)),
            },
        )
    }

    /// Everything found, sorted. Beside errors, warnings would only be noise: what they say may follow from an error.
    pub(crate) fn finish(mut self) -> Diagnostics {
        if self.has_errors() {
            self.found.retain(|_, found| found.severity == Severity::Error);
        }
        let mut list: Vec<Diagnostic> = self.found.into_values().collect();
        list.sort_by_key(|found| !found.is_root);
        Diagnostics {
            sources: Arc::new(self.sources),
            list,
        }
    }
}

/// The first names of a list, each in backticks, and how many more there are.
pub(crate) fn shortened<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    const SHOWN: usize = 12;
    let count = names.clone().count();
    let list = schema::list(names.take(SHOWN));
    if count > SHOWN {
        format!("{list} and {} more", count - SHOWN)
    } else {
        list
    }
}

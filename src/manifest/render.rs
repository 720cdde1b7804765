//! Diagnostics with the source shown.

use std::fmt;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, NamedSource,
    SourceCode, SourceSpan, SpanContents,
};

use super::diagnostic::{Diagnostic, Diagnostics, Severity};
use super::source::Span;

/// Most diagnostics that are shown.
const SHOWN: usize = 50;
/// Longest line of source that is shown, in bytes.
const LINE: usize = 400;

impl Diagnostics {
    /// All of them for a terminal of that width, each with the source underlined.
    pub fn render(&self, width: usize, colour: bool) -> String {
        let theme = if colour {
            GraphicalTheme::unicode()
        } else {
            GraphicalTheme::unicode_nocolor()
        };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(width)
            .with_context_lines(1)
            .without_syntax_highlighting();
        let mut text = String::new();
        for found in self.list.iter().take(SHOWN) {
            let severity = match found.severity {
                Severity::Error => miette::Severity::Error,
                Severity::Warning => miette::Severity::Warning,
            };
            let shown = Shown::new(self, found, severity);
            if handler.render_report(&mut text, &shown).is_err() {
                // A span that the handler cannot place is ours to fix; the message must be seen all the same.
                text.push_str(&visible(&found.message));
            }
            text.push('\n');
        }
        if self.list.len() > SHOWN {
            text.push_str("… and ");
            text.push_str(&(self.list.len() - SHOWN).to_string());
            text.push_str(" more\n");
        }
        text
    }
}

/// A diagnostic in the form that miette renders.
#[derive(Debug)]
struct Shown {
    message: String,
    severity: miette::Severity,
    help: Option<String>,
    source: Option<Excerpts>,
    labels: Vec<LabeledSpan>,
}

impl Shown {
    fn new(all: &Diagnostics, found: &Diagnostic, severity: miette::Severity) -> Self {
        let source = all.sources.of(found.span);
        let range = |span| first_line(&source.text, span);
        let (here, elsewhere): (Vec<_>, Vec<_>) = found
            .labels
            .iter()
            .partition(|(span, _)| span.source == found.span.source);
        let spans = || std::iter::once(found.span).chain(here.iter().map(|(span, _)| *span));
        let can_be_shown = !source.text.is_empty() && spans().all(|span| has_short_lines(&source.text, span));
        let mut message = visible(&found.message);
        if !can_be_shown {
            let place = source
                .has_lines()
                .then(|| source.place(found.span.start as usize));
            let name = visible(source.name());
            message = match place {
                Some((line, column)) => format!("{name}:{line}:{column}: {message}"),
                None if message.contains(&name) => message,
                None => format!("{name}: {message}"),
            };
        }
        let named = can_be_shown.then(|| {
            let name = if source.has_lines() {
                visible(source.name())
            } else {
                "command line".to_owned()
            };
            Excerpts(NamedSource::new(name, visible(&source.text)))
        });
        let mut labels = Vec::new();
        if can_be_shown {
            labels.push(LabeledSpan::new_primary_with_span(None, range(found.span)));
            for (span, text) in here {
                labels.push(LabeledSpan::new_with_span(Some(visible(text)), range(*span)));
            }
        }
        // Another source cannot be shown in the same frame: its places are named below.
        let mut footer: Vec<String> = found.help.iter().map(|help| visible(help)).collect();
        for (span, text) in elsewhere {
            let other = all.sources.of(*span);
            let name = visible(other.name());
            footer.push(if other.has_lines() {
                let (line, column) = other.place(span.start as usize);
                format!("{}: {name}:{line}:{column}", visible(text))
            } else {
                format!("{}: `{name}`", visible(text))
            });
        }
        Self {
            message,
            severity,
            help: (!footer.is_empty()).then(|| footer.join("\n")),
            source: named,
            labels,
        }
    }
}

/// What is underlined of a span: a value of many lines is known by its first.
fn first_line(text: &str, span: Span) -> std::ops::Range<usize> {
    let (start, end) = (span.start as usize, span.end as usize);
    let first = text.get(start..end).and_then(|text| text.lines().next());
    start..first.map_or(end, |line| start + line.trim_end().len())
}

/// A text of which pieces are shown. Miette's own texts count the lines of a piece from the beginning of the text, so that
/// of two pieces far down everything between them would be shown, too; and they count columns in bytes.
#[derive(Debug)]
struct Excerpts(NamedSource<String>);

impl SourceCode for Excerpts {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let found = self.0.read_span(span, before, after)?;
        let lines = found.data().split(|byte| *byte == b'\n').count() - 1;
        let before = self.0.inner().get(..found.span().offset()).unwrap_or_default();
        let column = before
            .chars()
            .rev()
            .take_while(|character| *character != '\n')
            .count();
        Ok(Box::new(MietteSpanContents::new_named(
            self.0.name().to_owned(),
            found.data(),
            *found.span(),
            found.line(),
            column,
            lines,
        )))
    }
}

/// Whether the first line of a span and those beside it can be put on a terminal.
fn has_short_lines(text: &str, span: Span) -> bool {
    let bytes = text.as_bytes();
    let range = first_line(text, span);
    let (start, end) = (range.start, range.end.min(bytes.len()));
    let line_start = |offset: usize| {
        let before = &bytes[..offset.min(bytes.len())];
        before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1)
    };
    let line_end = |offset: usize| {
        let offset = offset.min(bytes.len());
        let after = &bytes[offset..];
        offset
            + after
                .iter()
                .position(|byte| *byte == b'\n')
                .unwrap_or(after.len())
    };
    let first = line_start(line_start(start).saturating_sub(1));
    let last = line_end(line_end(end) + 1);
    bytes[first..last]
        .split(|byte| *byte == b'\n')
        .all(|line| line.len() <= LINE)
}

/// The same text of the same length in bytes, without characters that would steer a terminal or reorder what it shows.
pub(crate) fn visible(text: &str) -> String {
    let mut chars = text.chars().peekable();
    std::iter::from_fn(|| chars.next().map(|char| (char, chars.peek().copied())))
        .map(|(char, next)| match char {
            '\n' | '\t' => char,
            // Alone it would let what follows stand over what was said.
            '\r' if next == Some('\n') => char,
            _ if char.is_control() && char.len_utf8() == 1 => '?',
            _ if char.is_control() => '¿',
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
                '\u{fffd}'
            }
            _ => char,
        })
        .collect()
}

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Shown {}

impl miette::Diagnostic for Shown {
    fn severity(&self) -> Option<miette::Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        (!self.labels.is_empty())
            .then(|| Box::new(self.labels.iter().cloned()) as Box<dyn Iterator<Item = _>>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_a_terminal_is_shown_at_the_same_length() {
        let hostile = "a\u{1b}[31m\u{85}\u{202e}b\u{7f}\tc\rd\r\n";
        let shown = visible(hostile);
        assert_eq!(shown.len(), hostile.len());
        assert_eq!(shown, "a?[31m¿\u{fffd}b?\tc?d\r\n");
    }
}

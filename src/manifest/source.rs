//! The texts that a manifest is read from, and places in them.

use camino::Utf8PathBuf;

/// A range of bytes in one of the [`Sources`].
///
/// Ordered by source (the manifest first, then what it extends, then the command line) and by offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) source: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    /// The part of this span that begins `offset` bytes into it and is `length` bytes long.
    pub(crate) fn part(self, offset: usize, length: usize) -> Self {
        let start = self.end.min(self.start.saturating_add(to_u32(offset)));
        Self {
            source: self.source,
            start,
            end: self.end.min(start.saturating_add(to_u32(length))),
        }
    }
}

/// Offsets fit: no source is longer than [`crate::manifest::SIZE_LIMIT`].
fn to_u32(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// Where a text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file, named as the person or the extending manifest names it.
    File(Utf8PathBuf),
    /// An option of the command line; the text is the whole option.
    CommandLine,
}

/// One text.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    pub(crate) text: String,
    /// Offset of the start of every line.
    lines: Vec<usize>,
}

impl Source {
    /// What a message calls it.
    pub(crate) fn name(&self) -> &str {
        match &self.origin {
            Origin::File(path) => path.as_str(),
            Origin::CommandLine => &self.text,
        }
    }

    /// Line and column of an offset, counted from 1, columns in characters.
    pub(crate) fn place(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= offset).max(1) - 1;
        let before = self.text.get(self.lines[line]..offset).unwrap_or_default();
        (line + 1, before.chars().count() + 1)
    }

    /// Whether the place in it says anything: not for an empty text, nor for an option, which is its own place.
    pub(crate) fn has_lines(&self) -> bool {
        matches!(self.origin, Origin::File(_)) && !self.text.is_empty()
    }
}

/// Every text that was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources(Vec<Source>);

impl Sources {
    /// Adds a text; its index is its identity in [`Span`].
    pub(crate) fn add(&mut self, origin: Origin, text: String) -> u32 {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0)
            .chain(breaks.map(|(offset, _)| offset + 1))
            .collect();
        self.0.push(Source { origin, text, lines });
        to_u32(self.0.len() - 1)
    }

    /// The text that a span lies in.
    pub(crate) fn of(&self, span: Span) -> &Source {
        &self.0[span.source as usize]
    }

    /// The characters of a span.
    pub(crate) fn slice(&self, span: Span) -> &str {
        self.of(span)
            .text
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }

    /// The name of the text that a span lies in, with the line, for a person who looks for it: `m.toml:8`.
    pub(crate) fn line(&self, span: Span) -> String {
        let source = self.of(span);
        format!("{}:{}", source.name(), source.place(span.start as usize).0)
    }

    /// A span of no characters at the start of a text, for problems with the text as a whole.
    pub(crate) fn start(source: u32) -> Span {
        Span {
            source,
            start: 0,
            end: 0,
        }
    }

    /// The whole text.
    pub(crate) fn whole(&self, source: u32) -> Span {
        Span {
            source,
            start: 0,
            end: to_u32(self.0[source as usize].text.len()),
        }
    }

    /// Every file that was read.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Utf8PathBuf> {
        self.0.iter().filter_map(|source| match &source.origin {
            Origin::File(path) => Some(path),
            Origin::CommandLine => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let mut sources = Sources::default();
        let id = sources.add(Origin::File("m.toml".into()), "a = 1\r\né = \"ü\"\n".to_owned());
        let source = sources.of(Sources::start(id));
        assert_eq!(source.place(0), (1, 1));
        assert_eq!(source.place(4), (1, 5));
        assert_eq!(source.place(7), (2, 1));
        assert_eq!(source.place(9), (2, 2), "one character of two bytes before it");
        assert_eq!(source.place(17), (3, 1));
    }
}

//! What was probably meant where a text is not TOML: by what stands there, since what the parser expects next says little.

use std::ops::Range;

use provenir_api::schema::{look_alike, nearest};

use super::super::expect::{is_name, named};
use super::super::node::clip;
use super::SyntaxError;
use super::tokens::{Kind, Token, begins_line, open_brackets};

mod value;

/// Marks that look like quotation marks.
const QUOTES: &str = "“”„‟‘’‚‹›«»`´";

/// Knows a text, and what goes wrong in such.
pub(super) struct Adviser<'a> {
    text: &'a str,
    tokens: &'a [Token],
}

/// What stands around the place of an error.
struct Scene<'a> {
    /// The tokens of the line, without its end.
    line: &'a [Token],
    /// The last token of the lines before, if any.
    above: Option<&'a Token>,
    /// Words and strings at the place that no mark separates, as positions in the line.
    run: Range<usize>,
    /// What stands before the run: the last mark of the line, if any.
    before: Option<char>,
    /// The bracket that is open before the run.
    bracket: Option<char>,
    /// Whether the line is a table's header.
    header: bool,
}

impl Scene<'_> {
    /// Whether a value is read here.
    fn is_value(&self) -> bool {
        !self.header && (self.before == Some('=') || self.bracket == Some('['))
    }
}

impl<'a> Adviser<'a> {
    pub(super) fn new(text: &'a str, tokens: &'a [Token]) -> Self {
        Self { text, tokens }
    }

    /// An error at a place, of which the parser says `message`, in terms of what stands there.
    pub(super) fn advise(&self, span: Range<usize>, message: &str) -> SyntaxError {
        let scene = self.scene(span.start);
        let found = self
            .odd_character(&scene)
            .or_else(|| self.string(&scene, span.start, message))
            .or_else(|| self.header(&scene))
            .or_else(|| self.joined_by_colon(&scene))
            .or_else(|| self.wrong_bracket(&scene, span.start))
            .or_else(|| self.line_without_comma(&scene))
            .or_else(|| self.value(&scene, span.start))
            .or_else(|| self.after_value(&scene, span.start))
            .or_else(|| self.key(&scene));
        found.unwrap_or_else(|| SyntaxError {
            span,
            message: message.trim().to_owned(),
            help: None,
            other: None,
        })
    }

    fn slice(&self, token: &Token) -> &'a str {
        &self.text[token.range.clone()]
    }

    fn scene(&self, place: usize) -> Scene<'a> {
        let start = self.text[..place].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[place..]
            .find('\n')
            .map_or(self.text.len(), |at| place + at);
        let first = self.tokens.partition_point(|token| token.range.start < start);
        let last = self.tokens.partition_point(|token| token.range.start < end);
        let line = &self.tokens[first.min(last)..last];
        let is_piece = |index: usize| matches!(line[index].kind, Kind::Word | Kind::Text { .. });
        // The token at the place, or the one that it follows.
        let mut at = line.partition_point(|token| token.range.end <= place);
        if at == line.len() || line[at].range.start > place && !is_piece(at) {
            at = at.saturating_sub(usize::from(at > 0 && is_piece(at - 1)));
        }
        let mut run = at..at;
        while run.start > 0 && is_piece(run.start - 1) {
            run.start -= 1;
        }
        while run.end < line.len() && is_piece(run.end) {
            run.end += 1;
        }
        let brackets = open_brackets(&self.tokens[..first + run.start]);
        let mark = |token: &Token| match token.kind {
            Kind::Mark(mark) => Some(mark),
            _ => None,
        };
        Scene {
            before: run.start.checked_sub(1).and_then(|before| mark(&line[before])),
            bracket: brackets.last().and_then(|bracket| mark(&self.tokens[*bracket])),
            header: line.first().is_some_and(|token| token.kind == Kind::Mark('['))
                && begins_line(self.tokens, first)
                && open_brackets(&self.tokens[..first]).is_empty(),
            above: self.tokens[..first].iter().rfind(|token| token.kind != Kind::End),
            line,
            run,
        }
    }

    /// Characters that are not what they look like: spaces, quotation marks.
    fn odd_character(&self, scene: &Scene<'_>) -> Option<SyntaxError> {
        let words = || scene.line.iter().filter(|token| token.kind == Kind::Word);
        let place = |odd: fn(char) -> bool| {
            words().find_map(|token| {
                let (offset, char) = self.slice(token).char_indices().find(|(_, char)| odd(*char))?;
                Some((token.range.start + offset, char))
            })
        };
        let blank = |char: char| named(char).contains("looks like a space");
        let hidden = |char: char| named(char).contains("cannot be seen");
        if let Some((start, char)) = place(blank).or_else(|| place(hidden)) {
            let help = if blank(char) {
                "put a plain space in its place"
            } else {
                "delete it, and write the line anew"
            };
            return error(
                start..start + char.len_utf8(),
                format!("here is {}", named(char)),
                help,
            );
        }
        let (start, char) = place(|char| QUOTES.contains(char))?;
        let last = words().filter_map(|token| {
            let (offset, char) = self
                .slice(token)
                .char_indices()
                .rfind(|(_, char)| QUOTES.contains(*char))?;
            Some(token.range.start + offset + char.len_utf8())
        });
        let end = last.max().unwrap_or(start + char.len_utf8());
        // Of several texts in the line, the first.
        let inner = &self.text[start + char.len_utf8()..end];
        let inner = inner
            .split(|char| QUOTES.contains(char))
            .next()
            .unwrap_or_default();
        error(
            start..start + char.len_utf8(),
            format!(
                "`{char}` (U+{:04X}) is no quotation mark of TOML",
                u32::from(char)
            ),
            format!(
                "write `\"{}\"`, with the straight quotes of a keyboard",
                clip(inner)
            ),
        )
    }

    /// Strings: their ends and what is in them.
    fn string(&self, scene: &Scene<'_>, place: usize, message: &str) -> Option<SyntaxError> {
        let open = Kind::Text { closed: false };
        // A string may lack its end, so that the next quote ends it and what follows is in none.
        let swallowing = || {
            scene.line.iter().find(|token| {
                token.kind != Kind::Word && self.slice(token).trim_end_matches('"').ends_with("= ")
            })
        };
        let unclosed = scene.line.iter().find(|token| token.kind == open);
        if let Some(token) = swallowing().or(unclosed) {
            let quote = &self.slice(token)[..1];
            let start = token.range.start;
            return error(
                start..start + 1,
                "this quote is never closed".to_owned(),
                format!("write `{quote}` where the text ends, on the same line"),
            );
        }
        if message.contains("escape") {
            return error(
                place..place,
                "a `\\` in double quotes begins an escape, and this is none".to_owned(),
                "write `\\\\` for the character itself, `/` in paths, or put the text in single quotes",
            );
        }
        None
    }

    /// Headers.
    fn header(&self, scene: &Scene<'_>) -> Option<SyntaxError> {
        if !scene.header {
            return None;
        }
        let names: Vec<&Token> = scene
            .line
            .iter()
            .skip_while(|token| token.kind == Kind::Mark('['))
            .take_while(|token| matches!(token.kind, Kind::Word | Kind::Text { .. }))
            .collect();
        for token in names.iter().filter(|token| token.kind == Kind::Word) {
            if let Some(found) = self.stranger(token) {
                return Some(found);
            }
        }
        let closed = scene.line.iter().any(|token| token.kind == Kind::Mark(']'));
        match names.as_slice() {
            [first, .., last] if closed && self.slice(first).ends_with(|char: char| char != '.') => error(
                first.range.end..last.range.start,
                format!(
                    "the name `{}` holds a space",
                    &self.text[first.range.start..last.range.end]
                ),
                self.joined(&names)
                    .unwrap_or_else(|| "names are made of letters, digits, `_` and `-`".to_owned()),
            ),
            _ if !closed => {
                let end = scene.line.last()?.range.end;
                let brackets = scene
                    .line
                    .iter()
                    .take_while(|token| token.kind == Kind::Mark('['));
                let closing = "]".repeat(brackets.count());
                error(
                    end..end,
                    format!("the header is not closed: `{closing}` is missing"),
                    "a header stands alone on its line, such as `[stages.NAME]`",
                )
            }
            _ => None,
        }
    }

    /// What a header of words and texts without dots between them would be with dots: `[stage "policy"]`.
    fn joined(&self, names: &[&Token]) -> Option<String> {
        let names: Vec<&str> = names
            .iter()
            .map(|token| self.slice(token).trim_matches(['"', '\'']))
            .collect();
        let (first, rest) = names.split_first()?;
        let table = nearest(first, ["stages", "profiles"]).filter(|_| is_name(first))?;
        let is_right = !rest.is_empty() && rest.iter().all(|name| is_name(name));
        is_right.then(|| format!("write `[{table}.{}]`", rest.join(".")))
    }

    /// `key: value`.
    fn joined_by_colon(&self, scene: &Scene<'_>) -> Option<SyntaxError> {
        let (index, token) = scene.line.iter().enumerate().find(|(index, token)| {
            let first = *index == 0;
            let entry = *index > 0 && matches!(scene.line[index - 1].kind, Kind::Mark('{' | ','));
            let next = scene.line.get(index + 1).map(|token| token.kind);
            (first || entry)
                && token.kind == Kind::Word
                && self.slice(token).contains(':')
                && next != Some(Kind::Mark('='))
        })?;
        if scene.bracket == Some('[') || scene.header {
            return None;
        }
        let (key, glued) = self.slice(token).split_once(':')?;
        let value = if glued.is_empty() {
            scene.line.get(index + 1).map_or("…", |token| self.slice(token))
        } else {
            glued
        };
        let value = match value {
            "[" | "{" => "…".to_owned(),
            value => value::written(value),
        };
        let colon = token.range.start + key.len();
        error(
            colon..colon + 1,
            "a key and its value are joined by `=`, not by `:`".to_owned(),
            format!("write `{} = {value}`", clip(key)),
        )
    }

    /// A bracket that closes another.
    fn wrong_bracket(&self, scene: &Scene<'_>, place: usize) -> Option<SyntaxError> {
        let token = scene
            .line
            .iter()
            .find(|token| token.range.end > place && token.range.start <= place)
            .filter(|token| matches!(token.kind, Kind::Mark(']' | '}')))?;
        let index = self.tokens.iter().position(|other| other == token)?;
        let mark = self.slice(token);
        let Some(open) = open_brackets(&self.tokens[..index]).pop() else {
            return error(
                token.range.clone(),
                format!("this `{mark}` closes nothing"),
                "delete it, or open the bracket that it should close",
            );
        };
        let opened = self.slice(&self.tokens[open]);
        let wanted = if opened == "[" { "]" } else { "}" };
        if wanted == mark {
            return None;
        }
        Some(SyntaxError {
            span: self.tokens[open].range.clone(),
            message: format!("this `{opened}` is not closed before `{mark}`"),
            help: Some(format!("write `{wanted}` before `{mark}`")),
            other: Some((token.range.clone(), "closed by this")),
        })
    }

    /// An element or an entry in a line of its own, of which the one before has no comma.
    fn line_without_comma(&self, scene: &Scene<'_>) -> Option<SyntaxError> {
        if scene.bracket.is_none() || scene.run.start > 0 || scene.run.is_empty() {
            return None;
        }
        let above = scene.above?;
        if matches!(above.kind, Kind::Mark('[' | '{' | ',' | '=')) {
            return None;
        }
        let end = above.range.end;
        let help = "the members of a list and of a table are separated by commas";
        let name = clip(self.slice(above));
        error(end..end, format!("a comma is missing after `{name}`"), help)
    }

    /// What a key must not be.
    fn key(&self, scene: &Scene<'_>) -> Option<SyntaxError> {
        if scene.is_value() {
            return None;
        }
        let run = &scene.line[scene.run.clone()];
        for token in run.iter().filter(|token| token.kind == Kind::Word) {
            if let Some(found) = self.stranger(token) {
                return Some(found);
            }
        }
        let next = scene.line.get(scene.run.end);
        let is_joined = next.is_some_and(|token| token.kind == Kind::Mark('='));
        match run {
            [key, rest @ ..] if !is_joined => {
                let value = rest.first().map_or("…", |token| self.slice(token));
                error(
                    key.range.clone(),
                    format!("the key `{}` has no value", clip(self.slice(key))),
                    format!("write `{} = {}`", clip(self.slice(key)), value::written(value)),
                )
            }
            [first, second, ..] => error(
                first.range.end..second.range.start,
                format!(
                    "the key `{}` holds a space",
                    clip(&self.text[first.range.start..run[run.len() - 1].range.end])
                ),
                "keys are made of letters, digits, `_` and `-`; others go in quotes",
            ),
            _ => None,
        }
    }

    /// The first character of a word that no key holds.
    fn stranger(&self, token: &Token) -> Option<SyntaxError> {
        let (offset, char) = self
            .slice(token)
            .char_indices()
            .find(|(_, char)| !(char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.')))?;
        let start = token.range.start + offset;
        let help = match look_alike(char) {
            Some(plain) => format!("write `{plain}`"),
            None => "names are made of the letters A to Z and a to z, digits, `_` and `-`".to_owned(),
        };
        error(
            start..start + char.len_utf8(),
            format!("the name `{}` holds {}", clip(self.slice(token)), named(char)),
            help,
        )
    }
}

#[expect(clippy::unnecessary_wraps, reason = "where it is used, there may be none")]
fn error(span: Range<usize>, message: String, help: impl Into<String>) -> Option<SyntaxError> {
    Some(SyntaxError {
        span,
        message,
        help: Some(help.into()),
        other: None,
    })
}

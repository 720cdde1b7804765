//! What keeps a text from being TOML, said once, where it can be mended, and with what would be right.
//!
//! The parser goes on after an error, which finds independent ones, and finds many that are only its confusion: a
//! bracket that is never closed swallows all that follows. So one error a line is told, and none after such a bracket,
//! which is shown itself.
//!
//! * `tokens`: the pieces of a text that is nearly TOML.
//! * `advice`: what was probably meant, by what stands at the place of an error.
//! * `duplicate`: where a key that is given twice was given first.

mod advice;
mod duplicate;
mod tokens;

use std::ops::Range;

use self::advice::Adviser;
use self::duplicate::first_of;
use self::tokens::{Kind, Token, begins_line, open_brackets, tokens};
use super::node::{DEPTH_LIMIT, clip};

/// Errors that are told at most.
const SHOWN: usize = 5;
/// What the parser says where it gives up on nesting.
const RECURSES: [&str; 2] = ["cannot recurse further", "recursion limit"];
/// What is said of it.
pub(super) const TOO_DEEP: &str = "tables and arrays nest too deeply here; the limit is 32";
/// What to do about it.
pub(super) const TOO_DEEP_HELP: &str = "every dot of a key and every bracket goes one deeper";
/// What it says of a key that a table has already.
const DUPLICATE: &str = "duplicate key";

/// An error, its place, and what to do next.
#[derive(Debug, PartialEq)]
pub(super) struct SyntaxError {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// Another place that has to do with it, and what that is.
    pub(super) other: Option<(Range<usize>, &'static str)>,
}

/// What a text should have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Keys and values.
    Document,
    /// A value.
    Value,
}

/// The errors of a text that are worth telling.
pub(super) fn syntax_errors(text: &str, form: Form, errors: &[toml::de::Error]) -> Vec<SyntaxError> {
    let mut tokens = tokens(text);
    if form == Form::Value {
        // As if its key stood before it.
        let joined = Token {
            kind: Kind::Mark('='),
            range: 0..0,
        };
        tokens.insert(0, joined);
    }
    let adviser = Adviser::new(text, &tokens);
    let mut told: Vec<SyntaxError> = Vec::new();
    let mut line = None;
    // The end of a header that was told to be wrong: that its keys stand elsewhere already follows from that.
    let mut misplaced = None;
    for error in errors {
        let end = text.len();
        let span = error.span().unwrap_or(end..end);
        let span = floor(text, span.start)..floor(text, span.end);
        let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let duplicate = error.message().contains(DUPLICATE);
        let follows = |from: usize| !has_header(&tokens, from, span.start);
        if line.replace(start) == Some(start) || duplicate && misplaced.is_some_and(follows) {
            continue;
        }
        if let Some(unclosed) = unclosed(text, &tokens, start, span.start) {
            told.push(unclosed);
            break;
        }
        if is_header(&tokens, start) {
            misplaced = Some(span.start);
        }
        let too_deep = RECURSES.iter().any(|words| error.message().contains(words));
        told.push(if too_deep {
            SyntaxError {
                // The parser names no place, or the end, where a header has too many dots.
                span: long_key(text, &tokens).unwrap_or(span),
                message: TOO_DEEP.to_owned(),
                help: Some(TOO_DEEP_HELP.to_owned()),
                other: None,
            }
        } else if duplicate {
            duplicated(text, &tokens, span)
        } else {
            adviser.advise(span, error.message())
        });
        // A bracket that closes another swallows what follows.
        let swallows = !duplicate && told.last().is_some_and(|error| error.other.is_some());
        if too_deep || swallows || told.len() == SHOWN {
            break;
        }
    }
    told
}

fn duplicated(text: &str, tokens: &[Token], span: Range<usize>) -> SyntaxError {
    let header = is_header(tokens, text[..span.start].rfind('\n').map_or(0, |at| at + 1));
    let what = if header { "table" } else { "key" };
    let first = first_of(text, tokens, &span);
    let line = first.as_ref().map(|first| {
        let line = text[..first.start].bytes().filter(|byte| *byte == b'\n').count() + 1;
        format!(": first in line {line}")
    });
    SyntaxError {
        message: format!(
            "the {what} `{}` is given twice{}",
            clip(&text[span.clone()]),
            line.unwrap_or_default()
        ),
        help: Some(if header {
            "put what belongs to it below one header, or give one of the two another name".to_owned()
        } else {
            "keep one of the two".to_owned()
        }),
        other: first.map(|first| (first, "first given here")),
        span,
    }
}

/// The first key that alone goes too deep.
fn long_key(text: &str, tokens: &[Token]) -> Option<Range<usize>> {
    let is_key = |token: &&Token| {
        token.kind == Kind::Word
            && text[token.range.clone()]
                .bytes()
                .filter(|byte| *byte == b'.')
                .count()
                >= DEPTH_LIMIT
    };
    tokens.iter().find(is_key).map(|token| token.range.clone())
}

/// Whether the line that begins there is a table's header.
fn is_header(tokens: &[Token], line: usize) -> bool {
    let index = tokens.partition_point(|token| token.range.start < line);
    matches!(tokens.get(index), Some(token) if token.kind == Kind::Mark('[')) && begins_line(tokens, index)
}

/// Whether a header begins between two places.
fn has_header(tokens: &[Token], from: usize, to: usize) -> bool {
    let first = tokens.partition_point(|token| token.range.start <= from);
    (first..tokens.len())
        .take_while(|index| tokens[*index].range.start < to)
        .any(|index| tokens[index].kind == Kind::Mark('[') && begins_line(tokens, index))
}

/// The bracket that is open where the line of an error begins, or where the text ends, if what stands there shows that
/// it should not be.
fn unclosed(text: &str, tokens: &[Token], line: usize, error: usize) -> Option<SyntaxError> {
    let at_end = text[error..].trim().is_empty();
    let before = if at_end { text.len() } else { line };
    let before = tokens.partition_point(|token| token.range.start < before);
    let position = tokens[*open_brackets(&tokens[..before]).last()?].range.start;
    let bracket = text[position..].chars().next()?;
    let next = &text[line..];
    if !at_end && !begins_something_else(next, bracket) {
        return None;
    }
    let closing = if bracket == '[' { ']' } else { '}' };
    let stop = (!at_end).then(|| {
        let length = next.lines().next().unwrap_or_default().trim_end().len();
        (line..line + length, "something else begins here")
    });
    let help = if at_end {
        format!("write `{closing}` where it ends")
    } else {
        format!("close it with `{closing}` before the line where something else begins")
    };
    Some(SyntaxError {
        span: position..position + 1,
        message: format!("this `{bracket}` is never closed"),
        help: Some(help),
        other: stop,
    })
}

/// Whether a line begins what cannot stand in a bracket: a table's header, or, in an array, a key and its value.
fn begins_something_else(line: &str, bracket: char) -> bool {
    let line = line.lines().next().unwrap_or_default().trim();
    let is_bare = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|char| char.is_ascii_alphanumeric() || "_-.\"' ".contains(char))
    };
    if let Some(header) = line.strip_prefix('[') {
        let header = header.strip_prefix('[').unwrap_or(header);
        return header.split_once(']').is_some_and(|(name, rest)| {
            let is_name = name
                .trim_start()
                .starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
            let rest = rest.trim_start_matches(']').trim_start();
            is_name && is_bare(name) && (rest.is_empty() || rest.starts_with('#'))
        });
    }
    bracket == '[' && line.split_once('=').is_some_and(|(key, _)| is_bare(key.trim()))
}

/// The nearest boundary of a character at or before an offset.
fn floor(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len()))
        .rev()
        .find(|offset| text.is_char_boundary(*offset))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<(String, &str)> {
        let (_, errors) = toml::de::DeTable::parse_recoverable(text);
        syntax_errors(text, Form::Document, &errors)
            .into_iter()
            .map(|error| (error.message, &text[error.span.start..]))
            .collect()
    }

    #[test]
    fn a_bracket_that_is_never_closed_is_told_once_and_where_it_opens() {
        for (text, bracket, at) in [
            ("a = [1, 2\nb = [3]\n[t]\nc = 1\n", '[', "[1, 2"),
            ("a = [1, 2,\nb = [3]\n[t]\nc = 1\n", '[', "[1, 2,"),
            ("a = [[1], [2\n[t.u] # here\nc = 1\n", '[', "[2"),
            ("a = {b = 1\n[t]\nc = 1\n", '{', "{b"),
            ("x = \"[\" # [\n[t]\na = [1, \"]\"", '[', "[1"),
            ("a = [\n  1, 2\n", '[', "[\n"),
        ] {
            let told = told(text);
            assert_eq!(told.len(), 1, "{text}: {told:?}");
            assert_eq!(told[0].0, format!("this `{bracket}` is never closed"), "{text}");
            assert!(told[0].1.starts_with(at), "{text}: {told:?}");
        }
    }

    #[test]
    fn what_is_closed_is_not_blamed_and_independent_errors_are_all_told() {
        for text in ["a = [1 2]\n", "a = [\n  1\n  2\n]\n", "a = [[1]\n  [2]]\n"] {
            let told = told(text);
            assert!(
                !told.is_empty() && told.iter().all(|told| !told.0.contains("never")),
                "{told:?}"
            );
        }
        let told = told("a = = 1\nb = {x = 1,, y = 2}\n[t]\nc = [1\nd = 2\ne = 3\n");
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[2].1.starts_with("[1\nd"), "{told:?}");
    }

    #[test]
    fn too_deep_nesting_is_told_in_words() {
        for text in [
            format!("a = {}{}", "[".repeat(900), "]".repeat(900)),
            format!("a = {}", "{a=".repeat(900)),
        ] {
            let told = told(&text);
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(
                told[0].0.contains("nest too deeply") || told[0].0.contains("never"),
                "{told:?}"
            );
        }
    }
}

//! What keeps a text from being TOML, said once and where it can be mended.
//!
//! The parser goes on after an error, which finds independent ones, and finds many that are only its confusion: a
//! bracket that is never closed swallows all that follows. So one error a line is told, and none after such a bracket,
//! which is shown itself.

use std::ops::Range;

use super::node::DEPTH_LIMIT;

/// Errors that are told at most.
const SHOWN: usize = 5;
/// What the parser says where it gives up on nesting.
const TOO_DEEP: &str = "cannot recurse further";

/// An error, its place, and what to do next.
#[derive(Debug, PartialEq)]
pub(super) struct SyntaxError {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// Where something else begins although a bracket is open.
    pub(super) stop: Option<Range<usize>>,
}

/// The errors of a text that are worth telling.
pub(super) fn syntax_errors(text: &str, errors: &[toml::de::Error]) -> Vec<SyntaxError> {
    let mut told: Vec<SyntaxError> = Vec::new();
    let mut line = None;
    for error in errors {
        let end = text.len();
        let span = error.span().unwrap_or(end..end);
        let start = text[..floor(text, span.start)].rfind('\n').map_or(0, |at| at + 1);
        if line.replace(start) == Some(start) {
            continue;
        }
        if let Some(unclosed) = unclosed(text, start, span.start) {
            told.push(unclosed);
            break;
        }
        let too_deep = error.message().contains(TOO_DEEP);
        told.push(SyntaxError {
            span,
            message: if too_deep {
                format!("tables and arrays nest too deeply here; the limit is {DEPTH_LIMIT}")
            } else {
                error.message().to_owned()
            },
            help: None,
            stop: None,
        });
        if too_deep || told.len() == SHOWN {
            break;
        }
    }
    told
}

/// The bracket that is open where the line of an error begins, or where the text ends, if what stands there shows that
/// it should not be.
fn unclosed(text: &str, line: usize, error: usize) -> Option<SyntaxError> {
    let at_end = text[floor(text, error)..].trim().is_empty();
    let open = open_bracket(&text[..if at_end { text.len() } else { line }])?;
    let next = &text[line..];
    if !at_end && !begins_something_else(next, open.1) {
        return None;
    }
    let (position, bracket) = open;
    let closing = if bracket == '[' { ']' } else { '}' };
    let stop = (!at_end).then(|| {
        let length = next.lines().next().unwrap_or_default().trim_end().len();
        line..line + length
    });
    let before = if at_end {
        "the end of the file"
    } else {
        "the line where something else begins"
    };
    Some(SyntaxError {
        span: position..position + 1,
        message: format!("this `{bracket}` is never closed"),
        help: Some(format!("close it with `{closing}` before {before}")),
        stop,
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

/// The innermost bracket that is open at the end of a text, and its place.
fn open_bracket(text: &str) -> Option<(usize, char)> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut rest = text.char_indices().peekable();
    let mut header = true;
    while let Some((position, char)) = rest.next() {
        match char {
            '#' => while rest.next_if(|(_, char)| *char != '\n').is_some() {},
            '"' | '\'' => {
                let long = [char; 3].iter().collect::<String>();
                let is_long = text[position..].starts_with(&long);
                let body = position + if is_long { 3 } else { 1 };
                let end = string_end(&text[body..], char, is_long).map_or(text.len(), |end| body + end);
                while rest.next_if(|(position, _)| *position < end).is_some() {}
                header = false;
            }
            // At the beginning of a line outside of any value it opens a table's header, which ends with the line.
            '[' if header && open.is_empty() => while rest.next_if(|(_, char)| *char != '\n').is_some() {},
            '[' | '{' => open.push((position, char)),
            ']' | '}' => {
                open.pop();
            }
            '\n' => header = true,
            _ if char.is_whitespace() => {}
            _ => header = false,
        }
    }
    open.pop()
}

/// Where a string that has begun ends, past its quotes; a string of one line ends with its line, closed or not.
fn string_end(body: &str, quote: char, is_long: bool) -> Option<usize> {
    let mut escaped = false;
    for (position, char) in body.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            '\n' if !is_long => return Some(position),
            _ if char == quote && !is_long => return Some(position + 1),
            _ if char == quote && body[position..].starts_with(&[quote; 3].iter().collect::<String>()) => {
                return Some(position + 3);
            }
            _ => {}
        }
    }
    None
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
        syntax_errors(text, &errors)
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

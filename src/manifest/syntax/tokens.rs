//! The pieces of a text that is nearly TOML.

use std::ops::Range;

/// A piece of a text; white space and comments between them are left out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
}

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A string, closed or not.
    Text { closed: bool },
    /// `[`, `]`, `{`, `}`, `=` or `,`.
    Mark(char),
    /// The end of a line.
    End,
    /// Anything else up to the next of those or to ASCII white space.
    Word,
}

/// The tokens of a text.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, char)) = rest.next() {
        let (kind, end) = match char {
            '#' => {
                while rest.next_if(|(_, char)| *char != '\n').is_some() {}
                continue;
            }
            '\n' => (Kind::End, start + 1),
            _ if char.is_ascii_whitespace() => continue,
            '[' | ']' | '{' | '}' | '=' | ',' => (Kind::Mark(char), start + 1),
            '"' | '\'' => {
                let long = text[start..].starts_with(&String::from_iter([char; 3]));
                let body = start + if long { 3 } else { 1 };
                let (length, closed) = string_end(&text[body..], char, long);
                while rest.next_if(|(position, _)| *position < body + length).is_some() {}
                (Kind::Text { closed }, body + length)
            }
            _ => {
                let ends = |char: char| char.is_ascii_whitespace() || "[]{}=,\"'#".contains(char);
                let mut end = start + char.len_utf8();
                while let Some((position, char)) = rest.next_if(|(_, char)| !ends(*char)) {
                    end = position + char.len_utf8();
                }
                (Kind::Word, end)
            }
        };
        found.push(Token {
            kind,
            range: start..end,
        });
    }
    found
}

/// The length of the rest of a string, its quotes included, and whether it has them; a string of one line ends with its line.
fn string_end(body: &str, quote: char, long: bool) -> (usize, bool) {
    let mut escaped = false;
    for (position, char) in body.char_indices() {
        match char {
            '\n' if !long => return (position, false),
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            _ if char == quote && !long => return (position + 1, true),
            _ if char == quote && body[position..].starts_with(&String::from_iter([quote; 3])) => {
                return (position + 3, true);
            }
            _ => {}
        }
    }
    (body.len(), false)
}

/// The brackets that are open after some tokens, each as its token's position; those of headers are none.
pub(super) fn open_brackets(tokens: &[Token]) -> Vec<usize> {
    let mut open = Vec::new();
    let mut header = false;
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::End => header = false,
            Kind::Mark('[') if open.is_empty() && begins_line(tokens, index) => header = true,
            Kind::Mark('[' | '{') if !header => open.push(index),
            Kind::Mark(']' | '}') if !header => {
                open.pop();
            }
            _ => {}
        }
    }
    open
}

/// Whether a token is the first of its line.
pub(super) fn begins_line(tokens: &[Token], index: usize) -> bool {
    index == 0 || tokens[index - 1].kind == Kind::End
}

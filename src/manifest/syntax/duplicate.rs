//! Where a key that is given twice was given first.

use std::ops::Range;

use super::tokens::{Kind, Token, begins_line};

/// A key, or a beginning of one, with all that lies above it; elements of arrays have numbers.
type Path = Vec<String>;

/// What a bracket that is open holds.
enum Inside {
    /// Entries below this path.
    Table(Path),
    /// Elements, and the number of the one at hand.
    Array(Path, usize),
}

/// The place at which the key at a place was given before.
pub(super) fn first_of(text: &str, tokens: &[Token], key: &Range<usize>) -> Option<Range<usize>> {
    let keys = keys(text, tokens, key.end);
    let (path, _) = keys.iter().rfind(|(_, range)| range.start == key.start)?;
    let (_, first) = keys.iter().find(|(other, _)| other == path)?;
    (first.start != key.start).then(|| first.clone())
}

/// Every part of every key up to a place, with its path.
fn keys(text: &str, tokens: &[Token], end: usize) -> Vec<(Path, Range<usize>)> {
    let mut found = Vec::new();
    let mut header = Path::new();
    let mut tables = 0;
    let mut inside: Vec<Inside> = Vec::new();
    // The key whose value is read.
    let mut current = Path::new();
    let mut index = 0;
    while let Some(token) = tokens.get(index).filter(|token| token.range.start < end) {
        let key_begins = match inside.last() {
            None => begins_line(tokens, index),
            Some(Inside::Table(_)) => {
                let before = tokens[..index].iter().rfind(|token| token.kind != Kind::End);
                before.is_some_and(|before| matches!(before.kind, Kind::Mark('{' | ',')))
            }
            Some(Inside::Array(..)) => false,
        };
        match token.kind {
            Kind::Mark('[') if inside.is_empty() && key_begins => {
                let many = matches!(tokens.get(index + 1), Some(next) if next.kind == Kind::Mark('['));
                index += if many { 2 } else { 1 };
                let last = key_end(tokens, index);
                header = add(text, &tokens[index..last], &Path::new(), &mut found);
                if many {
                    tables += 1;
                    header.push(tables.to_string());
                }
                while tokens.get(index).is_some_and(|token| token.kind != Kind::End) {
                    index += 1;
                }
                continue;
            }
            Kind::Word | Kind::Text { .. } if key_begins => {
                let last = key_end(tokens, index);
                let above = match inside.last() {
                    Some(Inside::Table(path)) => path,
                    _ => &header,
                };
                current = add(text, &tokens[index..last], above, &mut found);
                index = last;
                continue;
            }
            Kind::Mark(bracket @ ('[' | '{')) => {
                let mut path = current.clone();
                if let Some(Inside::Array(above, number)) = inside.last() {
                    path.clone_from(above);
                    path.push(number.to_string());
                }
                inside.push(if bracket == '[' {
                    Inside::Array(path, 0)
                } else {
                    Inside::Table(path)
                });
            }
            Kind::Mark(']' | '}') => {
                inside.pop();
            }
            Kind::Mark(',') => {
                if let Some(Inside::Array(_, number)) = inside.last_mut() {
                    *number += 1;
                }
            }
            _ => {}
        }
        index += 1;
    }
    found
}

/// Where a key that begins at a token ends.
fn key_end(tokens: &[Token], first: usize) -> usize {
    let rest = tokens[first..]
        .iter()
        .take_while(|token| matches!(token.kind, Kind::Word | Kind::Text { .. }));
    first + rest.count()
}

/// Adds the parts of a key; gives its whole path.
fn add(text: &str, key: &[Token], above: &Path, found: &mut Vec<(Path, Range<usize>)>) -> Path {
    let mut path = above.clone();
    for token in key {
        let written = &text[token.range.clone()];
        if token.kind != Kind::Word {
            path.push(written.trim_matches(['"', '\'']).to_owned());
            found.push((path.clone(), token.range.clone()));
            continue;
        }
        let mut start = token.range.start;
        for part in written.split('.') {
            if !part.is_empty() {
                path.push(part.to_owned());
                found.push((path.clone(), start..start + part.len()));
            }
            start += part.len() + 1;
        }
    }
    path
}

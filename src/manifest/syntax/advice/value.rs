//! Values that are none: words without quotes, numbers as they are written elsewhere.

use super::super::super::node::{clip, quoted};
use super::super::SyntaxError;
use super::super::tokens::{Kind, Token};
use super::{Adviser, Scene, error};

impl Adviser<'_> {
    /// What is wrong with a value, by its words.
    pub(super) fn value(&self, scene: &Scene<'_>, place: usize) -> Option<SyntaxError> {
        if !scene.is_value() {
            return None;
        }
        let run = &scene.line[scene.run.clone()];
        let Some(first) = run.first() else {
            return self.no_value(scene, place);
        };
        let whole = &self.text[first.range.start..run[run.len() - 1].range.end];
        let next = scene.line.get(scene.run.end).map(|token| token.kind);
        if self.slice(first) == "$" && next == Some(Kind::Mark('{')) {
            let rest = &self.text[first.range.start..];
            let end = rest.find('}').map_or(rest.len(), |end| end + 1);
            let reference = rest[..end].lines().next().unwrap_or_default();
            let help = format!("write `{}`", quoted(reference));
            return error(
                first.range.start..first.range.start + reference.len(),
                "a reference to an axis is written in quotes".to_owned(),
                help,
            );
        }
        if self.slice(first).starts_with('(') {
            return error(
                first.range.start..first.range.start + 1,
                "a list is written in square brackets".to_owned(),
                "write `[` and `]` for `(` and `)`",
            );
        }
        let [_, second, ..] = run else {
            let (message, help) = self.word(first)?;
            return error(first.range.clone(), message, help);
        };
        if let Some(found) = self.ending(second) {
            return Some(found);
        }
        if let Some(digits) = grouped(whole) {
            let comma = if scene.bracket == Some('[') {
                ", or put a comma between two numbers"
            } else {
                ""
            };
            return error(
                first.range.start..run[run.len() - 1].range.end,
                "a number is written without spaces".to_owned(),
                format!("write `{digits}` or `{}`{comma}", whole.replace([' ', '\t'], "_")),
            );
        }
        match scene.bracket {
            Some('[') => error(
                second.range.clone(),
                format!("a comma is missing before `{}`", clip(self.slice(second))),
                format!(
                    "write `{}, {}`",
                    written(self.slice(first)),
                    written(self.slice(second))
                ),
            ),
            Some('{') if next == Some(Kind::Mark('=')) => {
                let key = run[run.len() - 1].range.clone();
                let name = clip(&self.text[key.clone()]);
                error(
                    key,
                    format!("a comma is missing before `{name}`"),
                    "entries are separated by commas: `{ KEY = VALUE, KEY = VALUE }`",
                )
            }
            _ if first.kind == Kind::Word && self.word(first).is_some() => {
                let help = match run
                    .last()
                    .filter(|last| last.kind == (Kind::Text { closed: true }))
                {
                    Some(last) => format!(
                        "write {} alone, or {} if all of it is the text",
                        clip(self.slice(last)),
                        quoted(whole)
                    ),
                    None => format!("write `{}`", quoted(whole)),
                };
                error(
                    first.range.start..run[run.len() - 1].range.end,
                    "a text is written in quotes".to_owned(),
                    help,
                )
            }
            _ => error(
                second.range.clone(),
                format!("`{}` stands after the value", clip(self.slice(second))),
                "a line holds one key and its value; a list is written in square brackets",
            ),
        }
    }

    /// A place at which a value is lacking.
    fn no_value(&self, scene: &Scene<'_>, place: usize) -> Option<SyntaxError> {
        let token = scene.line.get(scene.run.start);
        if let Some(token) = token.filter(|token| token.kind == Kind::Mark('=')) {
            return error(
                token.range.clone(),
                "a key and its value are joined by one `=`".to_owned(),
                "delete this one",
            );
        }
        if let Some(token) = token.filter(|token| token.kind == Kind::Mark(',') && scene.before != Some('='))
        {
            return error(
                token.range.clone(),
                "here is a comma too many".to_owned(),
                "delete it",
            );
        }
        (scene.before == Some('=')).then_some(())?;
        let key = scene
            .run
            .start
            .checked_sub(2)
            .map(|key| self.slice(&scene.line[key]))?;
        error(
            place..place,
            format!("the key `{}` has no value", clip(key)),
            "write a text in quotes, a number, `true`, `false`, a list in `[ ]` or a table in `{ }`",
        )
    }

    /// What stands after a value that is complete.
    pub(super) fn after_value(&self, scene: &Scene<'_>, place: usize) -> Option<SyntaxError> {
        if scene.header {
            return None;
        }
        let at = scene.line.partition_point(|token| token.range.end <= place);
        let token = scene.line.get(at)?;
        if let Some(found) = self.ending(token) {
            return Some(found);
        }
        let joined = scene.line.iter().position(|token| token.kind == Kind::Mark('='));
        // `24,000` in a table is a value and a key.
        let around = scene.line[..at.min(scene.line.len())].iter().rev().chain([token]);
        for comma in around.filter(|token| token.kind == Kind::Mark(',')) {
            let place = comma.range.start;
            let left = self.text[..place]
                .rsplit(|char: char| !char.is_ascii_digit())
                .next()?;
            let right = self.text[place + 1..]
                .split(|char: char| !char.is_ascii_digit() && char != ',')
                .next()?;
            let groups: Vec<&str> = right.split(',').take_while(|group| group.len() == 3).collect();
            if (1..=3).contains(&left.len()) && !groups.is_empty() && scene.bracket != Some('[') {
                let length = groups.iter().map(|group| group.len() + 1).sum::<usize>();
                let start = place - left.len();
                let all = &self.text[start..place + length];
                return error(
                    start..place + length,
                    format!("`{all}` is two values: a number is written without commas"),
                    format!("write `{}` or `{}`", all.replace(',', ""), all.replace(',', "_")),
                );
            }
        }
        if token.kind != Kind::Mark(',') || scene.bracket.is_some() {
            return None;
        }
        let (joined, rest) = (joined?, &scene.line[at + 1..]);
        let Some(last) = rest.last() else {
            return error(
                token.range.clone(),
                "no comma is written at the end of a line".to_owned(),
                "delete it",
            );
        };
        let whole = &self.text[scene.line.get(joined + 1)?.range.start..last.range.end];
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let help = match whole.split_once(',') {
            Some((whole, part)) if is_number(whole) && is_number(part) => {
                format!("write `{whole}.{part}` for a number, `[{whole}, {part}]` for a list")
            }
            _ => format!("write `[{}]`", clip(whole)),
        };
        error(
            token.range.clone(),
            "a list is written in square brackets".to_owned(),
            help,
        )
    }

    /// What other languages end a line with.
    fn ending(&self, token: &Token) -> Option<SyntaxError> {
        let written = self.slice(token);
        if token.kind != Kind::Word {
            None
        } else if written.starts_with("//") || written.starts_with("--") || written.starts_with("/*") {
            error(
                token.range.start..token.range.start + 2,
                "a comment begins with `#`".to_owned(),
                format!("write `#` for `{}`", &written[..2]),
            )
        } else if written.starts_with(';') {
            error(
                token.range.start..token.range.start + 1,
                "a line ends without `;`".to_owned(),
                "delete it",
            )
        } else {
            None
        }
    }

    /// What is wrong with one word, and what was meant.
    fn word(&self, token: &Token) -> Option<(String, String)> {
        let word = self.slice(token);
        if token.kind != Kind::Word || is_value(word) {
            return None;
        }
        let lower = word.to_ascii_lowercase();
        let write = |right: &str| format!("write `{right}`");
        Some(match lower.as_str() {
            "true" | "false" => ("truth values are in small letters".to_owned(), write(&lower)),
            "yes" | "on" => (format!("`{word}` is no value of TOML"), truth("true", word)),
            "no" | "off" => (format!("`{word}` is no value of TOML"), truth("false", word)),
            "none" | "null" | "nil" | "undefined" | "~" => (
                format!("`{word}` is no value of TOML"),
                "leave the key out where there is nothing to say".to_owned(),
            ),
            "nan" | "inf" | "infinity" | "+inf" | "-inf" => (
                "numbers must be finite".to_owned(),
                format!("write a number, or `{}` if a text is meant", quoted(word)),
            ),
            _ => match number(word) {
                Some((message, right)) => (message, write(&right)),
                None if word.starts_with(|first: char| first.is_ascii_digit()) => (
                    format!("`{}` is not a number", clip(word)),
                    format!(
                        "numbers look like `60_000`, `0.5` and `7.5e-4`; if a text is meant, write `{}`",
                        written(word)
                    ),
                ),
                None => ("a text is written in quotes".to_owned(), write(&written(word))),
            },
        })
    }
}

fn truth(value: &str, word: &str) -> String {
    format!("write `{value}`, or `{}` if a text is meant", quoted(word))
}

/// A word as a value: itself if it is one, otherwise in quotes.
pub(super) fn written(word: &str) -> String {
    if word == "…" || is_value(word) || word.starts_with(['"', '\'']) {
        clip(word)
    } else {
        quoted(word)
    }
}

fn is_value(word: &str) -> bool {
    toml::de::DeValue::parse(word).is_ok()
}

/// A number that is written as elsewhere: what is wrong, and how TOML has it.
fn number(word: &str) -> Option<(String, String)> {
    let is_number = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_digit())
            && text.parse::<f64>().is_ok_and(f64::is_finite)
            && is_value(text)
    };
    if let Some(rest) = word.strip_prefix(['−', '–', '—', '‐', '‑', '‒']) {
        let dash = word.chars().next()?;
        let right = format!("-{rest}");
        return is_number(rest).then(|| {
            (
                format!("`{dash}` (U+{:04X}) is not a minus", u32::from(dash)),
                right,
            )
        });
    }
    if let Some(rest) = word.strip_suffix('%') {
        let share: f64 = rest.parse().ok()?;
        let right = format!("{:?}", share / 100.0);
        return is_number(rest).then(|| {
            (
                format!("`{word}` is not a number: a share is written as a fraction of 1"),
                right,
            )
        });
    }
    let (sign, digits) = match word.strip_prefix(['+', '-']) {
        Some(rest) => (&word[..1], rest),
        None => ("", word),
    };
    let sign = if sign == "+" { "" } else { sign };
    if digits.starts_with('.') {
        let right = format!("0{digits}");
        return is_number(&right).then(|| {
            (
                "a number begins with a digit".to_owned(),
                format!("{sign}{right}"),
            )
        });
    }
    if digits.ends_with('.') {
        let right = format!("{digits}0");
        return is_number(&right).then(|| {
            (
                "a digit stands after the decimal point".to_owned(),
                format!("{sign}{right}"),
            )
        });
    }
    if let Some((whole, exponent)) = digits.split_once(".e").or_else(|| digits.split_once(".E")) {
        let right = format!("{whole}.0e{exponent}");
        return is_number(&right).then(|| {
            (
                "a digit stands after the decimal point".to_owned(),
                format!("{sign}{right}"),
            )
        });
    }
    let stripped = digits.trim_start_matches('0');
    if stripped.len() < digits.len() {
        let right = if stripped.starts_with(|first: char| first.is_ascii_digit()) {
            stripped.to_owned()
        } else {
            format!("0{stripped}")
        };
        return is_number(&right).then(|| {
            (
                "a number does not begin with `0`".to_owned(),
                format!("{sign}{right}"),
            )
        });
    }
    None
}

/// Digits in groups of three, joined; nothing where they are something else.
fn grouped(text: &str) -> Option<String> {
    let mut groups = text.split_ascii_whitespace();
    let digits = |group: &&str| group.bytes().all(|byte| byte.is_ascii_digit());
    let first = groups.next().filter(digits)?;
    let rest: Vec<&str> = groups.collect();
    let fits =
        first.len() <= 3 && !rest.is_empty() && rest.iter().all(|group| group.len() == 3 && digits(group));
    fits.then(|| format!("{first}{}", rest.concat()))
}

//! Placeholders in arguments.
//!
//! `{input.NAME}`, `{output.NAME}` and `{value.NAME}`; braces around anything else are themselves, since arguments are full of
//! them (`awk '{print $1}'`, JSON). One brace more on both sides, `{{input.NAME}}`, stands for the text `{input.NAME}`.

use provenir_api::schema::nearest;

/// What a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// The path of an input.
    Input(&'a str),
    /// The path of an output.
    Output(&'a str),
    /// A value.
    Value(&'a str),
}

/// A part of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Place(Place<'a>),
    /// What looks like a placeholder and is none, with what was meant.
    Wrong(&'a str, Meant<'a>),
}

/// What may have been meant by something that is no placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meant<'a> {
    /// A placeholder that begins otherwise, with this name.
    Other(&'static str, &'a str),
    /// A placeholder that lacks its name.
    Named(&'static str),
    /// A file of the stage.
    File,
    /// An axis, as other tools write it.
    Wildcard(&'a str),
}

/// What placeholders begin with.
const HEADS: [&str; 3] = ["input", "output", "value"];

/// Splits an argument.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut literal = 0;
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|open| at + open) {
        let inner = open + 1;
        let next = text[inner..].find(['{', '}']).map(|next| inner + next);
        let Some(close) = next.filter(|next| text[*next..].starts_with('}')) else {
            at = inner;
            continue;
        };
        let whole = &text[open..=close];
        let Some(found) = read(&text[inner..close], whole) else {
            at = close + 1;
            continue;
        };
        if text[..open].ends_with('{') && text[close + 1..].starts_with('}') {
            // One brace of each pair is left.
            pieces.push(Piece::Text(&text[literal..open - 1]));
            pieces.push(Piece::Text(whole));
            literal = close + 2;
        } else {
            pieces.push(Piece::Text(&text[literal..open]));
            pieces.push(found);
            literal = close + 1;
        }
        at = literal;
    }
    pieces.push(Piece::Text(&text[literal..]));
    pieces.retain(|piece| *piece != Piece::Text(""));
    pieces
}

/// What stands between two braces, where that is, or looks like, a placeholder.
fn read<'a>(inner: &'a str, whole: &'a str) -> Option<Piece<'a>> {
    let is_word = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let wrong = |meant| Some(Piece::Wrong(whole, meant));
    let Some((head, name)) = inner.split_once('.') else {
        let alone = HEADS
            .into_iter()
            .find(|head| inner == *head || inner == format!("{head}s"));
        return alone.and_then(|head| wrong(Meant::Named(head)));
    };
    if !is_word(head) || !is_word(name) {
        // `{input.}`, `{output.a b}`.
        let known = HEADS.into_iter().find(|known| *known == head);
        return known.and_then(|head| wrong(Meant::Named(head)));
    }
    match head {
        "input" => Some(Piece::Place(Place::Input(name))),
        "output" => Some(Piece::Place(Place::Output(name))),
        "value" => Some(Piece::Place(Place::Value(name))),
        "file" | "files" => wrong(Meant::File),
        "param" | "params" => wrong(Meant::Other("value", name)),
        "axis" | "axes" | "wildcards" => wrong(Meant::Wildcard(name)),
        _ if head.len() > 2 => nearest(head, HEADS).and_then(|near| wrong(Meant::Other(near, name))),
        _ => None,
    }
}

/// The argument with everything filled in. What is no placeholder stays as it is.
pub fn fill(text: &str, mut with: impl FnMut(Place<'_>) -> String) -> String {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) | Piece::Wrong(text, _) => filled.push_str(text),
            Piece::Place(place) => filled.push_str(&with(place)),
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        fill(text, |place| match place {
            Place::Input(name) => format!("<i {name}>"),
            Place::Output(name) => format!("<o {name}>"),
            Place::Value(name) => format!("<v {name}>"),
        })
    }

    #[test]
    fn placeholders_are_filled_in_and_other_braces_stay() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("{input.demos}", "<i demos>"),
            ("--out={output.a-b}.x", "--out=<o a-b>.x"),
            ("{value.n}{value.n}", "<v n><v n>"),
            ("{{input.demos}}", "{input.demos}"),
            ("a{{value.n}}b{value.n}", "a{value.n}b<v n>"),
            ("{print $1}", "{print $1}"),
            ("{\"a\": {\"b\": 1}}", "{\"a\": {\"b\": 1}}"),
            ("f\"{x.y}\"", "f\"{x.y}\""),
            ("{", "{"),
            ("}{", "}{"),
            ("{{}}", "{{}}"),
            ("{ {input.a}", "{ <i a>"),
            ("{{input.a}", "{<i a>"),
            ("{é.a}{input.a}", "{é.a}<i a>"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn what_was_meant_for_a_placeholder_is_told() {
        for (text, meant) in [
            ("{inptu.demos}", Meant::Other("input", "demos")),
            ("{inputs.demos}", Meant::Other("input", "demos")),
            ("{params.n}", Meant::Other("value", "n")),
            ("{input}", Meant::Named("input")),
            ("{outputs}", Meant::Named("output")),
            ("{output.}", Meant::Named("output")),
            ("{files.a}", Meant::File),
            ("{wildcards.env}", Meant::Wildcard("env")),
        ] {
            assert_eq!(pieces(text), [Piece::Wrong(text, meant)], "{text}");
        }
        assert_eq!(pieces("{self.demos}"), [Piece::Text("{self.demos}")]);
        assert_eq!(pieces("{x.y}"), [Piece::Text("{x.y}")]);
    }
}

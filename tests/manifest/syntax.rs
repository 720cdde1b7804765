//! What is said of texts that are not TOML: what was probably meant, where it stands.

use provenir::manifest::Diagnostics;

use super::Project;

fn found(text: &str) -> Diagnostics {
    Project::new(text)
        .load()
        .err()
        .unwrap_or_else(|| panic!("{text} is no manifest"))
}

/// The only error of a text: what stands where it is shown, what is said and what to do.
fn only(text: &str) -> (String, String, String) {
    let found = found(text);
    let told: Vec<_> = found.entries().collect();
    if told.len() != 1 {
        return (String::new(), format!("{found}"), String::new());
    }
    let (line, column) = told[0].place.unwrap_or_else(|| panic!("{found}"));
    let line = text.split('\n').nth(line - 1).unwrap_or_default();
    (
        line.chars().skip(column - 1).collect(),
        told[0].message.to_owned(),
        told[0].help.unwrap_or_default().to_owned(),
    )
}

/// A text, and the beginning of where it is shown, a part of what is said and of what to do.
const TEXTS: &[(&str, &str, &str, &str)] = &[
    // Texts.
    (
        "kind = train\n",
        "train",
        "a text is written in quotes",
        "write `\"train\"`",
    ),
    (
        "kind = collect # it\n",
        "collect",
        "a text is written in quotes",
        "write `\"collect\"`",
    ),
    (
        "kind = noisy-bc\n",
        "noisy",
        "a text is written in quotes",
        "write `\"noisy-bc\"`",
    ),
    (
        "kind = noisy bc\n",
        "noisy",
        "a text is written in quotes",
        "write `\"noisy bc\"`",
    ),
    (
        "a = [bc, \"rbc\"]\n",
        "bc",
        "a text is written in quotes",
        "write `\"bc\"`",
    ),
    (
        "a = { b = info }\n",
        "info",
        "a text is written in quotes",
        "write `\"info\"`",
    ),
    (
        "env = ${env}\n",
        "${env}",
        "a reference to an axis is written in quotes",
        "write `\"${env}\"`",
    ),
    (
        "a = { b = ${env.x} }\n",
        "${env.x}",
        "a reference",
        "write `\"${env.x}\"`",
    ),
    (
        "kind = “train”\n",
        "“train",
        "`“` (U+201C) is no quotation mark of TOML",
        "write `\"train\"`",
    ),
    (
        "kind = ‘train’\n",
        "‘train",
        "`‘` (U+2018) is no quotation mark of TOML",
        "write `\"train\"`",
    ),
    (
        "a = [“b c”, “d”]\n",
        "“b c",
        "no quotation mark",
        "write `\"b c\"`",
    ),
    (
        "kind = \"train\n",
        "\"train",
        "this quote is never closed",
        "write `\"` where the text ends",
    ),
    (
        "p = \"C:\\data\\x\"\n",
        "data",
        "begins an escape",
        "single quotes",
    ),
    // Truth values and nothing.
    (
        "a = True\n",
        "True",
        "truth values are in small letters",
        "write `true`",
    ),
    (
        "a = [FALSE]\n",
        "FALSE",
        "truth values are in small letters",
        "write `false`",
    ),
    (
        "a = yes\n",
        "yes",
        "`yes` is no value of TOML",
        "write `true`, or `\"yes\"` if a text is meant",
    ),
    ("a = off\n", "off", "`off` is no value of TOML", "write `false`"),
    (
        "a = None\n",
        "None",
        "`None` is no value of TOML",
        "leave the key out",
    ),
    (
        "a = null\n",
        "null",
        "`null` is no value of TOML",
        "leave the key out",
    ),
    // Numbers.
    (
        "a = [5%, 10]\n",
        "5%",
        "a share is written as a fraction of 1",
        "write `0.05`",
    ),
    (
        "a = 12.5%\n",
        "12.5%",
        "a share is written as a fraction of 1",
        "write `0.125`",
    ),
    ("a = .5\n", ".5", "a number begins with a digit", "write `0.5`"),
    (
        "a = [0, -.5]\n",
        "-.5",
        "a number begins with a digit",
        "write `-0.5`",
    ),
    (
        "a = 5.\n",
        "5.",
        "a digit stands after the decimal point",
        "write `5.0`",
    ),
    (
        "a = 1.e3\n",
        "1.e3",
        "a digit stands after the decimal point",
        "write `1.0e3`",
    ),
    (
        "a = 020\n",
        "020",
        "a number does not begin with `0`",
        "write `20`",
    ),
    (
        "a = [1, 007]\n",
        "007",
        "a number does not begin with `0`",
        "write `7`",
    ),
    (
        "a = 00.5\n",
        "00.5",
        "a number does not begin with `0`",
        "write `0.5`",
    ),
    ("a = −1\n", "−1", "`−` (U+2212) is not a minus", "write `-1`"),
    (
        "a = 24 000\n",
        "24 000",
        "without spaces",
        "write `24000` or `24_000`",
    ),
    (
        "a = { n = 24,000 }\n",
        "24,000",
        "without commas",
        "write `24000` or `24_000`",
    ),
    (
        "a = { n = 1,024,000, m = 1 }\n",
        "1,024,000",
        "without commas",
        "write `1024000` or `1_024_000`",
    ),
    (
        "a = 0,5\n",
        ",5",
        "square brackets",
        "write `0.5` for a number, `[0, 5]` for a list",
    ),
    ("a = 10k\n", "10k", "`10k` is not a number", "write `\"10k\"`"),
    // Commas and brackets.
    (
        "a = [1 2]\n",
        "2]",
        "a comma is missing before `2`",
        "write `1, 2`",
    ),
    (
        "a = [\"b\" \"c\"]\n",
        "\"c\"",
        "a comma is missing before `\"c\"`",
        "write `\"b\", \"c\"`",
    ),
    (
        "a = { b = 1 c = 2 }\n",
        "c = 2",
        "a comma is missing before `c`",
        "separated by commas",
    ),
    (
        "a = { b = \"x\" c = 2 }\n",
        "c = 2",
        "a comma is missing before `c`",
        "separated by commas",
    ),
    (
        "a = { b = \"x, c = \"y\" }\n",
        "\"x",
        "never closed",
        "where the text ends",
    ),
    ("a = [1,, 2]\n", ", 2", "a comma too many", "delete it"),
    (
        "a = 1, 2\n",
        ", 2",
        "a list is written in square brackets",
        "[1, 2]",
    ),
    (
        "kind = \"b\",\n",
        ",",
        "no comma is written at the end of a line",
        "delete it",
    ),
    ("a = (1, 2)\n", "(1", "square brackets", "write `[` and `]`"),
    (
        "a = { b = [1 }\n",
        "[1 }",
        "this `[` is not closed before `}`",
        "write `]` before `}`",
    ),
    ("a = 1]\n", "]", "this `]` closes nothing", "delete it"),
    (
        "a = [\n  1\n  2\n]\n",
        "",
        "a comma is missing after `1`",
        "separated by commas",
    ),
    (
        "a = {\n  b = [1]\n  c = 2\n}\n",
        "",
        "a comma is missing after `]`",
        "separated by commas",
    ),
    // Keys.
    (
        "kind: \"train\"\n",
        ": ",
        "joined by `=`, not by `:`",
        "write `kind = \"train\"`",
    ),
    (
        "kind: train\n",
        ": ",
        "joined by `=`, not by `:`",
        "write `kind = \"train\"`",
    ),
    (
        "a = { b: 1 }\n",
        ": 1",
        "joined by `=`, not by `:`",
        "write `b = 1`",
    ),
    (
        "kind \"train\"\n",
        "kind",
        "the key `kind` has no value",
        "write `kind = \"train\"`",
    ),
    (
        "kind\n",
        "kind",
        "the key `kind` has no value",
        "write `kind = …`",
    ),
    ("kind =\n", "", "the key `kind` has no value", "a text in quotes"),
    (
        "kind == \"train\"\n",
        "= \"",
        "joined by one `=`",
        "delete this one",
    ),
    (
        "k\u{43e} = 1\n",
        "\u{43e}",
        "`\u{43e}` (U+043E), which is not the `o` that it looks like",
        "write `o`",
    ),
    ("my key = 1\n", " key", "the key `my key` holds a space", "quotes"),
    // White space.
    (
        "kind\u{a0}= 1\n",
        "\u{a0}",
        "U+00A0, which looks like a space and is none",
        "plain space",
    ),
    (
        "kind =\u{a0}\"train\"\n",
        "\u{a0}",
        "U+00A0, which looks like a space and is none",
        "plain space",
    ),
    (
        "kind\u{200b} = 1\n",
        "\u{200b}",
        "U+200B, which cannot be seen",
        "delete it",
    ),
    // Headers, and what ends a line elsewhere.
    ("[stages.demos\nkind = 1\n", "", "`]` is missing", "[stages.NAME]"),
    (
        "[stages.my demos]\n",
        " demos",
        "the name `stages.my demos` holds a space",
        "letters",
    ),
    (
        "[stages.d\u{e9}mos]\n",
        "\u{e9}",
        "holds `\u{e9}` (U+00E9)",
        "A to Z",
    ),
    ("kind = \"a\";\n", ";", "a line ends without `;`", "delete it"),
    (
        "kind = \"a\" // b\n",
        "// b",
        "a comment begins with `#`",
        "write `#`",
    ),
];

#[test]
fn what_was_meant_is_said_as_it_is_written() {
    let mut wrong = Vec::new();
    for &(text, place, message, help) in TEXTS {
        let (found, said, advice) = only(text);
        if !(found.starts_with(place) && said.contains(message) && advice.contains(help)) {
            wrong.push(format!("{text}  shown at {found:?}\n  {said}\n  {advice}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_given_twice_is_shown_at_both_places() {
    for (text, key, first) in [
        ("a = 1\nb = 2\na = 3\n", "key `a`", 1),
        ("[t]\na = 1\n[u]\na = 2\na = 3\n", "key `a`", 4),
        ("[t]\nx.y = 1\nx.y = 2\n", "key `y`", 2),
        ("p = {\n a = 1, b = { a = 2 },\n a = 3 }\n", "key `a`", 2),
        ("p = [\n{ a = 1 },\n{ a = 2,\n a = 3 }]\n", "key `a`", 3),
        ("[[t]]\na = 1\n[[t]]\na = 2\na = 3\n", "key `a`", 4),
        // The keys below it are not a second mistake.
        ("[s.d]\na = 1\n[u]\n[s.d]\na = 2\nb = 3\n", "table `d`", 1),
    ] {
        let (_, message, _) = only(text);
        assert_eq!(
            message,
            format!("the {key} is given twice: first in line {first}"),
            "{text}"
        );
        let shown = found(text).render(100, false);
        assert!(shown.contains("first given here"), "{shown}");
    }
}

#[test]
fn one_bracket_or_header_that_is_not_closed_is_one_mistake() {
    for (text, message) in [
        ("a = [1, 2\nb = [3]\n[t]\nc = 1\n", "this `[` is never closed"),
        (
            "a = [\n  \"x\",\n  \"y\"\nb = 2\nc = 3\n",
            "this `[` is never closed",
        ),
        (
            "p = { a = 1,\n  b = 2\n\n[t]\nc = { d = 1 }\n",
            "this `{` is never closed",
        ),
        (
            "p = { a = [1, 2 }\nq = 1\n[t]\n",
            "this `[` is not closed before `}`",
        ),
        (
            "[s.a]\nkind = 1\n[s.b\nkind = 2\nparams = {}\n[s.c]\nkind = 3\n",
            "the header is not closed: `]` is missing",
        ),
        (
            "p = { a = \"x, b = \"y\", c = \"z\" }\nq = 1\n",
            "this quote is never closed",
        ),
    ] {
        assert_eq!(only(text).1, message, "{text}");
    }
}

#[test]
fn keys_that_go_too_deep_are_told_once() {
    for parts in [40, 200, 100_000] {
        let key = vec!["a"; parts].join(".");
        for text in [
            format!("{key} = 1\n"),
            format!("format = 1\n[{key}]\nb = 1\nc = 2\n"),
        ] {
            let (place, message, _) = only(&text);
            assert_eq!(message, "tables and arrays nest too deeply here; the limit is 32");
            assert!(
                place.trim_start_matches('[').starts_with("a.a"),
                "{parts}: {place:.20}"
            );
        }
    }
}

//! Names that people write, and the names that they may have meant.

/// The known name that is most like `name`, if any is alike enough to be what was meant: at most a third of the longer
/// one's letters are wrong, missing, too many or swapped, or one is the beginning of the other. Letters that only look
/// alike count as one.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// No name that anyone meant is longer.
    const LONGEST: usize = 100;
    /// A shorter beginning says too little.
    const BEGINNING: usize = 4;
    let folded = |name: &str| -> String {
        let plain = name.chars().map(|char| look_alike(char).unwrap_or(char));
        plain.collect::<String>().to_lowercase().replace('-', "_")
    };
    let wanted = folded(name);
    let length = wanted.chars().count();
    if length > LONGEST {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let found = folded(candidate);
        let other = found.chars().count();
        if other > LONGEST {
            continue;
        }
        let longer = length.max(other);
        let distance = strsim::osa_distance(&wanted, &found);
        let begins =
            length.min(other) >= BEGINNING && (wanted.starts_with(&found) || found.starts_with(&wanted));
        let is_alike = distance < longer && distance <= (longer / 3).max(1) || distance == 0 || begins;
        if is_alike && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Names joined for people, each in backticks.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names
        .into_iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The ASCII character that another looks like: those of other alphabets, of full width, and dashes.
pub fn look_alike(char: char) -> Option<char> {
    /// Cyrillic, Greek and others, and what each looks like.
    const FOREIGN: &str = "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅοναρικυΑΒΕΖΗΙΚΜΝΟΡΤΥΧıℓ";
    const ASCII: &str = "aeopcyxijshdqwABEKMHOPCTYXIJSovapikuABEZHIKMNOPTYXil";
    /// From the exclamation mark to the tilde.
    const WIDE: std::ops::RangeInclusive<u32> = 0xff01..=0xff5e;
    if char.is_ascii() {
        return None;
    }
    match char {
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe63}' => return Some('-'),
        _ if WIDE.contains(&u32::from(char)) => return char::from_u32(u32::from(char) - WIDE.start() + 0x21),
        _ => {}
    }
    let place = FOREIGN.chars().position(|foreign| foreign == char)?;
    ASCII.chars().nth(place)
}

/// Which character of a name is not the one that it looks like, as a clause for people.
pub fn misread(name: &str) -> Option<String> {
    name.chars().find_map(|char| {
        let plain = look_alike(char)?;
        Some(format!(
            "its `{char}` is U+{:04X}, which is not the `{plain}` of a keyboard",
            u32::from(char)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_have_been_meant_is_near() {
        for (name, known, expected) in [
            ("epoch", &["epochs", "hidden"][..], Some("epochs")),
            ("secnd", &["first", "second"], Some("second")),
            (
                "learning-rate",
                &["learning_rate", "learning_rates"],
                Some("learning_rate"),
            ),
            ("lerning_rtae", &["learning_rate"], Some("learning_rate")),
            ("walker", &["hopper", "walker2d"], Some("walker2d")),
            ("bc", &["rbc"], Some("rbc")),
            ("a", &["b"], None),
            ("reward", &["record", "figure"], Some("record")),
            ("trials", &["title", "episodes"], None),
            ("x", &["series", "rows"], None),
            ("pipeline.toml", &["chain.toml", "robots.toml"], None),
            ("\u{430}nt", &["bat", "ant"], Some("ant")),
        ] {
            assert_eq!(nearest(name, known.iter().copied()), expected, "{name}");
        }
        let long = "a".repeat(1 << 20);
        assert_eq!(nearest(&long, [long.as_str()]), None);
    }

    #[test]
    fn letters_of_other_alphabets_look_like_ascii() {
        for (char, plain) in [
            ('\u{430}', 'a'),
            ('\u{435}', 'e'),
            ('\u{43e}', 'o'),
            ('\u{440}', 'p'),
            ('\u{441}', 'c'),
            ('\u{3bf}', 'o'),
            ('\u{3a7}', 'X'),
            ('\u{131}', 'i'),
            ('\u{2113}', 'l'),
            ('\u{2212}', '-'),
            ('\u{ff41}', 'a'),
        ] {
            assert_eq!(look_alike(char), Some(plain), "U+{:04X}", u32::from(char));
        }
        assert_eq!(look_alike('a'), None);
        assert_eq!(look_alike('é'), None);
        assert_eq!(
            misread("c\u{43e}llect").unwrap_or_default(),
            "its `\u{43e}` is U+043E, which is not the `o` of a keyboard"
        );
        assert_eq!(misread("collect"), None);
    }
}

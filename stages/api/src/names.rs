//! Names that people write, and the names that they may have meant.

use std::collections::BTreeSet;

/// The known name that is most like `name`, if any is alike enough to be what was meant: at most a third of the longer
/// one's letters are wrong, missing, too many or swapped, or one is the beginning of the other. Letters that only look
/// alike count as one, and quotation marks count as none. Failing that, the only one that shortens the other: by its
/// beginning (`eps` for `epsilon`), by the beginnings of its words (`lr` for `learning_rate`), or by one of its words.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// No name that anyone meant is longer.
    const LONGEST: usize = 100;
    /// A shorter beginning says too little.
    const BEGINNING: usize = 4;
    let folded = |name: &str| -> String {
        let plain = name.chars().map(|char| look_alike(char).unwrap_or(char));
        let plain: String = plain.filter(|char| !matches!(char, '"' | '\'' | '`')).collect();
        plain.trim().to_lowercase().replace(['-', ' '], "_")
    };
    let wanted = folded(name);
    let length = wanted.chars().count();
    if length > LONGEST {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    let mut shortened = Vec::new();
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
        if shortens(&wanted, &found) {
            shortened.push(candidate);
        }
    }
    let only = shortened.first().filter(|_| shortened.len() == 1).copied();
    best.map(|(_, candidate)| candidate).or(only)
}

/// Whether one name is a short form of the other.
fn shortens(name: &str, known: &str) -> bool {
    /// A shorter beginning, or word, says too little.
    const LEAST: usize = 3;
    const LEAST_WORD: usize = 4;
    let begins = |whole: &str, part: &str| part.len() >= LEAST && whole.starts_with(part);
    let has_word =
        |whole: &str, part: &str| part.len() >= LEAST_WORD && whole.split('_').any(|word| word == part);
    begins(known, name)
        || has_word(known, name)
        || has_word(name, known)
        || known.contains('_') && is_made_of_beginnings(&name.replace('_', ""), known)
}

/// Whether letters are beginnings of all words of a name, in order.
fn is_made_of_beginnings(letters: &str, name: &str) -> bool {
    let letters: Vec<char> = letters.chars().collect();
    // How many letters the words so far may account for.
    let mut reached = BTreeSet::from([0]);
    for word in name.split('_') {
        let ends = |start: usize| {
            let common = letters[start..].iter().copied().zip(word.chars());
            let common = common.take_while(|(letter, char)| letter == char).count();
            start + 1..=start + common
        };
        reached = reached.into_iter().flat_map(ends).collect();
    }
    reached.contains(&letters.len())
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
            ("\"corupt\"", &["collect", "corrupt"], Some("corrupt")),
            ("lr", &["batch", "learning_rate", "rbc"], Some("learning_rate")),
            ("LR", &["learning-rate"], Some("learning-rate")),
            ("learn_rate", &["learning_rate"], Some("learning_rate")),
            ("wd", &["weight_decay", "width"], Some("weight_decay")),
            ("lr", &["learning_rate", "loss_ratio"], None),
            ("rl", &["learning_rate"], None),
            ("lrx", &["learning_rate"], None),
            ("eps", &["env", "epsilon", "method"], Some("epsilon")),
            ("eps", &["epsilon", "epsilon_2"], None),
            ("num_epochs", &["epochs", "hidden"], Some("epochs")),
            ("rate", &["learning_rate", "epochs"], Some("learning_rate")),
            ("e", &["env", "epsilon"], None),
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

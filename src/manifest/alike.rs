//! Texts that people cannot tell apart.
//!
//! Two texts look alike where their skeletons are the same, by the confusable characters of Unicode Technical Standard 39
//! (<https://www.unicode.org/reports/tr39/#Confusable_Detection>), which contains that their canonical decompositions are.
//! Texts of ASCII alone are never held against each other: `l` and `1` are told apart by whoever writes programs.

use std::collections::BTreeMap;

use unicode_security::skeleton;

/// Of some texts, those that look like an earlier one: the positions of both, the earlier one first. Each is held against the
/// first that it looks like.
pub(crate) fn alike<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Vec<(usize, usize)> {
    if texts.clone().all(str::is_ascii) {
        return Vec::new();
    }
    let mut by_skeleton: BTreeMap<String, Vec<(usize, &str)>> = BTreeMap::new();
    let mut found = Vec::new();
    for (position, text) in texts.enumerate() {
        let alike = by_skeleton.entry(skeleton(text).collect()).or_default();
        let mut earlier = alike.iter();
        if let Some((first, _)) =
            earlier.find(|(_, other)| *other != text && !(text.is_ascii() && other.is_ascii()))
        {
            found.push((*first, position));
        }
        // Of many that look alike, one of ASCII and one of others are enough to find the rest.
        if alike.iter().all(|(_, other)| other.is_ascii() != text.is_ascii()) {
            alike.push((position, text));
        }
    }
    found
}

/// How two texts that look alike differ: the code points between what they begin and end with alike.
pub(crate) fn apart(left: &str, right: &str) -> String {
    let (mut left, mut right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    for _ in 0..2 {
        while left.last().is_some() && left.last() == right.last() {
            left.pop();
            right.pop();
        }
        // Turned over twice: first the ends go, then the beginnings.
        left.reverse();
        right.reverse();
    }
    format!("{} and {}", points(&left), points(&right))
}

fn points(letters: &[char]) -> String {
    if letters.is_empty() {
        return "nothing".to_owned();
    }
    let points = letters
        .iter()
        .map(|letter| format!("U+{:04X}", u32::from(*letter)));
    points.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> Vec<(usize, usize)> {
        alike(texts.iter().copied())
    }

    #[test]
    fn compositions_and_letters_of_other_scripts_look_alike() {
        assert_eq!(found(&["é", "e\u{301}"]), [(0, 1)]);
        assert_eq!(found(&["a", "b", "\u{430}"]), [(0, 2)]);
        assert_eq!(found(&["3×3", "3x3"]), [(0, 1)]);
        assert_eq!(found(&["\u{430}", "x", "a", "\u{251}"]), [(0, 2), (0, 3)]);
    }

    #[test]
    fn what_people_tell_apart_does_not() {
        assert_eq!(found(&["l", "1", "I", "0", "O", "rn", "m"]), []);
        assert_eq!(found(&["e", "é", "è", "ε", "σ", "中", "文"]), []);
        assert_eq!(found(&["l", "1", "é"]), []);
        assert_eq!(found(&["é", "é"]), []);
    }

    #[test]
    fn they_are_told_apart_by_their_code_points() {
        assert_eq!(apart("caf\u{e9}s", "cafe\u{301}s"), "U+00E9 and U+0065 U+0301");
        assert_eq!(apart("data", "d\u{430}ta"), "U+0061 and U+0430");
        assert_eq!(apart("aa", "a"), "U+0061 and nothing");
    }
}

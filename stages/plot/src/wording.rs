//! What a figure says in words, for those who do not see it and for programs.

use crate::figure::Figure;

/// A text longer than this is cut.
const LONGEST: usize = 2000;

impl Figure {
    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        if self.title.trim().is_empty() {
            &self.y.label
        } else {
            &self.title
        }
    }
}

/// A text in one line, no longer than is sensible. What XML and PDF cannot hold becomes the replacement character.
pub(crate) fn plain(text: &str) -> String {
    let letters = text.chars().take(LONGEST).map(|letter| match letter {
        '\t' | '\n' | '\r' => ' ',
        '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        letter => letter,
    });
    let mut plain: String = letters.collect();
    if text.chars().nth(LONGEST).is_some() {
        plain.push('…');
    }
    plain
}

/// The same for an attribute or between tags.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in plain(text).chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(
            escape("<a b=\"c\">&\u{0}\n"),
            "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd} "
        );
        assert_eq!(plain("a\u{1b}b\u{7f}"), "a\u{fffd}b\u{7f}");
        assert_eq!(escape(&"x".repeat(5000)).chars().count(), LONGEST + 1);
    }
}

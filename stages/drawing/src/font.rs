//! The bundled font: text becomes outlines, so that a figure looks the same wherever it is shown.
//!
//! Letters are placed one after the other with the font's kerning. Scripts that join or reorder letters are not shaped.

use std::fmt::Write;
use std::sync::OnceLock;

use ttf_parser::{Face, name_id};

pub use ttf_parser::{GlyphId, OutlineBuilder};

/// Weight of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// As running text.
    Regular,
    /// As titles.
    Bold,
}

/// `DejaVu` Sans Condensed.
#[derive(Debug)]
pub struct Font {
    face: Face<'static>,
}

/// A letter and where it begins, in font units from the beginning of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its number in the font.
    pub glyph: GlyphId,
    /// Where it begins.
    pub x: i32,
}

impl Font {
    /// The font of that weight.
    pub fn of(weight: Weight) -> &'static Self {
        static REGULAR: OnceLock<Font> = OnceLock::new();
        static BOLD: OnceLock<Font> = OnceLock::new();
        let (cell, bytes): (_, fn() -> &'static [u8]) = match weight {
            Weight::Regular => (&REGULAR, dejavu::sans_condensed::regular),
            Weight::Bold => (&BOLD, dejavu::sans_condensed::bold),
        };
        cell.get_or_init(|| Self {
            face: Face::parse(bytes(), 0).expect("the bundled font is whole"),
        })
    }

    /// Font units in the height of the text.
    pub fn units(&self) -> f64 {
        f64::from(self.face.units_per_em())
    }

    /// Height of capital letters and of numerals as a share of the size.
    pub fn capital(&self) -> f64 {
        let glyph = self.face.glyph_index('H').unwrap_or_default();
        let bounds = self.face.glyph_bounding_box(glyph);
        bounds.map_or(0.0, |bounds| f64::from(bounds.y_max)) / self.units()
    }

    /// The font as a file (TrueType), for who embeds it.
    pub fn file(&self) -> &'static [u8] {
        self.face.raw_face().data
    }

    /// Its `PostScript` name.
    pub fn name(&self) -> String {
        let mut names = self.face.names().into_iter();
        names
            .find(|name| name.name_id == name_id::POST_SCRIPT_NAME && name.is_unicode())
            .and_then(|name| name.to_string())
            .expect("the bundled font has a name")
    }

    /// Left, bottom, right and top of all its letters together, in font units, y upwards.
    pub fn bounds(&self) -> [i16; 4] {
        let bounds = self.face.global_bounding_box();
        [bounds.x_min, bounds.y_min, bounds.x_max, bounds.y_max]
    }

    /// How far lines reach above and below the base line, in font units, y upwards.
    pub fn extents(&self) -> [i16; 2] {
        [self.face.ascender(), self.face.descender()]
    }

    /// How far behind the beginning of a letter the next begins, without kerning, in font units.
    pub fn advance(&self, glyph: GlyphId) -> i32 {
        i32::from(self.face.glyph_hor_advance(glyph).unwrap_or_default())
    }

    /// The letters of a text, one for each character, and its length in font units. What the font lacks shows as its replacement character.
    pub fn place(&self, text: &str) -> (Vec<Placed>, i32) {
        let mut placed: Vec<Placed> = Vec::with_capacity(text.len());
        let mut x = 0;
        for letter in text.chars() {
            let glyph = self
                .face
                .glyph_index(letter)
                .or_else(|| self.face.glyph_index(char::REPLACEMENT_CHARACTER))
                .unwrap_or_default();
            if let Some(before) = placed.last() {
                x += self.kerning(before.glyph, glyph);
            }
            placed.push(Placed { glyph, x });
            x += self.advance(glyph);
        }
        (placed, x)
    }

    /// Length of a text at a size, in the unit of the size.
    pub fn width(&self, text: &str, size: f64) -> f64 {
        f64::from(self.place(text).1) * size / self.units()
    }

    /// The outline of a letter as SVG path data in font units, y downwards; empty for a space.
    pub fn outline(&self, glyph: GlyphId) -> String {
        let mut path = Outline(String::new());
        self.trace(glyph, &mut path);
        path.0
    }

    /// Draws the outline of a letter, in font units, y upwards.
    pub fn trace(&self, glyph: GlyphId, builder: &mut dyn OutlineBuilder) {
        self.face.outline_glyph(glyph, builder);
    }

    fn kerning(&self, left: GlyphId, right: GlyphId) -> i32 {
        let subtables = self.face.tables().kern.iter().flat_map(|kern| kern.subtables);
        subtables
            .filter(|subtable| subtable.horizontal && !subtable.variable)
            .filter_map(|subtable| subtable.glyphs_kerning(left, right))
            .map(i32::from)
            .sum()
    }
}

/// Path data; the coordinates of a font that is not variable are whole numbers.
struct Outline(String);

impl Outline {
    fn push(&mut self, command: char, points: &[[f32; 2]]) {
        self.0.push(command);
        for (index, [x, y]) in points.iter().enumerate() {
            let gap = if index > 0 { " " } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(self.0, "{gap}{} {}", *x as i32, -(*y as i32));
        }
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.push('M', &[[x, y]]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.push('L', &[[x, y]]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.push('Q', &[[x1, y1], [x, y]]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.push('C', &[[x1, y1], [x2, y2], [x, y]]);
    }

    fn close(&mut self) {
        self.0.push('Z');
    }
}

/// Breaks a text into at most `most` lines that are no longer than `width` at a size: between words where it can, within a
/// word where it must. What is left over is cut off behind an ellipsis.
pub fn wrap(text: &str, weight: Weight, size: f64, width: f64, most: usize) -> Vec<String> {
    /// Far more than fits any figure, and few enough to lay out at once.
    const LONGEST: usize = 2000;
    let font = Font::of(weight);
    let fits = |line: &str| font.width(line, size) <= width;
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut cut = text.chars().nth(LONGEST).is_some();
    let text: String = text.chars().take(LONGEST).filter_map(drawable).collect();
    for word in text.split_whitespace() {
        let longer = if line.is_empty() {
            word.to_owned()
        } else {
            format!("{line} {word}")
        };
        if fits(&longer) {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for letter in word.chars() {
            line.push(letter);
            if line.chars().nth(1).is_some() && !fits(&line) {
                line.pop();
                lines.push(std::mem::replace(&mut line, letter.to_string()));
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    if lines.len() > most {
        lines.truncate(most);
        cut = true;
    }
    if let (true, Some(last)) = (cut, lines.last_mut()) {
        while !last.is_empty() && !fits(&format!("{last}…")) {
            last.pop();
        }
        last.push('…');
    }
    lines
}

/// The letters of a text that cannot be drawn.
pub fn missing(text: &str) -> impl Iterator<Item = char> {
    let face = &Font::of(Weight::Regular).face;
    let shown = text
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .filter_map(drawable);
    shown.filter(|letter| face.glyph_index(*letter).is_none())
}

/// Marks of direction and of joining do not show; control characters must not pass unseen.
fn drawable(letter: char) -> Option<char> {
    match letter {
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => None,
        letter if letter.is_control() && !letter.is_whitespace() => Some(char::REPLACEMENT_CHARACTER),
        letter => Some(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_the_sum_of_advances_and_kerning() {
        let font = Font::of(Weight::Regular);
        let single = |text: &str| font.place(text).1;
        assert!(
            single("AV") < single("A") + single("V"),
            "A and V are drawn together"
        );
        assert_eq!(single("nn"), 2 * single("n"));
        assert!((font.width("n", 20.0) - 2.0 * font.width("n", 10.0)).abs() < 1e-12);
        assert_eq!(single(""), 0);
        assert!((0.7..0.75).contains(&font.capital()), "{}", font.capital());
    }

    #[test]
    fn the_letters_that_figures_use_are_there() {
        let letters = "−×⁰¹²³⁴⁵⁶⁷⁸⁹⁻\u{2009}…εθσπµ±≤≥°éüß–—“”′\u{FFFD}";
        assert_eq!(missing(letters).count(), 0);
        let bold = &Font::of(Weight::Bold).face;
        assert!(letters.chars().all(|letter| bold.glyph_index(letter).is_some()));
        assert_eq!(missing("a 🤖\u{200d}🦾").collect::<String>(), "🤖🦾");
        assert_eq!(Font::of(Weight::Regular).place("🤖").0.len(), 1);
    }

    #[test]
    fn a_text_is_broken_to_the_width_and_nothing_of_it_is_lost_unless_marked() {
        let text = "the quick brown fox jumps over a pneumonoultramicroscopicsilicovolcanoconiosis";
        for width in [20.0, 55.0, 130.0, 1000.0] {
            let lines = wrap(text, Weight::Regular, 9.0, width, 1000);
            let widest = lines
                .iter()
                .map(|line| Font::of(Weight::Regular).width(line, 9.0));
            assert!(widest.fold(0.0, f64::max) <= width);
            let joined: String = lines.concat().replace(' ', "");
            assert_eq!(joined, text.replace(' ', ""));
        }
        let lines = wrap(text, Weight::Regular, 9.0, 55.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with('…'));
        assert!(Font::of(Weight::Regular).width(&lines[1], 9.0) <= 55.0);
        assert_eq!(
            wrap("a\u{202e}b\u{0}", Weight::Bold, 9.0, 100.0, 2),
            ["ab\u{fffd}"]
        );
        assert!(wrap("  ", Weight::Bold, 9.0, 10.0, 2).is_empty());
        assert!(wrap(&"x".repeat(100_000), Weight::Bold, 9.0, 10.0, 2)[1].ends_with('…'));
    }
}

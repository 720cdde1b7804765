//! The letters of a figure, and the fonts that are embedded for them.
//!
//! A letter's code is its place among the figure's letters, not its glyph's number: where letters look the same, or the font has
//! none and shows its replacement character, what is copied is still what was written.

use std::collections::BTreeMap;
use std::fmt::Display;

use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Filter, Name, Pdf, Rect, Ref, Str};
use provenir_api::Digest;
use provenir_drawing::compress;
use provenir_drawing::font::{Font, GlyphId, Weight};
use subsetter::GlyphRemapper;

use crate::figure::FigureError;
use crate::marks::Mark;
use crate::text::PlacedLine;

/// How many objects a font consists of.
pub(super) const OBJECTS: usize = 6;

/// In a font's own measures, the size of a text is so much.
const SIZE: f64 = 1000.0;
/// In these measures, a letter that is not farther off is where it belongs.
const SLACK: i32 = 2;

/// Codes are places in this collection, which stands for none in particular.
const COLLECTION: SystemInfo<'_> = SystemInfo {
    registry: Str(b"Adobe"),
    ordering: Str(b"Identity"),
    supplement: 0,
};

/// The letters of a weight.
pub(super) struct Letters {
    pub(super) weight: Weight,
    /// Code and glyph of each; codes count from 1 in this order.
    letters: BTreeMap<char, (u16, GlyphId)>,
}

impl Letters {
    /// The letters of all texts, by weight.
    pub(super) fn of(marks: &[Mark<'_>]) -> Result<Vec<Self>, FigureError> {
        let mut found: BTreeMap<Weight, BTreeMap<char, (u16, GlyphId)>> = BTreeMap::new();
        for mark in marks {
            let Mark::Text(text) = mark else { continue };
            let letters = found.entry(text.weight).or_default();
            for line in text.placed() {
                for (letter, placed) in line.text.chars().zip(line.letters) {
                    letters.insert(letter, (0, placed.glyph));
                }
            }
        }
        found.retain(|_, letters| !letters.is_empty());
        for letters in found.values_mut() {
            let count = letters.len();
            for (code, (letter, _)) in (1..).zip(letters.values_mut()) {
                *letter = u16::try_from(code).map_err(|_| FigureError::TooManyLetters { count })?;
            }
        }
        Ok(found
            .into_iter()
            .map(|(weight, letters)| Self { weight, letters })
            .collect())
    }

    /// What the page calls the font.
    pub(super) fn name(&self) -> Name<'static> {
        match self.weight {
            Weight::Regular => Name(b"Regular"),
            Weight::Bold => Name(b"Bold"),
        }
    }

    /// Shows a line where the text stands, letters as near to each other as they are placed.
    pub(super) fn show(&self, line: &PlacedLine<'_>, content: &mut Content) {
        let font = Font::of(self.weight);
        let mut positioned = content.show_positioned();
        let mut items = positioned.items();
        let mut codes: Vec<u8> = Vec::new();
        // Where a viewer is, by the widths that it is told.
        let mut pen = 0;
        for (letter, placed) in line.text.chars().zip(&line.letters) {
            let off = measure(font, placed.x) - pen;
            if off.abs() > SLACK {
                items.show(Str(&codes));
                items.adjust(-off as f32);
                codes.clear();
                pen += off;
            }
            pen += measure(font, font.advance(placed.glyph));
            let code = self.letters.get(&letter).map_or(0, |(code, _)| *code);
            codes.extend(code.to_be_bytes());
        }
        items.show(Str(&codes));
    }

    /// Writes the font, as [`OBJECTS`] objects from that on.
    pub(super) fn embed(&self, pdf: &mut Pdf, first: Ref) -> Result<(), FigureError> {
        let [cid, descriptor, file, map, unicode] =
            [1, 2, 3, 4, 5].map(|object| Ref::new(first.get() + object));
        let font = Font::of(self.weight);
        let mut glyphs = GlyphRemapper::new();
        // Code 0 is no letter, and glyph 0 is none's.
        let numbers: Vec<u16> = std::iter::once(0)
            .chain(self.letters.values().map(|(_, glyph)| glyphs.remap(glyph.0)))
            .collect();
        let bug =
            |error: &dyn Display| FigureError::Bug(format!("cannot embed the figure's letters: {error}"));
        let subset = subsetter::subset(font.file(), 0, &glyphs).map_err(|error| bug(&error))?;
        let length = i32::try_from(subset.len()).map_err(|error| bug(&error))?;
        let name = tagged(&font.name(), &subset);
        let name = Name(name.as_bytes());

        pdf.type0_font(first)
            .base_font(name)
            .encoding_predefined(Name(b"Identity-H"))
            .descendant_font(cid)
            .to_unicode(unicode);
        let mut letters = pdf.cid_font(cid);
        letters
            .subtype(CidFontType::Type2)
            .base_font(name)
            .system_info(COLLECTION)
            .font_descriptor(descriptor)
            .cid_to_gid_map_stream(map)
            .default_width(0.0);
        let widths = self.letters.values();
        letters.widths().consecutive(
            1,
            widths.map(|(_, glyph)| measure(font, font.advance(*glyph)) as f32),
        );
        drop(letters);
        let [left, bottom, right, top] = font.bounds().map(|units| measure(font, i32::from(units)) as f32);
        let [ascent, descent] = font.extents().map(|units| measure(font, i32::from(units)) as f32);
        pdf.font_descriptor(descriptor)
            .name(name)
            .flags(FontFlags::SYMBOLIC)
            .bbox(Rect::new(left, bottom, right, top))
            .italic_angle(0.0)
            .ascent(ascent)
            .descent(descent)
            .cap_height((font.capital() * SIZE) as f32)
            .stem_v(match self.weight {
                Weight::Regular => 80.0,
                Weight::Bold => 140.0,
            })
            .font_file2(file);
        pdf.stream(file, &compress(&subset))
            .filter(Filter::FlateDecode)
            .pair(Name(b"Length1"), length);
        let numbers: Vec<u8> = numbers.into_iter().flat_map(u16::to_be_bytes).collect();
        pdf.stream(map, &compress(&numbers)).filter(Filter::FlateDecode);
        let mut characters = UnicodeCmap::new(Name(b"Letters"), COLLECTION);
        for (letter, (code, _)) in &self.letters {
            characters.pair(*code, *letter);
        }
        pdf.stream(unicode, &compress(&characters.finish()))
            .filter(Filter::FlateDecode);
        Ok(())
    }
}

/// Font units in a font's measures: in whole numbers, since viewers cut fractions of widths off.
fn measure(font: &Font, units: i32) -> i32 {
    libm::rint(f64::from(units) * SIZE / font.units()) as i32
}

/// The name of a part of a font: six letters, which differ where the part does, and the font's own.
fn tagged(name: &str, subset: &[u8]) -> String {
    let digest = Digest::of(subset);
    let tag = digest.bytes()[..6]
        .iter()
        .map(|byte| char::from(b'A' + byte % 26));
    tag.chain(['+']).chain(name.chars()).collect()
}

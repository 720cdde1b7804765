//! The figure as SVG.
//!
//! Every number has at most two decimals; text is drawn as outlines of the bundled font, each with its wording for
//! those who listen. Identifiers begin with the digest of the data, so that several figures can stand in one page.

use std::collections::BTreeMap;
use std::fmt::{Arguments, Write};

use provenir_drawing::font::{Font, Weight};

use crate::figure::{Figure, FigureError};
use crate::layout::{Layout, layout};
use crate::marks::{Fill, INK, Mark, Paint, marks};
use crate::path::{Path, num};
use crate::text::{Text, Turn};
use crate::wording::escape;

impl Figure {
    /// Draws the figure as SVG.
    pub fn to_svg(&self) -> Result<String, FigureError> {
        self.check()?;
        let layout = layout(self)?;
        Ok(Writer::new(self).finish(&layout))
    }
}

struct Writer<'a> {
    figure: &'a Figure,
    prefix: String,
    body: String,
    /// Outlines in use, by weight and number of the letter.
    glyphs: BTreeMap<(Weight, u16), String>,
}

impl<'a> Writer<'a> {
    fn new(figure: &'a Figure) -> Self {
        let prefix = format!("f{}", &figure.identity.data.short()[..8]);
        Self {
            figure,
            prefix,
            body: String::new(),
            glyphs: BTreeMap::new(),
        }
    }

    fn finish(mut self, layout: &Layout) -> String {
        for mark in marks(self.figure, layout) {
            self.mark(&mark);
        }
        let body = std::mem::take(&mut self.body);
        let [width, height] = layout.size.map(num);
        let prefix = self.prefix.clone();
        let figure = self.figure;
        self.line(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" \
             width=\"{width}pt\" height=\"{height}pt\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-labelledby=\"{prefix}-title {prefix}-description\">"
        ));
        self.line(format_args!(
            "<title id=\"{prefix}-title\">{}</title>",
            escape(figure.name())
        ));
        let description = escape(&figure.description);
        self.line(format_args!(
            "<desc id=\"{prefix}-description\">{description}</desc>"
        ));
        self.line(format_args!("{}", figure.identity.svg_metadata()));
        self.line(format_args!("<defs>"));
        for (name, outline) in std::mem::take(&mut self.glyphs) {
            let id = self.glyph_id(name);
            self.line(format_args!("<path id=\"{id}\" d=\"{outline}\"/>"));
        }
        for (index, panel) in layout.panels.iter().enumerate() {
            let area = Path::rectangle(panel.area);
            let id = self.clip_id(index);
            self.line(format_args!(
                "<clipPath id=\"{id}\"><path d=\"{}\"/></clipPath>",
                area.data()
            ));
        }
        self.line(format_args!("</defs>"));
        self.body.push_str(&body);
        self.line(format_args!("</svg>"));
        self.body
    }

    fn line(&mut self, text: Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(text);
        self.body.push('\n');
    }

    fn clip_id(&self, panel: usize) -> String {
        format!("{}-panel{panel}", self.prefix)
    }

    fn glyph_id(&self, (weight, glyph): (Weight, u16)) -> String {
        let weight = if weight == Weight::Bold { "bold" } else { "regular" };
        format!("{}-{weight}{glyph}", self.prefix)
    }

    fn mark(&mut self, mark: &Mark<'_>) {
        match mark {
            Mark::Clip(panel) => {
                let clip = self.clip_id(*panel);
                self.line(format_args!("<g clip-path=\"url(#{clip})\">"));
            }
            Mark::Unclip => self.line(format_args!("</g>")),
            Mark::Shape(outline, paint) => self.shape(outline, paint),
            Mark::Text(text) => self.text(text),
        }
    }

    fn shape(&mut self, outline: &Path, paint: &Paint) {
        let mut looks = match paint.fill {
            None => " fill=\"none\"".to_owned(),
            Some(Fill { colour, opacity: 1.0 }) => format!(" fill=\"{colour}\""),
            Some(Fill { colour, opacity }) => format!(" fill=\"{colour}\" fill-opacity=\"{opacity}\""),
        };
        if let Some(stroke) = &paint.stroke {
            let (colour, width) = (stroke.colour, stroke.width);
            looks += &format!(" stroke=\"{colour}\" stroke-width=\"{width}\"");
            if stroke.round {
                looks += " stroke-linejoin=\"round\"";
            }
            if !stroke.dashes.is_empty() {
                let lengths: Vec<String> = stroke.dashes.iter().map(|length| num(*length)).collect();
                looks += &format!(" stroke-dasharray=\"{}\"", lengths.join(" "));
            }
        }
        let outline = outline.data();
        self.line(format_args!("<path d=\"{outline}\"{looks}/>"));
    }

    fn text(&mut self, text: &Text) {
        let font = Font::of(text.weight);
        // The quotient of a short decimal and a power of two is short, too.
        let scale = text.size / font.units();
        let full = escape(&text.full);
        self.line(format_args!(
            "<g fill=\"{INK}\" role=\"img\" aria-label=\"{full}\">"
        ));
        if text.lines.last().is_some_and(|line| line.ends_with('…')) {
            self.line(format_args!("<title>{full}</title>"));
        }
        for line in text.placed() {
            let matrix = match text.turn {
                Turn::None => format!("{scale} 0 0 {scale}"),
                Turn::Left => format!("0 -{scale} {scale} 0"),
                Turn::Right => format!("0 {scale} -{scale} 0"),
            };
            let mut letters = String::new();
            for letter in line.letters {
                let name = (text.weight, letter.glyph.0);
                let outline = self
                    .glyphs
                    .entry(name)
                    .or_insert_with(|| font.outline(letter.glyph));
                if !outline.is_empty() {
                    let id = self.glyph_id(name);
                    // Writing to a string cannot fail.
                    let _ = write!(letters, "<use xlink:href=\"#{id}\" x=\"{}\"/>", letter.x);
                }
            }
            let at = format!("{} {}", num(line.at[0]), num(line.at[1]));
            self.line(format_args!(
                "<g transform=\"matrix({matrix} {at})\">{letters}</g>"
            ));
        }
        self.line(format_args!("</g>"));
    }
}

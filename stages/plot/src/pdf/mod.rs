//! The figure as PDF (ISO 32000-1): one page of its size.
//!
//! Everything stands where it stands in the SVG. Texts are texts, set in the letters of the bundled font that the figure uses,
//! which are embedded as TrueType outlines: they can be searched, copied and edited, and journals take them. The page
//! is one tagged figure with its description. There is no clock and no random number in it.

mod content;
mod letters;
mod packet;

use pdf_writer::types::StructRole;
use pdf_writer::writers::{ExtGraphicsState, StructTreeRoot};
use pdf_writer::{Filter, Finish, Name, Pdf, Rect, Ref, Settings, TextStr};
use provenir_api::Digest;
use provenir_drawing::compress;

use crate::figure::{Figure, FigureError};
use crate::layout::layout;
use crate::marks::marks;
use crate::wording::plain;
use content::Content;
use letters::Letters;

const METADATA: Ref = Ref::new(1);
const CATALOG: Ref = Ref::new(2);
const INFORMATION: Ref = Ref::new(3);
const PAGES: Ref = Ref::new(4);
const PAGE: Ref = Ref::new(5);
const CONTENT: Ref = Ref::new(6);
const STRUCTURE: Ref = Ref::new(7);
const DOCUMENT: Ref = Ref::new(8);
const FIGURE: Ref = Ref::new(9);
const PARENTS: Ref = Ref::new(10);
/// The first object of the first font; what comes before is there in every file.
const FONTS: Ref = Ref::new(11);

/// Number of the marked content that the whole page is.
const MARKED: i32 = 0;
/// Where the page stands in the table of parents.
const PARENT: i32 = 0;
/// What drew it.
const PRODUCER: &str = "Provenir";
/// The language of the description.
const LANGUAGE: &str = "en";

impl Figure {
    /// Draws the figure as PDF.
    pub fn to_pdf(&self) -> Result<Vec<u8>, FigureError> {
        self.check()?;
        let layout = layout(self)?;
        let marks = marks(self, &layout);
        let letters = Letters::of(&marks)?;
        let content = Content::new(&layout, &letters).draw(&marks);
        let [width, height] = layout.size.map(content::place);
        let area = Rect::new(0.0, 0.0, width, height);

        let mut pdf = Pdf::with_settings(Settings { pretty: false });
        // Nothing in it is newer, and LaTeX warns of figures that say they are newer than its own files.
        pdf.set_version(1, 4);
        // First of all, so that nothing else in the file is taken for the identity in it.
        pdf.metadata(METADATA, self.packet().as_bytes());
        self.catalog(&mut pdf);
        pdf.pages(PAGES).kids([PAGE]).count(1);

        let mut page = pdf.page(PAGE);
        page.parent(PAGES).media_box(area).contents(CONTENT);
        page.struct_parents(PARENT);
        if !content.opacities.is_empty() {
            // What shines through is mixed in the page's own colours, whatever it is printed in.
            page.group().transparency().color_space().device_rgb();
        }
        let mut resources = page.resources();
        let mut states = resources.ext_g_states();
        for (index, opacity) in content.opacities.iter().enumerate() {
            let name = content::state(index);
            let mut state = states
                .insert(Name(name.as_bytes()))
                .start::<ExtGraphicsState<'_>>();
            state.non_stroking_alpha(*opacity as f32);
        }
        states.finish();
        let mut fonts = resources.fonts();
        for (letters, font) in numbered(&letters) {
            fonts.pair(letters.name(), font);
        }
        fonts.finish();
        resources.finish();
        page.finish();

        pdf.stream(CONTENT, &compress(&content.operators.finish()))
            .filter(Filter::FlateDecode);
        self.structure(&mut pdf, area);
        for (letters, font) in numbered(&letters) {
            letters.embed(&mut pdf, font)?;
        }
        let identity = Digest::of(self.identity.text().as_bytes());
        let identifier = identity.bytes()[..16].to_vec();
        pdf.set_file_id((identifier.clone(), identifier));
        Ok(pdf.finish())
    }

    fn catalog(&self, pdf: &mut Pdf) {
        let mut catalog = pdf.catalog(CATALOG);
        catalog.pages(PAGES).metadata(METADATA).lang(TextStr(LANGUAGE));
        catalog.pair(Name(b"StructTreeRoot"), STRUCTURE);
        catalog.mark_info().marked(true);
        catalog.viewer_preferences().display_doc_title(true);
        catalog.finish();
        let mut information = pdf.document_info(INFORMATION);
        information.title(TextStr(&plain(self.name())));
        if !self.description.is_empty() {
            information.subject(TextStr(&plain(&self.description)));
        }
        information.producer(TextStr(PRODUCER));
    }

    /// What is read to those who do not see the page.
    fn structure(&self, pdf: &mut Pdf, area: Rect) {
        let mut root = pdf.indirect(STRUCTURE).start::<StructTreeRoot<'_>>();
        root.child(DOCUMENT).parent_tree_next_key(PARENT + 1);
        root.parent_tree().nums().insert(PARENT, PARENTS);
        root.finish();
        pdf.indirect(PARENTS).array().item(FIGURE);
        let mut document = pdf.struct_element(DOCUMENT);
        document
            .kind(StructRole::Document)
            .parent(STRUCTURE)
            .child(FIGURE);
        document.finish();
        let name = plain(self.name());
        let words = if self.description.is_empty() {
            name.clone()
        } else {
            plain(&self.description)
        };
        let mut figure = pdf.struct_element(FIGURE);
        figure.kind(StructRole::Figure).parent(DOCUMENT).page(PAGE);
        figure.title(TextStr(&name)).alt(TextStr(&words));
        figure.children().marked_content_id(MARKED);
        figure.attributes().push().layout().bbox(area);
    }
}

/// Fonts, each with its first object.
fn numbered(letters: &[Letters]) -> impl Iterator<Item = (&Letters, Ref)> {
    letters
        .iter()
        .zip((FONTS.get()..).step_by(letters::OBJECTS).map(Ref::new))
}

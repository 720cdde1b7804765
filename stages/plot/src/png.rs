//! The figure as pixels.

use provenir_api::FigureIdentity;
use provenir_drawing::{Png, compress};
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use crate::figure::{Figure, FigureError};

/// Pixels per inch that SVG assumes.
const SVG_DPI: f64 = 96.0;

/// Renders a figure's SVG at a resolution in pixels per inch. The file carries the resolution and the identity.
pub fn to_png(svg: &str, dpi: u32, identity: &FigureIdentity) -> Result<Vec<u8>, FigureError> {
    let bug = |error: &dyn std::fmt::Display| FigureError::Bug(format!("cannot render the figure: {error}"));
    // No font is loaded: the text is outlines.
    let tree = Tree::from_str(svg, &Options::default()).map_err(|error| bug(&error))?;
    let scale = f64::from(dpi) / SVG_DPI;
    let pixels = |length: f32| libm::ceil(f64::from(length) * scale - 1e-3).max(1.0);
    let (width, height) = (pixels(tree.size().width()), pixels(tree.size().height()));
    if width * height > f64::from(Figure::MOST_PIXELS) {
        return Err(FigureError::TooManyPixels { width, height });
    }
    let mut picture = Pixmap::new(width as u32, height as u32).ok_or_else(|| bug(&"it has no extent"))?;
    picture.fill(Color::WHITE);
    let scale = Transform::from_scale(scale as f32, scale as f32);
    resvg::render(&tree, scale, &mut picture.as_mut());
    Ok(encode(&picture, dpi, identity))
}

/// Writes a PNG of eight bits a colour. On white paper nothing is transparent, so that colours are what they are
/// premultiplied, and alpha is left out.
fn encode(picture: &Pixmap, dpi: u32, identity: &FigureIdentity) -> Vec<u8> {
    let mut file = Png::new(picture.width(), picture.height(), 2);
    let per_meter = (libm::round(f64::from(dpi) / 0.0254) as u32).to_be_bytes();
    file.chunk(*b"pHYs", &[&per_meter[..], &per_meter, &[1]].concat());
    file.identity(identity);
    file.chunk(*b"IDAT", &compress(&scanlines(picture)));
    file.finish()
}

/// Rows of pixels, each behind the number of its filter: the difference to the row above (2), which is nothing for most
/// of a figure.
fn scanlines(picture: &Pixmap) -> Vec<u8> {
    let width = picture.width() as usize;
    let mut above = vec![0_u8; width * 3];
    let mut lines = Vec::with_capacity((width * 3 + 1) * picture.height() as usize);
    for row in picture.data().chunks_exact(width * 4) {
        lines.push(2);
        let colours = row.chunks_exact(4).flat_map(|pixel| &pixel[..3]);
        for (colour, above) in colours.zip(&mut above) {
            lines.push(colour.wrapping_sub(*above));
            *above = *colour;
        }
    }
    lines
}

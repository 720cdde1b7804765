//! The figure as pixels.

use provenir_api::FigureIdentity;
use resvg::tiny_skia::{Pixmap, Transform};
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
    picture.fill(resvg::tiny_skia::Color::WHITE);
    resvg::render(
        &tree,
        Transform::from_scale(scale as f32, scale as f32),
        &mut picture.as_mut(),
    );
    // On white paper nothing is transparent.
    let rgb: Vec<u8> = picture
        .data()
        .chunks_exact(4)
        .flat_map(|pixel| &pixel[..3])
        .copied()
        .collect();
    encode(&rgb, [width as u32, height as u32], dpi, identity).map_err(|error| bug(&error))
}

fn encode(
    rgb: &[u8],
    [width, height]: [u32; 2],
    dpi: u32,
    identity: &FigureIdentity,
) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let per_meter = libm::round(f64::from(dpi) / 0.0254) as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: per_meter,
        yppu: per_meter,
        unit: png::Unit::Meter,
    }));
    encoder.add_itxt_chunk(FigureIdentity::PNG_KEYWORD.to_owned(), identity.text())?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(rgb)?;
    writer.finish()?;
    Ok(bytes)
}

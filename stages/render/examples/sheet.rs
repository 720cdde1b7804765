//! Frames of a GIF side by side in one PNG, to be looked at:
//! `cargo run --release -p provenir-render --example sheet -- FILE.gif SHEET.png [COLUMNS] FRAME…`

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool for who works on this"
)]

use provenir_drawing::{Png, compress};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, sheet, columns, wanted @ ..] = &arguments[..] else {
        println!("FILE.gif SHEET.png COLUMNS FRAME…");
        return;
    };
    let columns: usize = columns.parse().unwrap();
    let wanted: Vec<usize> = wanted.iter().map(|frame| frame.parse().unwrap()).collect();
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let mut decoder = options.read_info(fs_err::File::open(file).unwrap()).unwrap();
    let (width, height) = (usize::from(decoder.width()), usize::from(decoder.height()));
    let mut screen = vec![255_u8; width * height * 3];
    let mut frames = Vec::new();
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        let (left, top) = (usize::from(frame.left), usize::from(frame.top));
        for (index, pixel) in frame.buffer.chunks_exact(4).enumerate() {
            let (x, y) = (
                left + index % usize::from(frame.width),
                top + index / usize::from(frame.width),
            );
            if pixel[3] > 0 {
                screen[(y * width + x) * 3..][..3].copy_from_slice(&pixel[..3]);
            }
        }
        frames.push(screen.clone());
    }
    println!("{} frames of {width} × {height}", frames.len());
    let rows = wanted.len().div_ceil(columns);
    let mut png = Png::new((width * columns) as u32, (height * rows) as u32, 2);
    let mut lines = Vec::new();
    for y in 0..height * rows {
        lines.push(0);
        for column in 0..columns {
            let shown = wanted.get(y / height * columns + column);
            match shown.map(|frame| &frames[(*frame).min(frames.len() - 1)]) {
                Some(frame) => lines.extend(&frame[y % height * width * 3..][..width * 3]),
                None => lines.extend(vec![255; width * 3]),
            }
        }
    }
    png.chunk(*b"IDAT", &compress(&lines));
    fs_err::write(sheet, png.finish()).unwrap();
}

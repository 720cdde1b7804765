//! Draws figures of every shape into a folder, for the eyes of whoever changes the layout:
//! `cargo run --release -p provenir-plot --example gallery -- FOLDER`.

#[path = "../tests/gallery/mod.rs"]
mod gallery;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name the folder to draw into")?;
    fs_err::create_dir_all(&folder)?;
    for (name, figure) in gallery::figures() {
        let svg = figure.to_svg()?;
        fs_err::write(
            format!("{folder}/{name}.png"),
            provenir_plot::to_png(&svg, 200, &figure.identity)?,
        )?;
        fs_err::write(format!("{folder}/{name}.svg"), svg)?;
        fs_err::write(format!("{folder}/{name}.pdf"), figure.to_pdf()?)?;
    }
    Ok(())
}

//! Figures as files: what is in them, and what is never in them.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod gallery;

use std::fmt::Write;

use provenir_api::{Digest, FigureIdentity};
use provenir_kinds::plot::Scale;
use provenir_plot::{Axis, Figure, FigureError, Panel, to_png};
use resvg::usvg::roxmltree::{Document, Node};

#[test]
fn svg_is_well_formed_and_holds_nothing_but_shapes() {
    for (name, figure) in gallery::figures() {
        let svg = figure.to_svg().unwrap();
        let document = Document::parse(&svg).unwrap();
        for node in document.descendants().filter(Node::is_element) {
            let tag = node.tag_name().name();
            let known = [
                "svg", "title", "desc", "metadata", "defs", "clipPath", "path", "g", "use",
            ];
            assert!(known.contains(&tag), "{name}: <{tag}>");
            for attribute in node.attributes() {
                assert!(
                    !attribute.name().starts_with("on"),
                    "{name}: {}",
                    attribute.name()
                );
                let number =
                    ["d", "transform", "x", "viewBox", "width", "height"].contains(&attribute.name());
                let strange = |letter: char| letter.is_alphabetic() && !"MLHVCQZmatrixpt".contains(letter);
                assert!(
                    !number || !attribute.value().contains(strange),
                    "{name}: {}",
                    attribute.value()
                );
            }
        }
        let root = document.root_element();
        for wanted in ["title", "desc"] {
            let found = root.children().find(|node| node.has_tag_name(wanted));
            let text = found.and_then(|node| node.text()).unwrap_or_default();
            assert!(!text.is_empty() || wanted == "title", "{name} has no <{wanted}>");
        }
    }
}

#[test]
fn every_reference_in_an_svg_has_its_target() {
    for (name, figure) in gallery::figures() {
        let svg = figure.to_svg().unwrap();
        let document = Document::parse(&svg).unwrap();
        let ids: Vec<&str> = document
            .descendants()
            .filter_map(|node| node.attribute("id"))
            .collect();
        for (index, id) in ids.iter().enumerate() {
            assert!(!ids[..index].contains(id), "{name}: `{id}` is there twice");
        }
        let xlink = ("http://www.w3.org/1999/xlink", "href");
        for node in document.descendants() {
            let uses = node.attribute(xlink).and_then(|target| target.strip_prefix('#'));
            let clip = node
                .attribute("clip-path")
                .and_then(|clip| clip.strip_prefix("url(#")?.strip_suffix(')'));
            for target in uses.into_iter().chain(clip) {
                assert!(ids.contains(&target), "{name}: `{target}` is missing");
            }
        }
    }
}

/// Left, top, right, bottom.
type Box = [f64; 4];

/// The extent of what a `<g aria-label>` draws, from the corners and handles of its letters.
fn extent(document: &Document<'_>, label: Node<'_, '_>) -> Option<Box> {
    let numbers = |text: &str| -> Vec<f64> {
        text.split(|letter: char| !(letter.is_ascii_digit() || "-.".contains(letter)))
            .filter(|number| !number.is_empty())
            .map(|number| number.parse().unwrap())
            .collect()
    };
    let mut bounds: Option<Box> = None;
    for line in label.children().filter(|node| node.has_tag_name("g")) {
        let [xx, yx, xy, yy, x0, y0] = numbers(line.attribute("transform").unwrap())[..] else {
            panic!()
        };
        for letter in line.children().filter(Node::is_element) {
            let id = letter
                .attribute(("http://www.w3.org/1999/xlink", "href"))
                .unwrap();
            let target = document
                .descendants()
                .find(|node| node.attribute("id") == Some(&id[1..]))
                .unwrap();
            let shift: f64 = letter.attribute("x").unwrap().parse().unwrap();
            for point in numbers(target.attribute("d").unwrap()).chunks_exact(2) {
                let (across, down) = (point[0] + shift, point[1]);
                let x = xx * across + xy * down + x0;
                let y = yx * across + yy * down + y0;
                let [left, top, right, bottom] = bounds.unwrap_or([x, y, x, y]);
                bounds = Some([left.min(x), top.min(y), right.max(x), bottom.max(y)]);
            }
        }
    }
    bounds
}

#[test]
fn no_text_is_cut_off_or_overlaps_another() {
    for (name, figure) in gallery::figures() {
        let svg = figure.to_svg().unwrap();
        let document = Document::parse(&svg).unwrap();
        let size: Vec<f64> = document
            .root_element()
            .attribute("viewBox")
            .unwrap()
            .split(' ')
            .map(|number| number.parse().unwrap())
            .collect();
        let labels = document
            .descendants()
            .filter(|node| node.attribute("aria-label").is_some());
        let boxes: Vec<(&str, Box)> = labels
            .filter_map(|node| Some((node.attribute("aria-label")?, extent(&document, node)?)))
            .collect();
        assert!(boxes.len() > 4, "{name}");
        for (index, (text, [left, top, right, bottom])) in boxes.iter().enumerate() {
            let inside = *left > 1.0 && *top > 1.0 && *right < size[2] - 1.0 && *bottom < size[3] - 1.0;
            assert!(
                inside,
                "{name}: `{text}` at {left} {top} {right} {bottom} in {size:?}"
            );
            for (other, [l, t, r, b]) in &boxes[..index] {
                let apart = right < l || r < left || bottom < t || b < top;
                assert!(apart, "{name}: `{text}` overlaps `{other}`");
            }
        }
    }
}

#[test]
fn a_figure_has_the_size_asked_for_or_says_why_not() {
    let (_, figure) = gallery::figures()
        .into_iter()
        .find(|(name, _)| *name == "paper")
        .unwrap();
    for size in [[396.0, 230.0], [500.0, 300.0], [1000.0, 200.0], [330.5, 600.25]] {
        let svg = Figure {
            size: Some(size),
            ..figure.clone()
        }
        .to_svg()
        .unwrap();
        assert!(
            svg.contains(&format!("viewBox=\"0 0 {} {}\"", size[0], size[1])),
            "{size:?}"
        );
    }
    for size in [[72.0, 72.0], [396.0, 100.0], [100.0, 400.0]] {
        let error = Figure {
            size: Some(size),
            ..figure.clone()
        }
        .to_svg()
        .unwrap_err();
        assert!(matches!(error, FigureError::TooSmall { .. }), "{error}");
    }
}

#[test]
fn what_cannot_be_drawn_is_an_error() {
    let (_, figure) = gallery::figures().remove(0);
    let with = |change: &dyn Fn(&mut Figure)| {
        let mut figure = figure.clone();
        change(&mut figure);
        figure.to_svg().unwrap_err()
    };
    assert_eq!(
        with(&|figure| figure.panels = vec![Panel::default()]),
        FigureError::Empty
    );
    for value in [f64::NAN, f64::INFINITY, -1e301] {
        let error = with(&|figure| figure.panels[0].curves[0].points[0].y = value);
        assert!(
            matches!(error, FigureError::Unbounded { axis: "vertical", .. }),
            "{error}"
        );
        let error = with(&|figure| figure.panels[0].curves[0].points[0].band = Some([value, 0.0]));
        assert!(
            matches!(error, FigureError::Unbounded { axis: "vertical", .. }),
            "{error}"
        );
    }
    let error = with(&|figure| {
        figure.x = Axis {
            scale: Scale::Log,
            ..figure.x.clone()
        }
    });
    assert_eq!(
        error,
        FigureError::NotPositive {
            axis: "horizontal",
            value: 0.0
        }
    );
    assert!(matches!(
        with(&|figure| figure.columns.clear()),
        FigureError::Bug(_)
    ));
    assert!(matches!(
        with(&|figure| figure.series.clear()),
        FigureError::Bug(_)
    ));
    assert!(matches!(
        with(&|figure| figure.series[0].style = Figure::STYLES),
        FigureError::Bug(_)
    ));
    let svg = Figure {
        size: Some([4000.0, 4000.0]),
        ..figure.clone()
    }
    .to_svg()
    .unwrap();
    let error = to_png(&svg, 1200, &figure.identity).unwrap_err();
    assert!(matches!(error, FigureError::TooManyPixels { .. }), "{error}");
}

#[test]
fn every_file_says_which_cell_drew_it_from_what() {
    for (name, figure) in gallery::figures() {
        let svg = figure.to_svg().unwrap();
        assert_eq!(
            FigureIdentity::read(svg.as_bytes()),
            Some(figure.identity.clone()),
            "{name}"
        );
        let png = to_png(&svg, 40, &figure.identity).unwrap();
        assert_eq!(
            FigureIdentity::read(&png),
            Some(figure.identity.clone()),
            "{name}"
        );
        let pdf = figure.to_pdf().unwrap();
        assert_eq!(
            FigureIdentity::read(&pdf),
            Some(figure.identity.clone()),
            "{name}"
        );
        let sealed = FigureIdentity::seal(pdf.clone());
        assert!(FigureIdentity::is_unaltered(&sealed), "{name}");
        assert!(sealed.len() > pdf.len());
    }
}

#[test]
fn words_of_a_figure_are_not_taken_for_its_identity() {
    let other = FigureIdentity {
        action_key: "another".to_owned(),
        data: Digest::of(b"other"),
    };
    let (_, figure) = gallery::figures().remove(0);
    for words in [other.xmp_description(), other.svg_metadata()] {
        let figure = Figure {
            title: words.clone(),
            description: words,
            ..figure.clone()
        };
        let svg = figure.to_svg().unwrap();
        for file in [svg.into_bytes(), figure.to_pdf().unwrap()] {
            assert_eq!(FigureIdentity::read(&file), Some(figure.identity.clone()));
        }
    }
}

/// Read by `scripts/check_figures.py` as well, which holds each PDF against the PNG and the words of the SVG.
#[test]
fn a_pdf_is_a_page_of_the_figures_size() {
    let folder = format!("{}/figures", env!("CARGO_TARGET_TMPDIR"));
    fs_err::create_dir_all(&folder).unwrap();
    for (name, figure) in gallery::figures() {
        let svg = figure.to_svg().unwrap();
        let document = Document::parse(&svg).unwrap();
        let size = document.root_element().attribute("viewBox").unwrap();
        let pdf = FigureIdentity::seal(figure.to_pdf().unwrap());
        let page = format!("/MediaBox[{size}]");
        assert!(
            pdf.windows(page.len()).any(|window| window == page.as_bytes()),
            "{name}: {page}"
        );
        let png = to_png(&svg, 200, &figure.identity).unwrap();
        fs_err::write(format!("{folder}/{name}.pdf"), pdf).unwrap();
        fs_err::write(format!("{folder}/{name}.png"), png).unwrap();
        fs_err::write(format!("{folder}/{name}.svg"), svg).unwrap();
    }
}

fn decode(png: &[u8]) -> ([u32; 2], Vec<[u8; 3]>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgb);
    let pixels = bytes
        .chunks_exact(3)
        .map(|pixel| [pixel[0], pixel[1], pixel[2]])
        .collect();
    ([info.width, info.height], pixels)
}

#[test]
fn pixels_show_what_the_figure_says() {
    let (_, figure) = gallery::figures().remove(0);
    let svg = Figure {
        size: Some([288.0, 216.0]),
        ..figure.clone()
    }
    .to_svg()
    .unwrap();
    let png = to_png(&svg, 100, &figure.identity).unwrap();
    let (size, pixels) = decode(&png);
    assert_eq!(size, [400, 300], "4 by 3 inches at 100 pixels an inch");
    let ratio = png::Decoder::new(std::io::Cursor::new(&png))
        .read_info()
        .unwrap()
        .info()
        .pixel_dims
        .unwrap();
    assert_eq!(
        (ratio.xppu, ratio.yppu),
        (3937, 3937),
        "100 pixels an inch in pixels a metre"
    );
    let near = |pixel: &[u8; 3], colour: [u8; 3]| pixel.iter().zip(colour).all(|(a, b)| a.abs_diff(b) < 8);
    let count = |colour| pixels.iter().filter(|pixel| near(pixel, colour)).count();
    assert!(count([255, 255, 255]) > pixels.len() / 3, "paper");
    assert!(count([0x00, 0x72, 0xb2]) > 200, "the first series, blue");
    assert!(count([0xd5, 0x5e, 0x00]) > 200, "the second series, vermilion");
    // BC falls from the upper left to the lower right: its blue is left in the upper half, and right in the lower.
    let blue = |rows: std::ops::Range<usize>| {
        let places = rows.flat_map(|y| (0..400).map(move |x| (x, y)));
        let places: Vec<usize> = places
            .filter(|(x, y)| near(&pixels[y * 400 + x], [0x00, 0x72, 0xb2]))
            .map(|(x, _)| x)
            .collect();
        places.iter().sum::<usize>() / places.len().max(1)
    };
    assert!(
        blue(60..130) < 200 && blue(190..230) > 200,
        "{} {}",
        blue(60..130),
        blue(190..230)
    );
}

/// Whoever changes how figures look changes the bytes of every figure: then the revision of `plot` goes up, and
/// the digests are recorded anew from the message of this test.
#[test]
fn bytes_are_those_recorded_on_every_platform() {
    let mut digests = String::new();
    for (name, figure) in gallery::figures() {
        let svg = figure.to_svg().unwrap();
        let png = to_png(&svg, 60, &figure.identity).unwrap();
        writeln!(
            digests,
            "{name} {} {} {}",
            Digest::of(svg.as_bytes()),
            Digest::of(&png),
            Digest::of(&figure.to_pdf().unwrap())
        )
        .unwrap();
    }
    assert_eq!(digests, include_str!("gallery/digests.txt"), "found:\n{digests}");
}

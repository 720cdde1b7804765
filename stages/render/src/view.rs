//! What is on each frame: the scene, the words above it, and how far the episode is.

use provenir_drawing::font::{Font, Weight, wrap};

use crate::film::{Film, Shown};
use crate::outline::Point;
use crate::perspective::Perspective;
use crate::picture::{Anchor, Picture};
use crate::side::Side;
use crate::style::{FALL, INK, PALE_INK, Sizes};

/// How the frames of a film are drawn.
pub(crate) struct View {
    film: Film,
    size: Point,
    sizes: Sizes,
    scene: Scene,
}

enum Scene {
    Side(Side),
    Perspective(Perspective),
}

/// What is read off a frame: its name, its value, and the longest value that has room.
struct Reading {
    name: &'static str,
    value: String,
    longest: &'static str,
}

impl View {
    pub(crate) fn new(film: Film) -> Self {
        let size = film.size.map(f64::from);
        let sizes = Sizes::of(size);
        let top = 1.6 * sizes.margin + sizes.title;
        let scene = if film.episode.is_planar() {
            Scene::Side(Side::new(&film, size, sizes, top))
        } else {
            Scene::Perspective(Perspective::new(&film, size, sizes, top))
        };
        Self {
            film,
            size,
            sizes,
            scene,
        }
    }

    pub(crate) fn film(&self) -> &Film {
        &self.film
    }

    /// What is the same on every frame, and lies above all else.
    pub(crate) fn still(&self) -> Picture {
        let Sizes { title, margin, .. } = self.sizes;
        let mut picture = Picture::default();
        let room = self.left_of_readings() - 2.0 * margin;
        let lines = wrap(&self.film.title, Weight::Bold, title, room, 1);
        if let Some(line) = lines.first() {
            picture.write(
                line,
                [margin, self.base_line()],
                Anchor::Start,
                (title, Weight::Bold, INK),
            );
        }
        picture
    }

    /// What a frame shows beside that.
    pub(crate) fn frame(&self, frame: usize) -> Picture {
        let shown = self.film.frame(frame);
        let mut picture = Picture::default();
        match &self.scene {
            Scene::Side(side) => side.frame(&self.film, &shown, &mut picture),
            Scene::Perspective(perspective) => perspective.frame(&self.film, &shown, &mut picture),
        }
        self.readings(&shown, &mut picture);
        picture
    }

    fn base_line(&self) -> f64 {
        self.sizes.margin + 0.8 * self.sizes.title
    }

    /// Time, distance and return so far, each in a column of its own, so that none moves when another grows.
    fn readings(&self, shown: &Shown, picture: &mut Picture) {
        let Sizes { text, margin, .. } = self.sizes;
        let (regular, bold) = (Weight::Regular, Weight::Bold);
        let mut right = self.size[0] - margin;
        for Reading { name, value, longest } in readings(&self.film, shown).into_iter().rev() {
            let at = |x: f64| [x, self.base_line()];
            picture.write(value, at(right), Anchor::End, (text, bold, INK));
            right -= Font::of(bold).width(longest, text) + 0.55 * text;
            picture.write(name, at(right), Anchor::End, (text, regular, PALE_INK));
            right -= Font::of(regular).width(name, text) + 1.2 * text;
        }
        if shown.fallen {
            let below = [self.size[0] - margin, self.base_line() + 1.5 * text];
            picture.write("fell", below, Anchor::End, (text, bold, FALL));
        }
    }

    fn left_of_readings(&self) -> f64 {
        let text = self.sizes.text;
        let widths = readings(&self.film, &self.film.frame(0))
            .into_iter()
            .map(|reading| {
                Font::of(Weight::Bold).width(reading.longest, text)
                    + Font::of(Weight::Regular).width(reading.name, text)
                    + 1.75 * text
            });
        self.size[0] - self.sizes.margin - widths.sum::<f64>()
    }
}

fn readings(film: &Film, shown: &Shown) -> [Reading; 3] {
    let reading = |name, value, longest| Reading { name, value, longest };
    [
        reading("time", format!("{:.1} s", shown.time), "88.8 s"),
        reading("distance", signed(film.distance(shown), 1, " m"), "−88.8 m"),
        reading("return", signed(shown.moment.total_reward, 0, ""), "−8888"),
    ]
}

/// A number with a proper minus sign, and none before zero.
fn signed(value: f64, decimals: usize, unit: &str) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let is_zero = text.chars().all(|letter| matches!(letter, '0' | '.'));
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    format!("{sign}{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_minus_only_where_they_show_one() {
        assert_eq!(signed(-0.04, 1, " m"), "0.0 m");
        assert_eq!(signed(-0.06, 1, " m"), "−0.1 m");
        assert_eq!(signed(2442.4, 0, ""), "2442");
    }
}

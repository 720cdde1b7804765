//! Colours and sizes.

/// Red, green, blue and opacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) [u8; 4]);

impl Colour {
    pub(crate) const fn new(red: u8, green: u8, blue: u8) -> Self {
        Self([red, green, blue, 255])
    }

    pub(crate) const fn with_opacity(self, opacity: u8) -> Self {
        let Self([red, green, blue, _]) = self;
        Self([red, green, blue, opacity])
    }

    /// A share of the way to another, by its components.
    pub(crate) fn towards(self, other: Self, share: f64) -> Self {
        Self(std::array::from_fn(|index| {
            let (from, to) = (f64::from(self.0[index]), f64::from(other.0[index]));
            libm::round(from + share * (to - from)) as u8
        }))
    }
}

pub(crate) const PAPER: Colour = Colour::new(255, 255, 255);
pub(crate) const INK: Colour = Colour::new(34, 34, 34);
pub(crate) const PALE_INK: Colour = Colour::new(110, 110, 110);
/// What lies below the ground, and the dark squares on it.
pub(crate) const EARTH: Colour = Colour::new(232, 234, 237);
/// The line of the ground, and its ticks.
pub(crate) const GROUND: Colour = Colour::new(120, 124, 130);
/// Lines in the background at every metre.
pub(crate) const GRID: Colour = Colour::new(240, 241, 243);
/// The word that says so.
pub(crate) const FALL: Colour = Colour::new(0xc4, 0x3c, 0x1c);
pub(crate) const SHADOW: Colour = Colour::new(40, 48, 60);

/// How a part of the robot is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tone {
    pub(crate) edge: Colour,
    pub(crate) body: Colour,
    pub(crate) light: Colour,
}

/// The torso: the orange of the figures' palette.
const TORSO: Colour = Colour::new(0xe0, 0x8a, 0x1e);
/// Limbs: its blue.
const LIMB: Colour = Colour::new(0x1f, 0x83, 0xbf);
const BLACK: Colour = Colour::new(10, 20, 40);

/// The tone of the torso (limb 0) or a limb, `dark` of the way to black.
pub(crate) fn tone(limb: usize, dark: f64) -> Tone {
    let hue = if limb == 0 { TORSO } else { LIMB };
    Tone {
        edge: hue.towards(BLACK, 0.55 + 0.3 * dark),
        body: hue.towards(BLACK, dark),
        light: hue.towards(PAPER, 0.28).towards(BLACK, dark),
    }
}

/// Sizes that follow the picture's, px.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sizes {
    pub(crate) title: f64,
    pub(crate) text: f64,
    pub(crate) label: f64,
    pub(crate) margin: f64,
    pub(crate) line: f64,
}

impl Sizes {
    /// For a picture of this width and height.
    pub(crate) fn of([width, height]: [f64; 2]) -> Self {
        let unit = (height / 340.0).min(width / 600.0).clamp(0.6, 3.0);
        Self {
            title: 16.0 * unit,
            text: 14.0 * unit,
            label: 12.0 * unit,
            margin: 14.0 * unit,
            line: 1.5 * unit,
        }
    }
}

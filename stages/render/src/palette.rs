//! The colours of an animation.

use std::collections::BTreeMap;

use crate::raster::Pixels;

/// The most colours: an index of six bits is left for what does not change. Edges are as smooth to the eye as with more, and
/// what repeats is shorter.
const MOST: usize = 63;
/// Bits of each component by which the nearest colour is remembered.
const BITS: u32 = 6;

/// Few colours that stand for all that were counted.
#[derive(Debug)]
pub(crate) struct Palette {
    /// 0xRRGGBB, ascending; at most [`MOST`].
    colours: Vec<u32>,
    /// By the upper bits of a colour, the index of the nearest in the palette.
    nearest: Vec<Option<u8>>,
}

/// How often each colour was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(BTreeMap<u32, u64>);

impl Counts {
    pub(crate) fn add(&mut self, pixels: &Pixels) {
        for run in pixels.chunk_by(|left, right| left == right) {
            *self.0.entry(run[0]).or_default() += run.len() as u64;
        }
    }
}

fn components(colour: u32) -> [u8; 3] {
    let [_, red, green, blue] = colour.to_be_bytes();
    [red, green, blue]
}

/// Colours that are to become one.
struct Cluster {
    /// With how often each was seen.
    colours: Vec<(u32, u64)>,
    /// The component that differs most.
    axis: usize,
    /// What a cut would gain.
    weight: f64,
}

impl Cluster {
    fn new(colours: Vec<(u32, u64)>) -> Self {
        let range = |axis: usize| {
            let values = colours.iter().map(|(colour, _)| components(*colour)[axis]);
            values.clone().max().unwrap_or(0) - values.min().unwrap_or(0)
        };
        // Of equal ranges the first.
        let axis = (0..3).rev().max_by_key(|axis| range(*axis)).unwrap_or(0);
        let count: u64 = colours.iter().map(|(_, count)| count).sum();
        let weight = f64::from(range(axis)) * (count as f64).sqrt();
        Self {
            colours,
            axis,
            weight,
        }
    }

    /// The colour that makes up half of it or more; where none does, the one nearest to the mean.
    fn representative(&self) -> Option<u32> {
        let count: u64 = self.colours.iter().map(|(_, count)| count).sum();
        if let Some((colour, _)) = self.colours.iter().find(|(_, own)| 2 * own >= count) {
            return Some(*colour);
        }
        let mean: [f64; 3] = std::array::from_fn(|axis| {
            let weighted = self
                .colours
                .iter()
                .map(|(colour, own)| f64::from(components(*colour)[axis]) * *own as f64);
            weighted.sum::<f64>() / count as f64
        });
        let distance = |colour: u32| -> f64 {
            let pairs = components(colour).into_iter().zip(mean);
            pairs
                .map(|(component, mean)| (f64::from(component) - mean) * (f64::from(component) - mean))
                .sum()
        };
        let colours = self.colours.iter().map(|(colour, _)| *colour);
        colours.min_by(|left, right| distance(*left).total_cmp(&distance(*right)))
    }

    /// Two halves at the middle of the range.
    fn cut(self) -> [Self; 2] {
        let value = |colour: u32| components(colour)[self.axis];
        let values = self.colours.iter().map(|(colour, _)| u16::from(value(*colour)));
        let (low, high) = (values.clone().min().unwrap_or(0), values.max().unwrap_or(0));
        let middle = u16::midpoint(low, high);
        let (lower, upper) = self
            .colours
            .iter()
            .partition(|(colour, _)| u16::from(value(*colour)) <= middle);
        [Self::new(lower), Self::new(upper)]
    }
}

impl Palette {
    /// Clusters of colours are cut in two, the most spread and frequent first, as in Heckbert's median cut (1982).
    /// Areas of one colour keep it.
    pub(crate) fn of(counts: Counts) -> Self {
        let mut clusters = vec![Cluster::new(counts.0.into_iter().collect())];
        while clusters.len() < MOST {
            // Of equal weights the later one.
            let heaviest = clusters
                .iter()
                .enumerate()
                .max_by(|left, right| left.1.weight.total_cmp(&right.1.weight));
            let Some((index, heaviest)) = heaviest else { break };
            if heaviest.weight <= 0.0 {
                break;
            }
            let [lower, upper] = clusters.swap_remove(index).cut();
            clusters.extend([lower, upper]);
        }
        let mut colours: Vec<u32> = clusters.iter().filter_map(Cluster::representative).collect();
        colours.sort_unstable();
        Self {
            colours,
            nearest: vec![None; 1 << (3 * BITS)],
        }
    }

    /// The index that stands for a pixel that stays as it is.
    pub(crate) const UNCHANGED: u8 = MOST as u8;

    /// Red, green and blue of as many colours as there are indices; those that are not needed are black.
    pub(crate) fn table(&self) -> Vec<u8> {
        let mut table: Vec<u8> = self
            .colours
            .iter()
            .flat_map(|colour| components(*colour))
            .collect();
        table.resize(3 * (MOST + 1), 0);
        table
    }

    /// The index of the colour, or of the nearest one.
    pub(crate) fn index(&mut self, colour: u32) -> u8 {
        if let Ok(index) = self.colours.binary_search(&colour) {
            return index as u8;
        }
        let upper = components(colour).map(|component| component >> (8 - BITS));
        let place = upper
            .iter()
            .fold(0, |place, component| (place << BITS) | usize::from(*component));
        if let Some(index) = self.nearest[place] {
            return index;
        }
        // The middle of all colours with these upper bits, so that the answer does not depend on which came first.
        let middle = upper.map(|component| i32::from(component << (8 - BITS)) + (1 << (7 - BITS)));
        let distance = |candidate: u32| -> i32 {
            let pairs = components(candidate).into_iter().zip(middle);
            pairs
                .map(|(component, middle)| (i32::from(component) - middle).pow(2))
                .sum()
        };
        let nearest = (0..self.colours.len()).min_by_key(|index| distance(self.colours[*index]));
        let index = nearest.unwrap_or(0) as u8;
        self.nearest[place] = Some(index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_colours_are_all_kept() {
        let pixels: Pixels = (0..63).map(|step| step * 0x0004_0404).collect();
        let mut counts = Counts::default();
        counts.add(&pixels);
        let mut palette = Palette::of(counts);
        for (index, colour) in pixels.iter().enumerate() {
            assert_eq!(usize::from(palette.index(*colour)), index);
            assert_eq!(palette.table()[3 * index..][..3], components(*colour));
        }
        assert_eq!(palette.table().len(), 3 * 64);
    }

    #[test]
    fn many_colours_become_near_ones_and_areas_keep_theirs() {
        let flat = [0x00ff_ffff, 0x0012_3456, 0x001f_83bf];
        let mut pixels: Pixels = flat.iter().flat_map(|colour| vec![*colour; 5000]).collect();
        pixels.extend((0..4096_u32).map(|step| {
            let [red, green, blue] = [step & 15, (step >> 4) & 15, step >> 8];
            17 * ((red << 16) | (green << 8) | blue)
        }));
        let mut counts = Counts::default();
        counts.add(&pixels);
        let mut palette = Palette::of(counts);
        for colour in flat {
            let index = usize::from(palette.index(colour));
            assert_eq!(palette.table()[3 * index..][..3], components(colour));
        }
        for colour in pixels {
            let index = usize::from(palette.index(colour));
            assert!(index < MOST);
            let found: [u8; 3] = palette.table()[3 * index..][..3].try_into().unwrap();
            let off = found
                .iter()
                .zip(components(colour))
                .map(|(found, wanted)| found.abs_diff(wanted));
            // 63 colours in a cube of 256³ are about 64 apart.
            assert!(off.max().unwrap() <= 80, "{colour:06x} as {found:?}");
        }
    }
}

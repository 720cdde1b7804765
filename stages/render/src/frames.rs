//! Frames as what changes from one to the next, in the colours of one palette.

use crate::palette::{Counts, Palette};
use crate::raster::Pixels;

/// About so many frames decide on the colours.
const SAMPLES: usize = 24;

/// The rectangle of a frame outside of which nothing changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Patch {
    pub(crate) left: u32,
    pub(crate) top: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Row by row, indices of the palette; [`Palette::UNCHANGED`] where the picture stays as it is.
    pub(crate) indices: Vec<u8>,
}

/// The palette of an animation of at least one frame, by frames at equal distances.
pub(crate) fn palette<E>(
    count: usize,
    mut paint: impl FnMut(usize) -> Result<Pixels, E>,
) -> Result<Palette, E> {
    let mut counts = Counts::default();
    let samples = count.min(SAMPLES);
    for sample in 0..samples {
        let frame = sample * (count - 1) / (samples - 1).max(1);
        counts.add(&paint(frame)?);
    }
    Ok(Palette::of(counts))
}

/// Turns frames into patches, one after the other.
pub(crate) struct Patches {
    palette: Palette,
    size: [u32; 2],
    /// What is shown before the next frame; empty before the first.
    shown: Vec<u8>,
}

impl Patches {
    pub(crate) fn new(palette: Palette, size: [u32; 2]) -> Self {
        Self {
            palette,
            size,
            shown: Vec::new(),
        }
    }

    pub(crate) fn palette(&self) -> &Palette {
        &self.palette
    }

    /// The patch that makes what is shown the frame of these pixels. Where nothing changes it is one pixel that stays.
    pub(crate) fn next(&mut self, pixels: &Pixels) -> Patch {
        let [width, height] = self.size;
        let frame: Vec<u8> = pixels.iter().map(|colour| self.palette.index(*colour)).collect();
        let shown = std::mem::replace(&mut self.shown, frame);
        let frame = &self.shown;
        if shown.is_empty() {
            return Patch {
                left: 0,
                top: 0,
                width,
                height,
                indices: frame.clone(),
            };
        }
        let row_length = width as usize;
        let rows = || shown.chunks_exact(row_length).zip(frame.chunks_exact(row_length));
        let changed = |(before, after): (&[u8], &[u8])| before != after;
        let top = rows().position(changed).unwrap_or(0);
        let bottom = rows().rposition(changed).unwrap_or(0);
        let mut left = row_length - 1;
        let mut right = 0;
        for (before, after) in rows() {
            let pairs = || before.iter().zip(after);
            left = left.min(
                pairs()
                    .position(|(before, after)| before != after)
                    .unwrap_or(left),
            );
            right = right.max(
                pairs()
                    .rposition(|(before, after)| before != after)
                    .unwrap_or(right),
            );
        }
        if left > right {
            (left, right) = (0, 0);
        }
        let within = rows().take(bottom + 1).skip(top).flat_map(|(before, after)| {
            let pairs = before[left..=right].iter().zip(&after[left..=right]);
            pairs.map(|(before, after)| {
                if before == after {
                    Palette::UNCHANGED
                } else {
                    *after
                }
            })
        });
        Patch {
            left: left as u32,
            top: top as u32,
            width: (right - left + 1) as u32,
            height: (bottom - top + 1) as u32,
            indices: within.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_are_as_small_as_what_changes() {
        let (white, black) = (0x00ff_ffff, 0);
        let mut first = vec![white; 20];
        first[0] = black;
        let mut second = first.clone();
        second[7] = black;
        second[14] = black;
        let palette = palette(2, |frame| Ok::<_, ()>([&first, &second][frame].clone())).unwrap();
        let mut patches = Patches::new(palette, [5, 4]);
        let whole = patches.next(&first);
        assert_eq!((whole.width, whole.height, whole.indices.len()), (5, 4, 20));
        assert!(!whole.indices.contains(&Palette::UNCHANGED));
        let patch = patches.next(&second);
        assert_eq!((patch.left, patch.top, patch.width, patch.height), (2, 1, 3, 2));
        let stays = Palette::UNCHANGED;
        assert_eq!(patch.indices, [0, stays, stays, stays, stays, 0]);
        let nothing = patches.next(&second);
        assert_eq!(
            (nothing.width, nothing.height, nothing.indices),
            (1, 1, vec![stays])
        );
    }
}

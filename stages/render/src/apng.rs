//! Animated PNG (PNG specification, third edition).

use provenir_api::FigureIdentity;
use provenir_drawing::{Png, compress};

use crate::frames::Patch;
use crate::palette::Palette;

/// Thousandths of a second, in which delays are counted here.
pub(crate) const PARTS: u32 = 1000;
/// The colour type of pictures with a palette.
const INDEXED: u8 = 3;

/// A file under way.
pub(crate) struct Apng {
    file: Png,
    /// Number of the next chunk that the animation consists of.
    sequence: u32,
}

impl Apng {
    /// The beginning of a file of so many frames that is played over and over.
    pub(crate) fn new(
        [width, height]: [u32; 2],
        palette: &Palette,
        frames: u32,
        identity: &FigureIdentity,
    ) -> Self {
        let mut file = Png::new(width, height, INDEXED);
        file.identity(identity);
        // So many frames, without end.
        let control = [frames.to_be_bytes(), 0_u32.to_be_bytes()].concat();
        file.chunk(*b"acTL", &control);
        file.chunk(*b"PLTE", &palette.table());
        let mut opacity = [255; Palette::UNCHANGED as usize + 1];
        opacity[usize::from(Palette::UNCHANGED)] = 0;
        file.chunk(*b"tRNS", &opacity);
        Self { file, sequence: 0 }
    }

    /// Appends a frame that stays for so many thousandths of a second.
    pub(crate) fn frame(&mut self, patch: &Patch, delay: u64) {
        let mut control = self.next();
        for number in [patch.width, patch.height, patch.left, patch.top] {
            control.extend(number.to_be_bytes());
        }
        control.extend(u16::try_from(delay).unwrap_or(u16::MAX).to_be_bytes());
        control.extend((PARTS as u16).to_be_bytes());
        // What is shown stays (0), and the frame is laid over it (1).
        control.extend([0, 1]);
        let is_first = self.sequence == 1;
        self.file.chunk(*b"fcTL", &control);
        let pixels = compress(&scanlines(patch));
        if is_first {
            self.file.chunk(*b"IDAT", &pixels);
        } else {
            let mut data = self.next();
            data.extend(pixels);
            self.file.chunk(*b"fdAT", &data);
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.file.finish()
    }

    fn next(&mut self) -> Vec<u8> {
        let number = self.sequence.to_be_bytes().to_vec();
        self.sequence += 1;
        number
    }
}

/// Rows of indices, each behind the number of its filter: none (0), which serves indices best.
fn scanlines(patch: &Patch) -> Vec<u8> {
    let rows = patch.indices.chunks_exact(patch.width as usize);
    rows.flat_map(|row| std::iter::once(0).chain(row.iter().copied()))
        .collect()
}

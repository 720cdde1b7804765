//! Animated GIF (version 89a).

use std::borrow::Cow;

use gif::{DisposalMethod, Encoder, EncodingError, ExtensionData, Frame, Repeat};
use provenir_api::FigureIdentity;

use crate::frames::Patch;
use crate::palette::Palette;

/// Hundredths of a second, in which GIF counts.
pub(crate) const PARTS: u32 = 100;

/// A file under way.
pub(crate) struct Gif(Encoder<Vec<u8>>);

impl Gif {
    /// The beginning of a file that is played over and over.
    pub(crate) fn new(
        [width, height]: [u32; 2],
        palette: &Palette,
        identity: &FigureIdentity,
    ) -> Result<Self, EncodingError> {
        // The parameters' ranges keep both far below 2¹⁶.
        let (width, height) = (width as u16, height as u16);
        let mut encoder = Encoder::new(Vec::new(), width, height, &palette.table())?;
        encoder.write_extension(ExtensionData::Repetitions(Repeat::Infinite))?;
        let comment = identity.gif_comment();
        let blocks: Vec<&[u8]> = comment.chunks(255).collect();
        encoder.write_raw_extension(gif::Extension::Comment.into(), &blocks)?;
        Ok(Self(encoder))
    }

    /// Appends a frame that stays for so many hundredths of a second.
    pub(crate) fn frame(&mut self, patch: &Patch, delay: u64) -> Result<(), EncodingError> {
        self.0.write_frame(&Frame {
            delay: u16::try_from(delay).unwrap_or(u16::MAX),
            dispose: DisposalMethod::Keep,
            transparent: Some(Palette::UNCHANGED),
            left: patch.left as u16,
            top: patch.top as u16,
            width: patch.width as u16,
            height: patch.height as u16,
            buffer: Cow::Borrowed(&patch.indices),
            ..Frame::default()
        })
    }

    pub(crate) fn finish(self) -> Result<Vec<u8>, EncodingError> {
        self.0.into_inner()
    }
}

//! PNG files (ISO/IEC 15948).
//!
//! They are written here, on a compressor that is called by name: what a PNG library compresses with is decided by
//! whoever else in the program asks for a faster one, and some of those give other bytes on other processors.

use miniz_oxide::deflate::compress_to_vec_zlib;
use provenir_api::FigureIdentity;

/// How hard the compressor tries, of ten.
const LEVEL: u8 = 8;

/// A PNG file under way.
#[derive(Debug)]
pub struct Png(Vec<u8>);

impl Png {
    /// The beginning of a file of eight bits a sample: width and height in pixels; the colour type is the standard's (2 for
    /// red green blue, 3 for a palette).
    pub fn new(width: u32, height: u32, colour_type: u8) -> Self {
        let mut png = Self(b"\x89PNG\r\n\x1a\n".to_vec());
        let mut header = Vec::with_capacity(13);
        header.extend(width.to_be_bytes());
        header.extend(height.to_be_bytes());
        // Compression, filters and order as ever.
        header.extend([8, colour_type, 0, 0, 0]);
        png.chunk(*b"IHDR", &header);
        png
    }

    /// Appends a chunk; its data is shorter than 2³¹ bytes.
    pub fn chunk(&mut self, name: [u8; 4], data: &[u8]) {
        let Self(file) = self;
        file.extend((data.len() as u32).to_be_bytes());
        let checked = file.len();
        file.extend(name);
        file.extend(data);
        let checksum = crc32fast::hash(&file[checked..]);
        file.extend(checksum.to_be_bytes());
    }

    /// Appends the text by which the file leads back to the cell that drew it.
    pub fn identity(&mut self, identity: &FigureIdentity) {
        let mut text = FigureIdentity::PNG_KEYWORD.as_bytes().to_vec();
        // The end of the keyword, not compressed (two bytes), no language, no translated keyword.
        text.extend([0; 5]);
        text.extend(identity.text().as_bytes());
        self.chunk(*b"iTXt", &text);
    }

    /// The finished file.
    pub fn finish(mut self) -> Vec<u8> {
        self.chunk(*b"IEND", &[]);
        self.0
    }
}

/// Compresses as chunks of pixels are compressed.
pub fn compress(data: &[u8]) -> Vec<u8> {
    compress_to_vec_zlib(data, LEVEL)
}

#[cfg(test)]
mod tests {
    use provenir_api::Digest;

    use super::*;

    #[test]
    fn what_is_written_is_what_another_library_reads() {
        let identity = FigureIdentity {
            action_key: "key".to_owned(),
            data: Digest::of(b"data"),
        };
        let mut file = Png::new(2, 1, 2);
        file.identity(&identity);
        // A row of two pixels behind its filter: none.
        file.chunk(*b"IDAT", &compress(&[0, 1, 2, 3, 250, 251, 252]));
        let file = file.finish();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&file))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels, [1, 2, 3, 250, 251, 252]);
        assert_eq!(FigureIdentity::read(&file), Some(identity));
    }
}

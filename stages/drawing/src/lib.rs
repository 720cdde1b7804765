//! What figures and animations are drawn with.
//!
//! * [`font`]: the bundled font; text becomes outlines, so that it looks the same wherever it is shown.
//! * [`Png`]: PNG files, chunk by chunk, with bytes that depend on what is written alone.

pub mod font;
mod png;

pub use png::{Png, compress};

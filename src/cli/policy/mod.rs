//! Policies in whatever file they are: a table, safetensors, a Stable-Baselines3 archive.
//!
//! * `load`: reads them, with what a person adds to an archive.
//! * `describe`: says what they are, in words and as JSON.

mod describe;
mod load;

pub(super) use load::{Format, Loaded, load, of_archive, of_safetensors, of_table};

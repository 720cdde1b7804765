//! Policies in whatever file they are: a table, safetensors, a Stable-Baselines3 archive.
//!
//! * `load`: reads them, with what a person adds to an archive.
//! * `fits`: whether they can act in the environment that they are for.
//! * `describe`: says what they are, in words and as JSON.

mod describe;
mod fits;
mod load;

pub(super) use load::{Format, Loaded, load, of_archive, of_safetensors, of_table};

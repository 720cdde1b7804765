//! What the fuzz targets share.
//!
//! A target reads bytes as the program would read a file from somebody else, and checks what must hold of anything that is
//! read. Blind bytes would seldom get through digests, checksums and archives, so that some inputs are parts that the target
//! puts together into a file whose checks are right: [`sections`].
//!
//! * `harness`: beginning, panics, a folder for files.
//! * `manifests`: manifests and their options as parts; what must hold of a plan.
//! * `grammar`: manifests written from the language's own grammar.
//! * `stores`: the files of a store as parts.
//! * `archives`: Stable-Baselines3 archives as parts.
//! * `seeds`: what fuzzing begins with, made of the repository's own files.

pub mod archives;
pub mod grammar;
pub mod harness;
pub mod manifests;
pub mod seeds;
pub mod stores;

/// Stands between the parts of an input.
pub const SEPARATOR: &[u8] = b"<|>";

/// The parts of an input.
pub fn sections(data: &[u8]) -> Vec<&[u8]> {
    let mut sections = Vec::new();
    let mut rest = data;
    while let Some(end) = rest
        .windows(SEPARATOR.len())
        .position(|window| window == SEPARATOR)
    {
        sections.push(&rest[..end]);
        rest = &rest[end + SEPARATOR.len()..];
    }
    sections.push(rest);
    sections
}

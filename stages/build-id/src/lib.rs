//! Identity of a build: a hash of the sources it was made from.
//!
//! The command and its worker are two executables that must come from the same sources: what one declares the other
//! executes. Only those two depend on this crate, because it is compiled anew whenever any source changes.

/// Sixteen hexadecimal digits, the same for everything built from the same sources.
pub const BUILD: &str = env!("PROVENIR_BUILD");

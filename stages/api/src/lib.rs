//! The contract between the command, which plans and stores, and the stages, which compute.
//!
//! * [`Digest`]: BLAKE3 digests, the only kind of identity in the project.
//! * [`Label`]: the value of an axis at a cell; equal by number.
//! * [`canonical`]: the self-delimiting encoding that enters action keys.
//! * [`Kind`]: the declaration of what a stage does; [`AnyKind`] is the same behind a pointer.
//! * [`port`]: named inputs and outputs, and the schemas of the tables that pass through them.
//! * [`schema`]: checks values against the JSON Schema derived from a kind's parameters.
//! * [`FigureIdentity`]: what a figure file says of itself.
//! * [`protocol`]: the JSON Lines spoken between the command and a worker process.
//!
//! Invariant: nothing here reads a file, a clock or the environment, and nothing here knows Arrow, LibTorch or Bullet.

pub mod canonical;
mod digest;
mod figure;
mod kind;
mod label;
mod names;
pub mod port;
pub mod protocol;
pub mod schema;
mod source;

pub use digest::{Digest, DigestError};
pub use figure::FigureIdentity;
pub use kind::{
    AnyKind, Determinism, Facts, Group, Kind, Known, Need, Parameters, Resolved, Resources, Revision, Source,
    erase,
};
pub use label::Label;
pub use schema::Problem;
pub use source::SourceFile;

//! Provenance for others: what was computed from what, by what, when and where, as the standards have it.
//!
//! * `model`: one [`Provenance`] of runs, cells, artifacts and sources: entities, activities, agents.
//! * `gather`: makes it of results and records; `recorded` reads runs from these, and what gave nothing that counts: failures,
//!   what was cut short, and repetitions; `copies` says which named copies are told of; `order` puts producers before consumers.
//! * `files`: reads the files themselves: SHA-256 beside BLAKE3, and copies for a crate.
//! * `identity`: URIs, UUIDs and times.
//! * `ro_crate`, `openlineage`, `prov`, `in_toto`: a writer for each standard, which reads nothing but the model.
//!
//! Invariants: an export follows from results, records and files alone, so that it is the same bytes whenever it is made
//! by the same version: no clock, no random number. A digest in it is of bytes that were read for it; an artifact whose bytes are
//! gone has the BLAKE3 that the store knew it by, and is marked as not included. Every reference in it leads to something in it.

mod copies;
mod files;
mod gather;
mod identity;
mod in_toto;
mod model;
mod openlineage;
mod order;
mod prov;
mod recorded;
mod ro_crate;

pub use gather::{GatherError, Selection, Wanted, WantedOutput};
pub use in_toto::in_toto;
pub use model::{
    Artifact, Cell, Ending, Execution, File, Input, NamedCopy, Output, Provenance, Repetition, Run, Source,
};
pub use openlineage::openlineage;
pub use prov::prov;
pub use ro_crate::{Licence, MANIFEST, METADATA, ro_crate};

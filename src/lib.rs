//! The engine: manifests, plans, the store, execution. The command `provenir` is a thin layer over it.

pub mod manifest;
pub mod plan;
pub mod registry;

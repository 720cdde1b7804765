//! The engine: manifests, plans, the store, execution. The command `provenir` is a thin layer over it.

pub mod audit;
pub mod cli;
mod clock;
pub mod display;
pub mod exec;
pub mod lineage;
pub mod manifest;
mod number;
pub mod plan;
pub mod provenance;
pub mod record;
pub mod registry;
pub mod retention;
pub mod store;

//! The engine: manifests, plans, the store, execution. The command `provenir` is a thin layer over it.

pub mod cli;
mod clock;
pub mod display;
pub mod exec;
pub mod manifest;
pub mod plan;
pub mod record;
pub mod registry;
pub mod store;

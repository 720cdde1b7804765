//! The engine: manifests, plans, the store, execution. The command `provenir` is a thin layer over it.

mod clock;
pub mod exec;
pub mod plan;
pub mod store;

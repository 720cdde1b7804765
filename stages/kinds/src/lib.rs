//! Declarations of the built-in kinds: all that the command knows of them.
//!
//! A module a kind: parameters (documented, ranged), ports (with schemas), revision. Executions live in crates of
//! their own and depend on this one; this one depends on the contract alone.
//!
//! **Revisions.** Raise a number, with one comment line, when the results it stands for change. A changed default is a
//! changed result. The goldens beside each execution fail when it was forgotten.

pub mod collect;
pub mod command;
pub mod corrupt;
pub mod diagnose;
pub mod evaluate;
pub mod expert;
pub mod plot;
pub mod render;
pub mod split;
pub mod tables;
pub mod time_to_target;
pub mod train;

mod environment;
mod facts;
mod machinery;
mod policy_format;
mod policy_source;

pub use environment::Environment;
pub use policy_format::PolicyFormat;
pub use policy_source::{Activation, PolicySource};

use provenir_api::{AnyKind, erase};

/// Every built-in kind, in the order in which a pipeline uses them.
pub fn all() -> Vec<Box<dyn AnyKind>> {
    vec![
        erase::<expert::Expert>(),
        erase::<collect::Collect>(),
        erase::<corrupt::Corrupt>(),
        erase::<split::Split>(),
        erase::<train::Train>(),
        erase::<diagnose::Diagnose>(),
        erase::<evaluate::Evaluate>(),
        erase::<time_to_target::TimeToTarget>(),
        erase::<plot::Plot>(),
        erase::<render::Render>(),
        erase::<command::Command>(),
    ]
}

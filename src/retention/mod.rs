//! What of a store is kept, and what may go.
//!
//! * `roots`: what is kept for its own sake: pins, published copies, recent runs, runs under way.
//! * `reach`: what those rest on; everything else is unwanted, each with the reason why nothing reaches it.
//! * `collect`: removes what is unwanted, beside processes that use the store.
//!
//! Invariant: what cannot be understood is an error, never a reason to remove something: a pin or a record that cannot be
//! read may stand for what must not be lost.

mod collect;
mod reach;
mod roots;

pub use collect::{Removed, collect};
pub use reach::{Survey, Unwanted, survey};
pub use roots::{Keep, Root};

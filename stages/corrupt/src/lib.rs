//! Execution of the `corrupt` kind: replaces the actions of exactly round(ε N) samples by outliers.
//!
//! Invariant: which samples are replaced, and by what, depends on the seed, the outlier model, and the samples'
//! numbers alone: not on the order of rows, not on threads, and for an outlier not on ε.

mod execution;
mod outliers;

pub use execution::CorruptExecution;

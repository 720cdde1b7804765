//! Execution of the `corrupt` kind: replaces a share of the samples by outliers.
//!
//! * `choice`: which samples, exactly round(ε N) of them or whole episodes.
//! * `outliers`: what they become.
//! * `statistics`: what some of both need to know of the data: ranges, means, deviations.
//!
//! Invariant: which samples are replaced, and by what, depends on the parameters and on the samples, by their numbers: not on
//! the order of rows and not on threads. A larger ε adds samples, and leaves those of a smaller one the outliers that they
//! were (`permuted` moves one).

mod choice;
mod execution;
mod outliers;
mod statistics;

pub use execution::CorruptExecution;

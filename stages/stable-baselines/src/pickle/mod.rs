//! A machine for Python pickles that executes nothing.
//!
//! A pickle is a program: its instructions import names and call them. Here an import yields a name from the fixed
//! list of [`Global`], a call yields an inert [`Object`], and everything else is an error.
//!
//! Bounds: a pickle's bytes, instructions and open marks are limited, every instruction makes at most one value, and
//! texts and byte strings are borrowed, so that memory stays proportional to the length of what was read.

mod error;
mod global;
mod machine;
mod value;

pub use error::PickleError;
pub(crate) use global::{Global, Scalar};
pub(crate) use machine::parse;
pub(crate) use value::{Id, Object, Pickle, Value};

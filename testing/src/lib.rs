//! Kinds for tests.

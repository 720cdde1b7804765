//! What is said of every mistake.

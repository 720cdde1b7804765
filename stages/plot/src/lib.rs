//! Execution of the `plot` kind

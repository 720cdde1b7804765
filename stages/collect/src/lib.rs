//! Execution of the `collect` kind

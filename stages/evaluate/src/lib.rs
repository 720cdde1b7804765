//! Execution of the `evaluate` kind

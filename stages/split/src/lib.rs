//! Execution of the `split` kind

//! Execution of the `train` kind

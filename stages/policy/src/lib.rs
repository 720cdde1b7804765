//! Policies as tables of tensors, and their row-independent inference

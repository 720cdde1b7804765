//! Execution of the `corrupt` kind

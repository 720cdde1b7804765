//! Policies through files and back; and what is refused.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod safetensors;
mod support;
mod table;

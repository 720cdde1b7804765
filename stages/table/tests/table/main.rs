//! Tables from outside: one program, so that it links once.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod columns;
mod content;
mod hostile;
mod parquet;
mod support;

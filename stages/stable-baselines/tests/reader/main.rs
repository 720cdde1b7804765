//! The reader from outside: real agents, agents made here, and files made to harm.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod built;
mod hostile;
mod recorded;
mod support;
mod zoo;

//! Kinds that exist for tests and benches only. With the command they make `provenir-noop`, with the worker's loop
//! `provenir-noop-worker`: the engine as it ships, without LibTorch and Bullet, so that its tests are fast.
//!
//! * `noop`: adds a number to the sum of its inputs; the cheapest cell there is.
//! * `sleep`: the same, after a while, with progress; it can be cancelled and leaves a checkpoint.
//! * `fail`, `crash`: a cell that says why it cannot be executed; a worker that dies without a word.
//! * `chatter`: log lines, warnings, and text on standard output, where the protocol lives.
//! * `clock`: an output that is never the same twice.
//! * `render`, which only writes down what it was asked for, and `command` as it ships.

mod declarations;
mod executions;

pub use declarations::kinds;
pub use executions::executions;

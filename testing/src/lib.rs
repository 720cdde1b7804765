//! Kinds that exist for tests and benches only. With the command they make `provenir-noop`, with the worker's loop
//! `provenir-noop-worker`: the engine as it ships, without LibTorch and Bullet, so that its tests are fast.
//!
//! * `noop`: adds a number to the sum of its inputs; the cheapest cell there is.
//! * `sleep`: the same, after a while, with progress; it can be cancelled and leaves a checkpoint.
//! * `fail`, `crash`: a cell that says why it cannot be executed; a worker that dies without a word.
//! * `chatter`: log lines, warnings, and text on standard output, where the protocol lives.
//! * `clock`: an output that is never the same twice.
//! * `render`, which only writes down what it was asked for, and `command` as it ships.
//! * `versions`: kinds that changed; `provenir-noop-next` and its worker are what the others are upgraded to.

mod declarations;
mod executions;
mod versions;

use provenir_api::AnyKind;
use provenir_execution::AnyExecution;

/// The kinds of `provenir-noop`.
pub fn kinds() -> Vec<Box<dyn AnyKind>> {
    [declarations::kinds(), versions::first().kinds]
        .into_iter()
        .flatten()
        .collect()
}

/// What executes them.
pub fn executions() -> Vec<Box<dyn AnyExecution>> {
    [executions::executions(), versions::first().executions]
        .into_iter()
        .flatten()
        .collect()
}

/// The kinds of `provenir-noop-next`.
pub fn next_kinds() -> Vec<Box<dyn AnyKind>> {
    [declarations::kinds(), versions::second().kinds]
        .into_iter()
        .flatten()
        .collect()
}

/// What executes them.
pub fn next_executions() -> Vec<Box<dyn AnyExecution>> {
    [executions::executions(), versions::second().executions]
        .into_iter()
        .flatten()
        .collect()
}

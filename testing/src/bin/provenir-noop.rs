//! The command with the kinds for tests.

use std::process::ExitCode;

use provenir::cli::{Edition, main as run};

fn main() -> ExitCode {
    run(&Edition {
        kinds: provenir_testing::kinds,
        worker: "provenir-noop-worker",
    })
}

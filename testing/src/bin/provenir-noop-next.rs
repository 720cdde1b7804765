//! The command with the kinds for tests, a version later.

use std::process::ExitCode;

use provenir::cli::{Edition, main as run};

fn main() -> ExitCode {
    run(&Edition {
        kinds: provenir_testing::next_kinds,
        worker: "provenir-noop-next-worker",
    })
}

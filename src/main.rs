//! The command `provenir`.

use std::process::ExitCode;

use provenir::cli::{Edition, main as run};

fn main() -> ExitCode {
    run(&Edition {
        kinds: provenir_kinds::all,
        worker: "provenir-worker",
    })
}

//! A worker with the kinds for tests, a version later.

use std::collections::BTreeMap;
use std::process::ExitCode;

fn main() -> ExitCode {
    let platform = BTreeMap::from([("system".to_owned(), std::env::consts::OS.to_owned())]);
    provenir_execution::serve(
        &provenir_testing::next_executions(),
        provenir_build_id::BUILD,
        false,
        platform,
    )
}

//! A worker with the kinds for tests.

use std::collections::BTreeMap;
use std::process::ExitCode;

fn main() -> ExitCode {
    let platform = BTreeMap::from([("system".to_owned(), std::env::consts::OS.to_owned())]);
    provenir_execution::serve(
        &provenir_testing::executions(),
        provenir_build_id::BUILD,
        false,
        platform,
    )
}

//! `expert` from outside, and from where an attempt at it ended.

mod continuation;
mod golden;
mod learning;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::protocol::{Level, Progress};
use provenir_execution::{Context, Failure, Outputs, Reporter};
use provenir_kinds::expert::ExpertParameters;

use crate::execution::execute;

/// Parameters as a manifest gives them, of trainings that take a moment.
macro_rules! parameters {
    ($($json:tt)*) => {{
        let mut parameters = serde_json::json!({
            "env": "hopper", "steps": 600, "hidden": [12, 10], "batch": 8, "learning_starts": 100, "environments": 3,
            "evaluate_every": 200, "evaluation_episodes": 2, "device": "cpu", "seed": 5,
        });
        let more = serde_json::json!($($json)*);
        parameters.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value::<provenir_kinds::expert::ExpertParameters>(parameters).unwrap()
    }};
}
use parameters;

/// Collects what is said, and asks the execution to stop where it says something.
#[derive(Default)]
struct Listener {
    said: Mutex<Vec<(Level, String)>>,
    stop_at: Option<&'static str>,
    cancelled: AtomicBool,
}

impl Reporter for Listener {
    fn progress(&self, _: Progress) {}

    fn log(&self, level: Level, message: &str) {
        if self.stop_at.is_some_and(|text| message.contains(text)) {
            self.cancelled.store(true, Ordering::Relaxed);
        }
        self.said.lock().unwrap().push((level, message.to_owned()));
    }
}

impl Listener {
    fn heard(&self, text: &str) -> bool {
        let said = self.said.lock().unwrap();
        said.iter().any(|(_, message)| message.contains(text))
    }

    fn warnings(&self) -> Vec<String> {
        let said = self.said.lock().unwrap();
        let warnings = said.iter().filter(|(level, _)| *level == Level::Warning);
        warnings.map(|(_, message)| message.clone()).collect()
    }
}

/// A folder for checkpoints, gone with the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.0.path()).unwrap().join("partial")
    }
}

/// Never in a test's life.
const NEVER: Duration = Duration::from_secs(1 << 30);

fn train_in(folder: &Folder, parameters: &ExpertParameters, listener: &Listener) -> Result<Outputs, Failure> {
    let context = Context::new(listener, &listener.cancelled, folder.path());
    execute(parameters, &context, NEVER)
}

fn train(parameters: &ExpertParameters) -> Outputs {
    train_in(&Folder::new(), parameters, &Listener::default()).unwrap()
}

/// The content of what must be the same again.
fn content(outputs: &Outputs) -> [provenir_api::Digest; 2] {
    ["policy", "history"].map(|port| outputs.get_table(port).unwrap().content())
}

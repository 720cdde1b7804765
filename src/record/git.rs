use std::process::{Command, Stdio};

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

/// The state of the git repository that a manifest lies in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Git {
    /// The commit.
    pub commit: String,
    /// Whether any tracked file differs from it.
    pub dirty: bool,
}

impl Git {
    /// Asks git; `None` where there is no git, no repository or no commit yet.
    pub fn of(folder: &Utf8Path) -> Option<Self> {
        let commit = ask(folder, &["rev-parse", "HEAD"])?;
        let changes = ask(folder, &["status", "--porcelain", "--untracked-files=no"])?;
        Some(Self {
            commit: commit.trim().to_owned(),
            dirty: !changes.is_empty(),
        })
    }
}

fn ask(folder: &Utf8Path, question: &[&str]) -> Option<String> {
    let output = Command::new("git")
        // Asking must neither wait for locks nor run what a repository configures.
        .args([
            "--no-optional-locks",
            "-c",
            "core.fsmonitor=false",
            "-C",
            folder.as_str(),
        ])
        .args(question)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

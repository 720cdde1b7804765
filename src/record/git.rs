use std::fmt;
use std::process::{Command, Stdio};

use camino::Utf8Path;
use provenir_api::Digest;
use serde::{Deserialize, Serialize};

/// The state of the git repository that a manifest lies in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Git {
    /// The commit.
    pub commit: String,
    /// Whether any tracked file differs from it.
    pub dirty: bool,
    /// BLAKE3 of what `git diff HEAD --binary` says, where it is dirty: tells one uncommitted state from another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Digest>,
}

impl Git {
    /// Asks git; `None` where there is no git, no repository or no commit yet.
    pub fn of(folder: &Utf8Path) -> Option<Self> {
        let commit = ask(folder, &["rev-parse", "HEAD"])?;
        let changes = ask(folder, &["status", "--porcelain", "--untracked-files=no"])?;
        let dirty = !changes.is_empty();
        Some(Self {
            commit: commit.trim().to_owned(),
            dirty,
            diff: dirty.then(|| digest_of_changes(folder)).flatten(),
        })
    }
}

impl fmt::Display for Git {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commit: String = self.commit.chars().take(12).collect();
        match (self.dirty, &self.diff) {
            (false, _) => formatter.write_str(&commit),
            (true, Some(diff)) => write!(formatter, "{commit}, dirty (diff {})", diff.short()),
            (true, None) => write!(formatter, "{commit}, dirty"),
        }
    }
}

/// The digest of all changes to tracked files; hashed as it comes, because it may be of any length.
fn digest_of_changes(folder: &Utf8Path) -> Option<Digest> {
    let question = [
        "diff",
        "HEAD",
        "--binary",
        "--full-index",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--no-renames",
        "--src-prefix=a/",
        "--dst-prefix=b/",
    ];
    let mut child = git(folder, &question).stdout(Stdio::piped()).spawn().ok()?;
    let mut hasher = blake3::Hasher::new();
    let hashed = child
        .stdout
        .take()
        .is_some_and(|output| hasher.update_reader(output).is_ok());
    let ended = child.wait().ok()?;
    (hashed && ended.success()).then(|| hasher.finalize().into())
}

fn ask(folder: &Utf8Path, question: &[&str]) -> Option<String> {
    let output = git(folder, question).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A question to git: asking must neither wait for locks nor run what a repository configures.
fn git(folder: &Utf8Path, question: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args([
            "--no-optional-locks",
            "-c",
            "core.fsmonitor=false",
            "-C",
            folder.as_str(),
        ])
        .args(question)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

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
        // Both in one answer: a process more would take longer than all else that a short run does.
        let question = [
            "status",
            "--porcelain=v2",
            "--branch",
            "--no-ahead-behind",
            "--untracked-files=no",
        ];
        let (commit, dirty) = understood(&ask(folder, &question)?)?;
        Some(Self {
            commit,
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

/// The commit, and whether a tracked file differs from it, as `git status --porcelain=v2 --branch` tells them: headers behind
/// `#`, then a line for each file that differs. `None` where there is no commit yet.
fn understood(status: &str) -> Option<(String, bool)> {
    let commit = status
        .lines()
        .find_map(|line| line.strip_prefix("# branch.oid "))?;
    let dirty = status.lines().any(|line| !line.starts_with('#'));
    (commit != "(initial)").then(|| (commit.to_owned(), dirty))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of git-status(1), "Porcelain Format Version 2".
    #[test]
    fn a_status_tells_the_commit_and_whether_anything_differs() {
        let head = "# branch.oid 6aaa45c9db12a6fb36befc9f2075bc98c19401eb\n# branch.head main\n";
        let commit = "6aaa45c9db12a6fb36befc9f2075bc98c19401eb".to_owned();
        assert_eq!(understood(head), Some((commit.clone(), false)));
        for line in [
            "1 .M N... 100644 100644 100644 734a935e 734a935e Makefile",
            "2 R. N... 100644 100644 100644 734a935e 734a935e R100 new\told",
            "u UU N... 100644 100644 100644 100644 734a935e 734a935e 734a935e # odd name",
        ] {
            assert_eq!(
                understood(&format!("{head}{line}\n")),
                Some((commit.clone(), true))
            );
        }
        assert_eq!(understood("# branch.oid (initial)\n# branch.head main\n"), None);
        assert_eq!(understood(""), None);
    }
}

use std::collections::BTreeSet;
use std::fmt;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use provenir_api::Digest;
use serde::{Deserialize, Serialize};

/// Git is asked whether it tracks so many files at most, of so many bytes of names: they have to fit into a command line.
const ASKED: usize = 1000;
const NAMES: usize = 512 << 10;

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
    /// Files of the run, relative to the manifest's folder, that lie in the repository and that git does not track, so that
    /// no commit holds them: the manifest first, then what it extends, then source files. Absent in earlier records, which do not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untracked: Vec<Utf8PathBuf>,
}

impl Git {
    /// Asks git of the repository that a folder lies in; `None` where there is no git, no repository or no commit yet. Of the
    /// files, absolute or relative to the folder, it is asked which it tracks.
    pub fn of(folder: &Utf8Path, files: &[Utf8PathBuf]) -> Option<Self> {
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
            untracked: untracked(folder, files).unwrap_or_default(),
        })
    }

    /// The files of the run that no commit holds, a line each; `None` where there are none.
    pub fn lacking(&self) -> Option<String> {
        let names: Vec<&str> = self.untracked.iter().map(|file| file.as_str()).collect();
        (!names.is_empty()).then(|| names.join("\n"))
    }
}

impl fmt::Display for Git {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commit: String = self.commit.chars().take(12).collect();
        match (self.dirty, &self.diff) {
            (false, _) => formatter.write_str(&commit)?,
            (true, Some(diff)) => write!(formatter, "{commit}, dirty (diff {})", diff.short())?,
            (true, None) => write!(formatter, "{commit}, dirty")?,
        }
        match self.untracked.as_slice() {
            [] => Ok(()),
            [file] => write!(formatter, ", untracked: {file}"),
            [file, others @ ..] => write!(formatter, ", untracked: {file} and {} more", others.len()),
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

/// The files below the repository's folder that it does not track, as they are named; of the first few.
fn untracked(folder: &Utf8Path, files: &[Utf8PathBuf]) -> Option<Vec<Utf8PathBuf>> {
    let root = Utf8PathBuf::from(ask(folder, &["rev-parse", "--show-toplevel"])?.trim_end_matches('\n'));
    // Git goes by the places that links lead to, but tracks a link in a folder as what it is.
    let placed = |file: &Utf8Path| {
        let path = folder.join(file);
        let parent = path.parent()?.canonicalize_utf8().ok()?;
        let place = parent.join(path.file_name()?);
        Some(place.strip_prefix(&root).ok()?.to_owned())
    };
    let mut seen = BTreeSet::new();
    let inside: Vec<(&Utf8PathBuf, Utf8PathBuf)> = files
        .iter()
        .filter_map(|file| Some((file, placed(file)?)))
        .filter(|(_, place)| seen.insert(place.clone()))
        .take(ASKED)
        .scan(0, |length, found| {
            *length += found.1.as_str().len();
            (*length <= NAMES).then_some(found)
        })
        .collect();
    if inside.is_empty() {
        return Some(Vec::new());
    }
    let mut question = vec!["--literal-pathspecs", "ls-files", "-z", "--"];
    question.extend(inside.iter().map(|(_, place)| place.as_str()));
    let tracked = ask(&root, &question)?;
    let tracked: BTreeSet<&Utf8Path> = tracked.split('\0').map(Utf8Path::new).collect();
    let lacking = inside
        .iter()
        .filter(|(_, place)| !tracked.contains(place.as_path()));
    Some(lacking.map(|(file, _)| (*file).clone()).collect())
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

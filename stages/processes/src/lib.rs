//! What a process started, and how to end all of it: also what left its group or session, and what was left behind by parents
//! that are gone.
//!
//! A worker [adopts](adopt_orphans) what its children leave behind, so that everything below it stays below it, and whoever ends
//! it or a cell of it finds all that is to be ended. Killing its process group alone would miss what called `setsid`.

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, set_child_subreaper, wait, waitid,
};

/// How often processes are looked for again: each time, those that were found last may have started others meanwhile.
const ROUNDS: usize = 200;
/// How long the killed are given to be gone before others are looked for.
const PAUSE: Duration = Duration::from_millis(2);

/// Makes this process the parent of whatever its descendants leave behind when they end.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Kills every process below this one and takes note of their ends, so that none is left.
///
/// For a process that [adopts orphans](adopt_orphans) and has no child that anybody still waits for.
pub fn end_own() {
    if !has_children() {
        return;
    }
    end_below(getpid());
    while matches!(wait(WaitOptions::NOHANG), Ok(Some(_)) | Err(Errno::INTR)) {}
}

/// Kills every process below `root`, until none is left; not `root`. Of processes that nobody waits for `root` has to take note
/// itself. Where processes cannot be listed, or defend themselves by starting others faster than they are killed, some remain.
pub fn end_below(root: Pid) {
    for _ in 0..ROUNDS {
        let below = descendants(root);
        if below.is_empty() {
            return;
        }
        for pid in below {
            // It may have ended meanwhile.
            kill_process(pid, Signal::KILL).ok();
        }
        thread::sleep(PAUSE);
    }
}

/// The living processes below `root`.
fn descendants(root: Pid) -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<Pid>> = BTreeMap::new();
    for (pid, parent) in living() {
        children
            .entry(parent.as_raw_nonzero().get())
            .or_default()
            .push(pid);
    }
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        // Each is taken out, so that a number given anew while processes were listed cannot lead round in a circle.
        let below = children
            .remove(&parent.as_raw_nonzero().get())
            .unwrap_or_default();
        next.extend(&below);
        found.extend(below);
    }
    found
}

/// Every living process that can be seen, and its parent.
fn living() -> Vec<(Pid, Pid)> {
    let Ok(entries) = fs_err::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
            // `PID (NAME) STATE PARENT …`, where the name may hold anything.
            let stat = fs_err::read(entry.path().join("stat")).ok()?;
            let end = stat.iter().rposition(|byte| *byte == b')')?;
            let rest = String::from_utf8_lossy(&stat[end + 1..]).into_owned();
            let mut fields = rest.split_ascii_whitespace();
            let is_over = matches!(fields.next()?, "Z" | "X" | "x");
            let parent = fields.next()?.parse().ok().and_then(Pid::from_raw)?;
            (!is_over).then_some((pid, parent))
        })
        .collect()
}

/// Whether this process has children, those included of whose end it has not taken note.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

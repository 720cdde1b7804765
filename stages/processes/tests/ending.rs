//! A program of its own, since it ends everything below this process.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use provenir_processes::{adopt_orphans, end_below, end_own};
use rustix::process::Pid;

/// Whether a process is there and has not ended.
fn is_alive(pid: &str) -> bool {
    fs_err::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'))
}

/// Starts a shell, and gives its first lines.
fn start(script: &str, lines: usize) -> (std::process::Child, Vec<String>) {
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let said = output.lines().take(lines).map(Result::unwrap).collect();
    (child, said)
}

#[test]
fn whatever_was_started_is_ended() {
    adopt_orphans().unwrap();
    // A child of a child, one that left the session, and one that nobody waits for any more.
    let started = "sleep 600 & echo $!; (setsid sleep 600 & echo $!); setsid sh -c '(sleep 600 & echo $!)'";
    let (mut over, orphans) = start(started, 3);
    over.wait().unwrap();
    assert_eq!(orphans.len(), 3);
    assert!(orphans.iter().all(|pid| is_alive(pid)), "{orphans:?}");
    end_own();
    assert!(!orphans.iter().any(|pid| is_alive(pid)), "{orphans:?}");
    // Their ends were taken note of.
    assert!(
        !orphans
            .iter()
            .any(|pid| fs_err::exists(format!("/proc/{pid}")).unwrap())
    );
    end_own();

    // Below another process, which stays.
    let (mut other, below) = start("sleep 600 & echo $!; setsid sleep 600 & echo $!; read line", 2);
    end_below(Pid::from_child(&other));
    assert!(!below.iter().any(|pid| is_alive(pid)), "{below:?}");
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
}

//! Hears a worker out on both of its channels.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;

use super::worker::FromThread;

/// Longest message that a worker may send.
const MESSAGE: usize = 64 << 20;
/// Longest line of standard error that is kept whole.
const LOG_LINE: usize = 64 << 10;
/// So many bytes of a channel are read at once, though more keep coming: no less than a pipe holds, so that what was written to the
/// log before a message is read with it.
const AT_ONCE: usize = 1 << 20;

/// Gives `take` what a worker says, until its standard output ends or nobody takes any more.
///
/// What it wrote to standard error before a message is given before that message, although the two take different
/// ways: a line of the log must not be put down to the next cell.
pub(super) fn listen(stdout: OwnedFd, stderr: OwnedFd, mut take: impl FnMut(FromThread) -> bool) {
    let (Some(mut messages), Some(mut log)) = (Lines::new(stdout, MESSAGE), Lines::new(stderr, LOG_LINE))
    else {
        return;
    };
    loop {
        let mut channels = vec![PollFd::new(&messages.file, PollFlags::IN)];
        if !log.is_over {
            channels.push(PollFd::new(&log.file, PollFlags::IN));
        }
        match poll(&mut channels, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        // In this order: what was written to the log before a message is in the log's pipe when the message is read.
        let said = messages.read();
        let mut logged = log.read();
        if messages.is_over && !log.rest.is_empty() {
            logged.push(std::mem::take(&mut log.rest));
        }
        for line in logged {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if !take(FromThread::Stderr(text)) {
                return;
            }
        }
        for line in said {
            let message = match serde_json::from_slice(&line) {
                Ok(message) => FromThread::Message(message),
                Err(error) => FromThread::Garbage(error.to_string()),
            };
            if !take(message) {
                return;
            }
        }
        if messages.is_over {
            return;
        }
    }
}

/// Lines from a pipe, as far as they are there.
struct Lines {
    file: File,
    /// The beginning of a line whose end has not come yet.
    rest: Vec<u8>,
    limit: usize,
    is_over: bool,
}

impl Lines {
    fn new(pipe: OwnedFd, limit: usize) -> Option<Self> {
        fcntl_setfl(&pipe, OFlags::NONBLOCK).ok()?;
        Some(Self {
            file: File::from(pipe),
            rest: Vec::new(),
            limit,
            is_over: false,
        })
    }

    /// Reads until nothing is left for now, or [`AT_ONCE`]; a line longer than the limit comes in pieces.
    fn read(&mut self) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        let mut taken = 0;
        while !self.is_over && taken < AT_ONCE {
            match self.file.read(&mut buffer) {
                Ok(0) => self.is_over = true,
                Ok(count) => {
                    taken += count;
                    for piece in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
                        self.rest.extend_from_slice(piece);
                        if piece.ends_with(b"\n") || self.rest.len() >= self.limit {
                            lines.push(std::mem::take(&mut self.rest));
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.is_over = true,
            }
        }
        if self.is_over && !self.rest.is_empty() {
            lines.push(std::mem::take(&mut self.rest));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;

    use provenir_api::protocol::{Done, FromWorker};

    use super::*;

    fn shown(message: &FromThread) -> String {
        match message {
            FromThread::Message(message) => serde_json::to_string(message).unwrap(),
            FromThread::Stderr(line) => format!("stderr {line}"),
            FromThread::Garbage(_) => "garbage".to_owned(),
            FromThread::Closed => "closed".to_owned(),
        }
    }

    #[test]
    fn what_was_written_first_is_heard_first() {
        let done = serde_json::to_string(&FromWorker::Done(0, Done { outputs: Vec::new() })).unwrap();
        for round in 0..50 {
            let (stdout, mut messages) = std::io::pipe().unwrap();
            let (stderr, mut log) = std::io::pipe().unwrap();
            let sent = done.clone();
            let writer = thread::spawn(move || {
                for cell in 0..20 {
                    writeln!(log, "cell {cell}").unwrap();
                    writeln!(messages, "{sent}").unwrap();
                }
                write!(log, "unfinished").unwrap();
            });
            let mut heard = Vec::new();
            listen(stdout.into(), stderr.into(), |message| {
                heard.push(shown(&message));
                true
            });
            writer.join().unwrap();
            let mut expected = 0;
            for line in &heard {
                if let Some(cell) = line.strip_prefix("stderr cell ") {
                    assert_eq!(cell, expected.to_string(), "round {round}: {heard:?}");
                    expected += 1;
                }
            }
            for (position, line) in heard.iter().enumerate().filter(|(_, line)| **line == done) {
                let dones = heard[..position].iter().filter(|line| **line == done).count();
                let logged = heard[..position]
                    .iter()
                    .filter(|line| line.starts_with("stderr cell"))
                    .count();
                assert!(
                    logged > dones,
                    "round {round}: {line} came before its log: {heard:?}"
                );
            }
            assert!(heard.iter().any(|line| line == "stderr unfinished"), "{heard:?}");
        }
    }

    #[test]
    fn what_is_no_message_is_told_and_long_lines_come_in_pieces() {
        let (stdout, mut messages) = std::io::pipe().unwrap();
        let (stderr, mut log) = std::io::pipe().unwrap();
        let writer = thread::spawn(move || {
            log.write_all(&vec![b'x'; 3 * LOG_LINE]).unwrap();
            drop(log);
            messages.write_all(b"nonsense\n").unwrap();
        });
        let mut heard = Vec::new();
        listen(stdout.into(), stderr.into(), |message| {
            heard.push(shown(&message));
            true
        });
        writer.join().unwrap();
        let letters: usize = heard
            .iter()
            .filter(|line| line.starts_with("stderr"))
            .map(|line| line.len() - 7)
            .sum();
        assert_eq!(letters, 3 * LOG_LINE);
        assert!(heard.iter().all(|line| line.len() < 3 * LOG_LINE));
        assert_eq!(heard.last().unwrap(), "garbage");
    }
}

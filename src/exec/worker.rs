//! A worker process seen from the engine.

use std::collections::VecDeque;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use provenir_api::protocol::{FromWorker, Hello, PROTOCOL, ToWorker};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::listen::listen;
use super::state;
use crate::clock;

/// How many of the last lines of standard error are kept for the message about a crash.
const TAIL: usize = 20;
/// So many characters of each; the log has all of it.
const TAIL_LINE: usize = 400;
/// How long a worker may take to load before it greets.
const GREETING: Duration = Duration::from_mins(2);
/// How long a worker may take to leave once its input is closed.
const FAREWELL: Duration = Duration::from_secs(2);

/// Where workers come from.
#[derive(Clone, Debug)]
pub struct WorkerProgram {
    /// The executable.
    pub path: Utf8PathBuf,
    /// The build that it must be of.
    pub build: String,
}

/// Number of a worker in a run.
pub(super) type WorkerId = u32;

/// What the threads that listen to a worker report.
#[derive(Debug)]
pub(super) enum FromThread {
    /// It said something.
    Message(FromWorker),
    /// It wrote a line to standard error.
    Stderr(String),
    /// It said something that is not a message.
    Garbage(String),
    /// It closed its output; it has ended or is about to.
    Closed,
}

/// A worker process. It is killed when dropped, unless it has left by then.
pub(super) struct Worker {
    pub(super) id: WorkerId,
    child: Child,
    /// Absent once the worker was asked to leave.
    input: Option<ChildStdin>,
    pub(super) hello: Option<Hello>,
    pub(super) started: Instant,
    /// The last lines of standard error.
    tail: VecDeque<String>,
}

/// Why a worker is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// It could not be started.
    #[error("cannot start the worker `{path}`: {reason}")]
    Start {
        /// The executable.
        path: Utf8PathBuf,
        /// Why not.
        reason: String,
    },
    /// It ended, or said nothing, before it greeted.
    #[error("the worker `{path}` could not start: it {reason}{}", shown(tail))]
    Greeting {
        /// The executable.
        path: Utf8PathBuf,
        /// How it ended, in words that go on after "it".
        reason: String,
        /// The last lines of its standard error.
        tail: Vec<String>,
    },
    /// It is not of this build.
    #[error("the worker `{path}` is of another build: {found}, while this command is {expected}")]
    Build {
        /// The executable.
        path: Utf8PathBuf,
        /// Its build and protocol.
        found: String,
        /// Ours.
        expected: String,
    },
}

impl WorkerError {
    /// What to do next.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Start { .. } => {
                "the worker is an executable of its own that belongs beside this command: build both with `make build`"
            }
            Self::Greeting { .. } => "`provenir doctor` says what it lacks",
            Self::Build { .. } => "build both together: `make build`",
        }
    }
}

fn shown(tail: &[String]) -> String {
    tail.iter().flat_map(|line| ["\n  ", line]).collect()
}

impl Worker {
    /// Starts a worker. What it says arrives at `signals`.
    pub(super) fn start(
        id: WorkerId,
        program: &WorkerProgram,
        signals: &SyncSender<state::Signal>,
    ) -> Result<Self, WorkerError> {
        let mut child = Command::new(&program.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C at the terminal reaches the command alone, which then decides what becomes of its workers.
            .process_group(0)
            .spawn()
            .map_err(|error| WorkerError::Start {
                path: program.path.clone(),
                reason: error.to_string(),
            })?;
        let input = child.stdin.take();
        if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
            let signals = signals.clone();
            thread::spawn(move || {
                listen(stdout.into(), stderr.into(), |message| {
                    signals.send(state::Signal::Worker(id, message)).is_ok()
                });
                // Nobody listens to a run that is over.
                signals.send(state::Signal::Worker(id, FromThread::Closed)).ok();
            });
        }
        Ok(Self {
            id,
            child,
            input,
            hello: None,
            started: clock::instant(),
            tail: VecDeque::new(),
        })
    }

    /// The process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Takes the worker's greeting, if it is one of a worker that fits.
    pub(super) fn greet(&mut self, hello: Hello, program: &WorkerProgram) -> Result<(), WorkerError> {
        if hello.protocol != PROTOCOL || hello.build != program.build {
            return Err(WorkerError::Build {
                path: program.path.clone(),
                found: format!("build {}, protocol {}", hello.build, hello.protocol),
                expected: format!("build {}, protocol {PROTOCOL}", program.build),
            });
        }
        self.hello = Some(hello);
        Ok(())
    }

    /// Whether the worker has had more than enough time to greet and has not.
    pub(super) fn is_overdue(&self) -> bool {
        self.hello.is_none() && self.started.elapsed() > GREETING
    }

    /// Says something to the worker. Says whether it could; a worker that does not listen any more has closed its
    /// output as well, which is reported on its own.
    pub(super) fn send(&mut self, message: &ToWorker) -> bool {
        let Some(input) = &mut self.input else {
            return false;
        };
        let Ok(mut line) = serde_json::to_vec(message) else {
            return false;
        };
        line.push(b'\n');
        input.write_all(&line).is_ok()
    }

    /// Keeps a line of standard error.
    pub(super) fn note(&mut self, line: &str) {
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        let mut kept: String = line.chars().take(TAIL_LINE).collect();
        if kept.len() < line.len() {
            kept.push('…');
        }
        self.tail.push_back(kept);
    }

    /// The last lines of standard error since they were last asked for.
    pub(super) fn take_tail(&mut self) -> Vec<String> {
        while self.tail.back().is_some_and(String::is_empty) {
            self.tail.pop_back();
        }
        self.tail.drain(..).collect()
    }

    /// Kills the worker and every process that it started.
    pub(super) fn kill(&mut self) {
        let pid = Pid::from_child(&self.child);
        // It may have ended already. Stopped, it neither starts others nor tells how those that it started end.
        if kill_process(pid, Signal::STOP).is_ok() {
            provenir_processes::end_below(pid);
        }
        self.kill_group();
    }

    /// Kills the worker, if it is there, and what it started and what did not leave its group.
    fn kill_group(&self) {
        kill_process_group(Pid::from_child(&self.child), Signal::KILL).ok();
    }

    /// How the worker, whose output is closed, ended.
    pub(super) fn ending(&mut self) -> Ending {
        if !self.has_ended_by(clock::instant() + FAREWELL) {
            self.kill();
            self.child.wait().ok();
            return Ending::forced("closed its output and had to be killed");
        }
        // What it started and can end no more.
        self.kill_group();
        self.child
            .wait()
            .map_or_else(|_| Ending::forced("ended"), Ending::of)
    }

    /// Asks the worker to leave.
    pub(super) fn dismiss(&mut self) {
        self.input = None;
    }

    /// Waits for the worker to end.
    fn has_ended_by(&mut self, deadline: Instant) -> bool {
        loop {
            match self.child.try_wait() {
                Ok(Some(_)) | Err(_) => return true,
                Ok(None) if clock::instant() >= deadline => return false,
                Ok(None) => thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}

/// Starts a worker only to hear its greeting.
pub fn greeting(program: &WorkerProgram) -> Result<Hello, WorkerError> {
    let (sender, signals) = mpsc::sync_channel(TAIL);
    let mut worker = Worker::start(0, program, &sender)?;
    let deadline = clock::instant() + GREETING;
    loop {
        let left = deadline.saturating_duration_since(clock::instant());
        let reason = match signals.recv_timeout(left) {
            Ok(state::Signal::Worker(_, FromThread::Message(FromWorker::Hello(hello)))) => {
                worker.greet(hello.clone(), program)?;
                worker.dismiss();
                return Ok(hello);
            }
            Ok(state::Signal::Worker(_, FromThread::Stderr(line))) => {
                worker.note(&line);
                continue;
            }
            Ok(state::Signal::Worker(_, FromThread::Closed)) => worker.ending().phrase,
            Ok(_) => "said something that is not a greeting".to_owned(),
            Err(_) => Ending::overdue().phrase,
        };
        return Err(WorkerError::Greeting {
            path: program.path.clone(),
            reason,
            tail: worker.take_tail(),
        });
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let asked = self.input.take().is_none();
        let deadline = clock::instant() + if asked { FAREWELL } else { Duration::ZERO };
        if !self.has_ended_by(deadline) {
            self.kill();
            self.child.wait().ok();
        }
    }
}

/// How a worker ended.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    /// In words that go on after "the worker".
    pub(super) phrase: String,
    /// Whether it left by itself, with an exit code.
    pub(super) is_own: bool,
}

impl Ending {
    fn of(status: ExitStatus) -> Self {
        const KILL: i32 = 9;
        match (status.signal(), status.code()) {
            (Some(KILL), _) => Self::forced("was killed (signal 9), perhaps because memory ran out"),
            (Some(signal), _) => Self::forced(&format!("crashed (signal {signal}{})", signal_name(signal))),
            (None, Some(code)) => Self {
                phrase: format!("ended with exit code {code}"),
                is_own: true,
            },
            (None, None) => Self::forced("ended"),
        }
    }

    /// Of a worker that has had more than enough time to greet.
    pub(super) fn overdue() -> Self {
        Self::forced("said nothing for two minutes")
    }

    fn forced(phrase: &str) -> Self {
        Self {
            phrase: phrase.to_owned(),
            is_own: false,
        }
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => ", illegal instruction",
        6 => ", abort",
        7 => ", bus error",
        8 => ", arithmetic error",
        11 => ", segmentation fault",
        15 => ", terminated",
        25 => ", a file larger than `ulimit -f` allows",
        _ => "",
    }
}
